"""From a compiled MuJoCo model to the SceneBundle that the window, the renderer and recordings use."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import mujoco
import numpy as np

from genesis_core.compiler.bundle_meshes import hfield_mesh, model_mesh
from genesis_core.layout.enums import GeomType
from genesis_core.layout.scene import CameraInfo, Light, Material, Mesh, SceneBundle, Texture

_TEXTURE_KINDS = {0: "2d", 1: "cube", 2: "skybox"}
_DEFAULT_RGBA = np.array([0.5, 0.5, 0.5, 1.0], np.float32)
_MODES = ("fixed", "track", "track", "target", "target")  # mjtCamLight


def names_of(mj: mujoco.MjModel, kind: mujoco.mjtObj, count: int) -> list[str]:
    """Names of all objects of a kind, "" where the file gives none."""
    return [mujoco.mj_id2name(mj, kind, i) or "" for i in range(count)]


def actuator_names(mj: mujoco.MjModel) -> list[str]:
    """Names of the controls, one per ctrl entry; an unnamed actuator is called after what it drives."""
    target_kind = {0: mujoco.mjtObj.mjOBJ_JOINT, 1: mujoco.mjtObj.mjOBJ_JOINT, 3: mujoco.mjtObj.mjOBJ_TENDON}
    target_kind |= {2: mujoco.mjtObj.mjOBJ_SITE, 4: mujoco.mjtObj.mjOBJ_SITE, 5: mujoco.mjtObj.mjOBJ_BODY}
    out = [""] * mj.nu
    for i in range(mj.nactuator):
        name = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_ACTUATOR, i) or ""
        kind = target_kind.get(int(mj.actuator_trntype[i]))
        if not name and kind is not None:
            name = mujoco.mj_id2name(mj, kind, int(mj.actuator_trnid[i, 0])) or ""
        first, count = int(mj.actuator_ctrladr[i]), int(mj.actuator_ctrlnum[i])
        for k in range(count):
            out[first + k] = (name or f"actuator{i}") + (f"[{k}]" if count > 1 else "")
    return out


def build_bundle(
    mj: mujoco.MjModel,
    data: mujoco.MjData | None = None,
    *,
    name: str = "",
    source: str | Path = "",
    authored_view: bool = False,
    authored_stat: bool = False,
    unsupported: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> SceneBundle:
    """Everything to draw and inspect a compiled model.

    `data` holds the state whose poses become `geom_pos0`/`geom_xmat0` (qpos0 where it is None); `mj_forward`'s
    kinematics are run on it. `authored_view` and `authored_stat` say whether the file sets the camera angles and the
    extent itself; else good ones are chosen.
    """
    if data is None:
        data = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, data)
    mujoco.mj_comPos(mj, data)
    mujoco.mj_camlight(mj, data)
    shapes = _Shapes(mj)
    center, extent = scene_extent(mj, data)
    if authored_stat:
        center, extent = np.array(mj.stat.center), float(mj.stat.extent)
    angles = (float(mj.vis.global_.azimuth), float(mj.vis.global_.elevation)) if authored_view else (135.0, -20.0)
    head = mj.vis.headlight
    obj = mujoco.mjtObj
    return SceneBundle(
        name=name or _model_name(mj),
        source=str(source),
        timestep=float(mj.opt.timestep),
        gravity=_triple(mj.opt.gravity),
        nq=mj.nq,
        nv=mj.nv,
        nu=mj.nu,
        body_name=names_of(mj, obj.mjOBJ_BODY, mj.nbody),
        body_parentid=_i32(mj.body_parentid),
        body_weldid=moving_weld_ids(mj),
        body_mass=mj.body_mass.copy(),
        body_inertia=mj.body_inertia.copy(),
        body_ipos=mj.body_ipos.copy(),
        body_iquat=mj.body_iquat.copy(),
        jnt_name=names_of(mj, obj.mjOBJ_JOINT, mj.njnt),
        jnt_type=_i32(mj.jnt_type),
        jnt_qposadr=_i32(mj.jnt_qposadr),
        jnt_dofadr=_i32(mj.jnt_dofadr),
        jnt_bodyid=_i32(mj.jnt_bodyid),
        jnt_limited=mj.jnt_limited.astype(bool),
        jnt_range=mj.jnt_range.copy(),
        jnt_pos=mj.jnt_pos.copy(),
        jnt_axis=mj.jnt_axis.copy(),
        qpos0=mj.qpos0.copy(),
        actuator_name=actuator_names(mj),
        actuator_ctrllimited=_per_ctrl(mj, mj.actuator_ctrllimited).astype(bool),
        actuator_ctrlrange=_per_ctrl(mj, mj.actuator_ctrlrange),
        key_name=names_of(mj, obj.mjOBJ_KEY, mj.nkey),
        geom_name=names_of(mj, obj.mjOBJ_GEOM, mj.ngeom),
        geom_type=_i32(mj.geom_type),
        geom_bodyid=_i32(mj.geom_bodyid),
        geom_group=_i32(mj.geom_group),
        geom_size=mj.geom_size.astype(np.float32),
        geom_rgba=geom_colours(mj),
        geom_matid=_i32(mj.geom_matid),
        geom_dataid=shapes.geom_dataid,
        geom_collides=collides(mj),
        geom_pos0=data.geom_xpos.copy(),
        geom_xmat0=data.geom_xmat.reshape(-1, 3, 3).copy(),
        geom_pos=mj.geom_pos.copy(),
        geom_quat=mj.geom_quat.copy(),
        site_name=names_of(mj, obj.mjOBJ_SITE, mj.nsite),
        site_bodyid=_i32(mj.site_bodyid),
        site_pos=mj.site_pos.copy(),
        site_quat=mj.site_quat.copy(),
        site_size=mj.site_size.astype(np.float32),
        site_rgba=mj.site_rgba.astype(np.float32),
        meshes=shapes.meshes,
        textures=shapes.textures,
        materials=shapes.materials,
        lights=[_light(mj, data, i) for i in range(mj.nlight)],
        cameras=[_camera(mj, data, i) for i in range(mj.ncam)],
        headlight_ambient=_triple(head.ambient) if head.active else (0.0, 0.0, 0.0),
        headlight_diffuse=_triple(head.diffuse) if head.active else (0.0, 0.0, 0.0),
        stat_center=_triple(center),
        stat_extent=extent,
        default_camera=(*angles, 0.0),
        unsupported=list(unsupported),
        warnings=list(warnings),
    )


def moving_weld_ids(mj: mujoco.MjModel) -> np.ndarray:
    """`body_weldid` with mocap bodies counted as moving: their pose may differ from one environment to the next."""
    weld = np.zeros(mj.nbody, np.int32)
    for b in range(1, mj.nbody):
        own = mj.body_jntnum[b] > 0 or mj.body_mocapid[b] >= 0
        weld[b] = b if own else weld[mj.body_parentid[b]]
    return weld


def collides(mj: mujoco.MjModel) -> np.ndarray:
    """Which geoms can be in contact at all, shape (ngeom,) bool."""
    out = (mj.geom_contype | mj.geom_conaffinity) != 0
    for geoms in (mj.pair_geom1, mj.pair_geom2):
        out[geoms] = True
    return np.asarray(out, dtype=bool)


def geom_colours(mj: mujoco.MjModel) -> np.ndarray:
    """Final colour of each geom, shape (ngeom, 4): its own if it sets one, else its material's (as MuJoCo draws)."""
    rgba = mj.geom_rgba.astype(np.float32)
    plain = np.all(rgba == _DEFAULT_RGBA, axis=1) & (mj.geom_matid >= 0)
    rgba[plain] = mj.mat_rgba[mj.geom_matid[plain]]
    return rgba


def world_boxes(mj: mujoco.MjModel, data: mujoco.MjData) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corners, world frame, of the boxes around the geoms, shape (ngeom, 3) each [m]."""
    rotation = data.geom_xmat.reshape(-1, 3, 3)
    middle = data.geom_xpos + np.einsum("nij,nj->ni", rotation, mj.geom_aabb[:, :3])
    half = np.einsum("nij,nj->ni", np.abs(rotation), np.minimum(mj.geom_aabb[:, 3:], 1e10))
    return middle - half, middle + half


def scene_extent(mj: mujoco.MjModel, data: mujoco.MjData) -> tuple[np.ndarray, float]:
    """Middle (3,) and size [m] of what is worth looking at: not the ground, nor fixed things far away or far larger.

    The size is the largest edge of the box around what moves and the fixed geoms next to it.
    """
    low, high = world_boxes(mj, data)
    solid = (mj.geom_type != GeomType.PLANE) & (mj.geom_rgba[:, 3] > 0)
    moving = solid & (moving_weld_ids(mj)[mj.geom_bodyid] != 0)
    fixed = solid & ~moving
    if not moving.any():
        if not fixed.any():
            return np.zeros(3), 1.0
        a, b = low[fixed].min(axis=0), high[fixed].max(axis=0)
        return (a + b) / 2, float(max((b - a).max(), 1e-3))
    a, b = low[moving].min(axis=0), high[moving].max(axis=0)
    reach = 1.5 * float((b - a).max())
    middle = (a + b) / 2
    near = fixed & np.all((low > middle - reach) & (high < middle + reach), axis=1)
    if near.any():
        a, b = np.minimum(a, low[near].min(axis=0)), np.maximum(b, high[near].max(axis=0))
    return (a + b) / 2, float(max((b - a).max(), 1e-3))


class _Shapes:
    """Meshes, textures and materials, each stored once however many geoms or attached copies use it."""

    def __init__(self, mj: mujoco.MjModel) -> None:
        self.meshes: list[Mesh] = []
        self.textures: list[Texture] = []
        self._mesh_by_hash: dict[bytes, int] = {}
        self._texture_by_hash: dict[bytes, int] = {}
        self._mesh_of: dict[tuple[str, int], int] = {}
        self._texture_of: dict[int, int] = {}
        self.materials = [self._material(mj, i) for i in range(mj.nmat)]
        for i in range(mj.ntex):
            if _TEXTURE_KINDS[int(mj.tex_type[i])] == "skybox":
                self._texture(mj, i)
        self.geom_dataid = np.full(mj.ngeom, -1, np.int32)
        for g in range(mj.ngeom):
            kind = int(mj.geom_type[g])  # MuJoCo's own enums do not compare equal to NumPy's integers
            if kind in (GeomType.MESH, GeomType.SDF):
                self.geom_dataid[g] = self._mesh(mj, "mesh", int(mj.geom_dataid[g]))
            elif kind == GeomType.HFIELD:
                self.geom_dataid[g] = self._mesh(mj, "hfield", int(mj.geom_dataid[g]))

    def _mesh(self, mj: mujoco.MjModel, kind: str, index: int) -> int:
        if index < 0:
            return -1
        if (kind, index) not in self._mesh_of:
            mesh = model_mesh(mj, index) if kind == "mesh" else hfield_mesh(mj, index)
            uv = b"" if mesh.uv is None else mesh.uv.tobytes()
            digest = hashlib.blake2b(
                mesh.vertices.tobytes() + mesh.normals.tobytes() + mesh.faces.tobytes() + uv
            ).digest()
            if digest not in self._mesh_by_hash:
                self._mesh_by_hash[digest] = len(self.meshes)
                self.meshes.append(mesh)
            self._mesh_of[kind, index] = self._mesh_by_hash[digest]
        return self._mesh_of[kind, index]

    def _texture(self, mj: mujoco.MjModel, index: int) -> int:
        if index < 0:
            return -1
        if index not in self._texture_of:
            height, width, channels = int(mj.tex_height[index]), int(mj.tex_width[index]), int(mj.tex_nchannel[index])
            first = int(mj.tex_adr[index])
            raw = mj.tex_data[first : first + height * width * channels].reshape(height, width, channels)
            image = colour_channels(np.asarray(raw, np.uint8))
            kind = _TEXTURE_KINDS[int(mj.tex_type[index])]
            digest = hashlib.blake2b(kind.encode() + repr(image.shape).encode() + image.tobytes()).digest()
            if digest not in self._texture_by_hash:
                self._texture_by_hash[digest] = len(self.textures)
                label = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_TEXTURE, index) or f"texture{index}"
                self.textures.append(Texture(label, kind, image))
            self._texture_of[index] = self._texture_by_hash[digest]
        return self._texture_of[index]

    def _material(self, mj: mujoco.MjModel, i: int) -> Material:
        roles = mj.mat_texid[i]
        wanted = (int(mujoco.mjtTextureRole.mjTEXROLE_RGB), int(mujoco.mjtTextureRole.mjTEXROLE_RGBA))
        texture = next((int(roles[role]) for role in wanted if roles[role] >= 0), -1)
        return Material(
            name=mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_MATERIAL, i) or f"material{i}",
            rgba=_four(mj.mat_rgba[i]),
            texture=self._texture(mj, texture),
            texrepeat=(float(mj.mat_texrepeat[i, 0]), float(mj.mat_texrepeat[i, 1])),
            texuniform=bool(mj.mat_texuniform[i]),
            emission=float(mj.mat_emission[i]),
            specular=float(mj.mat_specular[i]),
            shininess=float(mj.mat_shininess[i]),
            reflectance=float(mj.mat_reflectance[i]),
            metallic=float(mj.mat_metallic[i]),
            roughness=float(mj.mat_roughness[i]),
        )


def colour_channels(image: np.ndarray) -> np.ndarray:
    """An image with 3 or 4 channels from one with any number: grey is repeated, grey + alpha becomes RGBA."""
    channels = image.shape[2]
    if channels == 1:
        return np.repeat(image, 3, axis=2)
    if channels == 2:
        return np.concatenate([np.repeat(image[:, :, :1], 3, axis=2), image[:, :, 1:]], axis=2)
    return image[:, :, :4].copy()


def _light(mj: mujoco.MjModel, data: mujoco.MjData, i: int) -> Light:
    # Lights that track or aim at a body stand in the world where they are at the initial state: what they light is
    # the scene around it, and a lamp that swings with a tumbling robot is hard to look at.
    fixed = _MODES[int(mj.light_mode[i])] == "fixed"
    return Light(
        name=mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_LIGHT, i) or f"light{i}",
        body=int(mj.light_bodyid[i]) if fixed else 0,
        directional=int(mj.light_type[i]) == int(mujoco.mjtLightType.mjLIGHT_DIRECTIONAL),
        castshadow=bool(mj.light_castshadow[i]),
        active=bool(mj.light_active[i]),
        pos=_triple(mj.light_pos[i] if fixed else data.light_xpos[i]),
        dir=_triple(mj.light_dir[i] if fixed else data.light_xdir[i]),
        ambient=_triple(mj.light_ambient[i]),
        diffuse=_triple(mj.light_diffuse[i]),
        specular=_triple(mj.light_specular[i]),
    )


def _camera(mj: mujoco.MjModel, data: mujoco.MjData, i: int) -> CameraInfo:
    mode = _MODES[int(mj.cam_mode[i])]
    body = int(mj.cam_bodyid[i])
    pos, quat = mj.cam_pos[i], mj.cam_quat[i]
    if mode == "track":  # offset and orientation in the world, kept while the body turns
        quat = np.zeros(4)
        mujoco.mju_mat2Quat(quat, data.cam_xmat[i])
        pos = data.cam_xpos[i] - data.xpos[body]
    return CameraInfo(
        name=mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_CAMERA, i) or f"camera{i}",
        body=body,
        pos=_triple(pos),
        quat=_four(quat),
        fovy=float(mj.cam_fovy[i]),
        mode=mode,
        target=int(mj.cam_targetbodyid[i]),
    )


def _per_ctrl(mj: mujoco.MjModel, values: np.ndarray) -> np.ndarray:
    """Values given per actuator or already per control, as one row per control."""
    if len(values) == mj.nu:
        return values.copy()
    return np.repeat(values, mj.actuator_ctrlnum, axis=0)


def _model_name(mj: mujoco.MjModel) -> str:
    return mj.names[: mj.names.find(b"\0")].decode("utf-8", "replace")


def _i32(values: np.ndarray) -> np.ndarray:
    return values.astype(np.int32)


def _four(values: Sequence[float] | np.ndarray) -> tuple[float, float, float, float]:
    return float(values[0]), float(values[1]), float(values[2]), float(values[3])


def _triple(values: Sequence[float] | np.ndarray) -> tuple[float, float, float]:
    return float(values[0]), float(values[1]), float(values[2])

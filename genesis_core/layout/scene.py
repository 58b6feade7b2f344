"""SceneBundle: everything the window, the renderer and recordings need to know of a compiled scene, without MuJoCo.

Arrays follow MuJoCo's names and meaning (`geom_rgba[ngeom, 4]`, ...). Units are metres, radians, kilograms; quaternions
are w-x-y-z. The bundle travels between processes as MessagePack (`encode` / `decode`), never as pickle.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

Array = np.ndarray


class Mesh(msgspec.Struct):
    """One triangle mesh in its geom's frame."""

    name: str
    vertices: Array  # (nvert, 3) float32 [m]
    normals: Array  # (nvert, 3) float32, unit
    faces: Array  # (nface, 3) int32
    uv: Array | None = None  # (nvert, 2) float32, origin at the lower left


class Texture(msgspec.Struct):
    """One image. kind is "2d", "cube" or "skybox"; a cube's six faces (right left up down front back) are stacked."""

    name: str
    kind: str
    data: Array  # (height, width, nchannel) uint8, first row is the top of the picture


class Material(msgspec.Struct):
    """Surface of a geom, MuJoCo's meaning of every field."""

    name: str
    rgba: tuple[float, float, float, float] = (0.5, 0.5, 0.5, 1.0)
    texture: int = -1  # index in SceneBundle.textures
    texrepeat: tuple[float, float] = (1.0, 1.0)
    texuniform: bool = False
    emission: float = 0.0
    specular: float = 0.5
    shininess: float = 0.5
    reflectance: float = 0.0
    metallic: float = -1.0
    roughness: float = -1.0


class Light(msgspec.Struct):
    """A light of the model, world frame of one environment (body lights: body frame)."""

    name: str
    body: int
    directional: bool
    castshadow: bool
    active: bool
    pos: tuple[float, float, float]
    dir: tuple[float, float, float]
    ambient: tuple[float, float, float]
    diffuse: tuple[float, float, float]
    specular: tuple[float, float, float]


class CameraInfo(msgspec.Struct):
    """A camera of the model or of the scene file, on a body (0 = world).

    mode "fixed": pos and quat in the body's frame. "track": both in the world's axes, pos relative to the body, which
    the camera follows without turning. "target": pos in the body's frame, looking at the body `target`, z up.
    """

    name: str
    body: int
    pos: tuple[float, float, float]
    quat: tuple[float, float, float, float]  # looks along its own -z, +y is up
    fovy: float  # [degree]
    mode: str = "fixed"
    target: int = -1


class SceneBundle(msgspec.Struct, kw_only=True):
    """A compiled scene as data."""

    name: str
    source: str = ""  # file it came from, for titles and messages
    timestep: float
    gravity: tuple[float, float, float]
    nq: int
    nv: int
    nu: int
    # --- bodies
    body_name: list[str]
    body_parentid: Array  # (nbody,) int32
    body_weldid: Array  # (nbody,) int32: 0 = fixed to the world, the same in every environment
    body_mass: Array  # (nbody,) float64 [kg]
    body_inertia: Array  # (nbody, 3)
    body_ipos: Array  # (nbody, 3)
    body_iquat: Array  # (nbody, 4)
    # --- joints and actuators
    jnt_name: list[str]
    jnt_type: Array  # (njnt,) int32, layout.enums.JointType
    jnt_qposadr: Array
    jnt_dofadr: Array
    jnt_bodyid: Array
    jnt_limited: Array  # (njnt,) bool
    jnt_range: Array  # (njnt, 2) [m or rad]
    jnt_pos: Array  # (njnt, 3) body frame
    jnt_axis: Array  # (njnt, 3) body frame
    qpos0: Array  # (nq,)
    actuator_name: list[str]
    actuator_ctrllimited: Array  # (nu,) bool
    actuator_ctrlrange: Array  # (nu, 2)
    key_name: list[str]
    # --- geoms
    geom_name: list[str]
    geom_type: Array  # (ngeom,) int32, layout.enums.GeomType
    geom_bodyid: Array  # (ngeom,) int32
    geom_group: Array  # (ngeom,) int32, 0..5
    geom_size: Array  # (ngeom, 3) float32, MuJoCo's meaning per type
    geom_rgba: Array  # (ngeom, 4) float32: final colour when there is no material
    geom_matid: Array  # (ngeom,) int32, index in materials or -1
    geom_dataid: Array  # (ngeom,) int32, index in meshes or -1
    geom_collides: Array  # (ngeom,) bool: contype or conaffinity set, or named in a pair
    geom_pos0: Array  # (ngeom, 3) world pose at the initial state, so that a scene can be shown before any kernel runs
    geom_xmat0: Array  # (ngeom, 3, 3)
    geom_pos: Array  # (ngeom, 3) in the body's frame: with a geom's world pose it gives the body's
    geom_quat: Array  # (ngeom, 4)
    # --- sites
    site_name: list[str]
    site_bodyid: Array
    site_pos: Array  # (nsite, 3) body frame
    site_quat: Array
    site_size: Array
    site_rgba: Array
    # --- what they look like
    meshes: list[Mesh] = []
    textures: list[Texture] = []
    materials: list[Material] = []
    lights: list[Light] = []
    cameras: list[CameraInfo] = []
    headlight_ambient: tuple[float, float, float] = (0.1, 0.1, 0.1)
    headlight_diffuse: tuple[float, float, float] = (0.4, 0.4, 0.4)
    stat_center: tuple[float, float, float] = (0.0, 0.0, 0.0)  # [m] middle of the scene at the initial state
    stat_extent: float = 1.0  # [m] size of the scene, for the first camera position
    default_camera: tuple[float, float, float] = (
        135.0,
        -20.0,
        0.0,
    )  # azimuth, elevation [degree], distance [m], 0 = by extent
    unsupported: list[str] = []  # features of the file that are not simulated
    warnings: list[str] = []  # what was repaired or guessed while loading

    @property
    def nbody(self) -> int:
        return len(self.body_name)

    @property
    def ngeom(self) -> int:
        return len(self.geom_type)


def initial_rows(bundle: SceneBundle) -> Array:
    """World transforms of the geoms at the initial state, shape (ngeom, 12) float32: 3x4 row-major [R | p]."""
    rows = np.empty((bundle.ngeom, 3, 4), np.float32)
    rows[:, :, :3] = bundle.geom_xmat0
    rows[:, :, 3] = bundle.geom_pos0
    return rows.reshape(bundle.ngeom, 12)


_ARRAY_CODE = 1


def _enc(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        a = np.ascontiguousarray(value)
        head = msgspec.msgpack.encode((a.dtype.str, a.shape))
        return msgspec.msgpack.Ext(_ARRAY_CODE, len(head).to_bytes(4, "little") + head + a.tobytes())
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot send a {type(value).__name__}")


def _ext(code: int, data: memoryview) -> Any:
    if code != _ARRAY_CODE:
        raise ValueError(f"unknown extension code {code}")
    raw = bytes(data)
    n = int.from_bytes(raw[:4], "little")
    dtype, shape = msgspec.msgpack.decode(raw[4 : 4 + n])
    if np.dtype(dtype).hasobject:
        raise ValueError("object arrays are refused")
    return np.frombuffer(raw, dtype=dtype, offset=4 + n).reshape(shape).copy()


def _dec(kind: type, value: Any) -> Any:
    if kind is np.ndarray or isinstance(value, np.ndarray):
        return value
    raise TypeError(f"cannot read a {kind}")


def encode(value: Any) -> bytes:
    """Any msgspec structure with NumPy arrays inside, as MessagePack."""
    return msgspec.msgpack.encode(value, enc_hook=_enc)


def decode(data: bytes, kind: Any) -> Any:
    """The inverse of `encode` for the type `kind`."""
    return msgspec.msgpack.decode(data, type=kind, dec_hook=_dec, ext_hook=_ext)

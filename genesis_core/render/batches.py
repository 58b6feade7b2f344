"""Geoms sorted into batches: one per mesh, texture and transparency; each batch is one instanced draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis_core.layout.enums import GeomType
from genesis_core.layout.scene import SceneBundle
from genesis_core.render import primitives
from genesis_core.render.primitives import UnitMesh

ENDLESS = 20.0  # [m] a plane larger than this is drawn once, as the floor of all environments
ROUND = {GeomType.SPHERE, GeomType.ELLIPSOID, GeomType.CAPSULE, GeomType.CYLINDER}
DEFAULT_MATERIAL = (0.35, 0.35, 0.0, 0.0)  # specular, shininess, emission, reflectance


class Batch:
    """Geoms that share a mesh, a texture and the way they are blended."""

    def __init__(self, mesh: UnitMesh, texture: int, transparent: bool, geoms: list[int]) -> None:
        self.mesh = mesh
        self.texture = texture
        self.transparent = transparent
        self.geoms = np.array(geoms, np.int64)
        self.count = 0


def floor_geoms(bundle: SceneBundle) -> list[int]:
    """Planes of the world that are drawn once for all environments."""
    out = []
    for g in np.flatnonzero(bundle.geom_type == GeomType.PLANE):
        sx, sy = bundle.geom_size[g, :2]
        endless = sx <= 0 or sy <= 0 or min(sx, sy) >= ENDLESS
        if endless and bundle.body_weldid[bundle.geom_bodyid[g]] == 0 and bundle.geom_rgba[g, 3] > 0:
            out.append(int(g))
    return out


def geom_material(bundle: SceneBundle, g: int) -> tuple[float, float, float, float]:
    """Specular, shininess, emission and reflectance."""
    mat = int(bundle.geom_matid[g])
    if mat < 0:
        return DEFAULT_MATERIAL
    m = bundle.materials[mat]
    return m.specular, m.shininess, m.emission, m.reflectance


def geom_texture(bundle: SceneBundle, g: int) -> int:
    """Index of the geom's texture or -1."""
    mat = int(bundle.geom_matid[g])
    if mat < 0:
        return -1
    texture = bundle.materials[mat].texture
    if texture < 0 or bundle.textures[texture].kind == "skybox":
        return -1
    return texture


def geom_scale(bundle: SceneBundle, g: int) -> tuple[float, float, float, float]:
    """Scale of the unit mesh and half length between the caps."""
    x, y, z = (float(v) for v in bundle.geom_size[g])
    match GeomType(int(bundle.geom_type[g])):
        case GeomType.SPHERE:
            return x, x, x, 0.0
        case GeomType.CAPSULE:
            return x, x, x, y
        case GeomType.CYLINDER:
            return x, x, y, 0.0
        case GeomType.ELLIPSOID | GeomType.BOX:
            return x, y, z, 0.0
        case GeomType.PLANE:
            return x or 1.0, y or 1.0, 1.0, 0.0
        case _:
            return 1.0, 1.0, 1.0, 0.0


def geom_tex(bundle: SceneBundle, g: int) -> tuple[float, float, float, float]:
    """texrepeat x, y; where coordinates come from (1 = the mesh's, 2 = position); 1 = repeats per metre."""
    mat = int(bundle.geom_matid[g])
    if mat < 0:
        return 1.0, 1.0, 1.0, 0.0
    m = bundle.materials[mat]
    data = int(bundle.geom_dataid[g])
    own_uv = data >= 0 and bundle.meshes[data].uv is not None
    return m.texrepeat[0], m.texrepeat[1], 1.0 if own_uv else 2.0, float(m.texuniform)


class MeshSource:
    """Unit meshes by geom, made once per level of detail."""

    def __init__(self, bundle: SceneBundle, detail: float) -> None:
        self._bundle = bundle
        self._made: dict[tuple[str, int], UnitMesh] = {}
        self.slices = max(8, int(32 * detail) // 2 * 2)

    def key(self, g: int) -> tuple[str, int] | None:
        """What mesh a geom needs; None where it has none."""
        kind = GeomType(int(self._bundle.geom_type[g]))
        if kind in (GeomType.MESH, GeomType.SDF, GeomType.HFIELD):
            data = int(self._bundle.geom_dataid[g])
            return ("mesh", data) if data >= 0 else None
        name = "sphere" if kind == GeomType.ELLIPSOID else kind.name.lower()
        return (name, 0)

    def get(self, key: tuple[str, int]) -> UnitMesh:
        if key not in self._made:
            self._made[key] = self._make(*key)
        return self._made[key]

    def _make(self, name: str, index: int) -> UnitMesh:
        n = self.slices
        match name:
            case "sphere":
                return primitives.sphere(n, max(6, n // 2))
            case "capsule":
                return primitives.capsule(n, max(3, n // 4))
            case "cylinder":
                return primitives.cylinder(n)
            case "box":
                return primitives.box()
            case "plane":
                return primitives.plane()
        mesh = self._bundle.meshes[index]
        return UnitMesh(mesh.vertices, mesh.normals, mesh.faces, uv=mesh.uv)


def make_batches(bundle: SceneBundle, groups: set[int], source: MeshSource, left_out: set[int]) -> list[Batch]:
    """Batches of the visible geoms, opaque ones first."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for g in range(bundle.ngeom):
        alpha = float(bundle.geom_rgba[g, 3])
        key = source.key(g)
        if int(bundle.geom_group[g]) not in groups or g in left_out or alpha <= 0 or key is None:
            continue
        found.setdefault((alpha < 1, key, geom_texture(bundle, g)), []).append(g)
    return [
        Batch(source.get(key), texture, transparent, geoms)
        for (transparent, key, texture), geoms in sorted(found.items(), key=lambda item: item[0])
    ]


def checker_colors(image: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The two colours (0..1) of a checker image, or None if it is none: then the picture itself is sampled."""
    h, w = image.shape[0] // 2, image.shape[1] // 2
    if h < 1 or w < 1:
        return None
    rgb = image[..., :3].astype(np.float32) / 255
    if rgb.shape[-1] == 1:
        rgb = np.repeat(rgb, 3, -1)
    inner = (slice(h // 4, h - h // 4 or None), slice(w // 4, w - w // 4 or None))
    quadrants = [rgb[:h, :w][inner], rgb[:h, w:][inner], rgb[h:, :w][inner], rgb[h:, w:][inner]]
    means = [np.median(q.reshape(-1, 3), axis=0) for q in quadrants]
    plain = all(float(q.reshape(-1, 3).std(axis=0).max()) < 0.06 for q in quadrants)
    if plain and np.allclose(means[0], means[3], atol=0.03) and np.allclose(means[1], means[2], atol=0.03):
        return means[0], means[1]
    return None


def edge_color(image: np.ndarray) -> np.ndarray | None:
    """The colour (0..1) of a line along the border of a checker image, or None where there is none."""
    rgb = image[..., :3].astype(np.float32) / 255
    border = np.median(np.concatenate([rgb[0], rgb[-1], rgb[:, 0], rgb[:, -1]]), axis=0)
    inside = [rgb[rgb.shape[0] // 4, rgb.shape[1] // 4], rgb[rgb.shape[0] // 4, 3 * rgb.shape[1] // 4]]
    same = any(np.allclose(border, color, atol=0.02) for color in inside)
    return None if same else border * np.ones(3, np.float32)

"""Meshes and height fields of a compiled model as triangle lists for drawing."""

from __future__ import annotations

import mujoco
import numpy as np

from genesis_core.layout.scene import Mesh

_CREASE = np.cos(np.radians(40.0))
_BAD_SHARE = 0.005  # of face corners
_MAX_PAIRS = 20_000_000  # corners that meet at a vertex; beyond it faces stay flat


def model_mesh(mj: mujoco.MjModel, index: int) -> Mesh:
    """Mesh `index` in the frame of the geoms that use it (MuJoCo moves meshes to their inertial frame).

    A vertex is repeated where its faces have different normals or texture coordinates.
    """
    name = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_MESH, index) or f"mesh{index}"
    faces = _part(mj.mesh_face, mj.mesh_faceadr[index], mj.mesh_facenum[index])
    normal_faces = _part(mj.mesh_facenormal, mj.mesh_faceadr[index], mj.mesh_facenum[index])
    vertices = _part(mj.mesh_vert, mj.mesh_vertadr[index], mj.mesh_vertnum[index])
    normals = _part(mj.mesh_normal, mj.mesh_normaladr[index], mj.mesh_normalnum[index])
    uv_first, uv_count = int(mj.mesh_texcoordadr[index]), int(mj.mesh_texcoordnum[index])
    has_uv = uv_first >= 0 and uv_count > 0
    normal_ids = normal_faces.ravel()
    if not _normals_fit(vertices, faces, normals, normal_faces):
        normals, normal_ids = crease_normals(vertices, faces)
    key = faces.ravel().astype(np.int64) * len(normals) + normal_ids
    if has_uv:
        uv_faces = _part(mj.mesh_facetexcoord, mj.mesh_faceadr[index], mj.mesh_facenum[index])
        key = key * uv_count + uv_faces.ravel()
    _, first, corner = np.unique(key, return_index=True, return_inverse=True)
    uv = None
    if has_uv:
        uv = mj.mesh_texcoord[uv_first : uv_first + uv_count][uv_faces.ravel()[first]].astype(np.float32)
        uv[:, 1] = 1.0 - uv[:, 1]  # MuJoCo counts from the first image row, the bundle from the last
    return Mesh(
        name=name,
        vertices=np.ascontiguousarray(vertices[faces.ravel()[first]], np.float32),
        normals=unit_rows(normals[normal_ids[first]]),
        faces=corner.reshape(-1, 3).astype(np.int32),
        uv=uv,
    )


def hfield_mesh(mj: mujoco.MjModel, index: int) -> Mesh:
    """Height field `index` as a surface in its geom's frame, with smooth normals."""
    name = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_HFIELD, index) or f"hfield{index}"
    rows, columns = int(mj.hfield_nrow[index]), int(mj.hfield_ncol[index])
    size_x, size_y, top, _ = (float(x) for x in mj.hfield_size[index])
    first = int(mj.hfield_adr[index])
    z = mj.hfield_data[first : first + rows * columns].reshape(rows, columns).astype(np.float64) * top
    x = np.linspace(-size_x, size_x, columns)
    y = np.linspace(-size_y, size_y, rows)
    slope_y, slope_x = np.gradient(z, y, x)
    grid_x, grid_y = np.meshgrid(x, y)
    vertices = np.stack([grid_x, grid_y, z], axis=-1).reshape(-1, 3)
    normals = np.stack([-slope_x, -slope_y, np.ones_like(z)], axis=-1).reshape(-1, 3)
    corner = np.arange(rows * columns).reshape(rows, columns)
    a, b, c, d = corner[:-1, :-1], corner[:-1, 1:], corner[1:, 1:], corner[1:, :-1]
    faces = np.stack([a, b, c, a, c, d], axis=-1).reshape(-1, 3)
    u, v = np.meshgrid(np.linspace(0, 1, columns), np.linspace(0, 1, rows))
    uv = np.stack([u, v], axis=-1).reshape(-1, 2)
    return Mesh(name, vertices.astype(np.float32), unit_rows(normals), faces.astype(np.int32), uv.astype(np.float32))


def face_normals(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Normals (nface, 3) of triangles, their length twice the area."""
    a, b, c = (np.asarray(vertices, np.float64)[faces[:, k]] for k in range(3))
    return np.cross(b - a, c - a)


def _normals_fit(vertices: np.ndarray, faces: np.ndarray, normals: np.ndarray, normal_faces: np.ndarray) -> bool:
    """Whether normals lean no more than 60 degrees from their faces, but for a few corners.

    Where a file has none, MuJoCo makes one per vertex, which at sharp edges points along one of the faces or nowhere.
    """
    if not len(faces):
        return True
    flat = face_normals(vertices, faces)
    area = np.linalg.norm(flat, axis=1)
    seen = area > 1e-12 * area.max()
    along = np.einsum("fki,fi->fk", normals[normal_faces[seen]], flat[seen])
    return bool(np.mean(along < 0.5 * area[seen, None]) < _BAD_SHARE)


def crease_normals(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Normals that are smooth over edges flatter than 40 degrees and sharp elsewhere.

    Returns the different normals (n, 3) and the index of each face corner's, shape (3 * nface,).
    """
    flat = face_normals(vertices, faces)
    unit = unit_rows(flat).astype(np.float64)
    _, place = np.unique(np.ascontiguousarray(vertices, np.float32), axis=0, return_inverse=True)
    corner_place = place.ravel()[faces.ravel()]
    corner_face = np.repeat(np.arange(len(faces)), 3)
    order = np.argsort(corner_place, kind="stable")
    counts = np.bincount(corner_place)
    pairs = int((counts.astype(np.int64) ** 2).sum())
    out = unit[corner_face]
    if pairs <= _MAX_PAIRS:
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        degree = counts[corner_place]
        mine = np.repeat(np.arange(len(corner_face)), degree)
        step = np.arange(pairs) - np.repeat(np.cumsum(degree) - degree, degree)
        other = corner_face[order[np.repeat(starts[corner_place], degree) + step]]
        smooth = np.einsum("ij,ij->i", unit[corner_face[mine]], unit[other]) > _CREASE
        weight = flat[other] * smooth[:, None]
        out = np.stack([np.bincount(mine, weight[:, k], len(corner_face)) for k in range(3)], axis=1)
        out = unit_rows(out).astype(np.float64)
    grid = np.rint(out * 1023).astype(np.int64) + 1024
    _, first, ids = np.unique(
        (grid[:, 0] << 22) | (grid[:, 1] << 11) | grid[:, 2], return_index=True, return_inverse=True
    )
    return out[first], ids.ravel()


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Vectors (n, 3) scaled to length one, as float32; zero vectors become +z."""
    out = np.array(vectors, np.float32)
    length = np.linalg.norm(out, axis=1, keepdims=True)
    bad = length[:, 0] < 1e-12
    out[bad] = (0.0, 0.0, 1.0)
    length[bad] = 1.0
    return out / length


def _part(values: np.ndarray, first: int, count: int) -> np.ndarray:
    return values[int(first) : int(first) + int(count)]

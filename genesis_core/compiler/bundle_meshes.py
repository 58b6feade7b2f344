"""Meshes and height fields of a compiled model as triangle lists for drawing."""

from __future__ import annotations

import mujoco
import numpy as np

from genesis_core.layout.scene import Mesh


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
    key = faces.ravel().astype(np.int64) * len(normals) + normal_faces.ravel()
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
        normals=unit_rows(normals[normal_faces.ravel()[first]]),
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

"""Unit meshes of the primitive geoms; the shader scales them to MuJoCo's sizes.

Every vertex has a position, a normal and `cap` in {-1, 0, +1}: the vertex is moved by cap * half length along z after
scaling, so that a capsule keeps round ends whatever its size.
"""

from __future__ import annotations

import math

import numpy as np


class UnitMesh:
    """Vertices (n, 3), normals (n, 3), cap (n,), uv (n, 2) float32; faces (m, 3) uint32, counter-clockwise outside."""

    def __init__(
        self,
        vertices: np.ndarray,
        normals: np.ndarray,
        faces: np.ndarray,
        cap: np.ndarray | None = None,
        uv: np.ndarray | None = None,
    ) -> None:
        self.vertices = np.ascontiguousarray(vertices, np.float32)
        self.normals = np.ascontiguousarray(normals, np.float32)
        self.faces = np.ascontiguousarray(faces, np.uint32)
        n = len(self.vertices)
        self.cap = np.zeros(n, np.float32) if cap is None else np.ascontiguousarray(cap, np.float32)
        self.uv = np.zeros((n, 2), np.float32) if uv is None else np.ascontiguousarray(uv, np.float32)


def _grid_faces(rows: int, columns: int) -> np.ndarray:
    """Two triangles per cell of a (rows + 1) x (columns + 1) grid of vertices, row-major."""
    r, c = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    a = (r * (columns + 1) + c).ravel()
    b, d, e = a + 1, a + columns + 1, a + columns + 2
    return np.concatenate([np.stack([a, d, b], 1), np.stack([b, d, e], 1)])


def _drop_degenerate(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    p = vertices[faces]
    area = np.linalg.norm(np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0]), axis=1)
    return faces[area > 1e-9]


def sphere(slices: int = 32, stacks: int = 16) -> UnitMesh:
    """Radius 1."""
    theta = np.linspace(0, math.pi, stacks + 1)
    phi = np.linspace(0, 2 * math.pi, slices + 1)
    t, p = np.meshgrid(theta, phi, indexing="ij")
    v = np.stack([np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)], -1).reshape(-1, 3)
    uv = np.stack([p / (2 * math.pi), 1 - t / math.pi], -1).reshape(-1, 2)
    return UnitMesh(v, v, _drop_degenerate(v, _grid_faces(stacks, slices)), uv=uv)


def capsule(slices: int = 32, stacks: int = 8) -> UnitMesh:
    """Radius 1 around the z axis; the halves of the sphere carry cap = +1 and -1."""
    upper = np.linspace(0, math.pi / 2, stacks + 1)
    theta = np.concatenate([upper, math.pi - upper[::-1]])
    cap = np.concatenate([np.ones(stacks + 1), -np.ones(stacks + 1)])
    phi = np.linspace(0, 2 * math.pi, slices + 1)
    t, p = np.meshgrid(theta, phi, indexing="ij")
    v = np.stack([np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)], -1).reshape(-1, 3)
    caps = np.repeat(cap, slices + 1)
    tall = v + caps[:, None] * np.array([0, 0, 1.0])
    return UnitMesh(v, v, _drop_degenerate(tall, _grid_faces(len(theta) - 1, slices)), caps)


def cylinder(slices: int = 32) -> UnitMesh:
    """Radius 1, z from -1 to 1."""
    phi = np.linspace(0, 2 * math.pi, slices + 1)
    ring = np.stack([np.cos(phi), np.sin(phi)], 1)
    flat = np.zeros((slices + 1, 1))
    top, bottom = np.hstack([ring, flat + 1]), np.hstack([ring, flat - 1])
    side_n = np.hstack([ring, flat])
    faces = [_grid_faces(1, slices)]
    vertices, normals = [top, bottom], [side_n, side_n]
    start = 2 * (slices + 1)
    k = np.arange(slices)
    for z, edge in ((1.0, top), (-1.0, bottom)):
        vertices += [edge, np.array([[0, 0, z]])]
        normals.append(np.tile([0, 0, z], (slices + 2, 1)))
        fan = np.stack([np.full(slices, start + slices + 1), start + k, start + k + 1], 1)
        faces.append(fan if z > 0 else fan[:, [0, 2, 1]])
        start += slices + 2
    return UnitMesh(np.vstack(vertices), np.vstack(normals), np.vstack(faces))


def box() -> UnitMesh:
    """From -1 to 1 along each axis."""
    vertices: list[np.ndarray] = []
    normals: list[np.ndarray] = []
    faces: list[np.ndarray] = []
    uv: list[np.ndarray] = []
    for axis in range(3):
        u, w = (axis + 1) % 3, (axis + 2) % 3
        for sign in (1.0, -1.0):
            corner = np.zeros((4, 3))
            corner[:, axis] = sign
            corner[:, u], corner[:, w] = [-1, 1, 1, -1], [-1, -1, 1, 1]
            normal = np.zeros(3)
            normal[axis] = sign
            quad = np.array([[0, 1, 2], [0, 2, 3]]) if sign > 0 else np.array([[0, 2, 1], [0, 3, 2]])
            faces.append(quad + 4 * len(vertices))
            vertices.append(corner)
            normals.append(np.tile(normal, (4, 1)))
            uv.append(np.array([[0, 0], [1, 0], [1, 1], [0, 1]]))
    return UnitMesh(np.vstack(vertices), np.vstack(normals), np.vstack(faces), uv=np.vstack(uv))


def plane() -> UnitMesh:
    """The square from -1 to 1 in z = 0, facing +z."""
    v = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    return UnitMesh(v, np.tile([0, 0, 1], (4, 1)), np.array([[0, 1, 2], [0, 2, 3]]), uv=(v[:, :2] + 1) / 2)

"""Convex hulls of meshes for contacts with planes: vertices, faces at each vertex, contact corners of each face.

MuJoCo 4.0.0 (`mjc_PlaneConvex`) takes the lowest vertex, the face at it that looks most against the plane, and of that
face the widest quadrilateral that has the vertex as a corner. The quadrilateral depends only on vertex and face: it is
found here.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

SCAN_MAX = 10  # mjMESH_HILLCLIMB_MIN: of a smaller mesh all vertices are searched, not only the hull's


def widest_corners(points: np.ndarray, start: int) -> list[int]:
    """Positions of up to three further corners of the widest quadrilateral from corner `start` of a polygon (n, 3).

    The three advance in turn around the polygon while the area grows.
    """
    n = len(points)
    if n < 5:
        return [(start + k) % n for k in range(1, n)]

    def area(b: int, c: int, d: int) -> float:
        return 0.5 * float(np.linalg.norm(np.cross(points[start] - points[c], points[b] - points[d])))

    b, c, d = (start + 1) % n, (start + 2) % n, (start + 3) % n
    best = area(b, c, d)
    while True:
        ahead = (d + 1) % n
        grown = area(b, c, ahead)
        if best >= grown:
            return [b, c, d]
        d, best = ahead, grown
        while (grown := area(b, (c + 1) % n, d)) > best:
            c, best = (c + 1) % n, grown
        while (grown := area((b + 1) % n, c, d)) > best:
            b, best = (b + 1) % n, grown


def _searched_vertices(mj: mujoco.MjModel, mesh: int) -> np.ndarray:
    """Indices, within the mesh, of the vertices among which the lowest is sought, in MuJoCo's order."""
    count, graph = int(mj.mesh_vertnum[mesh]), int(mj.mesh_graphadr[mesh])
    if graph < 0 or count < SCAN_MAX:
        return np.arange(count)
    hull = int(mj.mesh_graph[graph])
    return np.array(mj.mesh_graph[graph + 2 + hull : graph + 2 + 2 * hull], np.int64)


class _Hulls:
    """Collects the arrays of all hulls."""

    def __init__(self) -> None:
        self.adr: list[int] = []
        self.num: list[int] = []
        self.vert: list[np.ndarray] = []
        self.mapadr: list[int] = []
        self.mapnum: list[int] = []
        self.normal: list[np.ndarray] = []
        self.quad: list[list[int]] = []

    def add(self, mj: mujoco.MjModel, mesh: int) -> int:
        """Adds the hull of a mesh; its index."""
        first, count = int(mj.mesh_vertadr[mesh]), int(mj.mesh_vertnum[mesh])
        vertices = np.asarray(mj.mesh_vert[first : first + count], np.float64)
        searched = _searched_vertices(mj, mesh)
        base = len(self.vert)
        place = {int(v): base + k for k, v in enumerate(searched)}
        extra: list[int] = []  # corners of faces that are not searched
        corners = self._faces(mj, mesh, vertices)
        for _, others in corners.values():
            for vertex in (v for quad in others for v in quad if v not in place):
                place[vertex] = base + len(searched) + len(extra)
                extra.append(vertex)
        self.adr.append(base)
        self.num.append(len(searched))
        for vertex in [int(v) for v in searched] + extra:
            normals, others = corners.get(vertex, ([], []))
            self.vert.append(vertices[vertex])
            self.mapadr.append(len(self.normal))
            self.mapnum.append(len(normals))
            self.normal += normals
            self.quad += [([place[v] for v in quad] + [-1, -1, -1])[:3] for quad in others]
        return len(self.adr) - 1

    @staticmethod
    def _faces(
        mj: mujoco.MjModel, mesh: int, vertices: np.ndarray
    ) -> dict[int, tuple[list[np.ndarray], list[list[int]]]]:
        """vertex -> normals of the faces at it, and for each face its other contact vertices."""
        found: dict[int, tuple[list[np.ndarray], list[list[int]]]] = {}
        first, polygons = int(mj.mesh_vertadr[mesh]), int(mj.mesh_polyadr[mesh])
        if mj.mesh_polynum[mesh] == 0:
            return found
        for vertex in range(len(vertices)):
            adr, num = int(mj.mesh_polymapadr[first + vertex]), int(mj.mesh_polymapnum[first + vertex])
            for polygon in mj.mesh_polymap[adr : adr + num]:
                start, size = (int(a[polygons + polygon]) for a in (mj.mesh_polyvertadr, mj.mesh_polyvertnum))
                members = [int(v) for v in mj.mesh_polyvert[start : start + size]]
                own = members.index(vertex) if vertex in members else 0
                normals, others = found.setdefault(vertex, ([], []))
                normals.append(np.asarray(mj.mesh_polynormal[polygons + polygon], np.float64))
                others.append([members[k] for k in widest_corners(vertices[members], own)])
        return found


def lower_hulls(mj: mujoco.MjModel, geoms: list[int], out: dict[str, Any]) -> None:
    """Fill the hulls of the given mesh geoms."""
    hulls, of_mesh = _Hulls(), dict[int, int]()
    geom_hull = np.full(mj.ngeom, -1, np.int64)
    for geom in geoms:
        mesh = int(mj.geom_dataid[geom])
        if mesh not in of_mesh:
            of_mesh[mesh] = hulls.add(mj, mesh)
        geom_hull[geom] = of_mesh[mesh]
    out["geom_hull"] = geom_hull
    out["nhull"], out["nhullvert"], out["nhullmap"] = len(hulls.adr), len(hulls.vert), len(hulls.normal)
    for name in ("adr", "num", "mapadr", "mapnum"):
        out[f"hull_{name}"] = np.array(getattr(hulls, name), np.int64)
    out["hull_quad"] = np.array(hulls.quad, np.int64).reshape(-1)
    out["hull_vert"] = np.array(hulls.vert, np.float64).reshape(-1)
    out["hull_normal"] = np.array(hulls.normal, np.float64).reshape(-1)

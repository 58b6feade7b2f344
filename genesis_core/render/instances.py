"""The geometry of a scene in GL: all unit meshes in one buffer, all instances in two, one vertex array per batch."""

from __future__ import annotations

import ctypes

import numpy as np

from genesis_core.render.batches import Batch
from genesis_core.render.primitives import UnitMesh
from genesis_core.render.shader import PLACES

# (attribute, numbers) in the order in which they lie in their buffer
VERTEX = (("a_pos", 3), ("a_cap", 1), ("a_nrm", 3), ("a_uv", 2))
ROWS = (("a_r0", 4), ("a_r1", 4), ("a_r2", 4))
LOOKS = (("a_scale", 4), ("a_rgba", 4), ("a_material", 4), ("a_tex", 4), ("a_id", 2))
LOOK_SIZE = sum(n for _, n in LOOKS)
LOOK_ENDS = [sum(n for _, n in LOOKS[: k + 1]) for k in range(len(LOOKS))]
LOOK_AT = {name: slice(end - n, end) for (name, n), end in zip(LOOKS, LOOK_ENDS, strict=True)}


class Instances:
    """Buffers of one set of batches, in the context that is current when it is made."""

    def __init__(self, batches: list[Batch]) -> None:
        from OpenGL import GL

        self._gl = GL
        self.batches = batches
        self._vertices, self._faces, self._rows, self._looks = (int(b) for b in GL.glGenBuffers(4))
        self._arrays: list[int] = []
        self._n = 0
        self._first_face: dict[int, int] = {}
        self._first_instance: list[int] = []
        self._pick: np.ndarray = np.zeros(0, np.int64)
        self._upload_meshes()

    # ------------------------------------------------------------------ uploads
    def _upload_meshes(self) -> None:
        gl = self._gl
        meshes: dict[int, UnitMesh] = {id(b.mesh): b.mesh for b in self.batches}
        vertices, faces = [], []
        at = base = 0
        for key, mesh in meshes.items():
            self._first_face[key] = at
            faces.append(mesh.faces.ravel() + np.uint32(base))
            vertices.append(np.concatenate([mesh.vertices, mesh.cap[:, None], mesh.normals, mesh.uv], axis=1))
            at += mesh.faces.size
            base += len(mesh.vertices)
        if vertices:
            self._fill(gl.GL_ARRAY_BUFFER, self._vertices, np.concatenate(vertices), gl.GL_STATIC_DRAW)
            self._fill(gl.GL_ELEMENT_ARRAY_BUFFER, self._faces, np.concatenate(faces), gl.GL_STATIC_DRAW)

    def _fill(self, target: int, buffer: int, data: np.ndarray, usage: int) -> None:
        gl = self._gl
        data = np.ascontiguousarray(data)
        gl.glBindBuffer(target, buffer)
        gl.glBufferData(target, data.nbytes, data, usage)
        gl.glBindBuffer(target, 0)

    def upload_looks(self, looks: list[np.ndarray], n: int, ngeom: int) -> None:
        """looks: per batch (n * its geoms, LOOK_SIZE) float32, of n environments with ngeom geoms each."""
        gl = self._gl
        counts = [len(x) for x in looks]
        if n != self._n:
            self._n = n
            self._first_instance = [int(x) for x in np.concatenate([[0], np.cumsum(counts)[:-1]])] if counts else []
            places = [(np.arange(n)[:, None] * ngeom + b.geoms).ravel() for b in self.batches]
            self._pick = np.concatenate(places) if places else np.zeros(0, np.int64)
        if looks:
            self._fill(gl.GL_ARRAY_BUFFER, self._looks, np.concatenate(looks), gl.GL_DYNAMIC_DRAW)
        for batch, count in zip(self.batches, counts, strict=True):
            batch.count = count
        self._make_arrays()

    def upload_rows(self, rows: np.ndarray) -> None:
        """rows: (n, ngeom, 12) float32, with the places of the environments added."""
        gl = self._gl
        if len(self._pick):
            self._fill(gl.GL_ARRAY_BUFFER, self._rows, rows.reshape(-1, 12)[self._pick], gl.GL_STREAM_DRAW)

    # ------------------------------------------------------------------ vertex arrays
    def _make_arrays(self) -> None:
        gl = self._gl
        self._forget_arrays()
        if not bool(gl.glGenVertexArrays):  # OpenGL 2.1 without the extension: pointed at again for every draw
            return
        for k in range(len(self.batches)):
            array = int(gl.glGenVertexArrays(1))
            gl.glBindVertexArray(array)
            self._point(k)
            self._arrays.append(array)
        gl.glBindVertexArray(0)
        gl.glBindBuffer(gl.GL_ARRAY_BUFFER, 0)

    def _forget_arrays(self) -> None:
        if self._arrays:
            self._gl.glDeleteVertexArrays(len(self._arrays), self._arrays)
        self._arrays = []

    def _point(self, k: int) -> None:
        """Points all attributes at the buffers of batch k."""
        gl = self._gl
        first = self._first_instance[k]
        parts = ((self._vertices, VERTEX, 0, 0), (self._rows, ROWS, first, 1), (self._looks, LOOKS, first, 1))
        for buffer, layout, start, divisor in parts:
            stride = 4 * sum(n for _, n in layout)
            at = start * stride
            gl.glBindBuffer(gl.GL_ARRAY_BUFFER, buffer)
            for name, n in layout:
                place = PLACES[name]
                gl.glEnableVertexAttribArray(place)
                gl.glVertexAttribPointer(place, n, gl.GL_FLOAT, False, stride, ctypes.c_void_p(at))
                gl.glVertexAttribDivisor(place, divisor)
                at += 4 * n
        gl.glBindBuffer(gl.GL_ELEMENT_ARRAY_BUFFER, self._faces)

    def draw(self, k: int) -> None:
        """All instances of batch k, with the program in use."""
        gl = self._gl
        batch = self.batches[k]
        if self._arrays:
            gl.glBindVertexArray(self._arrays[k])
        else:
            self._point(k)
        start = ctypes.c_void_p(4 * self._first_face[id(batch.mesh)])
        gl.glDrawElementsInstanced(gl.GL_TRIANGLES, batch.mesh.faces.size, gl.GL_UNSIGNED_INT, start, batch.count)

    def done(self) -> None:
        """Ends a series of draws: gloo expects that no array is bound and no attribute is on."""
        gl = self._gl
        if self._arrays:
            gl.glBindVertexArray(0)
            return
        for place in set(PLACES.values()):
            gl.glVertexAttribDivisor(place, 0)
            gl.glDisableVertexAttribArray(place)
        gl.glBindBuffer(gl.GL_ARRAY_BUFFER, 0)
        gl.glBindBuffer(gl.GL_ELEMENT_ARRAY_BUFFER, 0)

    def close(self) -> None:
        self._forget_arrays()
        self._gl.glDeleteBuffers(4, [self._vertices, self._faces, self._rows, self._looks])

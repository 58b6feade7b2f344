"""Draws the shown environments of a scene into the current OpenGL context, in one instanced draw per batch of geoms.

Pure vispy.gloo, without Qt and without vispy's scene graph: the window drives it inside its GL widget, record mode
inside an EGL context. All calls belong to the thread whose context is current.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from genesis_core.layout.enums import GeomType
from genesis_core.layout.scene import SceneBundle, initial_rows
from genesis_core.render.platform import prepare

prepare()

from vispy import gloo  # noqa: E402
from vispy.gloo.context import FakeCanvas, set_current_canvas  # noqa: E402

from genesis_core.render import shaders  # noqa: E402
from genesis_core.render.batches import (  # noqa: E402
    Batch,
    MeshSource,
    floor_geoms,
    geom_material,
    geom_scale,
    geom_tex,
    make_batches,
)
from genesis_core.render.camera import Camera  # noqa: E402
from genesis_core.render.egl import context_info  # noqa: E402
from genesis_core.render.floor import Floor  # noqa: E402
from genesis_core.render.quality import Quality  # noqa: E402
from genesis_core.render.shadow import ShadowMap  # noqa: E402
from genesis_core.render.theme import DARK, SceneTheme  # noqa: E402

ROWS = np.dtype([("a_r0", np.float32, 4), ("a_r1", np.float32, 4), ("a_r2", np.float32, 4)])
LOOKS = np.dtype(
    [
        ("a_scale", np.float32, 4),
        ("a_rgba", np.float32, 4),
        ("a_material", np.float32, 4),
        ("a_tex", np.float32, 4),
        ("a_id", np.float32, 2),
    ]
)
DEFAULT_GROUPS = frozenset({0, 1, 2})
GHOST_ALPHA = 0.25


class SceneRenderer:
    """Owns the GL objects of one scene in one context."""

    def __init__(
        self,
        bundle: SceneBundle,
        quality: Quality | None = None,
        theme: SceneTheme = DARK,
    ) -> None:
        gloo.gl.use_gl("gl+")
        self.canvas = FakeCanvas()
        self.info = context_info()
        self.quality = quality or Quality.auto(self.info["renderer"])
        self.bundle = bundle
        self.theme = theme
        self.groups = set(DEFAULT_GROUPS)
        self.highlight: tuple[int, int] | None = None  # (row of the environment, body) that glows
        self._offsets = np.zeros((1, 3))
        self._rows: np.ndarray = initial_rows(bundle)[None]
        self._programs: dict[tuple[str, ...], gloo.Program] = {}
        self._textures: dict[int, Any] = {}
        self._batches: list[Batch] = []
        self._level = 0.0
        self._looks_stale = True
        self._rows_stale = True
        self._floors = [Floor(bundle, g, self.quality.soft_shadows) for g in floor_geoms(bundle)]
        self._shadow = ShadowMap(self.quality.shadow_size) if self.quality.shadows else None
        # bound where there is no map; one per context, since contexts share nothing
        self._no_shadow = gloo.Texture2D(np.ones((1, 1), np.float32), format="luminance", internalformat="r32f")
        self._sky = gloo.Program(shaders.SKY_VERT, shaders.SKY_FRAG)
        self._sky["a_corner"] = np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]], np.float32)
        self._bodies = np.flatnonzero(bundle.geom_type != GeomType.PLANE)

    # ------------------------------------------------------------------ what is shown
    def set_theme(self, theme: SceneTheme) -> None:
        """Sky and light."""
        self.theme = theme

    def set_groups(self, groups: set[int]) -> None:
        """Visible geom groups, 0 to 5."""
        if set(groups) != self.groups:
            self.groups = set(groups)
            self._batches = []

    def set_highlight(self, what: tuple[int, int] | None) -> None:
        """(row among the shown environments, body) that is drawn brighter, or None."""
        if what != self.highlight:
            self.highlight = what
            self._looks_stale = True

    def set_shown(self, offsets: np.ndarray) -> None:
        """Places of the shown environments, (n, 3) [m]; poses stay those of `set_rows`, as far as there are any."""
        offsets = np.asarray(offsets, np.float64).reshape(-1, 3)
        if len(offsets) != len(self._offsets):
            self._looks_stale = True
            start = initial_rows(self.bundle)[None]
            kept = self._rows[: len(offsets)]
            self._rows = np.concatenate([kept, np.repeat(start, len(offsets) - len(kept), 0)])
        self._offsets = offsets
        self._rows_stale = True

    def set_rows(self, rows: np.ndarray) -> None:
        """Poses of the geoms of the shown environments, (n, ngeom, 12) float32."""
        rows = np.asarray(rows, np.float32).reshape(-1, self.bundle.ngeom, 12)
        if len(rows) != len(self._offsets):
            raise ValueError(f"poses of {len(rows)} environments, {len(self._offsets)} are shown: call set_shown first")
        self._rows = rows
        self._rows_stale = True

    @property
    def center(self) -> np.ndarray:
        """Middle of everything shown [m]."""
        return np.asarray(self.bundle.stat_center) + (self._offsets.max(axis=0) + self._offsets.min(axis=0)) / 2

    @property
    def radius(self) -> float:
        """Radius of a ball around everything shown [m]."""
        span = self._offsets.max(axis=0) - self._offsets.min(axis=0)
        return float(self.bundle.stat_extent + np.linalg.norm(span) / 2)

    # ------------------------------------------------------------------ buffers
    def _update(self) -> None:
        n = len(self._offsets)
        detail = self.quality.detail * (1.0 if n <= 4 else 0.7 if n <= 32 else 0.45)
        if not self._batches or detail != self._level:
            self._level = detail
            left_out = {f.geom for f in self._floors}
            source = MeshSource(self.bundle, detail)
            self._batches = make_batches(self.bundle, self.groups, source, left_out)
            for batch in self._batches:
                _upload_mesh(batch)
            self._looks_stale = self._rows_stale = True
        if self._looks_stale:
            for batch in self._batches:
                self._upload_looks(batch)
            self._looks_stale = False
        if self._rows_stale:
            self._upload_rows()
            self._rows_stale = False

    def _upload_looks(self, batch: Batch) -> None:
        n, k = len(self._offsets), len(batch.geoms)
        looks = np.zeros((n, k), LOOKS)
        for i, g in enumerate(batch.geoms):
            looks["a_scale"][:, i] = geom_scale(self.bundle, g)
            looks["a_rgba"][:, i] = self.bundle.geom_rgba[g]
            looks["a_material"][:, i] = geom_material(self.bundle, g)
            looks["a_tex"][:, i] = geom_tex(self.bundle, g)
            looks["a_id"][:, i, 1] = g
        looks["a_id"][:, :, 0] = np.arange(n)[:, None]
        if self.highlight is not None and self.highlight[0] < n:
            row, body = self.highlight
            chosen = np.flatnonzero(self.bundle.geom_bodyid[batch.geoms] == body)
            looks["a_material"][row, chosen, 2] += 0.35
            looks["a_rgba"][row, chosen, :3] = 0.55 * looks["a_rgba"][row, chosen, :3] + (0.45, 0.30, 0.06)
        _put(batch, "looks", looks.ravel())
        batch.count = n * k

    def _upload_rows(self) -> None:
        rows = self._rows.reshape(len(self._offsets), -1, 3, 4).copy()
        rows[:, :, :, 3] += self._offsets[:, None, :].astype(np.float32)
        for batch in self._batches:
            _put(batch, "rows", np.ascontiguousarray(rows[:, batch.geoms]).reshape(-1, 12).view(ROWS).ravel())

    def _program(self, kind: str, texture: str = "") -> Any:
        key = (kind, texture)
        if key not in self._programs:
            if kind == "geom":
                fragment = shaders.with_soft_shadows(shaders.geom_fragment(texture), self.quality.soft_shadows)
                vertex = shaders.textured(shaders.GEOM_VERT) if texture else shaders.GEOM_VERT
                program = gloo.Program(vertex, fragment)
            elif kind == "shadow":
                program = gloo.Program(shaders.SHADOW_VERT, shaders.SHADOW_FRAG)
            else:
                program = gloo.Program(shaders.PICK_VERT, shaders.PICK_FRAG)
            self._programs[key] = program
        return self._programs[key]

    def _texture(self, index: int) -> Any:
        if index not in self._textures:
            self._textures[index] = make_texture(self.bundle.textures[index].kind, self.bundle.textures[index].data)
        return self._textures[index]

    # ------------------------------------------------------------------ drawing
    def draw(self, camera: Camera, width: int, height: int, framebuffer: int = 0, *, clear: bool = True) -> None:
        """Draws into a framebuffer object of the current context, `width` x `height` pixels at its lower left."""
        self.draw_viewport(camera, (0, 0, width, height), framebuffer, clear=clear)

    def draw_viewport(
        self, camera: Camera, viewport: tuple[int, int, int, int], framebuffer: int = 0, *, clear: bool = True
    ) -> None:
        """Draws into a part (x, y, width, height) of a framebuffer, as record mode's tiles do."""
        set_current_canvas(self.canvas)
        context = self.canvas.context
        context.glir.command("CURRENT", 0, framebuffer)
        self._update()
        lighting = self._light(camera)
        aspect = viewport[2] / max(1, viewport[3])
        view_projection = camera.projection(aspect, self.radius) @ camera.view()
        context.glir.command("CURRENT", 0, framebuffer)
        context.set_viewport(*viewport)
        context.set_scissor(*viewport)
        context.set_state(depth_test=True, cull_face=True, blend=False, scissor_test=True, depth_mask=True)
        context.set_depth_func("lequal")
        if clear:
            context.clear(color=(*self.theme.horizon, 1.0), depth=True)
        self._draw_batches(view_projection, lighting, transparent=False)
        for floor in self._floors:
            floor.draw(self, camera, view_projection, lighting)
        self._draw_sky(camera, aspect)
        self._draw_batches(view_projection, lighting, transparent=True)
        context.set_state(scissor_test=False, depth_mask=True, blend=False)
        self.canvas.flush()

    def _reach(self) -> tuple[np.ndarray, float]:
        """Middle and radius of a ball around all bodies as they stand now, however far they have walked [m]."""
        at = self._rows.reshape(len(self._offsets), -1, 3, 4)[..., 3][:, self._bodies] + self._offsets[:, None, :]
        at = at[np.isfinite(at).all(axis=-1)]
        if not len(at):
            return self.center, self.radius
        low, high = at.min(axis=0), at.max(axis=0)
        return (low + high) / 2, float(np.linalg.norm(high - low) / 2 + self.bundle.stat_extent)

    def _light(self, camera: Camera) -> dict[str, Any]:
        """Uniforms of the light, after the shadow map has been drawn."""
        sun = np.asarray(self.theme.sun_dir, np.float64)
        sun /= np.linalg.norm(sun)
        out: dict[str, Any] = {
            "u_eye": camera.eye,
            "u_sun_dir": sun,
            "u_sun": self.theme.sun,
            "u_sky": self.theme.sky,
            "u_ground": self.theme.ground,
        }
        if self._shadow is None:
            return out | {"u_light": np.eye(4, dtype=np.float32), "u_shadow_info": (0.0, 0.0, 0.0)}
        near = max(0.7 * self.bundle.stat_extent, 1.3 * camera.distance)
        middle, whole = self._reach()
        radius = min(whole, near)
        center = middle if radius == whole else camera.lookat
        clip = self._shadow.fit(center, radius, whole, sun)
        program = self._program("shadow")
        with self._shadow.drawing(self.canvas.context):
            program["u_light_clip"] = clip.T.astype(np.float32)
            for batch in self._batches:
                if not batch.transparent and batch.count:
                    bind(program, batch, mesh=("a_pos", "a_cap"), looks=("a_scale",))
                    program.draw("triangles", batch.buffers["faces"])
        return out | self._shadow.uniforms(clip, radius)

    def set_lighting(self, program: Any, lighting: dict[str, Any]) -> None:
        """Hands the light to a program made with shaders.COMMON."""
        for name, value in lighting.items():
            program[name] = np.asarray(value, np.float32).T if name == "u_light" else value
        if self._shadow is not None:
            program["u_shadow"] = self._shadow.texture
        else:
            program["u_shadow"] = self._no_shadow

    def _draw_batches(self, view_projection: np.ndarray, lighting: dict[str, Any], transparent: bool) -> None:
        context = self.canvas.context
        if transparent:
            context.set_state(blend=True, depth_mask=False, blend_func=("src_alpha", "one_minus_src_alpha"))
        ready = set()
        for batch in self._batches:
            if batch.transparent != transparent or not batch.count:
                continue
            kind = "" if batch.texture < 0 else self.bundle.textures[batch.texture].kind
            program = self._program("geom", kind)
            if kind not in ready:
                ready.add(kind)
                self.set_lighting(program, lighting)
                program["u_view_projection"] = view_projection.T.astype(np.float32)
            mesh: tuple[str, ...] = ("a_pos", "a_cap", "a_nrm")
            looks: tuple[str, ...] = ("a_scale", "a_rgba", "a_material")
            if kind:
                program["u_texture"] = self._texture(batch.texture)
                mesh, looks = (*mesh, "a_uv"), (*looks, "a_tex")
            bind(program, batch, mesh, looks)
            program.draw("triangles", batch.buffers["faces"])

    def _draw_sky(self, camera: Camera, aspect: float) -> None:
        t = math.tan(math.radians(camera.fovy) / 2)
        sky = self._sky
        sky["u_forward"], sky["u_right"], sky["u_up"] = camera.forward, camera.right * t * aspect, camera.up * t
        sky["u_zenith"], sky["u_horizon"], sky["u_nadir"] = self.theme.zenith, self.theme.horizon, self.theme.nadir
        sky.draw("triangle_strip")

    def draw_ids(self, view_projection: np.ndarray, framebuffer: int) -> None:
        """Draws (row of the environment, geom + 1) as the colour of one pixel, for picking."""
        set_current_canvas(self.canvas)
        context = self.canvas.context
        context.glir.command("CURRENT", 0, framebuffer)
        self._update()
        context.set_viewport(0, 0, 1, 1)
        context.set_state(depth_test=True, cull_face=True, blend=False, scissor_test=False, depth_mask=True)
        context.clear(color=(0, 0, 0, 0), depth=True)
        program = self._program("pick")
        program["u_view_projection"] = view_projection.T.astype(np.float32)
        for batch in self._batches:
            if batch.count:
                bind(program, batch, mesh=("a_pos", "a_cap"), looks=("a_scale", "a_id"))
                program.draw("triangles", batch.buffers["faces"])
        self.canvas.flush()

    def close(self) -> None:
        """Frees the GL objects, in the context that is current."""
        set_current_canvas(self.canvas)
        for batch in self._batches:
            for buffer in batch.buffers.values():
                if hasattr(buffer, "delete"):
                    buffer.delete()
        for thing in (*self._programs.values(), *self._textures.values(), self._sky, self._no_shadow):
            thing.delete()
        if self._shadow is not None:
            self._shadow.close()
        for floor in self._floors:
            floor.close()
        self.canvas.flush()
        self._batches = []


def make_texture(kind: str, data: np.ndarray) -> Any:
    """A gloo texture of an image with 1 to 4 channels, or of the six stacked faces of a cube."""
    if data.shape[-1] in (1, 2):
        data = np.repeat(data[..., :1], 3, -1)
    data = np.ascontiguousarray(data[..., :3])
    if kind == "cube":
        side = data.shape[1]
        if data.shape[0] == side:  # one picture for all sides
            data = np.concatenate([data] * 6)
        return gloo.TextureCube(data.reshape(6, side, side, 3), interpolation="linear", wrapping="clamp_to_edge")
    return gloo.Texture2D(data[::-1].copy(), interpolation="linear", wrapping="repeat")


def bind(program: Any, batch: Batch, mesh: tuple[str, ...], looks: tuple[str, ...]) -> None:
    """Points a program at the buffers of a batch."""
    for name in mesh:
        program[name] = batch.buffers[name]
    for name in ("a_r0", "a_r1", "a_r2", *looks):
        program[name] = batch.buffers[name]


def _upload_mesh(batch: Batch) -> None:
    mesh = batch.mesh
    batch.buffers["a_pos"] = gloo.VertexBuffer(mesh.vertices)
    batch.buffers["a_nrm"] = gloo.VertexBuffer(mesh.normals)
    batch.buffers["a_cap"] = gloo.VertexBuffer(mesh.cap)
    batch.buffers["a_uv"] = gloo.VertexBuffer(mesh.uv)
    batch.buffers["faces"] = gloo.IndexBuffer(mesh.faces)


def _put(batch: Batch, name: str, data: np.ndarray) -> None:
    """Instance data; views of a structured buffer must be told their divisor by hand."""
    old = batch.buffers.get(name)
    if old is not None and old.size == len(data):
        old.set_data(data, copy=True)
        return
    buffer = gloo.VertexBuffer(data, divisor=1)
    batch.buffers[name] = buffer
    for field in data.dtype.names or ():
        view = buffer[field]
        view.divisor = 1
        batch.buffers[field] = view

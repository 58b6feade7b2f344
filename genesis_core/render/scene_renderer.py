"""Draws the shown environments of a scene into the current OpenGL context, in one instanced draw per batch of geoms.

vispy.gloo, and raw GL for the instanced draws (see `shader`), without Qt and without vispy's scene graph: the window
drives it inside its GL widget, record mode inside an EGL context. All calls belong to the thread that has the context.
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
from genesis_core.render.instances import LOOK_AT, LOOK_SIZE, Instances  # noqa: E402
from genesis_core.render.quality import Quality  # noqa: E402
from genesis_core.render.shader import Shader, gather_feature, gl_texture, raw_section  # noqa: E402
from genesis_core.render.shadow import ShadowMap  # noqa: E402
from genesis_core.render.theme import DARK, SceneTheme  # noqa: E402

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
        self._shaders: dict[tuple[str, str], Shader] = {}
        self._textures: dict[int, Any] = {}
        self._instances: Instances | None = None
        self._shadow_drawn: Any = None  # what the shadow map shows: the view from the sun
        self._level = 0.0
        self._looks_stale = True
        self._rows_stale = True
        self._features = frozenset({"SOFT_SHADOWS"}) if self.quality.soft_shadows else gather_feature()
        self._floors = [Floor(bundle, g, self._features) for g in floor_geoms(bundle)]
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
            self._forget_instances()

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
    @property
    def _batches(self) -> list[Batch]:
        return self._instances.batches if self._instances is not None else []

    def _forget_instances(self) -> None:
        if self._instances is not None:
            self._instances.close()
            self._instances = None

    def _update(self) -> Instances:
        n = len(self._offsets)
        detail = self.quality.detail * (1.0 if n <= 4 else 0.7 if n <= 32 else 0.45)
        if self._instances is None or detail != self._level:
            self._forget_instances()
            self._level = detail
            left_out = {f.geom for f in self._floors}
            source = MeshSource(self.bundle, detail)
            self._instances = Instances(make_batches(self.bundle, self.groups, source, left_out))
            self._looks_stale = self._rows_stale = True
        if self._looks_stale:
            self._instances.upload_looks([self._looks(b) for b in self._instances.batches], n, self.bundle.ngeom)
            self._looks_stale = False
        if self._rows_stale:
            rows = self._rows.reshape(n, -1, 3, 4).copy()
            rows[:, :, :, 3] += self._offsets[:, None, :].astype(np.float32)
            self._instances.upload_rows(rows)
            self._rows_stale = False
            self._shadow_drawn = None
        return self._instances

    def _looks(self, batch: Batch) -> np.ndarray:
        """What the instances of a batch look like, (n * geoms, LOOK_SIZE)."""
        n, k = len(self._offsets), len(batch.geoms)
        looks = np.zeros((n, k, LOOK_SIZE), np.float32)
        rgba, material = looks[..., LOOK_AT["a_rgba"]], looks[..., LOOK_AT["a_material"]]
        for i, g in enumerate(batch.geoms):
            looks[:, i, LOOK_AT["a_scale"]] = geom_scale(self.bundle, g)
            rgba[:, i] = self.bundle.geom_rgba[g]
            material[:, i] = geom_material(self.bundle, g)
            looks[:, i, LOOK_AT["a_tex"]] = geom_tex(self.bundle, g)
        looks[..., LOOK_AT["a_id"]][..., 0] = np.arange(n)[:, None]
        looks[..., LOOK_AT["a_id"]][..., 1] = batch.geoms
        if self.highlight is not None and self.highlight[0] < n:
            row, body = self.highlight
            chosen = np.flatnonzero(self.bundle.geom_bodyid[batch.geoms] == body)
            material[row, chosen, 2] += 0.35
            rgba[row, chosen, :3] = 0.55 * rgba[row, chosen, :3] + (0.45, 0.30, 0.06)
        return looks.reshape(n * k, LOOK_SIZE)

    def _shader(self, kind: str, texture: str = "") -> Shader:
        key = (kind, texture)
        if key not in self._shaders:
            if kind == "geom":
                features = self._features | ({"TEXTURED"} if texture else set())
                vertex, fragment = shaders.GEOM_VERT, shaders.geom_fragment(texture)
                self._shaders[key] = Shader(shaders.variant(vertex, features), shaders.variant(fragment, features))
            elif kind == "shadow":
                self._shaders[key] = Shader(shaders.SHADOW_VERT, shaders.SHADOW_FRAG)
            else:
                self._shaders[key] = Shader(shaders.PICK_VERT, shaders.PICK_FRAG)
        return self._shaders[key]

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
        instances = self._update()
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
        self._draw_batches(instances, view_projection, lighting, transparent=False)
        for floor in self._floors:
            floor.draw(self, camera, view_projection, lighting)
        self._draw_sky(camera, aspect)
        self._draw_batches(instances, view_projection, lighting, transparent=True)
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
        if self._shadow_drawn is None or not np.array_equal(self._shadow_drawn, clip):
            self._shadow_drawn = clip
            self._draw_shadow(clip)
        return out | self._shadow.uniforms(clip, radius)

    def _draw_shadow(self, clip: np.ndarray) -> None:
        assert self._shadow is not None and self._instances is not None
        with self._shadow.drawing(self.canvas.context), raw_section(self.canvas):
            shader = self._shader("shadow")
            shader.use()
            shader.set("u_light_clip", clip)
            self._draw_all(self._instances, transparent=False)

    def _draw_all(self, instances: Instances, transparent: bool | None) -> None:
        """The opaque or the transparent batches, or all, with the program in use."""
        for k, batch in enumerate(instances.batches):
            if batch.count and transparent in (None, batch.transparent):
                instances.draw(k)
        instances.done()

    def set_lighting(self, program: Any, lighting: dict[str, Any]) -> None:
        """Hands the light to a program made with shaders.COMMON."""
        for name, value in lighting.items():
            program[name] = np.asarray(value, np.float32).T if name == "u_light" else value
        if self._shadow is not None:
            program["u_shadow"] = self._shadow.texture
        else:
            program["u_shadow"] = self._no_shadow

    def _draw_batches(
        self, instances: Instances, view_projection: np.ndarray, lighting: dict[str, Any], transparent: bool
    ) -> None:
        chosen = [(k, b) for k, b in enumerate(instances.batches) if b.transparent == transparent and b.count]
        if not chosen:
            return
        if transparent:
            self.canvas.context.set_state(blend=True, depth_mask=False, blend_func=("src_alpha", "one_minus_src_alpha"))
        images = {b.texture: self._texture(b.texture) for _, b in chosen if b.texture >= 0}
        shadow = self._no_shadow if self._shadow is None else self._shadow.texture
        with raw_section(self.canvas):
            from OpenGL import GL

            current, ready = "none", set()
            for k, batch in chosen:
                kind = "" if batch.texture < 0 else self.bundle.textures[batch.texture].kind
                shader = self._shader("geom", kind)
                if kind != current:
                    shader.use()
                    current = kind
                if kind not in ready:
                    ready.add(kind)
                    for name, value in lighting.items():
                        shader.set(name, value)
                    shader.set("u_view_projection", view_projection)
                    shader.set_texture("u_shadow", 0, GL.GL_TEXTURE_2D, gl_texture(self.canvas, shadow))
                if kind:
                    target = GL.GL_TEXTURE_CUBE_MAP if kind == "cube" else GL.GL_TEXTURE_2D
                    shader.set_texture("u_texture", 1, target, gl_texture(self.canvas, images[batch.texture]))
                instances.draw(k)
            instances.done()

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
        instances = self._update()
        context.glir.command("CURRENT", 0, framebuffer)
        context.set_viewport(0, 0, 1, 1)
        context.set_state(depth_test=True, cull_face=True, blend=False, scissor_test=False, depth_mask=True)
        context.clear(color=(0, 0, 0, 0), depth=True)
        with raw_section(self.canvas):
            shader = self._shader("pick")
            shader.use()
            shader.set("u_view_projection", view_projection)
            self._draw_all(instances, transparent=None)
        self.canvas.flush()

    def close(self) -> None:
        """Frees the GL objects, in the context that is current."""
        set_current_canvas(self.canvas)
        self._forget_instances()
        for shader in self._shaders.values():
            shader.close()
        for thing in (*self._textures.values(), self._sky, self._no_shadow):
            thing.delete()
        if self._shadow is not None:
            self._shadow.close()
        for floor in self._floors:
            floor.close()
        self.canvas.flush()


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

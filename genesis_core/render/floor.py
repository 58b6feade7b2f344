"""An endless plane, drawn once for all environments: analytic (it never flickers) and fading into the horizon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from vispy import gloo

from genesis_core.layout.scene import SceneBundle
from genesis_core.render import shaders
from genesis_core.render.batches import checker_colors, edge_color, geom_material, geom_texture

if TYPE_CHECKING:
    from genesis_core.render.camera import Camera
    from genesis_core.render.scene_renderer import SceneRenderer

CELL = 1.0  # [m] of a floor without a texture
LINE = 0.012  # width of its lines as part of a cell

SAMPLE_HEAD = "uniform sampler2D u_floor_texture;\nuniform vec3 u_floor_mean;"
SAMPLE_BODY = """
    vec3 texel = texture2D(u_floor_texture, p).rgb;
    color = u_color_a * mix(texel, u_floor_mean, clamp(max(w.x, w.y) * 3.0 - 0.5, 0.0, 1.0));
"""


class Floor:
    """One plane geom of the world."""

    def __init__(self, bundle: SceneBundle, geom: int, features: frozenset[str]) -> None:
        self.geom = geom
        self._features = features
        self._bundle = bundle
        self._image: Any = None
        pos, mat = np.asarray(bundle.geom_pos0[geom]), np.asarray(bundle.geom_xmat0[geom])
        self._pos, self._x, self._y, self._n = pos, mat[:, 0], mat[:, 1], mat[:, 2]
        self._program = self._make(bundle, geom)
        self._program["a_corner"] = np.array([[-1, -1], [1, -1], [-1, 1], [1, 1]], np.float32)

    def _make(self, bundle: SceneBundle, geom: int) -> Any:
        rgba = bundle.geom_rgba[geom, :3]
        self._colors: tuple[Any, Any] | None = None
        self._cells = (1 / CELL, 1 / CELL, LINE)
        self._line: Any = None  # None = the theme's
        self._line_every = 1.0  # lines per cell
        texture = geom_texture(bundle, geom)
        if texture < 0:
            self._plain = None if bundle.geom_matid[geom] < 0 and np.ptp(rgba) < 0.05 else rgba
            return self._checked(shaders.FLOOR_FRAG)
        self._plain = None
        image = bundle.textures[texture].data
        repeat = np.asarray(bundle.materials[int(bundle.geom_matid[geom])].texrepeat, np.float64)
        checker = checker_colors(image)
        if checker is not None:
            self._colors = (checker[0] * rgba, checker[1] * rgba)
            self._cells = (repeat[0], repeat[1], 0.0)
            mark = edge_color(image)
            if mark is not None:
                self._line, self._cells, self._line_every = mark * rgba, (repeat[0], repeat[1], 0.006), 0.5
            return self._checked(shaders.FLOOR_FRAG)
        from genesis_core.render.scene_renderer import make_texture

        self._image = make_texture("2d", image)
        self._colors = (rgba, rgba)
        self._cells = (repeat[0] / 2, repeat[1] / 2, 0.0)
        fragment = shaders.FLOOR_FRAG.replace("//FLOOR_TEXTURE", SAMPLE_HEAD).replace("//FLOOR_SAMPLE", SAMPLE_BODY)
        program = gloo.Program(shaders.FLOOR_VERT, shaders.variant(fragment, self._features))
        program["u_floor_texture"] = self._image
        program["u_floor_mean"] = image[..., :3].reshape(-1, min(3, image.shape[-1])).mean(axis=0) / 255 * np.ones(3)
        return program

    def _checked(self, fragment: str) -> Any:
        """The program of a floor of two colours; a software renderer pays for lines even where they have no width."""
        extra = {"CHECKER"} | ({"LINES"} if self._cells[2] > 0 else set())
        return gloo.Program(shaders.FLOOR_VERT, shaders.variant(fragment, self._features | extra))

    def draw(
        self, renderer: SceneRenderer, camera: Camera, view_projection: np.ndarray, lighting: dict[str, Any]
    ) -> None:
        """Draws the part of the plane that the camera can see."""
        program, theme = self._program, renderer.theme
        reach = 12 * camera.distance + 6 * renderer.radius + 30
        height = float(self._n @ (camera.eye - self._pos))
        below = camera.eye - height * self._n
        if self._colors is not None:
            a, b = self._colors
        elif self._plain is not None:
            a, b = self._plain, 0.93 * np.asarray(self._plain)
        else:
            a, b = theme.floor_a, theme.floor_b
        renderer.set_lighting(program, lighting)
        program["u_view_projection"] = view_projection.T.astype(np.float32)
        program["u_origin"] = (*below, 1.2 * reach)
        program["u_axis_x"], program["u_axis_y"], program["u_axis_n"] = self._x, self._y, self._n
        program["u_plane_pos"] = self._pos
        program["u_color_a"] = a
        if self._image is None:
            program["u_color_b"] = b
        if self._cells[2] > 0:
            program["u_line"] = theme.line if self._line is None else self._line
            program["u_line_every"] = self._line_every
        program["u_cells"] = self._cells
        specular, shininess, _, reflectance = geom_material(self._bundle, self.geom)
        program["u_floor_material"] = (0.4 * specular, shininess, 0.0, reflectance)
        light, sun = self._light(theme)
        program["u_floor_light"], program["u_floor_sun"] = light, sun
        program["u_horizon"] = theme.horizon
        program["u_fade"] = (0.06 * reach, 0.55 * reach)
        program.draw("triangle_strip")

    def _light(self, theme: Any) -> tuple[np.ndarray, np.ndarray]:
        """shaders.shade's light on this normal, which is the same all over the plane."""
        toward = np.asarray(theme.sun_dir, np.float64) / np.linalg.norm(theme.sun_dir)
        back = np.array([-toward[0], -toward[1], 0.35])
        fill = 0.18 * max(0.0, float(self._n @ back) / float(np.linalg.norm(back)))
        up = 0.5 + 0.5 * float(self._n[2])
        sky, ground = np.asarray(theme.sky), np.asarray(theme.ground)
        cosine = float(self._n @ toward)
        sun = np.asarray(theme.sun) * max(0.0, cosine)
        return ground + up * (sky - ground) + fill * sky, np.array([*sun, cosine])

    def close(self) -> None:
        self._program.delete()
        if self._image is not None:
            self._image.delete()

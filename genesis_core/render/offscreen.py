"""Pictures without a window: a SceneRenderer in an EGL context of its own."""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from genesis_core.errors import RenderError
from genesis_core.layout.scene import SceneBundle
from genesis_core.log import get_logger
from genesis_core.render.camera import Camera
from genesis_core.render.egl import EglContext, context_info
from genesis_core.render.quality import Quality
from genesis_core.render.smoothing import Smoothing
from genesis_core.render.theme import DARK, SceneTheme

log = get_logger(__name__)
P = ParamSpec("P")
R = TypeVar("R")
MAX_SIZE = 16384
TILE_GAP = 4  # [pixel]


class Target:
    """A framebuffer of one size. Multisampled or smoothed pictures are resolved into a second one before reading.

    Raw GL: gloo knows no multisampling, and draws into framebuffers that are given by number.
    """

    def __init__(self, width: int, height: int, samples: int, smooth: bool) -> None:
        from OpenGL import GL

        self._gl = GL
        self.width, self.height = width, height
        most = int(GL.glGetIntegerv(GL.GL_MAX_SAMPLES))
        self._smoothing: Smoothing | None = None
        if smooth and samples <= 1:
            try:
                self._smoothing = Smoothing()
            except RenderError as error:
                log.info("edges are smoothed by multisampling, which takes longer here: %s", error)
                samples = 4
        self.samples = max(1, min(samples, most))
        self._buffers: list[int] = []
        self._textures: list[int] = []
        self.draw_id = self._make(self.samples, as_texture=self._smoothing is not None)
        two = self.samples > 1 or self._smoothing is not None
        self._read_id = self._make(1, as_texture=False) if two else self.draw_id
        self._pixels = np.empty((height, width, 3), np.uint8)

    def _make(self, samples: int, as_texture: bool) -> int:
        gl = self._gl
        frame = int(gl.glGenFramebuffers(1))
        gl.glBindFramebuffer(gl.GL_FRAMEBUFFER, frame)
        if as_texture:
            self._attach_texture()
        else:
            self._attach_buffer(gl.GL_COLOR_ATTACHMENT0, gl.GL_RGBA8, samples)
        self._attach_buffer(gl.GL_DEPTH_ATTACHMENT, gl.GL_DEPTH_COMPONENT24, samples)
        status = gl.glCheckFramebufferStatus(gl.GL_FRAMEBUFFER)
        if status != gl.GL_FRAMEBUFFER_COMPLETE:
            size = f"{self.width}x{self.height}"
            raise RenderError(f"a picture of {size} pixels cannot be made (GL status {int(status):#x})")
        return frame

    def _attach_buffer(self, attachment: int, kind: int, samples: int) -> None:
        gl = self._gl
        buffer = int(gl.glGenRenderbuffers(1))
        gl.glBindRenderbuffer(gl.GL_RENDERBUFFER, buffer)
        if samples > 1:
            gl.glRenderbufferStorageMultisample(gl.GL_RENDERBUFFER, samples, kind, self.width, self.height)
        else:
            gl.glRenderbufferStorage(gl.GL_RENDERBUFFER, kind, self.width, self.height)
        gl.glFramebufferRenderbuffer(gl.GL_FRAMEBUFFER, attachment, gl.GL_RENDERBUFFER, buffer)
        self._buffers.append(buffer)

    def _attach_texture(self) -> None:
        gl = self._gl
        texture = int(gl.glGenTextures(1))
        gl.glBindTexture(gl.GL_TEXTURE_2D, texture)
        gl.glTexImage2D(
            gl.GL_TEXTURE_2D, 0, gl.GL_RGBA8, self.width, self.height, 0, gl.GL_RGBA, gl.GL_UNSIGNED_BYTE, None
        )
        for name, value in (
            (gl.GL_TEXTURE_MIN_FILTER, gl.GL_LINEAR),
            (gl.GL_TEXTURE_MAG_FILTER, gl.GL_LINEAR),
            (gl.GL_TEXTURE_WRAP_S, gl.GL_CLAMP_TO_EDGE),
            (gl.GL_TEXTURE_WRAP_T, gl.GL_CLAMP_TO_EDGE),
        ):
            gl.glTexParameteri(gl.GL_TEXTURE_2D, name, value)
        gl.glBindTexture(gl.GL_TEXTURE_2D, 0)
        gl.glFramebufferTexture2D(gl.GL_FRAMEBUFFER, gl.GL_COLOR_ATTACHMENT0, gl.GL_TEXTURE_2D, texture, 0)
        self._textures.append(texture)

    def read(self) -> np.ndarray:
        """The picture, (height, width, 3) uint8, first row on top.

        Read as RGB: the driver packs three bytes faster than NumPy reorders four.
        """
        gl = self._gl
        if self._smoothing is not None:
            self._smoothing.apply(self._textures[0], self._read_id, self.width, self.height)
        elif self.samples > 1:
            size = (0, 0, self.width, self.height)
            gl.glBindFramebuffer(gl.GL_READ_FRAMEBUFFER, self.draw_id)
            gl.glBindFramebuffer(gl.GL_DRAW_FRAMEBUFFER, self._read_id)
            gl.glBlitFramebuffer(*size, *size, gl.GL_COLOR_BUFFER_BIT, gl.GL_NEAREST)
        gl.glBindFramebuffer(gl.GL_FRAMEBUFFER, self._read_id)
        gl.glPixelStorei(gl.GL_PACK_ALIGNMENT, 1)
        gl.glReadPixels(0, 0, self.width, self.height, gl.GL_RGB, gl.GL_UNSIGNED_BYTE, self._pixels)
        return self._pixels[::-1].copy()

    def close(self) -> None:
        gl = self._gl
        gl.glBindFramebuffer(gl.GL_FRAMEBUFFER, 0)
        frames = list({self.draw_id, self._read_id})
        gl.glDeleteFramebuffers(len(frames), frames)
        gl.glDeleteRenderbuffers(len(self._buffers), self._buffers)
        if self._textures:
            gl.glDeleteTextures(self._textures)
        if self._smoothing is not None:
            self._smoothing.close()


_gloo = threading.RLock()  # vispy knows one current canvas in the whole process, whatever thread draws on it


def _one_at_a_time(method: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with _gloo:
            return method(*args, **kwargs)

    return call


class OffscreenRenderer:
    """Renders pictures of one scene on the EGL device `device` (None: that of the GPU that the environment names).

    Every call makes the own context current, so several renderers may live in one thread; one renderer belongs to the
    thread that made it. Renderers of several threads take turns.
    """

    @_one_at_a_time
    def __init__(
        self,
        bundle: SceneBundle,
        width: int = 640,
        height: int = 480,
        device: int | None = None,
        quality: Quality | None = None,
        theme: SceneTheme = DARK,
    ) -> None:
        if not (1 <= width <= MAX_SIZE and 1 <= height <= MAX_SIZE):
            raise RenderError(f"a picture of {width}x{height} pixels cannot be made", hint=f"1 to {MAX_SIZE} each way")
        self._context: EglContext | None = EglContext(device)
        from genesis_core.render.scene_renderer import SceneRenderer

        self.info = context_info()
        self.scene = SceneRenderer(bundle, quality or Quality.pictures(self.info["renderer"], height), theme)
        self.width, self.height = width, height
        self._target = Target(width, height, self.scene.quality.samples, self.scene.quality.smooth)

    def _enter(self) -> Any:
        if self._context is None:
            raise RenderError("the renderer is closed")
        self._context.make_current()

    @_one_at_a_time
    def render(self, camera: Camera, rows: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """One picture of environments side by side: (height, width, 3) uint8.

        rows (n, ngeom, 12) float32 poses; offsets (n, 3) places [m].
        """
        self._enter()
        self.scene.set_shown(offsets)
        self.scene.set_rows(rows)
        self.scene.draw(camera, self.width, self.height, self._target.draw_id)
        return self._target.read()

    @_one_at_a_time
    def render_tiles(self, cameras: Sequence[Camera], rows: np.ndarray) -> np.ndarray:
        """Each environment in a cell of its own, seen by its camera: (height, width, 3) uint8."""
        self._enter()
        self._clear()
        origin = np.zeros((1, 3))
        for cell, (camera, poses) in enumerate(zip(cameras, rows, strict=True)):
            self.scene.set_shown(origin)
            self.scene.set_rows(poses[None])
            self.scene.draw_viewport(camera, tile(cell, len(rows), self.width, self.height), self._target.draw_id)
        return self._target.read()

    def _clear(self) -> None:
        from OpenGL import GL

        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, self._target.draw_id)
        GL.glDisable(GL.GL_SCISSOR_TEST)
        GL.glClearColor(0.02, 0.024, 0.03, 1.0)
        GL.glClear(GL.GL_COLOR_BUFFER_BIT)

    @_one_at_a_time
    def close(self) -> None:
        """Frees everything. May be called again."""
        if self._context is not None:
            self._context.make_current()
            self.scene.close()
            self._target.close()
            self._context.close()
            self._context = None

    def __enter__(self) -> OffscreenRenderer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def tile_grid(n: int, width: int, height: int) -> tuple[int, int]:
    """Columns and rows of n tiles so that they are as square as can be."""
    best = min(
        range(1, n + 1),
        key=lambda c: abs(math.log((width / c) / max(1e-9, height / math.ceil(n / c)) / 1.25)) + 1.0 * (-n % c) / n,
    )
    return best, math.ceil(n / best)


def tile(cell: int, n: int, width: int, height: int) -> tuple[int, int, int, int]:
    """Viewport (x, y, width, height) of a tile, y from below, row by row from the top."""
    columns, rows = tile_grid(n, width, height)
    column, row = cell % columns, cell // columns
    gap = TILE_GAP if n > 1 else 0
    x0, x1 = (round((width + gap) * c / columns) for c in (column, column + 1))
    y0, y1 = (round((height + gap) * r / rows) for r in (row, row + 1))
    return x0, height - (y1 - gap), max(1, x1 - gap - x0), max(1, y1 - gap - y0)

"""What is under a pixel: the scene is drawn once more with numbers in place of colours, in a frame of one pixel."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from genesis_core.render.camera import Camera
from genesis_core.render.scene_renderer import SceneRenderer


class Pick(msgspec.Struct, frozen=True):
    """The geom under the pointer."""

    row: int  # index among the shown environments
    geom: int
    point: tuple[float, float, float]  # [m] as drawn, with the grid offset of the environment


def pick(
    renderer: SceneRenderer, camera: Camera, width: int, height: int, x: float, y: float, restore: int = 0
) -> Pick | None:
    """The geom at pixel (x, y), origin at the upper left; None over the floor and the sky.

    Needs the renderer's context current; `restore` is the framebuffer that is bound afterwards.
    """
    from OpenGL import GL

    frame = int(GL.glGenFramebuffers(1))
    color, depth = (int(b) for b in GL.glGenRenderbuffers(2))
    try:
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, frame)
        for buffer, kind, attachment in (
            (color, GL.GL_RGBA8, GL.GL_COLOR_ATTACHMENT0),
            (depth, GL.GL_DEPTH_COMPONENT24, GL.GL_DEPTH_ATTACHMENT),
        ):
            GL.glBindRenderbuffer(GL.GL_RENDERBUFFER, buffer)
            GL.glRenderbufferStorage(GL.GL_RENDERBUFFER, kind, 1, 1)
            GL.glFramebufferRenderbuffer(GL.GL_FRAMEBUFFER, attachment, GL.GL_RENDERBUFFER, buffer)
        projection = _one_pixel(camera, renderer.radius, width, height, x, y)
        renderer.draw_ids(projection @ camera.view(), frame)
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, frame)
        ids: Any = np.zeros(4, np.uint8)
        GL.glReadPixels(0, 0, 1, 1, GL.GL_RGBA, GL.GL_UNSIGNED_BYTE, ids)
        z: Any = np.zeros(1, np.float32)
        GL.glReadPixels(0, 0, 1, 1, GL.GL_DEPTH_COMPONENT, GL.GL_FLOAT, z)
    finally:
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, restore)
        GL.glDeleteFramebuffers(1, [frame])
        GL.glDeleteRenderbuffers(2, [color, depth])
    row, geom = int(ids[0]) + 256 * int(ids[1]), int(ids[2]) + 256 * int(ids[3]) - 1
    if geom < 0:
        return None
    eye, direction = camera.ray(x, y, width, height)
    near, far = camera.clip_planes(renderer.radius)
    along = 2 * near * far / (far + near - (2 * float(z[0]) - 1) * (far - near))  # distance along the view axis
    point = eye + direction * (along / float(direction @ camera.forward))
    return Pick(row, geom, (float(point[0]), float(point[1]), float(point[2])))


def _one_pixel(camera: Camera, radius: float, width: int, height: int, x: float, y: float) -> np.ndarray:
    """The projection whose whole picture is the pixel (x, y) of the full one."""
    zoom = np.diag([float(width), float(height), 1.0, 1.0])
    zoom[0, 3] = width - 2 * (np.floor(x) + 0.5)
    zoom[1, 3] = 2 * (np.floor(y) + 0.5) - height
    return zoom @ camera.projection(width / max(1, height), radius)

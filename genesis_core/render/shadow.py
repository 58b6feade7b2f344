"""The sun's shadow map: depth in a 32-bit float colour texture (gloo knows no depth textures)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from vispy import gloo

DEPTH_COMPONENT24 = 0x81A6


class ShadowMap:
    """An orthographic view from the sun."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.texture = gloo.Texture2D(
            np.ones((size, size), np.float32),
            format="luminance",
            internalformat="r32f",
            interpolation="nearest",
            wrapping="clamp_to_edge",
        )
        self._depth = gloo.RenderBuffer((size, size), DEPTH_COMPONENT24)
        self._buffer = gloo.FrameBuffer(self.texture, self._depth)

    def fit(self, center: np.ndarray, radius: float, depth_radius: float, sun: np.ndarray) -> np.ndarray:
        """World to clip of a view from the sun that holds a ball; its texels stay put while the centre moves."""
        up = np.array([0.0, 0.0, 1.0]) if abs(sun[2]) < 0.99 else np.array([1.0, 0.0, 0.0])
        right = np.cross(up, sun)
        right /= np.linalg.norm(right)
        up = np.cross(sun, right)
        texel = 2 * radius / self.size
        x, y = (float(np.floor(axis @ center / texel) * texel) for axis in (right, up))
        z = float(sun @ center)
        deep = radius + 2 * depth_radius
        out = np.eye(4)
        out[0, :3], out[0, 3] = right / radius, -x / radius
        out[1, :3], out[1, 3] = up / radius, -y / radius
        out[2, :3], out[2, 3] = -sun / deep, z / deep
        return out

    @contextlib.contextmanager
    def drawing(self, context: Any) -> Iterator[None]:
        """Inside, draws go into the map."""
        with self._buffer:
            context.set_viewport(0, 0, self.size, self.size)
            context.set_state(depth_test=True, cull_face=False, blend=False, scissor_test=False, depth_mask=True)
            context.set_depth_func("lequal")
            context.clear(color=(1.0, 1.0, 1.0, 1.0), depth=True)
            yield

    def uniforms(self, clip: np.ndarray, radius: float) -> dict[str, Any]:
        """What shaders.COMMON wants to know."""
        to_unit = np.diag([0.5, 0.5, 0.5, 1.0])
        to_unit[:3, 3] = 0.5
        return {"u_light": to_unit @ clip, "u_shadow_info": (1 / self.size, 2 * radius / self.size, 1.0)}

    def close(self) -> None:
        for thing in (self._buffer, self.texture, self._depth):
            thing.delete()

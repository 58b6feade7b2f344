"""How much a picture may cost."""

from __future__ import annotations

import msgspec

from genesis_core.render.egl import is_software


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the renderer. `detail` scales the number of triangles of round geoms."""

    name: str = "high"
    shadows: bool = True
    shadow_size: int = 2048
    soft_shadows: bool = True
    samples: int = 4  # multisampling of off-screen pictures; 1 = none
    smooth: bool = False  # filter the edges of the finished picture instead
    detail: float = 1.0

    @classmethod
    def auto(cls, renderer: str) -> Quality:
        """For the window, by the GL_RENDERER string: GPUs afford everything, software renderers do not."""
        return SOFTWARE if is_software(renderer) else HIGH

    @classmethod
    def pictures(cls, renderer: str, height: int) -> Quality:
        """For pictures and videos. On a software renderer an edge filter stands in for multisampling, at a third of
        the cost, and a small picture does not need a large shadow map.
        """
        if not is_software(renderer):
            return HIGH
        size = 512 if height <= 600 else 1024
        return msgspec.structs.replace(SOFTWARE, name="software pictures", smooth=True, shadow_size=size)


HIGH = Quality()
SOFTWARE = Quality(name="software", shadow_size=1024, soft_shadows=False, samples=1, detail=0.6)

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
    detail: float = 1.0

    @classmethod
    def auto(cls, renderer: str) -> Quality:
        """For the window, by the GL_RENDERER string: GPUs afford everything, software renderers do not."""
        return SOFTWARE if is_software(renderer) else HIGH

    @classmethod
    def pictures(cls, renderer: str) -> Quality:
        """For pictures and videos: smooth edges cost a fifth more time on a software renderer, and stay."""
        return SOFTWARE_PICTURES if is_software(renderer) else HIGH


HIGH = Quality()
SOFTWARE = Quality(name="software", shadow_size=1024, soft_shadows=False, samples=1, detail=0.6)
SOFTWARE_PICTURES = Quality(name="software pictures", shadow_size=1024, soft_shadows=False, samples=4, detail=0.6)

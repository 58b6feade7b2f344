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
    samples: int = 4  # multisampling; 1 = none
    detail: float = 1.0

    @classmethod
    def auto(cls, renderer: str) -> Quality:
        """By the GL_RENDERER string: GPUs afford everything, software renderers do not."""
        return LOW if is_software(renderer) else HIGH


HIGH = Quality()
LOW = Quality(name="software", shadow_size=1024, soft_shadows=False, samples=1, detail=0.6)
STILL = Quality(name="still", shadow_size=2048, samples=4)  # for pictures that nobody waits for

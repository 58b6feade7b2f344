"""The cost of a picture follows the renderer."""

from genesis_core.render.egl import is_software
from genesis_core.render.quality import HIGH, Quality

LLVMPIPE = "llvmpipe (LLVM 15.0.6, 256 bits)"
NVIDIA = "NVIDIA H200/PCIe/SSE2"


def test_software_renderers_are_known_by_name():
    assert is_software(LLVMPIPE) and is_software("Software Rasterizer")
    assert not is_software(NVIDIA) and not is_software("Mesa Intel(R) Graphics (ADL GT2)")


def test_a_gpu_gets_everything_and_software_gets_less():
    assert Quality.auto(NVIDIA) == HIGH
    low = Quality.auto(LLVMPIPE)
    assert low.samples == 1 and low.shadow_size < HIGH.shadow_size and low.detail < HIGH.detail
    assert Quality.pictures(LLVMPIPE, 480).smooth and not low.smooth
    assert Quality.pictures(LLVMPIPE, 480).shadow_size < Quality.pictures(LLVMPIPE, 1080).shadow_size
    assert Quality.pictures(NVIDIA, 480) == HIGH

"""How many environments make a block on this CPU."""

from __future__ import annotations

import os
import platform
from functools import cache

from genesis_core.errors import OptionError

WIDTHS = (4, 8, 16)


@cache
def lane_width(bits: int) -> int:
    """Lanes per block for f32 or f64 kernels; `GENESIS_LANE_WIDTH` overrides it.

    Eight fill a 256-bit register with f32 and two with f64; wider blocks diverge more (see docs/architecture.md for the
    measurements). NEON registers hold four f32.
    """
    override = os.environ.get("GENESIS_LANE_WIDTH")
    if override:
        if not override.isdigit() or int(override) not in WIDTHS:
            raise OptionError(f"GENESIS_LANE_WIDTH = {override!r} is not a lane width", hint=f"choose one of {WIDTHS}")
        return int(override)
    if platform.machine().lower() in ("arm64", "aarch64"):
        return 4
    return 8

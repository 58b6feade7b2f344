"""How sharp a picture may be while things move: slow renderers draw fewer pixels, and a sharp one once it is quiet."""

from __future__ import annotations

import math

TARGET = 0.045  # [s] what a moving picture may cost
SMALLEST = 0.4  # of the width and height
STEP = 0.05


class Pace:
    """Chooses the scale of the next picture from the cost of the last ones."""

    def __init__(self, adaptive: bool) -> None:
        self.adaptive = adaptive
        self.scale = 1.0
        self._slow = self._quick = 0

    def took(self, seconds: float) -> None:
        """The cost of a picture at the present scale."""
        if not self.adaptive:
            return
        self._slow = self._slow + 1 if seconds > 1.25 * TARGET else 0
        self._quick = self._quick + 1 if seconds < 0.6 * TARGET else 0
        if self._slow >= 2 or seconds > 4 * TARGET:
            factor = max(0.5, math.sqrt(TARGET / seconds))
            self.scale = max(SMALLEST, math.floor(self.scale * factor / STEP) * STEP)
            self._slow = 0
        elif self._quick >= 6:
            self.scale = min(1.0, self.scale + STEP)
            self._quick = 0

"""A red box, drawn in whatever process or thread asks."""

from __future__ import annotations

import numpy as np

from genesis_core.layout.scene import initial_rows
from genesis_core.render.platform import prepare
from tests.render.scenes import compiled

SIZES = [(160, 120), (100, 80), (64, 48)]


class Drawer:
    """A renderer with a context of its own."""

    def __init__(self, width: int, height: int) -> None:
        prepare()
        from genesis_core.render.offscreen import OffscreenRenderer

        self.bundle = compiled('<geom type="box" size=".2 .2 .2" rgba="1 0 0 1"/>')
        self.renderer = OffscreenRenderer(self.bundle, width, height)

    def picture(self) -> np.ndarray:
        """(height, width, 3) uint8, a copy."""
        from genesis_core.render.camera import Camera

        camera = Camera((0, 0, 0), 2, 90, -20)
        return self.renderer.render(camera, initial_rows(self.bundle)[None], np.zeros((1, 3))).copy()

    def close(self) -> None:
        self.renderer.close()


def picture(rank: int) -> np.ndarray:
    """One picture; for gs.launch."""
    drawer = Drawer(*SIZES[0])
    try:
        return drawer.picture()
    finally:
        drawer.close()

"""Light and background of a picture."""

from __future__ import annotations

import msgspec

Color = tuple[float, float, float]


class SceneTheme(msgspec.Struct, frozen=True, kw_only=True):
    """Sky colours are sRGB, lights linear. `sun_dir` points towards the sun."""

    zenith: Color
    horizon: Color
    nadir: Color
    sun_dir: Color = (0.42, -0.34, 0.84)
    sun: Color = (1.55, 1.47, 1.35)
    sky: Color = (0.33, 0.375, 0.45)
    ground: Color = (0.17, 0.162, 0.155)
    floor_a: Color = (0.27, 0.30, 0.34)
    floor_b: Color = (0.31, 0.34, 0.385)
    line: Color = (0.42, 0.46, 0.52)


DARK = SceneTheme(zenith=(0.07, 0.09, 0.125), horizon=(0.235, 0.27, 0.32), nadir=(0.13, 0.15, 0.18))
LIGHT = SceneTheme(
    zenith=(0.50, 0.66, 0.87),
    horizon=(0.86, 0.905, 0.95),
    nadir=(0.70, 0.74, 0.78),
    sun=(1.95, 1.87, 1.74),
    sky=(0.58, 0.64, 0.73),
    ground=(0.34, 0.32, 0.30),
    floor_a=(0.66, 0.69, 0.73),
    floor_b=(0.73, 0.76, 0.80),
    line=(0.55, 0.59, 0.65),
)
THEMES = {"dark": DARK, "light": LIGHT}

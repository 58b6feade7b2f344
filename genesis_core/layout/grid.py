"""Where the environments stand in the drawing. The simulated poses are never shifted."""

from __future__ import annotations

import math

import numpy as np


def env_offsets(
    n_envs: int,
    spacing: tuple[float, float],
    per_row: int | None = None,
    center: bool = True,
) -> np.ndarray:
    """Offsets of the environments on a grid, shape (n_envs, 3) float64 [m].

    Environment i stands in row i // per_row (along x) and column i % per_row (along y); `per_row` defaults to the
    rounded-up square root, and `center` puts the middle of the grid at the origin, as Genesis does.
    """
    if n_envs <= 0:
        return np.zeros((0, 3))
    per_row = per_row or math.ceil(math.sqrt(n_envs))
    index = np.arange(n_envs)
    out = np.zeros((n_envs, 3))
    out[:, 0] = (index // per_row) * spacing[0]
    out[:, 1] = (index % per_row) * spacing[1]
    if center:
        out -= (out.max(axis=0) + out.min(axis=0)) / 2
    return out

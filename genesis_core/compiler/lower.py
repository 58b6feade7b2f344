"""From a compiled `mujoco.MjModel` to the arrays of `layout.fields`: sizes, options and everything of the smooth
dynamics.

Each topic has its own file (`lower_core`, `lower_collision`, `lower_constraint`), each fills its part of one
dictionary.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from genesis_core.compiler.lower_collision import lower_collision
from genesis_core.compiler.lower_constraint import lower_constraint
from genesis_core.compiler.lower_core import lower_core
from genesis_core.layout.fields import MODEL_FIELDS

SIZES = ("nq", "nv", "nu", "na", "nbody", "njnt", "ngeom", "nsite", "nmocap", "neq", "ntree", "nC")


def lower(mj: mujoco.MjModel) -> dict[str, Any]:
    """All kernel fields of the model, as int64/float64 arrays and plain numbers."""
    out: dict[str, Any] = {}
    lower_core(mj, out)
    lower_collision(mj, out)
    lower_constraint(mj, out)
    missing = [f.name for f in MODEL_FIELDS if f.name not in out]
    if missing:
        raise KeyError(f"the compiler filled no {', '.join(missing)}")
    return out


def sizes_of(mj: mujoco.MjModel, out: dict[str, Any]) -> dict[str, int]:
    """Every integer that a symbolic shape may name."""
    sizes = {name: int(getattr(mj, name)) for name in SIZES}
    sizes.update({k: int(v) for k, v in out.items() if isinstance(v, int | np.integer)})
    return sizes

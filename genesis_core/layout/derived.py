"""Integer fields of the model about the special shape of its real numbers: short cuts for the kernels."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import numpy as np

SOURCES = frozenset({"jnt_axis", "jnt_pos", "body_quat"})  # the real fields that `derive` looks at


def derive(arrays: MutableMapping[str, Any], njnt: int, nbody: int) -> None:
    """Fills jnt_along, jnt_central and body_turned.

    arrays: the model's fields, flat or shaped, of which the first njnt and nbody rows count; it must hold SOURCES.
    """
    axis = np.abs(np.asarray(arrays["jnt_axis"]).reshape(-1)[: 3 * njnt].reshape(-1, 3))
    along = np.full(njnt, 3, np.int64)
    for k in range(3):
        along[(axis == np.eye(3)[k]).all(axis=1)] = k
    pos = np.asarray(arrays["jnt_pos"]).reshape(-1)[: 3 * njnt].reshape(-1, 3)
    quat = np.asarray(arrays["body_quat"]).reshape(-1)[: 4 * nbody].reshape(-1, 4)
    found = {
        "jnt_along": along,
        "jnt_central": (pos == 0).all(axis=1).astype(np.int64),
        "body_turned": (quat != (1, 0, 0, 0)).any(axis=1).astype(np.int64),
    }
    for name, value in found.items():
        if name in arrays:
            arrays[name][: len(value)] = value
        else:
            arrays[name] = value

"""Which features of a compiled model are not simulated, one sentence each."""

from __future__ import annotations

import mujoco


def unsupported(mj: mujoco.MjModel, spec: mujoco.MjSpec | None = None) -> tuple[str, ...]:
    """Sentences about everything in the model that the engine does not simulate (empty = all is simulated)."""
    return ()

"""Slots of the workspace's integer array `count`: what a block's stages tell each other and the host.

Capacities: a stage that finds no room writes how much it needs to the capacity's NEED slot, sets OVERFLOW to 1 and
returns. The host then enlarges the workspace and runs that block's step again; nothing has been integrated, so
nothing is lost.
"""

from __future__ import annotations

NCON = 0  # contacts in the block's list (any lane)
NEFC = 1  # constraint rows in the block's list (any lane)
OVERFLOW = 2  # 1 = some capacity was too small, the block's step is void
NEED_CON = 3
SOLVER_ITER = 6  # Newton iterations of the block in its last step
FIRST_FREE = 8  # slots from here on are shared out by the owners of stages, in the files fields_*.py
HAS_XFRC = 40  # 1 = some environment has a force on a body
HAS_APPLIED = 41  # 1 = some environment has an applied generalised force
NCOUNT = 48

# capacity (an 'I' field of the workspace) -> slot of `count` that tells how much was needed
CAPACITIES = {"ncon_max": NEED_CON}

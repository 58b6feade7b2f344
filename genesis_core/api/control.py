"""Control of degrees of freedom with Genesis' meaning: force = kp (q* - q) + kv (v* - v), clamped to the force range.

The engine sees three actuators per hinge or slide (`compiler.control`): a force, one that gives -q and one that gives
-v per unit of control. So gains, modes and targets may differ between environments and change at any time, the damping
part is integrated implicitly, and the sum is clamped by the joint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from genesis_core.api.constants import CTRL_MODE
from genesis_core.api.index import finite
from genesis_core.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from genesis_core.compiler.control import DofControl


class Controller:
    """Modes, targets and gains of all dofs of a scene in all environments; `flush` hands them to the simulation."""

    def __init__(self, table: DofControl, n_envs: int, batched_gains: bool) -> None:
        """table: what `compiler.control` made; batched_gains: kp and kv have an environment axis."""
        self.table = table
        self.n_envs = n_envs
        self.nv = len(table.actuator)
        self.batched = batched_gains
        self.kp = self._gain(table.kp)
        self.kv = self._gain(table.kv)
        self.lower, self.upper = table.lower.copy(), table.upper.copy()
        shape = (n_envs, self.nv)
        self.mode = np.full(shape, CTRL_MODE.FORCE, dtype=np.int8)
        self.position, self.velocity, self.force = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.driven = np.flatnonzero(table.actuator >= 0)  # hinges and slides
        self.free = np.flatnonzero(table.actuator < 0)  # free and ball joints: forces only
        self._dirty = False
        self._free_dirty = False

    def _gain(self, given: np.ndarray) -> np.ndarray:
        return np.repeat(given[None, :], self.n_envs, axis=0) if self.batched else given[None, :].copy()

    def command(
        self,
        mode: CTRL_MODE,
        envs: np.ndarray,
        dofs: np.ndarray,
        value: np.ndarray,
        velocity: np.ndarray | None = None,
    ) -> None:
        """Set mode and target of dofs (global) in environments; value and velocity are (len(envs), len(dofs))."""
        if mode is not CTRL_MODE.FORCE:
            self._refuse_free(mode, dofs)
        finite(value, f"the {mode.name.lower()} target")
        at = np.ix_(envs, dofs)
        self.mode[at] = mode
        if mode is CTRL_MODE.POSITION:
            self.position[at] = value
            self.velocity[at] = 0.0 if velocity is None else finite(velocity, "the velocity target")
        elif mode is CTRL_MODE.VELOCITY:
            self.velocity[at] = value
        else:
            self.force[at] = value
        self.touch()

    def _refuse_free(self, mode: CTRL_MODE, dofs: np.ndarray) -> None:
        bad = np.intersect1d(dofs, self.free)
        if bad.size:
            joint = self.table.joint[int(bad[0])]
            raise UnsupportedFeatureError(
                f"{mode.name.lower()} control of the free or ball joint '{joint}'",
                hint="control its force, or give dofs_idx_local without it",
            )

    def touch(self) -> None:
        """Note that something changed since the last flush."""
        self._dirty = True
        self._free_dirty = self._free_dirty or self.free.size > 0

    def reset(self, envs: np.ndarray) -> None:
        """Back to no actuation at all."""
        self.mode[envs] = CTRL_MODE.FORCE
        for array in (self.position, self.velocity, self.force):
            array[envs] = 0.0
        self.touch()

    def commands(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(force, kp, kv) with force + kp * -q + kv * -v = what the mode asks for; each (n_envs, nv)."""
        is_position, is_velocity = self.mode == CTRL_MODE.POSITION, self.mode == CTRL_MODE.VELOCITY
        kp = np.where(is_position, self.kp, 0.0)
        kv = np.where(is_position | is_velocity, self.kv, 0.0)
        push = np.where(self.mode == CTRL_MODE.FORCE, self.force, kp * self.position + kv * self.velocity)
        return push, kp, kv

    def flush(self, sim: Any) -> None:
        """Hand pending commands to the simulation."""
        if not self._dirty:
            return
        self._dirty = False
        push, kp, kv = self.commands()
        first = self.table.actuator[self.driven]
        if first.size:
            ctrl = np.zeros((self.n_envs, self.table.nu))
            for shift, part in enumerate((push, kp, kv)):
                ctrl[:, first + shift] = part[:, self.driven]
            sim.set("ctrl", ctrl)
        if self._free_dirty:
            self._free_dirty = False
            applied = np.zeros((self.n_envs, self.nv))
            applied[:, self.free] = push[:, self.free]
            sim.set("qfrc_applied", applied)

    def requested(self, position: np.ndarray, velocity: np.ndarray, dofs: np.ndarray) -> np.ndarray:
        """The clamped force that the controller asks for at these dof positions and velocities, (n_envs, len(dofs))."""
        push, kp, kv = (part[:, dofs] for part in self.commands())
        return np.clip(push - kp * position - kv * velocity, self.lower[dofs], self.upper[dofs])

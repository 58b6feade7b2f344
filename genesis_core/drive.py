"""Open-loop motion of actuators, as a scene file's `[[drive]]` tables ask for it.

A drive makes bundled scenes (and users' own) move without a controller: legs swing in a gait, arms wander between
random targets. It is a pure function of the scene, the seed, the global index of the environment and the time, so the
motion does not depend on how the environments are split over workers.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from genesis_core.errors import OptionError


class DriveSpec(BaseModel):
    """One rule of motion; later rules add to earlier ones on the actuators that both name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    actuators: str = Field(description='names of actuators, with wildcards: "*_hip"')
    wave: Literal["sine", "random"] = Field(
        "sine", description="sine: periodic; random: smooth wandering, a new target every 1/frequency seconds"
    )
    scale: Literal["ctrl", "range"] = Field(
        "ctrl", description="unit of amplitude and offset: the actuator's own control unit, or half its control range"
    )
    amplitude: float = Field(0.3, description="size of the motion around the start value of the control")
    offset: float = Field(0.0, description="constant added to the start value of the control")
    frequency: float = Field(1.0, gt=0, le=1000, description="[Hz]")
    phase: float = Field(0.0, description="[turns]")
    phase_step: float = Field(0.0, description="[turns] added for each further actuator that the rule names")
    env_phase: float = Field(
        0.0, ge=0, le=1, description="[turns] largest random phase by environment, one for all rules"
    )
    env_amplitude: float = Field(0.0, ge=0, le=1, description="largest relative change of the amplitude by environment")
    ramp: float = Field(0.5, ge=0, description="[s] the motion fades in after each reset")


def _hash(*keys: np.ndarray | int) -> np.ndarray:
    """Uniform numbers in [0, 1) from integer keys that broadcast together (splitmix64's mixer)."""
    state = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        out = np.zeros((), np.uint64)
        for key in keys:
            out = (out ^ np.asarray(key).astype(np.uint64)) + state
            out = (out ^ (out >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            out = (out ^ (out >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            out = out ^ (out >> np.uint64(31))
    return np.asarray((out >> np.uint64(11)) * (1.0 / (1 << 53)))


class _Rule:
    """A DriveSpec resolved to actuator indices and per-environment numbers."""

    def __init__(
        self, spec: DriveSpec, index: int, names: Sequence[str], half_range: np.ndarray, envs: np.ndarray, seed: int
    ) -> None:
        self.columns = np.array(
            [i for i, name in enumerate(names) if fnmatchcase(name, spec.actuators)], dtype=np.int64
        )
        if not len(self.columns):
            near = difflib.get_close_matches(spec.actuators.strip("*_"), names, n=3, cutoff=0.3)
            raise OptionError(
                f"no actuator is named '{spec.actuators}'",
                where=f"drive[{index}].actuators",
                hint=f"did you mean {', '.join(near)}?" if near else f"the scene has {len(names)} actuators",
            )
        unit = half_range[self.columns] if spec.scale == "range" else np.ones(len(self.columns))
        self.spec = spec
        self.seed = seed * 1009 + index
        self.envs = envs[:, None]
        self.offset = spec.offset * unit
        self.amplitude = spec.amplitude * unit * (1 + spec.env_amplitude * (2 * _hash(self.seed, self.envs, 1) - 1))
        self.phase = (
            spec.phase
            + spec.phase_step * np.arange(len(self.columns))[None, :]
            + spec.env_phase * _hash(seed, self.envs, 2)  # the same for all rules: the legs of a gait stay together
        )

    def at(self, time: np.ndarray) -> np.ndarray:
        """The rule's share of the control, (n_envs, len(columns))."""
        turns = self.spec.frequency * time[:, None] + self.phase
        if self.spec.wave == "sine":
            wave = np.sin(2 * math.pi * turns)
        else:
            knot = np.floor(turns)
            part = turns - knot
            keys = knot.astype(np.int64) & 0x7FFFFFFF
            a = _hash(self.seed, self.envs, 3, self.columns[None, :], keys)
            b = _hash(self.seed, self.envs, 3, self.columns[None, :], keys + 1)
            wave = 2 * (a + (b - a) * part * part * (3 - 2 * part)) - 1
        fade = np.clip(time / self.spec.ramp, 0, 1)[:, None] if self.spec.ramp > 0 else 1.0
        return (self.offset + self.amplitude * wave) * fade


class Drive:
    """All rules of a scene for the environments `first_env ... first_env + n_envs - 1`."""

    def __init__(
        self,
        specs: Sequence[DriveSpec],
        names: Sequence[str],
        ctrl0: np.ndarray,
        ctrlrange: np.ndarray | None,
        n_envs: int,
        seed: int = 0,
        first_env: int = 0,
        ctrllimited: np.ndarray | None = None,
    ) -> None:
        """names (nu,) of the actuators; ctrl0 (nu,) control at the start; ctrlrange (nu, 2), used where limited.

        Raises OptionError when a rule names no actuator.
        """
        nu = len(names)
        self.ctrl0 = np.asarray(ctrl0, dtype=np.float64).reshape(nu)
        bounds = np.full((nu, 2), (-np.inf, np.inf))
        half = np.ones(nu)
        if ctrlrange is not None and nu:
            given = np.asarray(ctrlrange, dtype=np.float64).reshape(nu, 2)
            limited = given[:, 1] > given[:, 0] if ctrllimited is None else np.asarray(ctrllimited, dtype=bool)
            bounds[limited] = given[limited]
            half[limited] = (given[limited, 1] - given[limited, 0]) / 2
        self.lower, self.upper = bounds[:, 0], bounds[:, 1]
        self.n_envs = n_envs
        envs = np.arange(first_env, first_env + n_envs, dtype=np.int64)
        self.rules = [_Rule(spec, i, names, half, envs, seed) for i, spec in enumerate(specs)]

    def __bool__(self) -> bool:
        return bool(self.rules)

    def at(self, time: float | np.ndarray) -> np.ndarray:
        """The controls at `time` [s] (a number, or one per environment since its own reset): (n_envs, nu) float32."""
        when = np.broadcast_to(np.asarray(time, dtype=np.float64), (self.n_envs,))
        ctrl = np.repeat(self.ctrl0[None, :], self.n_envs, axis=0)
        for rule in self.rules:
            ctrl[:, rule.columns] += rule.at(when)
        return np.clip(ctrl, self.lower, self.upper).astype(np.float32)

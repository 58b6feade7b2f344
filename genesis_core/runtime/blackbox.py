"""The last states of environments that diverge: kept while running, worked out step by step once it has happened.

Before every run of steps the state is copied (a memory copy, about two hundredths of the run). When an environment goes
bad, its runs are simulated again from those copies, alone and one step at a time: an environment's result does not
depend on its neighbours, so this is bitwise what happened.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from genesis_core.runtime import messages as msg
from genesis_core.simulation import Simulation

MEMORY = 64 * 2**20  # bytes of copies
RUNS = 16  # copies at most
MOMENTS = 400  # per recording: the last ones
AT_ONCE = 4  # environments of one event that are recorded
IN_ALL = 16  # environments of a session that are recorded
RECORDED = ("qpos", "qvel", "ctrl", "act", "mocap_pos", "mocap_quat")


class BlackBox:
    """Watches one simulation; environment numbers are its own."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        size = max(1, sum(x.nbytes for x in sim.snapshot().values()))
        self._runs: deque[tuple[int, int, dict[str, np.ndarray]]] = deque(maxlen=max(1, min(RUNS, MEMORY // size)))
        self._saved: set[int] = set()

    def forget(self) -> None:
        """The states were changed from outside: what was before does not lead to what comes."""
        self._runs.clear()

    def before(self, step: int, n: int) -> None:
        """n steps follow, the first of which has this number."""
        old = self._runs.popleft()[2] if len(self._runs) == self._runs.maxlen else None
        self._runs.append((step, n, self._sim.snapshot(old)))

    def explain(self, first_env: int) -> msg.Diverged | None:
        """The last moments of environments that went bad in the last run; None for those that were told before."""
        new = [e for e in self._sim.diverged.tolist() if e not in self._saved]
        new = new[: min(AT_ONCE, IN_ALL - len(self._saved))]
        if not new or not self._runs:
            return None
        self._saved.update(new)
        moments = self._repeat(np.array(new, np.int64))
        arrays = {name: np.stack([m[name] for m in moments]) for name in moments[0]}
        return msg.Diverged(envs=[first_env + e for e in new], arrays=arrays)

    def _repeat(self, envs: np.ndarray) -> list[dict[str, np.ndarray]]:
        """Every moment of the kept runs of these environments, until all of them have diverged."""
        sim = self._sim
        moments: deque[dict[str, np.ndarray]] = deque(maxlen=MOMENTS)
        with Simulation(
            sim.model, n_envs=len(envs), precision=sim.precision, threads=1, seed=sim.seed, on_diverge="freeze"
        ) as alone:
            names = [name for name in RECORDED if alone.get(name).size]
            for step, n, states in self._runs:
                for name, values in sim.pick(states, envs).items():
                    alone.set(name, values)
                for k in range(n):
                    moment = {name: alone.get(name) for name in names}
                    moment["env_time"] = alone.get("time")
                    moment["step"] = np.array(step + k)
                    moment["time"] = np.array((step + k) * sim.model.timestep)
                    moments.append(moment)
                    alone.step(1)
                    if alone.stats()["frozen"] == len(envs):
                        return list(moments)
        return list(moments)

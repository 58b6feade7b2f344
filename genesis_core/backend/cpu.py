"""Runs kernels on the CPU: threads take blocks, each thread has its own workspace."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from numba import types

from genesis_core.backend.crew import Crew, Pace
from genesis_core.backend.tables import Work, model_struct, model_table, state_struct, work_struct
from genesis_core.lanes.segment import SEGMENTS, is_cached, load_cached
from genesis_core.log import get_logger
from genesis_core.physics import block

if TYPE_CHECKING:
    from genesis_core.compiler.build import Model
    from genesis_core.lanes.types import Table

log = get_logger(__name__)
Progress = Callable[[str, float], None]
GROWTH = 1.5  # room beyond what was needed when a workspace is enlarged


STAGE_TITLES = {
    "positions": "kinematics and inertia",
    "smooth_dynamics": "smooth dynamics",
    "narrowphase": "collision",
    "box_box": "collision of boxes",
    "capsule_box": "collision of capsules and boxes",
    "plane_mesh": "collision of meshes",
    "make": "constraints",
    "pattern": "solver: sparsity",
    "assemble": "solver: Hessian",
    "factor": "solver: factorization",
    "backsolve": "solver: substitution",
    "line_search": "solver: line search",
    "advance": "solver: forces",
    "residual": "solver: residuals",
    "solve": "solver",
    "integrate": "integration",
    "forward": "step",
}


def compile_kernels(bits: int, width: int, progress: Progress | None = None) -> float:
    """Loads or compiles the kernels of one precision; returns the seconds it took.

    progress(stage, fraction) is called before each stage, only when something has to be compiled.
    """
    started = time.perf_counter()
    m, d, s = model_struct(bits, width), work_struct(bits, width), state_struct(bits, width)
    whole = (m, d, s, types.int64, types.int64)
    entries = {"blocks": block.run_blocks, "poses": block.pose_block}
    cached = all(is_cached(entry, whole) for entry in entries.values())
    load_cached(bits, width)
    steps: list[tuple[str, Callable[[], Any]]] = [
        (STAGE_TITLES.get(name, name), partial(one.compile, bits, width)) for name, one in SEGMENTS.items()
    ]
    steps += [(title, partial(entry.compile, whole)) for title, entry in entries.items()]
    for k, (title, compile_) in enumerate(steps):
        if progress is not None and not cached:
            progress(title, k / len(steps))
        compile_()
    if progress is not None and not cached:
        progress("ready", 1.0)
    return time.perf_counter() - started


class CpuBackend:
    """The model in kernel form, the threads, and their workspaces."""

    def __init__(
        self,
        model: Model,
        bits: int,
        width: int,
        threads: int,
        progress: Progress | None = None,
        **scalars: int,
    ) -> None:
        self.model, self.bits, self.width, self.threads = model, bits, width, threads
        self.compile_seconds = compile_kernels(bits, width, progress)
        self.table = model_table(model, bits, width, **scalars)
        self.capacities = first_capacities(model)
        self.works = [Work(model, bits, width, self.capacities)]
        self._crew: Crew | None = None
        self._pace = Pace()
        self._run = self._entry(block.run_blocks)
        self._pose = self._entry(block.pose_block)
        self.overflows = 0

    def _entry(self, dispatcher: Any) -> Any:
        """The compiled function itself: no type inspection of arguments at each call."""
        m, d, s = (f(self.bits, self.width) for f in (model_struct, work_struct, state_struct))
        return dispatcher.overloads[(m, d, s, types.int64, types.int64)].entry_point

    def run(self, state: Table, n: int, mode: int) -> None:
        """Works on all blocks until each has done n steps, enlarging workspaces where they are too small."""
        blocks = int(state.slots[state.type.index["nblock"]])
        state.arrays["done"][:] = 0
        state.arrays["touched"][:] = 0
        while True:
            state.arrays["cursor"][0] = 0
            self._launch(state, blocks, n, mode)
            if not state.arrays["touched"][1]:
                return
            self._make_room(state)
            state.arrays["touched"][1] = 0

    def _launch(self, state: Table, blocks: int, n: int, mode: int) -> None:
        work = blocks * n
        helpers = self._pace.helpers(work, min(self.threads, blocks) - 1)
        while len(self.works) <= helpers:
            self.works.append(Work(self.model, self.bits, self.width, self.capacities))
        jobs = [partial(self._run, self.table, self.works[k], state, n, mode) for k in range(helpers + 1)]
        if self._crew is None:
            self._crew = Crew(self.threads - 1)
        self._pace.note(self._crew.run(jobs[0], jobs[1:]), work)

    def look(self, state: Table, b: int) -> Work:
        """The forward evaluation of block b's current state, left in the returned workspace; nothing is stored."""
        work = self.works[0]
        while True:
            state.arrays["done"][b] = 0
            state.arrays["touched"][:] = 0
            state.arrays["cursor"][0] = b
            blocks = state.slots[state.type.index["nblock"]]
            state.slots[state.type.index["nblock"]] = b + 1
            try:
                self._run(self.table, work, state, 1, block.LOOK)
            finally:
                state.slots[state.type.index["nblock"]] = blocks
            if not state.arrays["touched"][1]:
                return work
            self._make_room(state)
            work = self.works[0]

    def pose(self, state: Table, b: int, everything: bool) -> Work:
        """Poses of block b's current state, left in the returned workspace."""
        self._pose(self.table, self.works[0], state, b, int(everything))
        return self.works[0]

    def _make_room(self, state: Table) -> None:
        """Enlarges every workspace to what the blocks asked for."""
        self.overflows += 1
        need = state.arrays["need"]
        wanted = int(need.max())
        if wanted > self.capacities["ncon_max"]:
            self.capacities["ncon_max"] = min(int(wanted * GROWTH) + 8, int(self.model.arrays["ncon_bound"]))
        need[:] = 0
        log.debug("workspaces enlarged to %s", self.capacities)
        self.works = [Work(self.model, self.bits, self.width, self.capacities) for _ in self.works]

    def close(self) -> None:
        if self._crew is not None:
            self._crew.close()
            self._crew = None


def first_capacities(model: Model) -> dict[str, int]:
    """A first guess of how much room a block needs; workspaces grow when it is short."""
    contacts = min(int(model.arrays["ncon_bound"]), 4 * model.ngeom + 32)
    return {"ncon_max": contacts}

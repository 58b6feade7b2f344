"""Measuring: our engine and MuJoCo's rollout side by side, from the same states with the same controls.

Both engines run whole episodes with the same number of threads, in turn within every round, so that whatever else the
machine does hits both; medians over the rounds are reported, and the ratio is the median of the rounds' ratios.
MuJoCo's speed does not depend on the number of environments, so it simulates the first few of them, as many as fit the
time budget.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from genesis_core.bench_cases import Case, open_case
from genesis_core.errors import OptionError

MAX_ENVS = 1 << 20
LONGEST = 12.0  # an episode may last this many times the least time of a measurement
SHORTEST = 50  # steps, however long they take
MUJOCO_ENVS = 256  # most environments that MuJoCo's rollout is asked to hold trajectories of
MISSING_MUJOCO = (
    "the comparison needs the full mujoco package (mujoco.rollout), which is not installed: "
    "pip install 'genesis-studio[bench]', or leave --against out"
)


@dataclass
class Measurement:
    """One case with one number of environments. Rates are environment-steps per second."""

    case: str
    title: str
    n_envs: int
    steps: int
    threads: int
    precision: str
    rate: float
    rate_min: float
    rate_max: float
    rate_per_core: float
    bytes_per_env: int
    contacts: float  # mean per environment at the end of the episode
    flat: float | None = None  # microseconds of one environment-step relative to that at the reference count
    mujoco_rate: float | None = None
    mujoco_rate_min: float | None = None
    mujoco_rate_max: float | None = None
    mujoco_envs: int | None = None
    mujoco_contacts: float | None = None
    ratio: float | None = None
    rounds: int = 0
    notes: list[str] = field(default_factory=list)


class Ours:
    """Episodes of a case in our engine."""

    def __init__(self, case: Case, n_envs: int, precision: str, threads: int) -> None:
        from genesis_core.engine import Simulation

        self.case, self.n = case, n_envs
        self.sim = Simulation(case.model, n_envs, precision=precision, threads=threads)
        self.start = case.states(n_envs)
        self.controls = case.controls(n_envs)

    def episode(self) -> float:
        """Seconds of one episode, controls included, the return to the start not."""
        sim, case = self.sim, self.case
        sim.reset()
        for name, value in self.start.items():
            sim.set(name, value)
        began = time.perf_counter()
        done = 0
        chunk = 0
        while done < case.steps:
            n = min(case.hold, case.steps - done)
            if case.model.nu:
                sim.set("ctrl", self.controls[:, chunk])
            sim.step(n)
            done += n
            chunk += 1
        return time.perf_counter() - began

    def warm_up(self, longest: float | None) -> None:
        """Touches all memory and lets workspaces grow; shortens episodes that would take more than `longest` seconds,
        to no less than SHORTEST steps."""
        whole = self.case
        self.case = replace(whole, steps=min(whole.steps, SHORTEST))
        self.episode()
        expected = self.episode() * whole.steps / self.case.steps
        if longest is None or expected <= longest:
            self.case = whole
        else:
            self.case = replace(whole, steps=max(self.case.steps, int(whole.steps * longest / expected)))
        if expected < 1.0:
            self.episode()

    def rate(self, seconds: float) -> float:
        """Environment-steps per second over at least `seconds` of episodes."""
        spent, episodes = 0.0, 0
        while not episodes or spent < seconds:
            spent += self.episode()
            episodes += 1
        return self.n * self.case.steps * episodes / spent

    def contacts(self) -> float:
        return float(np.mean(self.sim.get("ncon")))

    def close(self) -> None:
        self.sim.close()


class Theirs:
    """The same episodes in mujoco.rollout."""

    def __init__(self, case: Case, n_envs: int, threads: int, seconds: float) -> None:
        try:
            import mujoco
            from mujoco import rollout
        except ImportError:
            raise OptionError(MISSING_MUJOCO) from None
        self.mujoco, self.case, self.threads = mujoco, case, threads
        self.mj = case.model.mj
        self.data = [mujoco.MjData(self.mj) for _ in range(threads)]
        self.pool = rollout.Rollout(nthread=threads if threads > 1 else 0)
        self.kind = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
        first = min(threads, n_envs)
        self._prepare(first)
        rate = first * case.steps / self.episode()
        fitting = int(rate * seconds / case.steps) // threads * threads
        self._prepare(min(n_envs, MUJOCO_ENVS, max(threads, fitting)))

    def _prepare(self, n: int) -> None:
        mujoco, case = self.mujoco, self.case
        self.n = n
        start, data = case.states(n), self.data[0]
        size = mujoco.mj_stateSize(self.mj, self.kind)
        self.initial = np.zeros((n, size))
        for i in range(n):
            mujoco.mj_resetData(self.mj, data)
            for name, value in start.items():
                getattr(data, name)[:] = value[i]
            mujoco.mj_getState(self.mj, data, self.initial[i], self.kind)
        self.control = None
        if self.mj.nu:
            self.control = np.repeat(case.controls(n), case.hold, axis=1)[:, : case.steps].copy()
        self.state = np.zeros((n, case.steps, size))
        self.sensors = np.zeros((n, case.steps, self.mj.nsensordata))

    def episode(self) -> float:
        began = time.perf_counter()
        self.pool.rollout(
            self.mj,
            self.data if self.threads > 1 else self.data[0],
            self.initial,
            self.control,
            nstep=self.case.steps,
            state=self.state,
            sensordata=self.sensors,
            skip_checks=False,
        )
        return time.perf_counter() - began

    def rate(self, seconds: float) -> float:
        """Environment-steps per second over at least `seconds` of episodes."""
        spent, episodes = 0.0, 0
        while not episodes or spent < seconds:
            spent += self.episode()
            episodes += 1
        return self.n * self.case.steps * episodes / spent

    def contacts(self) -> float:
        mujoco, data = self.mujoco, self.data[0]
        counts = []
        for i in range(min(self.n, 64)):
            mujoco.mj_setState(self.mj, data, self.state[i, -1], self.kind)
            mujoco.mj_forward(self.mj, data)
            counts.append(data.ncon)
        return float(np.mean(counts))

    def close(self) -> None:
        self.pool.close()


@dataclass
class Settings:
    """What to measure and for how long."""

    envs: tuple[int, ...] = (1, 64, 1024)
    against_mujoco: bool = True
    steps: int | None = None
    precision: str = "32"
    threads: int | None = None
    rounds: int = 5
    seconds: float = 1.0  # per measurement of a round
    seed: int = 0

    def check(self) -> None:
        """OptionError for numbers that make no sense."""
        for name, low, high in (("rounds", 1, 1000), ("seconds", 0, 3600), ("steps", 1, 10**7), ("threads", 1, 4096)):
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise OptionError(f"{name} = {value}", where="bench", hint=f"from {low} to {high}")
        if not self.envs or not all(1 <= n <= MAX_ENVS for n in self.envs):
            raise OptionError(
                f"envs = {','.join(map(str, self.envs))}", where="bench", hint="numbers from 1 to 1048576"
            )


def measure_case(name: str, settings: Settings, report: Callable[[str], None] = lambda text: None) -> list[Measurement]:
    """One case with all numbers of environments, in turn within every round."""
    from genesis_core.backend.devices import cpu_count

    settings.check()
    threads = settings.threads or cpu_count()
    case = open_case(name, settings.steps, settings.seed)
    runners: list[tuple[int, Ours, Theirs | None]] = []
    for n in settings.envs:
        report(f"{name}: preparing {n} environments")
        ours = Ours(case, n, settings.precision, threads)
        ours.warm_up(None if settings.steps else LONGEST * settings.seconds)
        theirs = Theirs(ours.case, n, threads, settings.seconds) if settings.against_mujoco else None
        runners.append((n, ours, theirs))
    rates: dict[int, list[float]] = {n: [] for n in settings.envs}
    other: dict[int, list[float]] = {n: [] for n in settings.envs}
    for k in range(settings.rounds):
        for n, ours, theirs in runners:
            report(f"{name}: round {k + 1} of {settings.rounds}, {n} environments")
            rates[n].append(ours.rate(settings.seconds))
            if theirs is not None:
                other[n].append(theirs.rate(settings.seconds))
    out = [_summary(ours.case, settings, threads, n, ours, theirs, rates[n], other[n]) for n, ours, theirs in runners]
    _relate(out)
    for _, ours, theirs in runners:
        ours.close()
        if theirs is not None:
            theirs.close()
    return out


def _summary(
    case: Case,
    settings: Settings,
    threads: int,
    n: int,
    ours: Ours,
    theirs: Theirs | None,
    rates: list[float],
    other: list[float],
) -> Measurement:
    rate = statistics.median(rates)
    used = min(threads, -(-n // ours.sim.width))
    result = Measurement(
        case=case.name,
        title=case.title,
        n_envs=n,
        steps=case.steps,
        threads=threads,
        precision=settings.precision,
        rate=rate,
        rate_min=min(rates),
        rate_max=max(rates),
        rate_per_core=rate / used,
        bytes_per_env=int(ours.sim.bytes_per_env()),
        contacts=ours.contacts(),
        rounds=settings.rounds,
        notes=[f"not simulated: {sentence}" for sentence in case.model.unsupported],
    )
    bad = int(ours.sim.stats().get("nan_count", 0))
    if bad:
        result.notes.append(f"{bad} environment states diverged and were reset")
    if theirs is not None:
        result.mujoco_rate = statistics.median(other)
        result.mujoco_rate_min, result.mujoco_rate_max = min(other), max(other)
        result.mujoco_envs, result.mujoco_contacts = theirs.n, theirs.contacts()
        per_core = used / min(threads, theirs.n)  # a single environment uses a single thread
        result.ratio = statistics.median(a / b for a, b in zip(rates, other, strict=True)) / per_core
    return result


def _relate(results: Sequence[Measurement]) -> None:
    """Cost of an environment-step relative to that with 64 environments (or the nearest larger, else the largest)."""
    counts = sorted(r.n_envs for r in results)
    reference = next((n for n in counts if n >= 64), counts[-1])
    base = next(r for r in results if r.n_envs == reference)
    for r in results:
        if r.steps == base.steps:  # shorter episodes are other work
            r.flat = base.rate / r.rate


# ---------------------------------------------------------------------------------------------------------------- start
_START = """
import json, time
began = time.perf_counter()
from genesis_core.bench_cases import open_case
from genesis_core.engine import Simulation
imported = time.perf_counter()
case = open_case({name!r})
loaded = time.perf_counter()
sim = Simulation(case.model, {envs}, precision={precision!r}, threads={threads})
built = time.perf_counter()
sim.step()
stepped = time.perf_counter()
parts = dict(imports=imported - began, scene=loaded - imported, build=built - loaded, step=stepped - built)
print(json.dumps(dict(parts, began=began, end=stepped)))
"""


@dataclass
class StartTime:
    """Seconds of a fresh process from its birth to the end of the first step, and its parts."""

    case: str
    cold: bool
    total: float
    python: float
    imports: float
    scene: float
    build: float
    step: float


def measure_start(name: str, settings: Settings, cold: bool = False, repeats: int = 3) -> StartTime:
    """Start of a fresh process: interpreter, imports, scene, kernels, first step. The median of several.

    cold: with an empty kernel cache, once.
    """
    settings.check()
    code = _START.format(
        name=name, envs=settings.envs[0], precision=settings.precision, threads=settings.threads or "None"
    )
    samples: list[dict[str, float]] = []
    if not cold:
        _start_once(code, None)  # fills the kernel cache and the disk cache
    for _ in range(1 if cold else repeats):
        with tempfile.TemporaryDirectory() as empty:
            samples.append(_start_once(code, empty if cold else None))
    typical = sorted(samples, key=lambda s: s["total"])[len(samples) // 2]
    return StartTime(case=name, cold=cold, **typical)


def _start_once(code: str, cache: str | None) -> dict[str, float]:
    env = dict(os.environ)
    if cache is not None:
        env["GENESIS_CACHE_DIR"] = cache
    born = time.perf_counter()
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    if run.returncode:
        last = run.stderr.strip().splitlines()[-1:] or ["no message"]
        raise OptionError(f"the fresh process failed: {last[0]}", where="bench --start")
    parts = json.loads(run.stdout.strip().splitlines()[-1])
    # perf_counter counts alike in all processes of a machine, so that the child's exit stays out of the time
    return {"total": parts.pop("end") - born, "python": parts.pop("began") - born, **parts}


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from genesis_core.backend.devices import cpu_device

    def known(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return ""

    cpu = cpu_device()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "cpu": cpu.name,
        "cores": cpu.cores,
        "load_1min": load,
        "python": platform.python_version(),
        "genesis_studio": known("genesis-studio"),
        "numba": known("numba"),
        "mujoco": known("mujoco") or known("mujoco-core"),
    }


def to_json(results: Sequence[Measurement | StartTime]) -> list[dict[str, Any]]:
    return [asdict(r) for r in results]

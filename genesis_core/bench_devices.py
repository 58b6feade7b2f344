"""Throughput of worker processes as the window and record mode use them: one set of devices against another.

All sets are open at the same time and run in turn within every round, so that whatever else the machine does hits all
of them; only one set runs at a moment, the others are paused. Every worker has the same number of environments and of
threads, whatever the set. A worker's longest silence says whether it stayed responsive.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from genesis_core.errors import OptionError

if TYPE_CHECKING:
    from genesis_core.runtime.supervisor import Session

START_LIMIT = 600.0  # [s] cold kernels included
SETTLE = 1.0  # [s] of running before the first round


@dataclass
class DeviceTime:
    """One set of devices. Rates are environment-steps per second of all its workers together."""

    case: str
    devices: str
    workers: int
    envs_per_worker: int
    threads_per_worker: int
    rate: float
    rate_min: float
    rate_max: float
    ratio: float  # to the first set, median of the rounds' ratios
    per_worker: float  # ratio divided by the ratio of the worker counts
    per_cpu_second: float  # environment-steps per second of CPU time: what a busy machine does not change
    longest_silence: float  # [s] between two signs of life of any worker
    host_memory: int  # [byte] resident, of all workers
    rounds: int = 0
    rates: list[float] = field(default_factory=list)


def measure_devices(
    name: str,
    sets: Sequence[str],
    envs: int,
    threads: int,
    rounds: int,
    seconds: float,
    report: Callable[[str], None] = lambda text: None,
) -> list[DeviceTime]:
    """Rates of a scene on each set of devices ("cpu:1", "cpu:2", "0,1", "all"), `envs` environments per worker."""
    if not sets:
        raise OptionError(
            "no devices given", where="bench --devices", hint="for example --devices cpu:1 --devices cpu:2"
        )
    crews: list[_Crew] = []
    try:
        for text in sets:
            report(f"{name}: starting {text}")
            crews.append(_Crew(name, text, envs, threads))
        for k in range(rounds):
            for crew in crews:
                report(f"{name}: round {k + 1} of {rounds}, {crew.text}")
                crew.run(seconds)
        return [crew.summary(name, crews[0]) for crew in crews]
    finally:
        for crew in crews:
            crew.session.close()


class _Crew:
    """The workers of one set."""

    def __init__(self, name: str, text: str, envs: int, threads: int) -> None:
        from genesis_core.backend.resolve import resolve_devices
        from genesis_core.cli.common import find_scene
        from genesis_core.runtime import messages as msg
        from genesis_core.runtime.supervisor import Session, SessionConfig

        self.text, self.envs, self.threads = text, envs, threads
        devices = resolve_devices(text)
        self.session: Session = Session(
            SessionConfig(
                scene=msg.SceneRequest(path=str(find_scene(name))),
                devices=devices,
                n_envs=envs * len(devices),
                threads=threads,
            )
        )
        self.rates: list[float] = []
        self.cpu_rates: list[float] = []
        self.silence = 0.0
        self._heard = [0.0] * len(devices)
        try:
            self.session.start()
            self._until(lambda: self.session.ready, START_LIMIT)
            self.session.set_speed(None)
            self._go(SETTLE)
        except BaseException:
            self.session.close()
            raise
        self.silence = 0.0

    def run(self, seconds: float) -> None:
        """One measurement of at least `seconds`."""
        before, spent = self._steps(), self._cpu_seconds()
        passed = self._go(seconds)
        done = self._steps() - before
        self.rates.append(done / passed)
        self.cpu_rates.append(done / max(1e-9, self._cpu_seconds() - spent))

    def _go(self, seconds: float) -> float:
        """Runs all workers for a while; the seconds from the first order to the last worker's stop."""
        began = time.perf_counter()
        self._heard = [time.monotonic()] * self.session.n_workers
        self.session.play()
        self._until(lambda: time.perf_counter() - began >= seconds, seconds + 60, listen=True)
        self.session.pause()
        self._until(lambda: all(s == "paused" for s in self.session.states), 60, listen=True)
        passed = time.perf_counter() - began
        counted = [0] * self.session.n_workers
        self._until(lambda: min(counted) >= 2, 60, counted=counted)  # the first may have been on its way
        return passed

    def _steps(self) -> int:
        """Environment-steps of all workers so far."""
        return sum(t.steps * t.n_envs for t in self.session.telemetry)

    def _cpu_seconds(self) -> float:
        """CPU time that the workers have taken so far."""
        import psutil

        times = [psutil.Process(pid).cpu_times() for pid in self.session.pids if pid is not None]
        return sum(t.user + t.system for t in times)

    def _until(
        self, done: Callable[[], bool], limit: float, listen: bool = False, counted: list[int] | None = None
    ) -> None:
        from genesis_core.runtime import messages as msg
        from genesis_core.runtime.supervisor import failure_of

        deadline = time.monotonic() + limit
        while not done():
            if time.monotonic() > deadline:
                raise OptionError(f"the workers of {self.text} do not answer", where="bench --devices")
            self.session.wait(0.02)
            for event in self.session.pump():
                if isinstance(event.message, msg.Failed | msg.WorkerDied):
                    raise failure_of(event, self.session)
                if isinstance(event.message, msg.Telemetry):
                    now = time.monotonic()
                    if listen:
                        self.silence = max(self.silence, now - self._heard[event.worker])
                    self._heard[event.worker] = now
                    if counted is not None:
                        counted[event.worker] += 1

    def summary(self, name: str, first: _Crew) -> DeviceTime:
        """Medians of the rounds."""
        ratio = statistics.median(a / b for a, b in zip(self.rates, first.rates, strict=True))
        return DeviceTime(
            case=name,
            devices=self.text,
            workers=self.session.n_workers,
            envs_per_worker=self.envs,
            threads_per_worker=self.threads,
            rate=statistics.median(self.rates),
            rate_min=min(self.rates),
            rate_max=max(self.rates),
            ratio=ratio,
            per_worker=ratio * first.session.n_workers / self.session.n_workers,
            per_cpu_second=statistics.median(self.cpu_rates),
            longest_silence=self.silence,
            host_memory=sum(t.memory for t in self.session.telemetry),
            rounds=len(self.rates),
            rates=self.rates,
        )


def as_rows(results: Sequence[DeviceTime]) -> list[tuple[str, ...]]:
    """Cells of a table, one row per set."""
    return [
        (
            r.case,
            r.devices,
            str(r.workers),
            f"{r.envs_per_worker:,}",
            f"{r.rate:,.0f}",
            f"{r.ratio:.2f}x",
            f"{r.per_cpu_second:,.0f}",
            f"{r.longest_silence:.2f}",
            f"{r.host_memory / r.workers / 2**20:.0f}",
        )
        for r in results
    ]


COLUMNS: tuple[str, ...] = (
    "case",
    "devices",
    "workers",
    "envs each",
    "env-steps/s",
    "ratio",
    "per CPU second",
    "longest silence [s]",
    "MiB each",
)


def to_json(results: Sequence[DeviceTime]) -> list[dict[str, Any]]:
    """As plain data."""
    from dataclasses import asdict

    return [asdict(r) for r in results]

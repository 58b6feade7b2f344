"""`genesis-studio top`: what runs on each device now, as a live table or as one JSON object a line."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import msgspec

from genesis_core.backend.devices import DeviceInfo, cpu_device, cuda_devices, metal_devices
from genesis_core.errors import OptionError
from genesis_core.runtime.status import Status, running

if TYPE_CHECKING:
    from rich.console import Group

SHORTEST = 0.1  # [s]


class DeviceLoad(msgspec.Struct, kw_only=True):
    """A device and the sum of those who simulate on it."""

    device: str
    name: str
    workers: int = 0
    n_envs: int = 0
    steps_per_second: float = 0.0  # mean of its workers
    env_steps_per_second: float = 0.0
    host_memory: int = 0  # [byte] resident, of its workers
    device_memory: int = 0  # [byte] of its workers; on the CPU the same
    memory_total: int = 0
    memory_free: int = 0
    load: float | None = None
    temperature: float | None = None


class Sample(msgspec.Struct, kw_only=True):
    """One moment."""

    time: float
    devices: list[DeviceLoad]
    workers: list[Status]
    notes: list[str] = []


def look() -> Sample:
    """Devices and who simulates on them, now."""
    notes: list[str] = []
    workers = running()
    devices = [cpu_device(), *metal_devices(), *cuda_devices(notes)]
    return Sample(time=time.time(), devices=[_load(d, workers) for d in devices], workers=workers, notes=notes)


def _load(device: DeviceInfo, workers: list[Status]) -> DeviceLoad:
    mine = [w for w in workers if _place(w.device) == device.id]
    host = sum(w.memory for w in mine)
    on_gpu = {p.pid: p.memory for p in device.processes}
    own = host if device.kind != "cuda" else sum(on_gpu.get(pid, 0) for pid in {w.pid for w in mine})
    return DeviceLoad(
        device=device.id,
        name=device.name,
        workers=len(mine),
        n_envs=sum(w.n_envs for w in mine),
        steps_per_second=sum(w.steps_per_second for w in mine) / len(mine) if mine else 0.0,
        env_steps_per_second=sum(w.env_steps_per_second for w in mine),
        host_memory=host,
        device_memory=own,
        memory_total=device.memory_total,
        memory_free=device.memory_free,
        load=device.load,
        temperature=device.temperature,
    )


def _place(device: str) -> str:
    """The device of a worker: shares of the CPU are on the CPU."""
    return "cpu" if device.startswith("cpu") else device


def top(as_json: bool = False, interval: float = 1.0, count: int | None = None) -> int:
    """Shows a new sample every `interval` seconds, `count` times or until Ctrl+C; returns the exit code."""
    if not SHORTEST <= interval <= 3600:
        raise OptionError(f"--interval {interval:g} is out of range", hint=f"seconds from {SHORTEST} to 3600")
    if count is not None and count < 1:
        raise OptionError(f"--count {count} is out of range", hint="a number from 1")
    with contextlib.suppress(KeyboardInterrupt):  # the usual way to leave
        _print_lines(interval, count) if as_json else _show(interval, count)
    return 0


def _print_lines(interval: float, count: int | None) -> None:
    shown = 0
    while count is None or shown < count:
        if shown:
            time.sleep(interval)
        print(msgspec.json.encode(look()).decode(), flush=True)
        shown += 1


def _show(interval: float, count: int | None) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console() if Console().is_terminal else Console(width=140)
    if not console.is_terminal and count is None:
        count = 1  # nobody could end it
    shown = 0
    with Live(console=console, auto_refresh=False, screen=False) as live:
        while count is None or shown < count:
            if shown:
                time.sleep(interval)
            live.update(picture(look()), refresh=True)
            shown += 1


def picture(sample: Sample) -> Group:
    """A sample as two tables."""
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table

    devices = Table(title="Devices", title_justify="left")
    for name in ("device", "name"):
        devices.add_column(name)
    for name in ("workers", "envs", "steps/s", "env-steps/s", "memory", "of device", "free", "load", "\u00b0C"):
        devices.add_column(name, justify="right")
    for d in sample.devices:
        load = "" if d.load is None else f"{d.load:.0%}"
        heat = "" if d.temperature is None else f"{d.temperature:.0f}"
        memory = (_bytes(d.host_memory), _bytes(d.device_memory), _bytes(d.memory_free))
        counts = (str(d.workers or ""), f"{d.n_envs:,}" if d.n_envs else "")
        devices.add_row(d.device, d.name, *counts, *_rates(d), *memory, load, heat)
    workers = Table(title="Running", title_justify="left")
    for name in ("pid", "what", "scene", "device", "state"):
        workers.add_column(name)
    for name in ("envs", "steps/s", "env-steps/s", "real time", "memory", "cpu", "NaN"):
        workers.add_column(name, justify="right")
    for w in sample.workers:
        state = "[red]silent[/]" if w.silent else escape(w.state)
        pace = f"{w.realtime_factor:.1f}x" if w.realtime_factor else ""
        bad = f"[red]{w.nan_count}[/]" if w.nan_count else ""
        what = (str(w.pid), w.kind, escape(w.title), w.device, state, f"{w.n_envs:,}")
        workers.add_row(*what, *_rates(w), pace, _bytes(w.memory), f"{w.cpu_percent:.0f}%", bad)
    parts: list[Any] = [devices]
    parts.append(workers if sample.workers else "nobody simulates now: start `genesis-studio SCENE` or a script")
    return Group(*parts, *(f"[dim]{escape(note)}[/]" for note in sample.notes))


def _rates(x: DeviceLoad | Status) -> tuple[str, str]:
    return _count(x.steps_per_second), _count(x.env_steps_per_second)


def _count(number: float) -> str:
    return f"{number:,.0f}" if number else ""


def _bytes(n: int) -> str:
    if not n:
        return ""
    return f"{n / 2**30:.1f} GiB" if n >= 2**30 else f"{n / 2**20:.0f} MiB"

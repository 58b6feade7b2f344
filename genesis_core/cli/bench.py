"""`genesis-studio bench [SCENE...]`: environment-steps per second, ours and MuJoCo's, side by side."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from genesis_core.errors import GenesisError, OptionError

if TYPE_CHECKING:
    from rich.console import Console

    from genesis_core.bench import Measurement, Settings, StartTime


def bench(
    scenes: Sequence[str] = (),
    envs: str = "1,64,1024",
    against: str = "",
    steps: int | None = None,
    precision: str = "32",
    threads: int | None = None,
    rounds: int = 5,
    seconds: float = 1.0,
    seed: int = 0,
    start: bool = False,
    cold: bool = False,
    record: bool = False,
    as_json: bool = False,
    devices: Sequence[str] = (),
) -> int:
    """Measures and prints; returns the exit code.

    scenes: names of bundled scenes, presets (humanoid-air, humanoid-drop, quadruped-stand, arm-grip, wall-50), "speed"
    for all presets, or files; none: the bundled scenes. against: "mujoco" or "". start: times of a fresh process up to
    its first step in place of speeds, with `cold` from an empty kernel cache. record: frames per second off screen.
    devices: sets of devices, each in worker processes of its own, against the first of them.
    """
    try:
        settings = _settings(envs, against, steps, precision, threads, rounds, seconds, seed)
        names = _expand(scenes)
        if devices:
            return _devices(names, devices, settings, as_json)
        if record:
            return _draw(names, settings, as_json)
        return _start(names, settings, cold, as_json) if start or cold else _speed(names, settings, as_json)
    except GenesisError as error:
        if as_json:
            print(json.dumps({"error": str(error), "what": error.what, "where": error.where, "hint": error.hint}))
        else:
            print(str(error), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def _settings(
    envs: str,
    against: str,
    steps: int | None,
    precision: str,
    threads: int | None,
    rounds: int,
    seconds: float,
    seed: int,
) -> Settings:
    from genesis_core.bench import Settings

    if against not in ("", "none", "mujoco"):
        raise OptionError(f"--against {against}", hint="mujoco")
    if precision not in ("32", "64"):
        raise OptionError(f"--precision {precision}", hint="32 or 64")
    try:
        counts = tuple(int(part) for part in envs.split(","))
    except ValueError:
        raise OptionError(f"--envs {envs}", hint="numbers separated by commas: 1,64,1024") from None
    settings = Settings(counts, against == "mujoco", steps, precision, threads, rounds, seconds, seed)
    settings.check()
    return settings


def _expand(scenes: Sequence[str]) -> list[str]:
    from genesis_core.bench_cases import PRESETS, default_names

    names: list[str] = []
    for name in scenes or default_names():
        names += list(PRESETS) if name == "speed" else [name]
    return names


def _speed(names: Sequence[str], settings: Settings, as_json: bool) -> int:
    from rich.console import Console

    from genesis_core.bench import MISSING_MUJOCO, machine, measure_case, to_json

    console = Console(stderr=True)
    if settings.against_mujoco and not _has_rollout():
        raise OptionError(MISSING_MUJOCO)
    about = machine()
    results: list[Measurement] = []
    with console.status("measuring") as status:
        for name in names:
            results += measure_case(name, settings, lambda text: status.update(text))
    if as_json:
        print(json.dumps({"machine": about, "settings": asdict(settings), "results": to_json(results)}, indent=2))
    else:
        _print_speed(about, results, settings)
    return 0


def _has_rollout() -> bool:
    from importlib.util import find_spec

    return find_spec("mujoco") is not None and find_spec("mujoco.rollout") is not None


def _print_speed(about: dict[str, Any], results: Sequence[Measurement], settings: Settings) -> None:
    from rich.table import Table

    versus = settings.against_mujoco
    threads = results[0].threads if results else 0
    caption = (
        f"{about['cpu']}, {about['cores']} cores, load {about['load_1min']:.1f} at the start; {threads} threads, "
        f"{settings.precision}-bit, median of {settings.rounds} rounds"
    )
    table = Table(title="Environment-steps per second", caption=caption, title_justify="left", caption_justify="left")
    table.add_column("case")
    for column in ("envs", "steps", "genesis studio", "us / env-step", "flat"):
        table.add_column(column, justify="right")
    if versus:
        for column in (f"mujoco {about['mujoco']}", "per core"):
            table.add_column(column, justify="right")
    table.add_column("contacts" + (" (mujoco)" if versus else ""), justify="right")
    last = ""
    for r in results:
        row = [r.case if r.case != last else "", f"{r.n_envs:,}", str(r.steps), f"{r.rate:,.0f}"]
        row += [f"{1e6 * r.threads / r.rate:.2f}", f"{r.flat:.2f}" if r.flat is not None else ""]
        contacts = f"{r.contacts:.1f}"
        if versus and r.ratio is not None:
            row += [f"{r.mujoco_rate:,.0f}", f"[bold]{r.ratio:.1f}x[/]"]
            contacts += f" ({r.mujoco_contacts:.1f})"
        table.add_row(*row, contacts, end_section=r is results[-1])
        last = r.case
    console = _console()
    console.print(table)
    for note in dict.fromkeys(f"  {r.case}: {note}" for r in results for note in r.notes):
        console.print(note, highlight=False, markup=False)
    console.print("  flat: cost of an environment-step relative to that with 64 environments", highlight=False)


def _console() -> Console:
    """As wide as the terminal; 120 columns where the output goes to a file."""
    from rich.console import Console

    plain = Console()
    return plain if plain.is_terminal else Console(width=120)


def _start(names: Sequence[str], settings: Settings, cold: bool, as_json: bool) -> int:
    from rich.console import Console
    from rich.table import Table

    from genesis_core.bench import machine, measure_start, to_json

    about = machine()
    results: list[StartTime] = []
    with Console(stderr=True).status("starting fresh processes"):
        for name in names:
            results.append(measure_start(name, settings, cold))
    if as_json:
        print(json.dumps({"machine": about, "settings": asdict(settings), "start": to_json(results)}, indent=2))
        return 0
    kind = "empty kernel cache" if cold else "warm"
    table = Table(title=f"Seconds from a fresh process to its first step ({kind})", title_justify="left")
    table.add_column("case")
    for column in ("python", "imports", "scene", "build", "first step", "total"):
        table.add_column(column, justify="right")
    for r in results:
        parts = (r.python, r.imports, r.scene, r.build, r.step)
        table.add_row(r.case, *(f"{part:.2f}" for part in parts), f"[bold]{r.total:.2f}[/]")
    _console().print(table)
    return 0


def _devices(names: Sequence[str], sets: Sequence[str], settings: Settings, as_json: bool) -> int:
    from rich.console import Console
    from rich.table import Table

    from genesis_core.bench import machine
    from genesis_core.bench_devices import COLUMNS, DeviceTime, as_rows, measure_devices, to_json

    if settings.against_mujoco:
        raise OptionError("--against mujoco does not go with --devices", hint="MuJoCo's rollout is measured without it")
    about = machine()
    results: list[DeviceTime] = []
    threads = settings.threads or 1
    with Console(stderr=True).status("starting workers") as status:
        for name in names:
            results += measure_devices(
                name,
                sets,
                settings.envs[-1],
                threads,
                settings.rounds,
                settings.seconds,
                lambda text: status.update(text),
            )
    if as_json:
        told = {"machine": about, "settings": asdict(settings), "devices": to_json(results)}
        print(json.dumps(told, indent=2))
        return 0
    table = Table(
        title="Worker processes, environment-steps per second",
        caption=f"{about['cpu']}, {about['cores']} cores; {threads} thread{'s' if threads > 1 else ''} a worker, "
        f"median of {settings.rounds} rounds",
        title_justify="left",
        caption_justify="left",
    )
    for k, column in enumerate(COLUMNS):
        table.add_column(column, justify="left" if k < 2 else "right")
    for row in as_rows(results):
        table.add_row(*row)
    _console().print(table)
    return 0


def _draw(names: Sequence[str], settings: Settings, as_json: bool) -> int:
    from rich.console import Console
    from rich.table import Table

    from genesis_core.bench import machine
    from genesis_core.bench_draw import DrawTime, measure_draw

    about = machine()
    results: list[DrawTime] = []
    with Console(stderr=True).status("drawing"):
        for name in names:
            results.append(measure_draw(name, settings.against_mujoco, settings.rounds, settings.seconds))
    if as_json:
        print(
            json.dumps({"machine": about, "settings": asdict(settings), "draw": [asdict(r) for r in results]}, indent=2)
        )
        return 0
    table = Table(title="Frames per second off screen, one environment", title_justify="left")
    table.add_column("case")
    columns = ["geoms", "size", "genesis studio"]
    if settings.against_mujoco:
        columns += ["mujoco.Renderer", "ratio", "with our settings", "ratio"]
    for column in columns:
        table.add_column(column, justify="right")
    for r in results:
        row = [r.case, str(r.geoms), f"{r.width}x{r.height}", f"{r.fps:.1f}"]
        if settings.against_mujoco:
            row += [f"{r.mujoco_fps:.1f}", f"[bold]{r.ratio:.1f}x[/]"]
            row += [f"{r.mujoco_equal_fps:.1f}", f"[bold]{r.equal_ratio:.1f}x[/]"]
        table.add_row(*row)
    console = _console()
    console.print(table)
    if results:
        console.print(f"  {results[0].renderer}, quality '{results[0].quality}'", highlight=False)
    return 0

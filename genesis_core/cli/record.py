"""`genesis-studio record SCENE`: a video and a state recording, without a window."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from genesis_core.cli.common import CommonOptions, find_scene, parse_size

if TYPE_CHECKING:
    from rich.console import Console

    from genesis_core.record.plan import Plan, RecordOptions
    from genesis_core.record.record import RecordResult


def record(
    scene: str,
    common: CommonOptions,
    *,
    as_json: bool = False,
    size: str | None = None,
    layout: str = "tiles",
    out: Path = Path("out"),
    **rest: Any,
) -> int:
    """Records; returns the exit code. `rest` are the other fields of RecordOptions."""
    from genesis_core.errors import OptionError
    from genesis_core.record.plan import RecordOptions

    path = find_scene(scene)
    if layout not in ("tiles", "world"):
        raise OptionError(f"--layout {layout} is unknown", hint="choose tiles or world")
    options = RecordOptions(
        scene=path,
        out=out,
        size=parse_size(size),
        layout=layout,
        n_envs=common.envs,
        devices=common.worker_devices(path),
        seed=common.seed,
        precision=common.precision,
        env_spacing=common.spacing,
        **rest,
    )
    return run_record(options, as_json)


def run_record(options: RecordOptions, as_json: bool = False) -> int:
    """Records with progress on stderr and the outcome on stdout."""
    from rich.console import Console

    from genesis_core.record.record import Interrupted, Stop
    from genesis_core.record.record import record as make

    console = Console(stderr=True, highlight=False)
    stop = Stop()
    try:
        with ProgressReporter(console, as_json) as reporter:
            result = make(options, reporter, stop)
    except Interrupted:
        console.print("interrupted before the first step; nothing was written")
        return _stopped(stop)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())
    else:
        _tell(result)
    return _stopped(stop) if result.interrupted else 0


def _stopped(stop: Any) -> int:
    return 143 if stop.signal == signal.SIGTERM else 130


def _tell(result: RecordResult) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    begin = "interrupted after" if result.interrupted else "recorded"
    console.print(
        f"{begin} {result.steps:,} steps ({result.seconds:.2f} s) of {result.n_envs:,} environments "
        f"in {result.wall_seconds:.1f} s: {result.env_steps_per_second:,.0f} environment-steps/s"
    )
    if result.nan_count:
        console.print(f"[yellow]{result.nan_count} environment states diverged and were reset[/]")
    if result.video:
        console.print(f"  video      {result.video}  ({result.frames} frames)", markup=False)
        console.print(f"  last frame {result.picture}", markup=False)
    if result.recording:
        console.print(f"  states     {result.recording}  ({result.moments} moments)", markup=False)


class ProgressReporter:
    """Progress bars on a terminal; a line per stage elsewhere."""

    def __init__(self, console: Console, quiet: bool = False) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self._console = console
        self._quiet = quiet and not console.is_terminal
        self._stage = ""
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._load: Any = None
        self._run: Any = None

    def __enter__(self) -> ProgressReporter:
        self._progress.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._progress.stop()

    def stage(self, text: str, fraction: float) -> None:
        if self._load is None:
            self._load = self._progress.add_task(text, total=1.0, note="")
        self._progress.update(self._load, description=text, completed=fraction)
        if not self._console.is_terminal and not self._quiet and text != self._stage:
            self._stage = text
            self._console.print(f"{text} ...")

    def planned(self, plan: Plan, n_envs: int) -> None:
        self._run = self._progress.add_task("waiting to step", total=plan.steps, note="", visible=False)
        if not self._quiet:
            what = " and ".join(["video"] * plan.video + ["states"] * plan.states)
            self._console.print(
                f"{plan.steps:,} steps of {n_envs:,} environments; {what} of {len(plan.envs):,} of them"
            )

    def steps(self, done: int, total: int, env_steps_per_second: float) -> None:
        if self._load is not None:
            self._progress.remove_task(self._load)
            self._load = None
            self._progress.reset(self._run, visible=True)
        self._progress.update(
            self._run, description="recording", completed=done, note=f"{env_steps_per_second:,.0f} env-steps/s"
        )

    def warn(self, text: str) -> None:
        from rich.markup import escape

        self._console.print(f"[yellow]warning:[/] {escape(text)}", soft_wrap=True)


def main_note(text: str) -> None:
    """A remark on stderr that does not disturb machine-readable output."""
    print(text, file=sys.stderr, flush=True)

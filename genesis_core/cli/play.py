"""`genesis-studio play REC`: what a recording holds, or its states drawn as a video."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from genesis_core.cli.common import parse_size

if TYPE_CHECKING:
    from genesis_core.record.recording import RecordingReader


def play(
    recording: Path,
    *,
    video: Path | None = None,
    select: str | None = None,
    camera: str | None = None,
    size: str | None = None,
    fps: int | None = None,
    layout: str | None = None,
    force: bool = False,
    as_json: bool = False,
) -> int:
    """Prints a summary; with `video` draws the states first. Returns the exit code."""
    from genesis_core.errors import OptionError
    from genesis_core.record.recording import RecordingReader

    if layout not in (None, "tiles", "world"):
        raise OptionError(f"--layout {layout} is unknown", hint="choose tiles or world")
    reader = RecordingReader(recording)
    facts = recording_facts(reader)
    if video is not None:
        from rich.console import Console

        from genesis_core.cli.record import ProgressReporter, _stopped
        from genesis_core.record.record import Stop
        from genesis_core.record.replay import ReplayOptions, replay

        options = ReplayOptions(
            video=video, select=select, camera=camera, size=parse_size(size), fps=fps, layout=layout, force=force
        )
        stop = Stop()
        with ProgressReporter(Console(stderr=True, highlight=False), as_json) as reporter:
            facts["video"] = {"file": str(video), "frames": replay(reader, options, reporter, stop)}
        if stop.requested:
            return _stopped(stop)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(facts), indent=2).decode())
    else:
        _print(facts)
    return 0


def recording_facts(reader: RecordingReader) -> dict[str, Any]:
    """What a recording holds, as plain data."""
    meta = reader.meta
    times = reader.times
    states = reader.states(slice(0, 1))
    return {
        "name": meta.name,
        "folder": str(reader.folder),
        "created": meta.created,
        "complete": meta.complete,
        "interrupted": meta.interrupted,
        "scene": str(meta.scene or meta.source),
        "simulated_envs": meta.n_envs,
        "recorded_envs": reader.envs,
        "moments": reader.length,
        "seconds": float(times[-1]) if len(times) else 0.0,
        "timestep": meta.timestep,
        "state_every": meta.state_every,
        "seed": meta.seed,
        "precision": meta.precision,
        "devices": meta.devices,
        "quantities": {name: list(value.shape[1:]) for name, value in states.items()},
        "versions": meta.versions,
    }


def _print(facts: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    envs = facts["recorded_envs"]
    state = "complete" if facts["complete"] else "interrupted" if facts["interrupted"] else "cut off (its writer ended)"
    table = Table(title=escape(facts["name"]), title_justify="left", show_header=False)
    table.add_row("recorded", f"{facts['created']}, {state}")
    table.add_row("scene", escape(facts["scene"]))
    step = facts["timestep"] * 1000 * facts["state_every"]
    table.add_row("time", f"{facts['seconds']:.3f} s, {facts['moments']} moments, one every {step:g} ms")
    numbers = ", ".join(map(str, envs[:12])) + (" ..." if len(envs) > 12 else "")
    table.add_row("environments", f"{len(envs)} of {facts['simulated_envs']}: {numbers}")
    table.add_row("quantities", ", ".join(f"{k} {v}" for k, v in facts["quantities"].items()))
    table.add_row("seed, precision", f"{facts['seed']}, {facts['precision']} bits")
    table.add_row("devices", ", ".join(facts["devices"]))
    table.add_row("versions", ", ".join(f"{k} {v}" for k, v in facts["versions"].items()))
    console = Console(highlight=False)
    console.print(table)
    if "video" in facts:
        console.print(f"  video {facts['video']['file']}  ({facts['video']['frames']} frames)", markup=False)

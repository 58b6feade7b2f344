"""The verbs of `genesis-studio` and their options. Each verb imports what it needs when it runs."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="genesis-studio",
    help="Simulates thousands of copies of a robot scene at once and shows any of them.\n\n"
    "genesis-studio [SCENE] opens the window. SCENE: a file (.xml .urdf .toml .zip, a mesh) or a bundled scene's name.",
    no_args_is_help=False,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Scene = Annotated[str, typer.Argument(metavar="SCENE", help="a scene file, or the name of a bundled scene")]
MaybeScene = Annotated[str | None, typer.Argument(metavar="SCENE", help="a scene file, or a bundled scene's name")]
Json = Annotated[bool, typer.Option("--json", help="machine-readable output")]
Backend = Annotated[str, typer.Option("--backend", help="auto, cpu, cuda or metal")]
Devices = Annotated[str | None, typer.Option("--devices", help='"cpu", "cpu:2" (two CPU workers), "0,1", "all"')]
Envs = Annotated[int | None, typer.Option("--envs", "-n", help="number of environments; else the scene's")]
Spacing = Annotated[str | None, typer.Option("--spacing", metavar="X,Y", help="metres between environments as drawn")]
Seed = Annotated[int | None, typer.Option("--seed", help="of the start states; else the scene's")]
Precision = Annotated[str | None, typer.Option("--precision", help="32 or 64 bits; else the scene's")]
Debug = Annotated[bool, typer.Option("--debug", help="tracebacks instead of short messages", hidden=True)]


def run_app(arguments: Sequence[str]) -> int:
    """Parses and runs one command line; usage errors are told and give exit code 2."""
    usage_error = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
    try:
        result = app(list(arguments), prog_name="genesis-studio", standalone_mode=False)
    except typer.Exit as done:
        return done.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    except usage_error as error:  # type: ignore[misc]
        error.show()
        _tell_value(error, arguments)
        return 2
    return result if isinstance(result, int) else 0


def _tell_value(error: Any, arguments: Sequence[str]) -> None:
    """The value that an option was given, which typer's message leaves out."""
    names = getattr(getattr(error, "param", None), "opts", ())
    for option, value in itertools.pairwise(arguments):
        if option in names:
            print(f"  given: {option} {value}", file=sys.stderr)


def _version(wanted: bool) -> None:
    if wanted:
        from genesis_core import __version__

        print(f"genesis-studio {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="print it")] = False,
) -> None:
    """Options of all verbs."""


@app.command()
def window(
    scene: MaybeScene = None,
    envs: Envs = None,
    devices: Devices = None,
    backend: Backend = "auto",
    spacing: Spacing = None,
    seed: Seed = None,
    precision: Precision = None,
    debug: Debug = False,
) -> int:
    """Open the window (the verb may be left out). Without a display: record the scene instead."""
    from genesis_core.cli.window import window as run

    return run(scene, _common_options(envs, devices, backend, spacing, seed, precision))


@app.command()
def record(
    scene: Scene,
    envs: Envs = None,
    steps: Annotated[int | None, typer.Option(help="simulation steps")] = None,
    seconds: Annotated[float | None, typer.Option(help="seconds to simulate, instead of --steps")] = None,
    select: Annotated[
        str | None, typer.Option(help='environments to record: "0,5", "0-7", "first:4", "random:4", "all"')
    ] = None,
    camera: Annotated[str | None, typer.Option(help='a camera\'s name, or "azimuth,elevation,distance"')] = None,
    size: Annotated[
        str | None, typer.Option(metavar="WxH", help="pixels of the video; else the scene's, or 1280x720")
    ] = None,
    fps: Annotated[int | None, typer.Option(help="pictures per simulated second; else the scene's, or 30")] = None,
    layout: Annotated[str, typer.Option(help="tiles: one environment each; world: side by side")] = "tiles",
    out: Annotated[Path, typer.Option("--out", "-o", help="folder for the files")] = Path("out"),
    name: Annotated[str, typer.Option(help="of the files; else the scene's")] = "",
    video: Annotated[bool | None, typer.Option("--video/--no-video", help="write an MP4 and a PNG of its end")] = None,
    states: Annotated[bool | None, typer.Option("--states/--no-states", help="write a state recording")] = None,
    state_every: Annotated[int, typer.Option(help="steps between recorded states")] = 1,
    labels: Annotated[bool, typer.Option("--labels/--no-labels", help="environment numbers in the tiles")] = True,
    force: Annotated[bool, typer.Option("--force", "-f", help="overwrite files of the same name")] = False,
    devices: Devices = None,
    backend: Backend = "auto",
    spacing: Spacing = None,
    seed: Seed = None,
    precision: Precision = None,
    as_json: Json = False,
    debug: Debug = False,
) -> int:
    """Simulate without a window; write a video and a state recording. Needs no display."""
    from genesis_core.cli.record import record as run

    common = _common_options(envs, devices, backend, spacing, seed, precision)
    return run(
        scene,
        common,
        as_json=as_json,
        steps=steps,
        seconds=seconds,
        select=select,
        camera=camera,
        size=size,
        fps=fps,
        layout=layout,
        out=out,
        name=name,
        video=video,
        states=states,
        state_every=state_every,
        labels=labels,
        force=force,
    )


@app.command()
def play(
    recording: Annotated[Path, typer.Argument(metavar="REC", help="a NAME.gsrec folder")],
    video: Annotated[
        Path | None, typer.Option(metavar="FILE.mp4", help="draw the recorded states into a video")
    ] = None,
    select: Annotated[str | None, typer.Option(help="which of the recorded environments; else all")] = None,
    camera: Annotated[str | None, typer.Option(help='a camera\'s name, or "azimuth,elevation,distance"')] = None,
    size: Annotated[str | None, typer.Option(metavar="WxH", help="pixels")] = None,
    fps: Annotated[int | None, typer.Option(help="pictures per simulated second")] = None,
    layout: Annotated[str | None, typer.Option(help="tiles or world")] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="overwrite the video")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> int:
    """Say what a recording holds, or draw it again."""
    from genesis_core.cli.play import play as run

    return run(
        recording,
        video=video,
        select=select,
        camera=camera,
        size=size,
        fps=fps,
        layout=layout,
        force=force,
        as_json=as_json,
    )


@app.command()
def info(
    scene: MaybeScene = None,
    as_json: Json = False,
    schema: Annotated[bool, typer.Option("--schema", help="print the JSON schema of scene files")] = False,
    full: Annotated[bool, typer.Option("--full", help="list every joint and actuator")] = False,
    debug: Debug = False,
) -> int:
    """What is in a scene, and what of it is not simulated."""
    from genesis_core.cli.common import find_scene
    from genesis_core.cli.info import info as run

    return run(None if scene is None else str(find_scene(scene)), as_json=as_json, schema=schema, full=full)


@app.command()
def devices(as_json: Json = False, debug: Debug = False) -> int:
    """Processors and GPUs of this machine and what each can do."""
    from genesis_core.cli.devices import devices as run

    return run(as_json)


@app.command()
def doctor(as_json: Json = False, debug: Debug = False) -> int:
    """Try every path for real and say the remedy."""
    from genesis_core.cli.doctor import doctor as run

    return run(as_json)


@app.command()
def top(
    interval: Annotated[float, typer.Option(help="seconds between two looks")] = 1.0,
    count: Annotated[int | None, typer.Option(help="looks, then the end; else until Ctrl+C")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object a line")] = False,
    debug: Debug = False,
) -> int:
    """What runs on each device now: steps/s, environments, memory, load, temperature."""
    from genesis_core.cli.top import top as run

    return run(as_json, interval, count)


@app.command()
def bench(
    scenes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SCENE]...",
            help="bundled scenes, files, or the presets humanoid-air, humanoid-drop, quadruped-stand, arm-grip, "
            'wall-50; "speed" names all presets; without any the bundled scenes',
        ),
    ] = None,
    envs: Annotated[str, typer.Option(help="numbers of environments")] = "1,64,1024",
    against: Annotated[str, typer.Option(help='"mujoco": measure its rollout beside ours')] = "",
    steps: Annotated[int | None, typer.Option(help="steps of an episode, 500 if not given")] = None,
    precision: Annotated[str, typer.Option(help="32 or 64 bits")] = "32",
    threads: Annotated[int | None, typer.Option(help="CPU threads; else all cores")] = None,
    rounds: Annotated[int, typer.Option(help="measurements, of which the median counts")] = 5,
    seconds: Annotated[float, typer.Option("--time", help="least wall time of one measurement in seconds")] = 1.0,
    seed: Annotated[int, typer.Option(help="of states and controls")] = 0,
    start: Annotated[bool, typer.Option("--start", help="time a fresh process up to its first step")] = False,
    cold: Annotated[bool, typer.Option("--cold", help="with --start: without the kernel cache")] = False,
    record: Annotated[bool, typer.Option("--record", help="pictures per second off screen")] = False,
    devices: Annotated[
        list[str] | None,
        typer.Option("--devices", help="workers on these devices; several times: against each other (cpu:1, cpu:2)"),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> int:
    """Measure environment-steps per second, beside MuJoCo's on request."""
    from genesis_core.cli.bench import bench as measure

    return measure(
        scenes or (),
        envs=envs,
        against=against,
        steps=steps,
        precision=precision,
        threads=threads,
        rounds=rounds,
        seconds=seconds,
        seed=seed,
        start=start,
        cold=cold,
        record=record,
        as_json=as_json,
        devices=devices or (),
    )


@app.command()
def run(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT", help="a Python file")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[ARGS]...", help="given to the script")] = None,
) -> int:
    """Run a Genesis script: `import genesis as gs` finds Genesis Studio."""
    from genesis_core.cli.run import run as run_script

    return run_script(script, arguments or [])


run_settings: dict[str, Any] = {"allow_extra_args": True, "ignore_unknown_options": True}
next(c for c in app.registered_commands if c.callback is run).context_settings = run_settings


def _common_options(
    envs: int | None,
    devices: str | None,
    backend: str,
    spacing: str | None,
    seed: int | None,
    precision: str | None,
) -> Any:
    from genesis_core.cli.common import common_options

    return common_options(envs, devices, backend, spacing, seed, precision)

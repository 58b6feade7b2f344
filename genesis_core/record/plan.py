"""What a recording will hold, worked out before the first step and refused where it makes no sense."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import msgspec

from genesis_core.errors import OptionError
from genesis_core.record.recording import SUFFIX
from genesis_core.runtime.select import select_envs

DEFAULT_SECONDS = 10.0
MAX_STEPS = 100_000_000
MAX_FPS = 240
MIN_SIZE, MAX_SIZE = 16, 8192
MAX_TILES = 1024


class RecordOptions(msgspec.Struct, kw_only=True):
    """What the caller asks for; None takes what the scene file says, else the default."""

    scene: Path
    out: Path = Path("out")
    name: str = ""
    n_envs: int | None = None
    steps: int | None = None
    seconds: float | None = None
    select: str | None = None
    camera: str | None = None
    size: tuple[int, int] | None = None
    fps: int | None = None
    video: bool | None = None
    states: bool | None = None
    state_every: int = 1
    layout: str = "tiles"
    labels: bool = True
    devices: tuple[str, ...] = ("cpu",)
    precision: str | None = None
    seed: int | None = None
    env_spacing: tuple[float, float] | None = None
    force: bool = False


class Plan(msgspec.Struct, kw_only=True):
    """A recording in numbers."""

    steps: int
    timestep: float
    fps: int
    size: tuple[int, int]
    envs: list[int]
    frame_steps: list[int]  # video frame k shows the state after this many steps
    camera: str
    video: bool
    states: bool


class Targets(msgspec.Struct, kw_only=True):
    """The files that a recording makes."""

    video: Path
    picture: Path
    recording: Path

    @classmethod
    def of(cls, options: RecordOptions) -> Targets:
        name = options.name or safe_name(options.scene.stem)
        if options.name and safe_name(options.name) != options.name:
            raise OptionError(
                f"the name '{options.name}' is no file name", hint=f"for example '{safe_name(options.name)}'"
            )
        out = options.out
        return cls(video=out / f"{name}.mp4", picture=out / f"{name}.png", recording=out / f"{name}{SUFFIX}")


def safe_name(text: str) -> str:
    """A file name made of a scene's name."""
    return re.sub(r"[^\w.-]+", "-", text).strip("-.") or "recording"


def check_options(options: RecordOptions) -> None:
    """Refuses what is wrong whatever the scene, before any process is started."""
    if options.steps is not None and options.seconds is not None:
        raise OptionError("both --steps and --seconds are given", hint="give one of them")
    if options.steps is not None and not 1 <= options.steps <= MAX_STEPS:
        raise OptionError(f"--steps {options.steps} is out of range", hint=f"1 to {MAX_STEPS}")
    if options.seconds is not None and not (math.isfinite(options.seconds) and options.seconds > 0):
        raise OptionError(f"--seconds {options.seconds:g} is not a positive number")
    if options.fps is not None and not 1 <= options.fps <= MAX_FPS:
        raise OptionError(f"--fps {options.fps} is out of range", hint=f"1 to {MAX_FPS} frames per second")
    if options.size is not None and not all(MIN_SIZE <= x <= MAX_SIZE for x in options.size):
        wide, high = options.size
        raise OptionError(f"--size {wide}x{high} is out of range", hint=f"{MIN_SIZE} to {MAX_SIZE} pixels each way")
    if options.state_every < 1:
        raise OptionError(
            f"--state-every {options.state_every} is out of range", hint="1 keeps the state of every step"
        )
    if options.video is False and options.states is False:
        raise OptionError("nothing to record: both --no-video and --no-states are given")
    if options.select is not None and options.n_envs is not None:
        select_envs(options.select, options.n_envs)


def make_plan(options: RecordOptions, spec_json: str, timestep: float, n_envs: int, seed: int) -> Plan:
    """The plan for a scene that is loaded; options rule over the scene file."""
    scene: dict[str, Any] = json.loads(spec_json).get("recording", {}) if spec_json else {}

    def pick(given: Any, key: str, default: Any) -> Any:
        return given if given is not None else scene.get(key, default)

    steps, seconds = options.steps, options.seconds
    if steps is None and seconds is None:
        steps, seconds = scene.get("steps"), scene.get("seconds")
    if steps is None:
        steps = max(1, round((seconds or DEFAULT_SECONDS) / timestep))
    if steps > MAX_STEPS:
        raise OptionError(f"{seconds:g} s are {steps} steps of {timestep:g} s", hint=f"at most {MAX_STEPS} steps")
    fps = int(pick(options.fps, "fps", 30))
    video = bool(pick(options.video, "video", True))
    states = bool(pick(options.states, "states", True))
    if not (video or states):
        raise OptionError("nothing to record: the scene file and the options switch off both video and states")
    envs = select_envs(str(pick(options.select, "select", "first:4")), n_envs, seed)
    if not envs:
        raise OptionError("no environment is selected", hint="for example --select first:4, or --select all")
    if video and len(envs) > MAX_TILES and options.layout == "tiles":
        raise OptionError(
            f"{len(envs)} tiles do not fit into a video", hint=f"at most {MAX_TILES}; or use --layout world"
        )
    width, height = pick(options.size, "size", (1280, 720))
    return Plan(
        steps=steps,
        timestep=timestep,
        fps=fps,
        size=(int(width) // 2 * 2, int(height) // 2 * 2),  # H.264 stores colours of 2x2 pixels
        envs=envs,
        frame_steps=frame_steps(steps, timestep, fps) if video else [],
        camera=str(pick(options.camera, "camera", "")),
        video=video,
        states=states,
    )


def frame_steps(steps: int, timestep: float, fps: int) -> list[int]:
    """After how many steps each video frame is taken: frame k, shown from k / fps on, has the state nearest to then.

    The frames cover the run exactly: 300 steps of 0.01 s are 90 frames at 30 per second.
    """
    count = max(1, math.ceil(steps * timestep * fps - 1e-6))
    return [min(steps, int(k / fps / timestep + 0.5 + 1e-9)) for k in range(count)]

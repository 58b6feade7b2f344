"""The whole protocol between the supervisor and its workers.

Two kinds: an *event* is ordered and never lost (it travels over the pipe); a *snapshot* may be dropped, the newest wins
(Telemetry over the pipe, poses through shared memory). Everything is MessagePack by msgspec; nothing is unpickled.
Environment numbers are global; `share` says which of them a worker owns.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from genesis_core.layout.scene import SceneBundle, decode, encode


class Message(msgspec.Struct, tag=True, kw_only=True):
    """Base of everything that crosses the pipe."""


# ---------------------------------------------------------------- configuration


class SceneRequest(msgspec.Struct, kw_only=True):
    """Which scene: a file, or a scene specification as JSON."""

    path: str = ""
    spec_json: str = ""
    overrides: dict[str, Any] = {}


class WorkerConfig(msgspec.Struct, kw_only=True):
    """What one worker process is and does."""

    index: int
    device: str  # "cpu", "cpu:0"
    scene: SceneRequest
    n_workers: int = 1
    n_envs: int = 0  # of all workers together; 0 = what the scene asks for
    precision: str = ""  # "" = what the scene asks for
    seed: int | None = None
    threads: int = 1
    on_diverge: str = "reset"
    parent_pid: int = 0
    die_with_thread: bool = True  # the kernel ends the worker with the thread that started it (see guard.py)
    log_file: str = ""


def share(n_envs: int, n_workers: int, index: int) -> tuple[int, int]:
    """First environment and number of environments of a worker; shares differ by one at most."""
    base, more = divmod(n_envs, n_workers)
    return index * base + min(index, more), base + (index < more)


# ---------------------------------------------------------------- down: supervisor -> worker (events)


class Compile(Message):
    """Go on from the loaded scene to compiled kernels (the first worker compiles, the others find the cache full)."""


class Play(Message):
    """Run from now on."""


class Pause(Message):
    """Stop at the end of the current chunk of steps."""


class Step(Message):
    """Take n steps; leaves the worker paused."""

    n: int = 1


class Reset(Message):
    """Back to the start states; None = all of the worker's environments."""

    envs: list[int] | None = None


class SetSpeed(Message):
    """Simulated seconds per wall second; None = as fast as it goes."""

    factor: float | None = 1.0


class Show(Message):
    """Publish the poses of these environments; shared memory `shm` holds `capacity` of them ("" = over the pipe)."""

    envs: list[int]
    shm: str = ""
    capacity: int = 0
    generation: int = 0


class Perturb(Message):
    """Pull on a body as the mouse does: a spring from `point` (body frame) to `target` (environment's world frame).

    `active=False` lets go. `torque` [N m], world frame, is added as it is.
    """

    env: int
    body: int
    active: bool = True
    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    target: tuple[float, float, float] = (0.0, 0.0, 0.0)
    torque: tuple[float, float, float] = (0.0, 0.0, 0.0)


class SetCtrl(Message):
    """Hold these controls from now on (the scene's own drive stops); env None = all environments."""

    values: list[float]
    env: int | None = None


class SetQpos(Message):
    """Put one environment into a configuration, at rest."""

    env: int
    values: list[float]


class Record(Message):
    """Run `steps` steps as fast as they are taken, sending frames and states of the selected environments on the way.

    Frame k of the video shows the state after step frame_steps[k]. States are sent every `state_every` steps, in runs
    of `chunk`. Poses of `camera_bodies` come with each frame.
    """

    steps: int
    frame_steps: list[int] = []
    video_envs: list[int] = []
    camera_bodies: list[int] = []
    state_envs: list[int] = []
    state_every: int = 0
    chunk: int = 32


class Pose(Message):
    """Place the first len(qpos) environments of the worker into configurations and send their geoms' poses.

    The answer is a RecordedFrame of the same index. `states` holds qpos (n, nq) and, where the model has them,
    mocap_pos (n, nmocap, 3) and mocap_quat (n, nmocap, 4).
    """

    index: int
    states: dict[str, np.ndarray]
    camera_bodies: list[int] = []


class Shutdown(Message):
    """Finish the current chunk and exit."""


# ---------------------------------------------------------------- up: worker -> supervisor


class Hello(Message):
    """The worker lives; sent before anything heavy is imported."""

    pid: int


class Progress(Message):
    """Where loading or compiling stands, fraction 0..1."""

    stage: str
    fraction: float


class SceneLoaded(Message):
    """The scene is read and compiled; it can be shown at its start states before any kernel exists."""

    bundle: SceneBundle
    n_envs: int  # of all workers together
    env_spacing: tuple[float, float]
    files: list[str] = []  # files that were read, for hot reload
    spec_json: str = ""  # the SceneSpec: defaults for the view and for recordings
    seconds: float = 0.0


class Ready(Message):
    """Kernels are compiled, environments stand at their start states."""

    seconds: float
    width: int
    threads: int
    bytes_per_env: int


class State(Message):
    """What the worker does now, sent on every change: "loading", "compiling", "paused", "running", "recording"."""

    state: str


class Telemetry(Message):
    """A snapshot about three times a second, and sign of life while compiling."""

    time: float = 0.0  # [s] simulated
    steps: int = 0  # taken since the start
    steps_per_second: float = 0.0
    env_steps_per_second: float = 0.0
    realtime_factor: float = 0.0
    n_envs: int = 0
    memory: int = 0  # [byte] resident
    cpu_percent: float = 0.0
    nan_count: int = 0
    overflow: int = 0
    stats: dict[str, float] = {}


class Attached(Message):
    """Shared memory of this generation is mapped: its name may be removed."""

    generation: int


class FrameData(Message):
    """Poses of the shown environments over the pipe, where shared memory cannot be had."""

    generation: int
    payload: bytes


class Diagnostic(Message):
    """Something the user should know. level: "info", "warning", "error"."""

    level: str
    text: str
    where: str = ""
    hint: str = ""


class Failed(Message):
    """The worker cannot go on: what, where, hint, as genesis_core's errors say it. `internal`: not the user's fault."""

    kind: str
    text: str
    where: str = ""
    hint: str = ""
    file: str = ""
    line: int | None = None
    element: str = ""
    internal: bool = False


class RecordedFrame(Message):
    """Geom poses for video frame `index`: (len(video_envs of this worker), ngeom, 12) float32.

    `bodies` (n, k, 7) holds positions and quaternions of the Record's camera_bodies.
    """

    index: int
    time: float
    rows: np.ndarray
    bodies: np.ndarray | None = None


class RecordedStates(Message):
    """A run of recorded states; `start` counts moments from the begin of the recording.

    arrays: step (T,), time (T,) on the common clock, and per environment, time-major: env_time (T, n), qpos (T, n, nq),
    qvel (T, n, nv), ctrl (T, n, nu) and, where the model has them, act, mocap_pos and mocap_quat.
    """

    start: int
    arrays: dict[str, np.ndarray]


class Diverged(Message):
    """The last moments of environments that went bad, for a recording; arrays as in RecordedStates, one run of them.

    The last moment is the last good one: the next step from there is the one that failed.
    """

    envs: list[int]
    arrays: dict[str, np.ndarray]


class RecordDone(Message):
    """All steps of a Record message are taken."""

    steps: int  # of this recording
    seconds: float  # of wall time
    nan_count: int = 0


class Bye(Message):
    """Last message of an orderly end."""


# ---------------------------------------------------------------- made by the supervisor itself


class WorkerDied(Message):
    """A worker ended without saying so. `log_tail` is what it wrote last."""

    exitcode: int | None
    log_tail: str = ""


class WorkerSilent(Message):
    """No sign of life for `seconds`."""

    seconds: float


DOWN = Compile | Play | Pause | Step | Reset | SetSpeed | Show | Perturb | SetCtrl | SetQpos | Record | Pose | Shutdown
UP = (
    Hello | Progress | SceneLoaded | Ready | State | Telemetry | Attached | FrameData | Diagnostic | Failed
    | RecordedFrame | RecordedStates | RecordDone | Diverged | Bye
)  # fmt: skip


def pack(message: Message) -> bytes:
    """One message as bytes."""
    return encode(message)


def unpack_down(data: bytes) -> Message:
    """A message for a worker; msgspec.ValidationError where the bytes are none."""
    return decode(data, DOWN)


def unpack_up(data: bytes) -> Message:
    """A message from a worker; msgspec.ValidationError where the bytes are none."""
    return decode(data, UP)


def failure(error: BaseException) -> Failed:
    """An exception as a message."""
    from genesis_core.errors import GenesisError, SceneError

    if isinstance(error, SceneError):
        return Failed(
            kind=type(error).__name__,
            text=error.what,
            where=error.where,
            hint=error.hint,
            file=error.file or "",
            line=error.line,
            element=error.element,
        )
    if isinstance(error, GenesisError):
        return Failed(kind=type(error).__name__, text=error.what, where=error.where, hint=error.hint)
    return Failed(kind=type(error).__name__, text=str(error) or type(error).__name__, internal=True)

"""Session: one scene, running in one worker process per device, watched from outside.

No Qt, no asyncio, no threads: the owner waits on `fds()` (or polls) and calls `pump()`, which returns what happened.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import multiprocessing
import os
import signal
import tempfile
import time
import weakref
from collections.abc import Container, Iterable, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

import msgspec
import numpy as np

from genesis_core import errors
from genesis_core.backend.devices import thread_share
from genesis_core.backend.resolve import device_environment, slice_numbers
from genesis_core.errors import GenesisError, OptionError, SceneError, StateError, WorkerError
from genesis_core.layout.scene import SceneBundle, decode, encode
from genesis_core.log import get_logger
from genesis_core.runtime import messages as msg
from genesis_core.runtime.channel import Channel, ChannelClosed
from genesis_core.runtime.shm import Frame, FrameBuffer, FrameShape
from genesis_core.runtime.spawn import from_main_thread, spawn
from genesis_core.runtime.worker import log_tail, main

log = get_logger(__name__)

SILENCE = 2.0  # [s] without a sign of life
LOADING_SILENCE = 30.0  # [s] importing and compiling in LLVM may hold the interpreter's lock for seconds
PUMP_LIMIT = 64  # messages of one worker per pump, so that a talkative one does not hold the caller up
KEPT_LOGS = 40  # files of earlier runs
MAX_ENVS = 1 << 20


class SessionConfig(msgspec.Struct, kw_only=True):
    """What to run where. n_envs counts all workers; None takes what the scene file asks for."""

    scene: msg.SceneRequest
    devices: tuple[str, ...] = ("cpu",)
    n_envs: int | None = None
    precision: str | None = None  # None takes what the scene file asks for
    seed: int | None = None
    threads: int | None = None  # per worker; None shares the cores out
    on_diverge: str = "reset"


class SessionEvent(msgspec.Struct):
    """One message of one worker."""

    worker: int
    message: msg.Message


def failure_of(event: SessionEvent, session: Session) -> GenesisError:
    """The error to raise for a Failed, WorkerDied or early Bye message of a worker."""
    message, log_file = event.message, session.log_file(event.worker)
    name = f"worker {event.worker} ({session.config.devices[event.worker]})"
    if isinstance(message, msg.Failed):
        kind = getattr(errors, message.kind, None)
        if kind is SceneError and message.file:
            return SceneError(
                message.text, file=message.file, line=message.line, element=message.element, hint=message.hint
            )
        if isinstance(kind, type) and issubclass(kind, GenesisError):
            return kind(message.text, where=message.where, hint=message.hint)
        return WorkerError(f"{name} failed: {message.kind}: {message.text}", hint=f"its log: {log_file}")
    if isinstance(message, msg.WorkerDied):
        code = message.exitcode
        how = f"exit code {code}"
        if code is not None and code < 0:
            how = (
                f"signal {-code} ({signal.Signals(-code).name})" if -code in set(signal.Signals) else f"signal {-code}"
            )
        tail = "".join(f"\n    {line}" for line in message.log_tail.splitlines()[-8:])
        return WorkerError(f"{name} died by {how}", hint=f"its log: {log_file}{tail}")
    return WorkerError(f"{name} ended early", hint=f"its log: {log_file}")


class _Worker:
    """A worker process as the supervisor sees it."""

    def __init__(self, config: msg.WorkerConfig) -> None:
        self.config = config
        self.process: BaseProcess | None = None
        self.channel: Channel | None = None
        self.last_sign = time.monotonic()
        self.silent = False
        self.ended = False  # said Bye, failed or died: nothing more to expect
        self.state = "starting"
        self.telemetry = msg.Telemetry()
        self.progress: tuple[str, float] = ("starting", 0.0)
        self.buffer: FrameBuffer | None = None
        self.read_number = -1
        self.generation = 0
        self.frame: Frame | None = None

    def release_buffer(self) -> None:
        if self.buffer is not None:
            self.buffer.unlink()
            self.buffer.close()
            self.buffer = None
        self.read_number = -1


class Session:
    """Starts, steers and watches the workers of one scene."""

    def __init__(self, config: SessionConfig) -> None:
        _check(config)
        self.config = config
        self.bundle: SceneBundle | None = None
        self.n_envs = config.n_envs or 0
        self.env_spacing: tuple[float, float] = (1.0, 1.0)
        self.closed = False
        self._started = False
        self._shown: list[int] = []
        self._running = False
        self.spec_json = ""
        self._logs = log_folder()
        count = len(config.devices)
        threads = config.threads or max(1, thread_share() // count)
        self._slices = slice_numbers(config.devices)
        self._workers = [
            _Worker(
                msg.WorkerConfig(
                    index=i,
                    device=device,
                    scene=config.scene,
                    n_workers=count,
                    n_envs=config.n_envs or 0,
                    precision=config.precision or "",
                    seed=config.seed,
                    threads=threads,
                    on_diverge=config.on_diverge,
                    parent_pid=os.getpid(),
                    log_file=str(self._logs / f"{os.getpid()}-{next(_session_numbers)}-worker-{i}.log"),
                )
            )
            for i, device in enumerate(config.devices)
        ]
        _open_sessions.add(self)

    # ------------------------------------------------------------------ life
    def start(self) -> None:
        """Spawns the workers. They load at once; the first compiles the kernels, the others follow."""
        if self.closed:
            raise StateError("the session is closed", hint="make a new Session")
        if self._started:
            raise StateError("the session is started already")
        self._started = True
        for worker in self._workers:
            self._spawn(worker)

    def _spawn(self, worker: _Worker) -> None:
        worker.config.die_with_thread = from_main_thread()
        ours, theirs = multiprocessing.Pipe(duplex=True)
        config = worker.config
        process = spawn(
            main,
            (theirs, encode(config)),
            f"genesis-{config.device}",
            device_environment(config.device, config.threads, self._slices),
        )
        theirs.close()
        worker.process = process
        worker.channel = Channel(ours, msg.unpack_up)
        worker.last_sign = time.monotonic()
        worker.silent = worker.ended = False
        worker.state = "starting"
        worker.frame = None

    def restart(self, index: int) -> None:
        """A new process for a worker that ended; its environments begin at their start states."""
        worker = self._workers[index]
        if not worker.ended:
            raise StateError(f"worker {index} is alive", hint="only a worker that ended can be restarted")
        self._reap(worker)
        self._spawn(worker)
        self._send(worker, msg.Compile())

    def close(self, timeout: float = 3.0) -> None:
        """Ends all workers: asks, then terminates, then kills. May be called again, at any moment."""
        if self.closed:
            return
        self.closed = True
        for worker in self._workers:
            self._send(worker, msg.Shutdown())
        deadline = time.monotonic() + timeout
        for worker in self._workers:
            self._drain(worker, deadline)
        for worker in self._workers:
            self._reap(worker)

    def _drain(self, worker: _Worker, deadline: float) -> None:
        """Reads what a worker still says until it ends: a full pipe must not keep it alive."""
        process, channel = worker.process, worker.channel
        while process is not None and channel is not None and process.is_alive() and time.monotonic() < deadline:
            try:
                if channel.poll(0.05):
                    channel.receive()
            except (ChannelClosed, msgspec.ValidationError):
                process.join(max(0.0, deadline - time.monotonic()))
                return

    def _reap(self, worker: _Worker) -> None:
        process = worker.process
        if process is not None:
            for stop in (process.terminate, process.kill):
                if process.is_alive():
                    stop()
                    process.join(1.0)
            process.join(1.0)
            with contextlib.suppress(ValueError):
                process.close()
            worker.process = None
        if worker.channel is not None:
            worker.channel.close()
            worker.channel = None
        worker.release_buffer()
        worker.ended = True
        if worker.state not in ("failed", "died"):
            worker.state = "ended"

    def __enter__(self) -> Session:
        if not self._started:
            self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # ------------------------------------------------------------------ watching
    def fds(self) -> list[int]:
        """File descriptors that become readable when there is something to pump."""
        return [w.channel.fileno() for w in self._workers if w.channel is not None and not w.ended]

    def wait(self, timeout: float, skip: Container[int] = ()) -> None:
        """Blocks until a worker (none of `skip`) says something, at most `timeout` seconds."""
        from multiprocessing.connection import wait

        channels = [
            w.channel.connection
            for i, w in enumerate(self._workers)
            if w.channel is not None and not w.ended and i not in skip
        ]
        if channels:
            wait(channels, timeout)
        elif any(not w.ended for w in self._workers):
            time.sleep(timeout)

    def pump(self, skip: Container[int] = ()) -> list[SessionEvent]:
        """Reads what the workers said since the last call, and notices the dead and the silent.

        Workers in `skip` are not listened to: one that sends recorded data waits until it is heard again.
        """
        events: list[SessionEvent] = []
        for index, worker in enumerate(self._workers):
            if worker.ended or worker.channel is None:
                continue
            if index in skip:
                worker.last_sign = time.monotonic()
                continue
            try:
                for _ in range(PUMP_LIMIT):
                    if not worker.channel.poll():
                        break
                    message = worker.channel.receive()
                    worker.last_sign = time.monotonic()
                    worker.silent = False
                    if self._note(worker, message):
                        events.append(SessionEvent(index, message))
            except ChannelClosed:
                if not worker.ended:
                    events.append(SessionEvent(index, self._died(worker)))
            except msgspec.ValidationError as error:
                events.append(SessionEvent(index, msg.Diagnostic(level="error", text=f"unreadable message: {error}")))
            quiet = time.monotonic() - worker.last_sign
            limit = SILENCE if worker.state in ("paused", "running", "recording") else LOADING_SILENCE
            if quiet > limit and not worker.silent and not worker.ended:
                worker.silent = True
                events.append(SessionEvent(index, msg.WorkerSilent(seconds=quiet)))
        return events

    def _died(self, worker: _Worker) -> msg.WorkerDied:
        worker.ended = True
        worker.state = "died"
        assert worker.process is not None
        worker.process.join(1.0)
        worker.release_buffer()
        return msg.WorkerDied(exitcode=worker.process.exitcode, log_tail=log_tail(worker.config.log_file))

    def _note(self, worker: _Worker, message: msg.Message) -> bool:
        """Keeps what the session itself needs; False where nobody else need hear of it."""
        match message:
            case msg.SceneLoaded():
                self.bundle = message.bundle
                self.n_envs = message.n_envs
                self.env_spacing = message.env_spacing
                self.spec_json = message.spec_json
            case msg.Ready():
                self._on_ready(worker)
            case msg.State(state=state):
                worker.state = state
            case msg.Telemetry():
                worker.telemetry = message
            case msg.Progress(stage=stage, fraction=fraction):
                worker.progress = (stage, fraction)
            case msg.Attached(generation=generation):
                if worker.buffer is not None and generation == worker.generation:
                    worker.buffer.unlink()
                return False
            case msg.FrameData(payload=payload, generation=generation):
                if generation == worker.generation:
                    worker.release_buffer()  # the worker could not map it
                    worker.frame = decode(payload, Frame)
                    worker.read_number += 1
                return False
            case msg.Failed():
                worker.ended, worker.state = True, "failed"
            case msg.Bye():
                worker.ended, worker.state = True, "ended"
        return True

    def _on_ready(self, worker: _Worker) -> None:
        if worker.config.index == 0:
            for other in self._workers[1:]:
                self._send(other, msg.Compile())
        if self._shown:
            self._show_on(worker)
        if self._running:
            self._send(worker, msg.Play())

    # ------------------------------------------------------------------ facts
    @property
    def n_workers(self) -> int:
        return len(self._workers)

    @property
    def states(self) -> list[str]:
        """State of each worker."""
        return [w.state for w in self._workers]

    @property
    def ready(self) -> bool:
        """Whether every worker has compiled kernels."""
        return all(w.state in ("paused", "running", "recording") for w in self._workers)

    @property
    def telemetry(self) -> list[msg.Telemetry]:
        """The newest telemetry of each worker."""
        return [w.telemetry for w in self._workers]

    @property
    def pids(self) -> list[int | None]:
        """Process ids of the workers."""
        return [w.process.pid if w.process is not None else None for w in self._workers]

    def log_file(self, index: int) -> str:
        """Where a worker's output goes."""
        return self._workers[index].config.log_file

    def log_tail(self, index: int) -> str:
        """What a worker printed last."""
        return log_tail(self._workers[index].config.log_file)

    # ------------------------------------------------------------------ steering
    def play(self) -> None:
        self._running = True
        self._send_all(msg.Play())

    def pause(self) -> None:
        self._running = False
        self._send_all(msg.Pause())

    def step(self, n: int = 1) -> None:
        """n steps of every environment; pauses."""
        if n < 1:
            raise OptionError(f"n = {n} steps", hint="give at least 1")
        self._running = False
        self._send_all(msg.Step(n=n))

    def reset(self, envs: Iterable[int] | None = None) -> None:
        """Environments (all when None) back to their start states."""
        self._send_all(msg.Reset(envs=None if envs is None else [int(e) for e in envs]))

    def set_speed(self, factor: float | None) -> None:
        """Simulated seconds per wall second; None = as fast as it goes."""
        if factor is not None and not (0 < factor < 1e6):
            raise OptionError(f"speed = {factor}", hint="give a positive number, or None for as fast as it goes")
        self._send_all(msg.SetSpeed(factor=factor))

    def perturb(self, pull: msg.Perturb) -> None:
        self._send_all(pull)

    def set_ctrl(self, values: Sequence[float], env: int | None = None) -> None:
        """Holds the controls `values` (nu,) in one environment, or in all."""
        self._send_all(msg.SetCtrl(values=[float(v) for v in values], env=env))

    def set_qpos(self, env: int, values: Sequence[float]) -> None:
        """Puts one environment into a configuration (nq,), at rest."""
        self._send_all(msg.SetQpos(env=env, values=[float(v) for v in values]))

    def record(self, job: msg.Record) -> None:
        """Starts a recording; its frames and states come out of `pump`."""
        self._send_all(job)

    def pose(self, job: msg.Pose, worker: int = 0) -> None:
        """Asks for the poses of recorded states; a RecordedFrame comes out of `pump`."""
        self._send(self._workers[worker], job)

    def show(self, envs: Sequence[int]) -> None:
        """Publish these environments from now on."""
        self._shown = [int(e) for e in dict.fromkeys(envs)]
        wrong = [e for e in self._shown if not 0 <= e < self.n_envs]
        if wrong:
            raise OptionError(f"environment {wrong[0]} does not exist", hint=f"numbers go from 0 to {self.n_envs - 1}")
        for worker in self._workers:
            if worker.state in ("paused", "running", "recording"):
                self._show_on(worker)

    def _show_on(self, worker: _Worker) -> None:
        first, count = msg.share(self.n_envs, self.n_workers, worker.config.index)
        mine = [e for e in self._shown if first <= e < first + count]
        assert self.bundle is not None
        if worker.buffer is None or worker.buffer.shape.capacity < len(mine):
            worker.release_buffer()
            worker.generation += 1
            bundle = self.bundle
            shape = FrameShape(max(1, len(mine)), bundle.ngeom, bundle.nq, bundle.nv, bundle.nu)
            try:
                worker.buffer = FrameBuffer.create(shape)
            except GenesisError as error:
                log.warning("%s; poses of worker %d travel over its pipe", error, worker.config.index)
        worker.frame = None
        name, capacity = "", 0
        if worker.buffer is not None:
            name, capacity = worker.buffer.memory.name, worker.buffer.shape.capacity
        self._send(worker, msg.Show(envs=mine, shm=name, capacity=capacity, generation=worker.generation))

    def frame(self) -> Frame | None:
        """The newest poses of the shown environments in the order asked for; None if nothing is new."""
        fresh = False
        for worker in self._workers:
            if worker.buffer is not None:
                got = worker.buffer.read(worker.read_number)
                if got is not None:
                    worker.read_number, worker.frame = got
                    fresh = True
            elif worker.frame is not None and worker.read_number >= 0:
                worker.read_number, fresh = -1, True
        frames = [w.frame for w in self._workers if w.frame is not None]
        if not fresh or not frames:
            return None
        return _merged(frames, self._shown)

    # ------------------------------------------------------------------ sending
    def _send_all(self, message: msg.Message) -> None:
        if self.closed:
            raise StateError("the session is closed", hint="make a new Session")
        for worker in self._workers:
            self._send(worker, message)

    def _send(self, worker: _Worker, message: msg.Message) -> None:
        if worker.channel is not None and not worker.ended:
            with contextlib.suppress(ChannelClosed):  # its death is told by the next pump
                worker.channel.send(message)


def _merged(frames: list[Frame], shown: list[int]) -> Frame:
    """Frames of several workers as one, in the order of `shown`; environments not shown any more are left out."""
    names = ("time", "envs", "rows", "qpos", "qvel", "ctrl")
    joined = {name: np.concatenate([getattr(f, name) for f in frames]) for name in names}
    place = {int(env): i for i, env in enumerate(joined["envs"])}
    order = [place[e] for e in shown if e in place]
    return Frame(step=max(f.step for f in frames), **{name: part[order] for name, part in joined.items()})


def _check(config: SessionConfig) -> None:
    n = config.n_envs
    if n is not None and not 1 <= n <= MAX_ENVS:
        raise OptionError(f"n_envs = {n}", hint=f"give a number from 1 to {MAX_ENVS}")
    if not config.devices:
        raise OptionError("no device given", hint='for example devices=("cpu",)')
    if len(set(config.devices)) != len(config.devices):
        raise OptionError(f"devices {', '.join(config.devices)} name one twice", hint="cpu:2 means two CPU workers")
    if n is not None and n < len(config.devices):
        raise OptionError(f"n_envs = {n} cannot be shared by {len(config.devices)} workers")
    if config.precision not in (None, "32", "64"):
        raise OptionError(f"precision = {config.precision!r}", hint='choose "32" or "64"')


_session_numbers = itertools.count(1)


def log_folder() -> Path:
    """The folder of the workers' logs, with the logs of old runs removed."""
    import platformdirs

    folder = Path(platformdirs.user_log_path("genesis-studio", appauthor=False))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        old = sorted(folder.glob("*-worker-*.log"), key=lambda p: p.stat().st_mtime)
        for path in old[:-KEPT_LOGS]:
            path.unlink(missing_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="genesis-studio-"))


_open_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for session in list(_open_sessions):
        session.close()

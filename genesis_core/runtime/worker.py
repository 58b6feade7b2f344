"""The worker process: loads the scene, compiles the kernels, steps its environments, publishes what is shown."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from genesis_core.errors import GenesisError
from genesis_core.log import get_logger
from genesis_core.runtime import messages as msg
from genesis_core.runtime.channel import Channel, ChannelClosed
from genesis_core.runtime.guard import end_with_parent
from genesis_core.runtime.pacer import Pacer
from genesis_core.runtime.shm import Frame, FrameBuffer, FrameShape
from genesis_core.runtime.status import Status, StatusFile

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from genesis_core.compiler.load import LoadedScene
    from genesis_core.runtime.host import Host

log = get_logger(__name__)

HEARTBEAT = 0.3  # [s]
FRAME_INTERVAL = 1 / 60  # [s] of wall time between published frames
PIPE_FRAME_INTERVAL = 1 / 20
IDLE_WAIT = 0.05  # [s]


def main(connection: Connection, config_bytes: bytes) -> None:
    """Entry point of the spawned process."""
    config = msg.decode(config_bytes, msg.WorkerConfig)
    end_with_parent(config.parent_pid, config.die_with_thread)
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is the supervisor's business
    _redirect_output(config.log_file)
    channel = Channel(connection, msg.unpack_down)
    try:
        channel.send(msg.Hello(pid=os.getpid()))
        Worker(config, channel).run()
    except ChannelClosed:
        log.info("the supervisor is gone")
    except BaseException as error:
        traceback.print_exc()
        with contextlib.suppress(ChannelClosed):
            channel.send(msg.failure(error))
    finally:
        with contextlib.suppress(ChannelClosed):
            channel.send(msg.Bye())
        channel.close()
        sys.stderr.flush()


def _redirect_output(path: str) -> None:
    """Everything that this process and its C libraries print goes to the log file."""
    if not path:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.close(descriptor)
    sys.stdout = os.fdopen(1, "w", buffering=1)
    sys.stderr = os.fdopen(2, "w", buffering=1)


class Worker:
    """The message loop."""

    def __init__(self, config: msg.WorkerConfig, channel: Channel) -> None:
        self.config = config
        self.channel = channel
        self.state = ""
        self.running = False
        self.stopping = False
        self.host: Host | None = None
        self.pacer = Pacer(1.0)
        self.telemetry = msg.Telemetry()
        self._inbox: list[msg.Message] = []
        self._shown: list[int] = []
        self._generation = 0
        self._buffer: FrameBuffer | None = None
        self._published = 0.0
        self._dirty = False
        self._nan_reported = 0
        self._meter = (time.perf_counter(), 0)
        self._status_file = StatusFile(f"worker-{config.index}")

    # ------------------------------------------------------------------ life
    def run(self) -> None:
        """From loading to the end."""
        threading.Thread(target=self._heartbeat, name="heartbeat", daemon=True).start()
        try:
            if self._prepare():
                self._loop()
        except GenesisError as error:
            log.error("%s", error)
            self.channel.send(msg.failure(error))
        finally:
            self.stopping = True
            self._status_file.close()
            if self.host is not None:
                self.host.sim.close()
            if self._buffer is not None:
                self._buffer.close()

    def _set_state(self, state: str) -> None:
        if state != self.state:
            self.state = state
            self.channel.send(msg.State(state=state))

    def _heartbeat(self) -> None:
        """Signs of life from a thread of its own: compiling and long chunks of steps must not look like death."""
        while not self.stopping:
            if self._status_file.due():
                with contextlib.suppress(Exception):  # whatever psutil meets: the sign of life is what counts
                    self._status_file.publish(self._status())
            try:
                self.channel.offer(self.telemetry)
            except ChannelClosed:
                return
            time.sleep(HEARTBEAT)

    def _status(self) -> Status:
        """The telemetry for `genesis-studio top`."""
        now, config, file = self.telemetry, self.config, self._status_file
        return Status(
            pid=os.getpid(),
            born=file.born,
            title=Path(config.scene.path).stem or "scene",
            device=config.device,
            parent=config.parent_pid,
            state=self.state,
            n_envs=now.n_envs,
            steps=now.steps,
            time=now.time,
            steps_per_second=now.steps_per_second,
            env_steps_per_second=now.env_steps_per_second,
            realtime_factor=now.realtime_factor,
            memory=now.memory or file.process.memory_info().rss,
            cpu_percent=now.cpu_percent,
            nan_count=now.nan_count,
        )

    def _progress(self, stage: str, fraction: float) -> None:
        self.channel.send(msg.Progress(stage=stage, fraction=float(fraction)))
        self._collect()
        if any(isinstance(m, msg.Shutdown) for m in self._inbox):
            raise ChannelClosed  # cancelled while loading or compiling

    def _prepare(self) -> bool:
        """Loads and compiles; False when told to stop on the way."""
        self._set_state("loading")
        begin = time.perf_counter()
        loaded = self._load()
        total = self.config.n_envs or loaded.spec.n_envs
        if total < self.config.n_workers:
            raise GenesisError(
                f"{total} environment{'s' if total > 1 else ''} cannot be shared by {self.config.n_workers} workers",
                hint="use more environments or fewer devices",
            )
        if self.config.index == 0:
            self.channel.send(
                msg.SceneLoaded(
                    bundle=loaded.bundle,
                    n_envs=total,
                    env_spacing=(loaded.spec.env_spacing[0], loaded.spec.env_spacing[1]),
                    files=[str(f) for f in loaded.files],
                    spec_json=loaded.spec.model_dump_json(),
                    seconds=time.perf_counter() - begin,
                )
            )
        elif not self._wait_for(msg.Compile):
            return False
        self._set_state("compiling")
        begin = time.perf_counter()
        from genesis_core.runtime.host import Host

        first, count = msg.share(total, self.config.n_workers, self.config.index)
        self.host = Host(loaded, self.config, first, count, self._progress)
        self.pacer = Pacer(self.host.timestep)
        self.telemetry = msg.Telemetry(n_envs=count)
        sim = self.host.sim
        self.channel.send(
            msg.Ready(
                seconds=time.perf_counter() - begin,
                width=sim.width,
                threads=sim.threads,
                bytes_per_env=sim.bytes_per_env(),
            )
        )
        return True

    def _load(self) -> LoadedScene:
        from genesis_core.compiler.load import load_scene
        from genesis_core.compiler.scenefile import SceneSpec

        request = self.config.scene
        source = SceneSpec.model_validate_json(request.spec_json) if request.spec_json else request.path
        return load_scene(source, request.overrides or None, self._progress)

    # ------------------------------------------------------------------ messages
    def _collect(self) -> None:
        while self.channel.poll():
            self._inbox.append(self.channel.receive())

    def _wait_for(self, kind: type[msg.Message]) -> bool:
        """Waits for a message of a kind, keeping the others; False on Shutdown."""
        while True:
            for i, message in enumerate(self._inbox):
                if isinstance(message, msg.Shutdown):
                    return False
                if isinstance(message, kind):
                    del self._inbox[i]
                    return True
            self._inbox.append(self.channel.receive())

    def _loop(self) -> None:
        self._set_state("paused")
        self._dirty = True
        while not self.stopping:
            self._collect()
            while self._inbox and not self.stopping:
                self._handle(self._inbox.pop(0))
            if self.stopping:
                break
            self._advance()
            self._publish()

    def _advance(self) -> None:
        now = time.perf_counter()
        if not self.running:
            if not self._dirty:
                self.channel.poll(IDLE_WAIT)
            return
        assert self.host is not None
        steps = self.pacer.due(now)
        if steps == 0:
            self.channel.poll(min(IDLE_WAIT, self.pacer.wait(now)))
            return
        self.host.advance(steps)
        self.pacer.took(steps, time.perf_counter() - now)
        self._dirty = True
        self._measure()

    def _handle(self, message: msg.Message) -> None:
        """Carries out one event. A wrong value is told and does not end the worker."""
        try:
            self._carry_out(message)
        except GenesisError as error:
            self.channel.send(msg.Diagnostic(level="error", text=error.what, where=error.where, hint=error.hint))

    def _carry_out(self, message: msg.Message) -> None:
        assert self.host is not None
        now = time.perf_counter()
        match message:
            case msg.Play():
                self.running = True
                self.pacer.anchor(now)
                self._meter = (now, self.host.steps)
                self._set_state("running")
            case msg.Pause():
                self._pause()
            case msg.Step(n=n):
                self._pause()
                self.host.advance(max(0, n))
                self._measure(force=True)
            case msg.Reset(envs=envs):
                self.host.reset(envs)
            case msg.SetSpeed(factor=factor):
                self.pacer.set_factor(factor, now)
            case msg.Show():
                self._show(message)
            case msg.Perturb():
                self.host.perturb(message)
            case msg.SetCtrl(values=values, env=env):
                self.host.set_ctrl(values, env)
            case msg.SetQpos(env=env, values=values):
                self.host.set_qpos(env, values)
            case msg.Record():
                self._set_state("recording")
                self._record(message)
                self._set_state("paused")
            case msg.Pose():
                self.channel.send(self.host.pose(message))
            case msg.Shutdown():
                self.stopping = True
            case msg.Compile():
                pass
        self._dirty = True

    def _pause(self) -> None:
        self.running = False
        self._set_state("paused")
        self._measure(force=True)

    # ------------------------------------------------------------------ showing
    def _show(self, message: msg.Show) -> None:
        assert self.host is not None
        self._shown = [e for e in message.envs if self.host.owns(e)]
        if message.generation == self._generation and self._buffer is not None:
            return
        if self._buffer is not None:
            self._buffer.close()
            self._buffer = None
        self._generation = message.generation
        if message.shm:
            try:
                self._buffer = FrameBuffer.attach(message.shm, FrameShape(message.capacity, *self.host.sizes))
            except OSError as error:
                text = f"shared memory {message.shm} cannot be used ({error.strerror}); poses travel over the pipe"
                self.channel.send(msg.Diagnostic(level="warning", text=text))
        self.channel.send(msg.Attached(generation=message.generation))

    def _publish(self) -> None:
        """Publishes the shown environments when something changed and it is time."""
        if not self._dirty or not self._shown or self.host is None:
            self._dirty = self._dirty and bool(self._shown)
            return
        interval = FRAME_INTERVAL if self._buffer is not None else PIPE_FRAME_INTERVAL
        now = time.perf_counter()
        if self.running and now - self._published < interval:
            return
        self._published = now
        frame = self.host.frame(self._shown)
        if self._buffer is not None:
            self._buffer.write(frame)
            self._dirty = False
        else:
            data = msg.FrameData(generation=self._generation, payload=msg.encode(frame))
            self._dirty = not self.channel.offer(data)

    def _measure(self, force: bool = False, rate: bool = False) -> None:
        """Renews the telemetry about three times a second."""
        assert self.host is not None
        now = time.perf_counter()
        since, steps = self._meter
        if now - since < HEARTBEAT and not force:
            return
        moving = (self.running or rate) and now > since
        self._meter = (now, self.host.steps)
        self.telemetry = self.host.telemetry((self.host.steps - steps) / (now - since) if moving else 0.0)
        for report in self.host.news:
            self.channel.send(report)
        self.host.news.clear()
        if self.telemetry.nan_count > self._nan_reported:
            text = f"{self.telemetry.nan_count - self._nan_reported} environment states diverged (NaN or beyond 1e10)"
            self._nan_reported = self.telemetry.nan_count
            how = "were reset" if self.config.on_diverge == "reset" else "are frozen"
            self.channel.send(msg.Diagnostic(level="warning", text=f"{text} and {how}", hint="try a smaller timestep"))

    # ------------------------------------------------------------------ recording
    def _record(self, job: msg.Record) -> None:
        """Runs a recording; a Shutdown or Pause in the inbox ends it early."""
        assert self.host is not None
        begin = time.perf_counter()
        first = self.host.steps
        self._meter = (begin, first)
        for message in self.host.record(job):
            if message is not None:
                self.channel.send(message)
            self._measure(rate=True)
            self._collect()
            if any(isinstance(m, msg.Shutdown | msg.Pause) for m in self._inbox):
                break
        self._measure(force=True)
        self.channel.send(
            msg.RecordDone(
                steps=self.host.steps - first, seconds=time.perf_counter() - begin, nan_count=self.telemetry.nan_count
            )
        )


def log_tail(path: str, lines: int = 20) -> str:
    """The last lines of a worker's log."""
    with contextlib.suppress(OSError):
        return "\n".join(Path(path).read_text(errors="replace").splitlines()[-lines:])
    return ""


__all__ = ["Frame", "Worker", "log_tail", "main"]

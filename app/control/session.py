"""Who decides about sessions: opens scenes beside the running one, swaps when the new one is loaded, ends workers.

Nothing here waits: sessions are pumped by the frame pump, and closing one happens on a helper thread.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from app.model.intents import Intents
from app.model.state import MAX_SHOWN, AppState, Loading, Problem, WorkerFacts
from genesis_core.backend.resolve import resolve_devices
from genesis_core.errors import GenesisError
from genesis_core.log import get_logger
from genesis_core.record.diverged import Origin, default_folder, origin_of, save_diverged, told
from genesis_core.runtime import messages as msg
from genesis_core.runtime.select import select_envs
from genesis_core.runtime.supervisor import Session, SessionConfig, SessionEvent

log = get_logger(__name__)

DEFAULT_SHOWN = "first:16"


class SessionControl:
    """Owns the running session and the one that is loading."""

    def __init__(self, state: AppState, intents: Intents) -> None:
        self.state = state
        self.intents = intents
        self.current: Session | None = None
        self.pending: Session | None = None
        self._pending_path = ""
        self._loaded: msg.SceneLoaded | None = None  # of the running session
        self._closing: set[asyncio.Future[Any]] = set()
        intents.open_path.connect(self.open)
        intents.load.connect(self.load)
        intents.stop.connect(self.stop)
        intents.cancel.connect(self.cancel)
        intents.restart_worker.connect(self.restart_worker)
        bind = state.commands.bind
        bind("file.reload", self.reload)
        bind("file.close", self.stop)
        bind("sim.cancel", self.cancel)
        self._refresh_commands()

    # ------------------------------------------------------------------ wishes
    def open(self, path: str) -> None:
        """Opens a file with the settings of the Session dock; the present scene runs on until the new one is there."""
        wanted = self.state.wanted
        wanted.path = str(Path(path).expanduser())
        self.load()

    def reload(self) -> None:
        """The same file again."""
        if self.state.path:
            self.open(self.state.path)

    def load(self) -> None:
        """Starts a session for `wanted`."""
        wanted = self.state.wanted
        if not wanted.path:
            self._fail(Problem("No scene chosen", "choose a scene or drop a file on the window"))
            return
        self.cancel()
        self.state.set_problem(None)
        session: Session | None = None
        try:
            count = max(1, wanted.cpu_workers)
            text = f"cpu:{count}" if count > 1 else "cpu"
            config = SessionConfig(
                scene=msg.SceneRequest(path=wanted.path),
                devices=resolve_devices(text, wanted.backend),
                n_envs=wanted.n_envs,
                precision=wanted.precision,
                seed=wanted.seed,
            )
            session = Session(config)
            session.start()
        except (GenesisError, OSError) as error:
            if session is not None:
                self._close(session)  # some of its workers may run already
            if isinstance(error, OSError):
                self._fail(Problem("No worker process could be started", str(error)))
                return
            self._fail(Problem(f"{Path(wanted.path).name} cannot be started", error.what, error.where, error.hint))
            return
        self.pending, self._pending_path = session, wanted.path
        self.state.set_loading(Loading(wanted.path, "starting", 0.0))
        self._refresh_commands()

    def cancel(self) -> None:
        """Gives up what is loading; the scene before it stays, or the start page comes back."""
        if self.pending is not None:
            self._close(self.pending)
            self.pending = None
        elif self.current is not None and self.state.loading is not None:
            self.stop()
        self.state.set_loading(None)
        self._refresh_commands()

    def stop(self) -> None:
        """Ends everything and goes to the start page."""
        for session in (self.pending, self.current):
            if session is not None:
                self._close(session)
        self.pending = self.current = None
        self.state.set_loading(None)
        self.state.set_workers([])
        self.state.set_phase("empty")
        self.state.set_scene(None, "", 0, (1.0, 1.0))
        self._refresh_commands()

    def restart_worker(self, index: int) -> None:
        """A new process for a worker that died."""
        if self.current is not None:
            try:
                self.current.restart(index)
            except GenesisError as error:
                self.state.add_log("error", error.what, error.where, error.hint)
                return
            self.state.set_problem(None)
            self.state.add_log("info", f"worker {index} is started again")

    # ------------------------------------------------------------------ life
    def _close(self, session: Session) -> None:
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(None, session.close)
        self._closing.add(future)
        future.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Ends all workers and waits for it."""
        for session in (self.pending, self.current):
            if session is not None:
                self._close(session)
        self.pending = self.current = None
        if self._closing:
            await asyncio.gather(*self._closing, return_exceptions=True)

    # ------------------------------------------------------------------ facts
    def pump(self) -> None:
        """Hears all workers and takes the newest poses."""
        for session in (self.pending, self.current):
            if session is not None and not session.closed:
                for event in session.pump():
                    self._hear(session, event)
        if self.current is not None and not self.current.closed:
            frame = self.current.frame()
            if frame is not None:
                self.state.take_frame(frame)

    def _hear(self, session: Session, event: SessionEvent) -> None:
        if session is not self.current and session is not self.pending:
            return  # given up while its messages were being read
        message = event.message
        match message:
            case msg.Progress(stage=stage, fraction=fraction):
                self._progress(session, stage, fraction)
            case msg.SceneLoaded():
                if session is self.pending:
                    self._swap(session, message)
            case msg.Ready():
                self._ready(session, event.worker, message)
            case msg.State() | msg.Telemetry():
                self._facts(session)
            case msg.Diagnostic(level=level, text=text, where=where, hint=hint):
                self.state.add_log(level, text, where, hint)
            case msg.Diverged() as report:
                if session is self.current and self._loaded is not None:
                    self._keep(report, origin_of(self._loaded, session))
            case msg.Failed():
                self._failed(session, event.worker, message)
            case msg.WorkerDied(exitcode=code, log_tail=tail):
                self._died(session, event.worker, code, tail)
            case msg.WorkerSilent(seconds=seconds):
                device = session.config.devices[event.worker]
                self.state.add_log("warning", f"worker {event.worker} ({device}) is silent for {seconds:.1f} s")

    def _keep(self, report: msg.Diverged, origin: Origin) -> None:
        """Saves the last states of diverged environments, on a helper thread, and says where."""

        def save() -> str:
            return told(report, save_diverged(default_folder(), report, origin))

        def done(future: asyncio.Future[str]) -> None:
            self._closing.discard(future)
            error = future.exception()
            if error is None:
                self.state.add_log("info", future.result())
            else:
                self.state.add_log("warning", f"the states before diverging are not kept: {error}")

        future = asyncio.get_running_loop().run_in_executor(None, save)
        self._closing.add(future)
        future.add_done_callback(done)

    def _progress(self, session: Session, stage: str, fraction: float) -> None:
        preview = session is self.current
        if preview and session.ready:
            return
        path = self.state.path if preview else self._pending_path
        self.state.set_loading(Loading(path, stage, fraction, preview))

    def _swap(self, session: Session, loaded: msg.SceneLoaded) -> None:
        """The new scene takes the place of the old one."""
        if self.current is not None:
            self._close(self.current)
        self.current, self.pending = session, None
        self._loaded = loaded
        state, bundle = self.state, loaded.bundle
        spacing = state.wanted.spacing or loaded.env_spacing
        state.set_scene(bundle, self._pending_path, loaded.n_envs, spacing)
        state.settings.remember(self._pending_path)
        state.recent_changed.emit()
        state.set_phase("compiling")
        state.add_log(
            "info",
            f"{bundle.name or Path(self._pending_path).stem}: {bundle.nbody - 1} bodies, "
            f"{bundle.nv} degrees of freedom, {loaded.n_envs} environments, read in {loaded.seconds:.2f} s",
        )
        for text in bundle.warnings:
            state.add_log("warning", text, Path(self._pending_path).name)
        for text in bundle.unsupported:
            state.add_log("warning", f"not simulated: {text}", Path(self._pending_path).name)
        state.set_loading(Loading(self._pending_path, "compiling kernels", 0.0, True))
        self.show(state.wanted.show or _view(loaded.spec_json, "shown") or DEFAULT_SHOWN)
        follow = _view(loaded.spec_json, "follow")
        if follow in bundle.body_name:
            state.follow_body = bundle.body_name.index(follow)
        state.set_follow(bool(state.follow_body))
        session.play()  # runs as soon as its kernels are there
        self._refresh_commands()

    def _ready(self, session: Session, worker: int, ready: msg.Ready) -> None:
        session.set_speed(self.state.speed)
        device = session.config.devices[worker]
        self.state.add_log(
            "info",
            f"worker {worker} ({device}): kernels ready in {ready.seconds:.1f} s, "
            f"{ready.threads} thread{'s' * (ready.threads != 1)}, {ready.width} environments per vector, "
            f"{ready.bytes_per_env / 1024:.1f} KiB per environment",
        )
        self._facts(session)

    def _facts(self, session: Session) -> None:
        if session is not self.current:
            return
        states, found = session.states, []
        for device, name, t in zip(session.config.devices, states, session.telemetry, strict=True):
            running = name == "running"
            found.append(
                WorkerFacts(
                    device, name, t.env_steps_per_second if running else 0.0, t.realtime_factor if running else 0.0,
                    t.memory, t.cpu_percent, t.nan_count,
                )
            )  # fmt: skip
        if "running" in states:
            phase = "running"
        elif session.ready:
            phase = "paused"
        elif all(s in ("failed", "died", "ended") for s in states):
            phase = "failed"
        elif any(s in ("paused", "recording") for s in states):
            phase = "paused"
        else:
            phase = "compiling"
        if session.ready or phase in ("failed", "running"):
            self.state.set_loading(None)
        self.state.set_workers(found)
        self.state.set_phase(phase)
        self._refresh_commands()

    def _failed(self, session: Session, worker: int, failed: msg.Failed) -> None:
        path = self._pending_path if session is self.pending else self.state.path
        where = failed.where
        if failed.internal:
            title = f"{Path(path).name}: internal error ({failed.kind})"
            hint = failed.hint or f"the worker's log is {session.log_file(worker)}"
            problem = Problem(title, failed.text, where, hint, session.log_tail(worker))
        else:
            problem = Problem(f"{Path(path).name} cannot be opened", failed.text, where, failed.hint)
        self._lost(session, problem)

    def _died(self, session: Session, worker: int, code: int | None, tail: str) -> None:
        device = session.config.devices[worker]
        reason = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        log_file = session.log_file(worker)
        self._lost(
            session,
            Problem(
                f"Worker {worker} ({device}) ended",
                reason,
                log_file,
                f"{'the other workers run on; ' if len(session.config.devices) > 1 else ''}load the scene again"
                f"{'' if session is self.pending else ', or start the worker again in the Session panel'}",
                tail,
            ),
        )

    def _lost(self, session: Session, problem: Problem) -> None:
        if session is self.pending:
            self.pending = None
            self._close(session)
            self.state.set_loading(None)
            if self.current is None:
                self.state.set_phase("empty")
            else:
                self.state.wanted.path = self.state.path
        else:
            self._facts(session)
        self._fail(problem)
        self._refresh_commands()

    def _fail(self, problem: Problem) -> None:
        self.state.set_problem(problem)

    # ------------------------------------------------------------------ what is shown
    def show(self, selection: str) -> None:
        """Shows the environments that a selection names, at most MAX_SHOWN."""
        state = self.state
        if state.bundle is None:
            return
        try:
            envs = select_envs(selection, state.n_envs, seed=len(state.log))
        except GenesisError as error:
            state.add_log("warning", error.what, error.where, error.hint)
            envs = select_envs(DEFAULT_SHOWN, state.n_envs)
        self.show_envs(envs)

    def show_envs(self, envs: list[int]) -> None:
        """Shows these environments."""
        if len(envs) > MAX_SHOWN:
            self.state.add_log("info", f"{len(envs)} environments are chosen, the first {MAX_SHOWN} of them are drawn")
            envs = envs[:MAX_SHOWN]
        self.state.set_shown(envs)
        if self.current is not None and not self.current.closed:
            self.current.show(envs)

    def _refresh_commands(self) -> None:
        commands, state = self.state.commands, self.state
        open_scene = self.current is not None
        alive = open_scene and state.phase in ("running", "paused")
        for name in ("sim.play", "sim.step", "sim.step10", "sim.reset", "sim.reset_selected"):
            commands.set_enabled(name, alive)
        for name in (
            "file.reload",
            "file.close",
            "file.screenshot",
            "view.frame",
            "view.home",
            "view.front",
            "view.side",
            "view.top",
            "view.follow",
            "view.first1",
            "view.first4",
            "view.first16",
            "view.first64",
            "view.random16",
            "view.all",
        ):
            commands.set_enabled(name, open_scene)
        commands.set_enabled("sim.cancel", state.loading is not None)
        commands.set_checked("sim.play", state.phase == "running")


def _view(spec_json: str, name: str) -> str:
    """A text of the [view] table of a scene specification, "" where it does not say."""
    view = (msgspec.json.decode(spec_json) if spec_json else {}).get("view") or {}
    return str(view.get(name) or "")

"""Records a scene without a window: starts the workers, draws and encodes what they send, writes their states."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np

from genesis_core.layout.scene import SceneBundle
from genesis_core.record.claim import claimed
from genesis_core.record.diverged import origin_of, save_diverged, told
from genesis_core.record.plan import Plan, RecordOptions, Targets, check_options, make_plan
from genesis_core.record.recording import (
    RecordingMeta,
    RecordingWriter,
    chunk_length,
    copy_scene,
    prepare_folder,
    refuse_existing,
)
from genesis_core.runtime import messages as msg
from genesis_core.runtime.supervisor import Session, SessionConfig, SessionEvent, failure_of

if TYPE_CHECKING:
    from genesis_core.record.video import VideoWriter
    from genesis_core.record.view import CameraChoice, StudioView

AHEAD = 16  # video frames that a worker may be ahead of the picture that is drawn next
STOP_SECONDS = 15.0  # how long workers may take to stop
WAIT = 0.1  # [s]


class Reporter(Protocol):
    """Whoever tells the user how far it is."""

    def stage(self, text: str, fraction: float) -> None:
        """Loading and compiling."""

    def planned(self, plan: Plan, n_envs: int) -> None:
        """The plan is made."""

    def steps(self, done: int, total: int, env_steps_per_second: float) -> None:
        """Recording."""

    def warn(self, text: str) -> None:
        """Something the user should know."""


class RecordResult(msgspec.Struct, kw_only=True):
    """What came out."""

    scene: str
    n_envs: int
    envs: list[int]  # the recorded ones
    steps: int
    seconds: float  # [s] simulated
    wall_seconds: float
    env_steps_per_second: float
    frames: int = 0
    moments: int = 0
    nan_count: int = 0
    interrupted: bool = False
    video: str = ""
    picture: str = ""
    recording: str = ""
    renderer: str = ""
    unsupported: list[str] = []
    warnings: list[str] = []


class Stop:
    """Ctrl+C (and SIGTERM): the first one asks for an orderly end, the second one ends at once."""

    def __init__(self) -> None:
        self.requested = False
        self.signal = 0

    def _on_signal(self, number: int, frame: Any) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested, self.signal = True, number

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Signals come here as long as the context lasts; only the main thread may ask for that."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = [signal.SIGINT, signal.SIGTERM]
        before = {n: signal.signal(n, self._on_signal) for n in numbers}
        try:
            yield
        finally:
            for n, handler in before.items():
                signal.signal(n, handler)


class Interrupted(Exception):
    """Stopped before there was anything to keep."""


def record(options: RecordOptions, report: Reporter, stop: Stop | None = None) -> RecordResult:
    """Makes the recording that `options` ask for. Errors are GenesisErrors; Interrupted if stopped before any step.

    The video, the picture and the states are on disk and readable whatever ends this call.
    """
    check_options(options)
    targets = Targets.of(options)
    prepare_folder(options.out)
    wanted = [targets.video, targets.picture] * (options.video is not False)
    wanted += [targets.recording] * (options.states is not False)
    stop = stop or Stop()
    config = SessionConfig(
        scene=msg.SceneRequest(path=str(options.scene.resolve())),
        devices=options.devices,
        n_envs=options.n_envs,
        precision=options.precision,
        seed=options.seed,
    )
    with claimed(targets.recording):
        refuse_existing(wanted, options.force)
        with stop.watching(), Session(config) as session:
            return _Recorder(options, targets, session, report, stop).run()


def spec_value(loaded: msg.SceneLoaded, key: str) -> Any:
    """What the scene's specification says."""
    return msgspec.json.decode(loaded.spec_json)[key]


class _Recorder:
    """One recording in progress."""

    def __init__(
        self, options: RecordOptions, targets: Targets, session: Session, report: Reporter, stop: Stop
    ) -> None:
        self.options = options
        self.targets = targets
        self.session = session
        self.report = report
        self.stop = stop
        self.warnings: list[str] = []
        self.loaded: msg.SceneLoaded | None = None
        self.done: dict[int, msg.RecordDone] = {}
        self.view: StudioView | None = None
        self.video: VideoWriter | None = None
        self.states: RecordingWriter | None = None
        self.picture: np.ndarray | None = None
        self._pending: dict[int, dict[int, msg.RecordedFrame]] = {}  # frame -> worker -> poses
        self._newest: dict[int, int] = {}  # worker -> last frame that came
        self._next = 0  # frame to draw next

    # ------------------------------------------------------------------ course
    def run(self) -> RecordResult:
        self._until(lambda: self.loaded is not None)
        assert self.loaded is not None and self.session.bundle is not None
        bundle = self.session.bundle
        self.seed = int(spec_value(self.loaded, "seed")) if self.options.seed is None else self.options.seed
        self.plan = make_plan(self.options, self.loaded.spec_json, bundle.timestep, self.session.n_envs, self.seed)
        self.report.planned(self.plan, self.session.n_envs)
        for text in [f"not simulated: {u}" for u in bundle.unsupported] + bundle.warnings:
            self._warn(text)
        self._shares = [
            msg.share(self.session.n_envs, self.session.n_workers, i) for i in range(self.session.n_workers)
        ]
        self._owned = {i: [e for e in self.plan.envs if f <= e < f + n] for i, (f, n) in enumerate(self._shares)}
        try:
            camera = self._open_view(bundle) if self.plan.video else None
            self._until(lambda: self.session.ready)
            self._open_files()
            return self._record(camera)
        except BaseException:
            self._rescue()
            raise
        finally:
            if self.view is not None:
                self.view.close()

    def _open_view(self, bundle: SceneBundle) -> CameraChoice:
        """Rendering is made ready before the kernels are compiled: what fails should fail soon."""
        from genesis_core.record.view import StudioView, choose_camera

        camera = choose_camera(self.plan.camera, bundle)
        # tiles are drawn in the order asked for; the workers send theirs in the order of the workers
        self._order = [self._arrival().index(e) for e in self.plan.envs]
        self.view = StudioView(
            bundle,
            self.plan.envs,
            self.plan.size,
            camera,
            self.options.layout,
            self.options.env_spacing or self.session.env_spacing,
            self.options.labels,
        )
        return camera

    def _arrival(self) -> list[int]:
        return [e for i in sorted(self._owned) for e in self._owned[i]]

    def _open_files(self) -> None:
        plan, targets = self.plan, self.targets
        if plan.states:
            bundle = self.session.bundle
            assert bundle is not None and self.loaded is not None
            main, warnings = self._copy_scene()
            for text in warnings:
                self._warn(text)
            meta = RecordingMeta(
                name=targets.recording.stem,
                scene=main,
                source=str(self.options.scene.resolve()),
                n_envs=self.session.n_envs,
                env_spacing=self.session.env_spacing,
                timestep=plan.timestep,
                steps=plan.steps,
                state_every=self.options.state_every,
                seed=self.seed,
                precision=self.options.precision or spec_value(self.loaded, "precision"),
                devices=list(self.session.config.devices),
                video=targets.video.name if plan.video else "",
                fps=plan.fps,
                size=plan.size,
                camera=plan.camera,
                layout=self.options.layout,
            )
            groups = {i: envs for i, envs in self._owned.items() if envs}
            self.chunk = chunk_length(max(map(len, groups.values())) * (bundle.nq + bundle.nv + bundle.nu))
            self.states = RecordingWriter(targets.recording, meta, groups, self.chunk)
        if plan.video:
            from genesis_core.record.video import VideoWriter

            self.video = VideoWriter(targets.video, *plan.size, plan.fps)

    def _copy_scene(self) -> tuple[str, list[str]]:
        from genesis_core.record.recording import disk_errors

        assert self.loaded is not None
        with disk_errors("the copy of the scene", self.targets.recording):
            return copy_scene(self.loaded.files, self.targets.recording)

    def _record(self, camera: CameraChoice | None) -> RecordResult:
        plan = self.plan
        begin = time.perf_counter()
        self.session.record(
            msg.Record(
                steps=plan.steps,
                frame_steps=plan.frame_steps,
                video_envs=plan.envs if plan.video else [],
                camera_bodies=camera.bodies if camera is not None else [],
                state_envs=plan.envs if plan.states else [],
                state_every=self.options.state_every if plan.states else 0,
                chunk=self.chunk if plan.states else 1,
            )
        )
        stopping = 0.0
        while len(self.done) < self.session.n_workers:
            skip = self._ahead()
            self.session.wait(WAIT, skip)
            self._pump(skip)
            self._draw()
            self._tell()
            if self.stop.requested and not stopping:
                self.session.pause()
                stopping = time.monotonic()
            if stopping and time.monotonic() - stopping > STOP_SECONDS:
                break
        self._draw()
        self._tell()
        wall = time.perf_counter() - begin
        self._finish()
        return self._result(wall)

    # ------------------------------------------------------------------ messages
    def _until(self, ready: Any) -> None:
        """Loading and compiling, until `ready()`."""
        while not ready():
            self.session.wait(WAIT)
            self._pump(())
            if self.stop.requested:
                raise Interrupted

    def _pump(self, skip: Any) -> None:
        for event in self.session.pump(skip):
            self._take(event)

    def _take(self, event: SessionEvent) -> None:
        worker = event.worker
        match event.message:
            case msg.RecordedFrame() as frame:
                self._pending.setdefault(frame.index, {})[worker] = frame
                self._newest[worker] = frame.index
            case msg.RecordedStates(start=start, arrays=arrays):
                assert self.states is not None
                self.states.write(worker, start, arrays)
            case msg.Diverged() as report:
                self._save_diverged(report)
            case msg.RecordDone() as done:
                self.done[worker] = done
            case msg.SceneLoaded() as loaded:
                self.loaded = loaded
            case msg.Progress(stage=stage, fraction=fraction):
                if worker == 0:
                    self.report.stage(stage, fraction)
            case msg.Diagnostic(text=text, where=where, hint=hint):
                self._warn(f"{where}: {text}" if where else f"{text} ({hint})" if hint else text)
            case msg.WorkerSilent(seconds=seconds):
                self._warn(f"worker {worker} has not answered for {seconds:.0f} s")
            case msg.Failed() | msg.WorkerDied() | msg.Bye():
                if not self.stop.requested or not isinstance(event.message, msg.Bye):
                    raise failure_of(event, self.session)

    def _save_diverged(self, report: msg.Diverged) -> None:
        assert self.loaded is not None
        origin = origin_of(self.loaded, self.session)
        self._warn(told(report, save_diverged(self.targets.recording.parent, report, origin)))

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.append(text)
            self.report.warn(text)

    def _ahead(self) -> set[int]:
        """Workers that must wait because their frames pile up here."""
        if not self.plan.video or self.stop.requested:
            return set()
        return {i for i, newest in self._newest.items() if newest - self._next >= AHEAD and i not in self.done}

    # ------------------------------------------------------------------ pictures
    def _draw(self) -> None:
        """Draws and encodes the frames of which all parts have come."""
        if self.view is None or self.video is None:
            return
        needed = [i for i, envs in self._owned.items() if envs]
        while len(self._pending.get(self._next, {})) == len(needed):
            parts = self._pending.pop(self._next)
            rows = np.concatenate([parts[i].rows for i in needed])[self._order]
            bodies = [b for i in needed if (b := parts[i].bodies) is not None]
            self.picture = self.view.draw(rows, np.concatenate(bodies)[self._order] if bodies else None)
            self.video.add(self.picture)
            self._next += 1
            self._tell()

    def _tell(self) -> None:
        telemetry = self.session.telemetry
        done = min(t.steps for t in telemetry)
        if self.plan.video:
            at = self.plan.frame_steps[self._next] if self._next < len(self.plan.frame_steps) else self.plan.steps
            done = min(done, at)
        if len(self.done) == self.session.n_workers and not self.stop.requested:
            done = self.plan.steps
        self.report.steps(done, self.plan.steps, sum(t.env_steps_per_second for t in telemetry))

    # ------------------------------------------------------------------ the end
    def _finish(self) -> None:
        if self.video is not None:
            self.video.close()
        if self.picture is not None:
            from genesis_core.record.video import save_picture

            save_picture(self.targets.picture, self.picture)
        if self.states is not None:
            self.states.finish(complete=not self.stop.requested, interrupted=self.stop.requested)

    def _rescue(self) -> None:
        """After an error: what was recorded so far stays readable; nothing here may hide the error."""
        if self.video is not None:
            self.video.abandon()
        if self.states is not None:
            with contextlib.suppress(Exception):
                self.states.finish(complete=False)

    def _result(self, wall: float) -> RecordResult:
        session, plan, bundle = self.session, self.plan, self.session.bundle
        assert bundle is not None
        steps = min((d.steps for d in self.done.values()), default=0)
        return RecordResult(
            scene=bundle.name,
            n_envs=session.n_envs,
            envs=plan.envs,
            steps=steps,
            seconds=steps * plan.timestep,
            wall_seconds=wall,
            env_steps_per_second=session.n_envs * steps / wall,
            frames=self.video.frames if self.video is not None else 0,
            moments=self.states.moments if self.states is not None else 0,
            nan_count=sum(d.nan_count for d in self.done.values()),
            interrupted=self.stop.requested,
            video=str(self.targets.video) if self.video is not None else "",
            picture=str(self.targets.picture) if self.picture is not None else "",
            recording=str(self.targets.recording) if self.states is not None else "",
            renderer=self.view.info["renderer"] if self.view is not None else "",
            unsupported=bundle.unsupported,
            warnings=self.warnings,
        )


__all__ = ["Interrupted", "RecordResult", "Reporter", "Stop", "record"]

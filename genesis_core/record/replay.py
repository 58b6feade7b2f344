"""Draws a state recording as a video. A worker process computes the poses from the recorded states."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import numpy as np

from genesis_core.errors import OptionError, RecordingError
from genesis_core.record.claim import claimed
from genesis_core.record.plan import MAX_FPS, MAX_TILES, Plan
from genesis_core.record.record import WAIT, Interrupted, Reporter, Stop
from genesis_core.record.recording import RecordingReader, prepare_folder, refuse_existing
from genesis_core.runtime import messages as msg
from genesis_core.runtime.select import select_envs
from genesis_core.runtime.supervisor import Session, SessionConfig, failure_of

WINDOW = 8  # poses that are asked for ahead of the picture that is drawn next
POSES = ("qpos", "mocap_pos", "mocap_quat")


class ReplayOptions(msgspec.Struct, kw_only=True):
    """None takes what the recording was made with."""

    video: Path
    select: str | None = None
    camera: str | None = None
    size: tuple[int, int] | None = None
    fps: int | None = None
    layout: str | None = None
    force: bool = False


def moments_of_frames(times: np.ndarray, fps: int) -> np.ndarray:
    """For each video frame k the recorded moment that is nearest to k / fps."""
    if not len(times):
        return np.zeros(0, np.int64)
    count = max(1, math.floor((times[-1] - times[0]) * fps + 1e-6))
    wanted = times[0] + np.arange(count) / fps
    right = np.clip(np.searchsorted(times, wanted), 1, max(1, len(times) - 1))
    left = right - 1
    right = np.minimum(right, len(times) - 1)
    return np.where(wanted - times[left] <= times[right] - wanted, left, right)


def replay(reader: RecordingReader, options: ReplayOptions, report: Reporter, stop: Stop) -> int:
    """Makes the video; returns its number of frames."""
    meta = reader.meta
    if not reader.length or "qpos" not in reader.names:
        raise RecordingError("the recording holds no states", where=str(reader.folder))
    fps = options.fps or meta.fps
    if not 1 <= fps <= MAX_FPS:
        raise OptionError(f"--fps {fps} is out of range", hint=f"1 to {MAX_FPS}")
    picks = _picked(reader, options.select)
    layout = options.layout or meta.layout
    if layout == "tiles" and len(picks) > MAX_TILES:
        raise OptionError(f"{len(picks)} tiles do not fit into a video", hint="use --select or --layout world")
    if options.video.suffix.lower() != ".mp4":
        raise OptionError(f"--video {options.video} is no MP4 file", hint=f"{options.video.stem}.mp4")
    prepare_folder(options.video.parent)
    config = SessionConfig(
        scene=msg.SceneRequest(path=str(reader.scene), overrides=meta.overrides),
        n_envs=len(picks),
        precision=meta.precision,
        seed=meta.seed,
    )
    with claimed(options.video):
        refuse_existing([options.video], options.force)
        with stop.watching(), Session(config) as session:
            return _Replay(reader, options, session, report, stop, picks, fps, layout).run()


def _picked(reader: RecordingReader, select: str | None) -> list[int]:
    """Columns of the recording that are drawn."""
    envs = reader.envs
    if select is None or select.strip() == "all":
        return list(range(len(envs)))
    kind = select.partition(":")[0].strip()
    if kind in ("first", "last", "random"):
        return select_envs(select, len(envs), reader.meta.seed)
    wanted = select_envs(select, reader.meta.n_envs)
    missing = [e for e in wanted if e not in envs]
    if missing or not wanted:
        have = ", ".join(map(str, envs[:16])) + (" ..." if len(envs) > 16 else "")
        what = f"environment {missing[0]} is not in the recording" if missing else "no environment is selected"
        raise OptionError(what, hint=f"recorded are {have}")
    return [envs.index(e) for e in wanted]


class _Replay:
    """One replay in progress."""

    def __init__(
        self,
        reader: RecordingReader,
        options: ReplayOptions,
        session: Session,
        report: Reporter,
        stop: Stop,
        picks: list[int],
        fps: int,
        layout: str,
    ) -> None:
        self.reader, self.options, self.session = reader, options, session
        self.report, self.stop = report, stop
        self.picks, self.fps, self.layout = picks, fps, layout
        self._came: dict[int, msg.RecordedFrame] = {}
        self._cache: tuple[int, dict[str, np.ndarray]] = (-1, {})

    def run(self) -> int:
        from genesis_core.record.video import VideoWriter
        from genesis_core.record.view import StudioView, choose_camera

        meta, session = self.reader.meta, self.session
        while session.bundle is None:
            self._pump()
        camera = choose_camera(meta.camera if self.options.camera is None else self.options.camera, session.bundle)
        width, height = self.options.size or meta.size
        size = (width // 2 * 2, height // 2 * 2)
        envs = [self.reader.envs[p] for p in self.picks]
        moments = moments_of_frames(self.reader.times, self.fps)
        self.report.planned(
            Plan(
                steps=len(moments),
                timestep=meta.timestep,
                fps=self.fps,
                size=size,
                envs=envs,
                frame_steps=[],
                camera=meta.camera,
                video=True,
                states=False,
            ),
            len(envs),
        )
        view = StudioView(session.bundle, envs, size, camera, self.layout, meta.env_spacing)
        try:
            while not session.ready:
                self._pump()
            video = VideoWriter(self.options.video, *size, self.fps)
            try:
                self._draw(view, video, moments, camera.bodies)
            except BaseException:
                video.abandon()
                raise
            video.close()
            return video.frames
        finally:
            view.close()

    def _draw(self, view, video, moments: np.ndarray, bodies: list[int]) -> None:
        asked = 0
        for k in range(len(moments)):
            while asked < len(moments) and asked < k + WINDOW:
                states = self._states(int(moments[asked]))
                self.session.pose(msg.Pose(index=asked, states=states, camera_bodies=bodies))
                asked += 1
            while k not in self._came:
                self._pump()
            frame = self._came.pop(k)
            video.add(view.draw(frame.rows, frame.bodies))
            self.report.steps(k + 1, len(moments), 0.0)
            if self.stop.requested:
                return

    def _states(self, moment: int) -> dict[str, np.ndarray]:
        """The recorded states of a moment; chunks are read once, not once per moment."""
        block, inner = divmod(moment, 64)
        if self._cache[0] != block:
            self._cache = (block, self.reader.states(slice(block * 64, block * 64 + 64)))
        return {name: self._cache[1][name][inner][self.picks] for name in POSES if name in self._cache[1]}

    def _pump(self) -> None:
        self.session.wait(WAIT)
        for event in self.session.pump():
            match event.message:
                case msg.RecordedFrame() as frame:
                    self._came[frame.index] = frame
                case msg.Progress(stage=stage, fraction=fraction):
                    self.report.stage(stage, fraction)
                case msg.Diagnostic(text=text, level=level):
                    if level == "error":
                        raise RecordingError(text, where=str(self.reader.folder))
                    self.report.warn(text)
                case msg.Failed() | msg.WorkerDied() | msg.Bye():
                    raise failure_of(event, self.session)
        if self.stop.requested and not self.session.ready:
            raise Interrupted

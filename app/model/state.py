"""What is true in the window: facts come in from control, views listen to the signals and draw.

No Qt. Arrays and bundles are held by plain attributes; every change is told by a signal after it happened.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from psygnal import Signal

from app.model.commands import Commands
from app.model.launch import Launch
from app.model.settings import Settings
from genesis_core.layout.grid import env_offsets
from genesis_core.layout.scene import SceneBundle, initial_rows
from genesis_core.runtime.shm import Frame

MAX_SHOWN = 1024  # environments drawn at once
SPEEDS: tuple[float | None, ...] = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, None)  # None = as fast as it goes


class Problem(NamedTuple):
    """A failure as the user is told: what, where, what to do. `log` is the tail of a worker's log."""

    title: str
    text: str
    where: str = ""
    hint: str = ""
    log: str = ""


class LogLine(NamedTuple):
    level: str  # "info", "warning", "error"
    text: str
    where: str = ""
    hint: str = ""


class Loading(NamedTuple):
    """A scene on its way. `preview`: its picture is there already, kernels are not."""

    path: str
    stage: str
    fraction: float
    preview: bool = False


class WorkerFacts(NamedTuple):
    """One worker in the status bar."""

    device: str
    state: str
    env_steps_per_second: float
    realtime_factor: float
    memory: int
    cpu_percent: float
    nan_count: int


class Selection(NamedTuple):
    env: int
    body: int
    point: tuple[float, float, float] | None = None  # as drawn [m]


class Wanted:
    """How the next session is to be started; the Session dock writes it, control reads it."""

    def __init__(self, settings: Settings, launch: Launch) -> None:
        self.path = launch.scene or ""
        self.backend: str = "cpu" if launch.devices else settings.backend
        self.cpu_workers = len(launch.devices) if launch.devices else settings.cpu_workers
        self.n_envs = launch.n_envs
        self.precision: str = launch.precision or settings.precision
        self.seed = launch.seed
        self.spacing = launch.env_spacing
        self.show = launch.show


class AppState:
    """The one model of the window."""

    scene_changed = Signal()  # bundle, n_envs, spacing are new
    phase_changed = Signal(str)
    loading_changed = Signal()
    problem_changed = Signal()
    shown_changed = Signal()  # environments or their places
    frame_arrived = Signal()
    selection_changed = Signal()
    speed_changed = Signal()
    workers_changed = Signal()
    theme_changed = Signal(str)
    follow_changed = Signal(bool)
    devices_changed = Signal()
    recent_changed = Signal()
    logged = Signal(object)
    rendered = Signal(float)  # frames per second of the view
    renderer_found = Signal(str, bool)  # GL renderer, software

    def __init__(self, settings: Settings, launch: Launch | None = None) -> None:
        self.settings = settings
        self.launch = launch or Launch()
        self.wanted = Wanted(settings, self.launch)
        self.commands = Commands()
        self.phase = "empty"  # empty, loading, compiling, paused, running, failed
        self.bundle: SceneBundle | None = None
        self.path = ""
        self.n_envs = 0
        self.spacing: tuple[float, float] = (1.0, 1.0)
        self.loading: Loading | None = None
        self.problem: Problem | None = None
        self.log: list[LogLine] = []
        self.speed: float | None = 1.0
        self.workers: list[WorkerFacts] = []
        self.unavailable: dict[str, str] = {}  # backend -> why it cannot be chosen
        self.cores = 1
        self.time = 0.0
        self.selection: Selection | None = None
        self.inspected = 0  # environment that the inspector shows
        self.follow = False
        self.follow_body = 0  # the body that the scene file names for it, 0 = none
        self.theme: str = self.launch.theme or settings.theme
        self.shown: list[int] = []
        self.offsets = np.zeros((0, 3))
        self.rows: np.ndarray = np.zeros((0, 0, 12), np.float32)
        self.frame: Frame | None = None
        self.live = False  # frames of the present scene have come

    # ------------------------------------------------------------------ scene
    def set_scene(self, bundle: SceneBundle | None, path: str, n_envs: int, spacing: tuple[float, float]) -> None:
        """A new scene, or none."""
        self.bundle, self.path, self.n_envs, self.spacing = bundle, path, n_envs, spacing
        self.selection, self.frame, self.live, self.time = None, None, False, 0.0
        self.inspected, self.follow_body = 0, 0
        self.shown, self.offsets = [], np.zeros((0, 3))
        self.rows = np.zeros((0, bundle.ngeom if bundle else 0, 12), np.float32)
        self.scene_changed.emit()
        self.selection_changed.emit()

    def set_phase(self, phase: str) -> None:
        if phase != self.phase:
            self.phase = phase
            self.phase_changed.emit(phase)

    def set_loading(self, loading: Loading | None) -> None:
        if loading != self.loading:
            self.loading = loading
            self.loading_changed.emit()

    def set_problem(self, problem: Problem | None) -> None:
        if problem != self.problem:
            self.problem = problem
            if problem is not None:
                self.add_log("error", f"{problem.title}: {problem.text}", problem.where, problem.hint)
            self.problem_changed.emit()

    def add_log(self, level: str, text: str, where: str = "", hint: str = "") -> None:
        line = LogLine(level, text, where, hint)
        self.log.append(line)
        del self.log[:-2000]
        self.logged.emit(line)

    # ------------------------------------------------------------------ environments
    def place(self, envs: list[int]) -> np.ndarray:
        """Offsets of environments in the drawing (n, 3) [m]: packed together, or where they stand among all."""
        if self.settings.compact:
            return env_offsets(len(envs), self.spacing)
        return env_offsets(self.n_envs, self.spacing)[np.asarray(envs, np.int64)]

    def set_shown(self, envs: list[int]) -> None:
        """Chooses the drawn environments; poses that are known are kept, the others begin at the initial state."""
        if self.bundle is None:
            return
        before = {env: i for i, env in enumerate(self.shown)}
        rows = np.repeat(initial_rows(self.bundle)[None], len(envs), 0)
        for i, env in enumerate(envs):
            if env in before:
                rows[i] = self.rows[before[env]]
        self.shown, self.rows, self.offsets = list(envs), rows, self.place(envs)
        if self.inspected not in envs and envs:
            self.inspect(envs[0])
        if self.selection is not None and self.selection.env not in envs:
            self.select(None)
        self.shown_changed.emit()

    def set_spacing(self, spacing: tuple[float, float]) -> None:
        self.spacing = spacing
        self.offsets = self.place(self.shown)
        self.shown_changed.emit()

    def set_compact(self, compact: bool) -> None:
        self.settings.compact = compact
        self.offsets = self.place(self.shown)
        self.shown_changed.emit()

    def take_frame(self, frame: Frame) -> None:
        """Poses of the shown environments; those of workers that are not ready yet stay as they are."""
        place = {env: i for i, env in enumerate(self.shown)}
        kept = [(i, place[int(env)]) for i, env in enumerate(frame.envs) if int(env) in place]
        if not kept:
            return
        source, target = np.array(kept).T
        self.rows[target] = frame.rows[source]
        self.frame, self.live = frame, True
        self.time = float(frame.time[0])
        self.frame_arrived.emit()

    def env_frame(self, env: int) -> int | None:
        """Index of an environment in the newest frame."""
        if self.frame is None:
            return None
        found = np.flatnonzero(self.frame.envs == env)
        return int(found[0]) if len(found) else None

    # ------------------------------------------------------------------ what the user looks at
    def select(self, selection: Selection | None) -> None:
        if selection is not None:
            self.inspected = selection.env
        if selection != self.selection or selection is not None:
            self.selection = selection
            self.selection_changed.emit()

    def inspect(self, env: int) -> None:
        self.inspected = env
        self.selection_changed.emit()

    def set_follow(self, on: bool) -> None:
        if on != self.follow:
            self.follow = on
            self.commands.set_checked("view.follow", on)
            self.follow_changed.emit(on)

    def set_theme(self, theme: str) -> None:
        if theme != self.theme:
            self.theme = theme
            self.settings.theme = theme  # type: ignore[assignment]
            self.commands.set_checked("view.theme", theme == "light")
            self.theme_changed.emit(theme)

    def set_speed(self, speed: float | None) -> None:
        if speed != self.speed:
            self.speed = speed
            self.speed_changed.emit()

    def next_speed(self, up: bool) -> float | None:
        """The neighbour of the present speed among SPEEDS."""
        order = [math.inf if s is None else s for s in SPEEDS]
        now = math.inf if self.speed is None else self.speed
        beyond = [s for s in order if (s > now if up else s < now)]
        chosen = (min(beyond) if up else max(beyond)) if beyond else now
        return None if math.isinf(chosen) else chosen

    def set_workers(self, workers: list[WorkerFacts]) -> None:
        self.workers = workers
        self.workers_changed.emit()

    def set_devices(self, cores: int, unavailable: dict[str, str]) -> None:
        self.cores, self.unavailable = cores, unavailable
        self.devices_changed.emit()


def speed_text(speed: float | None) -> str:
    """As the window writes a speed."""
    return "max" if speed is None else f"{speed:g}×"


def count_text(value: float) -> str:
    """1234567 -> "1.23 M"."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g} {unit}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"

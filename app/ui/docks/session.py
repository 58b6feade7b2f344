"""Session dock: which scene runs where, how often, how exactly."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QComboBox, QGridLayout, QHBoxLayout, QLabel, QPushButton, QVBoxLayout

from app.model.intents import Intents
from app.model.state import AppState, count_text
from app.ui.docks.dock import Dock
from app.ui.theme import icon
from app.ui.widgets.basics import clear_layout, form, label, rule, spin
from genesis_core.runtime.supervisor import MAX_ENVS
from resources import list_scenes, scene_path

BACKENDS = (("auto", "Automatic"), ("cuda", "CUDA GPUs"), ("metal", "Apple Metal"), ("cpu", "CPU"))
OTHER = "Open file…"


class SessionDock(Dock):
    """Writes `state.wanted`; the button starts it."""

    def __init__(self, state: AppState, intents: Intents) -> None:
        super().__init__("sessionDock", "Session", state.theme)
        self.state = state
        self.intents = intents
        self._filling = False
        self._states: list[str] = []
        self._lines: list[tuple[QLabel | None, QLabel]] = []
        self._scene()
        self.column.addWidget(rule())
        self._where()
        self.column.addWidget(rule())
        self._buttons()
        self._facts = QVBoxLayout()
        self._facts.setSpacing(4)
        self.column.addLayout(self._facts)
        self.column.addStretch(1)
        self.setMinimumWidth(250)
        state.scene_changed.connect(self._on_scene)
        state.recent_changed.connect(self._fill_scenes)
        state.devices_changed.connect(self._on_devices)
        state.phase_changed.connect(self._on_phase)
        state.loading_changed.connect(self._refresh)
        state.workers_changed.connect(self._on_workers)
        state.problem_changed.connect(self._on_scene)
        self._fill_scenes()
        self._refresh()

    # ------------------------------------------------------------------ parts
    def _scene(self) -> None:
        self.scene = QComboBox()
        self.scene.setObjectName("scenePicker")
        self.scene.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.scene.setMinimumContentsLength(12)
        self.scene.setMaxVisibleItems(24)
        self.scene.activated.connect(self._choose_scene)
        self.column.addWidget(label("Scene", "heading"))
        self.column.addWidget(self.scene)

    def _where(self) -> None:
        wanted = self.state.wanted
        fields = form()
        self.backend = QComboBox()
        self.backend.setObjectName("backendPicker")
        self.backend.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.backend.setMinimumContentsLength(9)
        for name, title in BACKENDS:
            self.backend.addItem(title, name)
        self.backend.setCurrentIndex([n for n, _ in BACKENDS].index(wanted.backend))
        self.backend.currentIndexChanged.connect(self._write)
        self.workers = spin(1, max(1, wanted.cpu_workers), wanted.cpu_workers)
        self.workers.setToolTip("Worker processes that share the environments; each has its own threads")
        self.envs = spin(0, MAX_ENVS, wanted.n_envs or 0)
        self.envs.setSpecialValueText("as the scene says")
        self.envs.setToolTip("Copies of the scene that are simulated at once; 0 takes the scene's own number")
        self.envs.setGroupSeparatorShown(True)
        self.precision = QComboBox()
        self.precision.addItem("32 bit", "32")
        self.precision.addItem("64 bit", "64")
        self.precision.setCurrentIndex(1 if wanted.precision == "64" else 0)
        self.precision.setToolTip("32 bit is twice as fast; 64 bit agrees with MuJoCo to the last digits")
        self.seed = spin(-1, 2**31 - 1, -1 if wanted.seed is None else wanted.seed)
        self.seed.setSpecialValueText("as the scene says")
        self.seed.setToolTip("Start states and drives follow from it; -1 takes the scene's own")
        for field in (self.workers, self.envs, self.seed):
            field.valueChanged.connect(self._write)
        self.precision.currentIndexChanged.connect(self._write)
        fields.addRow(label("Backend", "muted"), self.backend)
        fields.addRow(label("CPU workers", "muted"), self.workers)
        fields.addRow(label("Environments", "muted"), self.envs)
        fields.addRow(label("Precision", "muted"), self.precision)
        fields.addRow(label("Seed", "muted"), self.seed)
        self.column.addWidget(label("Simulate on", "heading"))
        self.column.addLayout(fields)

    def _buttons(self) -> None:
        row = QHBoxLayout()
        row.setSpacing(8)
        self.load = QPushButton("Load")
        self.load.setObjectName("loadButton")
        self.load.setProperty("kind", "primary")
        self.load.clicked.connect(self.intents.load.emit)
        self.stop = QPushButton("Stop")
        self.stop.setObjectName("stopButton")
        self.stop.setToolTip("End the workers and go to the start page")
        self.stop.clicked.connect(self.intents.stop.emit)
        row.addWidget(self.load, 2)
        row.addWidget(self.stop, 1)
        self.column.addLayout(row)

    # ------------------------------------------------------------------ scene list
    def _fill_scenes(self) -> None:
        """Bundled scenes, recent files, and the way to another file."""
        self._filling = True
        self.scene.clear()
        for name in list_scenes():
            self.scene.addItem(icon("logo", self.state.theme, "accent"), name, str(scene_path(name)))
        bundled = {self.scene.itemData(i) for i in range(self.scene.count())}
        recent = [p for p in self.state.settings.recent if p not in bundled]
        if self.state.wanted.path and self.state.wanted.path not in (*recent, *bundled):
            recent.insert(0, self.state.wanted.path)
        if recent:
            self.scene.insertSeparator(self.scene.count())
        for path in recent:
            self.scene.addItem(icon("file", self.state.theme, "muted"), Path(path).name, path)
            self.scene.setItemData(self.scene.count() - 1, path, Qt.ItemDataRole.ToolTipRole)
        self.scene.insertSeparator(self.scene.count())
        self.scene.addItem(icon("open", self.state.theme, "muted"), OTHER, "")
        self._show_wanted()
        self._filling = False

    def _show_wanted(self) -> None:
        wanted = self.state.wanted
        if not wanted.path:
            wanted.path = str(scene_path())
        self.scene.setCurrentIndex(max(0, self.scene.findData(wanted.path)))
        self.scene.setToolTip(wanted.path)

    def _choose_scene(self, index: int) -> None:
        path = self.scene.itemData(index)
        if path:
            self.state.wanted.path = path
            self.scene.setToolTip(path)
            self.intents.open_path.emit(path)
        else:
            self._show_wanted()
            self.state.commands.run("file.open")

    # ------------------------------------------------------------------ facts
    def _write(self) -> None:
        """Fields -> model."""
        if self._filling:
            return
        wanted, settings = self.state.wanted, self.state.settings
        wanted.backend = self.backend.currentData()
        wanted.cpu_workers = self.workers.value()
        wanted.n_envs = self.envs.value() or None
        wanted.precision = self.precision.currentData()
        wanted.seed = None if self.seed.value() < 0 else self.seed.value()
        settings.backend = self.backend.currentData()
        settings.cpu_workers = wanted.cpu_workers
        settings.precision = self.precision.currentData()

    def _on_devices(self) -> None:
        self.workers.setMaximum(max(self.state.cores, self.state.wanted.cpu_workers))
        self.workers.setSuffix(f" of {self.state.cores} cores")
        model = self.backend.model()
        assert isinstance(model, QStandardItemModel)
        for row, (name, title) in enumerate(BACKENDS):
            reason = self.state.unavailable.get(name, "")
            item: QStandardItem = model.item(row)
            item.setEnabled(not reason)
            item.setText(f"{title} (not available)" if reason else title)
            item.setToolTip(reason)
        if self.state.unavailable.get(self.backend.currentData()):
            self.backend.setCurrentIndex(0)
        lines = [f"{title}: {self.state.unavailable[n]}" for n, title in BACKENDS if n in self.state.unavailable]
        self.backend.setToolTip("\n".join(lines) or "Where the physics runs")

    def _on_scene(self) -> None:
        self._fill_scenes()
        self._refresh()

    def _on_phase(self, _phase: str) -> None:
        self._refresh()

    def _refresh(self) -> None:
        loaded, loading = self.state.bundle is not None, self.state.loading is not None
        self.load.setText("Load again" if loaded else "Load")
        self.load.setToolTip("Start workers with these settings" if not loaded else "New workers with these settings")
        self.load.setEnabled(not loading or self.state.bundle is not None)
        self.stop.setEnabled(loaded or loading)
        if loading and self.scene.currentData() != self.state.wanted.path:
            self._fill_scenes()

    def _on_workers(self) -> None:
        """One block per worker; built anew only when a worker changes its state, so that its button can be clicked."""
        workers = self.state.workers
        states = [w.state for w in workers]
        if states != self._states:
            self._states = states
            self._build_workers()
        for (rate, more), worker in zip(self._lines, workers, strict=True):
            if rate is not None:
                rate.setText(f"{count_text(worker.env_steps_per_second)} steps/s" if worker.state == "running" else "")
            text = f"{worker.memory / 2**20:.0f} MiB, {worker.cpu_percent:.0f} % CPU" if worker.memory else ""
            more.setText(text + (f", {worker.nan_count} diverged" if worker.nan_count else ""))

    def _build_workers(self) -> None:
        clear_layout(self._facts)
        self._lines = []
        if not self.state.workers:
            return
        self._facts.addWidget(rule())
        self._facts.addWidget(label("Workers", "heading"))
        grid = QGridLayout()
        grid.setContentsMargins(0, 2, 0, 0)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(3)
        grid.setColumnStretch(1, 1)
        for row, worker in enumerate(self.state.workers):
            grid.addWidget(label(worker.device), row * 2, 0)
            grid.addWidget(label(worker.state, "muted"), row * 2, 1)
            rate = None
            if worker.state in ("died", "failed", "ended"):
                again = QPushButton("Restart")
                again.setProperty("kind", "small")
                again.clicked.connect(lambda _=False, index=row: self.intents.restart_worker.emit(index))
                grid.addWidget(again, row * 2, 2)
            else:
                rate = label()
                grid.addWidget(rate, row * 2, 2)
            more = label("", "faint")
            grid.addWidget(more, row * 2 + 1, 0, 1, 3)
            self._lines.append((rate, more))
        self._facts.addLayout(grid)

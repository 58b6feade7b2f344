"""Inspector: joints of one environment with their values, and its actuators as sliders."""

from __future__ import annotations

import time

import numpy as np
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QCheckBox, QGridLayout, QHBoxLayout, QLabel, QSlider, QVBoxLayout, QWidget

from app.model.intents import Intents
from app.model.state import AppState
from app.ui.docks.dock import Dock
from app.ui.theme import theme
from app.ui.widgets.basics import clear_layout, elided, label, rule, spin
from genesis_core.layout.enums import JointType

REFRESH = 0.1  # [s] between two updates of the numbers
TICKS = 1000  # of a slider
MAX_ROWS = 200


class Bar(QWidget):
    """Where a value lies between its limits."""

    def __init__(self, state: AppState, low: float, high: float) -> None:
        super().__init__()
        self.state = state
        self.low, self.high, self.value = low, high, 0.0
        self.setFixedHeight(8)
        self.setMinimumWidth(50)

    def set_value(self, value: float) -> None:
        self.value = value
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter, colors = QPainter(self), theme(self.state.theme)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colors.color("border"))
        painter.drawRoundedRect(0, 2, self.width(), 4, 2, 2)
        part = (self.value - self.low) / max(1e-12, self.high - self.low)
        outside = not 0 <= part <= 1
        painter.setBrush(QColor(colors.colors["warn" if outside else "accent"]))
        at = min(1.0, max(0.0, part if np.isfinite(part) else 0.0)) * max(0, self.width() - 8)
        painter.drawEllipse(round(at), 0, 8, 8)


class InspectorDock(Dock):
    """Shows the environment `state.inspected`."""

    def __init__(self, state: AppState, intents: Intents) -> None:
        super().__init__("inspectorDock", "Inspector", state.theme)
        self.state = state
        self.intents = intents
        self._updated = 0.0
        self._joints: list[tuple[int, QLabel, Bar | None]] = []
        self._sliders: list[tuple[QSlider, QLabel, float, float]] = []
        self._filling = False
        self._held = 0.0
        head = QHBoxLayout()
        head.addWidget(label("Environment", "muted"))
        self.env = spin(0, 0, 0)
        self.env.setObjectName("inspectedEnv")
        self.env.valueChanged.connect(self._choose)
        head.addWidget(self.env, 1)
        self.column.addLayout(head)
        self.body = label("", "muted", wrap=True)
        self.column.addWidget(self.body)
        self._content = QVBoxLayout()
        self._content.setSpacing(8)
        self.column.addLayout(self._content)
        self.column.addStretch(1)
        state.scene_changed.connect(self._rebuild)
        state.selection_changed.connect(self._on_selection)
        state.frame_arrived.connect(self._on_frame)
        self._rebuild()

    # ------------------------------------------------------------------ building
    def _rebuild(self) -> None:
        clear_layout(self._content)
        self._joints, self._sliders = [], []
        bundle = self.state.bundle
        self._filling = True
        self.env.setRange(0, max(0, self.state.n_envs - 1))
        self.env.setValue(self.state.inspected)
        self._filling = False
        self.env.setEnabled(bundle is not None)
        self._on_selection()
        if bundle is None:
            return
        self._actuators()
        self._content.addWidget(rule())
        self._joint_rows()

    def _actuators(self) -> None:
        bundle = self.state.bundle
        assert bundle is not None
        self._content.addWidget(label("Actuators", "heading"))
        if not bundle.nu:
            self._content.addWidget(label("The model has none", "faint"))
            return
        self.everywhere = QCheckBox("Move them in all environments")
        self.everywhere.setToolTip("Touching a slider stops the scene's own drive; a reset starts it again")
        self._content.addWidget(self.everywhere)
        grid = _grid()
        for i in range(min(bundle.nu, MAX_ROWS)):
            limited = bool(bundle.actuator_ctrllimited[i])
            low, high = (float(v) for v in bundle.actuator_ctrlrange[i]) if limited else (-1.0, 1.0)
            name = label(elided(_short(bundle.actuator_name[i], f"actuator {i}"), 16))
            name.setToolTip(f"{bundle.actuator_name[i]}: {low:g} to {high:g}" + ("" if limited else " (no limits)"))
            slider = QSlider(Qt.Orientation.Horizontal)
            slider.setRange(0, TICKS)
            slider.setMinimumWidth(60)
            slider.setValue(round(TICKS * min(1.0, max(0.0, -low / max(1e-12, high - low)))))
            slider.valueChanged.connect(self._move)
            value = label("0.000", "mono")
            value.setAlignment(Qt.AlignmentFlag.AlignRight)
            grid.addWidget(name, i, 0)
            grid.addWidget(slider, i, 1)
            grid.addWidget(value, i, 2)
            self._sliders.append((slider, value, low, high))
        self._content.addLayout(grid)

    def _joint_rows(self) -> None:
        bundle = self.state.bundle
        assert bundle is not None
        self._content.addWidget(label("Joints", "heading"))
        grid, row = _grid(), 0
        for j, kind in enumerate(bundle.jnt_type[:MAX_ROWS]):
            name = _short(bundle.jnt_name[j], f"joint {j}")
            address = int(bundle.jnt_qposadr[j])
            parts = {JointType.FREE: ["x", "y", "z", "qw", "qx", "qy", "qz"], JointType.BALL: ["qw", "qx", "qy", "qz"]}
            for k, part in enumerate(parts.get(JointType(int(kind)), [""])):
                title = label(elided(f"{name} {part}".strip(), 17))
                title.setToolTip(bundle.jnt_name[j])
                value = label("0.000", "mono")
                value.setAlignment(Qt.AlignmentFlag.AlignRight)
                unit = "m" if kind == JointType.SLIDE or part in ("x", "y", "z") else "rad" if not part else ""
                bar = None
                if bundle.jnt_limited[j] and not part:
                    low, high = (float(v) for v in bundle.jnt_range[j])
                    bar = Bar(self.state, low, high)
                    bar.setToolTip(f"{low:.3g} to {high:.3g} {unit}")
                    grid.addWidget(bar, row, 1)
                grid.addWidget(title, row, 0)
                grid.addWidget(value, row, 2)
                grid.addWidget(label(unit, "faint"), row, 3)
                self._joints.append((address + k, value, bar))
                row += 1
        self._content.addLayout(grid)

    # ------------------------------------------------------------------ facts
    def _on_selection(self) -> None:
        state = self.state
        self._filling = True
        self.env.setValue(state.inspected)
        self._filling = False
        chosen = state.selection
        if state.bundle is None:
            self.body.setText("Nothing is loaded")
        elif chosen is None:
            self.body.setText("Double click a body to select it, Ctrl+drag pulls it")
        else:
            mass = float(state.bundle.body_mass[chosen.body])
            self.body.setText(f"{state.bundle.body_name[chosen.body] or 'world'} · {mass:.4g} kg")
        self._updated = 0.0
        self._on_frame()

    def _on_frame(self) -> None:
        now = time.monotonic()
        row = self.state.env_frame(self.state.inspected)
        frame = self.state.frame
        if row is None or frame is None or now - self._updated < REFRESH or not self.isVisible():
            return
        self._updated = now
        qpos = frame.qpos[row]
        for address, value, bar in self._joints:
            value.setText(f"{qpos[address]:.3f}")
            if bar is not None:
                bar.set_value(float(qpos[address]))
        if any(slider.isSliderDown() for slider, *_ in self._sliders) or now - self._held < 0.4:
            return
        self._filling = True
        for (slider, value, low, high), ctrl in zip(self._sliders, frame.ctrl[row], strict=False):
            part = (float(ctrl) - low) / max(1e-12, high - low)
            slider.setValue(round(TICKS * min(1.0, max(0.0, part if np.isfinite(part) else 0.0))))
            value.setText(f"{ctrl:.3f}")
        self._filling = False

    # ------------------------------------------------------------------ wishes
    def _choose(self, env: int) -> None:
        if not self._filling:
            self.state.select(None)
            if env not in self.state.shown:
                self.intents.toggle_env.emit(env)
            self.state.inspect(env)

    def _move(self) -> None:
        """A slider was moved: all controls of the environment are held as they are now."""
        bundle, frame = self.state.bundle, self.state.frame
        if self._filling or bundle is None:
            return
        row = self.state.env_frame(self.state.inspected)
        values = [0.0] * bundle.nu if frame is None or row is None else [float(v) for v in frame.ctrl[row]]
        for i, (slider, value, low, high) in enumerate(self._sliders):
            if slider is self.sender():
                values[i] = low + (high - low) * slider.value() / TICKS
                value.setText(f"{values[i]:.3f}")
        self._held = time.monotonic()
        self.intents.set_ctrl.emit(values, None if self.everywhere.isChecked() else self.state.inspected)


def _grid() -> QGridLayout:
    made = QGridLayout()
    made.setContentsMargins(0, 0, 0, 0)
    made.setHorizontalSpacing(8)
    made.setVerticalSpacing(5)
    made.setColumnStretch(1, 1)
    return made


def _short(name: str, fallback: str) -> str:
    """The part of a name behind the entity's prefix."""
    return name.rsplit("/", 1)[-1] or fallback

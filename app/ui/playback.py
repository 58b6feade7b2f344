"""The bar under the view: reset, play, step, speed, time."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QComboBox, QFrame, QHBoxLayout, QToolButton

from app.model.intents import Intents
from app.model.state import SPEEDS, AppState, speed_text
from app.ui.actions import Actions
from app.ui.theme import icon
from app.ui.widgets.basics import label


class PlaybackBar(QFrame):
    """Buttons of commands; the clock follows the frames."""

    def __init__(self, state: AppState, intents: Intents, actions: Actions) -> None:
        super().__init__()
        self.setObjectName("playback")
        self.state = state
        self.intents = intents
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 12, 6)
        row.setSpacing(6)
        self.reset = actions.button("sim.reset")
        self.play = QToolButton()
        self.play.setObjectName("playButton")
        self.play.setProperty("kind", "play")
        self.play.setIconSize(QSize(18, 18))
        self.play.setToolTip("Play or pause  (Space)")
        self.play.clicked.connect(lambda: state.commands.run("sim.play"))
        self.step = actions.button("sim.step")
        for button in (self.reset, self.play, self.step):
            row.addWidget(button)
        row.addSpacing(10)
        self.clock = label("0.00 s", "mono")
        self.clock.setMinimumWidth(96)
        self.clock.setToolTip("Simulated time of the first shown environment")
        row.addWidget(self.clock)
        row.addStretch(1)
        row.addWidget(label("Speed", "muted"))
        self.speed = QComboBox()
        self.speed.setObjectName("speedPicker")
        for speed in SPEEDS:
            self.speed.addItem("As fast as it goes" if speed is None else speed_text(speed), speed)
        self.speed.setToolTip("Simulated seconds per second  (+ and -)")
        self.speed.activated.connect(lambda i: intents.set_speed.emit(SPEEDS[i]))
        row.addWidget(self.speed)
        row.addSpacing(10)
        for name in ("view.frame", "view.follow"):
            row.addWidget(actions.button(name))
        state.phase_changed.connect(self._refresh)
        state.speed_changed.connect(self._on_speed)
        state.frame_arrived.connect(self._on_frame)
        state.scene_changed.connect(self._on_frame)
        state.theme_changed.connect(self._refresh)
        state.commands.enabled_changed.connect(self._on_enabled)
        self._on_speed()
        self._refresh()

    def _refresh(self, _what: str = "") -> None:
        running = self.state.phase == "running"
        enabled = self.state.commands.enabled("sim.play")
        self.play.setEnabled(enabled)
        self.play.setIcon(icon("pause" if running else "play", self.state.theme, "on_accent" if enabled else "faint"))

    def _on_enabled(self, _name: str, _on: bool) -> None:
        self._refresh()

    def _on_speed(self) -> None:
        if self.state.speed in SPEEDS:
            self.speed.setCurrentIndex(SPEEDS.index(self.state.speed))

    def _on_frame(self) -> None:
        self.clock.setText(f"{self.state.time:,.2f} s")

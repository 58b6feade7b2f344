"""Environments dock: which ones are drawn, and how far apart."""

from __future__ import annotations

from PySide6.QtWidgets import QCheckBox, QGridLayout, QHBoxLayout, QLineEdit, QPushButton

from app.model.intents import Intents
from app.model.state import AppState
from app.ui.docks.dock import Dock
from app.ui.widgets.basics import form, label, meters
from app.ui.widgets.grid_map import GridMap

PRESETS = (("1", "first1"), ("4", "first4"), ("16", "first16"), ("64", "first64"), ("16 random", "random16"),
           ("All", "all"))  # fmt: skip


class EnvironmentsDock(Dock):
    """Presets, a selection as text, the map, and the spacing."""

    def __init__(self, state: AppState, intents: Intents) -> None:
        super().__init__("environmentsDock", "Environments", state.theme)
        self.state = state
        self.intents = intents
        self._filling = False
        self.count = label("", "muted")
        self.column.addWidget(self.count)
        grid = QGridLayout()
        grid.setSpacing(5)
        self.presets: list[QPushButton] = []
        for i, (title, name) in enumerate(PRESETS):
            button = QPushButton(title)
            button.setProperty("kind", "small")
            command = state.commands.table[f"view.{name}"]
            button.setToolTip(f"{command.title}  ({command.shortcut})")
            button.clicked.connect(lambda _=False, name=command.id: state.commands.run(name))
            grid.addWidget(button, i // 4, [0, 1, 2, 3, 0, 2][i], 1, 1 if i < 4 else 2)
            self.presets.append(button)
        self.column.addLayout(grid)
        row = QHBoxLayout()
        self.text = QLineEdit()
        self.text.setObjectName("showText")
        self.text.setPlaceholderText("0,5 or 0-7 or random:4")
        self.text.setToolTip("Environments to show: 0,5 or 0-7 or first:4, last:4, random:4, all")
        self.text.returnPressed.connect(lambda: self.intents.show.emit(self.text.text() or "first:16"))
        row.addWidget(self.text)
        self.column.addLayout(row)
        self.map = GridMap(state, intents)
        self.map.setToolTip("Click or drag shows or hides environments; right click inspects one")
        self.column.addWidget(self.map)
        fields = form()
        spacing = QHBoxLayout()
        spacing.setSpacing(6)
        self.spacing = (meters(), meters())
        for field in self.spacing:
            field.valueChanged.connect(self._write)
            spacing.addWidget(field)
        fields.addRow(label("Spacing", "muted"), spacing)
        self.column.addLayout(fields)
        self.compact = QCheckBox("Pack shown ones together")
        self.compact.setToolTip("Otherwise each stands where it has its place among all environments")
        self.compact.setChecked(state.settings.compact)
        self.compact.toggled.connect(state.set_compact)
        self.column.addWidget(self.compact)
        self.column.addStretch(1)
        state.scene_changed.connect(self._on_scene)
        state.shown_changed.connect(self._on_shown)
        self._on_scene()

    def _write(self) -> None:
        if not self._filling:
            chosen = (self.spacing[0].value(), self.spacing[1].value())
            self.state.wanted.spacing = chosen
            self.state.set_spacing(chosen)

    def _on_scene(self) -> None:
        self._filling = True
        for field, value in zip(self.spacing, self.state.spacing, strict=True):
            field.setValue(value)
        self._filling = False
        there = self.state.bundle is not None
        for widget in (*self.presets, *self.spacing, self.text, self.compact):
            widget.setEnabled(there)
        self._on_shown()

    def _on_shown(self) -> None:
        if self.state.bundle is None:
            self.count.setText("Nothing is loaded")
        else:
            self.count.setText(f"{len(self.state.shown):,} of {self.state.n_envs:,} shown")

"""What is seen when nothing is loaded: the bundled scenes, recent files, and where to drop one."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.model.intents import Intents
from app.model.state import AppState
from app.ui.theme import icon
from app.ui.widgets.basics import clear_layout, elided, framed, label
from resources import list_scenes, scene_path

WIDTH = 860
CARD_HEIGHT = 104


class SceneCard(QPushButton):
    """One bundled scene."""

    def __init__(self, title: str, text: str, note: str) -> None:
        super().__init__()
        self.setObjectName("sceneCard")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 9, 12, 9)
        column.setSpacing(3)
        name = label(title)
        font = name.font()
        font.setBold(True)
        name.setFont(font)
        about = label(text, "muted", wrap=True)
        about.setAlignment(Qt.AlignmentFlag.AlignTop)
        column.addWidget(name)
        column.addWidget(about, 1)
        column.addWidget(label(note, "faint"))
        for child in self.findChildren(QLabel):
            child.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFixedHeight(CARD_HEIGHT)
        self.setAccessibleName(title)


class StartPage(QScrollArea):
    """Scrolls when the window is small."""

    def __init__(self, state: AppState, intents: Intents) -> None:
        super().__init__()
        self.state = state
        self.intents = intents
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        page = QWidget()
        page.setObjectName("startPage")
        page.setAttribute(Qt.WidgetAttribute.WA_StyledBackground, True)
        outer = QHBoxLayout(page)
        outer.setContentsMargins(20, 16, 20, 16)
        inner = QWidget()
        inner.setMaximumWidth(WIDTH)
        outer.addStretch(1)
        outer.addWidget(inner, 100)
        outer.addStretch(1)
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(14)
        column.addStretch(1)
        column.addLayout(self._head())
        column.addLayout(self._cards())
        column.addWidget(self._drop())
        self._recent = QVBoxLayout()
        self._recent.setSpacing(4)
        column.addLayout(self._recent)
        column.addStretch(2)
        self.setWidget(page)
        state.theme_changed.connect(self._on_theme)
        state.recent_changed.connect(self._fill_recent)
        self._on_theme(state.theme)
        self._fill_recent()

    def _head(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(14)
        self._logo = QLabel()
        row.addWidget(self._logo)
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(label("Genesis Studio", "hero"))
        words.addWidget(label("Thousands of copies of a robot scene at once, any of them live", "muted"))
        row.addLayout(words)
        row.addStretch(1)
        return row

    def _cards(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setSpacing(10)
        self.cards: dict[str, SceneCard] = {}
        for i, name in enumerate(list_scenes()):
            path = scene_path(name)
            data = tomllib.loads(path.read_text("utf-8"))
            card = SceneCard(
                data.get("name", name), _clause(data.get("description", "")), f"{data.get('n_envs', 1)} environments"
            )
            card.clicked.connect(lambda _=False, path=path: self.intents.open_path.emit(str(path)))
            self.cards[name] = card
            grid.addWidget(card, i // 3, i % 3)
        for column in range(3):
            grid.setColumnStretch(column, 1)
        self._open = QPushButton("  Open a file…")
        self._open.setIconSize(QSize(18, 18))
        self._open.setFixedHeight(CARD_HEIGHT)
        self._open.clicked.connect(lambda: self.state.commands.run("file.open"))
        left = len(self.cards) % 3
        if left:
            grid.addWidget(self._open, len(self.cards) // 3, left, 1, 3 - left)
        else:
            grid.addWidget(self._open, len(self.cards) // 3, 0, 1, 3)
        return grid

    def _drop(self) -> QFrame:
        self.hint = framed("dropHint")
        self.hint.setFixedHeight(58)
        row = QHBoxLayout(self.hint)
        self._arrow = QLabel()
        row.addStretch(1)
        row.addWidget(self._arrow)
        row.addSpacing(8)
        row.addWidget(label("Drop a robot or scene anywhere: MJCF .xml, .urdf, .toml, .zip, or a mesh", "muted"))
        row.addStretch(1)
        return self.hint

    def _on_theme(self, name: str) -> None:
        self._logo.setPixmap(icon("logo", name, "accent").pixmap(48, 48))
        self._arrow.setPixmap(icon("drop", name, "muted").pixmap(24, 24))
        self._open.setIcon(icon("open", name, "accent"))

    def _fill_recent(self) -> None:
        clear_layout(self._recent)
        bundled = {str(scene_path(name)) for name in list_scenes()}
        recent = [p for p in self.state.settings.recent if p not in bundled][:4]
        if not recent:
            return
        self._recent.addWidget(label("Recent", "heading"))
        for path in recent:
            button = QPushButton(f"{Path(path).name}    {elided(str(Path(path).parent), 70)}")
            button.setProperty("kind", "small")
            button.setStyleSheet("text-align: left;")
            button.clicked.connect(lambda _=False, path=path: self.intents.open_path.emit(path))
            self._recent.addWidget(button)


def _clause(text: str) -> str:
    """The first part of a description, as much as a card holds."""
    first = re.split(r"[;.] |[;.]$", text)[0]
    return first if len(first) <= 62 else f"{first[:60].rsplit(' ', 1)[0]}…"

"""What is seen when nothing is loaded: the bundled scenes, recent files, and where to drop one."""

from __future__ import annotations

import tomllib
from pathlib import Path

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPixmap, QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.model.intents import Intents
from app.model.state import AppState
from app.ui.theme import icon
from app.ui.widgets.basics import clear_layout, elided, framed, label
from resources import list_scenes, scene_path

WIDTH = 1120
COLUMNS = 4
WORDS = 54  # [pixel] below a card's picture
SHAPE = 9 / 16  # of a picture
ROUND = 9.0  # [pixel]


class Card(QPushButton):
    """As high as its width asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("sceneCard")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumWidth(104)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        height = round(self.width() * SHAPE) + WORDS
        if height != self.height():
            self.setFixedHeight(height)


class SceneCard(Card):
    """One bundled scene: its picture, its name, how many environments it has."""

    def __init__(self, title: str, text: str, note: str, picture: Path) -> None:
        super().__init__()
        self._picture = QPixmap(str(picture))
        self._name, self._note = label(title), label(note, "faint")
        font = self._name.font()
        font.setBold(True)
        self._name.setFont(font)
        for child in (self._name, self._note):
            child.setParent(self)
            child.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setToolTip(text)
        self.setAccessibleName(title)
        self.setAccessibleDescription(text)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        top = self.height() - WORDS + 7
        for child in (self._name, self._note):
            child.setGeometry(12, top, self.width() - 18, 20)
            top += 20

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._picture.isNull():
            return
        place = QRectF(1, 1, self.width() - 2, self.height() - WORDS)
        outline = QPainterPath()
        outline.addRoundedRect(place.adjusted(0, 0, 0, ROUND), ROUND, ROUND)
        painter = QPainter(self)
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.SmoothPixmapTransform)
        painter.setClipRect(place)
        painter.setClipPath(outline, Qt.ClipOperation.IntersectClip)
        size = self._picture.size()
        scale = max(place.width() / size.width(), place.height() / size.height())
        cut = QRectF(0, 0, place.width() / scale, place.height() / scale)
        cut.moveCenter(QRectF(self._picture.rect()).center())
        painter.drawPixmap(place, self._picture, cut)


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
            title, note = data.get("name", name), f"{data.get('n_envs', 1)} environments"
            card = SceneCard(title, data.get("description", ""), note, path.with_suffix(".jpg"))
            card.clicked.connect(lambda _=False, path=path: self.intents.open_path.emit(str(path)))
            self.cards[name] = card
            grid.addWidget(card, i // COLUMNS, i % COLUMNS, Qt.AlignmentFlag.AlignTop)
        for column in range(COLUMNS):
            grid.setColumnStretch(column, 1)
        self._open = Card()
        self._open.setText("  Open a file…")
        self._open.setIconSize(QSize(18, 18))
        self._open.clicked.connect(lambda: self.state.commands.run("file.open"))
        row, column = divmod(len(self.cards), COLUMNS)
        grid.addWidget(self._open, row, column, Qt.AlignmentFlag.AlignTop)
        return grid

    def _drop(self) -> QFrame:
        self.hint = framed("dropHint")
        self.hint.setFixedHeight(58)
        row = QHBoxLayout(self.hint)
        self._arrow = QLabel()
        row.addStretch(1)
        row.addWidget(self._arrow)
        row.addSpacing(8)
        row.addWidget(label("Drop a robot or scene anywhere: .xml, .urdf, .toml, .zip or a mesh", "muted"))
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

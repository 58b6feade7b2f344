"""Cards over the view: a scene on its way, and what went wrong. Neither stops anything."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.model.intents import Intents
from app.model.state import AppState, Problem
from app.ui.theme import icon
from app.ui.widgets.basics import label

BORDER = 1  # [pixel] as the style sheet draws it


class Card(QFrame):
    """Stays centred near the top or the bottom of its parent."""

    def __init__(self, parent: QWidget, name: str, width: int, at_top: bool) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground, True)
        self._over = parent
        self._width = width
        self._at_top = at_top
        parent.installEventFilter(self)
        self.hide()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self.place()
        return super().eventFilter(watched, event)

    def place(self) -> None:
        """Into its place, no larger than the parent."""
        parent = self._over
        width = max(160, min(self._width, parent.width() - 32))
        self.setFixedWidth(width)
        layout = self.layout()
        for text in self.findChildren(QLabel):
            text.ensurePolished()  # sizes are those of the style sheet's font only from then on
        if layout is not None:
            layout.invalidate()
        height = -1
        if layout is not None and layout.hasHeightForWidth():
            height = layout.heightForWidth(width - 2 * BORDER) + 2 * BORDER
        if height < 0:
            height = self.sizeHint().height()
        height = max(40, min(height, parent.height() - 32))
        self.resize(width, height)
        self.move((parent.width() - width) // 2, 16 if self._at_top else parent.height() - height - 16)
        self.raise_()


class LoadingCard(Card):
    """Stage, fraction, cancel."""

    def __init__(self, parent: QWidget, state: AppState, intents: Intents) -> None:
        super().__init__(parent, "overlay", 420, at_top=True)
        self.state = state
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 12, 14)
        column.setSpacing(8)
        row = QHBoxLayout()
        self.title = label("", "title")
        row.addWidget(self.title, 1)
        self.cancel = QPushButton("Cancel")
        self.cancel.setObjectName("cancelLoading")
        self.cancel.setProperty("kind", "small")
        self.cancel.clicked.connect(intents.cancel.emit)
        row.addWidget(self.cancel)
        column.addLayout(row)
        self.stage = label("", "muted", wrap=True)
        column.addWidget(self.stage)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        column.addWidget(self.bar)
        state.loading_changed.connect(self.refresh)

    def refresh(self) -> None:
        loading = self.state.loading
        if loading is None:
            self.hide()
            return
        self.title.setText(f"{'Preparing' if loading.preview else 'Opening'} {Path(loading.path).stem}")
        note = "  ·  compiled once, later starts take a second" if "ompil" in loading.stage else ""
        self.stage.setText(f"{loading.stage[:1].upper()}{loading.stage[1:]}{note}")
        known = 0.0 < loading.fraction <= 1.0
        self.bar.setRange(0, 1000 if known else 0)
        if known:
            self.bar.setValue(round(1000 * loading.fraction))
        self.show()
        self.place()


class ProblemCard(Card):
    """What, where, what to do; the tail of the log where there is one."""

    def __init__(self, parent: QWidget, state: AppState) -> None:
        super().__init__(parent, "problem", 640, at_top=False)
        self.state = state
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 12, 12, 14)
        column.setSpacing(6)
        row = QHBoxLayout()
        row.setSpacing(8)
        self._sign = QLabel()
        row.addWidget(self._sign)
        self.title = label("", "bad", wrap=True)
        row.addWidget(self.title, 1)
        self.copy = QPushButton("Copy")
        self.copy.setProperty("kind", "small")
        self.copy.clicked.connect(lambda: QApplication.clipboard().setText(self.as_text()))
        row.addWidget(self.copy)
        close = QToolButton()
        close.setObjectName("closeProblem")
        close.setProperty("kind", "flat")
        close.clicked.connect(lambda: state.set_problem(None))
        self._close = close
        row.addWidget(close)
        column.addLayout(row)
        self.text = label("", wrap=True)
        self.where = label("", "mono", wrap=True)
        self.hint = label("", "muted", wrap=True)
        for widget in (self.text, self.where, self.hint):
            widget.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            column.addWidget(widget)
        self.tail = QPlainTextEdit()
        self.tail.setReadOnly(True)
        self.tail.setFixedHeight(130)
        column.addWidget(self.tail)
        state.problem_changed.connect(self.refresh)
        state.theme_changed.connect(self._on_theme)
        self._on_theme(state.theme)

    def _on_theme(self, name: str) -> None:
        self._sign.setPixmap(icon("warning", name, "bad").pixmap(20, 20))
        self._close.setIcon(icon("close", name, "muted"))

    def as_text(self) -> str:
        """Everything, for a report."""
        problem = self.state.problem or Problem("", "")
        return "\n".join(part for part in problem if part)

    def refresh(self) -> None:
        problem = self.state.problem
        if problem is None:
            self.hide()
            return
        self.title.setText(problem.title)
        for widget, text in ((self.text, problem.text), (self.where, _breakable(problem.where)),
                             (self.hint, problem.hint)):  # fmt: skip
            widget.setText(text)
            widget.setVisible(bool(text))
        self.tail.setPlainText(problem.log)
        self.tail.setVisible(bool(problem.log))
        self.tail.verticalScrollBar().setValue(self.tail.verticalScrollBar().maximum())
        self.show()
        self.place()


def _breakable(path: str) -> str:
    """A path that a label can wrap at its separators."""
    return path.replace("/", "/\u200b").replace("\\", "\\\u200b")

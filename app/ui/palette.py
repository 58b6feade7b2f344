"""The command palette and the sheet of keys, both over the view, neither modal."""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QIcon, QKeyEvent, QPainter, QPixmap
from PySide6.QtWidgets import (
    QGridLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from app.model.commands import MENUS
from app.model.state import AppState
from app.ui.overlays import Card
from app.ui.theme import icon, theme
from app.ui.widgets.basics import label

MOUSE = (
    ("Left drag", "Turn around"),
    ("Right drag", "Move"),
    ("Wheel", "Nearer, farther"),
    ("Double click", "Select a body"),
    ("Ctrl + drag", "Pull a body"),
    ("Map drag", "Show, hide some"),
)


SHORTCUT = Qt.ItemDataRole.UserRole + 1


@cache
def _nothing() -> QIcon:
    """Keeps the place of an icon, so that all titles begin below each other."""
    pixels = QPixmap(16, 16)
    pixels.fill(Qt.GlobalColor.transparent)
    return QIcon(pixels)


class _Rows(QStyledItemDelegate):
    """A command with its shortcut at the right end."""

    def __init__(self, parent: QObject, state: AppState) -> None:
        super().__init__(parent)
        self.state = state

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().paint(painter, option, index)
        shortcut = index.data(SHORTCUT)
        if shortcut:
            rect: QRect = option.rect
            painter.setPen(theme(self.state.theme).color("faint"))
            painter.drawText(rect.adjusted(0, 0, -12, 0), Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter,
                             shortcut)  # fmt: skip


class Palette(Card):
    """Type a part of a command's name, Enter runs it."""

    def __init__(self, parent: QWidget, state: AppState) -> None:
        super().__init__(parent, "palette", 520, at_top=True)
        self.state = state
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 10, 10, 10)
        column.setSpacing(6)
        self.text = QLineEdit()
        self.text.setObjectName("paletteText")
        self.text.setPlaceholderText("Find a command")
        self.list = QListWidget()
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setIconSize(QSize(16, 16))
        self.list.setFixedHeight(250)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setItemDelegate(_Rows(self.list, state))
        column.addWidget(self.text)
        column.addWidget(self.list)
        self.text.textChanged.connect(self._search)
        self.text.installEventFilter(self)
        self.list.itemClicked.connect(self._run)

    def open(self) -> None:
        self.text.clear()
        self._search("")
        self.show()
        self.place()
        self.text.setFocus()

    def _search(self, text: str) -> None:
        self.list.clear()
        for command in self.state.commands.search(text):
            item = QListWidgetItem(f"{command.menu}: {command.title}")
            item.setData(Qt.ItemDataRole.UserRole, command.id)
            item.setData(SHORTCUT, command.shortcut)
            item.setToolTip(command.tip)
            item.setIcon(icon(command.icon, self.state.theme, "muted") if command.icon else _nothing())
            self.list.addItem(item)
        self.list.setCurrentRow(0)

    def _run(self, item: QListWidgetItem) -> None:
        self.hide()
        self.state.commands.run(item.data(Qt.ItemDataRole.UserRole))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self.text and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            key, row = event.key(), self.list.currentRow()
            if key == Qt.Key.Key_Escape:
                self.hide()
                return True
            if key in (Qt.Key.Key_Down, Qt.Key.Key_Up):
                step = 1 if key == Qt.Key.Key_Down else -1
                self.list.setCurrentRow(min(self.list.count() - 1, max(0, row + step)))
                return True
            if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                item = self.list.currentItem()
                if item is not None:
                    self._run(item)
                return True
        if watched is self.text and event.type() == QEvent.Type.FocusOut:
            self.hide()
        return super().eventFilter(watched, event)


class HelpSheet(Card):
    """Every shortcut, and what the mouse does."""

    def __init__(self, parent: QWidget, state: AppState) -> None:
        super().__init__(parent, "sheet", 760, at_top=True)
        grid = QGridLayout(self)
        grid.setContentsMargins(20, 16, 20, 18)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(5)
        table = [c for c in state.commands.table.values() if c.shortcut]
        groups = [(menu, [(c.shortcut, c.title) for c in table if c.menu == menu]) for menu in MENUS]
        left = [groups[0], groups[1], groups[3]]
        right = [groups[2], ("Mouse", list(MOUSE))]
        for side, column in ((left, 0), (right, 3)):
            row = 0
            for title, lines in side:
                grid.addWidget(label(title, "heading"), row, column, 1, 2)
                row += 1
                for keys, what in lines:
                    cap = label(keys)
                    cap.setObjectName("keycap")
                    grid.addWidget(cap, row, column, Qt.AlignmentFlag.AlignLeft)
                    grid.addWidget(label(what), row, column + 1)
                    row += 1
                grid.setRowMinimumHeight(row, 6)
                row += 1
        grid.setColumnMinimumWidth(2, 12)
        grid.setColumnStretch(1, 1)
        grid.setColumnStretch(4, 1)

    def toggle(self) -> None:
        self.setVisible(not self.isVisible())
        if self.isVisible():
            self.place()

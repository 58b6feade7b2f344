"""Menus and shortcuts made from the table of commands."""

from __future__ import annotations

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu, QToolButton

from app.model.commands import MENUS
from app.model.state import AppState
from app.ui.theme import icon


class Actions:
    """One QAction per command, kept in step with the model."""

    def __init__(self, state: AppState, window: QMainWindow) -> None:
        self.state = state
        self.actions: dict[str, QAction] = {}
        self.recent = QMenu("Open recent", window)
        self.docks = QMenu("Panels", window)
        for command in state.commands.table.values():
            action = QAction(command.title, window)
            action.setCheckable(command.checkable)
            if command.shortcut:
                action.setShortcut(QKeySequence(command.shortcut))
            action.setStatusTip(command.tip)
            action.setToolTip(f"{command.tip}  ({command.shortcut})" if command.shortcut else command.tip)
            action.triggered.connect(lambda _on=False, name=command.id: self._run(name))
            self.actions[command.id] = action
            window.addAction(action)
        for name in MENUS:
            menu = window.menuBar().addMenu(name)
            for command in state.commands.table.values():
                if command.menu != name:
                    continue
                if command.separator:
                    menu.addSeparator()
                menu.addAction(self.actions[command.id])
                if command.id == "file.open":
                    menu.addMenu(self.recent)
                if command.id == "view.layout":
                    menu.addMenu(self.docks)
        for name in self.actions:
            self._on_enabled(name, state.commands.enabled(name))
            self._on_checked(name, state.commands.checked(name))
        self.set_icons(state.theme)
        state.commands.enabled_changed.connect(self._on_enabled)
        state.commands.checked_changed.connect(self._on_checked)
        state.theme_changed.connect(self.set_icons)

    def _run(self, name: str) -> None:
        commands = self.state.commands
        commands.run(name)
        self._on_checked(name, commands.checked(name))  # Qt has toggled the tick by itself

    def _on_enabled(self, name: str, on: bool) -> None:
        self.actions[name].setEnabled(on)

    def _on_checked(self, name: str, on: bool) -> None:
        if self.actions[name].isCheckable():
            self.actions[name].setChecked(on)

    def set_icons(self, theme: str) -> None:
        for command in self.state.commands.table.values():
            if command.icon:
                self.actions[command.id].setIcon(icon(command.icon, theme))

    def button(self, name: str, kind: str = "flat") -> QToolButton:
        """A tool button for a command."""
        made = QToolButton()
        made.setDefaultAction(self.actions[name])
        made.setProperty("kind", kind)
        return made

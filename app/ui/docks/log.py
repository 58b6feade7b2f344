"""Log dock: what was repaired, what is not simulated, what went wrong."""

from __future__ import annotations

import html
from datetime import datetime

from PySide6.QtWidgets import QPlainTextEdit, QToolButton

from app.model.state import AppState, LogLine
from app.ui.docks.dock import Dock
from app.ui.theme import theme

TONES = {"info": "muted", "warning": "warn", "error": "bad"}


class LogDock(Dock):
    """Newest line last, in the colour of its level."""

    def __init__(self, state: AppState) -> None:
        super().__init__("logDock", "Log", state.theme, scroll=False, margin=0)
        self.state = state
        self.view = QPlainTextEdit()
        self.view.setObjectName("logView")
        self.view.setReadOnly(True)
        self.view.setMaximumBlockCount(2000)
        self.view.setPlaceholderText("Nothing to report")
        self.column.addWidget(self.view)
        clear = QToolButton()
        clear.setText("Clear")
        clear.setProperty("kind", "flat")
        clear.clicked.connect(self._clear)
        self.extra.addWidget(clear)
        self.setMinimumHeight(90)
        self._times: list[str] = []
        for line in state.log:
            self.add(line)
        state.logged.connect(self.add)
        state.theme_changed.connect(self._recolor)

    def add(self, line: LogLine) -> None:
        """One entry."""
        self._times.append(f"{datetime.now():%H:%M:%S}")
        del self._times[: -len(self.state.log) or None]
        self._append(line, self._times[-1])

    def _append(self, line: LogLine, when: str) -> None:
        colors = theme(self.state.theme).colors
        text = f"{line.where}: {line.text}" if line.where else line.text
        if line.hint:
            text += f"  ({line.hint})"
        body = html.escape(text).replace("\n", " ")
        self.view.appendHtml(
            f'<span style="color:{colors["faint"]}">{when}</span>&nbsp; '
            f'<span style="color:{colors[TONES.get(line.level, "text")]}">{body}</span>'
        )

    def _clear(self) -> None:
        self.state.log.clear()
        self._times.clear()
        self.view.clear()

    def _recolor(self, _theme: str) -> None:
        self.view.clear()
        for line, when in zip(self.state.log, self._times, strict=False):
            self._append(line, when)

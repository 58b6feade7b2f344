"""A map of all environments as a grid of cells: shown ones are lit, a click shows or hides one, a drag many."""

from __future__ import annotations

import math

import numpy as np
from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QHelpEvent, QImage, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from app.model.intents import Intents
from app.model.state import AppState
from app.ui.theme import theme

CELL_GAP_FROM = 7  # [pixel] cells at least this large are drawn apart
LARGEST = 18.0  # [pixel]


class GridMap(QWidget):
    """Row-major as the environments stand in the drawing: rows along x, columns along y."""

    def __init__(self, state: AppState, intents: Intents) -> None:
        super().__init__()
        self.setObjectName("gridMap")
        self.state = state
        self.intents = intents
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._hover = -1
        self._painting: bool | None = None  # a drag shows (True) or hides (False) what it passes
        state.scene_changed.connect(self._changed)
        state.shown_changed.connect(self._again)
        state.selection_changed.connect(self._again)
        state.theme_changed.connect(self._on_theme)

    def _changed(self) -> None:
        self.updateGeometry()
        self.update()

    def _again(self) -> None:
        self.update()

    def _on_theme(self, _name: str) -> None:
        self.update()

    @property
    def per_row(self) -> int:
        return max(1, math.ceil(math.sqrt(self.state.n_envs)))

    def sizeHint(self) -> QSize:
        side = round(min(LARGEST * self.per_row, 160))
        return QSize(210, max(40, side))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())

    def _cell(self) -> float:
        rows = math.ceil(max(1, self.state.n_envs) / self.per_row)
        return min(LARGEST, self.width() / self.per_row, self.height() / rows)

    def env_at(self, at: QPointF) -> int:
        """The environment under a point of the widget, -1 = none."""
        cell = self._cell()
        column, row = int(at.x() // cell), int(at.y() // cell)
        env = row * self.per_row + column
        return env if 0 <= column < self.per_row and 0 <= env < self.state.n_envs and at.x() >= 0 else -1

    def rect_of(self, env: int) -> QRectF:
        """The cell of an environment."""
        cell = self._cell()
        row, column = divmod(env, self.per_row)
        return QRectF(column * cell, row * cell, cell, cell)

    # ------------------------------------------------------------------ drawing
    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colors, state = theme(self.state.theme), self.state
        if state.n_envs == 0:
            painter.setPen(colors.color("faint"))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, "No environments")
            return
        if self._cell() >= CELL_GAP_FROM:
            self._draw_cells(painter)
        else:
            self._draw_image(painter)
        pen = QPen(colors.color("text"), 1.6)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for env, color in ((state.inspected, "warn"), (self._hover, "text")):
            if 0 <= env < state.n_envs:
                pen.setColor(colors.color(color))
                painter.setPen(pen)
                painter.drawRoundedRect(self.rect_of(env).adjusted(0.8, 0.8, -0.8, -0.8), 2.5, 2.5)

    def _draw_cells(self, painter: QPainter) -> None:
        colors, shown = theme(self.state.theme), set(self.state.shown)
        painter.setPen(Qt.PenStyle.NoPen)
        on, off = colors.color("accent"), colors.color("pressed")
        for env in range(self.state.n_envs):
            painter.setBrush(on if env in shown else off)
            painter.drawRoundedRect(self.rect_of(env).adjusted(1.2, 1.2, -1.2, -1.2), 2, 2)

    def _draw_image(self, painter: QPainter) -> None:
        colors, n, side = theme(self.state.theme), self.state.n_envs, self.per_row
        rows = math.ceil(n / side)
        pixels = np.zeros(rows * side, np.uint32)
        pixels[:n] = colors.color("pressed").rgba()
        pixels[np.asarray(self.state.shown, np.int64)] = colors.color("accent").rgba()
        image = QImage(pixels.tobytes(), side, rows, side * 4, QImage.Format.Format_ARGB32)
        cell = self._cell()
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, False)
        painter.drawImage(QRectF(0, 0, side * cell, rows * cell), image)

    # ------------------------------------------------------------------ mouse
    def mousePressEvent(self, event: QMouseEvent) -> None:
        env = self.env_at(event.position())
        if env < 0:
            return
        if event.button() == Qt.MouseButton.LeftButton:
            self._painting = env not in self.state.shown
            self.intents.toggle_env.emit(env)
        elif event.button() == Qt.MouseButton.RightButton:
            self.state.inspect(env)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        env = self.env_at(event.position())
        if env != self._hover:
            self._hover = env
            self.update()
            if env >= 0 and self._painting is not None and (env in self.state.shown) != self._painting:
                self.intents.toggle_env.emit(env)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._painting = None

    def leaveEvent(self, _event: QEvent) -> None:
        self._hover = -1
        self.update()

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent):
            env = self.env_at(QPointF(event.pos()))
            if env >= 0:
                what = "shown, click hides it" if env in self.state.shown else "click shows it"
                QToolTip.showText(event.globalPos(), f"Environment {env}: {what}", self)
            else:
                QToolTip.hideText()
            return True
        return super().event(event)

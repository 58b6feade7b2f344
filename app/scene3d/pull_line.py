"""The spring of a pull, drawn over the view: from the place on the body that is held to the pointer."""

from __future__ import annotations

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QWidget

COLOR = QColor("#ffb02e")


class PullLine(QWidget):
    """Covers the view, lets the mouse through, and is hidden unless something is pulled."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._over = parent
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._ends = (QPointF(), QPointF())
        self.hide()

    def set_ends(self, held: QPointF, target: QPointF) -> None:
        """Both in the view's logical pixels."""
        if self.isVisible() and self._ends == (held, target):
            return  # painting this anew paints the view anew, which comes back here
        self._ends = (held, target)
        self.setGeometry(self._over.rect())
        self.show()
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        held, target = self._ends
        painter.setPen(QPen(COLOR, 2.4, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.drawLine(held, target)
        painter.setBrush(COLOR)
        painter.drawEllipse(held, 3.5, 3.5)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawEllipse(target, 6, 6)

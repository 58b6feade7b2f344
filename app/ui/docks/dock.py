"""A dock with our own title bar and a scrolling body."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtWidgets import QDockWidget, QFrame, QHBoxLayout, QLabel, QScrollArea, QToolButton, QVBoxLayout, QWidget

from app.ui.theme import icon
from app.ui.widgets.basics import GAP, MARGIN


class _Scroll(QScrollArea):
    """As wide as its content and a scroll bar need, so that nothing is cut off at the side."""

    def __init__(self, body: QWidget) -> None:
        super().__init__()
        self._body = body
        self.setObjectName("dockBody")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidget(body)
        body.installEventFilter(self)

    def minimumSizeHint(self) -> QSize:
        bar = self.verticalScrollBar().sizeHint().width()
        return QSize(self._body.minimumSizeHint().width() + bar, 80)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)


class Dock(QDockWidget):
    """Can be moved, hidden and tabbed; never floats away with a GL widget, since it holds none."""

    def __init__(self, name: str, title: str, theme: str, scroll: bool = True, margin: int = MARGIN) -> None:
        super().__init__(title)
        self.setObjectName(name)
        self.setAllowedAreas(Qt.DockWidgetArea.AllDockWidgetAreas)
        bar = QWidget()
        bar.setObjectName("dockTitle")
        bar.setAttribute(Qt.WidgetAttribute.WA_StyledBackground, True)
        row = QHBoxLayout(bar)
        row.setContentsMargins(MARGIN, 4, 4, 4)
        row.addWidget(QLabel(title.upper()))
        row.addStretch(1)
        self.extra = QHBoxLayout()
        row.addLayout(self.extra)
        self._close = QToolButton()
        self._close.setProperty("kind", "flat")
        self._close.setToolTip("Hide this panel (View, Panels brings it back)")
        self._close.clicked.connect(self.hide)
        row.addWidget(self._close)
        self.setTitleBarWidget(bar)
        body = QWidget()
        body.setObjectName("dockBody")
        body.setAttribute(Qt.WidgetAttribute.WA_StyledBackground, True)
        self.column = QVBoxLayout(body)
        self.column.setContentsMargins(margin, margin, margin, margin)
        self.column.setSpacing(GAP)
        if scroll:
            self.setWidget(_Scroll(body))
        else:
            self.setWidget(body)
        self.set_icons(theme)

    def set_icons(self, theme: str) -> None:
        self._close.setIcon(icon("close", theme, "faint"))

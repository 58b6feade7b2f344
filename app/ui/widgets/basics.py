"""Labels, rules and forms with the same spacing everywhere."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDoubleSpinBox, QFormLayout, QFrame, QLabel, QLayout, QSizePolicy, QSpinBox, QWidget

GAP = 8
MARGIN = 12


def label(text: str = "", role: str = "", wrap: bool = False) -> QLabel:
    """A label in one of the style sheet's roles: muted, faint, heading, title, hero, mono, bad, warn."""
    made = QLabel(text)
    made.setTextFormat(Qt.TextFormat.PlainText)
    if role:
        made.setProperty("role", role)
    if wrap:
        made.setWordWrap(True)
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        made.setSizePolicy(policy)
    return made


def rule() -> QFrame:
    """A thin line across."""
    line = QFrame()
    line.setObjectName("rule")
    line.setFixedHeight(1)
    return line


def form() -> QFormLayout:
    """Label and field pairs."""
    made = QFormLayout()
    made.setContentsMargins(0, 0, 0, 0)
    made.setHorizontalSpacing(12)
    made.setVerticalSpacing(GAP)
    made.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
    made.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
    return made


def spin(low: int, high: int, value: int) -> QSpinBox:
    """A field for a whole number."""
    made = QSpinBox()
    made.setRange(low, high)
    made.setValue(value)
    made.setMinimumWidth(80)
    made.lineEdit().setTextMargins(6, 0, 0, 0)  # a style sheet's padding does not reach the inner field
    return made


def meters() -> QDoubleSpinBox:
    """A field for a length."""
    made = QDoubleSpinBox()
    made.setRange(0.0, 1000.0)
    made.setDecimals(2)
    made.setSingleStep(0.1)
    made.setSuffix(" m")
    made.setMinimumWidth(84)
    made.lineEdit().setTextMargins(6, 0, 0, 0)
    return made


def clear_layout(layout: QLayout) -> None:
    """Takes everything out of a layout."""
    while layout.count():
        item = layout.takeAt(0)
        if item is None:
            return
        widget, inner = item.widget(), item.layout()
        if widget is not None:
            widget.hide()
            widget.deleteLater()
        elif inner is not None:
            clear_layout(inner)


def framed(name: str, parent: QWidget | None = None) -> QFrame:
    """A frame that the style sheet knows by its name."""
    made = QFrame(parent)
    made.setObjectName(name)
    made.setAttribute(Qt.WidgetAttribute.WA_StyledBackground, True)
    return made


def elided(text: str, limit: int = 60) -> str:
    """A long path or name with its middle left out."""
    if len(text) <= limit:
        return text
    half = (limit - 1) // 2
    return f"{text[:half]}…{text[-half:]}"

"""The look of the whole application: colours from resources/themes, one style sheet, icons in the theme's colours."""

from __future__ import annotations

import os
import re
import tempfile
import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QIcon, QImage, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication, QWidget

_RESOURCES = Path(str(files("resources")))
SMALL, NORMAL, TITLE, HERO = 8.5, 9.5, 12.5, 20.0  # [pt]


class Theme:
    """Named colours of one theme."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.colors: dict[str, str] = tomllib.loads((_RESOURCES / "themes" / f"{name}.toml").read_text("utf-8"))

    def color(self, name: str) -> QColor:
        return QColor(self.colors[name])

    def sheet(self) -> str:
        """The style sheet with this theme's colours and icon files."""
        text = (_RESOURCES / "themes" / "app.qss").read_text("utf-8")
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        text = re.sub(r"@icon\((\w+)\)", lambda m: self._icon_file(m[1]), text)
        sizes = {"size": NORMAL, "size_small": SMALL, "size_title": TITLE, "size_hero": HERO}
        values = self.colors | {name: f"{size}pt" for name, size in sizes.items()}
        return re.sub(r"@(\w+)", lambda m: values[m[1]], text)

    def _icon_file(self, name: str) -> str:
        """A picture of an icon on disk, as style sheets want it."""
        color = self.colors["on_accent" if name == "check" else "muted"]
        path = _icon_folder() / f"{self.name}-{name}.png"
        if not path.is_file():
            draw_icon(name, QColor(color), 32).save(str(path))
        return path.as_posix()

    def palette(self) -> QPalette:
        """For what the style sheet does not reach."""
        role, out = QPalette.ColorRole, QPalette()
        for kind, name in (
            (role.Window, "window"), (role.WindowText, "text"), (role.Base, "field"), (role.AlternateBase, "panel"),
            (role.Text, "text"), (role.Button, "raised"), (role.ButtonText, "text"), (role.ToolTipBase, "raised"),
            (role.ToolTipText, "text"), (role.Highlight, "accent"), (role.HighlightedText, "on_accent"),
            (role.PlaceholderText, "faint"), (role.Link, "accent"), (role.Mid, "border"), (role.Dark, "border"),
        ):  # fmt: skip
            out.setColor(kind, self.color(name))
        for kind in (role.WindowText, role.Text, role.ButtonText):
            out.setColor(QPalette.ColorGroup.Disabled, kind, self.color("faint"))
        return out


@cache
def theme(name: str) -> Theme:
    return Theme(name)


@cache
def _icon_folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"genesis-studio-icons-{os.getuid() if hasattr(os, 'getuid') else 0}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="genesis-studio-icons-"))


def draw_icon(name: str, color: QColor, size: int) -> QPixmap:
    """An icon of resources/icons in a colour; an unknown name is a KeyError."""
    path = _RESOURCES / "icons" / f"{name}.svg"
    if not path.is_file():
        raise KeyError(f"no icon is named '{name}'")
    data = path.read_text("utf-8").replace("currentColor", color.name())
    image = QImage(QSize(size, size), QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(QByteArray(data.encode())).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return QPixmap.fromImage(image)


@cache
def icon(name: str, theme_name: str, color: str = "text") -> QIcon:
    """An icon in a colour of a theme, fainter where it is disabled."""
    found, colors = QIcon(), theme(theme_name)
    for size in (16, 24, 32, 48):
        found.addPixmap(draw_icon(name, colors.color(color), size))
        found.addPixmap(draw_icon(name, colors.color("faint"), size), QIcon.Mode.Disabled)
    return found


def apply_theme(app: QApplication, name: str) -> None:
    """Palette and style sheet for every widget that there is and will be."""
    if app.property("studioTheme") == name:
        return  # styling every widget anew takes a while
    app.setProperty("studioTheme", name)
    chosen = theme(name)
    app.setStyle("Fusion")
    font = QFont(app.font())
    font.setPointSizeF(NORMAL)
    app.setFont(font)
    app.setPalette(chosen.palette())
    app.setStyleSheet(chosen.sheet())


def set_role(widget: QWidget, **values: str) -> None:
    """Properties that the style sheet looks at; the widget is styled anew when one changes."""
    changed = False
    for name, value in values.items():
        if widget.property(name) != value:
            widget.setProperty(name, value)
            changed = True
    if changed:
        widget.style().unpolish(widget)
        widget.style().polish(widget)

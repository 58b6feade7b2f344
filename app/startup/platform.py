"""Before Qt: the GL platform, and whether there is a display at all."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from genesis_core.render import platform


def prepare() -> None:
    """Environment fix-ups; to be called before anything imports Qt or OpenGL."""
    platform.prepare()
    os.environ.setdefault("QT_API", "pyside6")
    os.environ.setdefault("QT_ENABLE_HIGHDPI_SCALING", "1")


def why_no_display() -> str:
    """Empty where a window can be opened, else the reason. Qt would abort the process instead of saying so."""
    if not sys.platform.startswith("linux"):
        return ""
    if os.environ.get("QT_QPA_PLATFORM", "").split(":")[0] in ("offscreen", "minimal", "vnc"):
        return ""
    if os.environ.get("WAYLAND_DISPLAY"):
        return ""
    display = os.environ.get("DISPLAY", "")
    if not display:
        return "neither DISPLAY nor WAYLAND_DISPLAY is set"
    return "" if _answers(display) else f"the display {display} does not answer"


def _answers(display: str) -> bool:
    host, _, rest = display.rpartition(":")
    number = rest.split(".")[0]
    if not number.isdecimal():
        return False
    if host in ("", "unix"):
        for name in (f"\0/tmp/.X11-unix/X{number}", f"/tmp/.X11-unix/X{number}"):
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(2.0)
                try:
                    client.connect(name)
                    return True
                except OSError:
                    continue
        return False
    if host.startswith("/"):  # launchd's sockets on macOS and the like
        return Path(display).exists() or Path(host).exists()
    try:
        with socket.create_connection((host, 6000 + int(number)), timeout=3.0):
            return True
    except OSError:
        return False

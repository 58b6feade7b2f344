"""One GL platform for Qt, PyOpenGL and our own contexts: call `prepare` before importing any of them."""

from __future__ import annotations

import os
import sys


def prepare() -> None:
    """On Linux everything goes through EGL; what the user set stays. A mismatch draws nothing, without an error."""
    if sys.platform.startswith("linux"):
        os.environ.setdefault("PYOPENGL_PLATFORM", "egl")
        os.environ.setdefault("QT_XCB_GL_INTEGRATION", "xcb_egl")

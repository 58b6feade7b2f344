"""Makes the helper modules of this folder importable from every test below it, and gives GL tests a display."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from app.startup.platform import prepare, why_no_display

prepare()  # before anything imports OpenGL
# A shell that runs the tests in its background ignores Ctrl+C for them and for all that they start; tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def display() -> Iterator[str]:
    """Why there is no display for windows ("" = there is one). Starts Xvfb once where none answers."""
    if not sys.platform.startswith("linux") or not why_no_display():
        yield ""
        return
    server = shutil.which("Xvfb")
    if server is None:
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
        yield "no display, and Xvfb is not installed"
        return
    ours, theirs = os.pipe()
    process = subprocess.Popen(
        [server, "-displayfd", str(theirs), "-screen", "0", "1920x1080x24", "-nolisten", "tcp"],
        pass_fds=(theirs,),
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    with os.fdopen(ours) as answer:
        number = answer.readline().strip()  # with its end: the server dies of writing it to a closed pipe
    before = os.environ.get("DISPLAY")
    if not number:
        process.wait(5)
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
        yield "no display, and Xvfb does not start"
        return
    os.environ["DISPLAY"] = f":{number}"
    yield ""
    if before is None:
        del os.environ["DISPLAY"]
    else:
        os.environ["DISPLAY"] = before
    process.terminate()
    process.wait(10)

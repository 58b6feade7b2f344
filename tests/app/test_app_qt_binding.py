"""The Qt binding must not lose references: PySide6 6.12 does on Python below 3.12, and aborts after some minutes."""

from __future__ import annotations

import subprocess
import sys

import pytest
from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QLabel

CALLS = 200
immortal = pytest.mark.skipif(sys.version_info >= (3, 12), reason="None and True are immortal from Python 3.12 on")


class _Sender(QObject):
    told = Signal(bool)


@immortal
def test_none_keeps_its_references_over_qt_calls(qtbot) -> None:
    label = QLabel()
    qtbot.addWidget(label)
    before = sys.getrefcount(None)
    for n in range(CALLS):
        label.setText(str(n))
        label.setEnabled(n % 2 == 0)
    assert sys.getrefcount(None) > before - CALLS // 2


@immortal
def test_true_keeps_its_references_over_signals(qapp) -> None:
    sender = _Sender()
    before = sys.getrefcount(True)
    for _ in range(CALLS):
        sender.told.emit(True)
    assert sys.getrefcount(True) > before - CALLS // 2


def test_the_window_needs_no_physics_and_no_compiler() -> None:
    """What the window's process imports: no kernels, no MuJoCo, no torch."""
    code = (
        "import app.startup.compose, sys;"
        "print(sorted({'numba', 'llvmlite', 'mujoco', 'torch', 'trimesh', 'zarr', 'av'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr

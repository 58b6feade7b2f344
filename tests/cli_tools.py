"""Runs the command line in a process of its own, as users do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LIMIT = 300.0  # [s] the first run may have to compile the kernels


def environment(**changes: str | None) -> dict[str, str]:
    """This process's environment without a display, with changes; None removes a variable."""
    out = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
    for name, value in changes.items():
        if value is None:
            out.pop(name, None)
        else:
            out[name] = value
    return out


def command(*arguments: str | Path) -> list[str]:
    """The command line for `genesis-studio ARGUMENTS`."""
    return [sys.executable, "-m", "genesis_core.cli", *map(str, arguments)]


def studio(*arguments: str | Path, cwd: Path | None = None, **changes: str | None) -> subprocess.CompletedProcess[str]:
    """Runs `genesis-studio ARGUMENTS`; nothing it prints may be a traceback."""
    done = subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        cwd=cwd,
        env=environment(**changes),
        check=False,
    )
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    return done

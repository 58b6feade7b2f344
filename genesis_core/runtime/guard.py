"""Workers end with their parent, however it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time

PR_SET_PDEATHSIG = 1
POLL = 0.5  # [s]


def end_with_parent(parent_pid: int) -> None:
    """Call first thing in a worker. On Linux the kernel kills it with its parent; elsewhere a thread watches.

    The thread runs on Linux too: it covers a parent that was gone before the kernel was asked.
    """
    if sys.platform.startswith("linux"):
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    threading.Thread(target=_watch, args=(parent_pid,), name="parent-watch", daemon=True).start()


def _watch(parent_pid: int) -> None:
    while os.getppid() == parent_pid:
        time.sleep(POLL)
    os._exit(1)

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


def end_with_parent(parent_pid: int, with_thread: bool = True) -> None:
    """Call first thing in a worker. On Linux the kernel kills it with its parent; elsewhere a thread watches.

    The kernel acts when the *thread* that started the worker ends, so it is asked only for `with_thread`: a worker that
    was started by the main thread. The watching thread runs on Linux too, for the other workers and for a parent that
    was gone before the kernel was asked.
    """
    if with_thread and sys.platform.startswith("linux"):
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    threading.Thread(target=_watch, args=(parent_pid,), name="parent-watch", daemon=True).start()


def _watch(parent_pid: int) -> None:
    while os.getppid() == parent_pid:
        time.sleep(POLL)
    os._exit(1)

"""Starting a process that finds its device in its environment: one piece for the supervisor and for `gs.launch`."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.process import BaseProcess
from typing import Any

_environment_lock = threading.Lock()  # the variables belong to the whole process


def spawn(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    name: str,
    environment: Mapping[str, str | None],
    *,
    daemon: bool = True,
) -> BaseProcess:
    """A started process with these variables (None = without it), which it has before it imports anything.

    Always spawned: a forked child would inherit locks of threads that it has not, and a CUDA that does not work in it.
    """
    process = multiprocessing.get_context("spawn").Process(target=target, args=args, name=name, daemon=daemon)
    with _environment_lock, variables(environment), _interrupts_held():
        process.start()
    return process


def from_main_thread() -> bool:
    """Whether a process started here may be tied to this thread (see guard.py)."""
    return threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl+C reaches this process afterwards, and a process started inside never: it is not its business."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def variables(values: Mapping[str, str | None]) -> Iterator[None]:
    """The variables of this process, changed inside; a process that is started inside keeps them."""
    before = {name: os.environ.get(name) for name in values}
    _set(values)
    try:
        yield
    finally:
        _set(before)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value

"""Helper threads for calls that release the GIL, and how many of them a call is worth.

Waking a thread takes some tens of microseconds, as long as one step of a small batch: so a call takes only as many
helpers as its expected work can keep busy. The work is known from the calls before.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

Call = Callable[[], Any]
WORTH_A_THREAD = 100e-6  # seconds of work that one more thread must save


class Crew:
    """Threads that wait for calls; the caller of `run` works along. A forked child makes its own on its first call."""

    def __init__(self, helpers: int) -> None:
        self._helpers = helpers
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._jobs: SimpleQueue[Call | None] = SimpleQueue()
        self._done: SimpleQueue[float | BaseException] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"genesis-block-{k}", daemon=True) for k in range(self._helpers)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._done.put(_outcome(job))

    def run(self, own: Call, others: Sequence[Call]) -> float:
        """own() on this thread and the others on helpers, until all have ended; returns the sum of their CPU seconds.

        Raises the first error once all have ended.
        """
        if os.getpid() != self._pid:
            self._start()  # the threads stayed with the parent: nobody would ever answer
        for job in others:
            self._jobs.put(job)
        outcomes = [_outcome(own)]
        outcomes += [self._done.get() for _ in others]
        seconds = 0.0
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
            seconds += outcome
        return seconds

    def close(self) -> None:
        """Ends the threads."""
        if os.getpid() != self._pid:
            self._threads = []
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []


def _outcome(job: Call) -> float | BaseException:
    """CPU seconds of a call, or its error. Waiting does not count: a thread that wakes late has not worked longer."""
    began = time.thread_time()
    try:
        job()
    except BaseException as error:
        return error
    return time.thread_time() - began


class Pace:
    """Expected seconds of work per unit, from the calls seen so far."""

    def __init__(self) -> None:
        self._cost: float | None = None

    def helpers(self, units: int, most: int) -> int:
        """Helpers that `units` of work keep busy, at most `most`; all of them while nothing is known."""
        if self._cost is None:
            return most
        return max(0, min(most, int(units * self._cost / WORTH_A_THREAD) - 1))

    def note(self, seconds: float, units: int) -> None:
        """A call did `units` in that much CPU time."""
        seen = seconds / max(units, 1)
        self._cost = seen if self._cost is None else 0.8 * self._cost + 0.2 * seen

"""Waiting for worker processes in tests."""

from __future__ import annotations

import time
from collections.abc import Callable

from genesis_core.runtime import messages as msg
from genesis_core.runtime.supervisor import Session, SessionEvent, failure_of

PATIENCE = 300.0  # [s] the first test may have to compile the kernels


def run_until(session: Session, wanted: Callable[[], bool], seconds: float = 30.0) -> list[SessionEvent]:
    """Pumps until `wanted()`; the events that came. A worker that fails is the test's failure."""
    events: list[SessionEvent] = []
    deadline = time.monotonic() + seconds
    while not wanted():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain; states {session.states}, {events[-5:]}"
        session.wait(0.05)
        for event in session.pump():
            if isinstance(event.message, msg.Failed | msg.WorkerDied):
                raise failure_of(event, session)
            events.append(event)
    return events


def wait_event(session: Session, kind: type[msg.Message], seconds: float = 30.0) -> SessionEvent:
    """Pumps until a message of a kind comes, which may be one of failure."""
    deadline = time.monotonic() + seconds
    while True:
        assert time.monotonic() < deadline, f"no {kind.__name__} within {seconds} s; states {session.states}"
        session.wait(0.05)
        for event in session.pump():
            if isinstance(event.message, kind):
                return event


def pump_for(session: Session, seconds: float) -> list[SessionEvent]:
    """Pumps for a while."""
    end = time.monotonic() + seconds
    return run_until(session, lambda: time.monotonic() >= end, seconds + 5)

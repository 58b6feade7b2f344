"""Helper threads, and how many of them a call takes."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from genesis_core.backend.crew import WORTH_A_THREAD, Crew, Pace


def busy(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_every_job_runs_once_and_on_a_thread_of_its_own():
    crew = Crew(3)
    seen: list[int] = []
    meet = threading.Barrier(4, timeout=30)

    def job() -> None:
        meet.wait()  # passes only when four threads are here at once
        seen.append(threading.get_ident())

    for _ in range(5):
        seen.clear()
        crew.run(job, [job] * 3)
        assert len(set(seen)) == 4
    crew.close()


def test_an_error_of_a_helper_reaches_the_caller_after_all_have_ended():
    crew = Crew(2)
    ended = []

    def fails() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        crew.run(lambda: ended.append(0), [fails, lambda: ended.append(1)])
    assert sorted(ended) == [0, 1]
    assert crew.run(lambda: None, [lambda: None]) < 1.0  # and the crew still works
    crew.close()


def test_the_time_of_a_call_is_work_and_not_waiting():
    crew = Crew(1)
    assert crew.run(lambda: busy(0.02), [lambda: time.sleep(0.2)]) < 0.1
    crew.close()


def test_closing_ends_the_threads():
    before = threading.active_count()
    crew = Crew(2)
    assert threading.active_count() == before + 2
    crew.close()
    assert threading.active_count() == before


def test_a_call_takes_as_many_helpers_as_it_can_keep_busy():
    pace = Pace()
    assert pace.helpers(10, most=3) == 3  # nothing known yet
    pace.note(10 * WORTH_A_THREAD, units=100)
    assert pace.helpers(5, most=3) == 0
    assert [pace.helpers(n, most=3) for n in (10, 20, 30, 40, 1000)] == [0, 1, 2, 3, 3]
    for _ in range(50):
        pace.note(np.float64(WORTH_A_THREAD), units=100)
    assert pace.helpers(100, most=3) == 0

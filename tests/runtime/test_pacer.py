"""Pacing on clock values that the tests make up."""

from __future__ import annotations

import pytest

from genesis_core.runtime.pacer import CHUNK_SECONDS, MAX_LAG, Pacer


def _simulated(pacer: Pacer, seconds: float, step_cost: float) -> float:
    """Runs a pacer against a clock; simulated seconds."""
    now, steps = 100.0, 0
    pacer.anchor(now)
    end = now + seconds
    while now < end:
        due = pacer.due(now)
        if due == 0:
            now += max(1e-4, pacer.wait(now))
            continue
        steps += due
        now += due * step_cost
        pacer.took(due, due * step_cost)
    return steps * pacer.timestep


@pytest.mark.parametrize("factor", [0.1, 1.0, 3.0])
def test_simulated_time_follows_the_clock_times_the_factor(factor: float) -> None:
    pacer = Pacer(0.005)
    pacer.factor = factor
    assert _simulated(pacer, 5.0, 1e-4) == pytest.approx(5.0 * factor, abs=0.02 * factor + 0.01)


def test_without_a_factor_it_goes_as_fast_as_the_machine() -> None:
    pacer = Pacer(0.005)
    pacer.factor = None
    assert _simulated(pacer, 2.0, 1e-3) == pytest.approx(2.0 / 1e-3 * 0.005, rel=0.05)


def test_a_slow_machine_does_not_pile_up_a_debt() -> None:
    pacer = Pacer(0.01)
    assert _simulated(pacer, 5.0, 0.05) == pytest.approx(1.0, rel=0.1)  # a fifth of real time is all it can do
    now = 200.0
    pacer.anchor(now)
    for _ in range(50):  # then it is fast again: it must not race to catch up
        pacer.took(1, 1e-5)
    now += 10 * MAX_LAG
    assert pacer.due(now) <= 2


def test_a_chunk_lasts_about_a_frame() -> None:
    pacer = Pacer(0.002)
    pacer.factor = None
    for _ in range(50):
        pacer.took(10, 10 * 1e-4)
    assert pacer.chunk() * 1e-4 == pytest.approx(CHUNK_SECONDS, rel=0.1)

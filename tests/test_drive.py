"""Open-loop motion from scene files."""

from __future__ import annotations

import numpy as np
import pytest

from genesis_core.drive import Drive, DriveSpec
from genesis_core.errors import OptionError

NAMES = ["left_hip", "left_knee", "right_hip", "right_knee"]
RANGE = np.array([[-1, 1], [0, 2], [-1, 1], [0, 2]], dtype=float)


def make(specs: list[DriveSpec], n: int = 5, **kw: int) -> Drive:
    return Drive(specs, NAMES, np.array([0.0, 1.0, 0.0, 1.0]), RANGE, n, **kw)


def test_a_sine_moves_only_the_actuators_it_names() -> None:
    ctrl = make([DriveSpec(actuators="*_hip", amplitude=0.5, frequency=1, ramp=0)]).at(0.25)
    np.testing.assert_allclose(ctrl, np.tile([0.5, 1.0, 0.5, 1.0], (5, 1)), atol=1e-6)


def test_the_phase_step_shifts_each_further_actuator() -> None:
    ctrl = make([DriveSpec(actuators="*_hip", amplitude=0.5, frequency=1, ramp=0, phase_step=0.5)]).at(0.25)
    np.testing.assert_allclose(ctrl[0], [0.5, 1.0, -0.5, 1.0], atol=1e-6)


def test_controls_never_leave_their_range() -> None:
    drive = make([DriveSpec(actuators="*", amplitude=9, frequency=3, wave="random", scale="range", env_phase=1)])
    for t in np.linspace(0, 5, 40):
        ctrl = drive.at(t)
        assert (ctrl >= RANGE[:, 0]).all() and (ctrl <= RANGE[:, 1]).all()


def test_motion_does_not_depend_on_how_environments_are_split() -> None:
    spec = [DriveSpec(actuators="*", wave="random", amplitude=0.4, env_phase=1, env_amplitude=0.5, frequency=2)]
    whole = make(spec, 8, seed=3).at(1.7)
    part = make(spec, 3, seed=3, first_env=5).at(1.7)
    np.testing.assert_array_equal(whole[5:], part)
    assert np.ptp(whole, axis=0).min() > 1e-3


def test_random_motion_is_continuous_and_fades_in() -> None:
    drive = make([DriveSpec(actuators="*_hip", wave="random", amplitude=1, frequency=2, ramp=1)])
    np.testing.assert_allclose(drive.at(0.0), np.tile(drive.ctrl0, (5, 1)))
    times = np.linspace(1, 6, 2001)
    path = np.stack([drive.at(t) for t in times])
    assert np.abs(np.diff(path, axis=0)).max() < 0.03
    assert np.ptp(path[:, 0, 0]) > 0.5


def test_times_may_differ_between_environments() -> None:
    drive = make([DriveSpec(actuators="*_hip", frequency=1, ramp=0)], 2)
    both = drive.at(np.array([0.1, 0.6]))
    np.testing.assert_array_equal(both[1], drive.at(0.6)[1])


def test_a_rule_that_names_no_actuator_is_refused_with_a_near_name() -> None:
    with pytest.raises(OptionError, match="left_hip"):
        make([DriveSpec(actuators="left_hi")])

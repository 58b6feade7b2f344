"""A running session: what the window does with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from session_tools import PATIENCE, pump_for, run_until, wait_event

from genesis_core.errors import OptionError, StateError
from genesis_core.runtime import messages as msg
from genesis_core.runtime.shm import Frame
from genesis_core.runtime.supervisor import Session, SessionConfig

pytestmark = pytest.mark.slow
MakeSession = Callable[..., Session]
DT = 0.01


@pytest.fixture(scope="module")
def shared(open_session: MakeSession) -> Iterator[Session]:
    """Two workers, seven environments (4 + 3), for tests that put it back to the start."""
    session = open_session(devices=("cpu:0", "cpu:1"), n_envs=7)
    yield session
    session.close()


@pytest.fixture
def session(shared: Session) -> Session:
    shared.pause()
    shared.set_speed(None)
    shared.reset()
    shared.show([0, 6])
    run_until(shared, lambda: _frame_at(shared, 0) is not None)
    return shared


_last: dict[int, Frame] = {}


def _newest(session: Session) -> Frame | None:
    frame = session.frame()
    if frame is not None:
        _last[id(session)] = frame
    return _last.get(id(session))


def _frame_at(session: Session, step: int) -> Frame | None:
    """The newest frame if all its environments have taken `step` steps."""
    frame = _newest(session)
    if frame is None or list(frame.envs) != session._shown:
        return None
    return frame if np.allclose(frame.time, step * DT) else None


def _await_step(session: Session, step: int) -> Frame:
    run_until(session, lambda: _frame_at(session, step) is not None)
    frame = _frame_at(session, step)
    assert frame is not None
    return frame


def test_the_scene_comes_before_the_kernels_and_the_stages_are_told(tiny: Path) -> None:
    with Session(SessionConfig(scene=msg.SceneRequest(path=str(tiny)), n_envs=3)) as session:
        events = run_until(session, lambda: session.ready, PATIENCE)
        names = [type(e.message).__name__ for e in events]
        assert names.index("Hello") < names.index("SceneLoaded") < names.index("Ready")
        assert session.bundle is not None and session.bundle.ngeom == 3
        assert session.bundle.geom_pos0[1] == pytest.approx([0, 0, 1])
        progress = [e.message for e in events if isinstance(e.message, msg.Progress)]
        assert all(0 <= p.fraction <= 1 for p in progress) and any(p.stage == "compiling the scene" for p in progress)
        assert '"recording"' in session.spec_json
    assert session.pids == [None] and session.states == ["ended"]


def test_steps_are_taken_exactly_and_falling_obeys_gravity(session: Session) -> None:
    before = _await_step(session, 0)
    session.step(20)
    after = _await_step(session, 20)
    assert list(after.envs) == [0, 6]
    # semi-implicit Euler: z = z0 - g dt^2 n (n + 1) / 2
    assert after.qpos[:, 2] == pytest.approx(1 - 9.81 * DT**2 * 20 * 21 / 2, abs=1e-4)
    rows = after.rows.reshape(2, -1, 3, 4)
    assert rows[:, 1, :, 3] == pytest.approx(after.qpos[:, :3], abs=1e-6)
    assert before.qpos[0, 2] == pytest.approx(1.0)


def test_play_runs_and_pause_stops(session: Session) -> None:
    session.play()
    run_until(session, lambda: session.states == ["running"] * 2 and min(t.steps for t in session.telemetry) > 50)
    session.pause()
    run_until(session, lambda: session.states == ["paused"] * 2)
    pump_for(session, 0.2)
    stopped = _newest(session)
    pump_for(session, 0.4)
    assert np.array_equal(stopped.time, _newest(session).time)


def test_speed_one_is_real_time(session: Session) -> None:
    session.set_speed(1.0)
    session.play()
    pump_for(session, 0.5)
    begin, first = time.monotonic(), _newest(session).time[0]
    pump_for(session, 2.0)
    elapsed, simulated = time.monotonic() - begin, _newest(session).time[0] - first
    assert simulated == pytest.approx(elapsed, rel=0.25)
    factor = session.telemetry[0].realtime_factor
    assert 0.5 < factor < 1.5


def test_reset_puts_the_named_environments_back_and_leaves_the_others(session: Session) -> None:
    session.step(10)
    _await_step(session, 10)
    session.reset([6])
    run_until(session, lambda: (f := _newest(session)) is not None and f.time[1] == 0)
    frame = _newest(session)
    assert frame.time[0] == pytest.approx(0.1) and frame.qpos[1, 2] == pytest.approx(1.0)
    session.reset()
    _await_step(session, 0)


def test_shown_environments_come_in_the_order_asked_for(session: Session) -> None:
    session.show([5, 2, 0, 6, 3])
    assert list(_await_step(session, 0).envs) == [5, 2, 0, 6, 3]
    session.show([1])
    assert list(_await_step(session, 0).envs) == [1]


def test_controls_reach_one_environment_or_all(session: Session) -> None:
    session.set_ctrl([5.0], env=6)
    session.step(30)
    frame = _await_step(session, 30)
    assert frame.ctrl[:, 0] == pytest.approx([0, 5])
    assert abs(frame.qpos[1, 7] - frame.qpos[0, 7]) > 0.1
    session.set_ctrl([1.0])
    run_until(session, lambda: np.allclose(_newest(session).ctrl, 1.0))


def test_a_pull_moves_the_body_towards_the_target_and_lets_go(session: Session) -> None:
    session.perturb(msg.Perturb(env=0, body=1, target=(0.5, 0.0, 1.0)))
    session.step(30)
    frame = _await_step(session, 30)
    assert frame.qpos[0, 0] > 0.02 and abs(frame.qpos[1, 0]) < 1e-6
    session.perturb(msg.Perturb(env=0, body=1, active=False))
    speed = frame.qvel[0, 0]
    session.step(5)
    assert _await_step(session, 35).qvel[0, 0] == pytest.approx(speed, abs=1e-4)


def test_a_configuration_can_be_set(session: Session) -> None:
    session.set_qpos(6, [0, 0, 2, 1, 0, 0, 0, 0.3])
    run_until(session, lambda: _newest(session).qpos[1, 2] == pytest.approx(2.0))
    assert _newest(session).qpos[1, 7] == pytest.approx(0.3)


def test_a_wrong_value_is_told_and_the_worker_lives(session: Session) -> None:
    session.set_ctrl([1.0, 2.0, 3.0])
    session.perturb(msg.Perturb(env=0, body=77))
    events = pump_for(session, 0.5)
    texts = [e.message.text for e in events if isinstance(e.message, msg.Diagnostic)]
    assert any("ctrl" in t for t in texts) and any("body 77" in t for t in texts)
    session.step(1)
    _await_step(session, 1)


def test_wrong_calls_are_refused_with_the_value(session: Session) -> None:
    for call, text in (
        (lambda: session.show([7]), "environment 7"),
        (lambda: session.step(0), "n = 0"),
        (lambda: session.set_speed(-1.0), "speed = -1"),
        (lambda: session.set_speed(float("nan")), "speed = nan"),
    ):
        with pytest.raises(OptionError, match=text):
            call()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"n_envs": 0}, "n_envs = 0"),
        ({"n_envs": -1}, "n_envs = -1"),
        ({"n_envs": 10**9}, "n_envs = 1000000000"),
        ({"devices": ()}, "no device"),
        ({"devices": ("cpu", "cpu")}, "twice"),
        ({"devices": ("cpu:0", "cpu:1"), "n_envs": 1}, "cannot be shared"),
        ({"precision": "16"}, "precision"),
    ],
)
def test_a_wrong_configuration_starts_no_process(tiny: Path, options: dict, text: str) -> None:
    with pytest.raises(OptionError, match=text):
        Session(SessionConfig(scene=msg.SceneRequest(path=str(tiny)), **options))


def test_poses_of_given_states_are_computed(session: Session) -> None:
    qpos = np.tile([0, 0, 3, 1, 0, 0, 0, 0.0], (2, 1)) + np.arange(2)[:, None] * [0, 0, 1, 0, 0, 0, 0, 0]
    session.pose(msg.Pose(index=9, states={"qpos": qpos}, camera_bodies=[1, 2]))
    frame = wait_event(session, msg.RecordedFrame).message
    assert frame.index == 9
    assert frame.rows.reshape(2, 3, 3, 4)[:, 1, 2, 3] == pytest.approx([3, 4])
    assert frame.bodies.shape == (2, 2, 7) and frame.bodies[1, 0, 2] == pytest.approx(4)


def test_two_sessions_do_not_disturb_each_other(session: Session, open_session: MakeSession) -> None:
    with open_session(n_envs=2) as other:
        other.show([1])
        other.step(7)
        session.step(3)
        run_until(other, lambda: (f := other.frame()) is not None and np.allclose(f.time, 7 * DT))
        _await_step(session, 3)
    session.step(1)
    _await_step(session, 4)


def test_nothing_can_be_done_with_a_closed_session(open_session: MakeSession) -> None:
    session = open_session(n_envs=1)
    with pytest.raises(StateError, match="started already"):
        session.start()
    session.close()
    session.close()
    with pytest.raises(StateError):
        session.play()
    with pytest.raises(StateError):
        session.start()


def test_results_do_not_depend_on_the_number_of_workers(open_session: MakeSession) -> None:
    states = []
    for devices in (("cpu",), ("cpu:0", "cpu:1", "cpu:2")):
        with open_session(devices=devices, n_envs=5) as session:
            session.set_ctrl([3.0], env=4)
            session.show([0, 4])
            session.step(150)
            states.append(_await_step(session, 150))
    assert np.array_equal(states[0].qpos, states[1].qpos) and np.array_equal(states[0].qvel, states[1].qvel)


def test_a_full_dev_shm_costs_speed_but_nothing_else(
    open_session: MakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from genesis_core.errors import GenesisError
    from genesis_core.runtime.shm import FrameBuffer

    def refuse(*_):
        raise GenesisError("/dev/shm has no room")

    monkeypatch.setattr(FrameBuffer, "create", refuse)
    with open_session(n_envs=4) as session:
        session.show([3, 1])
        session.step(4)
        frame = _await_step(session, 4)
        assert list(frame.envs) == [3, 1]

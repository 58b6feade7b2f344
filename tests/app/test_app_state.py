"""The window's model: poses, places, speeds."""

from __future__ import annotations

import numpy as np
import pytest
from window_tools import make_frame, show_scene

from app.model.state import SPEEDS, AppState, Loading, Problem, Selection, count_text, speed_text
from genesis_core.layout.grid import env_offsets
from genesis_core.layout.scene import SceneBundle, initial_rows


def test_a_scene_without_frames_stands_at_its_initial_pose(state: AppState, bundle: SceneBundle) -> None:
    state.set_scene(bundle, "x.xml", 16, (2.0, 3.0))
    state.set_shown([0, 5])
    assert np.array_equal(state.rows, np.repeat(initial_rows(bundle)[None], 2, 0))
    assert not state.live


def test_a_frame_of_some_environments_moves_only_those(state: AppState, bundle: SceneBundle) -> None:
    state.set_scene(bundle, "x.xml", 16, (2.0, 3.0))
    state.set_shown([2, 7, 9])
    state.take_frame(make_frame(bundle, [9, 2, 11], time=3.5))
    lifted = state.rows[:, 1, 11] - initial_rows(bundle)[1, 11]
    assert lifted == pytest.approx([2, 0, 9])
    assert state.live and state.time == 3.5


def test_a_frame_of_environments_that_are_hidden_by_now_is_ignored(state: AppState, bundle: SceneBundle) -> None:
    state.set_scene(bundle, "x.xml", 16, (2.0, 3.0))
    state.set_shown([2])
    state.take_frame(make_frame(bundle, [11]))
    assert not state.live


def test_choosing_others_keeps_the_poses_that_are_known(state: AppState, bundle: SceneBundle) -> None:
    show_scene(state, bundle, shown=4)
    state.set_shown([3, 8])
    lifted = state.rows[:, 1, 11] - initial_rows(bundle)[1, 11]
    assert lifted == pytest.approx([3, 0])


def test_shown_environments_are_packed_or_stand_in_their_places(state: AppState, bundle: SceneBundle) -> None:
    show_scene(state, bundle, n_envs=16)
    state.set_shown([0, 15])
    assert np.array_equal(state.offsets, env_offsets(2, (2.0, 3.0)))
    state.set_compact(False)
    assert np.array_equal(state.offsets, env_offsets(16, (2.0, 3.0))[[0, 15]])
    state.set_spacing((1.0, 1.0))
    assert np.array_equal(state.offsets, env_offsets(16, (1.0, 1.0))[[0, 15]])


def test_hiding_the_selected_environment_deselects_it(state: AppState, bundle: SceneBundle) -> None:
    show_scene(state, bundle)
    state.select(Selection(2, 1))
    assert state.inspected == 2
    state.set_shown([0, 1])
    assert state.selection is None and state.inspected == 0


def test_faster_and_slower_walk_through_the_speeds_and_stop_at_the_ends(state: AppState) -> None:
    seen = []
    for _ in SPEEDS:
        state.set_speed(state.next_speed(up=True))
        seen.append(state.speed)
    assert seen[:4] == [2.0, 5.0, 10.0, None] and seen[-1] is None
    for _ in SPEEDS:
        state.set_speed(state.next_speed(up=False))
    assert state.speed == 0.1


def test_signals_come_after_the_change_and_only_on_change(state: AppState) -> None:
    told: list[object] = []
    state.phase_changed.connect(lambda phase: told.append((phase, state.phase)))
    state.loading_changed.connect(lambda: told.append(state.loading))
    for _ in range(2):
        state.set_phase("running")
        state.set_loading(Loading("x", "reading", 0.5))
    assert told == [("running", "running"), Loading("x", "reading", 0.5)]


def test_a_problem_is_logged_too(state: AppState) -> None:
    state.set_problem(Problem("x.urdf cannot be opened", "empty", "/x.urdf:1", "write a robot"))
    assert state.log[-1].level == "error" and "empty" in state.log[-1].text and state.log[-1].where == "/x.urdf:1"


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (12.34, "12.3"), (999, "999"), (1234, "1.23 k"), (5.67e6, "5.67 M"), (2e9, "2 G")]
)
def test_counts_are_short(value: float, text: str) -> None:
    assert count_text(value) == text


def test_speeds_are_written_plainly() -> None:
    assert [speed_text(s) for s in (0.25, 1.0, None)] == ["0.25×", "1×", "max"]

"""What a recording will hold, worked out in advance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from genesis_core.errors import OptionError
from genesis_core.record.plan import RecordOptions, Targets, check_options, frame_steps, make_plan, safe_name

SPEC = json.dumps({"recording": {"fps": 25, "seconds": 2.0, "select": "first:2", "size": [640, 360], "video": True}})


def test_three_hundred_steps_of_ten_milliseconds_are_ninety_frames_at_thirty_per_second() -> None:
    steps = frame_steps(300, 0.01, 30)
    assert len(steps) == 90
    assert steps[:4] == [0, 3, 7, 10] and steps[-1] == 297


@pytest.mark.parametrize("timestep", [0.001, 0.002, 0.005, 1 / 240, 0.0167, 0.05])
@pytest.mark.parametrize("fps", [24, 30, 60])
def test_every_frame_shows_the_state_nearest_to_its_time(timestep: float, fps: int) -> None:
    total = 777
    steps = frame_steps(total, timestep, fps)
    assert len(steps) == max(1, -(-round(total * timestep * fps * 1e6) // 10**6))
    for k, step in enumerate(steps):
        assert 0 <= step <= total
        assert abs(step * timestep - k / fps) <= timestep / 2 + 1e-9 or step == total


def test_the_scene_file_gives_what_the_caller_leaves_open() -> None:
    plan = make_plan(RecordOptions(scene=Path("x.xml")), SPEC, 0.005, 10, 0)
    assert (plan.steps, plan.fps, plan.envs, plan.size) == (400, 25, [0, 1], (640, 360))
    options = RecordOptions(scene=Path("x.xml"), steps=10, fps=50, select="last:1", size=(321, 201), video=False)
    plan = make_plan(options, SPEC, 0.005, 10, 0)
    assert (plan.steps, plan.fps, plan.envs, plan.size) == (10, 50, [9], (320, 200))
    assert plan.frame_steps == [] and plan.states


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"steps": 0}, "--steps 0"),
        ({"steps": 5, "seconds": 1.0}, "both --steps and --seconds"),
        ({"seconds": -1.0}, "--seconds -1"),
        ({"seconds": float("nan")}, "--seconds nan"),
        ({"fps": 0}, "--fps 0"),
        ({"size": (8, 8)}, "--size 8x8"),
        ({"size": (100000, 100)}, "--size 100000x100"),
        ({"state_every": 0}, "--state-every 0"),
        ({"video": False, "states": False}, "nothing to record"),
        ({"select": "9", "n_envs": 4}, "environment 9"),
    ],
)
def test_wrong_options_are_refused_before_anything_starts(options: dict, text: str) -> None:
    with pytest.raises(OptionError, match=text):
        check_options(RecordOptions(scene=Path("x.xml"), **options))


def test_a_selection_of_nothing_is_refused() -> None:
    with pytest.raises(OptionError, match="no environment"):
        make_plan(RecordOptions(scene=Path("x.xml"), select="none"), SPEC, 0.005, 10, 0)


def test_files_are_called_after_the_scene() -> None:
    targets = Targets.of(RecordOptions(scene=Path("a/My robot (v2).xml"), out=Path("o")))
    assert targets.video == Path("o/My-robot-v2.mp4") and targets.recording == Path("o/My-robot-v2.gsrec")
    assert safe_name("...") == "recording"
    with pytest.raises(OptionError, match="no file name"):
        Targets.of(RecordOptions(scene=Path("a.xml"), name="../evil"))

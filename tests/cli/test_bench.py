"""`genesis-studio bench`: the same states and controls for both engines, honest numbers, clear mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from genesis_core import bench as measuring
from genesis_core.bench_cases import PRESETS, open_case
from genesis_core.cli.bench import bench
from genesis_core.errors import OptionError


@pytest.mark.parametrize("name", [*PRESETS, "quadruped", "cartpole"])
def test_an_environment_gets_the_same_start_and_controls_whatever_the_count(name: str) -> None:
    case = open_case(name, steps=60)
    few, many = case.states(3), case.states(8)
    for key, value in few.items():
        np.testing.assert_array_equal(value, many[key][:3])
    if name != "humanoid-drop":
        assert len(np.unique(many["qpos"], axis=0)) == 8
    controls = case.controls(8)
    np.testing.assert_array_equal(case.controls(3), controls[:3])
    assert controls.shape == (8, -(-60 // case.hold), case.model.nu)


def test_the_preset_without_contacts_has_none_and_the_others_have_them() -> None:
    import mujoco

    def contacts(name: str) -> int:
        case = open_case(name)
        data = mujoco.MjData(case.model.mj)
        data.qpos[:] = case.states(1)["qpos"][0]
        most = 0
        for _ in range(200):
            mujoco.mj_step(case.model.mj, data)
            most = max(most, data.ncon)
        return most

    assert contacts("humanoid-air") == 0
    assert contacts("humanoid-drop") > 2
    assert contacts("quadruped-stand") >= 4


def test_random_poses_stay_inside_the_joint_ranges() -> None:
    case = open_case("humanoid-drop")
    mj, qpos = case.model.mj, case.states(50)["qpos"]
    for j in range(mj.njnt):
        if mj.jnt_limited[j]:
            column = qpos[:, mj.jnt_qposadr[j]]
            assert (column > mj.jnt_range[j, 0]).all() and (column < mj.jnt_range[j, 1]).all()
            assert np.ptp(column) > 0.5 * np.ptp(mj.jnt_range[j])
    np.testing.assert_allclose(np.linalg.norm(qpos[:, 3:7], axis=1), 1)


@pytest.mark.slow
def test_both_engines_are_measured_and_the_ratio_is_that_of_their_rates(capsys: pytest.CaptureFixture[str]) -> None:
    code = bench(["quadruped-stand"], envs="1,16", against="mujoco", steps=50, rounds=3, seconds=0.05, as_json=True)
    assert code == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["machine"]["cores"] >= 1 and answer["settings"]["rounds"] == 3
    assert [r["n_envs"] for r in answer["results"]] == [1, 16]
    for r in answer["results"]:
        assert r["rate_min"] <= r["rate"] <= r["rate_max"]
        assert r["rate"] > 100 and r["mujoco_rate"] > 100
        assert r["contacts"] == pytest.approx(r["mujoco_contacts"], abs=0.5)
        assert r["bytes_per_env"] > 100
    assert answer["results"][1]["flat"] == 1.0
    assert answer["results"][1]["ratio"] == pytest.approx(
        answer["results"][1]["rate"] / answer["results"][1]["mujoco_rate"], rel=0.8
    )


@pytest.mark.slow
def test_any_model_file_can_be_measured_and_a_table_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pendulum.xml"
    path.write_text(
        '<mujoco><worldbody><body><joint name="j" axis="0 1 0"/><geom type="capsule" size=".02" fromto="0 0 0 0 0 -1"/>'
        '</body></worldbody><actuator><motor joint="j" ctrlrange="-1 1"/></actuator></mujoco>'
    )
    assert bench([str(path)], envs="8", steps=20, rounds=1, seconds=0) == 0
    out = capsys.readouterr().out
    assert "pendulum" in out and "env-step" in out


@pytest.mark.slow
def test_the_start_of_a_fresh_process_is_taken_apart(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(["cartpole"], envs="1", start=True, as_json=True) == 0
    start = json.loads(capsys.readouterr().out)["start"][0]
    parts = sum(start[k] for k in ("python", "imports", "scene", "build", "step"))
    assert start["total"] == pytest.approx(parts)
    assert not start["cold"] and 0.05 < start["total"] < 60


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"scenes": ["humanoid-dorp"]}, "did you mean 'humanoid-drop'"),
        ({"scenes": ["nowhere.xml"]}, "nowhere.xml"),
        ({"envs": "0"}, "envs = 0"),
        ({"envs": "a,b"}, "--envs a,b"),
        ({"envs": "10000000000"}, "from 1 to 1048576"),
        ({"against": "bullet"}, "--against bullet"),
        ({"precision": "16"}, "--precision 16"),
        ({"rounds": 0}, "rounds = 0"),
        ({"steps": -5}, "steps = -5"),
    ],
)
def test_mistakes_end_with_code_2_and_one_message(
    kwargs: dict, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(**kwargs) == 2
    shown = capsys.readouterr()
    assert message in shown.err and "Traceback" not in shown.err and shown.out == ""
    assert bench(**kwargs, as_json=True) == 2
    assert message in json.loads(capsys.readouterr().out)["error"]


def test_without_the_full_mujoco_package_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import genesis_core.cli.bench as command

    monkeypatch.setattr(command, "_has_rollout", lambda: False)
    assert bench(["cartpole"], against="mujoco") == 2
    assert "pip install 'genesis-studio[bench]'" in capsys.readouterr().err
    assert isinstance(OptionError(measuring.MISSING_MUJOCO), ValueError)


@pytest.mark.slow
def test_sets_of_workers_are_measured_in_turn_against_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(["cartpole"], envs="16", rounds=2, seconds=0.4, devices=["cpu:1", "cpu:2"], as_json=True) == 0
    one, two = json.loads(capsys.readouterr().out)["devices"]
    assert (one["devices"], one["workers"], two["devices"], two["workers"]) == ("cpu:1", 1, "cpu:2", 2)
    assert one["ratio"] == 1.0 and two["ratio"] > 0.3
    assert two["per_worker"] == pytest.approx(two["ratio"] / 2)
    for found in (one, two):
        assert found["rate"] > 0 and len(found["rates"]) == 2
        assert 0 < found["longest_silence"] < 2.0
        assert found["per_cpu_second"] > 0.5 * found["rate"] / found["workers"]
        assert found["host_memory"] > 10 << 20


@pytest.mark.parametrize(("devices", "word"), [(["cpu:0"], "cpu:0"), (["gpu9"], "gpu9")])
def test_wrong_devices_are_refused(devices, word, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(["cartpole"], envs="4", devices=devices) == 2
    assert word in capsys.readouterr().err


def test_mujoco_is_not_measured_in_worker_processes(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(["cartpole"], envs="4", against="mujoco", devices=["cpu"]) == 2
    assert "--against mujoco" in capsys.readouterr().err

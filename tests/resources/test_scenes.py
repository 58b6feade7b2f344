"""The bundled models and scenes: complete, simulated in full, standing still, moving without blowing up."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import resources
from genesis_core.compiler.load import LoadedScene, load_scene
from genesis_core.drive import Drive

SCENES = ["arm-table", "box-wall", "cartpole", "hand-cube", "humanoid", "playground", "quadruped"]
STANDING = {"quadruped": 0.30, "humanoid": 0.80}  # [m] height of the base that must be kept
DOFS = {"cartpole": 2, "quadruped": 18, "humanoid": 27, "arm-table": 9 + 6 * 6, "hand-cube": 24 + 6, "box-wall": 301}


@pytest.fixture(scope="module")
def loaded() -> dict[str, LoadedScene]:
    return {name: load_scene(resources.scene_path(name)) for name in SCENES}


def drive_of(scene: LoadedScene, ctrl: np.ndarray) -> Drive:
    model = scene.model
    return Drive(
        scene.spec.drive,
        model.names["actuator"],
        ctrl,
        scene.mj.actuator_ctrlrange,
        1,
        ctrllimited=scene.mj.actuator_ctrllimited,
    )


def simulate(scene: LoadedScene, steps: int, env: int = 0, driven: bool = True) -> tuple[mujoco.MjData, int]:
    """MuJoCo's state after `steps` from the start of one environment, and the largest number of contacts on the way."""
    start = scene.start_states(1, env)
    data = mujoco.MjData(scene.mj)
    data.qpos[:], data.qvel[:], data.ctrl[:] = start["qpos"][0], start["qvel"][0], start["ctrl"][0]
    drive = drive_of(scene, start["ctrl"][0])
    most = 0
    for _ in range(steps):
        if driven and drive:
            data.ctrl[:] = drive.at(data.time)[0]
        mujoco.mj_step(scene.mj, data)
        most = max(most, data.ncon)
    return data, most


def test_exactly_the_documented_scenes_are_bundled() -> None:
    assert sorted(resources.list_scenes()) == SCENES
    assert resources.list_scenes()[0] == resources.DEFAULT_SCENE


def test_an_unknown_name_is_answered_with_the_near_one() -> None:
    with pytest.raises(KeyError, match="did you mean quadruped"):
        resources.model_path("quadrupd")
    with pytest.raises(KeyError, match="box-wall"):
        resources.scene_path("boxwall")


@pytest.mark.parametrize("name", SCENES)
def test_every_scene_is_simulated_in_full_and_loads_without_warnings(loaded: dict[str, LoadedScene], name: str) -> None:
    scene = loaded[name]
    assert scene.unsupported == ()
    assert scene.warnings == []
    assert scene.spec.n_envs >= 4
    assert {camera.name.rsplit("/")[-1] for camera in scene.bundle.cameras} >= {"track", "front"}


@pytest.mark.parametrize("name", list(DOFS))
def test_scenes_have_the_promised_degrees_of_freedom(loaded: dict[str, LoadedScene], name: str) -> None:
    assert loaded[name].mj.nv == DOFS[name]


@pytest.mark.parametrize("name", SCENES)
def test_nothing_penetrates_at_the_start(loaded: dict[str, LoadedScene], name: str) -> None:
    scene = loaded[name]
    data = mujoco.MjData(scene.mj)
    for env in range(8):
        start = scene.start_states(1, env)
        data.qpos[:] = start["qpos"][0]
        mujoco.mj_forward(scene.mj, data)
        deepest = data.contact.dist.min() if data.ncon else 0.0
        assert deepest > -0.012, f"environment {env}: {deepest}"


@pytest.mark.parametrize("name", SCENES)
def test_environments_start_differently_and_always_the_same_way(loaded: dict[str, LoadedScene], name: str) -> None:
    scene = loaded[name]
    states = scene.start_states(8)["qpos"]
    assert len(np.unique(states, axis=0)) == 8
    np.testing.assert_array_equal(scene.start_states(3, first_env=5)["qpos"], states[5:])


@pytest.mark.parametrize("name", [n for n in SCENES if n != "box-wall"])
def test_two_thousand_driven_steps_stay_sane(loaded: dict[str, LoadedScene], name: str) -> None:
    scene = loaded[name]
    data, most = simulate(scene, 2000)
    assert np.isfinite(data.qpos).all()
    assert not any(warning.number for warning in data.warning)
    assert np.abs(data.qvel).max() < 60
    assert most < 200
    root = (
        scene.mj.body("quadruped/trunk" if name == "quadruped" else "humanoid/pelvis").id if name in STANDING else None
    )
    if root is not None:
        assert data.xpos[root, 2] > STANDING[name] - 0.1, "the robot fell"
        upright = data.xmat[root].reshape(3, 3)[2, 2]
        assert upright > 0.95


@pytest.mark.parametrize("name", ["quadruped", "humanoid"])
def test_robots_stand_still_without_their_drive(loaded: dict[str, LoadedScene], name: str) -> None:
    data, _ = simulate(loaded[name], 2000, driven=False)
    assert np.abs(data.qvel).max() < 0.02
    assert data.qpos[2] > STANDING[name]


def test_the_quadruped_trots_forward(loaded: dict[str, LoadedScene]) -> None:
    data, _ = simulate(loaded["quadruped"], 1600)
    assert np.hypot(*data.qpos[:2]) > 4.0


def test_the_arm_holds_its_pose_within_a_degree() -> None:
    model = mujoco.MjModel.from_xml_path(str(resources.model_path("arm")))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    start = data.qpos.copy()
    for _ in range(1000):
        mujoco.mj_step(model, data)
    assert np.abs(data.qpos - start)[:7].max() < 0.02
    assert np.abs(data.qvel).max() < 1e-3


@pytest.mark.slow
def test_the_wall_stands_until_the_ball_hits_it_and_falls_then(loaded: dict[str, LoadedScene]) -> None:
    scene = loaded["box-wall"]
    before, _ = simulate(scene, 100)
    bricks = before.qpos[: 50 * 7].reshape(50, 7)
    start = scene.start_states(1)["qpos"][0, : 50 * 7].reshape(50, 7)
    assert np.abs(bricks[:, :3] - start[:, :3]).max() < 0.01
    after, _ = simulate(scene, 500)
    assert np.isfinite(after.qpos).all()
    top = after.qpos[: 50 * 7].reshape(50, 7)[45:, 2]
    assert top.max() < 1.2, "the top row is still up"


@pytest.mark.parametrize("name", SCENES)
def test_our_engine_runs_every_scene_as_its_file_says(loaded: dict[str, LoadedScene], name: str) -> None:
    from genesis_core.engine import Simulation

    scene, n = loaded[name], 6
    with Simulation(scene.model, n, threads=1) as sim:
        start = scene.start_states(n)
        for key in ("qpos", "qvel", "ctrl"):
            sim.set(key, start[key])
        drive = Drive(
            scene.spec.drive,
            scene.model.names["actuator"],
            start["ctrl"][0],
            scene.mj.actuator_ctrlrange,
            n,
            ctrllimited=scene.mj.actuator_ctrllimited,
        )
        for k in range(80):
            if drive:
                sim.set("ctrl", drive.at(k * 5 * scene.mj.opt.timestep))
            sim.step(5)
        assert np.isfinite(sim.get("qpos")).all()
        assert sim.stats()["nan_count"] == 0
        if name in STANDING:
            assert (sim.get("qpos")[:, 2] > STANDING[name] - 0.12).all()
            assert (sim.get("ncon") >= 1).all()

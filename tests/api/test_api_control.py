"""Position, velocity and force control: Genesis' law, MuJoCo's numbers, per environment."""

from __future__ import annotations

from collections.abc import Iterator

import mujoco
import numpy as np
import pytest
import torch

import genesis_core as gs

BODY = """
<mujoco>
  <option timestep="0.002" integrator="implicitfast"/>
  <worldbody>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0" armature="0.02"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" mass="1.5" contype="0" conaffinity="0"/>
      <body name="lower" pos="0.4 0 0">
        <joint name="elbow" axis="0 1 0" armature="0.01" damping="0.05"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.7" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  {actuators}
</mujoco>
"""
PLAIN = BODY.format(actuators="")
SERVO = BODY.format(
    actuators="""<actuator>
    <position joint="shoulder" kp="80" kv="9" forcerange="-25 25"/>
    <position joint="elbow" kp="40" kv="3"/>
  </actuator>"""
)


def built(xml: str, n_envs: int = 3, dt: float = 0.002, substeps: int = 1, batched: bool = False) -> tuple:
    scene = gs.Scene(
        sim_options=gs.options.SimOptions(dt=dt, substeps=substeps),
        rigid_options=gs.options.RigidOptions(batch_dofs_info=batched),
    )
    robot = scene.add_entity(gs.morphs.MJCF(file=xml, default_armature=None), name="robot")
    scene.build(n_envs=n_envs)
    return scene, robot


@pytest.fixture(autouse=True)
def session(session64: None) -> Iterator[None]:
    yield


def reference(xml: str, steps: int, ctrl: np.ndarray | None = None, applied: np.ndarray | None = None) -> np.ndarray:
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    path = []
    for _ in range(steps):
        if ctrl is not None:
            data.ctrl[:] = ctrl
        if applied is not None:
            data.qfrc_applied[:] = applied
        mujoco.mj_step(model, data)
        path.append(data.qpos.copy())
    return np.array(path)


def run(scene: gs.Scene, robot, steps: int) -> np.ndarray:
    path = []
    for _ in range(steps):
        scene.step()
        path.append(robot.get_qpos()[0].numpy().copy())
    return np.array(path)


def test_position_control_moves_exactly_as_mujocos_position_actuators() -> None:
    scene, robot = built(SERVO)
    robot.control_dofs_position([0.2, -0.3])  # within the force range, where both integrate the damping implicitly
    np.testing.assert_allclose(run(scene, robot, 400), reference(SERVO, 400, np.array([0.2, -0.3])), atol=1e-9)


def test_gains_of_the_file_are_the_starting_gains() -> None:
    _, robot = built(SERVO)
    assert robot.get_dofs_kp().tolist() == [80, 40] and robot.get_dofs_kv().tolist() == [9, 3]
    lower, upper = robot.get_dofs_force_range()
    assert lower.tolist() == [-25, -np.inf] and upper.tolist() == [25, np.inf]


def test_joints_without_actuator_get_the_default_gains() -> None:
    _, robot = built(PLAIN)
    assert robot.get_dofs_kp().tolist() == [100, 100] and robot.get_dofs_kv().tolist() == [10, 10]


def test_a_robot_that_was_never_controlled_has_no_actuation() -> None:
    scene, robot = built(SERVO)
    np.testing.assert_allclose(run(scene, robot, 200), reference(PLAIN, 200), atol=1e-9)


def test_force_control_is_an_applied_force() -> None:
    scene, robot = built(SERVO)
    robot.control_dofs_force([6.0, -2.0])
    np.testing.assert_allclose(run(scene, robot, 200), reference(PLAIN, 200, applied=np.array([6.0, -2.0])), atol=1e-9)
    assert robot.get_dofs_control_force()[0].tolist() == [6.0, -2.0]


def test_forces_are_clamped_to_the_force_range() -> None:
    scene, robot = built(SERVO)
    robot.control_dofs_force([1000.0, 0.0])
    scene.step()
    assert robot.get_dofs_control_force()[:, 0].tolist() == [25.0] * 3
    np.testing.assert_allclose(robot.get_qpos()[0], reference(PLAIN, 1, applied=np.array([25.0, 0.0]))[0], atol=1e-12)
    robot.set_dofs_force_range([-4.0, -1.0], [4.0, 1.0])
    assert robot.get_dofs_control_force()[:, 0].tolist() == [4.0] * 3
    scene.reset()
    robot.control_dofs_force([1000.0, -1000.0])
    scene.step()
    np.testing.assert_allclose(robot.get_qpos()[0], reference(PLAIN, 1, applied=np.array([4.0, -1.0]))[0], atol=1e-12)


def test_velocity_control_reaches_its_velocity() -> None:
    scene, robot = built(
        PLAIN.replace('pos="0 0 1"', 'pos="0 0 1" gravcomp="1"').replace('pos="0.4 0 0"', 'pos="0.4 0 0" gravcomp="1"')
    )
    robot.set_dofs_kv([50.0, 50.0])
    robot.control_dofs_velocity([0.5, -0.3])
    for _ in range(1500):
        scene.step()
    np.testing.assert_allclose(robot.get_dofs_velocity()[0], [0.5, -0.3], atol=2e-2)


def test_a_moving_target_adds_its_velocity_to_the_law() -> None:
    _, robot = built(PLAIN)
    robot.set_dofs_position([0.1, 0.2])
    robot.set_dofs_velocity([0.3, 0.4])
    robot.control_dofs_position_velocity([0.5, 0.5], [1.0, -1.0])
    expected = 100 * np.array([0.4, 0.3]) + 10 * np.array([0.7, -1.4])
    np.testing.assert_allclose(robot.get_dofs_control_force()[0], expected)


def test_stiff_gains_at_a_coarse_step_stay_stable() -> None:
    scene, robot = built(PLAIN, dt=0.01)
    robot.set_dofs_kp([4000.0, 4000.0])
    robot.set_dofs_kv([400.0, 400.0])
    robot.control_dofs_position([0.7, -0.7])
    for _ in range(600):
        scene.step()
    np.testing.assert_allclose(robot.get_dofs_position()[0], [0.7, -0.7], atol=0.01)
    assert robot.get_dofs_velocity().abs().max() < 1e-3


def test_modes_and_targets_differ_between_environments_and_dofs() -> None:
    scene, robot = built(PLAIN, n_envs=4)
    robot.control_dofs_position([[0.5, 0.0], [-0.5, 0.0]], envs_idx=[0, 1])
    robot.control_dofs_velocity(0.4, [0], envs_idx=[2])
    robot.control_dofs_force(7.0, [0], envs_idx=[3])
    scene.step()
    force = robot.get_dofs_control_force()
    q, v = robot.get_dofs_position(), robot.get_dofs_velocity()
    torch.testing.assert_close(force[0, 0], 100 * (0.5 - q[0, 0]) - 10 * v[0, 0])
    torch.testing.assert_close(force[1, 0], 100 * (-0.5 - q[1, 0]) - 10 * v[1, 0])
    torch.testing.assert_close(force[2, 0], 10 * (0.4 - v[2, 0]))
    assert force[2, 1] == 0 and force[3].tolist() == [7.0, 0.0]
    for env in range(4):  # and each environment moves as if it were alone
        assert not torch.equal(q[env], q[(env + 1) % 4])


def test_gains_may_differ_between_environments() -> None:
    scene, robot = built(PLAIN, batched=True)
    robot.set_dofs_kp([[10.0, 10.0], [1000.0, 1000.0]], envs_idx=[0, 1])
    assert robot.get_dofs_kp().shape == (3, 2) and robot.get_dofs_kp(envs_idx=[1]).tolist() == [[1000.0, 1000.0]]
    robot.control_dofs_position(0.3)
    for _ in range(1500):
        scene.step()
    error = (robot.get_dofs_position() - 0.3).abs()[:, 0]
    assert error[1] < error[2] < error[0]


def test_targets_stay_until_they_change() -> None:
    scene, robot = built(SERVO)
    robot.control_dofs_position([0.4, 0.4])
    for _ in range(2000):
        scene.step()
    held = robot.get_dofs_position()[0].clone()
    robot.control_dofs_position([0.4], [0])
    for _ in range(200):
        scene.step()
    torch.testing.assert_close(robot.get_dofs_position()[0], held, atol=1e-6, rtol=0)


def test_gains_changed_later_apply_to_the_standing_target() -> None:
    scene, robot = built(PLAIN)
    robot.control_dofs_position([0.4, 0.4])
    scene.step()
    robot.set_dofs_kp([500.0, 500.0])
    q, v = robot.get_dofs_position()[0], robot.get_dofs_velocity()[0]
    torch.testing.assert_close(robot.get_dofs_control_force()[0], 500 * (0.4 - q) - 10 * v)


def test_substeps_refine_the_step() -> None:
    scene, robot = built(SERVO, dt=0.008, substeps=4)
    robot.control_dofs_position([0.2, -0.3])
    path = run(scene, robot, 50)
    np.testing.assert_allclose(path, reference(SERVO, 200, np.array([0.2, -0.3]))[3::4], atol=1e-9)


def test_a_force_on_a_free_base_pushes_it() -> None:
    scene = gs.Scene(sim_options=gs.options.SimOptions(dt=0.01, gravity=(0, 0, 0)))
    box = scene.add_entity(gs.morphs.Box(size=(0.1, 0.1, 0.1), pos=(0, 0, 1)))
    scene.build(n_envs=2)
    box.control_dofs_force([0.6, 0, 0], [0, 1, 2], envs_idx=[1])
    for _ in range(100):
        scene.step()
    assert box.get_vel()[0].tolist() == [0, 0, 0]
    torch.testing.assert_close(box.get_vel()[1], torch.tensor([1.0, 0, 0], dtype=gs.tc_float))


def test_the_bundled_arm_reaches_and_grips() -> None:
    scene = gs.Scene(sim_options=gs.options.SimOptions(dt=0.004))
    arm = scene.add_entity(gs.morphs.MJCF(file="arm/arm.xml", default_armature=None))
    scene.build(n_envs=2)
    goal = torch.tensor([0.3, 0.2, -0.1, -1.6, 0.2, 1.0, 0.5, 0.02, 0.03], dtype=gs.tc_float)
    arm.control_dofs_position(goal)
    for _ in range(600):
        scene.step()
    assert (arm.get_dofs_position() - goal).abs().max() < 0.03

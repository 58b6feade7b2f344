"""Building, stepping, state in and out: shapes, units, errors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

import genesis_core as gs

ROBOT = """
<mujoco>
  <worldbody>
    <body name="base" pos="0 0 0.5">
      <geom type="box" size="0.1 0.1 0.05" mass="2"/>
      <body name="upper" pos="0 0 0.05">
        <joint name="shoulder" axis="0 1 0" range="-1.5 1.5" limited="true"/>
        <geom type="capsule" fromto="0 0 0.02 0 0 0.28" size="0.02" mass="0.5"/>
        <body name="lower" pos="0 0 0.3">
          <joint name="elbow" axis="0 1 0" damping="0.1"/>
          <geom type="capsule" fromto="0 0 0.02 0 0 0.2" size="0.02" mass="0.3"/>
          <body name="tip" pos="0 0 0.25">
            <geom type="sphere" size="0.03" mass="0.1"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position joint="shoulder" kp="50" kv="5" forcerange="-20 20"/>
  </actuator>
</mujoco>
"""


@pytest.fixture
def scene(request: pytest.FixtureRequest, session64: None) -> Iterator[gs.Scene]:
    """A floor, a fixed robot of two joints and a free box, built with the n_envs of the test's parameter."""
    scene = gs.Scene(sim_options=gs.options.SimOptions(dt=0.004, substeps=2))
    scene.add_entity(gs.morphs.Plane(), name="floor")
    scene.add_entity(gs.morphs.MJCF(file=ROBOT, default_armature=0.05), name="robot")
    scene.add_entity(gs.morphs.Box(size=(0.2, 0.2, 0.2), pos=(1.0, 0.0, 0.6)), name="box")
    scene.build(n_envs=request.param, env_spacing=(2.0, 1.0))
    yield scene


each_batch = pytest.mark.parametrize("scene", [0, 1, 3], indirect=True)
batch3 = pytest.mark.parametrize("scene", [3], indirect=True)
unbatched = pytest.mark.parametrize("scene", [0], indirect=True)


def lead(scene: gs.Scene) -> tuple[int, ...]:
    return (scene.n_envs,) if scene.n_envs else ()


@each_batch
def test_getters_have_the_documented_shapes_dtype_and_device(scene: gs.Scene) -> None:
    robot, box, front = scene.get_entity("robot"), scene.get_entity("box"), lead(scene)
    expected = {
        robot.get_qpos(): (2,),
        robot.get_dofs_position(): (2,),
        robot.get_dofs_position([0]): (1,),
        robot.get_dofs_position(1): (1,),
        robot.get_dofs_velocity(): (2,),
        robot.get_dofs_force(): (2,),
        robot.get_dofs_control_force(): (2,),
        robot.get_links_pos(): (4, 3),
        robot.get_links_quat(): (4, 4),
        robot.get_links_vel([1, 2]): (2, 3),
        robot.get_pos(): (3,),
        box.get_qpos(): (7,),
        box.get_dofs_position(): (6,),
        box.get_quat(): (4,),
        box.get_vel(): (3,),
        box.get_ang(): (3,),
        scene.get_entity("floor").get_pos(): (3,),
    }
    for tensor, shape in expected.items():
        assert tensor.shape == front + shape
        assert tensor.dtype is gs.tc_float and tensor.device == gs.device
    assert scene.get_time().shape == front
    for tensor in (
        robot.get_dofs_kp(),
        *robot.get_dofs_limit(),
        *robot.get_dofs_force_range(),
        robot.get_dofs_armature(),
    ):
        assert tensor.shape == (2,)


@each_batch
def test_a_box_falls_as_far_as_gravity_says(scene: gs.Scene) -> None:
    box = scene.get_entity("box")
    for _ in range(50):
        scene.step()
    t, h = 50 * 0.004, 0.002
    assert scene.t == 50
    torch.testing.assert_close(scene.get_time(), torch.full(lead(scene), t, dtype=gs.tc_float))
    # the semi-implicit Euler rule: x = -g h^2 n (n + 1) / 2 after n steps
    n = round(t / h)
    drop = 9.81 * h * h * n * (n + 1) / 2
    torch.testing.assert_close(box.get_pos()[..., 2], torch.full(lead(scene), 0.6 - drop, dtype=gs.tc_float))
    torch.testing.assert_close(box.get_vel()[..., 2], torch.full(lead(scene), -9.81 * t, dtype=gs.tc_float))


@unbatched
def test_masses_follow_genesis_density_and_the_file(scene: gs.Scene) -> None:
    assert float(scene.get_entity("box").get_mass()) == pytest.approx(600 * 0.008)
    assert float(scene.get_entity("robot").get_mass()) == pytest.approx(2.9)


@unbatched
def test_structure_is_found_by_name_and_counts_from_the_base(scene: gs.Scene) -> None:
    floor, robot, box = scene.entities
    assert [link.name for link in robot.links] == ["base", "upper", "lower", "tip"]
    assert [(j.name, j.type, j.dofs_idx_local) for j in robot.joints] == [
        ("base", gs.JOINT_TYPE.FIXED, []),
        ("shoulder", gs.JOINT_TYPE.REVOLUTE, [0]),
        ("elbow", gs.JOINT_TYPE.REVOLUTE, [1]),
        ("tip", gs.JOINT_TYPE.FIXED, []),
    ]
    assert (robot.n_dofs, robot.n_qs, robot.dof_start, robot.q_start) == (2, 2, 0, 0)
    assert (box.n_dofs, box.n_qs, box.dof_start, box.q_start, box.dof_end) == (6, 7, 2, 2, 8)
    assert box.base_joint.type is gs.JOINT_TYPE.FREE and box.base_joint.dofs_idx == [2, 3, 4, 5, 6, 7]
    assert robot.get_joint("elbow").dof_idx_local == 1
    assert [link.idx for link in robot.links] == [floor.n_links + k for k in range(4)]
    assert [link.parent_idx for link in robot.links] == [-1, 1, 2, 3]
    assert robot.get_link("tip").idx_local == 3 and robot.base_link.is_fixed and not box.base_link.is_fixed
    with pytest.raises(gs.GenesisException, match=r"Link not found for name: tipp. Available link names: \['base'"):
        robot.get_link("tipp")
    with pytest.raises(gs.GenesisException, match="Joint not found for name: knee"):
        robot.get_joint("knee")
    with pytest.raises(gs.GenesisException, match="did you mean 'robot'"):
        scene.get_entity("robott")


@batch3
def test_positions_can_be_set_for_some_environments_and_some_dofs(scene: gs.Scene) -> None:
    robot = scene.get_entity("robot")
    robot.set_dofs_position([0.1, 0.2])
    robot.set_dofs_position(torch.tensor([[0.5], [0.7]]), [1], envs_idx=[0, 2])
    expected = torch.tensor([[0.1, 0.5], [0.1, 0.2], [0.1, 0.7]], dtype=gs.tc_float)
    torch.testing.assert_close(robot.get_dofs_position(), expected)
    torch.testing.assert_close(robot.get_qpos(envs_idx=torch.tensor([False, False, True])), expected[2:])
    robot.set_qpos(-0.3, envs_idx=1)
    torch.testing.assert_close(robot.get_qpos()[1], torch.full((2,), -0.3, dtype=gs.tc_float))


@batch3
def test_setting_positions_stops_the_entity_unless_asked_not_to(scene: gs.Scene) -> None:
    robot, box = scene.get_entity("robot"), scene.get_entity("box")
    robot.set_dofs_velocity([1.0, 2.0])
    box.set_dofs_velocity(3.0)
    robot.set_dofs_position(0.1, [0], zero_velocity=False)
    assert (robot.get_dofs_velocity() == torch.tensor([1.0, 2.0])).all()
    robot.set_dofs_position(0.1, [0], envs_idx=[1])
    assert (robot.get_dofs_velocity()[1] == 0).all() and (robot.get_dofs_velocity()[0] != 0).all()
    assert (box.get_dofs_velocity() == 3.0).all()


@each_batch
def test_getters_after_setters_agree_at_once(scene: gs.Scene) -> None:
    robot, box = scene.get_entity("robot"), scene.get_entity("box")
    robot.set_dofs_position([np.pi / 2, 0.0])
    tip = robot.get_link("tip").get_pos()
    expected = torch.tensor([0.55, 0.0, 0.55], dtype=gs.tc_float).expand(*lead(scene), 3)
    torch.testing.assert_close(tip, expected, atol=1e-9, rtol=0)
    box.set_pos([1.0, 2.0, 3.0])
    box.set_quat([0.0, 2.0, 0.0, 0.0])
    torch.testing.assert_close(box.get_pos(), torch.tensor([1.0, 2, 3], dtype=gs.tc_float).expand(*lead(scene), 3))
    torch.testing.assert_close(box.get_quat(), torch.tensor([0.0, 1, 0, 0], dtype=gs.tc_float).expand(*lead(scene), 4))


@unbatched
def test_a_free_joint_speaks_euler_angles_in_dof_positions(scene: gs.Scene) -> None:
    box = scene.get_entity("box")
    box.set_dofs_position([1.0, 2.0, 3.0, 0.3, -0.4, 0.9])
    torch.testing.assert_close(
        box.get_dofs_position(), torch.tensor([1.0, 2.0, 3.0, 0.3, -0.4, 0.9], dtype=gs.tc_float), atol=1e-12, rtol=0
    )
    expected = gs.xyz_to_quat(np.array([0.3, -0.4, 0.9]), rpy=True)
    np.testing.assert_allclose(box.get_quat(), expected, atol=1e-12)


@unbatched
def test_angular_velocity_is_body_frame_in_dofs_and_world_frame_in_get_ang(scene: gs.Scene) -> None:
    box = scene.get_entity("box")
    box.set_quat(gs.euler_to_quat(np.array([0.0, 0.0, 90.0])))
    box.set_dofs_velocity([0, 0, 0, 1.0, 0, 0])
    torch.testing.assert_close(box.get_ang(), torch.tensor([0.0, 1, 0], dtype=gs.tc_float), atol=1e-12, rtol=0)


@unbatched
def test_link_velocities_are_those_of_the_origin_in_the_world(scene: gs.Scene) -> None:
    robot = scene.get_entity("robot")
    robot.set_dofs_position([0.4, -0.8])
    robot.set_dofs_velocity([1.3, -0.6])
    before = robot.get_links_pos()
    h = 1e-7
    velocity = robot.get_links_vel()
    robot.set_dofs_position(robot.get_dofs_position() + h * torch.tensor([1.3, -0.6]), zero_velocity=False)
    torch.testing.assert_close((robot.get_links_pos() - before) / h, velocity, atol=1e-5, rtol=0)


@batch3
def test_reset_brings_back_the_start_or_a_given_state(scene: gs.Scene) -> None:
    robot, box = scene.get_entity("robot"), scene.get_entity("box")
    robot.set_dofs_position([0.3, 0.3])
    kept = scene.get_state()
    robot.control_dofs_force([5.0, 5.0])
    for _ in range(20):
        scene.step()
    scene.reset(envs_idx=[1])
    assert (robot.get_qpos()[1] == 0).all() and (robot.get_qpos()[0] != 0).all()
    assert (robot.get_dofs_control_force()[1] == 0).all() and (robot.get_dofs_control_force()[0] == 5).all()
    scene.reset(kept)
    assert (robot.get_qpos() == 0.3).all() and scene.t == 0
    scene.step()
    scene.reset()
    assert (robot.get_qpos() == 0.3).all() and (box.get_vel() == 0).all() and (scene.get_time() == 0).all()


@batch3
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, r: r.set_dofs_position([1, 2, 3]), r"Invalid input shape: \(3,\). Dimension 0 consistent with len"),
        (lambda s, r: r.set_dofs_position(np.zeros((4, 2))), r"Invalid input shape: \(4, 2\). Dimension 0"),
        (lambda s, r: r.set_dofs_position(np.zeros((1, 1, 2))), "Expecting at most 2D tensor"),
        (lambda s, r: r.set_dofs_position(float("nan")), "position of entity 'robot' is nan"),
        (lambda s, r: r.set_dofs_position("a"), "expecting numbers"),
        (lambda s, r: r.get_dofs_position([0, 2]), "dofs_idx_local: 2 is out of range for size 2"),
        (lambda s, r: r.get_dofs_position([0.5]), "must be integers or a boolean mask"),
        (lambda s, r: r.get_qpos(envs_idx=3), "envs_idx: 3 is out of range for size 3"),
        (lambda s, r: r.get_qpos(envs_idx=[True, False]), r"mask of shape \(2,\), expecting \(3,\)"),
        (lambda s, r: r.set_pos([0, 0, 1]), "whose base does not float"),
        (lambda s, r: r.control_dofs_position(float("inf")), "position target of entity 'robot' is inf"),
        (lambda s, r: s.get_entity("box").control_dofs_position(0.0), "position control of the free or ball joint"),
        (lambda s, r: r.set_dofs_kp(-1.0), "kp -1.0 is negative"),
        (lambda s, r: r.set_dofs_kp(1.0, envs_idx=[0]), "`envs_idx` cannot be specified for non-batched dofs info."),
        (lambda s, r: r.set_dofs_force_range(1.0, -1.0), "lies above the upper limit"),
        (lambda s, r: r.get_jacobian(r.base_link), "RigidEntity.get_jacobian is not in this version"),
        (lambda s, r: s.build(), "Scene is already built."),
        (lambda s, r: s.add_entity(gs.morphs.Plane()), "Scene is already built."),
        (lambda s, r: s.reset(state=3), "not a scene state"),
    ],
)
def test_mistakes_are_answered_with_one_clear_message(scene: gs.Scene, call, message: str) -> None:
    with pytest.raises(gs.GenesisException, match=message):
        call(scene, scene.get_entity("robot"))


@unbatched
def test_a_scene_without_batch_takes_no_environments_in_setters(scene: gs.Scene) -> None:
    robot = scene.get_entity("robot")
    with pytest.raises(gs.GenesisException, match="`envs_idx` is not supported for non-parallelized scene"):
        robot.set_qpos([0.0, 0.0], envs_idx=[0])
    with pytest.raises(gs.GenesisException, match="Expecting at most 1D tensor"):
        robot.set_qpos([[0.0, 0.0]])
    assert robot.get_qpos(envs_idx=[0]).shape == (2,)
    assert not hasattr(robot, "inverse_kinematics")


def test_building_checks_its_arguments(session64: None) -> None:
    for n_envs in (-1, 10**9, 2.5, True, "4"):
        scene = gs.Scene()
        scene.add_entity(gs.morphs.Plane())
        with pytest.raises(gs.OptionError, match="n_envs is"):
            scene.build(n_envs=n_envs)
    with pytest.raises(gs.OptionError, match="empty"):
        gs.Scene().build()
    with pytest.raises(gs.StateError, match=r"Scene is not built yet\."):
        gs.Scene().step()
    scene = gs.Scene()
    sphere = scene.add_entity(gs.morphs.Sphere(), name="ball")
    with pytest.raises(gs.StateError, match=r"RigidEntity is not built yet\."):
        sphere.get_pos()
    with pytest.raises(gs.OptionError, match="already named 'ball'"):
        scene.add_entity(gs.morphs.Plane(), name="ball")
    with pytest.raises(gs.OptionError, match="not a morph"):
        scene.add_entity("robot.xml")


def test_a_missing_file_is_named(session64: None) -> None:
    scene = gs.Scene()
    scene.add_entity(gs.morphs.MJCF(file="nowhere/robot.xml"))
    with pytest.raises(gs.SceneError, match=r"robot\.xml"):
        scene.build()


@batch3
def test_drawing_offsets_never_shift_the_simulation(scene: gs.Scene) -> None:
    assert scene.envs_offset.shape == (3, 3)
    assert np.ptp(scene.envs_offset[:, :2], axis=0).tolist() == [2.0, 1.0]
    assert (scene.get_entity("box").get_pos()[:, 0] == 1.0).all()


def test_primitives_stand_and_lie_where_they_should(session64: None) -> None:
    scene = gs.Scene(sim_options=gs.options.SimOptions(dt=0.005))
    scene.add_entity(gs.morphs.Plane())
    heights = {
        scene.add_entity(gs.morphs.Sphere(radius=0.1, pos=(0, 0, 0.1))): 0.1,
        scene.add_entity(gs.morphs.Cylinder(radius=0.1, height=0.4, pos=(1, 0, 0.2))): 0.2,
        scene.add_entity(gs.morphs.Capsule(radius=0.1, height=0.4, pos=(2, 0, 0.1), euler=(90, 0, 0))): 0.1,
        scene.add_entity(gs.morphs.Box(size=(0.2, 0.3, 0.4), pos=(3, 0, 0.2))): 0.2,
    }
    shelf = scene.add_entity(gs.morphs.Box(lower=(4, 0, 0.5), upper=(5, 1, 0.6), fixed=True))
    ball = scene.add_entity(gs.morphs.Sphere(radius=0.05, pos=(4.5, 0.5, 0.7)))
    scene.build(n_envs=2)
    for _ in range(200):
        scene.step()
    for entity, height in heights.items():
        assert entity.get_pos()[:, 2].tolist() == pytest.approx([height] * 2, abs=2e-3), entity
    assert shelf.get_pos()[0].tolist() == [4.5, 0.5, 0.55]
    assert ball.get_pos()[:, 2].tolist() == pytest.approx([0.65] * 2, abs=2e-3)


@batch3
def test_the_short_way_to_a_floating_base_agrees_with_the_kinematics(scene: gs.Scene) -> None:
    box = scene.get_entity("box")
    rng = np.random.default_rng(0)
    quat = rng.normal(size=(3, 4))
    box.set_qpos(np.concatenate([rng.normal(size=(3, 3)), quat], axis=1))
    box.set_dofs_velocity(rng.normal(size=(3, 6)))
    for short, long in (
        (box.get_pos(), box.get_links_pos()),
        (box.get_quat(), box.get_links_quat()),
        (box.get_vel(), box.get_links_vel()),
        (box.get_ang(), box.get_links_ang()),
    ):
        torch.testing.assert_close(short, long[:, 0])

"""Real robot files through the API, with the shapes that Genesis gives."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import genesis_core as gs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from models import model_path

pytestmark = pytest.mark.usefixtures("session32")


def test_the_franka_arm_has_the_documented_shapes_and_reaches_its_targets() -> None:
    scene = gs.Scene(
        sim_options=gs.options.SimOptions(dt=0.01),
        rigid_options=gs.options.RigidOptions(enable_self_collision=False),
    )
    scene.add_entity(gs.morphs.Plane())
    franka = scene.add_entity(gs.morphs.MJCF(file=str(model_path("franka_emika_panda/panda_no_tendon.xml"))))
    scene.build(n_envs=3)
    assert (franka.n_dofs, franka.n_links) == (9, 11)
    assert franka.get_qpos().shape == (3, 9) and franka.get_links_pos().shape == (3, 11, 3)
    names = [f"joint{k}" for k in range(1, 8)] + ["finger_joint1", "finger_joint2"]
    dofs = [franka.get_joint(name).dof_idx_local for name in names]
    franka.set_dofs_kp([4500, 4500, 3500, 3500, 2000, 2000, 2000, 100, 100], dofs)
    franka.set_dofs_kv([450, 450, 350, 350, 200, 200, 200, 10, 10], dofs)
    franka.set_dofs_force_range([-87] * 4 + [-12] * 3 + [-100] * 2, [87] * 4 + [12] * 3 + [100] * 2, dofs)
    goal = torch.tensor([0.0, -0.5, 0.2, -2.0, 0.1, 1.6, 0.6, 0.03, 0.03])
    franka.control_dofs_position(goal, dofs)
    for _ in range(300):
        scene.step()
    assert (franka.get_dofs_position(dofs) - goal).abs().max() < 0.05
    assert torch.isfinite(franka.get_links_vel()).all()


def test_a_quadruped_urdf_stands_on_its_pd_targets() -> None:
    scene = gs.Scene(sim_options=gs.options.SimOptions(dt=0.02, substeps=4))
    scene.add_entity(gs.morphs.Plane())
    dog = scene.add_entity(gs.morphs.URDF(file=str(model_path("go2/urdf/go2.urdf")), pos=(0.0, 0.0, 0.42)))
    scene.build(n_envs=4)
    joints = [j for j in dog.joints if j.type is gs.JOINT_TYPE.REVOLUTE]
    assert len(joints) == 12 and dog.n_dofs == 18
    dofs = [j.dof_idx_local for j in joints]
    targets = {"hip": 0.0, "thigh": 0.8, "calf": -1.5}
    stand = torch.tensor([next(v for k, v in targets.items() if k in j.name) for j in joints])
    dog.set_dofs_kp([60.0] * 12, dofs)
    dog.set_dofs_kv([2.0] * 12, dofs)
    dog.set_dofs_position(stand, dofs)
    dog.control_dofs_position(stand, dofs)
    for _ in range(150):
        scene.step()
    height = dog.get_pos()[:, 2]
    assert ((height > 0.2) & (height < 0.42)).all()
    assert (dog.get_quat()[:, 0].abs() > 0.97).all()
    assert dog.get_vel().abs().max() < 0.1

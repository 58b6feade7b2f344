"""Joint limits without contacts, which are solved in the space of the rows."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from parity import engines, load_mujoco
from solver_harness import relative_errors, solve_states

from genesis_core.engine import Model, Simulation

pytestmark = [pytest.mark.parity, pytest.mark.timeout(900)]  # the first call may compile the kernels


def tree(option: str = "") -> str:
    """A floating trunk with three branching limbs of ball, hinge and slide joints, all limited, and no geom touches."""
    limb = """
      <body pos="{x} {y} 0"><joint type="ball" range="0 25" limited="true"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.3" size=".04"/>
        <body pos="0 0 -.3"><joint axis="0 1 0" range="-20 20" margin="3"/><joint axis="1 0 .2" range="-10 10"/>
          <geom type="capsule" fromto="0 0 0 .1 0 -.3" size=".03"/>
          <body pos=".1 0 -.3"><joint type="slide" axis="0 0 1" range="-.05 .05"/>
            <geom type="box" size=".04 .05 .06"/></body>
          <body pos="-.1 0 -.3"><joint axis="0 0 -1" range="-15 15"/>
            <geom type="sphere" size=".05" pos=".05 0 0"/></body>
        </body>
      </body>"""
    limbs = "".join(limb.format(x=x, y=y) for x, y in ((0.2, 0), (-0.2, 0.1), (0, -0.3)))
    return (
        f'<mujoco><option timestep="0.004" {option}><flag contact="disable"/></option>'
        '<default><joint damping=".2" armature=".01"/></default><worldbody>'
        f'<body pos="0 0 1"><freejoint/><geom type="box" size=".2 .1 .05"/>{limbs}</body></worldbody></mujoco>'
    )


def states(mj: mujoco.MjModel, n: int, spread: float, seed: int = 0) -> list[mujoco.MjData]:
    """Joints up to `spread` times their range away from the middle, moving, with the acceleration of a step before."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        data = mujoco.MjData(mj)
        mujoco.mj_integratePos(mj, data.qpos, spread * rng.normal(size=mj.nv), 1.0)
        data.qvel[:] = 2 * rng.normal(size=mj.nv)
        data.qacc_warmstart[:] = 10 * rng.normal(size=mj.nv)
        mujoco.mj_forward(mj, data)
        out.append(data)
    return out


@pytest.mark.parametrize("spread", [0.1, 0.4, 1.5])
def test_limits_agree_with_mujoco(spread):
    mj = load_mujoco(tree('tolerance="1e-12"'))
    model = Model.from_mujoco(mj)
    assert model.arrays["ndual"] == model.arrays["nlimitjac"] > 0
    datas = states(mj, 64, spread)
    assert max(d.nefc for d in datas) > 3
    solved = solve_states(model, datas)
    assert relative_errors(solved.qacc, [d.qacc for d in datas]).max() < 1e-9
    assert relative_errors(solved.qfrc_constraint, [d.qfrc_constraint for d in datas]).max() < 1e-8
    np.testing.assert_array_equal(solved.nefc, [d.nefc for d in datas])


def test_the_forces_only_push_and_hold_only_what_is_violated():
    mj = load_mujoco(tree())
    datas = states(mj, 32, 0.4, seed=3)
    solved = solve_states(Model.from_mujoco(mj), datas)
    for qacc, data in zip(solved.qacc, datas, strict=True):
        rows = np.zeros((data.nefc, mj.nv))
        if data.nefc:
            rows[:] = np.asarray(data.efc_J).reshape(data.nefc, mj.nv)
        force = -data.efc_D * np.minimum(rows @ qacc - data.efc_aref, 0)
        smooth = np.zeros((mj.nv, mj.nv))
        mujoco.mj_fullM(mj, data, smooth)
        rest = smooth @ (qacc - data.qacc_smooth) - rows.T @ force
        assert np.abs(rest).max() <= 1e-9 * max(1.0, np.abs(data.qfrc_smooth).max())


def test_a_model_that_asks_for_few_iterations_gets_the_general_solver():
    assert Model.from_mujoco(load_mujoco(tree('iterations="3"'))).arrays["ndual"] == 0


def test_an_environment_at_its_limits_does_not_notice_a_neighbour_in_contact():
    xml = (
        tree()
        .replace('<flag contact="disable"/>', "")
        .replace("<worldbody>", '<worldbody><geom type="plane" size="9 9 .1" pos="0 0 -3"/>')
    )
    model = Model.from_mujoco(load_mujoco(xml))
    high, low = model.mj.qpos0.copy(), model.mj.qpos0.copy()
    low[2] = -2.2  # its limbs are in the floor
    alone = Simulation(model, n_envs=1)
    crowd = Simulation(model, n_envs=8)
    for sim in (alone, crowd):
        start = np.tile(high, (sim.n_envs, 1))
        start[1:] = low
        sim.set("qpos", start)
        sim.set("qvel", np.tile(np.linspace(-3, 3, model.nv), (sim.n_envs, 1)))
    touched = 0
    for _ in range(60):
        alone.step(1)
        crowd.step(1)
        touched += int((crowd.get("ncon")[1:] > 0).any() and alone.get("nefc")[0] > 0)
        np.testing.assert_array_equal(alone.get("qpos")[0], crowd.get("qpos")[0])
    assert touched > 5, "the test must see limits beside contacts"


def test_joint_axes_may_be_changed_after_the_kernels_have_looked_at_their_shape():
    xml = tree().replace('axis="0 0 -1"', 'axis="0 0 1"')
    pair = engines(xml, n_states=4, seed=1)
    axes = np.array(pair.mj.jnt_axis)
    axes[-1] = np.array([1.0, 2.0, 2.0]) / 3.0
    pair.mj.jnt_axis[:] = axes
    pair.sim.set_param("jnt_axis", axes)
    pair.forward()
    assert pair.errors("qacc").max() < 1e-8

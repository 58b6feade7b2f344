"""What the solver owes to every environment whatever its neighbours do, and the structure it is built on."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from solver_harness import settled_states, solve_states
from test_solver_agreement import CASES

from genesis_core.backend.width import lane_width
from genesis_core.compiler.build import Model
from genesis_core.compiler.lower_constraint import elimination_order, reference, tree_panels
from genesis_core.layout.fields_constraint import PANEL_MAX

pytestmark = pytest.mark.timeout(900)  # the first call may compile the kernels
NEIGHBOURS = ("a pile of bodies", "a pile with spin and roll friction", "an arm that touches itself", "a walker")


def compiled(xml: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(xml)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("case", NEIGHBOURS)
def test_a_lane_has_the_same_bits_whatever_its_neighbours_hold(case, bits):
    mj = compiled(CASES[case])
    model = Model.from_mujoco(mj)
    width = lane_width(bits)
    datas = settled_states(mj, 2 * width, 250, seed=3)
    together = solve_states(model, datas, bits)
    order = np.random.default_rng(0).permutation(len(datas))
    shuffled = solve_states(model, [datas[k] for k in order], bits)
    for place, k in enumerate(order):
        alone = solve_states(model, [datas[k]] * width, bits)
        for name in ("qacc", "qfrc_constraint", "niter"):
            want = getattr(alone, name)
            assert np.array_equal(want[0], want[width - 1])
            assert np.array_equal(want[0], getattr(together, name)[k]), name
            assert np.array_equal(want[0], getattr(shuffled, name)[place]), name


def test_a_state_full_of_nan_neither_hangs_nor_touches_its_neighbours():
    mj = compiled(CASES["a walker"])
    model = Model.from_mujoco(mj)
    width = lane_width(32)
    datas = settled_states(mj, width, 250, seed=5)
    want = solve_states(model, datas, 32)
    for name in ("qacc_smooth", "qacc_warmstart", "qvel", "M"):
        getattr(datas[2], name)[:] = np.nan
    got = solve_states(model, datas, 32)
    for k in range(width):
        if k != 2:
            assert np.array_equal(got.qacc[k], want.qacc[k])
    assert got.niter[2] <= mj.opt.iterations


def test_the_cap_on_iterations_holds():
    mj = compiled(CASES["a walker"])
    datas = settled_states(mj, 16, 250)
    free = solve_states(Model.from_mujoco(mj), datas, 64)
    assert free.niter.max() > 1
    mj.opt.iterations = 1
    for data in datas:
        mujoco.mj_forward(mj, data)
    capped = solve_states(Model.from_mujoco(mj), datas, 64)
    assert capped.niter.max() == 1


def test_a_state_without_contact_keeps_its_smooth_acceleration():
    mj = compiled(CASES["a walker"])
    data = mujoco.MjData(mj)
    data.qpos[2] = 3
    data.qpos[7:] = mj.jnt_range[1:].mean(1)
    data.qvel[:] = 0.3
    mujoco.mj_forward(mj, data)
    data.qacc_warmstart[:] = 50
    got = solve_states(Model.from_mujoco(mj), [data], 64)
    assert np.array_equal(got.qacc[0], data.qacc_smooth)
    assert np.all(got.qfrc_constraint[0] == 0)
    assert got.nefc[0] == 0
    assert got.niter[0] == 0


@pytest.mark.parametrize("case", CASES)
def test_panels_cut_every_tree_into_unbranched_runs_of_dofs(case):
    mj = compiled(CASES[case])
    for tree in range(mj.ntree):
        panels = tree_panels(mj, tree)
        dofs = [i for first, num in panels for i in range(first, first + num)]
        start = int(mj.tree_dofadr[tree])
        assert dofs == list(range(start, start + int(mj.tree_dofnum[tree])))
        for first, num in panels:
            assert 1 <= num <= PANEL_MAX
            assert all(mj.dof_parentid[i] == i - 1 for i in range(first + 1, first + num))


def test_trees_with_few_neighbours_are_eliminated_first():
    bodies = "".join(f'<body pos="{k} 0 0"><freejoint/><geom size=".1"/></body>' for k in range(5))
    mj = compiled(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    star = {(0, k) for k in range(1, 5)}  # the hub last but one: then only one neighbour is left
    order = elimination_order(mj, star)
    assert sorted(order) == list(range(5))
    assert 0 not in order[:3]


@pytest.mark.parametrize(
    ("solref", "solimp"),
    [
        ((0.02, 1.0), (0.9, 0.95, 0.001, 0.5, 2)),
        ((0.001, 0.7), (0.5, 0.99, 0.02, 0.3, 3)),
        ((-500, -20), (0.9, 0.9, 0.01, 0.5, 2)),
        ((0.05, -1), (0.2, 1.5, 0.0, -1, 0.5)),
    ],
)
def test_stiffness_and_damping_of_a_reference_equal_mujocos(solref, solimp):
    ref, imp = (" ".join(map(str, v)) for v in (solref, solimp))
    mj = compiled(
        f'<mujoco><option timestep="0.003"/><worldbody><geom type="plane" size="1 1 1" solref="{ref}" solimp="{imp}"/>'
        f'<body pos="0 0 .095"><freejoint/><geom size=".1" solref="{ref}" solimp="{imp}"/></body></worldbody></mujoco>'
    )
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    got = reference(data.contact[0].solref, data.contact[0].solimp, 0.003, True)
    assert np.allclose(got[:2], data.efc_KBIP[0][:2], rtol=1e-12)

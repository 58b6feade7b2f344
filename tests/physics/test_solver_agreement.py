"""The constraint stages against MuJoCo, given MuJoCo's contacts and smooth dynamics."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from solver_harness import contact_forces, relative_errors, settled_states, solve_states

from genesis_core.compiler.build import Model

pytestmark = [pytest.mark.parity, pytest.mark.timeout(900)]  # the first call may compile the kernels


def pile(option: str = "", geom: str = "", floor: str = "", flag: str = "") -> str:
    """Nine free bodies that fall on each other and on the floor."""
    kinds = {"box": ".1 .08 .06", "sphere": ".09", "capsule": ".05 .08"}
    bodies = ""
    for i in range(3):
        for j in range(3):
            kind = ("box", "sphere", "capsule", "box")[(i + j) % 4]
            bodies += (
                f'<body pos="{0.12 * i} {0.1 * (j % 2)} {0.15 + 0.16 * j}" euler="{5 * i} {3 * j} 10"><freejoint/>'
                f'<geom type="{kind}" size="{kinds[kind]}" {geom}/></body>'
            )
    return (
        f'<mujoco><option timestep="0.004" {option}>{flag}</option><worldbody>'
        f'<geom type="plane" size="5 5 .1" {floor}/>{bodies}</worldbody></mujoco>'
    )


def chain(condim: int, extra: str = "") -> str:
    """An arm on ball, hinge and slide joints with limits of all kinds, touching itself, the floor and bodies."""
    return f"""
<mujoco>
  <option timestep="0.003" impratio="3"/>
  <default><geom condim="{condim}" friction=".7 .02 .01" {extra}/><joint damping=".1" armature=".01"/></default>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .3">
      <joint type="ball" range="0 40" limited="true"/><geom type="capsule" fromto="0 0 0 .2 0 0" size=".04"/>
      <body pos=".2 0 0">
        <joint type="ball" range="0 60" limited="true" solreflimit="-300 -20"/>
        <geom type="capsule" fromto="0 0 0 .2 0 0" size=".04"/>
        <body pos=".2 0 0">
          <joint type="hinge" axis="0 1 0" range="-100 100" margin="5"/>
          <geom type="capsule" fromto="0 0 0 .15 0 .0" size=".03"/>
          <body pos=".15 0 0">
            <joint type="hinge" axis="0 1 0" range="-150 150"/><geom type="capsule" fromto="0 0 0 .3 0 .05" size=".03"/>
            <body pos=".1 0 .05">
              <joint type="slide" axis="0 1 0" range="-.1 .1" solimplimit=".8 .99 .01 .3 3"/>
              <geom type="sphere" size=".06"/>
            </body>
          </body>
        </body>
      </body>
    </body>
    <body pos=".3 .1 .5"><freejoint/><geom type="box" size=".08 .08 .08"/></body>
    <body pos=".1 -.1 .6"><freejoint/><geom type="sphere" size=".08"/></body>
  </worldbody>
</mujoco>"""


def walker() -> str:
    """A floating trunk with four legs: one branched tree that touches the floor and itself."""
    legs = "".join(
        f'<body pos="{x} {y} 0"><joint axis="1 0 0" range="-40 40"/><joint axis="0 1 0" range="-60 90"/>'
        f'<geom type="capsule" fromto="0 0 0 0 0 -.2" size=".03"/><body pos="0 0 -.2">'
        f'<joint axis="0 1 0" range="-150 -20"/><geom type="capsule" fromto="0 0 0 0 0 -.2" size=".025"/></body></body>'
        for x in (-0.2, 0.2)
        for y in (-0.08, 0.08)
    )
    return (
        '<mujoco><option timestep="0.005"/><default><geom condim="3" friction=".9"/>'
        '<joint damping=".5" armature=".01"/></default><worldbody><geom type="plane" size="5 5 .1"/>'
        '<body pos="0 0 .3"><freejoint/>'
        f'<geom type="box" size=".25 .1 .05"/>{legs}</body></worldbody></mujoco>'
    )


CASES = {
    "a pile of bodies": pile(),
    "a pile with spin and roll friction": pile(geom='condim="6" friction=".8 .02 .003"'),
    "direct solref, other powers and impratio": pile(
        'impratio="4"', 'condim="4" friction=".8 .02 .003" solref="-2000 -40" solimp=".7 .98 .02 .4 3"'
    ),
    "frictionless bodies with margin and gap": pile(geom='condim="1" margin="0.01" gap="0.005"', floor='condim="1"'),
    "a pile solved as one island": pile(flag='<flag island="disable"/>'),
    "a pile solved without warm start": pile(flag='<flag warmstart="disable"/>'),
    "a pile without the safe time constant": pile(geom='solref="0.004 1"', flag='<flag refsafe="disable"/>'),
    "priorities": pile(
        geom='priority="2" condim="3" friction="1.2" solimp=".9 .9 .001"', floor='priority="1" condim="6"'
    ),
    "a frictionless arm that touches itself": chain(1),
    "an arm that touches itself": chain(3, 'solimp=".5 .95 .01 .2 1"'),
    "an arm with spin friction": chain(4),
    "an arm with roll friction": chain(6),
    "a walker": walker(),
}


@pytest.fixture(scope="module")
def solved():
    """(model, states, 64-bit result, 32-bit result) by case, computed once."""
    known = {}

    def get(case):
        if case not in known:
            mj = mujoco.MjModel.from_xml_string(CASES[case])
            datas = settled_states(mj, 100, 250)
            model = Model.from_mujoco(mj)
            known[case] = (mj, datas, solve_states(model, datas, 64), solve_states(model, datas, 32))
        return known[case]

    return get


@pytest.mark.parametrize("case", CASES)
def test_the_states_of_the_parity_cases_are_in_contact(case, solved):
    _, datas, _, _ = solved(case)
    assert np.mean([d.nefc for d in datas]) > 4


@pytest.mark.parametrize("case", CASES)
def test_accelerations_and_forces_equal_mujocos_in_64_bit(case, solved):
    mj, datas, got, _ = solved(case)
    for name in ("qacc", "qfrc_constraint"):
        want = np.array([getattr(d, name) for d in datas])
        assert relative_errors(getattr(got, name), want).max() < 1e-9, name
    for data, force in zip(datas, got.forces, strict=True):
        want = contact_forces(mj, data)
        assert np.linalg.norm(force - want) <= 1e-9 * max(1.0, np.linalg.norm(want))


@pytest.mark.parametrize("case", CASES)
def test_accelerations_and_forces_are_close_to_mujocos_in_32_bit(case, solved):
    _, datas, _, got = solved(case)
    for name in ("qacc", "qfrc_constraint"):
        errors = relative_errors(getattr(got, name), np.array([getattr(d, name) for d in datas]))
        assert np.median(errors) < 1e-5, name
        assert errors.max() < 2e-3, name


@pytest.mark.parametrize("case", CASES)
def test_rows_and_newton_iterations_are_counted_as_mujoco_counts_them(case, solved):
    _, datas, got, _ = solved(case)
    assert np.array_equal(got.nefc, [d.nefc for d in datas])
    want = np.array([d.solver_niter[: max(d.nisland, 1)].max() for d in datas])
    assert (got.niter != want).mean() <= 0.02  # a state can sit on the edge of a tolerance
    assert np.abs(got.niter - want).max() <= 1

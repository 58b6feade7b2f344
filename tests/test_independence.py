"""A result depends on the environment's own state: not on the number of others, on threads, or on its place."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from genesis_core.engine import Model, Simulation

SCENE = """
<mujoco><option timestep=".004"/>
  <worldbody><geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .6"><freejoint/><geom type="capsule" size=".06 .15"/>
      <body pos=".1 0 .2"><joint axis="0 1 0" range="-40 40" limited="true" damping=".1"/>
        <geom type="capsule" size=".04 .1" fromto="0 0 0 .25 0 0"/></body>
      <body pos="-.1 0 .2"><joint name="j" axis="1 1 0" range="-40 40" limited="true" damping=".1"/>
        <geom type="capsule" size=".04 .1" fromto="0 0 0 -.25 0 0"/></body></body>
    <body pos=".1 .2 1.2"><freejoint/><geom type="box" size=".1 .08 .06"/></body>
    <body pos="0 0 1.6"><freejoint/><geom type="sphere" size=".1"/></body>
  </worldbody>
  <actuator><position joint="j" kp="3"/></actuator>
</mujoco>
"""
STEPS = 500


def starts(mj, n):
    """State of environment i, whatever n is."""
    q, v, c = np.zeros((n, mj.nq)), np.zeros((n, mj.nv)), np.zeros((n, mj.nu))
    for i in range(n):
        rng = np.random.default_rng(i)
        q[i] = mj.qpos0
        mujoco.mj_integratePos(mj, q[i], rng.normal(size=mj.nv) * 0.2, 1.0)
        v[i] = rng.normal(size=mj.nv) * 0.3
        c[i] = rng.uniform(-1, 1, mj.nu)
    return q, v, c


def run(model, order, threads=1, precision="32", calls=1):
    """qpos after STEPS steps of environments order[0], order[1], ... of the endless list of starts."""
    q, v, c = starts(model.mj, max(order) + 1)
    with Simulation(model, len(order), precision=precision, threads=threads) as sim:
        sim.set("qpos", q[order])
        sim.set("qvel", v[order])
        sim.set("ctrl", c[order])
        for _ in range(calls):
            sim.step(STEPS // calls)
        return sim.get("qpos")


@pytest.fixture(scope="module")
def model():
    return Model.from_mujoco(mujoco.MjModel.from_xml_string(SCENE))


@pytest.fixture(scope="module")
def reference(model):
    out = run(model, list(range(64)))
    assert np.isfinite(out).all()
    assert np.abs(out[:, 2]).max() < 5  # they lie on the floor, so contacts were solved
    return out


@pytest.mark.parametrize("n", [1, 7, 64])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_number_of_environments_and_threads_changes_nothing(model, reference, n, threads):
    assert np.array_equal(run(model, list(range(n)), threads), reference[:n])


def test_a_thousand_environments_change_nothing(model, reference):
    assert np.array_equal(run(model, list(range(1000)), threads=2)[:64], reference)


def test_the_place_in_the_batch_changes_nothing(model, reference):
    order = list(np.random.default_rng(0).permutation(64))
    assert np.array_equal(run(model, order), reference[order])


def test_one_call_of_many_steps_equals_many_calls(model, reference):
    assert np.array_equal(run(model, list(range(9)), calls=STEPS), reference[:9])


def test_it_holds_in_double_precision(model):
    one = run(model, list(range(24)), precision="64")
    order = list(range(23, -1, -1))
    assert np.array_equal(run(model, order, threads=2, precision="64"), one[order])


def test_a_neighbour_that_explodes_changes_nothing(model, reference):
    q, v, c = starts(model.mj, 8)
    with Simulation(model, 8) as sim:
        sim.set("qpos", q)
        sim.set("qvel", v)
        sim.set("ctrl", c)
        sim.set("qvel", np.full(model.nv, 1e9), envs=[3])
        sim.step(STEPS)
        out = sim.get("qpos")
        assert sim.stats()["nan_count"] >= 1
    keep = [0, 1, 2, 4, 5, 6, 7]
    assert np.array_equal(out[keep], reference[keep])

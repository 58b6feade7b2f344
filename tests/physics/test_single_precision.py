"""What 32-bit numbers must bear."""

from __future__ import annotations

import numpy as np
import pytest
from parity import load_mujoco

from genesis_core.engine import Model, Simulation

pytestmark = pytest.mark.timeout(900)  # the first call may compile the kernels

LEVER = """
<mujoco><worldbody><geom type="plane" size="5 5 .1"/>
  <body pos="0 0 .05"><joint axis="0 1 0" damping=".01"/>
    <geom type="capsule" fromto="-.5 0 0 .5 0 0" size=".04" mass="2"/></body>
</worldbody></mujoco>
"""


@pytest.mark.parametrize("precision", ["32", "64"])
def test_a_lever_hinged_at_its_centre_of_mass_hits_the_floor_and_stays_there(precision):
    sim = Simulation(Model.from_mujoco(load_mujoco(LEVER)), n_envs=4, precision=precision)
    sim.set("qvel", np.full((4, 1), 3.0))
    for _ in range(50):
        sim.step(10)
        angle = sim.get("qpos")[:, 0]
        assert np.isfinite(angle).all() and np.abs(angle).max() < 0.1
    assert sim.stats()["nan_count"] == 0
    assert np.abs(sim.get("qvel")).max() < 0.05

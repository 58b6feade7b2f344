"""The order of the stages: everything that happens in a step, on one page.

The same order as MuJoCo's mj_step: positions, velocities, actuation, acceleration, constraints, integration.
"""

from __future__ import annotations

from genesis_core.lanes import kernel, load, store
from genesis_core.lanes.segment import segment
from genesis_core.layout.counters import HAS_APPLIED, HAS_XFRC, NCON, NEFC, OVERFLOW
from genesis_core.physics.actuation import actuation
from genesis_core.physics.bias import bias_forces, velocities
from genesis_core.physics.broadphase import broadphase
from genesis_core.physics.constraint import make
from genesis_core.physics.inertia import all_subtree_coms, body_inertias, centres_of_mass, motion_axes
from genesis_core.physics.kinematics import all_geoms, all_sites, body_poses, collision_geoms
from genesis_core.physics.mass_matrix import factor_m, mass_matrix, solve_m
from genesis_core.physics.pairs import narrowphase
from genesis_core.physics.passive import body_forces, passive_forces
from genesis_core.physics.solver import solve


@segment("md")
def positions(m, d):
    """Everything that depends on qpos alone."""
    body_poses(m, d)
    collision_geoms(m, d)
    centres_of_mass(m, d)
    body_inertias(m, d)
    motion_axes(m, d)
    mass_matrix(m, d)
    factor_m(m, d)


@segment("md")
def smooth_dynamics(m, d):
    """Velocities, forces without contact, and the acceleration that they alone would cause."""
    velocities(m, d)
    bias_forces(m, d)
    passive_forces(m, d)
    actuation(m, d)
    for i in range(m.nv):
        store(
            d.qfrc_smooth,
            i,
            load(d.qfrc_passive, i) - load(d.qfrc_bias, i) + load(d.qfrc_actuator, i),
        )
    if d.count[HAS_APPLIED]:
        for i in range(m.nv):
            store(d.qfrc_smooth, i, load(d.qfrc_smooth, i) + load(d.qfrc_applied, i))
    if d.count[HAS_XFRC]:
        body_forces(m, d, d.qfrc_smooth)
    for i in range(m.nv):
        store(d.qacc_smooth, i, load(d.qfrc_smooth, i))
    solve_m(m, d, d.qacc_smooth)


@kernel
def constraints(m, d):
    """Rows of limits and contacts, and the solver: qacc and qfrc_constraint."""
    make(m, d)
    solve(m, d)


@segment("md")
def forward(m, d):
    """mj_forward: all but integration. Sets d.count[OVERFLOW] when a capacity was too small; outputs are void then."""
    d.count[NCON] = 0
    d.count[NEFC] = 0
    d.count[OVERFLOW] = 0
    positions(m, d)
    broadphase(m, d)
    narrowphase(m, d)
    if d.count[OVERFLOW]:
        return
    smooth_dynamics(m, d)
    constraints(m, d)


@kernel
def output_poses(m, d):
    """Everything that `get` computes on demand from the current state."""
    body_poses(m, d)
    all_geoms(m, d)
    all_sites(m, d)
    centres_of_mass(m, d)
    motion_axes(m, d)
    velocities(m, d)
    all_subtree_coms(m, d)

"""Potential and kinetic energy (mj_energyPos, mj_energyVel)."""

from __future__ import annotations

from genesis_core.lanes import (
    dot3,
    kernel,
    lane,
    load,
    load3,
    load4,
    param,
    param3,
    quat_difference,
    quat_normalize,
    store,
)
from genesis_core.physics.bias import DISABLE_GRAVITY
from genesis_core.physics.kinematics import BALL, FREE
from genesis_core.physics.passive import DISABLE_SPRING

ENABLE_ENERGY = 1 << 1


@kernel
def spring_energy(m, d):
    """Energy stored in the joints' springs."""
    total = lane(d, 0.0)
    for j in range(m.njnt):
        if m.jnt_springs[j] == 0:
            continue
        q = m.jnt_qposadr[j]
        kind = m.jnt_type[j]
        stiffness = param(m.jnt_stiffness, j)
        if kind == FREE:
            for k in range(3):
                x = load(d.qpos, q + k) - param(m.qpos_spring, q + k)
                total = total + 0.5 * stiffness * x * x
            q += 3
        if kind <= BALL:
            rest = (
                param(m.qpos_spring, q),
                param(m.qpos_spring, q + 1),
                param(m.qpos_spring, q + 2),
                param(m.qpos_spring, q + 3),
            )
            turn = quat_difference(quat_normalize(load4(d.qpos, q)), rest)
            total = total + 0.5 * stiffness * dot3(turn, turn)
        else:
            x = load(d.qpos, q) - param(m.qpos_spring, q)
            c1 = param(m.jnt_stiffnesspoly, 2 * j)
            c2 = param(m.jnt_stiffnesspoly, 2 * j + 1)
            total = total + x * x * (0.5 * stiffness + x * (c1 * (1.0 / 3.0) + x * (0.25 * c2)))
    return total


@kernel
def energies(m, d):
    """energy[0]: gravity and springs; energy[1]: motion. Zero unless the model switches energy on."""
    potential = lane(d, 0.0)
    kinetic = lane(d, 0.0)
    if m.enableflags & ENABLE_ENERGY:
        if not (m.disableflags & DISABLE_GRAVITY):
            g = param3(m.gravity, 0)
            for b in range(1, m.nbody):
                potential = potential - param(m.body_mass, b) * dot3(g, load3(d.xipos, 3 * b))
        if not (m.disableflags & DISABLE_SPRING):
            potential = potential + spring_energy(m, d)
        for i in range(m.nv):
            start = m.M_rowadr[i]
            diag = start + m.M_rownnz[i] - 1
            v = load(d.qvel, i)
            s = 0.5 * load(d.M, diag) * v
            for a in range(start, diag):
                s = s + load(d.M, a) * load(d.qvel, m.M_colind[a])
            kinetic = kinetic + s * v
    store(d.energy, 0, potential)
    store(d.energy, 1, kinetic)

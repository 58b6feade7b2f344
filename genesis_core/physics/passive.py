"""Springs, dampers, gravity compensation, and forces applied to bodies (mj_passive, mj_xfrcAccumulate)."""

from __future__ import annotations

from genesis_core.lanes import (
    add3,
    cross,
    fabs,
    kernel,
    lane,
    load,
    load3,
    load4,
    param,
    param3,
    quat_difference,
    quat_normalize,
    scale3,
    store,
    store6,
    sub3,
)
from genesis_core.physics.bias import DISABLE_GRAVITY, project_wrenches
from genesis_core.physics.kinematics import BALL, FREE

DISABLE_SPRING = 1 << 5
DISABLE_DAMPER = 1 << 6


@kernel
def springs(m, d):
    """Adds joint springs to qfrc_passive; the force of a scalar joint is a polynomial in the deflection."""
    for j in range(m.njnt):
        if m.jnt_springs[j] == 0:
            continue
        q = m.jnt_qposadr[j]
        dof = m.jnt_dofadr[j]
        kind = m.jnt_type[j]
        stiffness = param(m.jnt_stiffness, j)
        if kind == FREE:
            for k in range(3):
                x = load(d.qpos, q + k) - param(m.qpos_spring, q + k)
                store(d.qfrc_passive, dof + k, load(d.qfrc_passive, dof + k) - stiffness * x)
            q += 3
            dof += 3
        if kind <= BALL:
            rest = (
                param(m.qpos_spring, q),
                param(m.qpos_spring, q + 1),
                param(m.qpos_spring, q + 2),
                param(m.qpos_spring, q + 3),
            )
            turn = quat_difference(quat_normalize(load4(d.qpos, q)), rest)
            store(d.qfrc_passive, dof, load(d.qfrc_passive, dof) - stiffness * turn[0])
            store(d.qfrc_passive, dof + 1, load(d.qfrc_passive, dof + 1) - stiffness * turn[1])
            store(d.qfrc_passive, dof + 2, load(d.qfrc_passive, dof + 2) - stiffness * turn[2])
        else:
            x = load(d.qpos, q) - param(m.qpos_spring, q)
            k = stiffness + x * (param(m.jnt_stiffnesspoly, 2 * j) + x * param(m.jnt_stiffnesspoly, 2 * j + 1))
            store(d.qfrc_passive, dof, load(d.qfrc_passive, dof) - k * x)


@kernel
def damping_rate(m, d, i):
    """Force per velocity of damper i at the current speed."""
    c = param(m.dof_damping, i)
    if m.has_dampingpoly:
        v = fabs(load(d.qvel, i))
        c = c + v * (param(m.dof_dampingpoly, 2 * i) + v * param(m.dof_dampingpoly, 2 * i + 1))
    return c


@kernel
def damping_slope(m, d, i):
    """Derivative of the damper's force with respect to the velocity, sign changed."""
    c = param(m.dof_damping, i)
    if m.has_dampingpoly:
        v = fabs(load(d.qvel, i))
        c = c + v * (2.0 * param(m.dof_dampingpoly, 2 * i) + v * (3.0 * param(m.dof_dampingpoly, 2 * i + 1)))
    return c


@kernel
def gravity_compensation(m, d):
    """qfrc_gravcomp: each compensated body's weight, carried at its centre of mass."""
    zero = lane(d, 0.0)
    for i in range(m.nv):
        store(d.qfrc_gravcomp, i, zero)
    g = param3(m.gravity, 0)
    for b in range(1, m.nbody):
        f = scale3(g, -(param(m.body_mass, b) * param(m.body_gravcomp, b)))
        r = sub3(load3(d.xipos, 3 * b), load3(d.subtree_com, 3 * m.body_rootid[b]))
        t = cross(r, f)
        store6(d.cfrc, 6 * b, (t[0], t[1], t[2], f[0], f[1], f[2]))
    project_wrenches(m, d, d.qfrc_gravcomp)


@kernel
def passive_forces(m, d):
    """qfrc_passive. Uses cfrc as scratch."""
    zero = lane(d, 0.0)
    if m.disableflags & DISABLE_DAMPER:
        for i in range(m.nv):
            store(d.qfrc_passive, i, zero)
    else:
        for i in range(m.nv):
            store(d.qfrc_passive, i, -(damping_rate(m, d, i) * load(d.qvel, i)))
    if not (m.disableflags & DISABLE_SPRING):
        springs(m, d)
    if m.ngravcomp > 0 and not (m.disableflags & DISABLE_GRAVITY):
        gravity_compensation(m, d)
        for j in range(m.njnt):
            if m.jnt_actgravcomp[j]:
                continue
            first = m.jnt_dofadr[j]
            number = 1
            if m.jnt_type[j] == FREE:
                number = 6
            elif m.jnt_type[j] == BALL:
                number = 3
            for i in range(first, first + number):
                store(d.qfrc_passive, i, load(d.qfrc_passive, i) + load(d.qfrc_gravcomp, i))


@kernel
def body_forces(m, d, out):
    """Adds xfrc_applied (force and torque at the centres of mass, world frame) to `out`. Uses cfrc as scratch."""
    for b in range(1, m.nbody):
        f = load3(d.xfrc_applied, 6 * b)
        r = sub3(load3(d.xipos, 3 * b), load3(d.subtree_com, 3 * m.body_rootid[b]))
        t = add3(load3(d.xfrc_applied, 6 * b + 3), cross(r, f))
        store6(d.cfrc, 6 * b, (t[0], t[1], t[2], f[0], f[1], f[2]))
    project_wrenches(m, d, out)

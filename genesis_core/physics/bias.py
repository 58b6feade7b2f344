"""Velocities of bodies and the forces of gravity, Coriolis and centrifugal terms (mj_comVel, mj_rne)."""

from __future__ import annotations

from genesis_core.lanes import (
    add6,
    add_scaled6,
    cross_force,
    cross_motion,
    dot6,
    inert_mul,
    kernel,
    lane,
    load,
    load6,
    load10,
    param,
    store,
    store6,
)
from genesis_core.physics.kinematics import BALL, FREE

DISABLE_GRAVITY = 1 << 7


@kernel
def velocities(m, d):
    """cvel of all bodies, and cacc: their acceleration when every qacc is zero and the world falls up."""
    zero = lane(d, 0.0)
    store6(d.cvel, 0, (zero, zero, zero, zero, zero, zero))
    if m.disableflags & DISABLE_GRAVITY:
        store6(d.cacc, 0, (zero, zero, zero, zero, zero, zero))
    else:
        store6(
            d.cacc,
            0,
            (zero, zero, zero, -param(m.gravity, 0), -param(m.gravity, 1), -param(m.gravity, 2)),
        )
    for b in range(1, m.nbody):
        p = m.body_parentid[b]
        v = load6(d.cvel, 6 * p)
        a = load6(d.cacc, 6 * p)
        first = m.body_jntadr[b]
        for j in range(first, first + m.body_jntnum[b]):
            dof = m.jnt_dofadr[j]
            kind = m.jnt_type[j]
            if kind <= BALL:
                if kind == FREE:
                    for k in range(dof, dof + 3):
                        v = add_scaled6(v, load6(d.cdof, 6 * k), load(d.qvel, k))
                    dof += 3
                before = v
                for k in range(dof, dof + 3):
                    axis = load6(d.cdof, 6 * k)
                    rate = load(d.qvel, k)
                    a = add_scaled6(a, cross_motion(before, axis), rate)
                    v = add_scaled6(v, axis, rate)
            else:
                axis = load6(d.cdof, 6 * dof)
                rate = load(d.qvel, dof)
                a = add_scaled6(a, cross_motion(v, axis), rate)
                v = add_scaled6(v, axis, rate)
        store6(d.cvel, 6 * b, v)
        store6(d.cacc, 6 * b, a)


@kernel
def bias_forces(m, d):
    """qfrc_bias by recursive Newton-Euler without joint accelerations."""
    for b in range(1, m.nbody):
        v = load6(d.cvel, 6 * b)
        i = load10(d.cinert, 10 * b)
        f = add6(inert_mul(i, load6(d.cacc, 6 * b)), cross_force(v, inert_mul(i, v)))
        store6(d.cfrc, 6 * b, f)
    for b in range(m.nbody - 1, 0, -1):
        p = m.body_parentid[b]
        if p > 0:
            store6(d.cfrc, 6 * p, add6(load6(d.cfrc, 6 * p), load6(d.cfrc, 6 * b)))
    for i in range(m.nv):
        store(d.qfrc_bias, i, dot6(load6(d.cdof, 6 * i), load6(d.cfrc, 6 * m.dof_bodyid[i])))


@kernel
def project_wrenches(m, d, out):
    """Adds to `out` (nv lanes) what the wrenches in cfrc (one per body, about its tree's centre of mass) do.

    cfrc is used up.
    """
    for b in range(m.nbody - 1, 0, -1):
        p = m.body_parentid[b]
        if p > 0:
            store6(d.cfrc, 6 * p, add6(load6(d.cfrc, 6 * p), load6(d.cfrc, 6 * b)))
    for i in range(m.nv):
        f = dot6(load6(d.cdof, 6 * i), load6(d.cfrc, 6 * m.dof_bodyid[i]))
        store(out, i, load(out, i) + f)

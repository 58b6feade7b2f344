"""Centres of mass, spatial inertias and motion axes (mj_comPos).

Spatial quantities of a tree are about one point: the centre of mass of the whole tree.
"""

from __future__ import annotations

from genesis_core.lanes import (
    add3,
    add_scaled3,
    column,
    cross,
    kernel,
    lane,
    load3,
    load4,
    param,
    param3,
    param4,
    quat_mul,
    quat_rotate,
    quat_to_mat,
    scale3,
    store,
    store3,
    store6,
    store10,
    sub3,
)
from genesis_core.physics.kinematics import FREE, HINGE, SLIDE

MINVAL = 1e-15


@kernel
def centres_of_mass(m, d):
    """xipos, and subtree_com of the trees' roots."""
    zero = lane(d, 0.0)
    for b in range(m.nbody):
        store3(d.subtree_com, 3 * b, (zero, zero, zero))
    store3(d.xipos, 0, (zero, zero, zero))
    for b in range(1, m.nbody):
        com = add3(load3(d.xpos, 3 * b), quat_rotate(load4(d.xquat, 4 * b), param3(m.body_ipos, b)))
        store3(d.xipos, 3 * b, com)
        r = m.body_rootid[b]
        store3(d.subtree_com, 3 * r, add_scaled3(load3(d.subtree_com, 3 * r), com, param(m.body_mass, b)))
    for b in range(1, m.nbody):
        if m.body_rootid[b] == b:
            if m.body_subtreemass[b] < MINVAL:
                store3(d.subtree_com, 3 * b, load3(d.xipos, 3 * b))
            else:
                mass = 1.0 / param(m.body_subtreemass, b)
                store3(d.subtree_com, 3 * b, scale3(load3(d.subtree_com, 3 * b), mass))


@kernel
def all_subtree_coms(m, d):
    """subtree_com of every body, as MuJoCo publishes it (in a step only the roots are needed)."""
    zero = lane(d, 0.0)
    for b in range(m.nbody):
        store3(d.subtree_com, 3 * b, (zero, zero, zero))
    for b in range(m.nbody - 1, -1, -1):
        own = load3(d.subtree_com, 3 * b)
        if b > 0:
            own = add_scaled3(own, load3(d.xipos, 3 * b), param(m.body_mass, b))
            p = m.body_parentid[b]
            store3(d.subtree_com, 3 * p, add3(load3(d.subtree_com, 3 * p), own))
        if m.body_subtreemass[b] < MINVAL:
            own = load3(d.xipos, 3 * b)
        else:
            own = scale3(own, 1.0 / param(m.body_subtreemass, b))
        store3(d.subtree_com, 3 * b, own)


@kernel
def body_inertias(m, d):
    """cinert: rotational inertia, m*c, m of every body about its tree's centre of mass."""
    zero = lane(d, 0.0)
    for k in range(10):
        store(d.cinert, k, zero)
    for b in range(1, m.nbody):
        r = quat_to_mat(quat_mul(load4(d.xquat, 4 * b), param4(m.body_iquat, b)))
        i = param3(m.body_inertia, b)
        mass = param(m.body_mass, b)
        c = sub3(load3(d.xipos, 3 * b), load3(d.subtree_com, 3 * m.body_rootid[b]))
        a0 = scale3((r[0], r[3], r[6]), i[0])
        a1 = scale3((r[1], r[4], r[7]), i[1])
        a2 = scale3((r[2], r[5], r[8]), i[2])
        mc = scale3(c, mass)
        store10(
            d.cinert,
            10 * b,
            (
                r[0] * a0[0] + r[1] * a1[0] + r[2] * a2[0] + (mc[1] * c[1] + mc[2] * c[2]),
                r[3] * a0[1] + r[4] * a1[1] + r[5] * a2[1] + (mc[0] * c[0] + mc[2] * c[2]),
                r[6] * a0[2] + r[7] * a1[2] + r[8] * a2[2] + (mc[0] * c[0] + mc[1] * c[1]),
                r[0] * a0[1] + r[1] * a1[1] + r[2] * a2[1] - mc[0] * c[1],
                r[0] * a0[2] + r[1] * a1[2] + r[2] * a2[2] - mc[0] * c[2],
                r[3] * a0[2] + r[4] * a1[2] + r[5] * a2[2] - mc[1] * c[2],
                mc[0],
                mc[1],
                mc[2],
                mass,
            ),
        )


@kernel
def motion_axes(m, d):
    """cdof: the motion of the body that a unit of velocity of each degree of freedom makes."""
    zero = lane(d, 0.0)
    one = lane(d, 1.0)
    for j in range(m.njnt):
        b = m.jnt_bodyid[j]
        kind = m.jnt_type[j]
        dof = m.jnt_dofadr[j]
        if kind == SLIDE:
            a = load3(d.xaxis, 3 * j)
            store6(d.cdof, 6 * dof, (zero, zero, zero, a[0], a[1], a[2]))
            continue
        offset = sub3(load3(d.subtree_com, 3 * m.body_rootid[b]), load3(d.xanchor, 3 * j))
        if kind == HINGE:
            a = load3(d.xaxis, 3 * j)
            v = cross(a, offset)
            store6(d.cdof, 6 * dof, (a[0], a[1], a[2], v[0], v[1], v[2]))
            continue
        if kind == FREE:
            store6(d.cdof, 6 * dof, (zero, zero, zero, one, zero, zero))
            store6(d.cdof, 6 * dof + 6, (zero, zero, zero, zero, one, zero))
            store6(d.cdof, 6 * dof + 12, (zero, zero, zero, zero, zero, one))
            dof += 3
        mat = quat_to_mat(load4(d.xquat, 4 * b))
        for k in range(3):
            a = column(mat, k)
            v = cross(a, offset)
            store6(d.cdof, 6 * (dof + k), (a[0], a[1], a[2], v[0], v[1], v[2]))

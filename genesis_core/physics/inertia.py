"""Centres of mass, spatial inertias, motion axes, mass matrix and its factor (mj_comPos, mj_makeM, mj_factorM).

Spatial quantities of a tree are about one point: the centre of mass of the whole tree.
"""

from __future__ import annotations

from genesis_core.lanes import (
    add3,
    add_scaled3,
    column,
    cross,
    dot6,
    inert_mul,
    inline,
    kernel,
    lane,
    load,
    load3,
    load4,
    load6,
    load10,
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


@kernel
def mass_matrix(m, d):
    """M: composite inertias of the subtrees, seen along the motion axes."""
    for k in range(10 * m.nbody):
        store(d.crb, k, load(d.cinert, k))
    for b in range(m.nbody - 1, 0, -1):
        p = m.body_parentid[b]
        if p > 0:
            for k in range(10):
                store(d.crb, 10 * p + k, load(d.crb, 10 * p + k) + load(d.crb, 10 * b + k))
    for i in range(m.nv):
        start = m.M_rowadr[i]
        last = start + m.M_rownnz[i] - 1
        axis = load6(d.cdof, 6 * i)
        f = inert_mul(load10(d.crb, 10 * m.dof_bodyid[i]), axis)
        for a in range(start, last):
            store(d.M, a, dot6(load6(d.cdof, 6 * m.M_colind[a]), f))
        store(d.M, last, dot6(axis, f) + param(m.dof_armature, i))


@inline
def eliminate(m, l, k, start, diag, inv):
    """Takes dof k out of the rows of its ancestors."""
    for a in range(diag - 1, start - 1, -1):
        i = m.M_colind[a]
        x = load(l, a) * inv
        row = m.M_rowadr[i]
        for c in range(m.M_rownnz[i]):
            store(l, row + c, load(l, row + c) - x * load(l, start + c))
        store(l, a, x)


@inline
def eliminate_two(m, l, k, start, diag, inv, start1, diag1, dinv):
    """Takes dof k and its parent k-1 out together: the rows of the other ancestors are read and written once."""
    x = load(l, diag - 1) * inv
    for c in range(m.M_rownnz[k - 1]):
        store(l, start1 + c, load(l, start1 + c) - x * load(l, start + c))
    store(l, diag - 1, x)
    inv1 = 1.0 / load(l, diag1)
    store(dinv, k - 1, inv1)
    for n in range(diag1 - start1 - 1, -1, -1):
        row = m.M_rowadr[m.M_colind[start1 + n]]
        x = load(l, start + n) * inv
        y = load(l, start1 + n) * inv1
        for c in range(m.M_rownnz[m.M_colind[start1 + n]]):
            e = load(l, row + c) - x * load(l, start + c)
            store(l, row + c, e - y * load(l, start1 + c))
        store(l, start + n, x)
        store(l, start1 + n, y)


@kernel
def factor(m, l, dinv):
    """L^T D L in place: `l` holds M's rows on entry, L's off-diagonals and D on return; `dinv` gets 1/D."""
    k = m.nv - 1
    while k >= 0:
        start = m.M_rowadr[k]
        diag = start + m.M_rownnz[k] - 1
        inv = 1.0 / load(l, diag)
        store(dinv, k, inv)
        if k > 0 and diag > start and m.M_colind[diag - 1] == k - 1:
            start1 = m.M_rowadr[k - 1]
            eliminate_two(m, l, k, start, diag, inv, start1, start1 + m.M_rownnz[k - 1] - 1, dinv)
            k -= 2
        else:
            eliminate(m, l, k, start, diag, inv)
            k -= 1


@kernel
def solve(m, l, dinv, x):
    """x becomes (L^T D L)^-1 x."""
    for k in range(m.nv - 1, -1, -1):
        start = m.M_rowadr[k]
        diag = start + m.M_rownnz[k] - 1
        y = load(x, k)
        for a in range(start, diag):
            i = m.M_colind[a]
            store(x, i, load(x, i) - load(l, a) * y)
    for k in range(m.nv):
        start = m.M_rowadr[k]
        diag = start + m.M_rownnz[k] - 1
        y = load(x, k) * load(dinv, k)
        for a in range(start, diag):
            y = y - load(l, a) * load(x, m.M_colind[a])
        store(x, k, y)


@kernel
def factor_m(m, d):
    """L and Dinv of the mass matrix."""
    for k in range(m.nC):
        store(d.L, k, load(d.M, k))
    factor(m, d.L, d.Dinv)


@kernel
def solve_m(m, d, x):
    """x (nv lanes) becomes M^-1 x."""
    solve(m, d.L, d.Dinv, x)


@kernel
def mul_m(m, d, y, x):
    """y = M x, both of nv lanes and different arrays."""
    for i in range(m.nv):
        start = m.M_rowadr[i]
        diag = start + m.M_rownnz[i] - 1
        xi = load(x, i)
        s = load(d.M, diag) * xi
        for a in range(start, diag):
            j = m.M_colind[a]
            e = load(d.M, a)
            s = s + e * load(x, j)
            store(y, j, load(y, j) + e * xi)
        store(y, i, s)

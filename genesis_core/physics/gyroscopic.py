"""Free bodies under the implicit integrators: gyroscopic forces are implicit too (MuJoCo 3.11 and later).

`implicitfast` leaves out how Coriolis forces change with velocity, except for bodies that float alone: their block of
six degrees of freedom is decoupled from the rest, and (M - h dF/dv) a = F is solved for it with the unsymmetric
derivative.

With the linear velocity in the world frame, the angular velocity w and the centre of mass r in the body's frame, R the
body's rotation, J the inertia about the body's origin, the bias forces of a body with mass m are
  linear   R m (w (w.r) - r (w.w)),  derivative by w:  R m ((w.r) 1 + w r^T - 2 r w^T)
  angular  w x J w,                  derivative by w:  [w]x J - [J w]x
and neither depends on the linear velocity.
"""

from __future__ import annotations

from genesis_core.lanes import (
    column,
    cross,
    dot3,
    inline,
    kernel,
    lane,
    load,
    load3,
    load4,
    load10,
    mat_mul,
    mat_vec,
    matT_mul,
    matT_vec,
    quat_to_mat,
    store,
    sub3,
)

SIZE = 6  # degrees of freedom of a free body


@inline
def inertia_about_origin(d, b, rot, c):
    """3x3 inertia of the tree with root b about the body's origin, in the body's frame; c = centre of mass - origin."""
    i = load10(d.crb, 10 * b)
    m = i[9]
    xx = i[0] + m * (c[1] * c[1] + c[2] * c[2])
    yy = i[1] + m * (c[0] * c[0] + c[2] * c[2])
    zz = i[2] + m * (c[0] * c[0] + c[1] * c[1])
    xy = i[3] - m * c[0] * c[1]
    xz = i[4] - m * c[0] * c[2]
    yz = i[5] - m * c[1] * c[2]
    return matT_mul(rot, mat_mul((xx, xy, xz, xy, yy, yz, xz, yz, zz), rot))


@inline
def add_to_column(d, k, x, scale):
    """Adds scale * x to three items of a column of the block, from item k down."""
    for i in range(3):
        at = SIZE * i + k
        store(d.free_block, at, load(d.free_block, at) + scale * x[i])


@kernel
def fill_block(m, d, dof):
    """free_block = the six rows of H, both triangles."""
    for k in range(SIZE * SIZE):
        store(d.free_block, k, lane(d, 0.0))
    for i in range(SIZE):
        start = m.M_rowadr[dof + i]
        for a in range(start, start + m.M_rownnz[dof + i]):
            j = m.M_colind[a] - dof
            store(d.free_block, SIZE * i + j, load(d.H, a))
            store(d.free_block, SIZE * j + i, load(d.H, a))


@kernel
def add_gyroscopic(m, d, b, dof):
    """free_block += h d(bias)/dv."""
    h = lane(d, m.timestep)
    rot = quat_to_mat(load4(d.xquat, 4 * b))
    c = sub3(load3(d.subtree_com, 3 * b), load3(d.xpos, 3 * b))
    inertia = inertia_about_origin(d, b, rot, c)
    r = matT_vec(rot, c)
    w = load3(d.qvel, dof + 3)
    momentum = mat_vec(inertia, w)
    mass = load(d.crb, 10 * b + 9)
    wr = dot3(w, r)
    for k in range(3):
        # column k of (w.r) 1 + w r^T - 2 r w^T, and of [w]x J - [J w]x
        wk = load(d.qvel, dof + 3 + k)
        axis = (lane(d, k == 0), lane(d, k == 1), lane(d, k == 2))
        rk = dot3(axis, r)
        linear = (
            wr * axis[0] + w[0] * rk - 2.0 * r[0] * wk,
            wr * axis[1] + w[1] * rk - 2.0 * r[1] * wk,
            wr * axis[2] + w[2] * rk - 2.0 * r[2] * wk,
        )
        angular = sub3(cross(w, column(inertia, k)), cross(momentum, axis))
        add_to_column(d, 3 + k, mat_vec(rot, linear), h * mass)
        add_to_column(d, 3 * SIZE + 3 + k, angular, h)


@kernel
def solve_block(d, x):
    """Items x .. x+5 of free_acc become block^-1 times themselves, without pivoting: the block is nearly symmetric."""
    for k in range(SIZE):
        inv = 1.0 / load(d.free_block, (SIZE + 1) * k)
        for i in range(k + 1, SIZE):
            f = load(d.free_block, SIZE * i + k) * inv
            for j in range(k + 1, SIZE):
                at = SIZE * i + j
                store(d.free_block, at, load(d.free_block, at) - f * load(d.free_block, SIZE * k + j))
            store(d.free_acc, x + i, load(d.free_acc, x + i) - f * load(d.free_acc, x + k))
    for k in range(SIZE - 1, -1, -1):
        s = load(d.free_acc, x + k)
        for j in range(k + 1, SIZE):
            s = s - load(d.free_block, SIZE * k + j) * load(d.free_acc, x + j)
        store(d.free_acc, x + k, s / load(d.free_block, (SIZE + 1) * k))


@kernel
def free_accelerations(m, d, force):
    """free_acc: accelerations of all free bodies under `force` (nv lanes), with H not yet factored."""
    for f in range(m.nfreebody):
        j = m.freebody_jnt[f]
        dof = m.jnt_dofadr[j]
        fill_block(m, d, dof)
        add_gyroscopic(m, d, m.jnt_bodyid[j], dof)
        for k in range(SIZE):
            store(d.free_acc, SIZE * f + k, load(force, dof + k))
        solve_block(d, SIZE * f)


@kernel
def take_free_accelerations(m, d, acc):
    """Puts free_acc into `acc` (nv lanes)."""
    for f in range(m.nfreebody):
        dof = m.jnt_dofadr[m.freebody_jnt[f]]
        for k in range(SIZE):
            store(acc, dof + k, load(d.free_acc, SIZE * f + k))

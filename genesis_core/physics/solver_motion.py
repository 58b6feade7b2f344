"""Products with the mass matrix and with the contacts' Jacobian, through the motions and forces of bodies.

J x of a contact is its directions dotted with the relative velocity of the contact point, from the bodies' motions
under the joint velocities x; J^T f is a pass of body forces from the leaves to the roots.
"""

from __future__ import annotations

from genesis_core.lanes import (
    any_,
    cross,
    dot3,
    dot6,
    fma,
    inline,
    kernel,
    lane,
    load,
    load3,
    load6,
    minimum,
    not_,
    scale3,
    select,
    store,
    store3,
    store6,
    sub3,
)
from genesis_core.lanes.segment import segment
from genesis_core.layout.counters import NCON
from genesis_core.layout.fields_constraint import NACTIVE, NROW
from genesis_core.physics.constraint import point_velocity


@inline
def fma3(a, s, b):
    """a * s + b."""
    return fma(a[0], s, b[0]), fma(a[1], s, b[1]), fma(a[2], s, b[2])


@inline
def fma6(a, s, b):
    """a * s + b."""
    return (
        fma(a[0], s, b[0]),
        fma(a[1], s, b[1]),
        fma(a[2], s, b[2]),
        fma(a[3], s, b[3]),
        fma(a[4], s, b[4]),
        fma(a[5], s, b[5]),
    )


@kernel
def motion(m, d, x):
    """Motion of every body that carries a contact, about its tree's centre of mass, for joint velocities x."""
    z = lane(d, 0.0)
    for b in range(m.nmover):
        if d.mover_on[b] == 0:
            continue
        p = m.mover_parent[b]
        v = (z, z, z, z, z, z)
        if p >= 0:
            v = load6(d.mover_vel, 6 * p)
        i0 = m.mover_dofadr[b]
        for i in range(i0, i0 + m.mover_dofnum[b]):
            v = fma6(load6(d.cdof, 6 * i), load(x, i), v)
        store6(d.mover_vel, 6 * b, v)


@inline
def relative_velocity(d, c):
    """Velocity of side 2 against side 1 at contact c, from mover_vel."""
    u = point_velocity(d.mover_vel, 6 * d.con_body2[c], load3(d.con_arm2, 3 * c))
    b1 = d.con_body1[c]
    if b1 >= 0:
        u = sub3(u, point_velocity(d.mover_vel, 6 * b1, load3(d.con_arm1, 3 * c)))
    return u


@inline
def relative_turn(d, c):
    """Angular velocity of side 2 against side 1 at contact c, from mover_vel."""
    w = load3(d.mover_vel, 6 * d.con_body2[c])
    b1 = d.con_body1[c]
    if b1 >= 0:
        w = sub3(w, load3(d.mover_vel, 6 * b1))
    return w


@inline
def cone_pair(x, y):
    """Sum of squares of the negative parts of x + y and x - y: twice the cost of a pair of pyramid rows over D."""
    a = minimum(x + y, 0.0)
    b = minimum(x - y, 0.0)
    return a * a + b * b


@segment("mdlll")
def residual(m, d, x, con_out, row_out):
    """Writes J x - aref of every row to con_out, row_out; returns the cost of the rows."""
    z = lane(d, 0.0)
    cost = z
    motion(m, d, x)
    for r in range(d.count[NROW]):
        a = d.row_adr[r]
        y = -load(d.row_aref, r)
        for k in range(a, a + d.row_num[r]):
            y = fma(load(d.row_J, k), load(x, d.row_dof[k]), y)
        store(row_out, r, y)
        y = minimum(y, 0.0)
        cost = cost + load(d.row_D, r) * (y * y)
    for k in range(d.count[NACTIVE]):
        c = d.con_list[k]
        dim = d.con_dim[c]
        u = relative_velocity(d, c)
        x0 = dot3(load3(d.con_dir, 9 * c), u) - load(d.con_aref, 6 * c)
        store(con_out, 6 * c, x0)
        if dim == 1:
            y = minimum(x0, 0.0)
            s = y * y
        else:
            x1 = dot3(load3(d.con_dir, 9 * c + 3), u) - load(d.con_aref, 6 * c + 1)
            x2 = dot3(load3(d.con_dir, 9 * c + 6), u) - load(d.con_aref, 6 * c + 2)
            store(con_out, 6 * c + 1, x1)
            store(con_out, 6 * c + 2, x2)
            s = cone_pair(x0, x1) + cone_pair(x0, x2)
            if dim > 3:
                w = relative_turn(d, c)
                for j in range(3, dim):
                    y = dot3(load3(d.con_turn, 9 * c + 3 * (j - 3)), w) - load(d.con_aref, 6 * c + j)
                    store(con_out, 6 * c + j, y)
                    s = s + cone_pair(x0, y)
        cost = cost + load(d.con_D, c) * s
    return cost * 0.5


@kernel
def mul_mass(m, d, y, x):
    """y = M x for the trees that are not finished."""
    for t in range(m.ntree):
        if d.tree_live[t] == 0:
            continue
        i0 = m.tree_dofadr[t]
        for i in range(i0, i0 + m.tree_dofnum[t]):
            a = m.M_rowadr[i]
            n = m.M_rownnz[i] - 1
            xi = load(x, i)
            s = load(d.M, a + n) * xi
            for k in range(a, a + n):
                j = m.M_colind[k]
                mm = load(d.M, k)
                s = fma(mm, load(x, j), s)
                store(y, j, fma(mm, xi, load(y, j)))
            store(y, i, s)


# ------------------------------------------------------------------ lists
@kernel
def mark_movers(m, d):
    """Flags the bodies that carry a listed contact, and what carries them."""
    for b in range(m.nmover):
        d.mover_on[b] = 0
    for k in range(d.count[NACTIVE]):
        c = d.con_list[k]
        b = d.con_body2[c]
        while b >= 0 and d.mover_on[b] == 0:
            d.mover_on[b] = 1
            b = m.mover_parent[b]
        b = d.con_body1[c]
        while b >= 0 and d.mover_on[b] == 0:
            d.mover_on[b] = 1
            b = m.mover_parent[b]


@kernel
def list_all(m, d):
    """Lists the contacts that some lane has."""
    n = 0
    for c in range(d.count[NCON]):
        if any_(load(d.con_D, c) > 0.0):
            d.con_list[n] = c
            n += 1
    d.count[NACTIVE] = n
    mark_movers(m, d)


@kernel
def list_live(m, d):
    """Drops the contacts that only finished lanes have."""
    n = 0
    old = d.count[NACTIVE]
    for k in range(old):
        c = d.con_list[k]
        if any_((load(d.con_D, c) > 0.0) & (load(d.tree_done, d.con_tree[c]) < 0.5)):
            d.con_list[n] = c
            n += 1
    d.count[NACTIVE] = n
    if n < old:
        mark_movers(m, d)


# ------------------------------------------------------------------ forces
@inline
def push(d, b, arm, f, t, sign):
    """Adds a force f at a point and a torque t, times sign, to the force on body b about its tree's centre of mass."""
    o = 6 * b
    q = cross(arm, f)
    store3(
        d.mover_frc,
        o,
        (
            load(d.mover_frc, o) + (q[0] + t[0]) * sign,
            load(d.mover_frc, o + 1) + (q[1] + t[1]) * sign,
            load(d.mover_frc, o + 2) + (q[2] + t[2]) * sign,
        ),
    )
    store3(d.mover_frc, o + 3, fma3(f, lane(d, sign), load3(d.mover_frc, o + 3)))


@inline
def push_both(d, c, f, t):
    """Contact force f and torque t on side 2, and their opposite on side 1."""
    push(d, d.con_body2[c], load3(d.con_arm2, 3 * c), f, t, 1.0)
    b1 = d.con_body1[c]
    if b1 >= 0:
        push(d, b1, load3(d.con_arm1, 3 * c), f, t, -1.0)


@inline
def row_pair(x, y, a, b, D):
    """A pair of pyramid rows moved from (x, y) to (a, b): normal and tangential force, change of cost, whether a row
    changed its state."""
    p = minimum(x + y, 0.0)
    q = minimum(x - y, 0.0)
    r = minimum(a + b, 0.0)
    s = minimum(a - b, 0.0)
    dc = (r - p) * (r + p) + (s - q) * (s + q)
    changed = ((x + y < 0.0) ^ (a + b < 0.0)) | ((x - y < 0.0) ^ (a - b < 0.0))
    return -D * (r + s), -D * (r - s), dc, changed


@kernel
def advance_rows(m, d):
    """Moves the scalar rows by alpha * J search; their forces go to qfrc_new, sums to columns 4 and 5 of tree_sum."""
    one = lane(d, 1.0)
    for r in range(d.count[NROW]):
        t = d.row_tree[r]
        if d.tree_live[t] == 0:
            continue
        D = load(d.row_D, r)
        x = load(d.row_x, r)
        y = fma(load(d.tree_line, 8 * t), load(d.row_v, r), x)
        store(d.row_x, r, y)
        p = minimum(x, 0.0)
        q = minimum(y, 0.0)
        changed = ((x < 0.0) ^ (y < 0.0)) & (D > 0.0)
        store(d.tree_sum, 8 * t + 4, load(d.tree_sum, 8 * t + 4) + D * ((q - p) * (q + p)))
        store(d.tree_sum, 8 * t + 5, select(changed, one, load(d.tree_sum, 8 * t + 5)))
        f = -D * q
        a = d.row_adr[r]
        for k in range(a, a + d.row_num[r]):
            i = d.row_dof[k]
            store(d.qfrc_new, i, fma(load(d.row_J, k), f, load(d.qfrc_new, i)))


@kernel
def advance_contacts(m, d):
    """Moves the listed contacts by alpha * J search; their forces go to mover_frc, sums as in `advance_rows`."""
    z = lane(d, 0.0)
    one = lane(d, 1.0)
    t = -1
    al = z
    cost = z
    flips = z
    for k in range(d.count[NACTIVE]):
        c = d.con_list[k]
        if d.con_tree[c] != t:
            if t >= 0:
                store(d.tree_sum, 8 * t + 4, cost)
                store(d.tree_sum, 8 * t + 5, flips)
            t = d.con_tree[c]
            al = load(d.tree_line, 8 * t)
            cost = load(d.tree_sum, 8 * t + 4)
            flips = load(d.tree_sum, 8 * t + 5)
        dim = d.con_dim[c]
        D = load(d.con_D, c)
        x0 = load(d.con_x, 6 * c)
        y0 = fma(al, load(d.con_v, 6 * c), x0)
        store(d.con_x, 6 * c, y0)
        torque = (z, z, z)
        if dim == 1:
            p = minimum(x0, 0.0)
            q = minimum(y0, 0.0)
            dc = (q - p) * (q + p)
            changed = (x0 < 0.0) ^ (y0 < 0.0)
            force = scale3(load3(d.con_dir, 9 * c), -D * q)
        else:
            x1 = load(d.con_x, 6 * c + 1)
            x2 = load(d.con_x, 6 * c + 2)
            y1 = fma(al, load(d.con_v, 6 * c + 1), x1)
            y2 = fma(al, load(d.con_v, 6 * c + 2), x2)
            store(d.con_x, 6 * c + 1, y1)
            store(d.con_x, 6 * c + 2, y2)
            n1, f1, dc, changed = row_pair(x0, x1, y0, y1, D)
            n2, f2, dc2, changed2 = row_pair(x0, x2, y0, y2, D)
            n = n1 + n2
            dc = dc + dc2
            changed = changed | changed2
            for j in range(3, dim):
                x = load(d.con_x, 6 * c + j)
                y = fma(al, load(d.con_v, 6 * c + j), x)
                store(d.con_x, 6 * c + j, y)
                n3, f3, dc3, changed3 = row_pair(x0, x, y0, y, D)
                n = n + n3
                dc = dc + dc3
                changed = changed | changed3
                torque = fma3(load3(d.con_turn, 9 * c + 3 * (j - 3)), f3, torque)
            force = scale3(load3(d.con_dir, 9 * c), n)
            force = fma3(load3(d.con_dir, 9 * c + 3), f1, force)
            force = fma3(load3(d.con_dir, 9 * c + 6), f2, force)
        cost = cost + D * dc
        flips = select(changed & (D > 0.0), one, flips)
        push_both(d, c, force, torque)
    if t >= 0:
        store(d.tree_sum, 8 * t + 4, cost)
        store(d.tree_sum, 8 * t + 5, flips)


@segment("md")
def advance(m, d):
    """Moves qacc, Mr and all rows by alpha * search and computes the new constraint forces and the gradient.

    Leaves in tree_sum: 3 |gradient|^2, 4 twice the change of the rows' cost, 5 positive where a row changed its state.
    """
    z = lane(d, 0.0)
    for t in range(m.ntree):
        for k in range(3, 6):
            store(d.tree_sum, 8 * t + k, z)
        if d.tree_live[t] == 0:
            continue
        al = load(d.tree_line, 8 * t)
        i0 = m.tree_dofadr[t]
        for i in range(i0, i0 + m.tree_dofnum[t]):
            store(d.qfrc_new, i, z)
            store(d.qacc, i, fma(al, load(d.search, i), load(d.qacc, i)))
            store(d.Mr, i, fma(al, load(d.Mv, i), load(d.Mr, i)))
    advance_rows(m, d)
    for b in range(m.nmover):
        if d.mover_on[b] == 1:
            store6(d.mover_frc, 6 * b, (z, z, z, z, z, z))
    advance_contacts(m, d)
    for b in range(m.nmover - 1, -1, -1):
        if d.mover_on[b] == 0:
            continue
        f = load6(d.mover_frc, 6 * b)
        i0 = m.mover_dofadr[b]
        for i in range(i0, i0 + m.mover_dofnum[b]):
            store(d.qfrc_new, i, load(d.qfrc_new, i) + dot6(f, load6(d.cdof, 6 * i)))
        p = m.mover_parent[b]
        if p >= 0:
            g = load6(d.mover_frc, 6 * p)
            store6(d.mover_frc, 6 * p, (g[0] + f[0], g[1] + f[1], g[2] + f[2], g[3] + f[3], g[4] + f[4], g[5] + f[5]))
    for t in range(m.ntree):
        if d.tree_live[t] == 0:
            continue
        going = load(d.tree_done, t) < 0.5
        i0 = m.tree_dofadr[t]
        gg = z
        for i in range(i0, i0 + m.tree_dofnum[t]):
            q = load(d.qfrc_new, i)
            g = load(d.Mr, i) - q
            store(d.grad, i, g)
            gg = fma(g, g, gg)
            store(d.qfrc_constraint, i, select(going, q, load(d.qfrc_constraint, i)))
        store(d.tree_sum, 8 * t + 3, gg)


@kernel
def contact_forces(m, d):
    """Fills con_force with the force on geom2 in the contact frame, as mj_contactForce; zero where there is none."""
    z = lane(d, 0.0)
    for c in range(d.count[NCON]):
        p = d.con_pair[c]
        D = load(d.con_D, c)
        act = D > 0.0
        x0 = load(d.con_x, 6 * c)
        n = z
        if d.con_dim[c] == 1:
            n = -D * minimum(x0, 0.0)
        for j in range(1, 6):
            f = z
            if j < d.con_dim[c]:
                x = load(d.con_x, 6 * c + j)
                g, f, _, _ = row_pair(x0, x, x0, x, D)
                f = f * m.pair_friction[5 * p + j - 1]
                n = n + g
            store(d.con_force, 6 * c + j, select(act, f, z))
        store(d.con_force, 6 * c, select(act, n, z))


@inline
def unfinished(d, t):
    """Mask of the lanes that still work on tree t."""
    return not_(load(d.tree_done, t) > 0.5)

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
from genesis_core.layout.fields_constraint import NACTIVE, NROW, NROWLIVE
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
def motion(m, d, vel, x):
    """Motion of every body that carries a contact, about its tree's centre of mass, for joint velocities x."""
    z = lane(d, 0.0)
    for b in range(m.nmover):
        if d.mover_on[b] == 0:
            continue
        p = m.mover_parent[b]
        v = (z, z, z, z, z, z)
        if p >= 0:
            v = load6(vel, 6 * p)
        i0 = m.mover_dofadr[b]
        for i in range(i0, i0 + m.mover_dofnum[b]):
            v = fma6(load6(d.cdof, 6 * i), load(x, i), v)
        store6(vel, 6 * b, v)


@inline
def relative_velocity(d, vel, c):
    """Velocity of side 2 against side 1 at contact c, for the bodies' motions vel."""
    u = point_velocity(vel, 6 * d.con_body2[c], load3(d.con_arm2, 3 * c))
    b1 = d.con_body1[c]
    if b1 >= 0:
        u = sub3(u, point_velocity(vel, 6 * b1, load3(d.con_arm1, 3 * c)))
    return u


@inline
def relative_turn(d, vel, c):
    """Angular velocity of side 2 against side 1 at contact c, for the bodies' motions vel."""
    w = load3(vel, 6 * d.con_body2[c])
    b1 = d.con_body1[c]
    if b1 >= 0:
        w = sub3(w, load3(vel, 6 * b1))
    return w


@inline
def cone_pair(x, y):
    """Sum of squares of the negative parts of x + y and x - y: twice the cost of a pair of pyramid rows over D."""
    a = minimum(x + y, 0.0)
    b = minimum(x - y, 0.0)
    return a * a + b * b


@inline
def single_cost(x):
    """Square of the negative part."""
    y = minimum(x, 0.0)
    return y * y


@inline
def component_residual(d, c, k, u):
    """Component k (0 .. 2) of contact c: direction . u - aref, written to con_x or con_v by the caller."""
    return dot3(load3(d.con_dir, 9 * c + 3 * k), u) - load(d.con_aref, 6 * c + k)


@segment("md")
def residual(m, d):
    """J a - aref of every row, for the last acceleration (to con_x, row_x) and the smooth one (to con_v, row_v).

    Items 0 and 1 of tree_line get the cost of the rows for the two.
    """
    z = lane(d, 0.0)
    last = z
    smooth = z
    motion(m, d, d.mover_vel, d.qacc_warmstart)
    motion(m, d, d.mover_frc, d.qacc_smooth)
    for r in range(d.count[NROW]):
        a = d.row_adr[r]
        x = -load(d.row_aref, r)
        y = x
        for k in range(a, a + d.row_num[r]):
            J = load(d.row_J, k)
            x = fma(J, load(d.qacc_warmstart, d.row_dof[k]), x)
            y = fma(J, load(d.qacc_smooth, d.row_dof[k]), y)
        store(d.row_x, r, x)
        store(d.row_v, r, y)
        D = load(d.row_D, r)
        last = last + D * single_cost(x)
        smooth = smooth + D * single_cost(y)
    for k in range(d.count[NACTIVE]):
        c = d.con_list[k]
        dim = d.con_dim[c]
        u = relative_velocity(d, d.mover_vel, c)
        v = relative_velocity(d, d.mover_frc, c)
        x0 = component_residual(d, c, 0, u)
        y0 = component_residual(d, c, 0, v)
        store(d.con_x, 6 * c, x0)
        store(d.con_v, 6 * c, y0)
        if dim == 1:
            s = single_cost(x0)
            t = single_cost(y0)
        else:
            s = z
            t = z
            for j in range(1, 3):
                x = component_residual(d, c, j, u)
                y = component_residual(d, c, j, v)
                store(d.con_x, 6 * c + j, x)
                store(d.con_v, 6 * c + j, y)
                s = s + cone_pair(x0, x)
                t = t + cone_pair(y0, y)
            if dim > 3:
                u = relative_turn(d, d.mover_vel, c)
                v = relative_turn(d, d.mover_frc, c)
                for j in range(3, dim):
                    e = load3(d.con_turn, 9 * c + 3 * (j - 3))
                    x = dot3(e, u) - load(d.con_aref, 6 * c + j)
                    y = dot3(e, v) - load(d.con_aref, 6 * c + j)
                    store(d.con_x, 6 * c + j, x)
                    store(d.con_v, 6 * c + j, y)
                    s = s + cone_pair(x0, x)
                    t = t + cone_pair(y0, y)
        D = load(d.con_D, c)
        last = last + D * s
        smooth = smooth + D * t
    store(d.tree_line, 0, last * 0.5)
    store(d.tree_line, 1, smooth * 0.5)


@inline
def mass_row(m, d, y, x, i):
    """Adds row and column i of M times x to y; y[i] is set, rows of lower numbers are done."""
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


@inline
def mass_rows(m, d, y, x, i):
    """As `mass_row` for rows i and i + 1, where i carries i + 1 and both rows list all ancestors."""
    a = m.M_rowadr[i]
    b = m.M_rowadr[i + 1]
    n = m.M_rownnz[i] - 1
    xi = load(x, i)
    xk = load(x, i + 1)
    c = load(d.M, b + n)
    s = fma(c, xk, load(d.M, a + n) * xi)
    t = fma(load(d.M, b + n + 1), xk, c * xi)
    for k in range(n):
        j = m.M_colind[a + k]
        ma = load(d.M, a + k)
        mb = load(d.M, b + k)
        xj = load(x, j)
        s = fma(ma, xj, s)
        t = fma(mb, xj, t)
        store(y, j, fma(mb, xk, fma(ma, xi, load(y, j))))
    store(y, i, s)
    store(y, i + 1, t)


@kernel
def mul_mass(m, d, y, x):
    """y = M x for the trees that are not finished."""
    for t in range(m.ntree):
        if d.tree_live[t] == 0:
            continue
        i = m.tree_dofadr[t]
        end = i + m.tree_dofnum[t]
        while i < end:
            if i + 1 < end and m.dof_parentid[i + 1] == i and m.M_rownnz[i + 1] == m.M_rownnz[i] + 1:
                mass_rows(m, d, y, x, i)
                i += 2
            else:
                mass_row(m, d, y, x, i)
                i += 1


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
    """Lists the contacts and rows that some lane has."""
    n = 0
    for c in range(d.count[NCON]):
        if any_(load(d.con_D, c) > 0.0):
            d.con_list[n] = c
            n += 1
    d.count[NACTIVE] = n
    mark_movers(m, d)
    for r in range(d.count[NROW]):
        d.row_list[r] = r
    d.count[NROWLIVE] = d.count[NROW]


@kernel
def list_live(m, d):
    """Drops the contacts and rows that only finished lanes have."""
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
    n = 0
    for k in range(d.count[NROWLIVE]):
        r = d.row_list[k]
        if any_((load(d.row_D, r) > 0.0) & (load(d.tree_done, d.row_tree[r]) < 0.5)):
            d.row_list[n] = r
            n += 1
    d.count[NROWLIVE] = n


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
    z = lane(d, 0.0)
    t = -1
    al = z
    cost = z
    flips = z
    for k in range(d.count[NROWLIVE]):
        r = d.row_list[k]
        if d.row_tree[r] != t:
            if t >= 0:
                store(d.tree_sum, 8 * t + 4, cost)
                store(d.tree_sum, 8 * t + 5, flips)
            t = d.row_tree[r]
            al = load(d.tree_line, 8 * t)
            cost = load(d.tree_sum, 8 * t + 4)
            flips = load(d.tree_sum, 8 * t + 5)
        D = load(d.row_D, r)
        x = load(d.row_x, r)
        y = fma(al, load(d.row_v, r), x)
        store(d.row_x, r, y)
        p = minimum(x, 0.0)
        q = minimum(y, 0.0)
        cost = fma(D, (q - p) * (q + p), cost)
        flips = select(((x < 0.0) ^ (y < 0.0)) & (D > 0.0), one, flips)
        f = -D * q
        a = d.row_adr[r]
        for e in range(a, a + d.row_num[r]):
            i = d.row_dof[e]
            store(d.qfrc_new, i, fma(load(d.row_J, e), f, load(d.qfrc_new, i)))
    if t >= 0:
        store(d.tree_sum, 8 * t + 4, cost)
        store(d.tree_sum, 8 * t + 5, flips)


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

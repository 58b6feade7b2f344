"""Islands, and the exact line search along the Newton direction.

The cost along a direction is piecewise quadratic, its slope piecewise linear and increasing. The full step (alpha =
1) is the minimum of the first piece, so it is tried first; where rows change their state on the way, a safeguarded
Newton iteration on the slope follows. It ends where MuJoCo's does (|slope| < gtol), or where the curvature is bit-
equal to the one that gave the step: then the step stayed in one piece and is exact.

Every quantity is kept per tree and lane. A lane's *islands* (trees linked by its own contacts) have their own step
length and end on their own, as in MuJoCo.
"""

from __future__ import annotations

from genesis_core.lanes import (
    any_,
    dot3,
    fabs,
    fma,
    get_lane,
    inline,
    kernel,
    lane,
    lane_begin,
    lane_end,
    load,
    load3,
    minimum,
    not_,
    select,
    sqrt,
    store,
)
from genesis_core.lanes.segment import segment
from genesis_core.layout.fields_constraint import FORM_CROSS, NACTIVE, NEVAL, NJOIN, NLINK, NROWLIVE
from genesis_core.physics.solver_motion import motion, mul_mass, relative_turn, relative_velocity

FAR = 1e30  # no upper end of the bracket yet


# ------------------------------------------------------------------ islands
@kernel
def label_islands(m, d):
    """Marks every tree with the smallest tree of its island, per lane, and lists the pairs of the two."""
    for t in range(m.ntree):
        store(d.tree_label, t, lane(d, 1.0 * t if m.islands == 1 else 0.0))
    joined = m.islands == 0 and m.ntree > 1
    changed = m.islands == 1
    while changed:
        changed = False
        for k in range(d.count[NLINK]):
            if d.link_form[k] != FORM_CROSS:
                continue
            touch = load(d.link_D, k) > 0.0
            t1 = m.mover_tree[d.link_body1[k]]
            t2 = m.mover_tree[d.link_body2[k]]
            a = load(d.tree_label, t1)
            b = load(d.tree_label, t2)
            if any_(touch & (a != b)):
                low = minimum(a, b)
                store(d.tree_label, t1, select(touch, low, a))
                store(d.tree_label, t2, select(touch, low, b))
                changed = True
                joined = True
    d.count[NJOIN] = 0
    if joined:
        list_joins(m, d)


@kernel
def list_joins(m, d):
    """Lists every pair (tree, smallest tree of its island) that occurs in some lane, ascending by tree."""
    n = 0
    for t in range(m.ntree):
        first = n
        for l in range(lane_begin(d), lane_end(d)):
            r = int(get_lane(d.tree_label, t, l))
            known = r == t
            for k in range(first, n):
                known = known or d.join_root[k] == r
            if not known:
                d.join_tree[n] = t
                d.join_root[n] = r
                n += 1
    d.count[NJOIN] = n


@kernel
def sum_islands(m, d, first, last):
    """Replaces columns first .. last-1 of tree_sum by the sums over each lane's islands."""
    z = lane(d, 0.0)
    for k in range(d.count[NJOIN]):
        t = d.join_tree[k]
        r = d.join_root[k]
        mine = load(d.tree_label, t) == 1.0 * r
        for j in range(first, last):
            s = load(d.tree_sum, 8 * r + j)
            store(d.tree_sum, 8 * r + j, s + select(mine, load(d.tree_sum, 8 * t + j), z))
    for k in range(d.count[NJOIN]):
        t = d.join_tree[k]
        r = d.join_root[k]
        mine = load(d.tree_label, t) == 1.0 * r
        for j in range(first, last):
            s = load(d.tree_sum, 8 * t + j)
            store(d.tree_sum, 8 * t + j, select(mine, load(d.tree_sum, 8 * r + j), s))


# ------------------------------------------------------------------ slope and curvature
@inline
def row_slope(x, v, g, h, D):
    """Adds slope and curvature of the row x + alpha v at alpha = 0, given x at that point."""
    return fma(D, minimum(x, 0.0) * v, g), fma(D, select(x < 0.0, v * v, lane(D, 0.0)), h)


@inline
def pair_slope(x, y, v, w, g, h):
    """Adds slope and curvature (without D) of the rows x +- y, which move with v +- w."""
    z = lane(x, 0.0)
    a = x + y
    p = v + w
    g = fma(minimum(a, 0.0), p, g)
    h = h + select(a < 0.0, p * p, z)
    a = x - y
    p = v - w
    g = fma(minimum(a, 0.0), p, g)
    h = h + select(a < 0.0, p * p, z)
    return g, h


@inline
def pair_curvature(x, y, v, w, h):
    """Adds the curvature (without D) of the rows x +- y, which move with v +- w."""
    z = lane(x, 0.0)
    p = v + w
    h = h + select(x + y < 0.0, p * p, z)
    p = v - w
    return h + select(x - y < 0.0, p * p, z)


@kernel
def probe_rows(m, d):
    """J search of the scalar rows; adds to tree_sum 3 curvature at 0, 4 slope and 5 curvature at 1."""
    z = lane(d, 0.0)
    t = -1
    h0 = z
    g1 = z
    h1 = z
    for k in range(d.count[NROWLIVE]):
        r = d.row_list[k]
        if d.row_tree[r] != t:
            if t >= 0:
                store(d.tree_sum, 8 * t + 3, h0)
                store(d.tree_sum, 8 * t + 4, g1)
                store(d.tree_sum, 8 * t + 5, h1)
            t = d.row_tree[r]
            h0 = load(d.tree_sum, 8 * t + 3)
            g1 = load(d.tree_sum, 8 * t + 4)
            h1 = load(d.tree_sum, 8 * t + 5)
        a = d.row_adr[r]
        v = z
        for e in range(a, a + d.row_num[r]):
            v = fma(load(d.row_J, e), load(d.search, d.row_dof[e]), v)
        store(d.row_v, r, v)
        D = load(d.row_D, r)
        x = load(d.row_x, r)
        h0 = fma(D, select(x < 0.0, v * v, z), h0)
        g1, h1 = row_slope(x + v, v, g1, h1, D)
    if t >= 0:
        store(d.tree_sum, 8 * t + 3, h0)
        store(d.tree_sum, 8 * t + 4, g1)
        store(d.tree_sum, 8 * t + 5, h1)


@kernel
def probe_contacts(m, d):
    """As `probe_rows` for the listed contacts."""
    z = lane(d, 0.0)
    t = -1
    h0 = z
    g1 = z
    h1 = z
    for k in range(d.count[NACTIVE]):
        c = d.con_list[k]
        if d.con_tree[c] != t:
            if t >= 0:
                store(d.tree_sum, 8 * t + 3, h0)
                store(d.tree_sum, 8 * t + 4, g1)
                store(d.tree_sum, 8 * t + 5, h1)
            t = d.con_tree[c]
            h0 = load(d.tree_sum, 8 * t + 3)
            g1 = load(d.tree_sum, 8 * t + 4)
            h1 = load(d.tree_sum, 8 * t + 5)
        dim = d.con_dim[c]
        u = relative_velocity(d, d.mover_vel, c)
        v0 = dot3(load3(d.con_dir, 9 * c), u)
        x0 = load(d.con_x, 6 * c)
        y0 = x0 + v0
        store(d.con_v, 6 * c, v0)
        if dim == 1:
            a = select(x0 < 0.0, v0 * v0, z)
            g = minimum(y0, 0.0) * v0
            h = select(y0 < 0.0, v0 * v0, z)
        else:
            v1 = dot3(load3(d.con_dir, 9 * c + 3), u)
            v2 = dot3(load3(d.con_dir, 9 * c + 6), u)
            store(d.con_v, 6 * c + 1, v1)
            store(d.con_v, 6 * c + 2, v2)
            x1 = load(d.con_x, 6 * c + 1)
            x2 = load(d.con_x, 6 * c + 2)
            a = pair_curvature(x0, x2, v0, v2, pair_curvature(x0, x1, v0, v1, z))
            g, h = pair_slope(y0, x1 + v1, v0, v1, z, z)
            g, h = pair_slope(y0, x2 + v2, v0, v2, g, h)
            if dim > 3:
                w = relative_turn(d, d.mover_vel, c)
                for j in range(3, dim):
                    v = dot3(load3(d.con_turn, 9 * c + 3 * (j - 3)), w)
                    x = load(d.con_x, 6 * c + j)
                    store(d.con_v, 6 * c + j, v)
                    a = pair_curvature(x0, x, v0, v, a)
                    g, h = pair_slope(y0, x + v, v0, v, g, h)
        D = load(d.con_D, c)
        h0 = fma(D, a, h0)
        g1 = fma(D, g, g1)
        h1 = fma(D, h, h1)
    if t >= 0:
        store(d.tree_sum, 8 * t + 3, h0)
        store(d.tree_sum, 8 * t + 4, g1)
        store(d.tree_sum, 8 * t + 5, h1)


@kernel
def probe(m, d):
    """M search and J search, and the sums that the line search starts from.

    tree_sum: 0 |search|^2, 1 search . Mr, 2 search . M search, 3 curvature of the rows at 0, 4 slope and 5 curvature of
    the rows at 1.
    """
    z = lane(d, 0.0)
    mul_mass(m, d, d.Mv, d.search)
    motion(m, d, d.mover_vel, d.search)
    for t in range(m.ntree):
        ss = z
        g1 = z
        g2 = z
        if d.tree_live[t] == 1:
            i0 = m.tree_dofadr[t]
            for i in range(i0, i0 + m.tree_dofnum[t]):
                s = load(d.search, i)
                ss = fma(s, s, ss)
                g1 = fma(s, load(d.Mr, i), g1)
                g2 = fma(s, load(d.Mv, i), g2)
        store(d.tree_sum, 8 * t, ss)
        store(d.tree_sum, 8 * t + 1, g1)
        store(d.tree_sum, 8 * t + 2, g2)
        for k in range(3, 6):
            store(d.tree_sum, 8 * t + k, z)
    probe_rows(m, d)
    probe_contacts(m, d)
    sum_islands(m, d, 0, 6)


@kernel
def evaluate_rows(m, d):
    """Slope and curvature of the scalar rows at each tree's alpha, added to columns 4 and 5 of tree_sum."""
    z = lane(d, 0.0)
    t = -1
    al = z
    g1 = z
    h1 = z
    for k in range(d.count[NROWLIVE]):
        r = d.row_list[k]
        if d.row_tree[r] != t:
            if t >= 0:
                store(d.tree_sum, 8 * t + 4, g1)
                store(d.tree_sum, 8 * t + 5, h1)
            t = d.row_tree[r]
            al = load(d.tree_line, 8 * t)
            g1 = load(d.tree_sum, 8 * t + 4)
            h1 = load(d.tree_sum, 8 * t + 5)
        v = load(d.row_v, r)
        g1, h1 = row_slope(fma(al, v, load(d.row_x, r)), v, g1, h1, load(d.row_D, r))
    if t >= 0:
        store(d.tree_sum, 8 * t + 4, g1)
        store(d.tree_sum, 8 * t + 5, h1)


@kernel
def evaluate(m, d):
    """Slope and curvature of the rows at each tree's alpha, to columns 4 and 5 of tree_sum."""
    z = lane(d, 0.0)
    for t in range(m.ntree):
        store(d.tree_sum, 8 * t + 4, z)
        store(d.tree_sum, 8 * t + 5, z)
    evaluate_rows(m, d)
    t = -1
    al = z
    g1 = z
    h1 = z
    for k in range(d.count[NACTIVE]):
        c = d.con_list[k]
        if d.con_tree[c] != t:
            if t >= 0:
                store(d.tree_sum, 8 * t + 4, g1)
                store(d.tree_sum, 8 * t + 5, h1)
            t = d.con_tree[c]
            al = load(d.tree_line, 8 * t)
            g1 = load(d.tree_sum, 8 * t + 4)
            h1 = load(d.tree_sum, 8 * t + 5)
        dim = d.con_dim[c]
        v0 = load(d.con_v, 6 * c)
        y0 = fma(al, v0, load(d.con_x, 6 * c))
        if dim == 1:
            g = minimum(y0, 0.0) * v0
            h = select(y0 < 0.0, v0 * v0, z)
        else:
            g = z
            h = z
            for j in range(1, dim):
                v = load(d.con_v, 6 * c + j)
                g, h = pair_slope(y0, fma(al, v, load(d.con_x, 6 * c + j)), v0, v, g, h)
        D = load(d.con_D, c)
        g1 = fma(D, g, g1)
        h1 = fma(D, h, h1)
    if t >= 0:
        store(d.tree_sum, 8 * t + 4, g1)
        store(d.tree_sum, 8 * t + 5, h1)
    sum_islands(m, d, 4, 6)


# ------------------------------------------------------------------ search
@kernel
def first_step(m, d):
    """Tries alpha = 1 everywhere; returns whether some lane has to go on.

    tree_line: 0 alpha, 1 and 2 bracket, 3 curvature of the piece that gave alpha, 4 done, 5 slope and 6 curvature of
    the quadratic part, 7 slope that counts as zero.
    """
    z = lane(d, 0.0)
    one = lane(d, 1.0)
    more = False
    for t in range(m.ntree):
        if d.tree_live[t] == 0:
            store(d.tree_line, 8 * t, z)
            continue
        o = 8 * t
        g1 = load(d.tree_sum, o + 1)
        g2 = load(d.tree_sum, o + 2)
        still = load(d.tree_done, t) > 0.5
        length = sqrt(load(d.tree_sum, o))
        still = still | not_(length > 1e-15)
        gtol = length * (m.tolerance * m.ls_tolerance) / load(d.tree_scale, t)
        h0 = load(d.tree_sum, o + 3) + g2
        slope = load(d.tree_sum, o + 4) + (g1 + g2)
        curv = load(d.tree_sum, o + 5) + g2
        fin = still | not_(fabs(slope) >= gtol) | (curv == h0)
        neg = slope < 0.0
        store(d.tree_line, o, select(still, z, one))
        store(d.tree_line, o + 1, select(neg, one, z))
        store(d.tree_line, o + 2, select(neg, lane(d, FAR), one))
        store(d.tree_line, o + 3, curv)
        store(d.tree_line, o + 4, select(fin, one, z))
        store(d.tree_line, o + 5, g1)
        store(d.tree_line, o + 6, g2)
        store(d.tree_line, o + 7, gtol)
        more = more | any_(not_(fin))
        next_alpha(d, o, slope, curv, fin)
    return more


@inline
def next_alpha(d, o, slope, curv, fin):
    """Newton step on the slope, bisected or doubled where it leaves the bracket."""
    al = load(d.tree_line, o)
    lo = load(d.tree_line, o + 1)
    hi = load(d.tree_line, o + 2)
    new = al - slope / select(fin, lane(curv, 1.0), curv)
    inside = (new > lo) & (new < hi)
    new = select(inside, new, select(hi < 0.5 * FAR, 0.5 * (lo + hi), al * 2.0))
    store(d.tree_line, o + 3, select(inside, curv, lane(curv, -1.0)))
    stuck = new == al
    store(d.tree_line, o + 4, select(stuck, lane(curv, 1.0), load(d.tree_line, o + 4)))
    store(d.tree_line, o, select(fin, al, new))


@segment("md")
def line_search(m, d):
    """Leaves the step length of every tree and lane in column 0 of tree_line, 0 where the tree is finished."""
    one = lane(d, 1.0)
    probe(m, d)
    d.count[NEVAL] += 1
    more = first_step(m, d)
    n = 2
    while more and n < m.ls_iterations:
        evaluate(m, d)
        d.count[NEVAL] += 1
        n += 1
        more = False
        for t in range(m.ntree):
            if d.tree_live[t] == 0:
                continue
            o = 8 * t
            al = load(d.tree_line, o)
            slope = load(d.tree_sum, o + 4) + fma(al, load(d.tree_line, o + 6), load(d.tree_line, o + 5))
            curv = load(d.tree_sum, o + 5) + load(d.tree_line, o + 6)
            fin = load(d.tree_line, o + 4) > 0.5
            fin = fin | not_(fabs(slope) >= load(d.tree_line, o + 7)) | (curv == load(d.tree_line, o + 3))
            neg = slope < 0.0
            store(d.tree_line, o + 1, select(neg, al, load(d.tree_line, o + 1)))
            store(d.tree_line, o + 2, select(neg, load(d.tree_line, o + 2), al))
            store(d.tree_line, o + 4, select(fin, one, load(d.tree_line, o + 4)))
            next_alpha(d, o, slope, curv, fin)
            more = more | any_(not_(load(d.tree_line, o + 4) > 0.5))

"""Newton's method on the primal problem: MuJoCo 4.0.0's solver for pyramidal cones (`engine_solver.c`).

qacc minimises 1/2 (a - a_smooth)^T M (a - a_smooth) + sum of 1/2 D min(J a - aref, 0)^2 over the rows. Each iteration
factors H = M + J^T D J of the active rows, steps along -H^-1 gradient with an exact line search, and ends where the
scaled improvement, gradient or Newton decrement falls below `tolerance`. The scale is one over the trace of the mass
matrix of the island.

All quantities of the iteration are kept per tree and lane (`solver_linesearch`); a finished lane has step length
zero, so that its numbers stand still, and contacts that only finished lanes have are dropped from the list. Instead
of M qacc - qfrc_smooth its equal Mr = M (qacc - qacc_smooth) is carried along: it does not cancel.
"""

from __future__ import annotations

from genesis_core.lanes import any_, fabs, fma, inline, kernel, lane, load, maximum, not_, select, sqrt, store, true_
from genesis_core.lanes.segment import segment
from genesis_core.layout.counters import SOLVER_ITER
from genesis_core.layout.fields_constraint import NACTIVE, NEVAL, NFACTOR, NROW
from genesis_core.physics.solver_factor import backsolve, factor, pattern
from genesis_core.physics.solver_hessian import assemble
from genesis_core.physics.solver_limits import solve_limits, take_limits
from genesis_core.physics.solver_linesearch import label_islands, line_search, sum_islands
from genesis_core.physics.solver_motion import (
    advance,
    contact_forces,
    list_all,
    list_live,
    mul_mass,
    residual,
    unfinished,
)

__all__ = ["contact_forces", "solve"]


@kernel
def find_constrained(m, d):
    """Marks the trees that no row acts on, or that are solved already, as finished, per lane; they keep qacc_smooth."""
    z = lane(d, 0.0)
    one = lane(d, 1.0)
    for t in range(m.ntree):
        store(d.tree_sum, 8 * t, z)
    for r in range(d.count[NROW]):
        t = 8 * d.row_tree[r]
        store(d.tree_sum, t, load(d.tree_sum, t) + load(d.row_D, r))
    for k in range(d.count[NACTIVE]):
        c = d.con_list[k]
        t = 8 * d.con_tree[c]
        store(d.tree_sum, t, load(d.tree_sum, t) + load(d.con_D, c))
    label_islands(m, d)
    sum_islands(m, d, 0, 1)
    for t in range(m.ntree):
        free = not_(load(d.tree_sum, 8 * t) > 0.0) | (load(d.dual_done, 0) > 0.5)
        store(d.tree_done, t, select(free, one, z))
        store(d.tree_iter, t, z)


@kernel
def find_scale(m, d):
    """tree_scale: one over the trace of the island's mass matrix."""
    for t in range(m.ntree):
        i0 = m.tree_dofadr[t]
        s = lane(d, 0.0)
        for i in range(i0, i0 + m.tree_dofnum[t]):
            s = s + load(d.M, m.M_rowadr[i] + m.M_rownnz[i] - 1)
        store(d.tree_sum, 8 * t, s)
    sum_islands(m, d, 0, 1)
    for t in range(m.ntree):
        if m.islands == 1:
            store(d.tree_scale, t, 1.0 / load(d.tree_sum, 8 * t))
        else:
            store(d.tree_scale, t, lane(d, 1.0 / (m.meaninertia * m.nv)))


@kernel
def start(m, d):
    """Starts from the better of the last and the smooth acceleration, per lane; trees without rows from the latter."""
    z = lane(d, 0.0)
    for t in range(m.ntree):
        d.tree_live[t] = 1
    for i in range(m.nv):
        store(d.search, i, load(d.qacc_warmstart, i) - load(d.qacc_smooth, i))
    mul_mass(m, d, d.Mr, d.search)
    residual(m, d)
    gauss = z
    for i in range(m.nv):
        gauss = fma(load(d.Mr, i), load(d.search, i), gauss)
    smooth = not_(load(d.tree_line, 0) + 0.5 * gauss <= load(d.tree_line, 1))
    if m.warmstart == 0:
        smooth = true_(d)
    for k in range(d.count[NACTIVE]):
        c = d.con_list[k]
        for j in range(6 * c, 6 * c + d.con_dim[c]):
            store(d.con_x, j, select(smooth, load(d.con_v, j), load(d.con_x, j)))
    for r in range(d.count[NROW]):
        store(d.row_x, r, select(smooth, load(d.row_v, r), load(d.row_x, r)))
    for t in range(m.ntree):
        fresh = smooth | (load(d.tree_done, t) > 0.5)
        i0 = m.tree_dofadr[t]
        for i in range(i0, i0 + m.tree_dofnum[t]):
            store(d.qacc, i, select(fresh, load(d.qacc_smooth, i), load(d.qacc_warmstart, i)))
            store(d.Mr, i, select(fresh, z, load(d.Mr, i)))


@kernel
def hold(m, d):
    """A step of length zero: the forces and the gradient where the iteration starts."""
    z = lane(d, 0.0)
    for t in range(m.ntree):
        store(d.tree_line, 8 * t, z)
    for i in range(m.nv):
        store(d.qfrc_constraint, i, z)
        store(d.search, i, z)
        store(d.Mv, i, z)
    advance(m, d)


@kernel
def check_gradient(m, d):
    """Finishes the trees whose gradient is below the tolerance at the start."""
    one = lane(d, 1.0)
    sum_islands(m, d, 3, 4)
    for t in range(m.ntree):
        small = not_(load(d.tree_scale, t) * sqrt(load(d.tree_sum, 8 * t + 3)) >= m.tolerance)
        store(d.tree_done, t, select(small, one, load(d.tree_done, t)))


@kernel
def set_live(m, d):
    """Flags the trees that some lane still works on; returns whether there is one."""
    more = False
    for t in range(m.ntree):
        live = any_(unfinished(d, t))
        d.tree_live[t] = live
        more = more | live
    return more


@kernel
def check_decrement(m, d):
    """Finishes the trees whose Newton step promises less than the tolerance; returns whether there is one."""
    ended = False
    z = lane(d, 0.0)
    one = lane(d, 1.0)
    for t in range(m.ntree):
        s = z
        if d.tree_live[t] == 1:
            i0 = m.tree_dofadr[t]
            for i in range(i0, i0 + m.tree_dofnum[t]):
                s = fma(load(d.grad, i), load(d.search, i), s)
        store(d.tree_sum, 8 * t + 6, s)
    sum_islands(m, d, 6, 7)
    for t in range(m.ntree):
        small = not_(load(d.tree_scale, t) * load(d.tree_sum, 8 * t + 6) * -0.5 >= m.tolerance)
        ended = ended | any_(small & unfinished(d, t))
        store(d.tree_done, t, select(small, one, load(d.tree_done, t)))
    return ended


@inline
def finish_iteration(m, d):
    """Ends the lanes that have converged.

    Returns whether some lane goes on, whether one of those needs a new Hessian, and whether some lane has ended.
    """
    z = lane(d, 0.0)
    one = lane(d, 1.0)
    sum_islands(m, d, 3, 6)
    more = False
    again = False
    fewer = False
    for t in range(m.ntree):
        if d.tree_live[t] == 0:
            continue
        o = 8 * t
        scale = load(d.tree_scale, t)
        al = load(d.tree_line, o)
        done = load(d.tree_done, t) > 0.5
        moved = fabs(al) > 0.0
        gauss = al * (load(d.tree_line, o + 5) + 0.5 * al * load(d.tree_line, o + 6))
        improvement = -scale * (0.5 * load(d.tree_sum, o + 4) + gauss)
        gradient = scale * sqrt(load(d.tree_sum, o + 3))
        flips = load(d.tree_sum, o + 5) > 0.0
        stop = not_(moved) | not_(improvement >= m.tolerance) | not_(gradient >= m.tolerance)
        # a full step in which no row changed its state has reached the minimum; single precision cannot see it else
        stop = stop | (not_(flips) & (al == 1.0))
        store(d.tree_iter, t, load(d.tree_iter, t) + select(moved & not_(done), one, z))
        fewer = fewer | any_(stop & not_(done))
        done = done | stop
        store(d.tree_done, t, select(done, one, z))
        d.tree_live[t] = any_(not_(done))
        more = more | any_(not_(done))
        again = again | any_(not_(done) & flips)
    return more, again, fewer


@kernel
def iterate(m, d):
    """Newton iterations until every lane has converged."""
    check_gradient(m, d)
    more = set_live(m, d)
    again = True
    n = 0
    if more:
        list_live(m, d)
        pattern(m, d)
    while more and n < m.iterations:
        if again:
            assemble(m, d)
            factor(m, d)
            d.count[NFACTOR] += 1
        for t in range(m.ntree):
            if d.tree_live[t] == 1:
                i0 = m.tree_dofadr[t]
                for i in range(i0, i0 + m.tree_dofnum[t]):
                    store(d.search, i, -load(d.grad, i))
        backsolve(m, d, d.search)
        ended = False
        if n > 0:
            ended = check_decrement(m, d)
            if not set_live(m, d):
                break
        line_search(m, d)
        advance(m, d)
        more, again, fewer = finish_iteration(m, d)
        if fewer or ended:
            list_live(m, d)
        n += 1
    d.count[SOLVER_ITER] = n


@segment("md")
def solve(m, d):
    """qacc, qfrc_constraint and solver_niter from the rows that `constraint.make` built."""
    z = lane(d, 0.0)
    d.count[SOLVER_ITER] = 0
    d.count[NEVAL] = 0
    d.count[NFACTOR] = 0
    list_all(m, d)
    rows = m.nv > 0 and (d.count[NACTIVE] > 0 or d.count[NROW] > 0)
    if not rows or not solve_limits(m, d):
        for i in range(m.nv):
            store(d.qacc, i, load(d.qacc_smooth, i))
            store(d.qfrc_constraint, i, z)
        store(d.solver_niter, 0, z)
        if rows:
            take_limits(m, d)
        return
    find_constrained(m, d)
    start(m, d)
    find_scale(m, d)
    hold(m, d)
    iterate(m, d)
    n = z
    for t in range(m.ntree):
        n = maximum(n, load(d.tree_iter, t))
    store(d.solver_niter, 0, n)
    take_limits(m, d)

"""Joint limits of environments without contacts, solved in the space of the rows.

The minimum that `solver` looks for is qacc = qacc_smooth + M^-1 J^T f with f = -D min(J qacc - aref, 0). With
A = J M^-1 J^T that is, for the rows that push, (A + 1/D) f = aref - J qacc_smooth; which rows push is found by trying:
those that are violated, until the set reproduces itself. A few rows stand here against all dofs there, M is factored
already, and no line search is needed. The solution is the same minimum, exact to rounding.

An environment with a contact, or one whose set goes in circles, is left to `solver`. That is decided by the
environment's own numbers; rows of the block that it does not have are zeros in its matrix. So its result does not
depend on the other lanes.
"""

from __future__ import annotations

from genesis_core.lanes import any_, inline, kernel, lane, load, not_, select, store, true_
from genesis_core.layout.fields_constraint import NACTIVE, NROW

TRIES = 6  # sets of pushing rows that are tried; two is the rule


@kernel
def half_solve(m, d, r):
    """dual_y of row r: L^-T J^T along the chain of dofs that carry the joint."""
    adr = d.row_adr[r]
    number = d.row_num[r]
    dof = d.row_dof[adr + number - 1]
    chain = m.M_rowadr[dof]
    n = m.M_rownnz[dof]
    o = r * m.dual_chain
    for c in range(n - number):
        store(d.dual_y, o + c, lane(d, 0.0))
    for j in range(number):
        store(d.dual_y, o + n - number + j, load(d.row_J, adr + j))
    for p in range(n - 1, 0, -1):
        u = m.M_rowadr[m.M_colind[chain + p]]
        y = load(d.dual_y, o + p)
        for c in range(p):
            store(d.dual_y, o + c, load(d.dual_y, o + c) - load(d.L, u + c) * y)


@kernel
def coupling(m, d, i, j):
    """A of rows i and j: over the dofs that carry both joints."""
    di = d.row_dof[d.row_adr[i] + d.row_num[i] - 1]
    dj = d.row_dof[d.row_adr[j] + d.row_num[j] - 1]
    a = m.M_rowadr[di]
    b = m.M_rowadr[dj]
    s = lane(d, 0.0)
    for c in range(min(m.M_rownnz[di], m.M_rownnz[dj])):
        k = m.M_colind[a + c]
        if k != m.M_colind[b + c]:
            break
        s = s + load(d.dual_y, i * m.dual_chain + c) * load(d.dual_y, j * m.dual_chain + c) * load(d.Dinv, k)
    return s


@kernel
def prepare(m, d, wanted):
    """A, the violation of each row at qacc_smooth, and the first guess of the rows that push."""
    zero = lane(d, 0.0)
    one = lane(d, 1.0)
    n = m.ndual
    for i in range(d.count[NROW]):
        has = (load(d.row_D, i) > 0.0) & wanted
        store(d.dual_has, i, select(has, one, zero))
        half_solve(m, d, i)
        x = -load(d.row_aref, i)
        for j in range(d.row_adr[i], d.row_adr[i] + d.row_num[i]):
            x = x + load(d.row_J, j) * load(d.qacc_smooth, d.row_dof[j])
        store(d.dual_x, i, x)
        store(d.dual_on, i, select(has & (x < 0.0), one, zero))
        for j in range(i):
            both = any_(has & (load(d.dual_has, j) > 0.5))
            d.dual_pair[n * i + j] = both
            if both:
                store(d.dual_A, n * i + j, coupling(m, d, i, j))
        store(d.dual_A, n * i + i, coupling(m, d, i, i))


@kernel
def forces(m, d):
    """dual_f: forces of the rows in dual_on as if all of them pushed, and no others."""
    zero = lane(d, 0.0)
    n = m.ndual
    rows = d.count[NROW]
    for i in range(rows):
        on = load(d.dual_on, i) > 0.5
        for j in range(i):
            if d.dual_pair[n * i + j]:
                both = on & (load(d.dual_on, j) > 0.5)
                store(d.dual_G, n * i + j, select(both, load(d.dual_A, n * i + j), zero))
        R = 1.0 / select(on, load(d.row_D, i), 1.0)
        store(d.dual_G, n * i + i, select(on, load(d.dual_A, n * i + i) + R, 1.0))
        store(d.dual_f, i, select(on, -load(d.dual_x, i), zero))
    for k in range(rows):
        inv = 1.0 / load(d.dual_G, n * k + k)
        for i in range(k + 1, rows):
            if not d.dual_pair[n * i + k]:
                continue
            w = load(d.dual_G, n * i + k) * inv
            for j in range(k + 1, i + 1):
                if j == i or (d.dual_pair[n * j + k] and d.dual_pair[n * i + j]):
                    at = n * i + j
                    store(d.dual_G, at, load(d.dual_G, at) - w * load(d.dual_G, n * j + k))
            store(d.dual_f, i, load(d.dual_f, i) - w * load(d.dual_f, k))
    for i in range(rows - 1, -1, -1):
        f = load(d.dual_f, i)
        for j in range(i + 1, rows):
            if d.dual_pair[n * j + i]:
                f = f - load(d.dual_G, n * j + i) * load(d.dual_f, j)
        store(d.dual_f, i, f / load(d.dual_G, n * i + i))


@kernel
def revise(m, d):
    """Takes rows that would pull out of dual_on, and rows that are still violated in. Mask of lanes that changed."""
    zero = lane(d, 0.0)
    one = lane(d, 1.0)
    n = m.ndual
    rows = d.count[NROW]
    changed = not_(true_(d))
    for i in range(rows):
        x = load(d.dual_x, i)
        for j in range(rows):
            if j < i:
                if d.dual_pair[n * i + j]:
                    x = x + load(d.dual_A, n * i + j) * load(d.dual_f, j)
            elif j > i and d.dual_pair[n * j + i]:
                x = x + load(d.dual_A, n * j + i) * load(d.dual_f, j)
        on = load(d.dual_on, i) > 0.5
        has = load(d.dual_has, i) > 0.5
        new = (on & (load(d.dual_f, i) > 0.0)) | (has & not_(on) & (x < 0.0))
        changed = changed | (new & not_(on)) | (on & not_(new))
        store(d.dual_on, i, select(new, one, zero))
    return changed


@kernel
def apply_forces(m, d):
    """dual_qacc and dual_frc: the acceleration with the forces dual_f, and those forces at the dofs."""
    zero = lane(d, 0.0)
    for k in range(m.nv):
        store(d.dual_frc, k, zero)
        store(d.dual_qacc, k, zero)
    for i in range(d.count[NROW]):
        f = load(d.dual_f, i)
        for j in range(d.row_adr[i], d.row_adr[i] + d.row_num[i]):
            k = d.row_dof[j]
            store(d.dual_frc, k, load(d.dual_frc, k) + load(d.row_J, j) * f)
        dof = d.row_dof[d.row_adr[i] + d.row_num[i] - 1]
        chain = m.M_rowadr[dof]
        for c in range(m.M_rownnz[dof]):
            k = m.M_colind[chain + c]
            store(d.dual_qacc, k, load(d.dual_qacc, k) + load(d.dual_y, i * m.dual_chain + c) * f)
    for k in range(m.nv):
        u = m.M_rowadr[k]
        y = load(d.dual_qacc, k) * load(d.Dinv, k)
        for c in range(m.M_rownnz[k] - 1):
            y = y - load(d.L, u + c) * load(d.dual_qacc, m.M_colind[u + c])
        store(d.dual_qacc, k, y)
    for k in range(m.nv):
        store(d.dual_qacc, k, load(d.dual_qacc, k) + load(d.qacc_smooth, k))


@inline
def touching(d):
    """Lanes that have a contact with a row."""
    s = lane(d, 0.0)
    for k in range(d.count[NACTIVE]):
        s = s + load(d.con_D, d.con_list[k])
    return s > 0.0


@inline
def limited(d):
    """Lanes that have a joint at its limit."""
    s = lane(d, 0.0)
    for r in range(d.count[NROW]):
        s = s + load(d.row_D, r)
    return s > 0.0


@kernel
def solve_limits(m, d):
    """Solves the lanes that have limits and no contact, and sets dual_done there. Returns whether others have rows."""
    zero = lane(d, 0.0)
    one = lane(d, 1.0)
    contact = touching(d)
    limit = limited(d)
    wanted = limit & not_(contact)
    store(d.dual_done, 0, zero)
    store(d.dual_tries, 0, zero)
    if m.ndual == 0 or not any_(wanted):
        return True
    prepare(m, d, wanted)
    open_ = wanted
    n = 0
    while n < TRIES and any_(open_):
        forces(m, d)
        open_ = open_ & revise(m, d)
        n += 1
        store(d.dual_tries, 0, load(d.dual_tries, 0) + select(open_, one, zero))
    apply_forces(m, d)
    done = wanted & not_(open_)
    store(d.dual_done, 0, select(done, one, zero))
    return any_((contact | limit) & not_(done))


@kernel
def take_limits(m, d):
    """Puts what solve_limits has found into qacc, qfrc_constraint and solver_niter."""
    done = load(d.dual_done, 0) > 0.5
    if not any_(done):
        return
    for k in range(m.nv):
        store(d.qacc, k, select(done, load(d.dual_qacc, k), load(d.qacc, k)))
        store(d.qfrc_constraint, k, select(done, load(d.dual_frc, k), load(d.qfrc_constraint, k)))
    store(d.solver_niter, 0, select(done, load(d.dual_tries, 0) + 1.0, load(d.solver_niter, 0)))

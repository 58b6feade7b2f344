"""The mass matrix, its factor, and systems of equations with it (mj_makeM, mj_factorM, mj_solveM).

Row i of M holds the ancestors of dof i in ascending order, itself last. So the row of the ancestor at place n of row i
is as long as n + 1 and names the same ancestors. A dof and its parent are worked on together wherever they stand side
by side, and so are the rows of two ancestors: what is loaded once serves twice.
"""

from __future__ import annotations

from genesis_core.lanes import dot6, inert_mul, inline, kernel, load, load6, load10, param, store


@inline
def has_parent_before(m, i):
    """Whether dof i - 1 is the parent of dof i."""
    return i > 0 and m.M_rownnz[i] > 1 and m.M_colind[m.M_rowadr[i] + m.M_rownnz[i] - 2] == i - 1


@kernel
def composite_inertias(m, d):
    """crb: the inertia of every body with all that hangs on it."""
    for k in range(10 * m.nbody):
        store(d.crb, k, load(d.cinert, k))
    for b in range(m.nbody - 1, 0, -1):
        p = m.body_parentid[b]
        if p > 0:
            for k in range(10):
                store(d.crb, 10 * p + k, load(d.crb, 10 * p + k) + load(d.crb, 10 * b + k))


@inline
def momentum(m, d, i):
    """Of the subtree of dof i when it moves with velocity one: (angular, linear)."""
    return inert_mul(load10(d.crb, 10 * m.dof_bodyid[i]), load6(d.cdof, 6 * i))


@kernel
def two_rows(m, d, i):
    """Rows i - 1 and i of M, where the one is the other's parent."""
    f = momentum(m, d, i - 1)
    g = momentum(m, d, i)
    row = m.M_rowadr[i - 1]
    next_row = m.M_rowadr[i]
    number = m.M_rownnz[i - 1]
    lead = min(m.dof_lead[i], number - 1)
    if lead > 0:
        store(d.M, row, f[3])
        store(d.M, next_row, g[3])
    if lead > 1:
        store(d.M, row + 1, f[4])
        store(d.M, next_row + 1, g[4])
    if lead > 2:
        store(d.M, row + 2, f[5])
        store(d.M, next_row + 2, g[5])
    for n in range(lead, number):
        axis = load6(d.cdof, 6 * m.M_colind[row + n])
        store(d.M, row + n, dot6(axis, f))
        store(d.M, next_row + n, dot6(axis, g))
    at = row + number - 1
    store(d.M, at, load(d.M, at) + param(m.dof_armature, i - 1))
    store(d.M, next_row + number, dot6(load6(d.cdof, 6 * i), g) + param(m.dof_armature, i))


@kernel
def one_row(m, d, i):
    """Row i of M."""
    f = momentum(m, d, i)
    row = m.M_rowadr[i]
    number = m.M_rownnz[i]
    for n in range(number):
        store(d.M, row + n, dot6(load6(d.cdof, 6 * m.M_colind[row + n]), f))
    at = row + number - 1
    store(d.M, at, load(d.M, at) + param(m.dof_armature, i))


@kernel
def mass_matrix(m, d):
    """M: composite inertias of the subtrees, seen along the motion axes."""
    composite_inertias(m, d)
    i = m.nv - 1
    while i >= 0:
        if has_parent_before(m, i):
            two_rows(m, d, i)
            i -= 2
        else:
            one_row(m, d, i)
            i -= 1


@kernel
def eliminate(m, l, k, inv):
    """Takes dof k out of the rows of its ancestors."""
    start = m.M_rowadr[k]
    for n in range(m.M_rownnz[k] - 2, -1, -1):
        x = load(l, start + n) * inv
        row = m.M_rowadr[m.M_colind[start + n]]
        for c in range(n + 1):
            store(l, row + c, load(l, row + c) - x * load(l, start + c))
        store(l, start + n, x)


@kernel
def eliminate_two(m, l, k, inv, dinv):
    """Takes dof k and its parent k - 1 out together, of two rows at a time."""
    u = m.M_rowadr[k]
    v = m.M_rowadr[k - 1]
    n = m.M_rownnz[k - 1] - 1
    x = load(l, u + n) * inv
    for c in range(n + 1):
        store(l, v + c, load(l, v + c) - x * load(l, u + c))
    store(l, u + n, x)
    inv_v = 1.0 / load(l, v + n)
    store(dinv, k - 1, inv_v)
    n -= 1
    while n > 0:
        a = m.M_rowadr[m.M_colind[u + n]]
        b = m.M_rowadr[m.M_colind[u + n - 1]]
        ua = load(l, u + n)
        va = load(l, v + n)
        xa = ua * inv
        ya = va * inv_v
        xb = load(l, u + n - 1) * inv
        yb = load(l, v + n - 1) * inv_v
        for c in range(n):
            eu = load(l, u + c)
            ev = load(l, v + c)
            store(l, a + c, load(l, a + c) - xa * eu - ya * ev)
            store(l, b + c, load(l, b + c) - xb * eu - yb * ev)
        store(l, a + n, load(l, a + n) - xa * ua - ya * va)
        store(l, u + n, xa)
        store(l, v + n, ya)
        store(l, u + n - 1, xb)
        store(l, v + n - 1, yb)
        n -= 2
    if n == 0:
        a = m.M_rowadr[m.M_colind[u]]
        x = load(l, u) * inv
        y = load(l, v) * inv_v
        store(l, a, load(l, a) - x * load(l, u) - y * load(l, v))
        store(l, u, x)
        store(l, v, y)


@kernel
def factor(m, l, dinv):
    """L^T D L in place: `l` holds M's rows on entry, L's off-diagonals and D on return; `dinv` gets 1/D."""
    k = m.nv - 1
    while k >= 0:
        inv = 1.0 / load(l, m.M_rowadr[k] + m.M_rownnz[k] - 1)
        store(dinv, k, inv)
        if has_parent_before(m, k):
            eliminate_two(m, l, k, inv, dinv)
            k -= 2
        else:
            eliminate(m, l, k, inv)
            k -= 1


@kernel
def solve_transposed(m, l, x):
    """x becomes L^-T x."""
    k = m.nv - 1
    while k >= 0:
        u = m.M_rowadr[k]
        n = m.M_rownnz[k] - 1
        y = load(x, k)
        if has_parent_before(m, k):
            v = m.M_rowadr[k - 1]
            z = load(x, k - 1) - load(l, u + n - 1) * y
            store(x, k - 1, z)
            for c in range(n - 1):
                i = m.M_colind[u + c]
                store(x, i, load(x, i) - load(l, u + c) * y - load(l, v + c) * z)
            k -= 2
        else:
            for c in range(n):
                i = m.M_colind[u + c]
                store(x, i, load(x, i) - load(l, u + c) * y)
            k -= 1


@kernel
def solve(m, l, dinv, x):
    """x becomes (L^T D L)^-1 x."""
    solve_transposed(m, l, x)
    for k in range(m.nv):
        u = m.M_rowadr[k]
        y = load(x, k) * load(dinv, k)
        for c in range(m.M_rownnz[k] - 1):
            y = y - load(l, u + c) * load(x, m.M_colind[u + c])
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

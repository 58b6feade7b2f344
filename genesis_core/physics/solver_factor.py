"""The Hessian's pattern and its factorization, by panels of at most six dofs.

H = L^T D L, eliminated from the last panel to the first (leaves before roots), so that a mass matrix gets no fill.
The pattern is one for all lanes of the block and is found once per step, fill included. A lane that does not need a
block has zeros there, and zeros change no number: results do not depend on the other lanes. For the same reason every
entry is updated with fused multiply-adds in the order of the eliminated dofs, whatever tile it falls into.
"""

from __future__ import annotations

from genesis_core.lanes import any_, fma, inline, kernel, load, store
from genesis_core.lanes.segment import segment
from genesis_core.layout.fields_constraint import NFILL, NLINK, PANEL_BITS


# ------------------------------------------------------------------ pattern
@inline
def last_panel(m, b):
    """Panel of the last dof that moves mover b."""
    return m.dof_panel[m.mover_dofadr[b] + m.mover_dofnum[b] - 1]


@kernel
def couple(m, d, b1, b2):
    """Adds to the pattern the couplings of the panels that move b1 but not b2 with those that move b2 but not b1."""
    nw = m.npanelword
    p = last_panel(m, b1)
    q = last_panel(m, b2)
    n1 = 0
    n2 = 0
    while p != q:
        if p > q:
            d.panel_path[n1] = p
            n1 += 1
            p = m.panel_parent[p]
        else:
            d.panel_path[m.npanel + n2] = q
            n2 += 1
            q = m.panel_parent[q]
    for i in range(n1):
        for j in range(n2):
            a = d.panel_path[i]
            b = d.panel_path[m.npanel + j]
            hi = max(a, b)
            lo = min(a, b)
            w = hi * nw + lo // PANEL_BITS
            d.hess_mask[w] = d.hess_mask[w] | (1 << (lo % PANEL_BITS))


@kernel
def columns_of(m, d, k):
    """Lists the panels of row k's set in ascending order; returns the entries of the row's blocks."""
    n = 0
    cols = 0
    for w in range(m.npanelword):
        bits = d.hess_mask[k * m.npanelword + w]
        q = w * PANEL_BITS
        while bits != 0:
            while bits & 255 == 0:
                bits >>= 8
                q += 8
            while bits & 1 == 0:
                bits >>= 1
                q += 1
            d.hess_col[k * m.npanel + n] = q
            n += 1
            cols += m.panel_num[q]
            bits >>= 1
            q += 1
    d.hess_num[k] = n
    return cols * m.panel_num[k]


@segment("md")
def pattern(m, d):
    """The block's pattern of H with fill, and the address of every block."""
    np = m.npanel
    nw = m.npanelword
    for w in range(np * nw):
        d.hess_mask[w] = m.panel_mask[w]
    for k in range(d.count[NLINK]):
        if any_(load(d.link_D, k) > 0.0):
            couple(m, d, d.link_body1[k], d.link_body2[k])
    adr = 0
    for k in range(np - 1, -1, -1):
        columns_of(m, d, k)
        n = d.hess_num[k]
        if n > 1:  # eliminating k couples its columns: the highest takes them over, and hands them on in its turn
            top = d.hess_col[k * np + n - 1]
            for w in range(nw):
                d.hess_mask[top * nw + w] = d.hess_mask[top * nw + w] | d.hess_mask[k * nw + w]
            w = top * nw + top // PANEL_BITS
            d.hess_mask[w] = d.hess_mask[w] & ~(1 << (top % PANEL_BITS))
    for k in range(np):
        size = m.panel_num[k]
        for j in range(d.hess_num[k]):
            q = d.hess_col[k * np + j]
            d.hess_blk[k * np + q] = adr
            adr += size * m.panel_num[q]
        d.hess_blk[k * np + k] = adr
        adr += size * size
    d.count[NFILL] = adr


# ------------------------------------------------------------------ factorization
@inline
def tile33(d, c, nc, a, na, u, nu, n):
    """C -= A^T U for 3x3 entries: c, a, u address their first entries, nc, na, nu are the row lengths, n the depth."""
    H = d.hess
    U = d.hess_u
    c00 = load(H, c)
    c01 = load(H, c + 1)
    c02 = load(H, c + 2)
    c10 = load(H, c + nc)
    c11 = load(H, c + nc + 1)
    c12 = load(H, c + nc + 2)
    c20 = load(H, c + 2 * nc)
    c21 = load(H, c + 2 * nc + 1)
    c22 = load(H, c + 2 * nc + 2)
    for _ in range(n):
        u0 = load(U, u)
        u1 = load(U, u + 1)
        u2 = load(U, u + 2)
        x = -load(H, a)
        c00 = fma(x, u0, c00)
        c01 = fma(x, u1, c01)
        c02 = fma(x, u2, c02)
        x = -load(H, a + 1)
        c10 = fma(x, u0, c10)
        c11 = fma(x, u1, c11)
        c12 = fma(x, u2, c12)
        x = -load(H, a + 2)
        c20 = fma(x, u0, c20)
        c21 = fma(x, u1, c21)
        c22 = fma(x, u2, c22)
        a -= na
        u -= nu
    store(H, c, c00)
    store(H, c + 1, c01)
    store(H, c + 2, c02)
    store(H, c + nc, c10)
    store(H, c + nc + 1, c11)
    store(H, c + nc + 2, c12)
    store(H, c + 2 * nc, c20)
    store(H, c + 2 * nc + 1, c21)
    store(H, c + 2 * nc + 2, c22)


@inline
def tile11(d, c, a, na, u, nu, n):
    """As `tile33` for one entry."""
    s = load(d.hess, c)
    for _ in range(n):
        s = fma(-load(d.hess, a), load(d.hess_u, u), s)
        a -= na
        u -= nu
    store(d.hess, c, s)


@inline
def tile31(d, c, nc, a, na, u, nu, n):
    """As `tile33` for three rows of one column."""
    s0 = load(d.hess, c)
    s1 = load(d.hess, c + nc)
    s2 = load(d.hess, c + 2 * nc)
    for _ in range(n):
        x = -load(d.hess_u, u)
        s0 = fma(load(d.hess, a), x, s0)
        s1 = fma(load(d.hess, a + 1), x, s1)
        s2 = fma(load(d.hess, a + 2), x, s2)
        a -= na
        u -= nu
    store(d.hess, c, s0)
    store(d.hess, c + nc, s1)
    store(d.hess, c + 2 * nc, s2)


@inline
def tile13(d, c, a, na, u, nu, n):
    """As `tile33` for one row of three columns."""
    s0 = load(d.hess, c)
    s1 = load(d.hess, c + 1)
    s2 = load(d.hess, c + 2)
    for _ in range(n):
        x = -load(d.hess, a)
        s0 = fma(x, load(d.hess_u, u), s0)
        s1 = fma(x, load(d.hess_u, u + 1), s1)
        s2 = fma(x, load(d.hess_u, u + 2), s2)
        a -= na
        u -= nu
    store(d.hess, c, s0)
    store(d.hess, c + 1, s1)
    store(d.hess, c + 2, s2)


@kernel
def subtract_product(d, c, nc, a, na, u, nu, rows, n, diagonal):
    """Block c (rows x nc) -= A^T U over the n eliminated dofs, the last one first; of a diagonal block the lower part.

    A is the factor's block at a (n x na), U the copy at u (n x nu) of the rows before the division by D.
    """
    a += (n - 1) * na
    u += (n - 1) * nu
    i = 0
    while i + 2 < rows:
        end = i + 3 if diagonal else nc
        j = 0
        while j + 2 < end:
            tile33(d, c + i * nc + j, nc, a + i, na, u + j, nu, n)
            j += 3
        while j < end:
            tile31(d, c + i * nc + j, nc, a + i, na, u + j, nu, n)
            j += 1
        i += 3
    while i < rows:
        end = i + 1 if diagonal else nc
        j = 0
        while j + 2 < end:
            tile13(d, c + i * nc + j, a + i, na, u + j, nu, n)
            j += 3
        while j < end:
            tile11(d, c + i * nc + j, a + i, na, u + j, nu, n)
            j += 1
        i += 1


@kernel
def factor_diagonal(m, d, k):
    """L^T D L of the diagonal block of panel k in place: strictly lower part L, 1/D in hess_dinv."""
    n = m.panel_num[k]
    h = d.hess_blk[k * m.npanel + k]
    i0 = m.panel_dof[k]
    for a in range(n - 1, -1, -1):
        inv = 1.0 / load(d.hess, h + a * n + a)
        store(d.hess_dinv, i0 + a, inv)
        for i in range(a):
            x = -load(d.hess, h + a * n + i) * inv
            for j in range(i + 1):
                store(d.hess, h + i * n + j, fma(x, load(d.hess, h + a * n + j), load(d.hess, h + i * n + j)))
        for i in range(a):
            store(d.hess, h + a * n + i, load(d.hess, h + a * n + i) * inv)


@kernel
def factor_row(m, d, k, blk, cols, u):
    """Finishes a block of panel k's rows: the rows before the division by D go to hess_u, the factor stays."""
    n = m.panel_num[k]
    h = d.hess_blk[k * m.npanel + k]
    i0 = m.panel_dof[k]
    for a in range(n - 1, -1, -1):
        inv = load(d.hess_dinv, i0 + a)
        for c in range(cols):
            x = load(d.hess, blk + a * cols + c)
            for b in range(n - 1, a, -1):
                x = fma(-load(d.hess, h + b * n + a), load(d.hess_u, u + b * cols + c), x)
            store(d.hess_u, u + a * cols + c, x)
            store(d.hess, blk + a * cols + c, x * inv)


@segment("md")
def factor(m, d):
    """Factors H in place for the trees that are not finished."""
    np = m.npanel
    for k in range(np - 1, -1, -1):
        if d.tree_live[m.panel_tree[k]] == 0:
            continue
        n = m.panel_num[k]
        factor_diagonal(m, d, k)
        u = 0
        for x in range(d.hess_num[k]):
            q = d.hess_col[k * np + x]
            nq = m.panel_num[q]
            if d.tree_live[m.panel_tree[q]] == 1:
                factor_row(m, d, k, d.hess_blk[k * np + q], nq, u)
            u += n * nq
        for x in range(d.hess_num[k]):
            p = d.hess_col[k * np + x]
            if d.tree_live[m.panel_tree[p]] == 0:
                continue
            na = m.panel_num[p]
            a = d.hess_blk[k * np + p]
            u = 0
            for y in range(x + 1):
                q = d.hess_col[k * np + y]
                nq = m.panel_num[q]
                if d.tree_live[m.panel_tree[q]] == 1:
                    subtract_product(d, d.hess_blk[p * np + q], nq, a, na, u, nq, na, n, p == q)
                u += n * nq


@segment("mdl")
def backsolve(m, d, x):
    """x = H^-1 x for the trees that are not finished."""
    np = m.npanel
    for k in range(np - 1, -1, -1):
        if d.tree_live[m.panel_tree[k]] == 0:
            continue
        n = m.panel_num[k]
        i0 = m.panel_dof[k]
        h = d.hess_blk[k * np + k]
        for a in range(n - 1, 0, -1):
            xa = -load(x, i0 + a)
            for i in range(a):
                store(x, i0 + i, fma(load(d.hess, h + a * n + i), xa, load(x, i0 + i)))
        for y in range(d.hess_num[k]):
            q = d.hess_col[k * np + y]
            if d.tree_live[m.panel_tree[q]] == 0:
                continue
            nq = m.panel_num[q]
            j0 = m.panel_dof[q]
            h = d.hess_blk[k * np + q]
            for c in range(nq):
                s = load(x, j0 + c)
                for a in range(n - 1, -1, -1):
                    s = fma(-load(d.hess, h + a * nq + c), load(x, i0 + a), s)
                store(x, j0 + c, s)
    for k in range(np):
        if d.tree_live[m.panel_tree[k]] == 0:
            continue
        n = m.panel_num[k]
        i0 = m.panel_dof[k]
        for a in range(n):
            store(x, i0 + a, load(x, i0 + a) * load(d.hess_dinv, i0 + a))
        for y in range(d.hess_num[k]):
            q = d.hess_col[k * np + y]
            if d.tree_live[m.panel_tree[q]] == 0:
                continue
            nq = m.panel_num[q]
            j0 = m.panel_dof[q]
            h = d.hess_blk[k * np + q]
            for a in range(n):
                s = load(x, i0 + a)
                for c in range(nq):
                    s = fma(-load(d.hess, h + a * nq + c), load(x, j0 + c), s)
                store(x, i0 + a, s)
        h = d.hess_blk[k * np + k]
        for a in range(1, n):
            s = load(x, i0 + a)
            for i in range(a):
                s = fma(-load(d.hess, h + a * n + i), load(x, i0 + i), s)
            store(x, i0 + a, s)

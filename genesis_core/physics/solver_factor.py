"""The Hessian's pattern and its factorization, by panels of at most six dofs.

H = L^T D L, eliminated from the last panel to the first (leaves before roots), so that a mass matrix gets no fill.
The pattern is one for all lanes of the block and is found once per step, fill included. A lane that does not need a
block has zeros there, and zeros change no number: results do not depend on the other lanes. For the same reason every
entry is updated with fused multiply-adds in the order of the eliminated dofs, whatever tile it falls into.
"""

from __future__ import annotations

from genesis_core.lanes import any_, fma, inline, kernel, load, store
from genesis_core.lanes.segment import segment
from genesis_core.layout.fields_constraint import NFILL, NLINK, PANEL_BITS, PANEL_MAX

OUTER = PANEL_MAX * PANEL_MAX  # items of hess_u before this one are for the panel's own columns


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
def step33(H, U, a, u, c):
    """One eliminated dof of `tile33`: the nine entries c minus its products."""
    u0 = load(U, u)
    u1 = load(U, u + 1)
    u2 = load(U, u + 2)
    x = -load(H, a)
    y = -load(H, a + 1)
    z = -load(H, a + 2)
    return (
        fma(x, u0, c[0]),
        fma(x, u1, c[1]),
        fma(x, u2, c[2]),
        fma(y, u0, c[3]),
        fma(y, u1, c[4]),
        fma(y, u2, c[5]),
        fma(z, u0, c[6]),
        fma(z, u1, c[7]),
        fma(z, u2, c[8]),
    )


@inline
def tile33(d, c, nc, a, na, u, nu, n):
    """C -= A^T U for 3x3 entries: c, a, u address their first entries, nc, na, nu are the row lengths, n the depth."""
    H = d.hess
    U = d.hess_u
    t = (
        load(H, c),
        load(H, c + 1),
        load(H, c + 2),
        load(H, c + nc),
        load(H, c + nc + 1),
        load(H, c + nc + 2),
        load(H, c + 2 * nc),
        load(H, c + 2 * nc + 1),
        load(H, c + 2 * nc + 2),
    )
    while n > 2:
        t = step33(H, U, a, u, t)
        t = step33(H, U, a - na, u - nu, t)
        t = step33(H, U, a - 2 * na, u - 2 * nu, t)
        a -= 3 * na
        u -= 3 * nu
        n -= 3
    while n > 0:
        t = step33(H, U, a, u, t)
        a -= na
        u -= nu
        n -= 1
    store(H, c, t[0])
    store(H, c + 1, t[1])
    store(H, c + 2, t[2])
    store(H, c + nc, t[3])
    store(H, c + nc + 1, t[4])
    store(H, c + nc + 2, t[5])
    store(H, c + 2 * nc, t[6])
    store(H, c + 2 * nc + 1, t[7])
    store(H, c + 2 * nc + 2, t[8])


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


@inline
def factor3(d, h, n, i):
    """L^T D L of the 3x3 diagonal block at h (rows of length n) in registers; 1/D of its dofs to hess_dinv i .. i+2."""
    H = d.hess
    c = load(H, h + 2 * n + 2)
    x = load(H, h + 2 * n)
    y = load(H, h + 2 * n + 1)
    inv = 1.0 / c
    store(d.hess_dinv, i + 2, inv)
    lx = x * inv
    ly = y * inv
    store(H, h + 2 * n, lx)
    store(H, h + 2 * n + 1, ly)
    b = fma(-ly, y, load(H, h + n + 1))
    w = fma(-ly, x, load(H, h + n))
    a = fma(-lx, x, load(H, h))
    inv = 1.0 / b
    store(d.hess_dinv, i + 1, inv)
    lw = w * inv
    store(H, h + n, lw)
    store(d.hess_dinv, i, 1.0 / fma(-lw, w, a))


@inline
def factor_few(d, h, n, i, g):
    """As `factor3` for g = 1 or 2 dofs."""
    inv = 1.0 / load(d.hess, h + (g - 1) * (n + 1))
    store(d.hess_dinv, i + g - 1, inv)
    if g == 2:
        w = load(d.hess, h + n)
        lw = w * inv
        store(d.hess, h + n, lw)
        store(d.hess_dinv, i, 1.0 / fma(-lw, w, load(d.hess, h)))


@inline
def finish3(H, U, x, u, cols, l20, l21, l10, i0, i1, i2):
    """One column of `rows3`."""
    y = load(H, x + 2 * cols)
    v = fma(l21, y, load(H, x + cols))
    w = fma(l10, v, fma(l20, y, load(H, x)))
    store(U, u + 2 * cols, y)
    store(H, x + 2 * cols, y * i2)
    store(U, u + cols, v)
    store(H, x + cols, v * i1)
    store(U, u, w)
    store(H, x, w * i0)


@inline
def rows3(d, h, n, i, x, cols, u):
    """Finishes three rows of a block at x: eliminates the three dofs from each other, divides by D.

    h addresses their diagonal block (rows of length n), i is the first dof; u takes the rows before the division.
    """
    H = d.hess
    U = d.hess_u
    l20 = -load(H, h + 2 * n)
    l21 = -load(H, h + 2 * n + 1)
    l10 = -load(H, h + n)
    i0 = load(d.hess_dinv, i)
    i1 = load(d.hess_dinv, i + 1)
    i2 = load(d.hess_dinv, i + 2)
    c = 0
    while c + 2 < cols:
        for j in range(3):
            finish3(H, U, x + c + j, u + c + j, cols, l20, l21, l10, i0, i1, i2)
        c += 3
    while c < cols:
        finish3(H, U, x + c, u + c, cols, l20, l21, l10, i0, i1, i2)
        c += 1


@inline
def rows_few(d, h, n, i, g, x, cols, u):
    """As `rows3` for g = 1 or 2 dofs."""
    H = d.hess
    inv = load(d.hess_dinv, i + g - 1)
    for c in range((g - 1) * cols, g * cols):
        y = load(H, x + c)
        store(d.hess_u, u + c, y)
        store(H, x + c, y * inv)
    if g == 2:
        l10 = -load(H, h + n)
        inv = load(d.hess_dinv, i)
        for c in range(cols):
            y = fma(l10, load(d.hess_u, u + cols + c), load(H, x + c))
            store(d.hess_u, u + c, y)
            store(H, x + c, y * inv)


@kernel
def factor_panel(m, d, k):
    """Factors the diagonal block of panel k and finishes its rows, by groups of three dofs from the last one.

    hess_u gets the rows before the division by D, block after block from OUTER on.
    """
    np = m.npanel
    n = m.panel_num[k]
    h = d.hess_blk[k * np + k]
    first = m.panel_dof[k]
    end = n
    while end > 0:
        g = 3 if end % 3 == 0 else end % 3
        r = end - g
        diag = h + r * n + r
        if g == 3:
            factor3(d, diag, n, first + r)
        else:
            factor_few(d, diag, n, first + r, g)
        if r > 0:  # the rest of the panel's own columns; they are not contiguous
            factor_own(d, h, n, first, r, g)
        u = OUTER
        for x in range(d.hess_num[k]):
            q = d.hess_col[k * np + x]
            nq = m.panel_num[q]
            if d.tree_live[m.panel_tree[q]] == 1:
                blk = d.hess_blk[k * np + q]
                if g == 3:
                    rows3(d, diag, n, first + r, blk + r * nq, nq, u + r * nq)
                else:
                    rows_few(d, diag, n, first + r, g, blk + r * nq, nq, u + r * nq)
                if r > 0:
                    subtract_product(d, blk, nq, h + r * n, n, u + r * nq, nq, r, g, False)
            u += n * nq
        end = r


@inline
def factor_own(d, h, n, first, r, g):
    """Eliminates the dofs r .. r+g-1 of a panel from its dofs before r."""
    for j in range(g - 1, -1, -1):
        a = h + (r + j) * n
        inv = load(d.hess_dinv, first + r + j)
        for c in range(r):
            y = load(d.hess, a + c)
            for b in range(g - 1, j, -1):
                y = fma(-load(d.hess, h + (r + b) * n + r + j), load(d.hess_u, b * r + c), y)
            store(d.hess_u, j * r + c, y)
            store(d.hess, a + c, y * inv)
    subtract_product(d, h, n, h + r * n, n, 0, r, r, g, True)


@segment("md")
def factor(m, d):
    """Factors H in place for the trees that are not finished."""
    np = m.npanel
    for k in range(np - 1, -1, -1):
        if d.tree_live[m.panel_tree[k]] == 0:
            continue
        n = m.panel_num[k]
        factor_panel(m, d, k)
        for x in range(d.hess_num[k]):
            p = d.hess_col[k * np + x]
            if d.tree_live[m.panel_tree[p]] == 0:
                continue
            na = m.panel_num[p]
            a = d.hess_blk[k * np + p]
            u = OUTER
            for y in range(x + 1):
                q = d.hess_col[k * np + y]
                nq = m.panel_num[q]
                if d.tree_live[m.panel_tree[q]] == 1:
                    subtract_product(d, d.hess_blk[p * np + q], nq, a, na, u, nq, na, n, p == q)
                u += n * nq


@inline
def push_down(d, x, h, i0, n, j0, nq):
    """x of a panel of nq dofs at j0 minus L^T x of the n dofs at i0, the last one first; L is the block at h."""
    c = 0
    while c + 2 < nq:
        s0 = load(x, j0 + c)
        s1 = load(x, j0 + c + 1)
        s2 = load(x, j0 + c + 2)
        for a in range(n - 1, -1, -1):
            y = -load(x, i0 + a)
            s0 = fma(load(d.hess, h + a * nq + c), y, s0)
            s1 = fma(load(d.hess, h + a * nq + c + 1), y, s1)
            s2 = fma(load(d.hess, h + a * nq + c + 2), y, s2)
        store(x, j0 + c, s0)
        store(x, j0 + c + 1, s1)
        store(x, j0 + c + 2, s2)
        c += 3
    while c < nq:
        s = load(x, j0 + c)
        for a in range(n - 1, -1, -1):
            s = fma(load(d.hess, h + a * nq + c), -load(x, i0 + a), s)
        store(x, j0 + c, s)
        c += 1


@inline
def pull_up(d, x, h, i0, n, j0, nq):
    """x of the n dofs at i0 minus L x of a panel of nq dofs at j0; L is the block at h."""
    a = 0
    while a + 2 < n:
        s0 = load(x, i0 + a)
        s1 = load(x, i0 + a + 1)
        s2 = load(x, i0 + a + 2)
        for c in range(nq):
            y = -load(x, j0 + c)
            s0 = fma(load(d.hess, h + a * nq + c), y, s0)
            s1 = fma(load(d.hess, h + (a + 1) * nq + c), y, s1)
            s2 = fma(load(d.hess, h + (a + 2) * nq + c), y, s2)
        store(x, i0 + a, s0)
        store(x, i0 + a + 1, s1)
        store(x, i0 + a + 2, s2)
        a += 3
    while a < n:
        s = load(x, i0 + a)
        for c in range(nq):
            s = fma(load(d.hess, h + a * nq + c), -load(x, j0 + c), s)
        store(x, i0 + a, s)
        a += 1


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
            if d.tree_live[m.panel_tree[q]] == 1:
                push_down(d, x, d.hess_blk[k * np + q], i0, n, m.panel_dof[q], m.panel_num[q])
    for k in range(np):
        if d.tree_live[m.panel_tree[k]] == 0:
            continue
        n = m.panel_num[k]
        i0 = m.panel_dof[k]
        for a in range(n):
            store(x, i0 + a, load(x, i0 + a) * load(d.hess_dinv, i0 + a))
        for y in range(d.hess_num[k]):
            q = d.hess_col[k * np + y]
            if d.tree_live[m.panel_tree[q]] == 1:
                pull_up(d, x, d.hess_blk[k * np + q], i0, n, m.panel_dof[q], m.panel_num[q])
        h = d.hess_blk[k * np + k]
        for a in range(1, n):
            s = load(x, i0 + a)
            for i in range(a):
                s = fma(-load(d.hess, h + a * n + i), load(x, i0 + i), s)
            store(x, i0 + a, s)

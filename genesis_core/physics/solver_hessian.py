"""The Hessian H = M + J^T D J of the active rows, assembled without a Jacobian.

A contact's part of J^T D J is a 6x6 *contact inertia* about a centre of mass: w^T K w for the motion w of one body
against the other. With the world it joins the body's composite inertia and is projected on the dofs that carry the
body, like the mass matrix from composite rigid bodies. Between bodies it is collected per link. Links between trees
give each side its inertia and one coupling block; links within a tree are projected on the dofs between the two
bodies alone, so that nothing cancels on the dofs that carry both.
"""

from __future__ import annotations

from genesis_core.lanes import (
    add3,
    any_,
    cross,
    dot6,
    fma,
    inline,
    kernel,
    lane,
    load,
    load3,
    load6,
    scale3,
    scale6,
    select,
    store,
    store6,
    sub3,
)
from genesis_core.lanes.segment import segment
from genesis_core.layout.fields_constraint import (
    FORM_CROSS,
    FORM_ROW,
    FORM_TREE,
    FORM_WORLD,
    NACTIVE,
    NLINK,
    NROWLIVE,
    PANEL_BITS,
)
from genesis_core.physics.contact_inertia import add_to, point_inertia, shifted, times
from genesis_core.physics.solver_motion import fma3, unfinished


# ------------------------------------------------------------------ contacts
@inline
def row_weights(x, y, D):
    """D of the active rows x + y and x - y: their sum and their difference."""
    z = lane(D, 0.0)
    a = select(x + y < 0.0, D, z)
    b = select(x - y < 0.0, D, z)
    return a + b, a - b


@inline
def add_torsion(d, p, o, c, dim, n, r):
    """Adds the rows of spin and roll of contact c to the contact inertia at items o .. o+20; n is the normal."""
    D = load(d.con_D, c)
    x0 = load(d.con_x, 6 * c)
    m = cross(r, n)
    for j in range(3, dim):
        u = load3(d.con_turn, 9 * c + 3 * (j - 3))
        w, e = row_weights(x0, load(d.con_x, 6 * c + j), D)
        g = scale3(u, e)
        h = fma3(u, w, scale3(m, e))  # e (u m^T + m u^T) + w u u^T = g m^T + h u^T
        store(p, o, load(p, o) + (g[0] * m[0] + h[0] * u[0]))
        store(p, o + 1, load(p, o + 1) + (g[1] * m[0] + h[1] * u[0]))
        store(p, o + 2, load(p, o + 2) + (g[1] * m[1] + h[1] * u[1]))
        store(p, o + 3, load(p, o + 3) + (g[2] * m[0] + h[2] * u[0]))
        store(p, o + 4, load(p, o + 4) + (g[2] * m[1] + h[2] * u[1]))
        store(p, o + 5, load(p, o + 5) + (g[2] * m[2] + h[2] * u[2]))
        for i in range(3):
            gi = scale3(n, load(d.con_turn, 9 * c + 3 * (j - 3) + i) * e)
            store(p, o + 6 + 3 * i, load(p, o + 6 + 3 * i) + gi[0])
            store(p, o + 7 + 3 * i, load(p, o + 7 + 3 * i) + gi[1])
            store(p, o + 8 + 3 * i, load(p, o + 8 + 3 * i) + gi[2])


@inline
def add_contact(d, p, o, c, normal, w1, e1, w2, e2):
    """Adds contact c to the contact inertia at items o .. o+20.

    normal is the summed D of its active rows, w and e the sums and differences of the rows of each tangent.
    """
    n = load3(d.con_dir, 9 * c)
    r = load3(d.con_arm2, 3 * c)
    dim = d.con_dim[c]
    q = scale3(n, normal)
    x = scale3(n, q[0])
    y = scale3(n, q[1])
    z = scale3(n, q[2])
    if dim > 1:
        s = load3(d.con_dir, 9 * c + 3)
        t = load3(d.con_dir, 9 * c + 6)
        q = fma3(s, e1, fma3(t, e2, q))
        a = fma3(n, e1, scale3(s, w1))
        b = fma3(n, e2, scale3(t, w2))
        x = fma3(n, q[0], fma3(s, a[0], scale3(t, b[0])))
        y = fma3(n, q[1], fma3(s, a[1], scale3(t, b[1])))
        z = fma3(n, q[2], fma3(s, a[2], scale3(t, b[2])))
    add_to(p, o, point_inertia(x, y, z, r))
    if dim > 3:
        add_torsion(d, p, o, c, dim, n, r)


@kernel
def build_runs(m, d, b1, b2):
    """Lists the dofs that move b2 or b1 but not both as runs within panels, descending; returns how many runs."""
    i = m.mover_dofadr[b2] + m.mover_dofnum[b2] - 1
    j = m.mover_dofadr[b1] + m.mover_dofnum[b1] - 1
    n = 0
    panel = -1
    while i != j:
        sign = 1 if i > j else -1
        k = max(i, j)
        p = m.dof_panel[k]
        if p == panel and d.run_sign[n - 1] == sign:
            d.run_num[n - 1] += 1
        else:
            d.run_num[n] = 1
            d.run_sign[n] = sign
            n += 1
        d.run_dof[n - 1] = k
        panel = p
        if i > j:
            i = m.dof_parentid[i]
        else:
            j = m.dof_parentid[j]
    return n


@kernel
def add_sparse_row(m, d, c, n, D):
    """Adds D J J^T of a frictionless contact within a tree, over the dofs of n runs."""
    e = load3(d.con_dir, 9 * c)
    t = cross(load3(d.con_arm2, 3 * c), e)
    for k in range(n):
        s = lane(d, 1.0 * d.run_sign[k])
        w = (t[0] * s, t[1] * s, t[2] * s, e[0] * s, e[1] * s, e[2] * s)
        for i in range(d.run_dof[k], d.run_dof[k] + d.run_num[k]):
            store(d.dof_J, i, dot6(w, load6(d.cdof, 6 * i)))
    for k in range(n):
        i = d.run_dof[k]
        end = i + d.run_num[k]
        while i < end:
            sparse_rows(m, d, k, n, i, i + 1 < end, D)
            i += 2


@inline
def sparse_rows(m, d, k, n, i, two, D):
    """Rows i (and i + 1) of D J J^T, where run k holds them, over the runs k .. n-1."""
    p = m.dof_panel[i]
    f = D * load(d.dof_J, i)
    g = f
    if two:
        g = D * load(d.dof_J, i + 1)
    for l in range(k, n):
        j0 = d.run_dof[l]
        q = m.dof_panel[j0]
        nq = m.panel_num[q]
        a = d.hess_blk[p * m.npanel + q] + (i - m.panel_dof[p]) * nq - m.panel_dof[q]
        end = min(j0 + d.run_num[l], i + 1)
        if two:
            for j in range(j0, end):
                x = load(d.dof_J, j)
                store(d.hess, a + j, fma(f, x, load(d.hess, a + j)))
                store(d.hess, a + nq + j, fma(g, x, load(d.hess, a + nq + j)))
            if l == k:
                x = load(d.dof_J, i + 1)
                store(d.hess, a + nq + i + 1, fma(g, x, load(d.hess, a + nq + i + 1)))
        else:
            for j in range(j0, end):
                store(d.hess, a + j, fma(f, load(d.dof_J, j), load(d.hess, a + j)))


@inline
def active_weights(d, c, dim):
    """D of the active rows of contact c: their sum, and sum and difference of the rows of each tangent."""
    z = lane(d, 0.0)
    D = load(d.con_D, c)
    x0 = load(d.con_x, 6 * c)
    w1 = z
    w2 = z
    e1 = z
    e2 = z
    if dim == 1:
        normal = select(x0 < 0.0, D, z)
    else:
        w1, e1 = row_weights(x0, load(d.con_x, 6 * c + 1), D)
        w2, e2 = row_weights(x0, load(d.con_x, 6 * c + 2), D)
        normal = w1 + w2
        for j in range(3, dim):
            w, _ = row_weights(x0, load(d.con_x, 6 * c + j), D)
            normal = normal + w
    return normal, w1, e1, w2, e2


@kernel
def collect_contacts(m, d):
    """Contact inertias of the listed contacts, to mover_K and link_K; frictionless ones within a tree wait."""
    z = lane(d, 0.0)
    for k in range(d.count[NACTIVE]):
        c = d.con_list[k]
        form = d.con_form[c]
        if form == FORM_ROW:
            continue
        normal, w1, e1, w2, e2 = active_weights(d, c, d.con_dim[c])
        if not any_((normal > 0.0) & unfinished(d, d.con_tree[c])):
            continue
        if form == FORM_WORLD:
            add_contact(d, d.mover_K, 21 * d.con_body2[c], c, normal, w1, e1, w2, e2)
        else:
            slot = d.con_slot[c]
            if d.link_on[slot] == 0:
                d.link_on[slot] = 1
                for j in range(21):
                    store(d.link_K, 21 * slot + j, z)
            add_contact(d, d.link_K, 21 * slot, c, normal, w1, e1, w2, e2)


@kernel
def add_sparse_contacts(m, d):
    """The frictionless contacts within a tree, straight to H."""
    z = lane(d, 0.0)
    slot = -1
    n = 0
    for k in range(d.count[NACTIVE]):
        c = d.con_list[k]
        if d.con_form[c] != FORM_ROW:
            continue
        D = select(load(d.con_x, 6 * c) < 0.0, load(d.con_D, c), z)
        if not any_((D > 0.0) & unfinished(d, d.con_tree[c])):
            continue
        if d.con_slot[c] != slot:
            slot = d.con_slot[c]
            n = build_runs(m, d, d.con_body1[c], d.con_body2[c])
        add_sparse_row(m, d, c, n, D)


# ------------------------------------------------------------------ links
@inline
def dot_into(h, a, f, s):
    """Adds f . s to item a of h."""
    x = fma(f[0], s[0], load(h, a))
    x = fma(f[1], s[1], x)
    x = fma(f[2], s[2], x)
    x = fma(f[3], s[3], x)
    x = fma(f[4], s[4], x)
    store(h, a, fma(f[5], s[5], x))


@kernel
def add_tree_link(m, d, k):
    """Projects the contact inertia of a link within a tree on the dofs between its two sides."""
    n = build_runs(m, d, d.link_body1[k], d.link_body2[k])
    for r in range(n):
        p = m.dof_panel[d.run_dof[r]]
        for i in range(d.run_dof[r], d.run_dof[r] + d.run_num[r]):
            force = times(d.link_K, 21 * k, load6(d.cdof, 6 * i))
            for l in range(r, n):
                f = scale6(force, lane(d, 1.0 * d.run_sign[r] * d.run_sign[l]))
                j0 = d.run_dof[l]
                q = m.dof_panel[j0]
                a = d.hess_blk[p * m.npanel + q] + (i - m.panel_dof[p]) * m.panel_num[q] - m.panel_dof[q]
                for j in range(j0, min(j0 + d.run_num[l], i + 1)):
                    dot_into(d.hess, a + j, f, load6(d.cdof, 6 * j))


@inline
def between(m, d, k):
    """Centre of mass of side 2's tree from that of side 1's tree, of a link between trees."""
    a = load3(d.subtree_com, 3 * m.mover_root[d.link_body1[k]])
    b = load3(d.subtree_com, 3 * m.mover_root[d.link_body2[k]])
    return sub3(b, a)


@kernel
def add_product(m, d, k, rows, last_row, cols, last_col):
    """H -= S^T K T with the inertia of link k, for the dofs that carry last_row (motions S) and last_col (T)."""
    i = last_row
    while i >= 0:
        f = times(d.link_K, 21 * k, load6(rows, 6 * i))
        f = (-f[0], -f[1], -f[2], -f[3], -f[4], -f[5])
        up = m.dof_parentid[i]
        p = m.dof_panel[i]
        two = up >= 0 and m.dof_panel[up] == p
        g = f
        if two:
            g = times(d.link_K, 21 * k, load6(rows, 6 * up))
            g = (-g[0], -g[1], -g[2], -g[3], -g[4], -g[5])
        q = m.dof_panel[last_col]
        end = last_col - m.panel_dof[q] + 1
        while q >= 0:
            nq = m.panel_num[q]
            a = d.hess_blk[p * m.npanel + q] + (i - m.panel_dof[p]) * nq
            for j in range(end):
                s = load6(cols, 6 * (m.panel_dof[q] + j))
                dot_into(d.hess, a + j, f, s)
                if two:
                    dot_into(d.hess, a + j - nq, g, s)
            q = m.panel_parent[q]
            if q >= 0:
                end = m.panel_num[q]
        i = m.dof_parentid[up] if two else up


@kernel
def add_coupling(m, d, k):
    """The coupling block of a link between trees: -S1^T K S2, with side 1's motions taken about side 2's centre."""
    delta = between(m, d, k)
    b1 = d.link_body1[k]
    b2 = d.link_body2[k]
    last1 = m.mover_dofadr[b1] + m.mover_dofnum[b1] - 1
    last2 = m.mover_dofadr[b2] + m.mover_dofnum[b2] - 1
    i = last1
    while i >= 0:
        s = load6(d.cdof, 6 * i)
        v = add3((s[3], s[4], s[5]), cross((s[0], s[1], s[2]), delta))
        store6(d.dof_J, 6 * i, (s[0], s[1], s[2], v[0], v[1], v[2]))
        i = m.dof_parentid[i]
    if m.dof_panel[last1] > m.dof_panel[last2]:
        add_product(m, d, k, d.dof_J, last1, d.cdof, last2)
    else:
        add_product(m, d, k, d.cdof, last2, d.dof_J, last1)


@kernel
def share_links(m, d):
    """Gives the contact inertia of every link between trees to both of its sides."""
    for k in range(d.count[NLINK]):
        if d.link_on[k] == 1 and d.link_form[k] == FORM_CROSS:
            o = 21 * d.link_body2[k]
            for j in range(21):
                store(d.mover_K, o + j, load(d.mover_K, o + j) + load(d.link_K, 21 * k + j))
            add_to(d.mover_K, 21 * d.link_body1[k], shifted(d.link_K, 21 * k, between(m, d, k)))


@kernel
def add_links(m, d):
    """Links within a tree, and the coupling blocks of links between trees."""
    for k in range(d.count[NLINK]):
        if d.link_on[k] == 1:
            if d.link_form[k] == FORM_TREE:
                add_tree_link(m, d, k)
            else:
                add_coupling(m, d, k)


# ------------------------------------------------------------------ assembly
@kernel
def sum_inertias(m, d):
    """Sums contact inertias from the leaves to the roots."""
    for b in range(m.nmover - 1, -1, -1):
        p = m.mover_parent[b]
        if d.mover_on[b] == 1 and p >= 0:
            for j in range(21):
                store(d.mover_K, 21 * p + j, load(d.mover_K, 21 * p + j) + load(d.mover_K, 21 * b + j))


@inline
def carried_force(m, d, i):
    """Force of the contacts that dof i carries, per unit of its acceleration."""
    z = lane(d, 0.0)
    f = (z, z, z, z, z, z)
    b = m.dof_mover[i]
    if d.mover_on[b] == 1:
        f = times(d.mover_K, 21 * b, load6(d.cdof, 6 * i))
    return f


@inline
def carried_entry(mass, f, s):
    """mass + f . s"""
    x = fma(f[0], s[0], mass)
    x = fma(f[1], s[1], x)
    x = fma(f[2], s[2], x)
    x = fma(f[3], s[3], x)
    x = fma(f[4], s[4], x)
    return fma(f[5], s[5], x)


@kernel
def carried_row(m, d, k, i):
    """Row i of H over the panels that carry panel k: mass matrix and what the dof carries."""
    np = m.npanel
    f = carried_force(m, d, i)
    r = i - m.panel_dof[k]
    full = m.M_rownnz[i] == m.panel_depth[k] + r + 1
    mass = m.M_rowadr[i]
    z = lane(d, 0.0)
    q = k
    while q >= 0:
        nq = m.panel_num[q]
        o = 6 * m.panel_dof[q]
        h = d.hess_blk[k * np + q] + r * nq
        for j in range(min(nq, i + 1 - m.panel_dof[q])):
            x = load(d.M, mass + m.panel_depth[q] + j) if full else z
            store(d.hess, h + j, carried_entry(x, f, load6(d.cdof, o + 6 * j)))
        q = m.panel_parent[q]
    if not full:  # a row that is known to be diagonal lists the dof alone
        h = d.hess_blk[k * np + k] + r * m.panel_num[k] + r
        store(d.hess, h, load(d.hess, h) + load(d.M, mass))


@inline
def carried_pair(d, h, i, a, b, f, g, s):
    """Items h and i of H from items a and b of M and the forces f and g on the motion s."""
    store(d.hess, h, carried_entry(load(d.M, a), f, s))
    store(d.hess, i, carried_entry(load(d.M, b), g, s))


@kernel
def carried_rows(m, d, k, i):
    """Rows i and i + 1 of H over the panels that carry panel k, where the mass matrix lists all ancestors."""
    np = m.npanel
    f = carried_force(m, d, i)
    g = carried_force(m, d, i + 1)
    r = i - m.panel_dof[k]
    q = k
    while q >= 0:
        nq = m.panel_num[q]
        o = 6 * m.panel_dof[q]
        ma = m.M_rowadr[i] + m.panel_depth[q]
        mb = m.M_rowadr[i + 1] + m.panel_depth[q]
        h = d.hess_blk[k * np + q] + r * nq
        end = min(nq, i + 1 - m.panel_dof[q])
        j = 0
        while j + 2 < end:
            for c in range(j, j + 3):
                carried_pair(d, h + c, h + nq + c, ma + c, mb + c, f, g, load6(d.cdof, o + 6 * c))
            j += 3
        while j < end:
            carried_pair(d, h + j, h + nq + j, ma + j, mb + j, f, g, load6(d.cdof, o + 6 * j))
            j += 1
        q = m.panel_parent[q]
    h = d.hess_blk[k * np + k] + (r + 1) * m.panel_num[k] + r + 1
    x = load(d.M, m.M_rowadr[i + 1] + m.M_rownnz[i + 1] - 1)
    store(d.hess, h, carried_entry(x, g, load6(d.cdof, 6 * (i + 1))))


@kernel
def copied_row(m, d, k, i):
    """Row i of H over the panels that carry panel k, of a dof that carries no contact: the mass matrix."""
    np = m.npanel
    r = i - m.panel_dof[k]
    full = m.M_rownnz[i] == m.panel_depth[k] + r + 1
    mass = m.M_rowadr[i]
    z = lane(d, 0.0)
    q = k
    while q >= 0:
        nq = m.panel_num[q]
        h = d.hess_blk[k * np + q] + r * nq
        for j in range(min(nq, i + 1 - m.panel_dof[q])):
            store(d.hess, h + j, load(d.M, mass + m.panel_depth[q] + j) if full else z)
        q = m.panel_parent[q]
    if not full:
        store(d.hess, d.hess_blk[k * np + k] + r * m.panel_num[k] + r, load(d.M, mass))


@kernel
def carried_blocks(m, d):
    """H = M + composite contact inertias, and zero in the blocks that only links fill."""
    z = lane(d, 0.0)
    np = m.npanel
    for k in range(np):
        if d.tree_live[m.panel_tree[k]] == 0:
            continue
        n = m.panel_num[k]
        for x in range(d.hess_num[k]):
            q = d.hess_col[k * np + x]
            if (m.panel_mask[k * m.npanelword + q // PANEL_BITS] >> (q % PANEL_BITS)) & 1 == 0:
                a = d.hess_blk[k * np + q]
                for j in range(n * m.panel_num[q]):
                    store(d.hess, a + j, z)
        i = m.panel_dof[k]
        end = i + n
        full = m.M_rownnz[i] == m.panel_depth[k] + 1 and m.M_rownnz[end - 1] == m.panel_depth[k] + n
        while i < end:
            if d.mover_on[m.dof_mover[i]] == 0:
                copied_row(m, d, k, i)
                i += 1
            elif full and i + 1 < end:
                carried_rows(m, d, k, i)
                i += 2
            else:
                carried_row(m, d, k, i)
                i += 1


@inline
def entry(m, d, i, j):
    """Address of H[i, j]; the panel of i is not below the panel of j."""
    p = m.dof_panel[i]
    q = m.dof_panel[j]
    return d.hess_blk[p * m.npanel + q] + (i - m.panel_dof[p]) * m.panel_num[q] + j - m.panel_dof[q]


@kernel
def add_rows(m, d):
    """The active scalar rows."""
    z = lane(d, 0.0)
    for x in range(d.count[NROWLIVE]):
        r = d.row_list[x]
        D = select(load(d.row_x, r) < 0.0, load(d.row_D, r), z)
        if not any_((D > 0.0) & unfinished(d, d.row_tree[r])):
            continue
        a = d.row_adr[r]
        for k in range(d.row_num[r]):
            i = d.row_dof[a + k]
            f = D * load(d.row_J, a + k)
            for l in range(k + 1):
                e = entry(m, d, i, d.row_dof[a + l])
                store(d.hess, e, fma(f, load(d.row_J, a + l), load(d.hess, e)))


@segment("md")
def assemble(m, d):
    """H = M + J^T D J over the rows that are active in an unfinished lane."""
    z = lane(d, 0.0)
    for b in range(m.nmover):
        if d.mover_on[b] == 1:
            for j in range(21):
                store(d.mover_K, 21 * b + j, z)
    for k in range(d.count[NLINK]):
        d.link_on[k] = 0
    collect_contacts(m, d)
    share_links(m, d)
    sum_inertias(m, d)
    carried_blocks(m, d)
    add_rows(m, d)
    add_sparse_contacts(m, d)
    add_links(m, d)

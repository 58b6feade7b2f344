"""6x6 contact inertias: what the contacts of a body or a link resist, as 21 numbers about a centre of mass.

Stored are 0-5 the lower triangle of the angular block (00 10 11 20 21 22), 6-14 the angular-linear block row by row,
15-20 the lower triangle of the linear block.
"""

from __future__ import annotations

from genesis_core.lanes import add3, cross, fma, inline, load, load3, store


@inline
def add_to(p, o, k):
    """Adds the 21 numbers of a contact inertia to items o .. o+20."""
    store(p, o, load(p, o) + k[0])
    store(p, o + 1, load(p, o + 1) + k[1])
    store(p, o + 2, load(p, o + 2) + k[2])
    store(p, o + 3, load(p, o + 3) + k[3])
    store(p, o + 4, load(p, o + 4) + k[4])
    store(p, o + 5, load(p, o + 5) + k[5])
    store(p, o + 6, load(p, o + 6) + k[6])
    store(p, o + 7, load(p, o + 7) + k[7])
    store(p, o + 8, load(p, o + 8) + k[8])
    store(p, o + 9, load(p, o + 9) + k[9])
    store(p, o + 10, load(p, o + 10) + k[10])
    store(p, o + 11, load(p, o + 11) + k[11])
    store(p, o + 12, load(p, o + 12) + k[12])
    store(p, o + 13, load(p, o + 13) + k[13])
    store(p, o + 14, load(p, o + 14) + k[14])
    store(p, o + 15, load(p, o + 15) + k[15])
    store(p, o + 16, load(p, o + 16) + k[16])
    store(p, o + 17, load(p, o + 17) + k[17])
    store(p, o + 18, load(p, o + 18) + k[18])
    store(p, o + 19, load(p, o + 19) + k[19])
    store(p, o + 20, load(p, o + 20) + k[20])


@inline
def times(p, o, s):
    """Contact inertia at items o .. o+20 times a motion: the force."""
    a = load(p, o + 1)
    b = load(p, o + 3)
    c = load(p, o + 4)
    t0 = load(p, o) * s[0]
    t0 = fma(a, s[1], t0)
    t0 = fma(b, s[2], t0)
    t1 = a * s[0]
    t1 = fma(load(p, o + 2), s[1], t1)
    t1 = fma(c, s[2], t1)
    t2 = b * s[0]
    t2 = fma(c, s[1], t2)
    t2 = fma(load(p, o + 5), s[2], t2)
    a = load(p, o + 16)
    b = load(p, o + 18)
    c = load(p, o + 19)
    f0 = load(p, o + 15) * s[3]
    f0 = fma(a, s[4], f0)
    f0 = fma(b, s[5], f0)
    f1 = a * s[3]
    f1 = fma(load(p, o + 17), s[4], f1)
    f1 = fma(c, s[5], f1)
    f2 = b * s[3]
    f2 = fma(c, s[4], f2)
    f2 = fma(load(p, o + 20), s[5], f2)
    k = load3(p, o + 6)
    t0 = fma(k[0], s[3], fma(k[1], s[4], fma(k[2], s[5], t0)))
    f0 = fma(k[0], s[0], f0)
    f1 = fma(k[1], s[0], f1)
    f2 = fma(k[2], s[0], f2)
    k = load3(p, o + 9)
    t1 = fma(k[0], s[3], fma(k[1], s[4], fma(k[2], s[5], t1)))
    f0 = fma(k[0], s[1], f0)
    f1 = fma(k[1], s[1], f1)
    f2 = fma(k[2], s[1], f2)
    k = load3(p, o + 12)
    t2 = fma(k[0], s[3], fma(k[1], s[4], fma(k[2], s[5], t2)))
    f0 = fma(k[0], s[2], f0)
    f1 = fma(k[1], s[2], f1)
    f2 = fma(k[2], s[2], f2)
    return t0, t1, t2, f0, f1, f2


@inline
def point_inertia(x, y, z, r):
    """Contact inertia of a symmetric point stiffness with the columns x, y, z, for motions about the point -r away."""
    a = cross(r, x)
    b = cross(r, y)
    c = cross(r, z)
    g = cross(r, (a[0], b[0], c[0]))
    h = cross(r, (a[1], b[1], c[1]))
    i = cross(r, (a[2], b[2], c[2]))
    return (
        g[0], h[0], h[1], i[0], i[1], i[2],
        a[0], b[0], c[0], a[1], b[1], c[1], a[2], b[2], c[2],
        x[0], x[1], y[1], x[2], y[2], z[2],
    )  # fmt: skip


@inline
def shifted(p, o, s):
    """Contact inertia at items o .. o+20 for motions about a point -s away from the present one."""
    x = load(p, o + 16)
    y = load(p, o + 18)
    z = load(p, o + 19)
    x = (load(p, o + 15), x, y)
    y = (x[1], load(p, o + 17), z)
    z = (x[2], z, load(p, o + 20))
    # angular-linear block B = A + [s] L; angular block K + [s] A^T + B [s]^T
    a = (load(p, o + 6), load(p, o + 9), load(p, o + 12))
    b = (load(p, o + 7), load(p, o + 10), load(p, o + 13))
    c = (load(p, o + 8), load(p, o + 11), load(p, o + 14))
    u = cross(s, (a[0], b[0], c[0]))
    v = cross(s, (a[1], b[1], c[1]))
    w = cross(s, (a[2], b[2], c[2]))
    a = add3(a, cross(s, x))
    b = add3(b, cross(s, y))
    c = add3(c, cross(s, z))
    g = cross(s, (a[0], b[0], c[0]))
    h = cross(s, (a[1], b[1], c[1]))
    i = cross(s, (a[2], b[2], c[2]))
    return (
        load(p, o) + u[0] + g[0],
        load(p, o + 1) + u[1] + h[0],
        load(p, o + 2) + v[1] + h[1],
        load(p, o + 3) + u[2] + i[0],
        load(p, o + 4) + v[2] + i[1],
        load(p, o + 5) + w[2] + i[2],
        a[0], b[0], c[0], a[1], b[1], c[1], a[2], b[2], c[2],
        x[0], x[1], y[1], x[2], y[2], z[2],
    )  # fmt: skip

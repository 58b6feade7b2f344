"""Vectors of three and 3x3 matrices: tuples of lanes (or of plain numbers), matrices row by row."""

from __future__ import annotations

from genesis_core.lanes.compile import inline
from genesis_core.lanes.ops import load, maximum, param, select, sqrt, store, tiny


@inline
def load3(p, i):
    """Items i, i+1, i+2 of a lane array."""
    return load(p, i), load(p, i + 1), load(p, i + 2)


@inline
def store3(p, i, x):
    """Writes three lanes to items i, i+1, i+2."""
    store(p, i, x[0])
    store(p, i + 1, x[1])
    store(p, i + 2, x[2])


@inline
def load9(p, i):
    """Nine items: a 3x3 matrix, row by row."""
    return (
        load(p, i),
        load(p, i + 1),
        load(p, i + 2),
        load(p, i + 3),
        load(p, i + 4),
        load(p, i + 5),
        load(p, i + 6),
        load(p, i + 7),
        load(p, i + 8),
    )


@inline
def store9(p, i, x):
    """Writes a 3x3 matrix, row by row."""
    store3(p, i, (x[0], x[1], x[2]))
    store3(p, i + 3, (x[3], x[4], x[5]))
    store3(p, i + 6, (x[6], x[7], x[8]))


@inline
def param3(p, i):
    """Vector i of a model array with three columns, in every lane."""
    return param(p, 3 * i), param(p, 3 * i + 1), param(p, 3 * i + 2)


@inline
def add3(a, b):
    """a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@inline
def sub3(a, b):
    """a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


@inline
def scale3(a, s):
    """a * s."""
    return a[0] * s, a[1] * s, a[2] * s


@inline
def add_scaled3(a, b, s):
    """a + b * s."""
    return a[0] + b[0] * s, a[1] + b[1] * s, a[2] + b[2] * s


@inline
def neg3(a):
    """-a."""
    return -a[0], -a[1], -a[2]


@inline
def dot3(a, b):
    """Scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inline
def cross(a, b):
    """Vector product."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@inline
def norm3(a):
    """Length."""
    return sqrt(dot3(a, a))


@inline
def normalize3(a):
    """(a / |a|, |a|) of lanes; the direction is finite for a zero vector."""
    n = norm3(a)
    s = 1.0 / maximum(n, tiny(n))
    return scale3(a, s), n


@inline
def select3(m, a, b):
    """a where the mask holds, b elsewhere."""
    return select(m, a[0], b[0]), select(m, a[1], b[1]), select(m, a[2], b[2])


@inline
def mat_vec(m, v):
    """Matrix times vector."""
    return (
        m[0] * v[0] + m[1] * v[1] + m[2] * v[2],
        m[3] * v[0] + m[4] * v[1] + m[5] * v[2],
        m[6] * v[0] + m[7] * v[1] + m[8] * v[2],
    )


@inline
def matT_vec(m, v):
    """Transposed matrix times vector."""
    return (
        m[0] * v[0] + m[3] * v[1] + m[6] * v[2],
        m[1] * v[0] + m[4] * v[1] + m[7] * v[2],
        m[2] * v[0] + m[5] * v[1] + m[8] * v[2],
    )


@inline
def mat_mul(a, b):
    """Matrix product a b."""
    return (
        a[0] * b[0] + a[1] * b[3] + a[2] * b[6],
        a[0] * b[1] + a[1] * b[4] + a[2] * b[7],
        a[0] * b[2] + a[1] * b[5] + a[2] * b[8],
        a[3] * b[0] + a[4] * b[3] + a[5] * b[6],
        a[3] * b[1] + a[4] * b[4] + a[5] * b[7],
        a[3] * b[2] + a[4] * b[5] + a[5] * b[8],
        a[6] * b[0] + a[7] * b[3] + a[8] * b[6],
        a[6] * b[1] + a[7] * b[4] + a[8] * b[7],
        a[6] * b[2] + a[7] * b[5] + a[8] * b[8],
    )


@inline
def matT_mul(a, b):
    """Matrix product a^T b."""
    return mat_mul((a[0], a[3], a[6], a[1], a[4], a[7], a[2], a[5], a[8]), b)


@inline
def column(m, k):
    """Column k (0, 1, 2) of a matrix."""
    if k == 0:
        return m[0], m[3], m[6]
    if k == 1:
        return m[1], m[4], m[7]
    return m[2], m[5], m[8]

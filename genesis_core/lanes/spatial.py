"""Spatial vectors: (angular, linear) motion and (torque, force) about one point; MuJoCo's conventions and order."""

from __future__ import annotations

from genesis_core.lanes.compile import inline
from genesis_core.lanes.ops import load, store
from genesis_core.lanes.vec import add3, cross


@inline
def load6(p, i):
    """Items i .. i+5 of a lane array."""
    return load(p, i), load(p, i + 1), load(p, i + 2), load(p, i + 3), load(p, i + 4), load(p, i + 5)


@inline
def store6(p, i, x):
    """Writes six lanes to items i .. i+5."""
    store(p, i, x[0])
    store(p, i + 1, x[1])
    store(p, i + 2, x[2])
    store(p, i + 3, x[3])
    store(p, i + 4, x[4])
    store(p, i + 5, x[5])


@inline
def load10(p, i):
    """Ten items: a spatial inertia."""
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
        load(p, i + 9),
    )


@inline
def store10(p, i, x):
    """Writes a spatial inertia."""
    store6(p, i, (x[0], x[1], x[2], x[3], x[4], x[5]))
    store(p, i + 6, x[6])
    store(p, i + 7, x[7])
    store(p, i + 8, x[8])
    store(p, i + 9, x[9])


@inline
def add6(a, b):
    """a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5]


@inline
def sub6(a, b):
    """a - b."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3], a[4] - b[4], a[5] - b[5]


@inline
def scale6(a, s):
    """a * s."""
    return a[0] * s, a[1] * s, a[2] * s, a[3] * s, a[4] * s, a[5] * s


@inline
def add_scaled6(a, b, s):
    """a + b * s."""
    return (
        a[0] + b[0] * s,
        a[1] + b[1] * s,
        a[2] + b[2] * s,
        a[3] + b[3] * s,
        a[4] + b[4] * s,
        a[5] + b[5] * s,
    )


@inline
def dot6(a, b):
    """Power of a force on a motion."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4] + a[5] * b[5]


@inline
def cross_motion(v, s):
    """Rate of change of a motion s that moves along with v."""
    w, l = (v[0], v[1], v[2]), (v[3], v[4], v[5])
    sw, sl = (s[0], s[1], s[2]), (s[3], s[4], s[5])
    a = cross(w, sw)
    b = add3(cross(w, sl), cross(l, sw))
    return a[0], a[1], a[2], b[0], b[1], b[2]


@inline
def cross_force(v, f):
    """Rate of change of a force f that moves along with v."""
    w, l = (v[0], v[1], v[2]), (v[3], v[4], v[5])
    t, p = (f[0], f[1], f[2]), (f[3], f[4], f[5])
    a = add3(cross(w, t), cross(l, p))
    b = cross(w, p)
    return a[0], a[1], a[2], b[0], b[1], b[2]


@inline
def inert_mul(i, v):
    """Spatial inertia (Ixx Iyy Izz Ixy Ixz Iyz, m*c, m) times motion: momentum."""
    w, l, c = (v[0], v[1], v[2]), (v[3], v[4], v[5]), (i[6], i[7], i[8])
    a = cross(c, l)
    b = cross(c, w)
    return (
        i[0] * w[0] + i[3] * w[1] + i[4] * w[2] + a[0],
        i[3] * w[0] + i[1] * w[1] + i[5] * w[2] + a[1],
        i[4] * w[0] + i[5] * w[1] + i[2] * w[2] + a[2],
        i[9] * l[0] - b[0],
        i[9] * l[1] - b[1],
        i[9] * l[2] - b[2],
    )

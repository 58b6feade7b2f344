"""Unit quaternions w-x-y-z as tuples of four lanes (or plain numbers); Hamilton product, as MuJoCo."""

from __future__ import annotations

from genesis_core.lanes.compile import inline
from genesis_core.lanes.functions import atan2, sincos
from genesis_core.lanes.ops import lane, load, maximum, param, select, sqrt, store, tiny
from genesis_core.lanes.vec import add3, cross, norm3, scale3


@inline
def load4(p, i):
    """Items i .. i+3 of a lane array."""
    return load(p, i), load(p, i + 1), load(p, i + 2), load(p, i + 3)


@inline
def store4(p, i, x):
    """Writes four lanes to items i .. i+3."""
    store(p, i, x[0])
    store(p, i + 1, x[1])
    store(p, i + 2, x[2])
    store(p, i + 3, x[3])


@inline
def param4(p, i):
    """Row i of a model array with four columns, in every lane."""
    return param(p, 4 * i), param(p, 4 * i + 1), param(p, 4 * i + 2), param(p, 4 * i + 3)


@inline
def quat_mul(a, b):
    """Rotation b, then a."""
    return (
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    )


@inline
def quat_conj(q):
    """The inverse rotation."""
    return q[0], -q[1], -q[2], -q[3]


@inline
def quat_rotate(q, v):
    """The vector v rotated by q."""
    u = (q[1], q[2], q[3])
    t = scale3(cross(u, v), 2.0)
    return add3(add3(v, scale3(t, q[0])), cross(u, t))


@inline
def quat_normalize(q):
    """q / |q| of lanes; the identity where q is zero, q itself where it already has length one (as MuJoCo)."""
    n = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    s = 1.0 / maximum(n, tiny(n))
    zero = lane(n, 0.0)
    dead = n < 1e-15
    return (
        select(dead, lane(n, 1.0), q[0] * s),
        select(dead, zero, q[1] * s),
        select(dead, zero, q[2] * s),
        select(dead, zero, q[3] * s),
    )


@inline
def quat_renormalize(q):
    """q with the rounding errors of its length removed, for a q that is a product of unit quaternions.

    One step of Newton's iteration for 1/|q|: no square root, no division, and exact to the square of the error.
    """
    s = 1.5 - 0.5 * (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    return q[0] * s, q[1] * s, q[2] * s, q[3] * s


@inline
def quat_column(q, k):
    """Column k of the rotation matrix: where axis k goes."""
    w, x, y, z = q
    if k == 0:
        return 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y)
    if k == 1:
        return 2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x)
    return 2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)


@inline
def quat_turn(q, k, c, s):
    """q times the rotation about axis k with cosine c and sine s of half the angle."""
    w, x, y, z = q
    if k == 0:
        return w * c - x * s, x * c + w * s, y * c + z * s, z * c - y * s
    if k == 1:
        return w * c - y * s, x * c - z * s, y * c + w * s, z * c + x * s
    return w * c - z * s, x * c + y * s, y * c - x * s, z * c + w * s


@inline
def quat_to_mat(q):
    """3x3 rotation matrix, row by row."""
    w, x, y, z = q
    ww = w * w
    xx = x * x
    yy = y * y
    zz = z * z
    return (
        ww + xx - yy - zz,
        2.0 * (x * y - w * z),
        2.0 * (x * z + w * y),
        2.0 * (x * y + w * z),
        ww - xx + yy - zz,
        2.0 * (y * z - w * x),
        2.0 * (x * z - w * y),
        2.0 * (y * z + w * x),
        ww - xx - yy + zz,
    )


@inline
def quat_integrate(q, w, h):
    """q turned by the angular velocity w (in the frame of q) for the time h."""
    n = norm3(w)
    s, c = sincos(n * h * 0.5)
    k = s / maximum(n, tiny(n))
    return quat_normalize(quat_mul(q, (c, w[0] * k, w[1] * k, w[2] * k)))


@inline
def quat_to_vel(q):
    """Rotation vector (axis times angle in -pi .. pi) of q."""
    v = (q[1], q[2], q[3])
    n = norm3(v)
    angle = 2.0 * atan2(n, q[0])
    angle = select(angle > 3.141592653589793, angle - 6.283185307179586, angle)
    return scale3(v, angle / maximum(n, tiny(n)))


@inline
def quat_difference(qa, qb):
    """The rotation vector that takes qb to qa, in the frame of qb."""
    return quat_to_vel(quat_mul(quat_conj(qb), qa))

"""What the collision functions share: reading geoms, contact frames, writing contacts.

A collision function takes the pair and the first free slot of the contact list and returns how many slots it used: the
most contacts that any lane has. Contact k of a lane always goes to slot k, so lanes share slots and every lane sees its
contacts in MuJoCo's order. Slots beyond a lane's own contacts are inactive there and hold finite values.
"""

from genesis_core.lanes import (
    add_scaled3,
    cross,
    dot3,
    fabs,
    inline,
    lane,
    load,
    maximum,
    norm3,
    param,
    scale3,
    select,
    select3,
    store,
    store3,
    sub3,
    tiny,
)

MINVAL = 1e-15  # mjMINVAL


@inline
def axis_z(d, g):
    """z axis of a geom in the world: normal of a plane, axis of a capsule or cylinder."""
    return load(d.geom_xmat, 9 * g + 2), load(d.geom_xmat, 9 * g + 5), load(d.geom_xmat, 9 * g + 8)


@inline
def size_of(m, g, k):
    """Size parameter k of a geom."""
    return param(m.geom_size, 3 * g + k)


@inline
def noise_of(d):
    """Length below which the part of a unit vector across another one is rounding: mjMINVAL (f64), 1e-6 (f32)."""
    return select(tiny(d) < 1e-100, lane(d, MINVAL), lane(d, 1e-6))


@inline
def unit3(v, n):
    """v / n for the length n of v, (1, 0, 0) where v has no length: mju_normalize3."""
    short = n < MINVAL
    return select3(short, (lane(n, 1.0), lane(n, 0.0), lane(n, 0.0)), scale3(v, 1.0 / select(short, 1.0, n)))


@inline
def clip(x, low, high):
    """x limited to low .. high."""
    y = select(x > high, high, x)
    return select(x < low, low, y)


@inline
def frame_of(n):
    """(normal, tangent, tangent) for a unit normal: mju_makeFrame without a preferred tangent."""
    flat = fabs(n[1]) < 0.5
    # y = e - n (n . e) with e = (0, 1, 0) for a flat normal, else (0, 0, 1)
    ne = select(flat, n[1], n[2])
    y = (-n[0] * ne, select(flat, 1.0, 0.0) - n[1] * ne, select(flat, 0.0, 1.0) - n[2] * ne)
    y = scale3(y, 1.0 / norm3(y))
    return n, y, cross(n, y)


@inline
def frame_along(n, axis, noise):
    """As `frame_of`, the first tangent along `axis`, or along world x where the axis is the normal (within `noise`)."""
    y = sub3(axis, scale3(n, dot3(n, axis)))
    length = norm3(y)
    upright = length < noise
    y = scale3(y, 1.0 / select(upright, 1.0, length))
    # the fallback stays orthogonal to the normal; world x is no choice where that is the normal itself
    turned = fabs(n[0]) > 0.9
    one, zero = lane(length, 1.0), lane(length, 0.0)
    x = (select(turned, zero, one), select(turned, one, zero), zero)
    x = add_scaled3(x, n, -dot3(n, x))
    x = scale3(x, 1.0 / maximum(norm3(x), 0.1))
    y = select3(upright, x, y)
    return n, y, cross(n, y)


@inline
def put_contact(m, d, p, c, active, dist, pos, frame):
    """Writes contact c of pair p for the lanes where `active` holds; the others get zeros and the (finite) frame."""
    d.con_pair[c] = p
    d.con_geom1[c] = m.pair_geom1[p]
    d.con_geom2[c] = m.pair_geom2[p]
    zero = lane(d, 0.0)
    store(d.con_active, c, select(active, 1.0, zero))
    store(d.con_dist, c, select(active, dist, zero))
    store3(d.con_pos, 3 * c, select3(active, pos, (zero, zero, zero)))
    store3(d.con_frame, 9 * c, frame[0])
    store3(d.con_frame, 9 * c + 3, frame[1])
    store3(d.con_frame, 9 * c + 6, frame[2])

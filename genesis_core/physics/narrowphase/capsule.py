"""Contacts of two capsules: one, or two where their axes are parallel within 1e-4 rad.

After MuJoCo 4.0.0's `mjraw_CapsuleCapsule` and `mjc_segWeights`: nearest points of the two segments; parallel segments
give a pair of points for each end of the first.
"""

from genesis_core.lanes import (
    add_scaled3,
    any_,
    cross,
    dot3,
    inline,
    lane,
    load3,
    not_,
    param,
    scale3,
    select,
    select3,
    sub3,
)
from genesis_core.physics.narrowphase.common import MINVAL, axis_z, clip, frame_of, put_contact, size_of
from genesis_core.physics.narrowphase.sphere import two_spheres

PARALLEL = 1e-8  # square of the sine of the angle below which the axes count as parallel


@inline
def _slide(s, t, at_start, at_end):
    """The parameters (s, t) with t limited to the second segment, s solved again where that moved it."""
    low, high = t < 0.0, t > 1.0
    s = select(low, clip(at_start, 0.0, 1.0), select(high, clip(at_end, 0.0, 1.0), s))
    return s, select(low, 0.0, select(high, 1.0, t))


@inline
def nearest_points(start1, dif1, start2, dif2):
    """Nearest points of the segments start + [0, 1] dif: (parallel, s, t, s', t').

    Lanes whose segments are parallel have two pairs of points, (s, t) and (s', t'), the others one.
    """
    r = sub3(start1, start2)
    aa, ee, ab = dot3(dif1, dif1), dot3(dif2, dif2), dot3(dif1, dif2)
    f, c = dot3(dif2, r), dot3(dif1, r)
    point1, point2 = aa <= MINVAL, ee <= MINVAL  # capsules without length
    inverse_a, inverse_e = 1.0 / select(point1, 1.0, aa), 1.0 / select(point2, 1.0, ee)
    at_start, at_end = -c * inverse_a, (ab - c) * inverse_a
    normal = cross(dif1, dif2)
    square = dot3(normal, normal)
    skew = square > PARALLEL * aa * ee
    s = clip(dot3(normal, cross(dif2, r)) / select(skew, square, 1.0), 0.0, 1.0)
    s = select(skew, s, 0.0)
    s, t = _slide(s, (ab * s + f) * inverse_e, at_start, at_end)
    parallel = not_(skew | point1 | point2)
    s = select(point1, 0.0, select(point2, clip(at_start, 0.0, 1.0), s))
    t = select(point2, 0.0, select(point1, clip(f * inverse_e, 0.0, 1.0), t))
    s2, t2 = _slide(lane(s, 1.0), (f + ab) * inverse_e, at_start, at_end)
    return parallel, s, t, s2, t2


@inline
def capsule_capsule(m, d, p, c):
    """One or two contacts."""
    g1, g2 = m.pair_geom1[p], m.pair_geom2[p]
    axis1, axis2 = axis_z(d, g1), axis_z(d, g2)
    half1, half2 = scale3(axis1, size_of(m, g1, 1)), scale3(axis2, size_of(m, g2, 1))
    start1, start2 = sub3(load3(d.geom_xpos, 3 * g1), half1), sub3(load3(d.geom_xpos, 3 * g2), half2)
    dif1, dif2 = scale3(half1, 2.0), scale3(half2, 2.0)
    radius1, radius2, reach = size_of(m, g1, 0), size_of(m, g2, 0), param(m.pair_reach, p)
    parallel, s, t, s2, t2 = nearest_points(start1, dif1, start2, dif2)
    active, dist, pos, normal = two_spheres(
        add_scaled3(start1, dif1, s), radius1, axis1, add_scaled3(start2, dif2, t), radius2, axis2, reach
    )
    if not any_(parallel):
        if not any_(active):
            return 0
        put_contact(m, d, p, c, active, dist, pos, frame_of(normal))
        return 1
    active2, dist2, pos2, normal2 = two_spheres(
        add_scaled3(start1, dif1, s2), radius1, axis1, add_scaled3(start2, dif2, t2), radius2, axis2, reach
    )
    active2 = active2 & parallel
    either = active | active2
    if not any_(either):
        return 0
    # a lane with one contact has it in the first slot
    dist, pos, normal = (
        select(active, dist, dist2),
        select3(active, pos, pos2),
        select3(active, normal, normal2),
    )
    put_contact(m, d, p, c, either, dist, pos, frame_of(normal))
    both = active & active2
    if not any_(both):
        return 1
    put_contact(m, d, p, c + 1, both, dist2, pos2, frame_of(normal2))
    return 2

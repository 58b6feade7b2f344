"""Contacts of a capsule and a box: the point of the capsule's segment nearest to the box and, where the capsule lies
along the box, a second point of the segment.

After MuJoCo's `mjraw_CapsuleBox` (`engine_collision_box.c`). The search for the nearest point runs over lanes; where
the second point lies is a case distinction on what was nearest, done lane by lane; both points are then spheres against
the box. Everything happens in the box's frame.
"""

from genesis_core.lanes import (
    add3,
    add_scaled3,
    any_,
    dot3,
    fabs,
    get_lane,
    inline,
    lane,
    lane_begin,
    lane_end,
    load,
    load3,
    load9,
    mask_lane,
    mat_vec,
    matT_vec,
    param,
    scale3,
    select,
    set_lane,
    store,
    store3,
    sub3,
    tiny,
)
from genesis_core.lanes.segment import segment
from genesis_core.physics.narrowphase.common import MINVAL, axis_z, clip, frame_of, put_contact, size_of
from genesis_core.physics.narrowphase.sphere import sphere_in_box_frame

# scratch: what the search found, in every lane
POS, AXIS, HALF, SIZE = 0, 3, 6, 9  # capsule's centre, axis, axis times half-length; box's half-sizes
ALONG = 12  # nearest point of the segment, -1 .. 1
EDGE_ALONG = 13  # nearest point of the box's edge, -1 .. 1
KIND = 14  # -4 nothing, -3/-1 a face of the box and the -/+ end, else 3 * (place on the edge) + (place on the segment)
FACE, CORNER, EDGE = 15, 16, 17  # nearest face (axis, -1 = inside), corner (bits), edge (axis)
SECOND = 18  # distance of the second point from the first along the segment; -4 = none
LEVEL = 19  # part of HALF along an axis below which it is rounding: 0 in f64


@inline
def _end(best, end, pos, half, size):
    """Considers one end of the segment if it lies above a face, or inside: best is (square, along, kind, face)."""
    point = add_scaled3(pos, half, end)
    nearest = (
        clip(point[0], -size[0], size[0]),
        clip(point[1], -size[1], size[1]),
        clip(point[2], -size[2], size[2]),
    )
    zero = lane(size[0], 0.0)
    outside, face = zero, zero - 1.0
    for k in range(3):
        beyond = fabs(point[k]) > size[k]
        outside = outside + select(beyond, 1.0, zero)
        face = select(beyond, lane(zero, k * 1.0), face)
    dif = sub3(nearest, point)
    square = dot3(dif, dif)
    take = (outside < 1.5) & (square < best[0])
    return (
        select(take, square, best[0]),
        select(take, end, best[1]),
        select(take, end - 2.0, best[2]),
        select(take, face, best[3]),
    )


@inline
def _edges(best, axis, size, pos, half, length2, bits, slack):
    """Considers the four edges along one axis of the box.

    size, pos and half are permuted: first the edge's axis, then the others in ascending order; bits are the corner bits
    of these axes. best is (square, along, edge_along, kind, corner, edge).
    """
    aa, ab = size[0] * size[0], -size[0] * half[0]
    det = aa * length2 - ab * ab
    # f32 cannot tell a small angle from none: such edges are left to their neighbours, as MuJoCo leaves parallel ones
    valid = fabs(det) >= select(slack > 0.0, slack * aa * length2, MINVAL)
    inverse = 1.0 / select(valid, det, 1.0)
    inverse_a, inverse_l = 1.0 / aa, 1.0 / length2
    u = size[0] * pos[0]
    for q in range(4):
        side1, side2 = (1.0 if q & 1 else -1.0), (1.0 if q & 2 else -1.0)
        dif1, dif2 = side1 * size[1] - pos[1], side2 * size[2] - pos[2]
        v = half[1] * dif1 + half[2] * dif2 - half[0] * pos[0]
        x1, x2 = (length2 * u - ab * v) * inverse, (aa * v - ab * u) * inverse
        high, low = x1 > 1.0, x1 < -1.0
        x2 = select(high, (v - ab) * inverse_l, select(low, (v + ab) * inverse_l, x2))
        x1 = clip(x1, -1.0, 1.0)
        place1 = select(high, 2.0, select(low, 0.0, lane(x1, 1.0)))
        high, low = x2 > 1.0, x2 < -1.0
        again = select(high, (u - ab) * inverse_a, (u + ab) * inverse_a)
        moved = high | low
        x1 = select(moved, clip(again, -1.0, 1.0), x1)
        place1 = select(moved & (again > 1.0), 2.0, select(moved & (again < -1.0), 0.0, place1))
        place2 = select(high, 2.0, select(low, 0.0, lane(x1, 1.0)))
        x2 = clip(x2, -1.0, 1.0)
        dif = (size[0] * x1 - pos[0] - half[0] * x2, dif1 - half[1] * x2, dif2 - half[2] * x2)
        square = dot3(dif, dif)
        take = valid & (square < best[0] - select(slack > 0.0, slack * best[0], MINVAL))
        corner = 1.0 * ((bits[1] if q & 1 else 0) + (bits[2] if q & 2 else 0))
        best = (
            select(take, square, best[0]),
            select(take, x2, best[1]),
            select(take, x1, best[2]),
            select(take, 3.0 * place1 + place2, best[3]),
            select(take, corner + select(place1 > 1.5, 1.0 * bits[0], 0.0), best[4]),
            select(take, axis * 1.0, best[5]),
        )
    return best


@inline
def _second_first(v):
    return v[1], v[0], v[2]


@inline
def _third_first(v):
    return v[2], v[0], v[1]


@inline
def _search(d, pos, half, size, length):
    """Writes what of the box is nearest to the segment to the scratch."""
    zero = lane(d, 0.0)
    face = (zero + 1e30, zero, zero - 4.0, zero - 1.0)
    face = _end(face, -1.0, pos, half, size)
    face = _end(face, 1.0, pos, half, size)
    slack = select(tiny(d) < 1e-100, zero, lane(d, 1e-6))
    best = (face[0], face[1], zero, face[2], zero, zero)
    length2 = length * length
    best = _edges(best, 0, size, pos, half, length2, (1, 2, 4), slack)
    best = _edges(best, 1, _second_first(size), _second_first(pos), _second_first(half), length2, (2, 1, 4), slack)
    best = _edges(best, 2, _third_first(size), _third_first(pos), _third_first(half), length2, (4, 1, 2), slack)
    t = d.col_tmp
    store(t, ALONG, best[1])
    store(t, EDGE_ALONG, best[2])
    store(t, KIND, best[3])
    store(t, FACE, face[3])
    store(t, CORNER, best[4])
    store(t, EDGE, best[5])


@inline
def _sides(t, l):
    """Bits of the axes along which the capsule points up."""
    bits = 0
    for k in range(3):
        if get_lane(t, HALF + k, l) > 0.0:
            bits += 1 << k
    return bits


@inline
def _level_side(t, l, edge):
    """Bit of an axis, other than the edge's, across which the capsule lies level within rounding; 0 = none."""
    for k in range(3):
        if k != edge and abs(get_lane(t, HALF + k, l)) < get_lane(t, LEVEL, l):
            return 1 << k
    return 0


@inline
def _reach_of(t, l, axis):
    """Length along the segment, in half-lengths, over which it crosses the box along an axis."""
    return 2.0 * get_lane(t, SIZE + axis, l) / abs(get_lane(t, HALF + axis, l))


@inline
def _second_at_corner(t, l, along):
    c = _sides(t, l) ^ int(get_lane(t, CORNER, l))
    if c == 0 or c == 7:
        c ^= _level_side(t, l, -1)  # the side that rounding chose for a level capsule must not cost the second point
    if c == 0 or c == 7:  # pointing at the corner or away from it
        return -4.0
    sign = 1.0
    if c == 3 or c == 5 or c == 6:
        sign = -1.0
        c = 7 - c
    ahead, behind = 1.0 - sign * along, 1.0 + sign * along
    axis = 0 if c == 1 else (1 if c == 2 else 2)
    slope = get_lane(t, AXIS + axis, l)
    if slope * slope > 0.5:  # along an edge of the box
        return sign * min(ahead, _reach_of(t, l, axis))
    across = min(_reach_of(t, l, (axis + 1) % 3), _reach_of(t, l, (axis + 2) % 3))
    return -sign * min(behind, across)


@inline
def _second_at_edge(t, l, along):
    edge = int(get_lane(t, EDGE, l))
    sides = _sides(t, l)
    c = (sides ^ int(get_lane(t, CORNER, l))) & (7 - (1 << edge))
    if c != 1 and c != 2 and c != 4:
        level = _level_side(t, l, edge)
        c, sides = c ^ level, sides ^ level
    if c != 1 and c != 2 and c != 4:  # edge and capsule form a T
        return -4.0
    ax1, ax2 = (edge + 1) % 3, (edge + 2) % 3
    if abs(get_lane(t, AXIS + ax1, l)) > abs(get_lane(t, AXIS + ax2, l)):
        ax1 = ax2
    ax2 = 3 - edge - ax1
    forward = c & (1 << ax2) != 0
    sign = 1.0 if forward else -1.0
    second = min(1.0 - sign * along, _reach_of(t, l, ax2))
    same = ((sides & (1 << edge)) != 0) == forward
    place = get_lane(t, EDGE_ALONG, l)
    left = 1.0 - place if same else 1.0 + place
    return sign * min(second, get_lane(t, SIZE + edge, l) * left / abs(get_lane(t, HALF + edge, l)))


@inline
def _second_at_face(t, l, kind):
    face = int(get_lane(t, FACE, l))
    if face == -1:  # the end is inside the box
        return -4.0
    sign = 1.0 if kind == -3 else -1.0
    second = 2.0
    for k in range(3):
        if k != face:
            half, size = get_lane(t, HALF + k, l), get_lane(t, SIZE + k, l)
            point = get_lane(t, POS + k, l) - sign * half
            to_high, to_low = (size - point) / half * sign, (-size - point) / half * sign
            if 0.0 < to_high < second:
                second = to_high
            if 0.0 < to_low < second:
                second = to_low
    return sign * second


@inline
def _second_point(t, l):
    """Where the second sphere goes, relative to the first, in half-lengths along the segment; -4 = nowhere."""
    kind = int(get_lane(t, KIND, l))
    along = get_lane(t, ALONG, l)
    if kind < 0:
        return _second_at_face(t, l, kind)
    if kind // 3 == 1:
        return _second_at_edge(t, l, along)
    return _second_at_corner(t, l, along)


@segment("mdii")
def capsule_box(m, d, p, c):
    """Up to two contacts."""
    g1, g2 = m.pair_geom1[p], m.pair_geom2[p]
    t = d.col_tmp
    centre2, mat = load3(d.geom_xpos, 3 * g2), load9(d.geom_xmat, 9 * g2)
    radius, length = size_of(m, g1, 0), size_of(m, g1, 1)
    size = (size_of(m, g2, 0), size_of(m, g2, 1), size_of(m, g2, 2))
    reach = param(m.pair_reach, p)
    pos = matT_vec(mat, sub3(load3(d.geom_xpos, 3 * g1), centre2))
    axis = matT_vec(mat, axis_z(d, g1))
    half = scale3(axis, length)
    # bounding box of the capsule against the box
    far = radius + reach
    near = (
        (fabs(pos[0]) - fabs(half[0]) <= size[0] + far)
        & (fabs(pos[1]) - fabs(half[1]) <= size[1] + far)
        & (fabs(pos[2]) - fabs(half[2]) <= size[2] + far)
    )
    if not any_(near):
        return 0
    _search(d, pos, half, size, length)
    along = load(t, ALONG)
    active, dist, point, normal = sphere_in_box_frame(add_scaled3(pos, half, along), radius, size, reach)
    active = active & near & (load(t, KIND) > -3.5)
    if not any_(active):
        return 0  # the first point is the nearest: no second one without it
    store3(t, POS, pos)
    store3(t, AXIS, axis)
    store3(t, HALF, half)
    store3(t, SIZE, size)
    store(t, SECOND, lane(d, -4.0))
    store(t, LEVEL, select(tiny(d) < 1e-100, 0.0, 1e-6 * length))
    for l in range(lane_begin(d), lane_end(d)):
        if mask_lane(active, l):
            set_lane(t, SECOND, l, _second_point(t, l))
    put_contact(m, d, p, c, active, dist, add3(mat_vec(mat, point), centre2), frame_of(mat_vec(mat, normal)))
    second = load(t, SECOND)
    wanted = active & (second > -3.0)
    if not any_(wanted):
        return 1
    second = select(wanted, second, 0.0)
    active, dist, point, normal = sphere_in_box_frame(add_scaled3(pos, half, along + second), radius, size, reach)
    active = active & wanted
    if not any_(active):
        return 1
    put_contact(m, d, p, c + 1, active, dist, add3(mat_vec(mat, point), centre2), frame_of(mat_vec(mat, normal)))
    return 2

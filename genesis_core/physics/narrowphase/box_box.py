"""Contacts of two boxes.

After MuJoCo 4.0.0's `mjc_BoxBox` (`engine_collision_box.c`): a separating-axis test over the 3 + 3 face normals and the
9 products of edges, here over lanes; then, lane by lane, the contact points. A face of the one box: the opposite face
of the other, clipped to it, up to eight points. Two edges: the middle of their nearest points.

Names: rot holds box 2's axes in box 1's frame; pos21 is box 2's centre in box 1's frame, pos12 the other way round.
"""

from math import sqrt as root

from genesis_core.lanes import (
    any_,
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
    matT_mul,
    matT_vec,
    param,
    select,
    set_lane,
    sqrt,
    store,
    store3,
    store9,
    sub3,
    tiny,
)
from genesis_core.lanes.segment import segment
from genesis_core.physics.narrowphase.common import MINVAL, frame_of, put_contact, size_of

# scratch, in every lane
ROT, POS21, POS12, SIZE1, SIZE2 = 0, 9, 12, 15, 18
CODE = 21  # winning axis: 0..2 face of box 1, 3..5 of box 2, 6 + 3 i + j edges i and j, -1 apart
AXIS = 22  # winning product of edges, box 1's frame
NORMAL = 25  # of the contacts, world
FOUND = 28  # contacts of the lane
REACH, SEPARATION, SIGN, SAME = 29, 30, 31, 32  # distances and thresholds for the lane-by-lane part
POLYGON1, POLYGON2, INSIDE, ACCEPTED = 33, 69, 105, 117  # 12 points, 12 points, 12 numbers, 8 points
MOST = 8  # contacts
VERTICES = 12  # room for a clipped polygon

# Rounding scales of MuJoCo's double and single builds: slack of the separation test per size, squared sine below which
# edges are parallel, axis component below which a corner is ambiguous, squared relative distance of equal points
SLACK = (1e-13, 1e-6)
PARALLEL = (1e-16, 1e-7)
AMBIGUOUS = (1e-9, 1e-5)
EQUAL = (1e-14, 1e-10)
EDGE_BIAS = 1e-6  # relative penalty of edges against faces


@inline
def _scale(d, pair):
    """The value for the precision of d, as a lane."""
    return select(tiny(d) < 1e-100, lane(d, pair[0]), lane(d, pair[1]))


@inline
def _faces(t, best, code, alive, limit, pos, size, other, first, row, column):
    """Separation along the three face normals of a box; (row, column) strides its rows in rot."""
    for i in range(3):
        radius = (
            fabs(load(t, ROT + row * i)) * load(t, other)
            + fabs(load(t, ROT + row * i + column)) * load(t, other + 1)
            + fabs(load(t, ROT + row * i + 2 * column)) * load(t, other + 2)
        )
        gap = fabs(load(t, pos + i)) - load(t, size + i) - radius
        alive = alive & (gap <= limit)
        better = gap > best
        best = select(better, gap, best)
        code = select(better, 1.0 * (first + i), code)
    return best, code, alive


@inline
def _edge_axes(d, t, best, code, alive, limit):
    """Separation along the nine products of edges; remembers the winning axis in the scratch."""
    face = best
    parallel = _scale(d, PARALLEL)
    for i in range(3):
        i1, i2 = (i + 1) % 3, (i + 2) % 3
        for j in range(3):
            j1, j2 = (j + 1) % 3, (j + 2) % 3
            a1, a2 = -load(t, ROT + 3 * i2 + j), load(t, ROT + 3 * i1 + j)
            square = a1 * a1 + a2 * a2
            valid = square >= parallel
            inverse = 1.0 / sqrt(select(valid, square, 1.0))
            a1, a2 = a1 * inverse, a2 * inverse
            radius1 = load(t, SIZE1 + i1) * fabs(a1) + load(t, SIZE1 + i2) * fabs(a2)
            b1 = a1 * load(t, ROT + 3 * i1 + j1) + a2 * load(t, ROT + 3 * i2 + j1)
            b2 = a1 * load(t, ROT + 3 * i1 + j2) + a2 * load(t, ROT + 3 * i2 + j2)
            radius2 = load(t, SIZE2 + j1) * fabs(b1) + load(t, SIZE2 + j2) * fabs(b2)
            gap = fabs(a1 * load(t, POS21 + i1) + a2 * load(t, POS21 + i2)) - radius1 - radius2
            alive = alive & ((gap <= limit) | (square < parallel))
            better = valid & (gap - EDGE_BIAS * fabs(gap) > best) & (gap > face)
            if any_(better & alive):
                best = select(better, gap, best)
                code = select(better, 6.0 + 3 * i + j, code)
                store(t, AXIS + i, select(better, 0.0, load(t, AXIS + i)))
                store(t, AXIS + i1, select(better, a1, load(t, AXIS + i1)))
                store(t, AXIS + i2, select(better, a2, load(t, AXIS + i2)))
    return best, code, alive


@inline
def _prefer_face(t, best, code, best_face, code_face):
    """The best face instead of two edges whose axis is nearly its normal, unless the edges are clearly better."""
    edges = code > 5.5
    if any_(edges):
        a = load3(t, AXIS)
        cosine = lane(code, 0.0)
        for k in range(3):
            cosine = select(code_face == k, fabs(load(t, AXIS + k)), cosine)
            along = a[0] * load(t, ROT + k) + a[1] * load(t, ROT + 3 + k) + a[2] * load(t, ROT + 6 + k)
            cosine = select(code_face == 3 + k, fabs(along), cosine)
        near = (cosine > 0.99) & (best < best_face + 0.05 * fabs(best_face) + MINVAL)
        code = select(edges & near, code_face, code)
    return code


@inline
def _separating_axis(m, d, p, g1, g2):
    """Writes the scratch for the pair; the mask of lanes whose boxes are within reach."""
    t = d.col_tmp
    centre1, centre2 = load3(d.geom_xpos, 3 * g1), load3(d.geom_xpos, 3 * g2)
    mat1, mat2 = load9(d.geom_xmat, 9 * g1), load9(d.geom_xmat, 9 * g2)
    zero = lane(d, 0.0)
    total = zero
    for k in range(3):
        size1, size2 = size_of(m, g1, k), size_of(m, g2, k)
        store(t, SIZE1 + k, size1)
        store(t, SIZE2 + k, size2)
        total = total + size1 + size2
    reach = param(m.pair_reach, p)
    limit = reach + _scale(d, SLACK) * total
    store3(t, POS21, matT_vec(mat1, sub3(centre2, centre1)))
    store3(t, POS12, matT_vec(mat2, sub3(centre1, centre2)))
    store9(t, ROT, matT_mul(mat1, mat2))
    best, code, alive = zero - 1e10, zero - 1.0, limit <= limit
    best, code, alive = _faces(t, best, code, alive, limit, POS21, SIZE1, SIZE2, 0, 3, 1)
    best, code, alive = _faces(t, best, code, alive, limit, POS12, SIZE2, SIZE1, 3, 1, 3)
    if any_(alive):
        best_face, code_face = best, code
        store3(t, AXIS, (zero, zero, zero))
        best, code, alive = _edge_axes(d, t, best, code, alive, limit)
        if any_(alive):
            code = _prefer_face(t, best, code, best_face, code_face)
            store(t, CODE, code)
            store(t, REACH, reach)
            store(t, SEPARATION, limit)
            store(t, SIGN, _scale(d, AMBIGUOUS))
            store(t, SAME, _scale(d, EQUAL))
    return alive


# ------------------------------------------------------------------ lane by lane
@inline
def _limited(x, half):
    return max(-half, min(half, x))


@inline
def _write(d, c, l, dist, g, x, y, z):
    """Contact c of lane l at (x, y, z) in the frame of geom g."""
    set_lane(d.con_dist, c, l, dist)
    for r in range(3):
        row = 9 * g + 3 * r
        v = get_lane(d.geom_xmat, row, l) * x + get_lane(d.geom_xmat, row + 1, l) * y
        v += get_lane(d.geom_xmat, row + 2, l) * z
        set_lane(d.con_pos, 3 * c + r, l, v + get_lane(d.geom_xpos, 3 * g + r, l))


@inline
def _component(t, l, base, k, i):
    """Component k of box 2's axis i in box 1's frame, or with base 1 of box 1's axis i in box 2's."""
    return get_lane(t, ROT + (3 * k + i if base == 0 else 3 * i + k), l)


@inline
def _edge_points(t, l, i, j, corner1, corner2, axis):
    """Nearest points of two edges given by their signed corners: (gap x, y, z, middle x, y, z)."""
    # corner1 and corner2 hold half-sizes with signs and 0 along the edge, in the box's own frame
    e0 = get_lane(t, POS21, l) - corner1[0]
    e1 = get_lane(t, POS21 + 1, l) - corner1[1]
    e2 = get_lane(t, POS21 + 2, l) - corner1[2]
    for k in range(3):
        e0 += get_lane(t, ROT + k, l) * corner2[k]
        e1 += get_lane(t, ROT + 3 + k, l) * corner2[k]
        e2 += get_lane(t, ROT + 6 + k, l) * corner2[k]
    e = (e0, e1, e2)
    d2 = (get_lane(t, ROT + j, l), get_lane(t, ROT + 3 + j, l), get_lane(t, ROT + 6 + j, l))
    cosine = d2[i]
    square = 1.0 - cosine * cosine
    along1, along2 = e[i], d2[0] * e[0] + d2[1] * e[1] + d2[2] * e[2]
    half1, half2 = get_lane(t, SIZE1 + i, l), get_lane(t, SIZE2 + j, l)
    s = 0.0
    if square >= MINVAL:
        s = (along1 - cosine * along2) / square
    s = _limited(s, half1)
    u = _limited(cosine * s - along2, half2)
    s = _limited(along1 + cosine * u, half1)
    g0, g1, g2 = e[0] + u * d2[0], e[1] + u * d2[1], e[2] + u * d2[2]
    p0, p1, p2 = corner1[0] * 1.0, corner1[1] * 1.0, corner1[2] * 1.0
    if i == 0:
        g0, p0 = g0 - s, p0 + s
    elif i == 1:
        g1, p1 = g1 - s, p1 + s
    else:
        g2, p2 = g2 - s, p2 + s
    return g0, g1, g2, p0 + 0.5 * g0, p1 + 0.5 * g1, p2 + 0.5 * g2


@inline
def _supporting(t, l, size, edge, v0, v1, v2, flip):
    """Corner of a box farthest along (v0, v1, v2), 0 along the edge; `flip` is a component to turn round, or -1."""
    c0 = 0.0 if edge == 0 else get_lane(t, size, l) * (1.0 if v0 >= 0.0 else -1.0)
    c1 = 0.0 if edge == 1 else get_lane(t, size + 1, l) * (1.0 if v1 >= 0.0 else -1.0)
    c2 = 0.0 if edge == 2 else get_lane(t, size + 2, l) * (1.0 if v2 >= 0.0 else -1.0)
    return (-c0 if flip == 0 else c0, -c1 if flip == 1 else c1, -c2 if flip == 2 else c2)


@inline
def _ambiguous(t, l, edge, v):
    """The axis other than the edge's along which v is too small to choose a corner, or -1."""
    limit = get_lane(t, SIGN, l)
    if abs(v[(edge + 1) % 3]) < limit:
        return (edge + 1) % 3
    if abs(v[(edge + 2) % 3]) < limit:
        return (edge + 2) % 3
    return -1


@inline
def _two_edges(d, l, c, g1, code):
    """The contact of two edges; the number of contacts."""
    t = d.col_tmp
    i, j = (code - 6) // 3, (code - 6) % 3
    a0, a1, a2 = get_lane(t, AXIS, l) * 1.0, get_lane(t, AXIS + 1, l) * 1.0, get_lane(t, AXIS + 2, l) * 1.0
    n = 1.0 / root(a0 * a0 + a1 * a1 + a2 * a2)
    if a0 * get_lane(t, POS21, l) + a1 * get_lane(t, POS21 + 1, l) + a2 * get_lane(t, POS21 + 2, l) < 0.0:
        n = -n
    a0, a1, a2 = a0 * n, a1 * n, a2 * n
    a = (a0, a1, a2)
    # the axis in box 2's frame, turned towards box 1
    b0 = -(a0 * get_lane(t, ROT, l) + a1 * get_lane(t, ROT + 3, l) + a2 * get_lane(t, ROT + 6, l))
    b1 = -(a0 * get_lane(t, ROT + 1, l) + a1 * get_lane(t, ROT + 4, l) + a2 * get_lane(t, ROT + 7, l))
    b2 = -(a0 * get_lane(t, ROT + 2, l) + a1 * get_lane(t, ROT + 5, l) + a2 * get_lane(t, ROT + 8, l))
    b = (b0, b1, b2)
    flip1, flip2 = _ambiguous(t, l, i, a), _ambiguous(t, l, j, b)
    nearest = 1e10
    g0, g1_, g2_, m0, m1, m2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for v1 in range(2 if flip1 >= 0 else 1):
        for v2 in range(2 if flip2 >= 0 else 1):
            corner1 = _supporting(t, l, SIZE1, i, a0, a1, a2, flip1 if v1 else -1)
            corner2 = _supporting(t, l, SIZE2, j, b0, b1, b2, flip2 if v2 else -1)
            q = _edge_points(t, l, i, j, corner1, corner2, a)
            square = q[0] * q[0] + q[1] * q[1] + q[2] * q[2]
            if square < nearest:
                nearest = square
                g0, g1_, g2_, m0, m1, m2 = q
    dist = g0 * a0 + g1_ * a1 + g2_ * a2
    if dist > get_lane(t, SEPARATION, l):
        return 0
    _write(d, c, l, dist, g1, m0, m1, m2)
    for r in range(3):
        row = 9 * g1 + 3 * r
        v = get_lane(d.geom_xmat, row, l) * a0 + get_lane(d.geom_xmat, row + 1, l) * a1
        set_lane(t, NORMAL + r, l, v + get_lane(d.geom_xmat, row + 2, l) * a2)
    return 1


@inline
def _clip_polygon(t, l, n, source, target, k, sign, limit):
    """Clips a polygon of points (x, y, z) to sign * point[k] <= limit: (points, where they are, the other place)."""
    inside = True
    for v in range(n):
        x = sign * get_lane(t, source + 3 * v + k, l) - limit
        set_lane(t, INSIDE + v, l, x)
        if not x <= 0.0:
            inside = False
    if inside:
        return n, source, target
    out = 0
    for v in range(n):
        w = 0 if v + 1 == n else v + 1
        x, y = get_lane(t, INSIDE + v, l), get_lane(t, INSIDE + w, l)
        if x <= 0.0 and out < VERTICES:
            for r in range(3):
                set_lane(t, target + 3 * out + r, l, get_lane(t, source + 3 * v + r, l))
            out += 1
        if ((x < 0.0 < y) or (y < 0.0 < x)) and out < VERTICES:
            f = x / (x - y)
            for r in range(3):
                start = get_lane(t, source + 3 * v + r, l)
                set_lane(t, target + 3 * out + r, l, start + f * (get_lane(t, source + 3 * w + r, l) - start))
            out += 1
    return out, target, source


@inline
def _incident_face(t, l, second, a, sign, sizes, other, centre):
    """Writes the face of the other box opposite to face a as a polygon of (x, y, height over face a)."""
    b = 0
    for k in range(1, 3):
        if abs(_component(t, l, second, a, k)) > abs(_component(t, l, second, a, b)):
            b = k
    towards = -1.0 if sign * _component(t, l, second, a, b) > 0.0 else 1.0
    bu, bv = (b + 1) % 3, (b + 2) % 3
    for r in range(3):
        k = a if r == 2 else (a + 1 + r) % 3
        mid = get_lane(t, centre + k, l) + towards * get_lane(t, other + b, l) * _component(t, l, second, k, b)
        du = get_lane(t, other + bu, l) * _component(t, l, second, k, bu)
        dv = get_lane(t, other + bv, l) * _component(t, l, second, k, bv)
        if r == 2:
            mid, du, dv = sign * mid - get_lane(t, sizes + a, l), sign * du, sign * dv
        set_lane(t, POLYGON1 + r, l, mid + du + dv)
        set_lane(t, POLYGON1 + 3 + r, l, mid - du + dv)
        set_lane(t, POLYGON1 + 6 + r, l, mid - du - dv)
        set_lane(t, POLYGON1 + 9 + r, l, mid + du - dv)


@inline
def _accept(t, l, n, polygon, lx, ly):
    """Copies the points within reach, without repeated ones, to the accepted ones; their number."""
    reach, same = get_lane(t, REACH, l), get_lane(t, SAME, l) * (lx * lx + ly * ly)
    found = 0
    for v in range(n):
        x, y, z = (
            get_lane(t, polygon + 3 * v, l),
            get_lane(t, polygon + 3 * v + 1, l),
            get_lane(t, polygon + 3 * v + 2, l),
        )
        new = z <= reach and found < MOST
        for q in range(found):
            dx, dy = get_lane(t, ACCEPTED + 3 * q, l) - x, get_lane(t, ACCEPTED + 3 * q + 1, l) - y
            if dx * dx + dy * dy < same:
                new = False
        if new:
            set_lane(t, ACCEPTED + 3 * found, l, x)
            set_lane(t, ACCEPTED + 3 * found + 1, l, y)
            set_lane(t, ACCEPTED + 3 * found + 2, l, z)
            found += 1
    return found


@inline
def _face_contacts(d, l, c, g1, g2, code):
    """The contacts of a face with what of the other box lies over or in it; the number of contacts."""
    t = d.col_tmp
    second = 1 if code >= 3 else 0  # whose face: box 2's
    a = code - 3 * second
    g, sizes, other, centre = (g1, SIZE1, SIZE2, POS21) if second == 0 else (g2, SIZE2, SIZE1, POS12)
    sign = 1.0 if get_lane(t, centre + a, l) >= 0.0 else -1.0
    _incident_face(t, l, second, a, sign, sizes, other, centre)
    lx, ly, lz = (
        get_lane(t, sizes + (a + 1) % 3, l),
        get_lane(t, sizes + (a + 2) % 3, l),
        get_lane(t, sizes + a, l),
    )
    n, polygon, spare = 4, POLYGON1, POLYGON2
    n, polygon, spare = _clip_polygon(t, l, n, polygon, spare, 0, 1.0, lx)
    n, polygon, spare = _clip_polygon(t, l, n, polygon, spare, 0, -1.0, lx)
    n, polygon, spare = _clip_polygon(t, l, n, polygon, spare, 1, 1.0, ly)
    n, polygon, spare = _clip_polygon(t, l, n, polygon, spare, 1, -1.0, ly)
    found = _accept(t, l, n, polygon, lx, ly)
    outward = sign if second == 0 else -sign
    for r in range(3):
        set_lane(t, NORMAL + r, l, outward * get_lane(d.geom_xmat, 9 * g + 3 * r + a, l))
    for k in range(found):
        # in f64 throughout: one version of _write
        x, y, z = (
            1.0 * get_lane(t, ACCEPTED + 3 * k, l),
            1.0 * get_lane(t, ACCEPTED + 3 * k + 1, l),
            1.0 * get_lane(t, ACCEPTED + 3 * k + 2, l),
        )
        up = sign * (lz + 0.5 * z)  # half-way between the surfaces
        if a == 0:
            _write(d, c + k, l, z, g, up, x, y)
        elif a == 1:
            _write(d, c + k, l, z, g, y, up, x)
        else:
            _write(d, c + k, l, z, g, x, y, up)
    return found


@segment("mdii")
def box_box(m, d, p, c):
    """Up to eight contacts."""
    g1, g2 = m.pair_geom1[p], m.pair_geom2[p]
    alive = _separating_axis(m, d, p, g1, g2)
    if not any_(alive):
        return 0
    t = d.col_tmp
    zero, one = lane(d, 0.0), lane(d, 1.0)
    store(t, FOUND, zero)
    store3(t, NORMAL, (one, zero, zero))
    for l in range(lane_begin(d), lane_end(d)):
        if mask_lane(alive, l):
            code = int(get_lane(t, CODE, l))
            count = _two_edges(d, l, c, g1, code) if code >= 6 else _face_contacts(d, l, c, g1, g2, code)
            set_lane(t, FOUND, l, count)
    frame = frame_of(load3(t, NORMAL))
    found = load(t, FOUND)
    for k in range(MOST):
        active = found > k + 0.5
        if not any_(active):
            return k
        dist, pos = load(d.con_dist, c + k), load3(d.con_pos, 3 * (c + k))
        put_contact(m, d, p, c + k, active, dist, pos, frame)
    return MOST

"""Contacts of a plane with the convex hull of a mesh: the lowest vertex, and up to three more of the face it lies on.

After MuJoCo 4.0.0's `mjc_PlaneConvex`. Of the hull's faces at the lowest vertex the one that looks most against the
plane's normal is taken; its other contacts are the corners of the widest quadrilateral with the lowest vertex as one
corner. These depend on vertex and face only and are part of the model (`hull_quad`). MuJoCo climbs the hull from vertex
to vertex; here all vertices are looked at, for all lanes at once, which finds the same vertex (of several that are
exactly as low: the first).
"""

from genesis_core.lanes import (
    add3,
    add_scaled3,
    any_,
    dot3,
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
    param3,
    select,
    select3,
    set_lane,
    store,
    store3,
    sub3,
)
from genesis_core.lanes.segment import segment
from genesis_core.physics.narrowphase.common import axis_z, frame_of, put_contact

# scratch, in every lane
DOWN = 0  # the plane's normal in the mesh's frame
EXTRA = 3  # three corners of the face: x, y, z in the mesh's frame and 1, or 0 where there is none
MORE = 3


@inline
def _lowest(m, hull, normal):
    """(height along the normal, index of the vertex, vertex) of a hull's lowest vertex."""
    start = m.hull_adr[hull]
    point = param3(m.hull_vert, start)
    height = dot3(normal, point)
    index = lane(height, start * 1.0)
    for v in range(start + 1, start + m.hull_num[hull]):
        other = param3(m.hull_vert, v)
        rise = dot3(normal, other)
        lower = rise < height
        height = select(lower, rise, height)
        index = select(lower, lane(height, v * 1.0), index)
        point = select3(lower, other, point)
    return index, point


@inline
def _corners(m, t, vertex, l):
    """Writes the other corners of the face at a vertex that looks most against the normal."""
    best, face = 1.0, -1
    for e in range(m.hull_mapadr[vertex], m.hull_mapadr[vertex] + m.hull_mapnum[vertex]):
        against = (
            m.hull_normal[3 * e] * get_lane(t, DOWN, l)
            + m.hull_normal[3 * e + 1] * get_lane(t, DOWN + 1, l)
            + m.hull_normal[3 * e + 2] * get_lane(t, DOWN + 2, l)
        )
        if against < best:
            best = against * 1.0
            face = e
    if face >= 0:
        for k in range(MORE):
            corner = m.hull_quad[3 * face + k]
            if corner >= 0:
                for r in range(3):
                    set_lane(t, EXTRA + 4 * k + r, l, m.hull_vert[3 * corner + r])
                set_lane(t, EXTRA + 4 * k + 3, l, 1.0)


@inline
def _keep(take, slot, dist, point):
    return select(take, dist, slot[0]), select3(take, point, slot[1])


@segment("mdii")
def plane_mesh(m, d, p, c):
    """Up to four contacts."""
    g1, g2 = m.pair_geom1[p], m.pair_geom2[p]
    t = d.col_tmp
    n, hull = axis_z(d, g1), m.geom_hull[g2]
    centre, mat = load3(d.geom_xpos, 3 * g2), load9(d.geom_xmat, 9 * g2)
    reach = param(m.pair_reach, p)
    height = dot3(sub3(centre, load3(d.geom_xpos, 3 * g1)), n)
    down = matT_vec(mat, n)
    index, point = _lowest(m, hull, down)
    dist = height + dot3(down, point)
    active = dist <= reach
    if not any_(active):
        return 0
    frame = frame_of(n)
    put_contact(m, d, p, c, active, dist, add_scaled3(add3(mat_vec(mat, point), centre), n, -0.5 * dist), frame)
    zero = lane(d, 0.0)
    store3(t, DOWN, down)
    for k in range(MORE):
        store3(t, EXTRA + 4 * k, (zero, zero, zero))
        store(t, EXTRA + 4 * k + 3, zero)
    store(t, EXTRA + 4 * MORE, index)
    for l in range(lane_begin(d), lane_end(d)):
        if mask_lane(active, l):
            _corners(m, t, int(get_lane(t, EXTRA + 4 * MORE, l)), l)
    empty = (zero, (zero, zero, zero))
    slot0, slot1, slot2 = empty, empty, empty
    found = zero
    for k in range(MORE):
        corner = load3(t, EXTRA + 4 * k)
        rise = dot3(down, corner)
        dist = height + rise
        more = (load(t, EXTRA + 4 * k + 3) > 0.5) & (dist <= reach) & (rise <= 0.0)
        slot0 = _keep(more & (found < 0.5), slot0, dist, corner)
        slot1 = _keep(more & (found > 0.5) & (found < 1.5), slot1, dist, corner)
        slot2 = _keep(more & (found > 1.5), slot2, dist, corner)
        found = found + select(more, 1.0, zero)
    used = 1
    for k in range(MORE):
        more = found > k + 0.5
        if any_(more):
            dist, corner = slot0 if k == 0 else (slot1 if k == 1 else slot2)
            place = add_scaled3(add3(mat_vec(mat, corner), centre), n, -0.5 * dist)
            put_contact(m, d, p, c + 1 + k, more, dist, place, frame)
            used = k + 2
    return used

"""Contacts of a plane (infinite, whatever its size) with sphere, capsule, ellipsoid, cylinder and box.

After MuJoCo's `engine_collision_primitive.c`: the same points in the same order. A plane pushes along its z axis.
"""

from genesis_core.lanes import (
    add3,
    add_scaled3,
    any_,
    cross,
    dot3,
    inline,
    lane,
    load3,
    load9,
    mat_vec,
    matT_vec,
    norm3,
    param,
    scale3,
    select,
    select3,
    sub3,
)
from genesis_core.physics.narrowphase.common import (
    MINVAL,
    axis_z,
    frame_along,
    frame_of,
    noise_of,
    put_contact,
    size_of,
    unit3,
)


@inline
def plane_sphere(m, d, p, c):
    """One contact, at the sphere's lowest point."""
    g1, g2 = m.pair_geom1[p], m.pair_geom2[p]
    n = axis_z(d, g1)
    centre = load3(d.geom_xpos, 3 * g2)
    radius = size_of(m, g2, 0)
    dist = dot3(sub3(centre, load3(d.geom_xpos, 3 * g1)), n) - radius
    active = dist <= param(m.pair_reach, p)
    if not any_(active):
        return 0
    put_contact(m, d, p, c, active, dist, add_scaled3(centre, n, -0.5 * dist - radius), frame_of(n))
    return 1


@inline
def plane_capsule(m, d, p, c):
    """Up to two contacts, one for each end, the +z end first; tangents along the capsule's axis."""
    g1, g2 = m.pair_geom1[p], m.pair_geom2[p]
    n, axis = axis_z(d, g1), axis_z(d, g2)
    centre = load3(d.geom_xpos, 3 * g2)
    radius, half = size_of(m, g2, 0), size_of(m, g2, 1)
    reach = param(m.pair_reach, p)
    height = dot3(sub3(centre, load3(d.geom_xpos, 3 * g1)), n) - radius
    rise = half * dot3(axis, n)
    dist1, dist2 = height + rise, height - rise
    active1, active2 = dist1 <= reach, dist2 <= reach
    either = active1 | active2
    if not any_(either):
        return 0
    frame = frame_along(n, axis, noise_of(d))
    # a lane with one contact has it in the first slot
    dist = select(active1, dist1, dist2)
    end = add_scaled3(centre, axis, select(active1, half, -half))
    put_contact(m, d, p, c, either, dist, add_scaled3(end, n, -0.5 * dist - radius), frame)
    both = active1 & active2
    if not any_(both):
        return 1
    end = add_scaled3(centre, axis, -half)
    put_contact(m, d, p, c + 1, both, dist2, add_scaled3(end, n, -0.5 * dist2 - radius), frame)
    return 2


@inline
def plane_ellipsoid(m, d, p, c):
    """One contact, at the support point against the plane's normal."""
    g1, g2 = m.pair_geom1[p], m.pair_geom2[p]
    n = axis_z(d, g1)
    centre, mat = load3(d.geom_xpos, 3 * g2), load9(d.geom_xmat, 9 * g2)
    size = (size_of(m, g2, 0), size_of(m, g2, 1), size_of(m, g2, 2))
    down = matT_vec(mat, n)
    scaled = (-down[0] * size[0], -down[1] * size[1], -down[2] * size[2])
    length = norm3(scaled)
    inverse = 1.0 / select(length < MINVAL, 1.0, length)
    local = (scaled[0] * size[0] * inverse, scaled[1] * size[1] * inverse, scaled[2] * size[2] * inverse)
    point = add3(mat_vec(mat, local), centre)
    dist = dot3(n, sub3(point, load3(d.geom_xpos, 3 * g1)))
    active = dist <= param(m.pair_reach, p)
    if not any_(active):
        return 0
    put_contact(m, d, p, c, active, dist, add_scaled3(point, n, -0.5 * dist), frame_of(n))
    return 1


@inline
def plane_cylinder(m, d, p, c):
    """Up to four contacts: lowest point of the near disk, the same of the far disk, two more of the near disk's rim."""
    g1, g2 = m.pair_geom1[p], m.pair_geom2[p]
    n, axis = axis_z(d, g1), axis_z(d, g2)
    centre = load3(d.geom_xpos, 3 * g2)
    radius, half = size_of(m, g2, 0), size_of(m, g2, 1)
    reach = param(m.pair_reach, p)
    # the axis, pointing towards the plane
    slope = dot3(n, axis)
    up = slope > 0.0
    axis = select3(up, (-axis[0], -axis[1], -axis[2]), axis)
    slope = select(up, -slope, slope)
    height = dot3(sub3(centre, load3(d.geom_xpos, 3 * g1)), n)
    # -normal without its part along the axis, scaled to the radius: from the axis to the rim's lowest point. Two vector
    # products keep it across the axis when the disk is nearly parallel to the plane.
    rim = cross(axis, cross(axis, n))
    length = norm3(rim)
    parallel = length < noise_of(d)
    x = (radius, lane(d, 0.0), lane(d, 0.0))
    rim = scale3(rim, radius / select(parallel, 1.0, length))
    rim = select3(parallel, mat_vec(load9(d.geom_xmat, 9 * g2), x), rim)
    drop, axis, slope = dot3(rim, n), scale3(axis, half), slope * half
    dist1, dist2, dist3 = height + slope + drop, height - slope + drop, height + slope - 0.5 * drop
    active1 = dist1 <= reach
    if not any_(active1):
        return 0
    active2, active3 = active1 & (dist2 <= reach), active1 & (dist3 <= reach)
    frame = frame_of(n)
    near = add3(centre, axis)
    put_contact(m, d, p, c, active1, dist1, add_scaled3(add3(near, rim), n, -0.5 * dist1), frame)
    used = 1
    more = active2 | active3
    if not any_(more):
        return used
    side = cross(rim, axis)
    side = scale3(unit3(side, norm3(side)), radius * 0.8660254037844386)
    low = add_scaled3(add_scaled3(near, rim, -0.5), n, -0.5 * dist3)
    point_a, point_b = add3(low, side), sub3(low, side)
    point_2 = add_scaled3(add3(sub3(centre, axis), rim), n, -0.5 * dist2)
    # second slot: the far disk's point or, without it, A
    put_contact(m, d, p, c + 1, more, select(active2, dist2, dist3), select3(active2, point_2, point_a), frame)
    if not any_(active3):
        return used + 1
    put_contact(m, d, p, c + 2, active3, dist3, select3(active2, point_a, point_b), frame)
    all_four = active2 & active3
    if not any_(all_four):
        return used + 2
    put_contact(m, d, p, c + 3, all_four, dist3, point_b, frame)
    return used + 3


@inline
def _corner(i, x, y, z):
    """Corner i of a box with half-sizes x, y, z: bit 0 is the sign of x, bit 1 of y, bit 2 of z."""
    a = x if i & 1 else -x
    b = y if i & 2 else -y
    e = z if i & 4 else -z
    return a, b, e


@inline
def _take(take, slot, dist, point):
    """The slot (distance, point), replaced where `take` holds."""
    return (
        select(take, dist, slot[0]),
        select(take, point[0], slot[1]),
        select(take, point[1], slot[2]),
        select(take, point[2], slot[3]),
    )


@inline
def plane_box(m, d, p, c):
    """The first four corners, counted in x, then y, then z, that are within reach and in the lower half of the box."""
    g1, g2 = m.pair_geom1[p], m.pair_geom2[p]
    n = axis_z(d, g1)
    centre, mat = load3(d.geom_xpos, 3 * g2), load9(d.geom_xmat, 9 * g2)
    x, y, z = size_of(m, g2, 0), size_of(m, g2, 1), size_of(m, g2, 2)
    reach = param(m.pair_reach, p)
    height = dot3(sub3(centre, load3(d.geom_xpos, 3 * g1)), n)
    down = matT_vec(mat, n)
    zero = lane(d, 0.0)
    empty = (zero, zero, zero, zero)
    slot0, slot1, slot2, slot3 = empty, empty, empty, empty
    found = zero
    for i in range(8):
        corner = _corner(i, x, y, z)
        rise = dot3(down, corner)
        dist = height + rise
        active = (dist <= reach) & (rise <= 0.0) & (found < 4.0)
        if any_(active):
            slot0 = _take(active & (found < 0.5), slot0, dist, corner)
            slot1 = _take(active & (found > 0.5) & (found < 1.5), slot1, dist, corner)
            slot2 = _take(active & (found > 1.5) & (found < 2.5), slot2, dist, corner)
            slot3 = _take(active & (found > 2.5), slot3, dist, corner)
            found = found + select(active, 1.0, zero)
    used = 0
    frame = frame_of(n)
    for k in range(4):
        active = found > k + 0.5
        if any_(active):
            slot = slot0 if k == 0 else (slot1 if k == 1 else (slot2 if k == 2 else slot3))
            point = add3(mat_vec(mat, (slot[1], slot[2], slot[3])), centre)
            put_contact(m, d, p, c + k, active, slot[0], add_scaled3(point, n, -0.5 * slot[0]), frame)
            used = k + 1
    return used

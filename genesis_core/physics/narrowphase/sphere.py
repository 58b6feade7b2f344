"""Contacts of spheres with spheres, capsules, cylinders and boxes: one each.

After MuJoCo's `engine_collision_primitive.c` and `engine_collision_box.c`.
"""

from genesis_core.lanes import (
    add3,
    add_scaled3,
    any_,
    cross,
    dot3,
    fabs,
    inline,
    lane,
    load3,
    load9,
    mat_vec,
    matT_vec,
    norm3,
    not_,
    param,
    scale3,
    select,
    select3,
    sqrt,
    sub3,
)
from genesis_core.physics.narrowphase.common import MINVAL, axis_z, clip, frame_of, put_contact, size_of, unit3


@inline
def two_spheres(centre1, radius1, z1, centre2, radius2, z2, reach):
    """(active, distance, position, normal) of two spheres; z1 and z2 give a normal to concentric ones."""
    dif = sub3(centre2, centre1)
    square = dot3(dif, dif)
    limit = reach + radius1 + radius2
    active = square <= limit * limit
    length = sqrt(square)
    same = length < MINVAL
    normal = scale3(dif, 1.0 / select(same, 1.0, length))
    if any_(active & same):
        side = cross(z1, z2)
        normal = select3(same, unit3(side, norm3(side)), normal)
    dist = length - radius1 - radius2
    return active, dist, add_scaled3(centre1, normal, radius1 + 0.5 * dist), normal


@inline
def sphere_sphere(m, d, p, c):
    """One contact."""
    g1, g2 = m.pair_geom1[p], m.pair_geom2[p]
    active, dist, pos, normal = two_spheres(
        load3(d.geom_xpos, 3 * g1),
        size_of(m, g1, 0),
        axis_z(d, g1),
        load3(d.geom_xpos, 3 * g2),
        size_of(m, g2, 0),
        axis_z(d, g2),
        param(m.pair_reach, p),
    )
    if not any_(active):
        return 0
    put_contact(m, d, p, c, active, dist, pos, frame_of(normal))
    return 1


@inline
def sphere_capsule(m, d, p, c):
    """One contact, with the sphere around the point of the capsule's segment that is nearest to the sphere."""
    g1, g2 = m.pair_geom1[p], m.pair_geom2[p]
    centre1, centre2, axis = load3(d.geom_xpos, 3 * g1), load3(d.geom_xpos, 3 * g2), axis_z(d, g2)
    half = size_of(m, g2, 1)
    along = clip(dot3(axis, sub3(centre1, centre2)), -half, half)
    active, dist, pos, normal = two_spheres(
        centre1,
        size_of(m, g1, 0),
        axis_z(d, g1),
        add_scaled3(centre2, axis, along),
        size_of(m, g2, 0),
        axis,
        param(m.pair_reach, p),
    )
    if not any_(active):
        return 0
    put_contact(m, d, p, c, active, dist, pos, frame_of(normal))
    return 1


@inline
def sphere_cylinder(m, d, p, c):
    """One contact: with the round side, a flat cap, or the rim between them."""
    g1, g2 = m.pair_geom1[p], m.pair_geom2[p]
    centre1, centre2, axis = load3(d.geom_xpos, 3 * g1), load3(d.geom_xpos, 3 * g2), axis_z(d, g2)
    radius1, radius2, half = size_of(m, g1, 0), size_of(m, g2, 0), size_of(m, g2, 1)
    reach = param(m.pair_reach, p)
    dif = sub3(centre1, centre2)
    along = dot3(axis, dif)
    out = add_scaled3(dif, axis, -along)
    square = dot3(out, out)
    away = sqrt(square)
    side, cap = fabs(along) < half, square < radius2 * radius2
    # the centre inside: the nearer surface
    cap_nearer = half - fabs(along) < radius2 - away
    inside = side & cap
    side, cap = side & not_(inside & cap_nearer), cap & not_(inside & not_(cap_nearer))
    up = along > 0.0
    # round side: a sphere on the axis; rim: a point
    rim = scale3(out, radius2 / select(away > 0.0, away, 1.0))
    rim = add_scaled3(rim, axis, select(up, half, -half))
    other = select3(side, scale3(axis, along), rim)
    active, dist, pos, normal = two_spheres(
        centre1,
        radius1,
        axis_z(d, g1),
        add3(centre2, other),
        select(side, radius2, 0.0),
        axis,
        reach,
    )
    flat = cap & not_(side)
    if any_(flat):
        outward = select3(up, axis, (-axis[0], -axis[1], -axis[2]))
        height = dot3(dif, outward) - half - radius1
        dist = select(flat, height, dist)
        pos = select3(flat, add_scaled3(centre1, outward, -0.5 * height - radius1), pos)
        normal = select3(flat, (-outward[0], -outward[1], -outward[2]), normal)
        active = select(flat, height <= reach, active)
    if not any_(active):
        return 0
    put_contact(m, d, p, c, active, dist, pos, frame_of(normal))
    return 1


@inline
def _nearer(best, distance, face, direction):
    """The nearer of two faces of a box: (distance, outward direction in x, y, z)."""
    take = best[0] > distance
    x = select(take, direction if face == 0 else 0.0, best[1])
    y = select(take, direction if face == 1 else 0.0, best[2])
    z = select(take, direction if face == 2 else 0.0, best[3])
    return select(take, distance, best[0]), x, y, z


@inline
def sphere_in_box_frame(centre, radius, size, reach):
    """(active, distance, position, normal) of a sphere and a box, all in the box's frame; the normal points inwards."""
    clamped = (
        clip(centre[0], -size[0], size[0]),
        clip(centre[1], -size[1], size[1]),
        clip(centre[2], -size[2], size[2]),
    )
    dif = sub3(clamped, centre)
    away = norm3(dif)
    active = away - radius <= reach
    inside = away <= MINVAL
    normal = scale3(dif, 1.0 / select(inside, 1.0, away))
    pos = scale3(add3(clamped, add_scaled3(centre, normal, radius)), 0.5)
    if any_(active & inside):
        # out through the nearest face; ties go to the face that comes first: -x, +x, -y, +y, -z, +z
        zero = lane(away, 0.0)
        best = ((size[0] + size[1] + size[2]) * 2.0, zero, zero, zero)
        for k in range(3):
            best = _nearer(best, fabs(-size[k] - centre[k]), k, 1.0)
            best = _nearer(best, fabs(size[k] - centre[k]), k, -1.0)
        direction = (best[1], best[2], best[3])
        normal = select3(inside, direction, normal)
        pos = select3(inside, add_scaled3(centre, direction, 0.5 * (radius - best[0])), pos)
        away = select(inside, -best[0], away)
    return active, away - radius, pos, normal


@inline
def sphere_box(m, d, p, c):
    """One contact."""
    g1, g2 = m.pair_geom1[p], m.pair_geom2[p]
    centre2, mat = load3(d.geom_xpos, 3 * g2), load9(d.geom_xmat, 9 * g2)
    centre = matT_vec(mat, sub3(load3(d.geom_xpos, 3 * g1), centre2))
    size = (size_of(m, g2, 0), size_of(m, g2, 1), size_of(m, g2, 2))
    active, dist, pos, normal = sphere_in_box_frame(centre, size_of(m, g1, 0), size, param(m.pair_reach, p))
    if not any_(active):
        return 0
    put_contact(m, d, p, c, active, dist, add3(mat_vec(mat, pos), centre2), frame_of(mat_vec(mat, normal)))
    return 1

"""Poses of bodies, joints, geoms and sites from the positions (mj_kinematics)."""

from __future__ import annotations

from genesis_core.lanes import (
    add3,
    add_scaled3,
    inline,
    kernel,
    lane,
    load,
    load3,
    load4,
    param,
    param3,
    param4,
    quat_column,
    quat_mul,
    quat_normalize,
    quat_renormalize,
    quat_rotate,
    quat_to_mat,
    quat_turn,
    scale3,
    sincos,
    store3,
    store4,
    store9,
    sub3,
)

FREE, BALL, SLIDE, HINGE = 0, 1, 2, 3  # `kind <= BALL`: has a quaternion


@inline
def joint_axis(m, j, quat):
    """Axis of joint j in the world, of a body turned by quat before the joint moves."""
    k = m.jnt_along[j]
    if k < 3:
        return scale3(quat_column(quat, k), param(m.jnt_axis, 3 * j + k))
    return quat_rotate(quat, param3(m.jnt_axis, j))


@inline
def turned_by_joint(m, d, j, quat):
    """The orientation after hinge j or ball j."""
    q = m.jnt_qposadr[j]
    if m.jnt_type[j] == BALL:
        return quat_mul(quat, quat_normalize(load4(d.qpos, q)))
    s, c = sincos(0.5 * (load(d.qpos, q) - param(m.qpos0, q)))
    k = m.jnt_along[j]
    if k < 3:
        return quat_turn(quat, k, c, s * param(m.jnt_axis, 3 * j + k))
    axis = param3(m.jnt_axis, j)
    return quat_mul(quat, (c, axis[0] * s, axis[1] * s, axis[2] * s))


@inline
def past_joint(m, d, j, pos, quat):
    """Pose of a body after its joint j, from the pose before; writes xanchor and xaxis."""
    anchor = pos
    central = m.jnt_central[j]
    local = param3(m.jnt_pos, j)
    if not central:
        anchor = add3(pos, quat_rotate(quat, local))
    axis = joint_axis(m, j, quat)
    store3(d.xanchor, 3 * j, anchor)
    store3(d.xaxis, 3 * j, axis)
    if m.jnt_type[j] == SLIDE:
        q = m.jnt_qposadr[j]
        return add_scaled3(pos, axis, load(d.qpos, q) - param(m.qpos0, q)), quat
    quat = turned_by_joint(m, d, j, quat)
    if not central:
        pos = sub3(anchor, quat_rotate(quat, local))
    return pos, quat


@kernel
def body_poses(m, d):
    """xpos, xquat, xanchor and xaxis of all bodies and joints; quaternions of the state are used normalised."""
    one = lane(d, 1.0)
    zero = lane(d, 0.0)
    store3(d.xpos, 0, (zero, zero, zero))
    store4(d.xquat, 0, (one, zero, zero, zero))
    for b in range(1, m.nbody):
        first = m.body_jntadr[b]
        number = m.body_jntnum[b]
        if number == 1 and m.jnt_type[first] == FREE:
            q = m.jnt_qposadr[first]
            pos = load3(d.qpos, q)
            quat = quat_normalize(load4(d.qpos, q + 3))
            store3(d.xanchor, 3 * first, pos)
            store3(d.xaxis, 3 * first, (zero, zero, one))
        else:
            p = m.body_parentid[b]
            mocap = m.body_mocapid[b]
            if mocap >= 0:
                offset = load3(d.mocap_pos, 3 * mocap)
                turn = quat_normalize(load4(d.mocap_quat, 4 * mocap))
            else:
                offset = param3(m.body_pos, b)
                turn = param4(m.body_quat, b)
            if p == 0:
                pos = offset
                quat = turn
            else:
                parent = load4(d.xquat, 4 * p)
                pos = add3(load3(d.xpos, 3 * p), quat_rotate(parent, offset))
                quat = parent
                if m.body_turned[b] or mocap >= 0:
                    quat = quat_mul(parent, turn)
            for j in range(first, first + number):
                pos, quat = past_joint(m, d, j, pos, quat)
            quat = quat_renormalize(quat)
        store3(d.xpos, 3 * b, pos)
        store4(d.xquat, 4 * b, quat)


@kernel
def geom_pose(m, d, g):
    """geom_xpos and geom_xmat of one geom."""
    b = m.geom_bodyid[g]
    quat = load4(d.xquat, 4 * b)
    store3(d.geom_xpos, 3 * g, add3(load3(d.xpos, 3 * b), quat_rotate(quat, param3(m.geom_pos, g))))
    store9(d.geom_xmat, 9 * g, quat_to_mat(quat_mul(quat, param4(m.geom_quat, g))))


@kernel
def collision_geoms(m, d):
    """Poses of the geoms that can touch something."""
    for k in range(m.ncolgeom):
        geom_pose(m, d, m.colgeom[k])


@kernel
def all_geoms(m, d):
    """Poses of every geom."""
    for g in range(m.ngeom):
        geom_pose(m, d, g)


@kernel
def all_sites(m, d):
    """site_xpos and site_xmat of every site."""
    for k in range(m.nsite):
        b = m.site_bodyid[k]
        quat = load4(d.xquat, 4 * b)
        store3(d.site_xpos, 3 * k, add3(load3(d.xpos, 3 * b), quat_rotate(quat, param3(m.site_pos, k))))
        store9(d.site_xmat, 9 * k, quat_to_mat(quat_mul(quat, param4(m.site_quat, k))))

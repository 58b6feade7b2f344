"""Actuators on joints: length and velocity, gain and bias, limits (mj_transmission, mj_fwdActuation)."""

from __future__ import annotations

from genesis_core.lanes import (
    dot3,
    kernel,
    lane,
    load,
    load4,
    maximum,
    minimum,
    param,
    quat_conj,
    quat_normalize,
    quat_rotate,
    quat_to_vel,
    select,
    store,
)
from genesis_core.physics.bias import DISABLE_GRAVITY
from genesis_core.physics.kinematics import BALL, FREE

DISABLE_CLAMPCTRL = 1 << 8
DISABLE_ACTUATION = 1 << 11


@kernel
def rotational_gear(m, d, u, first, q):
    """The axis of actuator u on a ball joint (or on the rotation of a free joint) in the child's frame."""
    gear = (
        param(m.actuator_gear, 6 * u + first),
        param(m.actuator_gear, 6 * u + first + 1),
        param(m.actuator_gear, 6 * u + first + 2),
    )
    if m.actuator_inparent[u]:
        return quat_rotate(quat_conj(quat_normalize(load4(d.qpos, q))), gear)
    return gear


@kernel
def transmission(m, d, u):
    """(length, velocity) of actuator u."""
    j = m.actuator_jntid[u]
    q = m.jnt_qposadr[j]
    dof = m.jnt_dofadr[j]
    kind = m.jnt_type[j]
    if kind > BALL:
        gear = param(m.actuator_gear, 6 * u)
        return gear * load(d.qpos, q), gear * load(d.qvel, dof)
    if kind == FREE:
        axis = rotational_gear(m, d, u, 3, q + 3)
        rate = lane(d, 0.0)
        for k in range(3):
            rate = rate + param(m.actuator_gear, 6 * u + k) * load(d.qvel, dof + k)
        spin = (load(d.qvel, dof + 3), load(d.qvel, dof + 4), load(d.qvel, dof + 5))
        return lane(d, 0.0), rate + dot3(axis, spin)
    axis = rotational_gear(m, d, u, 0, q)
    spin = (load(d.qvel, dof), load(d.qvel, dof + 1), load(d.qvel, dof + 2))
    return dot3(quat_to_vel(quat_normalize(load4(d.qpos, q))), axis), dot3(axis, spin)


@kernel
def clamped_ctrl(m, d, u):
    """Control u within its range."""
    x = load(d.ctrl, u)
    if m.actuator_ctrllimited[u] and not (m.disableflags & DISABLE_CLAMPCTRL):
        x = maximum(minimum(x, param(m.actuator_ctrlrange, 2 * u + 1)), param(m.actuator_ctrlrange, 2 * u))
    return x


@kernel
def actuator_forces(m, d):
    """actuator_force = gain * ctrl + bias within the force range."""
    for u in range(m.nu):
        if m.actuator_disabled[u] or m.actuator_jntid[u] < 0:
            store(d.actuator_force, u, lane(d, 0.0))
            continue
        length, velocity = transmission(m, d, u)
        gain = param(m.actuator_gainprm, 3 * u)
        if m.actuator_gaintype[u] == 1:
            gain = (
                gain + param(m.actuator_gainprm, 3 * u + 1) * length + param(m.actuator_gainprm, 3 * u + 2) * velocity
            )
        f = gain * clamped_ctrl(m, d, u)
        if m.actuator_biastype[u] == 1:
            kp = param(m.actuator_biasprm, 3 * u + 1)
            kv = param(m.actuator_biasprm, 3 * u + 2)
            f = f + (param(m.actuator_biasprm, 3 * u) + kp * length + kv * velocity)
        if m.actuator_forcelimited[u]:
            f = maximum(minimum(f, param(m.actuator_forcerange, 2 * u + 1)), param(m.actuator_forcerange, 2 * u))
        store(d.actuator_force, u, f)


@kernel
def joint_forces(m, d):
    """qfrc_actuator: actuator forces at the joints, actuated gravity compensation, limits of the joints' total."""
    zero = lane(d, 0.0)
    for i in range(m.nv):
        store(d.qfrc_actuator, i, zero)
    for u in range(m.nu):
        j = m.actuator_jntid[u]
        if j < 0 or m.actuator_disabled[u]:
            continue
        dof = m.jnt_dofadr[j]
        f = load(d.actuator_force, u)
        kind = m.jnt_type[j]
        if kind <= BALL:
            first = 0
            q = m.jnt_qposadr[j]
            if kind == FREE:
                for k in range(3):
                    x = load(d.qfrc_actuator, dof + k) + param(m.actuator_gear, 6 * u + k) * f
                    store(d.qfrc_actuator, dof + k, x)
                dof += 3
                q += 3
                first = 3
            axis = rotational_gear(m, d, u, first, q)
            store(d.qfrc_actuator, dof, load(d.qfrc_actuator, dof) + axis[0] * f)
            store(d.qfrc_actuator, dof + 1, load(d.qfrc_actuator, dof + 1) + axis[1] * f)
            store(d.qfrc_actuator, dof + 2, load(d.qfrc_actuator, dof + 2) + axis[2] * f)
        else:
            store(d.qfrc_actuator, dof, load(d.qfrc_actuator, dof) + param(m.actuator_gear, 6 * u) * f)
    gravcomp = m.ngravcomp > 0 and not (m.disableflags & DISABLE_GRAVITY)
    for j in range(m.njnt):
        dof = m.jnt_dofadr[j]
        if gravcomp and m.jnt_actgravcomp[j]:
            number = 1
            if m.jnt_type[j] == FREE:
                number = 6
            elif m.jnt_type[j] == BALL:
                number = 3
            for i in range(dof, dof + number):
                store(d.qfrc_actuator, i, load(d.qfrc_actuator, i) + load(d.qfrc_gravcomp, i))
        if m.jnt_actfrclimited[j]:
            f = load(d.qfrc_actuator, dof)
            f = maximum(minimum(f, param(m.jnt_actfrcrange, 2 * j + 1)), param(m.jnt_actfrcrange, 2 * j))
            store(d.qfrc_actuator, dof, f)


@kernel
def actuation(m, d):
    """actuator_force and qfrc_actuator."""
    zero = lane(d, 0.0)
    if m.nu == 0 or m.disableflags & DISABLE_ACTUATION:
        for u in range(m.nu):
            store(d.actuator_force, u, zero)
        for i in range(m.nv):
            store(d.qfrc_actuator, i, zero)
        return
    actuator_forces(m, d)
    joint_forces(m, d)


@kernel
def velocity_gain(m, d, u):
    """Derivative of actuator_force u by the actuator's velocity; 0 where it or the joint's total is at its limit."""
    slope = lane(d, 0.0)
    if m.actuator_biastype[u] == 1:
        slope = slope + param(m.actuator_biasprm, 3 * u + 2)
    if m.actuator_gaintype[u] == 1:
        slope = slope + param(m.actuator_gainprm, 3 * u + 2) * clamped_ctrl(m, d, u)
    if m.actuator_forcelimited[u]:
        f = load(d.actuator_force, u)
        low = param(m.actuator_forcerange, 2 * u)
        high = param(m.actuator_forcerange, 2 * u + 1)
        slope = select((f > low) & (f < high), slope, 0.0)
    j = m.actuator_jntid[u]
    if m.jnt_actfrclimited[j]:
        f = load(d.qfrc_actuator, m.jnt_dofadr[j])
        low = param(m.jnt_actfrcrange, 2 * j)
        high = param(m.jnt_actfrcrange, 2 * j + 1)
        slope = select((f > low) & (f < high), slope, 0.0)
    return slope

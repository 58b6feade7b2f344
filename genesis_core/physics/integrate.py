"""From accelerations to the next state (mj_Euler, mj_implicit, mj_advance)."""

from __future__ import annotations

from genesis_core.lanes import (
    kernel,
    lane,
    load,
    load3,
    load4,
    param,
    quat_integrate,
    store,
    store4,
)
from genesis_core.lanes.segment import segment
from genesis_core.physics.actuation import DISABLE_ACTUATION, rotational_gear, velocity_gain
from genesis_core.physics.gyroscopic import free_accelerations, take_free_accelerations
from genesis_core.physics.kinematics import BALL, FREE
from genesis_core.physics.mass_matrix import factor, solve
from genesis_core.physics.passive import DISABLE_DAMPER, damping_slope

EULER, IMPLICITFAST = 0, 3


@kernel
def add_moment(m, d, u, scale):
    """H += scale * moment^T moment of actuator u, within the pattern of M."""
    j = m.actuator_jntid[u]
    dof = m.jnt_dofadr[j]
    kind = m.jnt_type[j]
    if kind > BALL:
        g = param(m.actuator_gear, 6 * u)
        at = m.M_rowadr[dof] + m.M_rownnz[dof] - 1
        store(d.H, at, load(d.H, at) + scale * g * g)
        return
    number = 3
    if kind == FREE:
        number = 6
        for k in range(3):
            store(d.tmp, dof + k, param(m.actuator_gear, 6 * u + k))
        axis = rotational_gear(m, d, u, 3, m.jnt_qposadr[j] + 3)
    else:
        axis = rotational_gear(m, d, u, 0, m.jnt_qposadr[j])
    store(d.tmp, dof + number - 3, axis[0])
    store(d.tmp, dof + number - 2, axis[1])
    store(d.tmp, dof + number - 1, axis[2])
    for i in range(dof, dof + number):
        x = scale * load(d.tmp, i)
        for a in range(m.M_rowadr[i], m.M_rowadr[i] + m.M_rownnz[i]):
            c = m.M_colind[a]
            if c >= dof:
                store(d.H, a, load(d.H, a) + x * load(d.tmp, c))


@kernel
def implicit_matrix(m, d):
    """H = M - timestep * d(smooth forces)/d(velocity), without the terms of Coriolis forces."""
    h = m.timestep
    for k in range(m.nC):
        store(d.H, k, load(d.M, k))
    if not (m.disableflags & DISABLE_DAMPER):
        for i in range(m.nv):
            at = m.M_rowadr[i] + m.M_rownnz[i] - 1
            store(d.H, at, load(d.H, at) + h * damping_slope(m, d, i))
    if m.integrator == IMPLICITFAST and m.implicit_actuators and not (m.disableflags & DISABLE_ACTUATION):
        for u in range(m.nu):
            if m.actuator_jntid[u] >= 0 and not m.actuator_disabled[u]:
                add_moment(m, d, u, -h * velocity_gain(m, d, u))


@kernel
def advance_positions(m, d):
    """qpos moves along qvel for one timestep."""
    h = m.timestep
    for j in range(m.njnt):
        q = m.jnt_qposadr[j]
        dof = m.jnt_dofadr[j]
        kind = m.jnt_type[j]
        if kind == FREE:
            for k in range(3):
                store(d.qpos, q + k, load(d.qpos, q + k) + h * load(d.qvel, dof + k))
            q += 3
            dof += 3
        if kind <= BALL:
            store4(d.qpos, q, quat_integrate(load4(d.qpos, q), load3(d.qvel, dof), lane(d, h)))
        else:
            store(d.qpos, q, load(d.qpos, q) + h * load(d.qvel, dof))


@kernel
def implicit_acceleration(m, d):
    """tmp = H^-1 (smooth and constraint forces)."""
    implicit_matrix(m, d)
    for i in range(m.nv):
        store(d.tmp, i, load(d.qfrc_smooth, i) + load(d.qfrc_constraint, i))
    free_accelerations(m, d, d.tmp)
    factor(m, d.H, d.Hinv)
    solve(m, d.H, d.Hinv, d.tmp)
    take_free_accelerations(m, d, d.tmp)


@segment("md")
def integrate(m, d):
    """One timestep: velocities, then positions with the new velocities; remembers qacc for the solver's next start."""
    h = m.timestep
    if m.euler_implicit or m.integrator == IMPLICITFAST:
        implicit_acceleration(m, d)
        for i in range(m.nv):
            store(d.qvel, i, load(d.qvel, i) + h * load(d.tmp, i))
    else:
        for i in range(m.nv):
            store(d.qvel, i, load(d.qvel, i) + h * load(d.qacc, i))
    advance_positions(m, d)
    for i in range(m.nv):
        store(d.qacc_warmstart, i, load(d.qacc, i))

"""Blocks: from the stored state into a workspace, n steps, and back. One call runs many blocks without the GIL."""

from __future__ import annotations

from functools import partial

from genesis_core.lanes import all_, any_, kernel, lane, load, not_, select, store, take_ticket
from genesis_core.layout.counters import HAS_APPLIED, HAS_XFRC, NCON, NEED_CON, OVERFLOW
from genesis_core.physics.energy import energies
from genesis_core.physics.forward import forward, output_poses
from genesis_core.physics.integrate import integrate
from genesis_core.physics.kinematics import all_geoms, body_poses
from genesis_core.physics.reset import good, good_state, reset_lanes
from genesis_core.physics.solver import contact_forces

STEP, FORWARD, LOOK = 0, 1, 2  # modes: n steps; one evaluation; one evaluation that is left in the workspace
FREEZE = 1


@kernel
def copy_in(target, source, block, n):
    """Items of one block of a stored array into the workspace."""
    for i in range(n):
        store(target, i, load(source, block * n + i))


@kernel
def copy_out(target, source, block, n):
    """Items of the workspace into one block of a stored array."""
    for i in range(n):
        store(target, block * n + i, load(source, i))


@kernel
def load_state(m, d, s, b):
    """The stored state of block b."""
    copy_in(d.qpos, s.qpos, b, m.nq)
    copy_in(d.qvel, s.qvel, b, m.nv)
    copy_in(d.act, s.act, b, m.na)
    copy_in(d.ctrl, s.ctrl, b, m.nu)
    copy_in(d.mocap_pos, s.mocap_pos, b, 3 * m.nmocap)
    copy_in(d.mocap_quat, s.mocap_quat, b, 4 * m.nmocap)
    copy_in(d.eq_active, s.eq_active, b, m.neq)
    copy_in(d.qacc_warmstart, s.qacc_warmstart, b, m.nv)
    d.count[HAS_APPLIED] = s.has_applied
    d.count[HAS_XFRC] = s.has_xfrc
    if s.has_applied:
        copy_in(d.qfrc_applied, s.qfrc_applied, b, m.nv)
    if s.has_xfrc:
        copy_in(d.xfrc_applied, s.xfrc_applied, b, 6 * m.nbody)


@kernel
def store_state(m, d, s, b):
    """The state of block b after steps."""
    copy_out(s.qpos, d.qpos, b, m.nq)
    copy_out(s.qvel, d.qvel, b, m.nv)
    copy_out(s.act, d.act, b, m.na)
    copy_out(s.qacc_warmstart, d.qacc_warmstart, b, m.nv)


@kernel
def store_inputs(m, d, s, b):
    """What a reset inside a step has changed beyond the state."""
    copy_out(s.ctrl, d.ctrl, b, m.nu)
    copy_out(s.mocap_pos, d.mocap_pos, b, 3 * m.nmocap)
    copy_out(s.mocap_quat, d.mocap_quat, b, 4 * m.nmocap)
    copy_out(s.eq_active, d.eq_active, b, m.neq)
    if s.has_applied:
        copy_out(s.qfrc_applied, d.qfrc_applied, b, m.nv)
    if s.has_xfrc:
        copy_out(s.xfrc_applied, d.xfrc_applied, b, 6 * m.nbody)


@kernel
def publish(m, d, s, b):
    """Outputs of the last forward evaluation."""
    energies(m, d)
    copy_out(s.qacc, d.qacc, b, m.nv)
    copy_out(s.qacc_smooth, d.qacc_smooth, b, m.nv)
    copy_out(s.qfrc_bias, d.qfrc_bias, b, m.nv)
    copy_out(s.qfrc_passive, d.qfrc_passive, b, m.nv)
    copy_out(s.qfrc_actuator, d.qfrc_actuator, b, m.nv)
    copy_out(s.qfrc_constraint, d.qfrc_constraint, b, m.nv)
    copy_out(s.actuator_force, d.actuator_force, b, m.nu)
    copy_out(s.energy, d.energy, b, 2)
    ncon = lane(d, 0.0)
    for c in range(d.count[NCON]):
        ncon = ncon + load(d.con_active, c)
    store(s.ncon, b, ncon)
    store(s.nefc, b, load(d.nefc, 0))
    store(s.solver_niter, b, load(d.solver_niter, 0))


@kernel
def note_bad(m, d, s, b, bad, step):
    """Counts environments gone bad, and resets or freezes them."""
    s.touched[0] = 1
    store(s.bad, b, load(s.bad, b) + select(bad, 1.0, lane(d, 0.0)))
    if m.diverge_policy == FREEZE:
        store(s.frozen, b, select(bad, 1.0, load(s.frozen, b)))
        for i in range(m.nq):
            store(d.qpos, i, select(bad, load(s.qpos, b * m.nq + i), load(d.qpos, i)))
        for i in range(m.nv):
            store(d.qvel, i, select(bad, load(s.qvel, b * m.nv + i), load(d.qvel, i)))
            store(d.qacc_warmstart, i, select(bad, 0.0, load(d.qacc_warmstart, i)))
    else:
        reset_lanes(m, d, bad)
        store_inputs(m, d, s, b)
        store(s.reset_at, b, select(bad, lane(d, step + 1), load(s.reset_at, b)))


@kernel
def hold_frozen(m, d, s, b):
    """Frozen environments keep the state they were frozen in."""
    frozen = load(s.frozen, b) > 0.0
    for i in range(m.nq):
        store(d.qpos, i, select(frozen, load(s.qpos, b * m.nq + i), load(d.qpos, i)))
    for i in range(m.nv):
        store(d.qvel, i, select(frozen, load(s.qvel, b * m.nv + i), load(d.qvel, i)))
        store(d.qacc_warmstart, i, select(frozen, 0.0, load(d.qacc_warmstart, i)))


@kernel
def note_overflow(d, s, b):
    """Leaves word of what was needed; the host makes room and calls again."""
    s.touched[1] = 1
    s.need[b] = max(s.need[b], d.count[NEED_CON])


@kernel
def run_block(m, d, s, b, n, mode):
    """Steps `s.done[b]` .. n of block b; in the modes FORWARD and LOOK one forward evaluation.

    On overflow it stops in front of the step that did not fit.
    """
    load_state(m, d, s, b)
    step = s.done[b]
    while step < n:
        frozen = load(s.frozen, b) > 0.0
        fit = good_state(m, d) | frozen
        if mode == STEP and not all_(fit):
            note_bad(m, d, s, b, not_(fit), step)
            frozen = load(s.frozen, b) > 0.0
        tries = 0
        while tries < 2:
            forward(m, d)
            tries += 1
            fit = good(d.qacc, m.nv) | frozen
            if mode != STEP or d.count[OVERFLOW] or all_(fit):
                tries = 2
            elif tries < 2:
                note_bad(m, d, s, b, not_(fit), step)
                frozen = load(s.frozen, b) > 0.0
        if d.count[OVERFLOW]:
            note_overflow(d, s, b)
            break
        step += 1
        if mode == LOOK:
            contact_forces(m, d)
        elif step == n:
            publish(m, d, s, b)
        if mode == STEP:
            integrate(m, d)
            if any_(frozen):
                hold_frozen(m, d, s, b)
    s.done[b] = step
    if mode == STEP:
        store_state(m, d, s, b)


@partial(kernel, alone=True)
def run_blocks(m, d, s, n, mode):
    """Works on all blocks that this thread can get hold of."""
    b = take_ticket(s.cursor, 0)
    while b < s.nblock:
        if s.done[b] < n:
            run_block(m, d, s, b, n, mode)
        b = take_ticket(s.cursor, 0)


@partial(kernel, alone=True)
def pose_block(m, d, s, b, everything):
    """Poses of all geoms (and of everything else that moves) in block b's current state, left in the workspace."""
    load_state(m, d, s, b)
    if everything:
        output_poses(m, d)
    else:
        body_poses(m, d)
        all_geoms(m, d)

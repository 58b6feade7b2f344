"""Initial states, and the check for states that have become useless (mj_resetData, mj_checkPos/Vel/Acc)."""

from __future__ import annotations

from genesis_core.lanes import fabs, kernel, load, load3, load4, param, param3, param4, select, store, true_

LIMIT = 1e10  # mjMAXVAL: beyond it, or NaN, a number is bad


@kernel
def reset_lanes(m, d, mask):
    """Puts the lanes of the mask into the model's initial state, with controls and applied forces at zero."""
    for i in range(m.nq):
        store(d.qpos, i, select(mask, param(m.qpos0, i), load(d.qpos, i)))
    for i in range(m.nv):
        store(d.qvel, i, select(mask, 0.0, load(d.qvel, i)))
        store(d.qacc_warmstart, i, select(mask, 0.0, load(d.qacc_warmstart, i)))
        store(d.qfrc_applied, i, select(mask, 0.0, load(d.qfrc_applied, i)))
    for i in range(m.na):
        store(d.act, i, select(mask, 0.0, load(d.act, i)))
    for i in range(m.nu):
        store(d.ctrl, i, select(mask, 0.0, load(d.ctrl, i)))
    for i in range(6 * m.nbody):
        store(d.xfrc_applied, i, select(mask, 0.0, load(d.xfrc_applied, i)))
    for i in range(m.nmocap):
        pos = param3(m.body_pos, m.mocap_bodyid[i])
        quat = param4(m.body_quat, m.mocap_bodyid[i])
        old = load3(d.mocap_pos, 3 * i)
        turn = load4(d.mocap_quat, 4 * i)
        for k in range(3):
            store(d.mocap_pos, 3 * i + k, select(mask, pos[k], old[k]))
        for k in range(4):
            store(d.mocap_quat, 4 * i + k, select(mask, quat[k], turn[k]))
    for i in range(m.neq):
        store(d.eq_active, i, select(mask, param(m.eq_active0, i), load(d.eq_active, i)))


@kernel
def good(p, n):
    """Lanes in which all n items are finite and of sane size."""
    ok = true_(p)
    for i in range(n):
        ok = ok & (fabs(load(p, i)) <= LIMIT)
    return ok


@kernel
def good_state(m, d):
    """Lanes whose positions and velocities can be simulated."""
    return good(d.qpos, m.nq) & good(d.qvel, m.nv)

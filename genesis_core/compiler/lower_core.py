"""Lowers bodies, joints, degrees of freedom, geoms, sites and actuators."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from genesis_core.layout.derived import derive
from genesis_core.layout.enums import DisableFlag, Integrator, JointType

COPIED_INTS = """
    body_parentid body_rootid body_weldid body_mocapid body_jntnum body_jntadr body_dofnum body_dofadr body_treeid
    jnt_type jnt_qposadr jnt_dofadr jnt_bodyid jnt_actfrclimited jnt_actgravcomp
    dof_bodyid dof_jntid dof_parentid dof_treeid M_rowadr M_rownnz M_colind
    geom_type geom_bodyid site_bodyid actuator_ctrllimited
""".split()  # noqa: SIM905
COPIED_REALS = """
    body_pos body_quat body_ipos body_iquat body_mass body_inertia body_subtreemass body_gravcomp
    jnt_pos jnt_axis jnt_stiffness jnt_actfrcrange qpos0 qpos_spring dof_armature dof_damping
    geom_pos geom_quat geom_size site_pos site_quat actuator_ctrlrange
""".split()  # noqa: SIM905
SIZES = ("nq", "nv", "nu", "na", "nbody", "njnt", "ngeom", "nsite", "nmocap", "neq", "ntree", "nC", "ngravcomp")
ON_JOINT = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))


def lower_core(mj: mujoco.MjModel, out: dict[str, Any]) -> None:
    """Fills the fields of `layout.fields_core`."""
    for name in SIZES:
        out[name] = int(getattr(mj, name))
    out["timestep"] = float(mj.opt.timestep)
    out["integrator"] = int(mj.opt.integrator)
    out["disableflags"] = int(mj.opt.disableflags)
    out["enableflags"] = int(mj.opt.enableflags)
    out["diverge_policy"] = 0
    out["gravity"] = np.array(mj.opt.gravity, float)
    for name in COPIED_INTS:
        out[name] = np.array(getattr(mj, name), np.int64)
    for name in COPIED_REALS:
        out[name] = np.array(getattr(mj, name), float)
    _same_frames(mj, out)
    derive(out, mj.njnt, mj.nbody)
    _joints(mj, out)
    _geoms(mj, out)
    _actuators(mj, out)
    _reflect_actuators(mj, out)
    _integrator(mj, out)


def _same_frames(mj: mujoco.MjModel, out: dict[str, Any]) -> None:
    """Frames that MuJoCo takes as equal to the body's or its inertia's frame, though their last digits may differ."""
    body, inertia, body_turn, inertia_turn = 1, 2, 3, 4  # mjtSameFrame
    same = mj.body_sameframe
    out["body_ipos"][same == body] = 0.0
    out["body_iquat"][(same == body) | (same == body_turn)] = (1.0, 0.0, 0.0, 0.0)
    for kind in ("geom", "site"):
        same = getattr(mj, f"{kind}_sameframe")
        bodies = getattr(mj, f"{kind}_bodyid")
        pos, quat = out[f"{kind}_pos"], out[f"{kind}_quat"]
        pos[same == body] = 0.0
        pos[same == inertia] = out["body_ipos"][bodies[same == inertia]]
        quat[(same == body) | (same == body_turn)] = (1.0, 0.0, 0.0, 0.0)
        like_inertia = (same == inertia) | (same == inertia_turn)
        quat[like_inertia] = out["body_iquat"][bodies[like_inertia]]


def _joints(mj: mujoco.MjModel, out: dict[str, Any]) -> None:
    out["jnt_stiffnesspoly"] = np.array(mj.jnt_stiffnesspoly, float)
    out["jnt_springs"] = ((mj.jnt_stiffness != 0) | (mj.jnt_stiffnesspoly != 0).any(axis=1)).astype(np.int64)
    out["dof_dampingpoly"] = np.array(mj.dof_dampingpoly, float)
    first_joint = mj.dof_jntid[mj.tree_dofadr[mj.dof_treeid]]
    out["dof_lead"] = np.where(mj.jnt_type[first_joint] == JointType.FREE, 3, 0).astype(np.int64)


def _geoms(mj: mujoco.MjModel, out: dict[str, Any]) -> None:
    """Geoms that can never touch anything keep out of the step."""
    collides = (mj.geom_contype != 0) | (mj.geom_conaffinity != 0)
    collides[mj.pair_geom1] = True
    collides[mj.pair_geom2] = True
    if mj.opt.disableflags & (DisableFlag.CONTACT | DisableFlag.CONSTRAINT):
        collides[:] = False
    out["colgeom"] = np.flatnonzero(collides).astype(np.int64)
    out["ncolgeom"] = int(collides.sum())


def _actuators(mj: mujoco.MjModel, out: dict[str, Any]) -> None:
    """One entry per control. Actuators that are not simulated (see `support.py`) push on nothing."""
    nu = mj.nu
    ints = {name: np.zeros(nu, np.int64) for name in ("gaintype", "biastype", "forcelimited", "inparent")}
    ints["jntid"] = np.full(nu, -1, np.int64)
    ints["disabled"] = np.ones(nu, np.int64)
    reals = {"gainprm": np.zeros((nu, 3)), "biasprm": np.zeros((nu, 3)), "forcerange": np.zeros((nu, 2))}
    reals["gear"] = np.zeros((nu, 6))
    for k in range(mj.nactuator):
        if mj.actuator_ctrlnum[k] != 1:
            continue
        u = int(mj.actuator_ctrladr[k])
        affine = mj.actuator_gaintype[k] <= 1 and mj.actuator_biastype[k] <= 1 and mj.actuator_dyntype[k] == 0
        if mj.actuator_trntype[k] not in ON_JOINT or not affine:
            continue
        group = int(mj.actuator_group[k])
        off = 0 <= group <= 30 and bool((mj.opt.disableactuator >> group) & 1)
        ints["jntid"][u] = mj.actuator_trnid[k, 0]
        ints["inparent"][u] = mj.actuator_trntype[k] == ON_JOINT[1]
        ints["disabled"][u] = off
        ints["gaintype"][u], ints["biastype"][u] = mj.actuator_gaintype[k], mj.actuator_biastype[k]
        ints["forcelimited"][u] = mj.actuator_forcelimited[k]
        reals["gainprm"][u], reals["biasprm"][u] = mj.actuator_gainprm[k, :3], mj.actuator_biasprm[k, :3]
        reals["forcerange"][u] = mj.actuator_forcerange[k]
        reals["gear"][u] = mj.actuator_gear[mj.actuator_outadr[k]]
    out.update({f"actuator_{name}": value for name, value in (ints | reals).items()})
    moves = (ints["gaintype"] == 1) & (reals["gainprm"][:, 2] != 0) | (
        (ints["biastype"] == 1) & (reals["biasprm"][:, 2] != 0)
    )
    out["implicit_actuators"] = int((moves & (ints["disabled"] == 0)).any())


def _reflect_actuators(mj: mujoco.MjModel, out: dict[str, Any]) -> None:
    """Armature and damping of actuators count at their joint, scaled by gear squared (as mj_actuatorDamping)."""
    for k in range(mj.nactuator):
        if mj.actuator_trntype[k] not in ON_JOINT:
            continue
        joint = int(mj.actuator_trnid[k, 0])
        if mj.jnt_type[joint] not in (JointType.HINGE, JointType.SLIDE):
            continue
        dof = int(mj.jnt_dofadr[joint])
        gear2 = float(mj.actuator_gear[mj.actuator_outadr[k], 0]) ** 2
        out["dof_armature"][dof] += gear2 * mj.actuator_armature[k]
        out["dof_damping"][dof] += gear2 * mj.actuator_damping[k]
        out["dof_dampingpoly"][dof] += gear2 * mj.actuator_dampingpoly[k]


def _integrator(mj: mujoco.MjModel, out: dict[str, Any]) -> None:
    out["integrator"] = int(_simulated_integrator(mj))
    damped = bool((out["dof_damping"] > 0).any() or (out["dof_dampingpoly"] != 0).any())
    off = mj.opt.disableflags & (DisableFlag.EULERDAMP | DisableFlag.DAMPER)
    out["euler_implicit"] = int(out["integrator"] == Integrator.EULER and damped and not off)
    out["has_dampingpoly"] = int((out["dof_dampingpoly"] != 0).any())
    out["freebody_jnt"] = _free_bodies(mj, out["integrator"])
    out["nfreebody"] = len(out["freebody_jnt"])
    ids = np.full(mj.nmocap, 0, np.int64)
    for body, mocap in enumerate(mj.body_mocapid):
        if mocap >= 0:
            ids[mocap] = body
    out["mocap_bodyid"] = ids
    out["eq_active0"] = np.array(mj.eq_active0, float)


def _simulated_integrator(mj: mujoco.MjModel) -> Integrator:
    """The integrator that stands in for the model's (`support.py` tells the user where it is another)."""
    implicit = mj.opt.integrator in (Integrator.IMPLICIT, Integrator.IMPLICITFAST)
    return Integrator.IMPLICITFAST if implicit else Integrator.EULER


def _free_bodies(mj: mujoco.MjModel, integrator: int) -> np.ndarray:
    """Joints of bodies that float alone (trees of one free joint), under the implicit integrators."""
    if integrator != Integrator.IMPLICITFAST:
        return np.zeros(0, np.int64)
    alone = [
        j
        for j in range(mj.njnt)
        if mj.jnt_type[j] == JointType.FREE and (mj.dof_treeid == mj.dof_treeid[mj.jnt_dofadr[j]]).sum() == 6
    ]
    return np.array(alone, np.int64)

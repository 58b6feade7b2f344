"""Lowers bodies, joints, degrees of freedom, geoms, sites and actuators."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from genesis_core.layout.enums import DisableFlag, JointType

COPIED_INTS = """
    body_parentid body_rootid body_weldid body_mocapid body_jntnum body_jntadr body_dofnum body_dofadr body_treeid
    jnt_type jnt_qposadr jnt_dofadr jnt_bodyid jnt_actfrclimited jnt_actgravcomp
    dof_bodyid dof_jntid dof_parentid dof_treeid M_rowadr M_rownnz M_colind
    geom_type geom_bodyid site_bodyid actuator_ctrllimited actuator_forcelimited
""".split()
COPIED_REALS = """
    body_pos body_quat body_ipos body_iquat body_mass body_inertia body_subtreemass body_gravcomp
    jnt_pos jnt_axis jnt_stiffness jnt_actfrcrange qpos0 qpos_spring dof_armature dof_damping
    geom_pos geom_quat geom_size site_pos site_quat actuator_ctrlrange actuator_forcerange actuator_gear
""".split()
SIZES = ("nq", "nv", "nu", "na", "nbody", "njnt", "ngeom", "nsite", "nmocap", "neq", "ntree", "nC", "ngravcomp")


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
    _joints(mj, out)
    _geoms(mj, out)
    _actuators(mj, out)


def _joints(mj: mujoco.MjModel, out: dict[str, Any]) -> None:
    out["jnt_stiffnesspoly"] = np.array(mj.jnt_stiffnesspoly, float)
    out["jnt_springs"] = ((mj.jnt_stiffness != 0) | (mj.jnt_stiffnesspoly != 0).any(axis=1)).astype(np.int64)
    out["dof_dampingpoly"] = np.array(mj.dof_dampingpoly, float)
    out["has_dampingpoly"] = int((mj.dof_dampingpoly != 0).any())


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
    joint = mj.actuator_trnid[:, 0].astype(np.int64)
    kind = mj.actuator_trntype
    on_joint = (kind == mujoco.mjtTrn.mjTRN_JOINT) | (kind == mujoco.mjtTrn.mjTRN_JOINTINPARENT)
    # Other transmissions are reported as unsupported and push on nothing.
    out["actuator_jntid"] = np.where(on_joint, joint, -1)
    out["actuator_inparent"] = (kind == mujoco.mjtTrn.mjTRN_JOINTINPARENT).astype(np.int64)
    out["actuator_gaintype"] = np.array(mj.actuator_gaintype, np.int64)
    out["actuator_biastype"] = np.array(mj.actuator_biastype, np.int64)
    out["actuator_gainprm"] = np.array(mj.actuator_gainprm[:, :3], float)
    out["actuator_biasprm"] = np.array(mj.actuator_biasprm[:, :3], float)
    group = np.clip(mj.actuator_group, 0, 30)
    off = ((mj.opt.disableactuator >> group) & 1).astype(bool) & (mj.actuator_group >= 0) & (mj.actuator_group <= 30)
    out["actuator_disabled"] = off.astype(np.int64)
    affine_gain = (mj.actuator_gaintype == 1) & (mj.actuator_gainprm[:, 2] != 0)
    affine_bias = (mj.actuator_biastype == 1) & (mj.actuator_biasprm[:, 2] != 0)
    out["implicit_actuators"] = int((on_joint & (affine_gain | affine_bias)).any())


def hinge_or_slide(kind: int) -> bool:
    """Whether a joint has one degree of freedom."""
    return kind in (JointType.HINGE, JointType.SLIDE)

"""Actuators that give scripts per-environment position, velocity and force control of every hinge and slide.

The file's own actuators are replaced by three per joint, all on the joint itself: `NAME:force` (force = control),
`NAME:position` (force = -q * control) and `NAME:velocity` (force = -v * control). The last two are affine gains, whose
velocity part the implicit integrators know. The sum is clamped by the joint's actuator force range; while it is,
the damping leaves the implicit matrix, as with MuJoCo's own actuators. What the file's
actuators said (gains, force ranges) becomes the starting value of kp, kv and the range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np

if TYPE_CHECKING:
    from genesis_core.compiler.build import Model
    from genesis_core.compiler.entities import EntitySpec, OptionsSpec

UNLIMITED = 1e10  # [N or N m] stands for "no limit": far above any force, and finite in 32-bit
DEFAULT_KP, DEFAULT_KV = 100.0, 10.0  # what Genesis gives to joints without an actuator


@dataclass
class DofControl:
    """Per dof (nv,): first of its three actuators (-1: free or ball), starting gains, force range, joint name."""

    nu: int
    actuator: np.ndarray
    kp: np.ndarray
    kv: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    joint: list[str]


@dataclass
class Tweaks:
    """What a script asks of one entity beyond its EntitySpec. Its bodies are those whose names start with `prefix`, or
    equal it where `whole_name`."""

    prefix: str
    whole_name: bool = False
    self_collision: bool = True
    condim: int | None = None  # least contact dimension
    gravcomp: float = 0.0
    friction: tuple[float | None, float | None, float | None] | None = None  # None: as in the file
    rgba: tuple[float, float, float, float] | None = None

    def owns(self, name: str) -> bool:
        return name == self.prefix if self.whole_name else name.startswith(self.prefix)


@dataclass
class Controlled:
    """A compiled scene whose dofs are under control of a script."""

    model: Model
    table: DofControl
    warnings: list[str]


@dataclass
class _FileGains:
    kp: float = 0.0
    kv: float = 0.0
    dampratio: float = 0.0
    lower: float = -UNLIMITED
    upper: float = UNLIMITED
    servo: bool = False


def replace_actuators(spec: mujoco.MjSpec, warnings: list[str]) -> dict[str, _FileGains]:
    """Replace all actuators of a scene that is not compiled yet; returns what they said, by joint name.

    What cannot be said by gains and force ranges of a joint is added to `warnings`.
    """
    said = _read_gains(spec, warnings)
    for actuator in list(spec.actuators):
        spec.delete(actuator)
    for key in spec.keys:  # keyframes hold controls of the actuators that are gone
        key.ctrl = []
        key.act = []
    for joint in spec.joints:
        if joint.type not in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
            continue
        if not joint.name:
            joint.name = _free_name(spec, joint.parent.name)
        own = said.get(joint.name, _FileGains())
        lower, upper = own.lower, own.upper
        if joint.actfrcrange[0] < joint.actfrcrange[1] and joint.actfrclimited != mujoco.mjtLimited.mjLIMITED_FALSE:
            lower, upper = max(lower, joint.actfrcrange[0]), min(upper, joint.actfrcrange[1])
        joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_TRUE
        joint.actfrcrange = [lower, upper]
        _add(spec, joint.name, "force", mujoco.mjtGain.mjGAIN_FIXED, [1.0])
        _add(spec, joint.name, "position", mujoco.mjtGain.mjGAIN_AFFINE, [0.0, -1.0, 0.0])
        _add(spec, joint.name, "velocity", mujoco.mjtGain.mjGAIN_AFFINE, [0.0, 0.0, -1.0])
    return said


def _free_name(spec: mujoco.MjSpec, body: str) -> str:
    taken = {joint.name for joint in spec.joints}
    name, k = f"{body}_joint", 1
    while name in taken:
        name, k = f"{body}_joint{k}", k + 1
    return name


def _add(spec: mujoco.MjSpec, joint: str, part: str, gain: mujoco.mjtGain, prm: list[float]) -> None:
    actuator = spec.add_actuator(name=f"{joint}:{part}", target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    actuator.dyntype = mujoco.mjtDyn.mjDYN_NONE
    actuator.gaintype = gain
    actuator.gainprm = prm + [0.0] * (len(actuator.gainprm) - len(prm))
    actuator.biastype = mujoco.mjtBias.mjBIAS_NONE
    actuator.ctrllimited = mujoco.mjtLimited.mjLIMITED_FALSE
    actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_FALSE


def _read_gains(spec: mujoco.MjSpec, warnings: list[str]) -> dict[str, _FileGains]:
    """kp, kv and force range that the actuators on joints imply; those of several actuators on one joint add up."""
    said: dict[str, _FileGains] = {}
    for actuator in spec.actuators:
        if actuator.trntype not in (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT):
            warnings.append(
                f"actuator '{actuator.name}' does not act on a joint and was left out: scripts control dofs"
            )
            continue
        if actuator.dyntype != mujoco.mjtDyn.mjDYN_NONE:
            warnings.append(f"actuator '{actuator.name}' lost its activation dynamics: scripts control dofs directly")
        own = said.setdefault(actuator.target, _FileGains())
        gear = float(actuator.gear[0])
        if actuator.biastype == mujoco.mjtBias.mjBIAS_AFFINE:
            own.servo = True
            stiffness, damping = -float(actuator.biasprm[1]), -float(actuator.biasprm[2])
            own.kp += stiffness * gear**2
            if damping < 0:  # MuJoCo's way to store a damping ratio
                own.dampratio = -damping
            else:
                own.kv += damping * gear**2
        has_range = actuator.forcerange[0] < actuator.forcerange[1]
        limited = has_range and actuator.forcelimited != mujoco.mjtLimited.mjLIMITED_FALSE
        bounds = np.array([-UNLIMITED, UNLIMITED])
        if limited:
            bounds = np.sort(np.asarray(actuator.forcerange, dtype=float) * gear)
        elif not own.servo and actuator.ctrlrange[0] < actuator.ctrlrange[1]:
            # a motor: its control range bounds its force
            bounds = np.sort(np.asarray(actuator.ctrlrange, dtype=float) * gear * float(actuator.gainprm[0]))
        own.lower, own.upper = max(own.lower, bounds[0]), min(own.upper, bounds[1])
    return said


def dof_control(mj: mujoco.MjModel, said: dict[str, _FileGains]) -> DofControl:
    """The table of a model whose actuators `replace_actuators` made."""
    first = np.full(mj.nv, -1, dtype=np.int64)
    kp, kv = np.zeros(mj.nv), np.zeros(mj.nv)
    lower, upper = np.full(mj.nv, -np.inf), np.full(mj.nv, np.inf)
    names = [mj.joint(int(j)).name for j in mj.dof_jntid]
    for i in range(0, mj.nu, 3):
        joint = int(mj.actuator_trnid[i, 0])
        dof = int(mj.jnt_dofadr[joint])
        own = said.get(names[dof], _FileGains())
        first[dof] = i
        kp[dof], kv[dof] = (own.kp, own.kv) if own.servo else (DEFAULT_KP, DEFAULT_KV)
        if own.dampratio:
            kv[dof] = 2 * own.dampratio * np.sqrt(max(own.kp, 0.0) * float(mj.dof_M0[dof]))
        bounds = mj.jnt_actfrcrange[joint]
        lower[dof] = bounds[0] if bounds[0] > -UNLIMITED else -np.inf
        upper[dof] = bounds[1] if bounds[1] < UNLIMITED else np.inf
    return DofControl(int(mj.nu), first, kp, kv, lower, upper, names)


def compile_controlled(entities: Sequence[EntitySpec], options: OptionsSpec, tweaks: Sequence[Tweaks]) -> Controlled:
    """Compose entities into one scene, replace the actuators, compile. Raises SceneError."""
    from genesis_core.compiler.build import Model
    from genesis_core.compiler.compose import compose

    composed = compose(list(entities), options)
    spec = composed.spec
    for tweak in tweaks:
        _apply(spec, tweak)
    warnings: list[str] = []
    said = replace_actuators(spec, warnings)
    mj = composed.compile()
    return Controlled(Model.from_mujoco(mj), dof_control(mj, said), [*composed.warnings, *warnings])


def _apply(spec: mujoco.MjSpec, tweak: Tweaks) -> None:
    own = [body for body in spec.bodies if tweak.owns(body.name)]
    colliding = []
    for body in own:
        body.gravcomp = tweak.gravcomp or body.gravcomp
        for geom in body.geoms:
            _tweak_geom(geom, tweak)
        if any(geom.contype or geom.conaffinity for geom in body.geoms):
            colliding.append(body.name)
    if not tweak.self_collision:
        for i, first in enumerate(colliding):
            for second in colliding[:i]:
                spec.add_exclude(bodyname1=first, bodyname2=second)


def _tweak_geom(geom: mujoco.MjsGeom, tweak: Tweaks) -> None:
    if tweak.condim is not None and (geom.contype or geom.conaffinity):
        geom.condim = max(geom.condim, tweak.condim)
    if tweak.friction is not None:
        geom.friction = [old if new is None else new for old, new in zip(geom.friction, tweak.friction, strict=True)]
    if tweak.rgba is not None:
        geom.material, geom.rgba = "", tweak.rgba

"""Which features of a compiled model are not simulated, one sentence each, read from the model's own arrays.

Nothing harmless is reported: a tendon without forces, a fluid density of zero, a magnetic field without a
magnetometer, or a flag that only changes how fast MuJoCo is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import mujoco
import numpy as np

from genesis_core.layout.enums import DisableFlag, GeomType

_NAMED = 4  # names listed before "and N more"
_ON_JOINT = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
_INTEGRATORS = {int(v): k.removeprefix("mjINT_") for k, v in mujoco.mjtIntegrator.__members__.items()}
_SIMULATED_INTEGRATORS = (int(mujoco.mjtIntegrator.mjINT_EULER), int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST))
_ENABLE = {k.removeprefix("mjENBL_"): int(v) for k, v in mujoco.mjtEnableBit.__members__.items() if "ENBL_" in k}
# Enable flags that change the motion, with what is missing.
_ENABLE_SENTENCES = {
    "OVERRIDE": "contact parameters that rule over all contacts (flag override) are not simulated",
    "SLEEP": "sleeping bodies (flag sleep) are not simulated: they stay awake",
    "DIAGEXACT": "exact diagonals of the constraint inertia (flag diagexact) are not simulated",
    "IPC": "incremental potential contact (flag ipc) is not simulated",
    "SPECULATIVE": "speculative contacts (flag speculative) are not simulated",
}


def unsupported(mj: mujoco.MjModel, spec: mujoco.MjSpec | None = None) -> tuple[str, ...]:
    """Sentences about everything in the model that the engine does not simulate (empty = all is simulated).

    `spec`, where given, adds nothing that the compiled model does not hold; it is taken so that callers with an
    editable model need not compile first.
    """
    if mj is None and spec is not None:
        mj = spec.compile()
    out: list[str] = []
    out += _options(mj)
    out += _constraints(mj)
    out += _tendons(mj)
    out += _actuators(mj)
    out += _surroundings(mj)
    out += _materials(mj)
    out += _sensors(mj)
    out += _contacts(mj)
    return tuple(out)


def _off(mj: mujoco.MjModel, *flags: DisableFlag) -> bool:
    """Whether any of some parts of the simulation is switched off in the file."""
    return any(mj.opt.disableflags & flag for flag in flags)


def _can_touch(mj: mujoco.MjModel) -> bool:
    """Whether any contact is possible at all, roughly: some geom collides and contacts are not switched off."""
    if _off(mj, DisableFlag.CONTACT, DisableFlag.CONSTRAINT):
        return False
    return bool(mj.npair) or bool(((mj.geom_contype | mj.geom_conaffinity) != 0).sum() > 1)


def _has_constraints(mj: mujoco.MjModel) -> bool:
    return not _off(mj, DisableFlag.CONSTRAINT) and (_can_touch(mj) or bool(mj.jnt_limited.any()) or mj.neq > 0)


def _options(mj: mujoco.MjModel) -> list[str]:
    out = []
    if mj.opt.integrator not in _SIMULATED_INTEGRATORS:
        name = _INTEGRATORS.get(int(mj.opt.integrator), str(mj.opt.integrator))
        word = name if name == "RK4" else name.lower()
        instead = "implicitfast" if name == "IMPLICIT" else "Euler"
        out.append(f"the integrator {word} is not simulated: {instead} takes its place")
    if mj.opt.solver != mujoco.mjtSolver.mjSOL_NEWTON and _has_constraints(mj):
        name = {0: "PGS", 1: "CG"}.get(int(mj.opt.solver), str(mj.opt.solver))
        out.append(f"the constraint solver {name} is not simulated: the Newton solver takes its place")
    if mj.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC and _can_touch(mj):
        out.append("elliptic friction cones are not simulated: pyramidal cones take their place")
    if mj.opt.noslip_iterations > 0 and _can_touch(mj):
        out.append(f"the noslip solver ({mj.opt.noslip_iterations} iterations) is not simulated")
    for flag, sentence in _ENABLE_SENTENCES.items():
        relevant = flag == "SLEEP" or _has_constraints(mj)
        if mj.opt.enableflags & _ENABLE.get(flag, 0) and relevant:
            out.append(sentence)
    return out


def _constraints(mj: mujoco.MjModel) -> list[str]:
    out = []
    if mj.neq and not _off(mj, DisableFlag.CONSTRAINT, DisableFlag.EQUALITY):
        words = {int(v): k.removeprefix("mjEQ_").lower() for k, v in mujoco.mjtEq.__members__.items()}
        kinds = _kinds(words[int(t)] for t in mj.eq_type)
        names = _names(mj, mujoco.mjtObj.mjOBJ_EQUALITY, range(mj.neq))
        out.append(_sentence(mj.neq, "equality constraint", f"{kinds}{_listed(names)}"))
    if not _off(mj, DisableFlag.CONSTRAINT, DisableFlag.FRICTIONLOSS):
        joints = sorted({int(mj.dof_jntid[d]) for d in np.flatnonzero(mj.dof_frictionloss > 0)})
        if joints:
            names = _names(mj, mujoco.mjtObj.mjOBJ_JOINT, joints)
            out.append(f"friction loss of {_count(len(joints), 'joint')} is not simulated{_listed(names)}")
    return out


def _tendons(mj: mujoco.MjModel) -> list[str]:
    acting = []
    for t in range(mj.ntendon):
        friction = mj.tendon_frictionloss[t] > 0 and not _off(mj, DisableFlag.CONSTRAINT, DisableFlag.FRICTIONLOSS)
        limit = bool(mj.tendon_limited[t]) and not _off(mj, DisableFlag.CONSTRAINT, DisableFlag.LIMIT)
        spring = mj.tendon_stiffness[t] != 0 or np.any(mj.tendon_stiffnesspoly[t] != 0)
        damper = mj.tendon_damping[t] != 0 or np.any(mj.tendon_dampingpoly[t] != 0)
        spring = spring and not _off(mj, DisableFlag.SPRING)
        damper = damper and not _off(mj, DisableFlag.DAMPER)
        if friction or limit or spring or damper or mj.tendon_armature[t] != 0:
            acting.append(t)
    if not acting:
        return []
    names = _names(mj, mujoco.mjtObj.mjOBJ_TENDON, acting)
    fixed = sum(int(mj.tendon_type[t]) == int(mujoco.mjtTendon.mjTENDON_FIXED) for t in acting)
    kinds = _kinds(["fixed"] * fixed + ["spatial"] * (len(acting) - fixed))
    return [f"springs, dampers, limits and friction of {_count(len(acting), 'tendon')} are not simulated: "
            f"{kinds}{_listed(names)}"]  # fmt: skip


def _actuators(mj: mujoco.MjModel) -> list[str]:
    if _off(mj, DisableFlag.ACTUATION):
        return []
    groups: dict[str, list[int]] = {}
    for a in range(mj.nactuator):
        group = int(mj.actuator_group[a])
        if 0 <= group <= 30 and (mj.opt.disableactuator >> group) & 1:
            continue
        for reason in _actuator_reasons(mj, a)[:1]:
            groups.setdefault(reason, []).append(a)
    out = []
    for reason, found in groups.items():
        names = _names(mj, mujoco.mjtObj.mjOBJ_ACTUATOR, found)
        out.append(_sentence(len(found), "actuator", f"{reason}{_listed(names)}"))
    return out


def _actuator_reasons(mj: mujoco.MjModel, a: int) -> list[str]:
    """Why an actuator is not simulated, the weightiest reason first."""
    reasons = []
    transmission = int(mj.actuator_trntype[a])
    dynamics, gain, bias = (int(x[a]) for x in (mj.actuator_dyntype, mj.actuator_gaintype, mj.actuator_biastype))
    if mj.actuator_plugin[a] >= 0:
        reasons.append("driven by a plugin")
    if transmission not in _ON_JOINT:
        word = _word(mujoco.mjtTrn, transmission, "mjTRN_")
        names = {"tendon": "pulling on tendons", "site": "acting at sites", "body": "adhesion of bodies"}
        names |= {"slidercrank": "driving slider-cranks", "so3": "turning bodies (so3)"}
        reasons.append(names.get(word, f"with transmission {word}"))
    muscle = int(mujoco.mjtGain.mjGAIN_MUSCLE)
    if gain == muscle or dynamics == int(mujoco.mjtDyn.mjDYN_MUSCLE) or bias == int(mujoco.mjtBias.mjBIAS_MUSCLE):
        reasons.append("muscles")
    if gain > int(mujoco.mjtGain.mjGAIN_AFFINE):
        reasons.append(f"with gain {_word(mujoco.mjtGain, gain, 'mjGAIN_')}")
    if bias > int(mujoco.mjtBias.mjBIAS_AFFINE):
        reasons.append(f"with bias {_word(mujoco.mjtBias, bias, 'mjBIAS_')}")
    if dynamics != int(mujoco.mjtDyn.mjDYN_NONE):
        reasons.append(f"with activation dynamics {_word(mujoco.mjtDyn, dynamics, 'mjDYN_')}")
    if mj.actuator_ctrlnum[a] != 1:
        reasons.append(f"with {mj.actuator_ctrlnum[a]} controls each")
    if mj.actuator_delay[a] > 0:
        reasons.append("with a delay")
    return reasons


def _surroundings(mj: mujoco.MjModel) -> list[str]:
    """Fluid, adhesion, moving surfaces."""
    out = []
    if mj.nv and (mj.opt.density > 0 or mj.opt.viscosity > 0):
        wind = " and wind" if np.any(mj.opt.wind != 0) else ""
        out.append(
            f"forces of the medium{wind} are not simulated (density {mj.opt.density:g} kg/m^3, viscosity "
            f"{mj.opt.viscosity:g} Pa s)"
        )
    touching = ((mj.geom_contype | mj.geom_conaffinity) != 0) if _can_touch(mj) else np.zeros(mj.ngeom, bool)
    sticky = np.flatnonzero((mj.geom_adhesion != 0) & touching)
    pairs = int((mj.pair_adhesion != 0).sum()) if _can_touch(mj) else 0
    if len(sticky) or pairs:
        count = _count(len(sticky), "geom") if len(sticky) else _count(pairs, "contact pair")
        names = _names(mj, mujoco.mjtObj.mjOBJ_GEOM, sticky)
        out.append(f"adhesion of {count} is not simulated{_listed(names)}")
    moving = np.flatnonzero(np.any(mj.geom_surfacevel != 0, axis=1) & touching)
    if len(moving):
        names = _names(mj, mujoco.mjtObj.mjOBJ_GEOM, moving)
        out.append(f"moving surfaces of {_count(len(moving), 'geom')} are not simulated{_listed(names)}")
    return out


def _materials(mj: mujoco.MjModel) -> list[str]:
    """Deformable things, plastic springs, plugins."""
    out = []
    if mj.nflex:
        out.append(
            _sentence(mj.nflex, "flex", f"deformable{_listed(_names(mj, mujoco.mjtObj.mjOBJ_FLEX, range(mj.nflex)))}")
        )
    if mj.nskin:
        names = _names(mj, mujoco.mjtObj.mjOBJ_SKIN, range(mj.nskin))
        out.append(f"{_count(mj.nskin, 'skin')} {'is' if mj.nskin == 1 else 'are'} not drawn{_listed(names)}")
    stiff = (mj.jnt_stiffness != 0) | np.any(mj.jnt_stiffnesspoly != 0, axis=1)
    plastic = np.flatnonzero((mj.jnt_springyield > 0) & np.isfinite(mj.jnt_springyield) & stiff)
    if len(plastic) and not _off(mj, DisableFlag.SPRING):
        names = _names(mj, mujoco.mjtObj.mjOBJ_JOINT, plastic)
        out.append(f"springs that yield, of {_count(len(plastic), 'joint')}, are simulated as elastic{_listed(names)}")
    passive = [
        p for p in range(mj.nplugin) if not np.any(mj.actuator_plugin == p) and not np.any(mj.sensor_plugin == p)
    ]
    if passive:
        out.append(_sentence(len(passive), "plugin instance", _listed(_names(mj, mujoco.mjtObj.mjOBJ_PLUGIN, passive))))
    return out


def _sensors(mj: mujoco.MjModel) -> list[str]:
    if not mj.nsensor or _off(mj, DisableFlag.SENSOR):
        return []
    kinds = _kinds(_word(mujoco.mjtSensor, int(t), "mjSENS_") for t in mj.sensor_type)
    return [_sentence(mj.nsensor, "sensor", kinds) + "; sensordata stays zero"]


def _contacts(mj: mujoco.MjModel) -> list[str]:
    from genesis_core.compiler.lower_collision import PAIR_TYPES, unsupported_pairs

    if not _can_touch(mj):
        return []
    touching = (mj.geom_contype | mj.geom_conaffinity) != 0
    for geoms in (mj.pair_geom1, mj.pair_geom2):
        touching[geoms] = True
    types = sorted({GeomType(int(t)) for t in mj.geom_type[touching]})
    known = [a <= b and ((a, b) in PAIR_TYPES or b <= GeomType.HFIELD) for a in types for b in types if a <= b]
    return [] if all(known) else list(unsupported_pairs(mj))  # looking at all pairs of geoms takes long


# --- wording


def _word(enum: type, value: int, prefix: str) -> str:
    return next((k.removeprefix(prefix).lower() for k, v in enum.__members__.items() if int(v) == value), str(value))  # type: ignore[attr-defined]


def _count(n: int, word: str) -> str:
    if n == 1:
        return f"1 {word}"
    return f"{n} {word}es" if word.endswith("x") else f"{n} {word}s"


def _sentence(n: int, word: str, rest: str) -> str:
    rest = rest.removeprefix(": ")
    return f"{_count(n, word)} {'is' if n == 1 else 'are'} not simulated" + (f": {rest}" if rest else "")


def _kinds(words: Iterable[str]) -> str:
    counts = Counter(words)
    return ", ".join(f"{n} {word}" if n > 1 else word for word, n in counts.most_common())


def _names(mj: mujoco.MjModel, kind: mujoco.mjtObj, ids: Iterable[int]) -> list[str]:
    names = [mujoco.mj_id2name(mj, kind, int(i)) or "" for i in ids]
    return [name for name in names if name]


def _listed(names: Sequence[str]) -> str:
    if not names:
        return ""
    shown = ", ".join(names[:_NAMED])
    more = len(names) - _NAMED
    return f" ({shown}{f' and {more} more' if more > 0 else ''})"

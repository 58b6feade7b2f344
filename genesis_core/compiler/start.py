"""The states in which environments begin: a keyframe, values by name, and reproducible differences."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from genesis_core.compiler.pose import multiply
from genesis_core.errors import SceneError
from genesis_core.layout.enums import JointType

if TYPE_CHECKING:
    from genesis_core.compiler.compose import EntityPart
    from genesis_core.compiler.scenefile import NoiseSpec, StartSpec

_WIDTH = {JointType.FREE: (7, 6), JointType.BALL: (4, 3), JointType.SLIDE: (1, 1), JointType.HINGE: (1, 1)}


@dataclass
class Start:
    """The start state that all environments share, with what is needed to vary it."""

    qpos: np.ndarray  # (nq,)
    qvel: np.ndarray  # (nv,)
    act: np.ndarray  # (na,)
    ctrl: np.ndarray  # (nu,)
    mocap_pos: np.ndarray  # (nmocap, 3)
    mocap_quat: np.ndarray  # (nmocap, 4)
    jnt_name: list[str]
    jnt_type: np.ndarray
    jnt_qposadr: np.ndarray
    jnt_dofadr: np.ndarray
    jnt_limited: np.ndarray
    jnt_range: np.ndarray

    @classmethod
    def of(cls, mj: mujoco.MjModel, spec: StartSpec, parts: Sequence[EntityPart] = ()) -> Start:
        """The start state of a compiled scene; names that do not exist are SceneErrors."""
        bodies = [int(np.flatnonzero(mj.body_mocapid == k)[0]) for k in range(mj.nmocap)]
        out = cls(
            qpos=mj.qpos0.copy(),
            qvel=np.zeros(mj.nv),
            act=np.zeros(mj.na),
            ctrl=np.zeros(mj.nu),
            mocap_pos=mj.body_pos[bodies].reshape(-1, 3),
            mocap_quat=mj.body_quat[bodies].reshape(-1, 4),
            jnt_name=joint_labels(mj),
            jnt_type=mj.jnt_type.astype(int),
            jnt_qposadr=mj.jnt_qposadr.copy(),
            jnt_dofadr=mj.jnt_dofadr.copy(),
            jnt_limited=mj.jnt_limited.astype(bool),
            jnt_range=mj.jnt_range.copy(),
        )
        if spec.keyframe:
            _apply_keyframe(out, mj, spec.keyframe, parts)
        _apply_qpos(out, spec.qpos)
        _apply_ctrl(out, mj, spec.ctrl)
        for noise in spec.noise:
            if not any(fnmatchcase(name, noise.joints) for name in out.jnt_name):
                raise _unknown("start.noise", "joint", noise.joints, out.jnt_name)
        return out


def joint_labels(mj: mujoco.MjModel) -> list[str]:
    """Names of the joints; one without a name is called after its body."""
    body, joint = mujoco.mjtObj.mjOBJ_BODY, mujoco.mjtObj.mjOBJ_JOINT
    return [
        mujoco.mj_id2name(mj, joint, j) or mujoco.mj_id2name(mj, body, int(mj.jnt_bodyid[j])) or ""
        for j in range(mj.njnt)
    ]


def _apply_keyframe(out: Start, mj: mujoco.MjModel, wanted: str, parts: Sequence[EntityPart]) -> None:
    names = [mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_KEY, k) or "" for k in range(mj.nkey)]
    if wanted in names:
        k = names.index(wanted)
        out.qpos, out.qvel = mj.key_qpos[k].copy(), mj.key_qvel[k].copy()
        out.act, out.ctrl = mj.key_act[k].copy(), mj.key_ctrl[k].copy()
        if mj.nmocap:
            out.mocap_pos = mj.key_mpos[k].reshape(-1, 3).copy()
            out.mocap_quat = mj.key_mquat[k].reshape(-1, 4).copy()
        return
    found = [(part.prefix, names.index(part.prefix + wanted)) for part in parts if part.prefix + wanted in names]
    if not found:
        if wanted.isdigit() and int(wanted) < len(names):
            _apply_keyframe(out, mj, names[int(wanted)], parts)
            return
        raise _unknown("start.keyframe", "keyframe", wanted, names)
    for prefix, k in found:
        for j, name in enumerate(out.jnt_name):
            body = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_BODY, int(mj.jnt_bodyid[j])) or ""
            if not (name.startswith(prefix) or body.startswith(prefix)):
                continue
            nq, nv = _WIDTH[JointType(int(out.jnt_type[j]))]
            q, v = int(out.jnt_qposadr[j]), int(out.jnt_dofadr[j])
            out.qpos[q : q + nq] = mj.key_qpos[k, q : q + nq]
            out.qvel[v : v + nv] = mj.key_qvel[k, v : v + nv]
        for i in range(mj.nactuator):
            name = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_ACTUATOR, i) or ""
            first, count = int(mj.actuator_ctrladr[i]), int(mj.actuator_ctrlnum[i])
            if name.startswith(prefix):
                out.ctrl[first : first + count] = mj.key_ctrl[k, first : first + count]


def _apply_qpos(out: Start, values: dict[str, float | list[float]]) -> None:
    for pattern, value in values.items():
        joints = [j for j, name in enumerate(out.jnt_name) if fnmatchcase(name, pattern)]
        if not joints:
            raise _unknown("start.qpos", "joint", pattern, out.jnt_name)
        numbers = np.atleast_1d(np.asarray(value, float))
        for j in joints:
            nq, _ = _WIDTH[JointType(int(out.jnt_type[j]))]
            if len(numbers) != nq:
                raise SceneError(f"joint '{out.jnt_name[j]}' takes {nq} numbers, not {len(numbers)}")
            if nq >= 4:
                length = np.linalg.norm(numbers[-4:])
                if length < 1e-9:
                    raise SceneError(f"the quaternion of joint '{out.jnt_name[j]}' is zero")
                numbers = np.concatenate([numbers[:-4], numbers[-4:] / length])
            first = int(out.jnt_qposadr[j])
            out.qpos[first : first + nq] = numbers


def _apply_ctrl(out: Start, mj: mujoco.MjModel, values: dict[str, float]) -> None:
    from genesis_core.compiler.bundle import actuator_names

    names = actuator_names(mj)
    for pattern, value in values.items():
        found = [i for i, name in enumerate(names) if fnmatchcase(name, pattern)]
        if not found:
            raise _unknown("start.ctrl", "actuator", pattern, names)
        out.ctrl[found] = value


def _unknown(element: str, what: str, name: str, names: list[str]) -> SceneError:
    near = difflib.get_close_matches(name.strip("*"), [n for n in names if n], n=3, cutoff=0.4)
    named = [n for n in names if n]
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(named[:8])}" if named else ""
    return SceneError(f"no {what} is named '{name}'", element=element, hint=hint or "there are none")


def start_states(start: Start, spec: StartSpec, n_envs: int, first_env: int, seed: int) -> dict[str, np.ndarray]:
    """The start values of some environments; see `LoadedScene.start_states`."""
    out = {
        name: np.repeat(getattr(start, name)[None], n_envs, axis=0)
        for name in ("qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat")
    }
    envs = np.arange(first_env, first_env + n_envs, dtype=np.uint64)
    for k, noise in enumerate(spec.noise):
        for j, name in enumerate(start.jnt_name):
            if fnmatchcase(name, noise.joints):
                _vary(start, noise, j, envs, (seed * 7919 + k) * 4099 + j, out["qpos"], out["qvel"])
    return out


def _vary(
    start: Start, noise: NoiseSpec, j: int, envs: np.ndarray, key: int, qpos: np.ndarray, qvel: np.ndarray
) -> None:
    """Adds the differences of one joint in place."""
    kind = JointType(int(start.jnt_type[j]))
    nq, nv = _WIDTH[kind]
    q, v = int(start.jnt_qposadr[j]), int(start.jnt_dofadr[j])
    if noise.qvel:
        qvel[:, v : v + nv] += noise.qvel * (2 * uniform(key, envs, nv, 1) - 1)
    if kind in (JointType.SLIDE, JointType.HINGE):
        if noise.qpos:
            value = qpos[:, q] + noise.qpos * (2 * uniform(key, envs, 1, 2)[:, 0] - 1)
            if start.jnt_limited[j]:
                low, high = start.jnt_range[j]
                value = np.clip(value, min(low, qpos[0, q]), max(high, qpos[0, q]))
            qpos[:, q] = value
        return
    if kind == JointType.FREE and any(noise.pos):
        qpos[:, q : q + 3] += np.array(noise.pos) * (2 * uniform(key, envs, 3, 3) - 1)
    if noise.yaw or noise.tilt:
        u = uniform(key, envs, 3, 4)
        turn = np.radians(noise.yaw) * (2 * u[:, 0] - 1)
        lean, way = np.radians(noise.tilt) * u[:, 1], 2 * np.pi * u[:, 2]
        zero = np.zeros_like(turn)
        yaw = np.stack([np.cos(turn / 2), zero, zero, np.sin(turn / 2)])
        tilt = np.stack([np.cos(lean / 2), np.sin(lean / 2) * np.cos(way), np.sin(lean / 2) * np.sin(way), zero])
        first = q + nq - 4
        qpos[:, first : first + 4] = multiply(multiply(tilt, yaw), qpos[:, first : first + 4].T).T


def uniform(key: int, envs: np.ndarray, columns: int, salt: int) -> np.ndarray:
    """Numbers in [0, 1), shape (len(envs), columns), from a key and global environment indices (splitmix64)."""
    step = np.uint64(0x9E3779B97F4A7C15)
    words = np.array([key & 0xFFFFFFFFFFFFFFFF, salt], np.uint64)
    with np.errstate(over="ignore"):
        state = np.zeros((len(envs), columns), np.uint64)
        for word in (words[0], words[1], envs[:, None], np.arange(columns, dtype=np.uint64)[None]):
            state = (state ^ word) + step
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state ^= state >> np.uint64(31)
    return (state >> np.uint64(11)) * (1.0 / (1 << 53))

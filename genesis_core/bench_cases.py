"""What `genesis-studio bench` measures: bundled scenes, named presets, and any file."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis_core.drive import Drive
from genesis_core.errors import OptionError
from genesis_core.layout.enums import JointType

if TYPE_CHECKING:
    from genesis_core.compiler.build import Model
    from genesis_core.compiler.load import LoadedScene

States = Callable[[int], dict[str, np.ndarray]]
Controls = Callable[[int], np.ndarray]


@dataclass
class Case:
    """One thing to measure: a model, start states and controls of any number of environments, an episode's length.

    states(n) gives qpos (n, nq) and qvel (n, nv); controls(n) gives (n, ceil(steps / hold), nu), each held for `hold`
    steps. Environment i gets the same whatever n is.
    """

    name: str
    title: str
    model: Model
    steps: int
    hold: int
    states: States
    controls: Controls


def open_case(name: str, steps: int | None = None, seed: int = 0) -> Case:
    """A preset, a bundled scene by name, or a file. Raises OptionError or SceneError."""
    if name in PRESETS:
        return PRESETS[name](steps, seed)
    import resources

    bundled = resources.list_scenes()
    if name in bundled:
        return _scene_case(name, resources.scene_path(name), steps, seed)
    path = Path(name)
    if path.suffix or path.exists():
        return _scene_case(path.stem, path, steps, seed)
    known = [*PRESETS, *bundled]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"did you mean '{near[0]}'?" if near else f"a file, or one of {', '.join(known)}"
    raise OptionError(f"no scene, preset or file is called '{name}'", hint=hint)


def default_names() -> list[str]:
    """The bundled scenes."""
    import resources

    return resources.list_scenes()


def _load(path: Path, overrides: dict[str, Any] | None = None) -> LoadedScene:
    from genesis_core.compiler.load import load_scene

    return load_scene(path, overrides)


def _scene_case(name: str, path: Path, steps: int | None, seed: int) -> Case:
    """A scene as its file says: its start states, and its drive or, without one, random controls."""
    loaded = _load(path)
    length = steps or 500
    own_noise = bool(loaded.spec.start.noise)
    hold = 5 if loaded.spec.drive else 25

    def states(n: int) -> dict[str, np.ndarray]:
        start = loaded.start_states(n, 0, seed)
        qpos = start["qpos"] if own_noise else start["qpos"] + _joint_noise(loaded.mj, n, 0.02, seed)
        return {"qpos": qpos, "qvel": start["qvel"]}

    return Case(
        name=name,
        title=loaded.spec.name or name,
        model=loaded.model,
        steps=length,
        hold=hold,
        states=states,
        controls=_driven(loaded, length, hold, seed) if loaded.spec.drive else _random(loaded, length, hold, seed),
    )


def _joint_noise(mj: Any, n: int, size: float, seed: int) -> np.ndarray:
    """Uniform noise on hinges and slides, (n, nq); row i depends on i and the seed alone."""
    out = np.zeros((n, mj.nq))
    scalar = np.flatnonzero(np.isin(mj.jnt_type, (int(JointType.SLIDE), int(JointType.HINGE))))
    out[:, mj.jnt_qposadr[scalar]] = size * (2 * _rows(n, len(scalar), seed) - 1)
    return out


def _rows(n: int, columns: int, seed: int) -> np.ndarray:
    """Uniform numbers in 0..1, (n, columns), whose first rows stay the same when n grows."""
    return np.random.default_rng(seed + 12345).random((n, columns))


def _driven(loaded: LoadedScene, steps: int, hold: int, seed: int) -> Controls:
    def controls(n: int) -> np.ndarray:
        mj = loaded.mj
        ctrl0 = loaded.start_states(1, 0, seed)["ctrl"][0]
        drive = Drive(
            loaded.spec.drive,
            loaded.model.names["actuator"],
            ctrl0,
            mj.actuator_ctrlrange,
            n,
            seed,
            ctrllimited=mj.actuator_ctrllimited,
        )
        chunks = -(-steps // hold)
        return np.stack([drive.at(k * hold * mj.opt.timestep) for k in range(chunks)], axis=1).astype(np.float64)

    return controls


def _random(loaded: LoadedScene, steps: int, hold: int, seed: int) -> Controls:
    def controls(n: int) -> np.ndarray:
        mj = loaded.mj
        start = loaded.start_states(1, 0, seed)["ctrl"][0]
        chunks = -(-steps // hold)
        noise = _rows(n, chunks * mj.nu, seed + 1).reshape(n, chunks, mj.nu)
        limited = np.asarray(mj.actuator_ctrllimited, dtype=bool)
        low, high = mj.actuator_ctrlrange[:, 0], mj.actuator_ctrlrange[:, 1]
        return np.where(limited, low + noise * (high - low), start)

    return controls


def _constant(ctrl: np.ndarray, steps: int) -> Controls:
    return lambda n: np.repeat(ctrl[None, None, :], n, axis=0)


def _bundled(name: str, **overrides: Any) -> LoadedScene:
    import resources

    return _load(resources.scene_path(name), overrides or None)


def _random_poses(loaded: LoadedScene, height: float, seed: int) -> States:
    """Joints uniform over nine tenths of their range, base turned at random, its origin at `height`."""
    mj = loaded.mj

    def states(n: int) -> dict[str, np.ndarray]:
        start = loaded.start_states(n, 0, seed)
        qpos = start["qpos"].copy()
        u = _rows(n, mj.njnt + 6, seed)
        for j in range(mj.njnt):
            at = int(mj.jnt_qposadr[j])
            if mj.jnt_type[j] == int(JointType.FREE):
                qpos[:, at + 2] = height
                turn = np.random.default_rng(seed + 77).normal(size=(n, 4))
                qpos[:, at + 3 : at + 7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
            elif mj.jnt_limited[j]:
                low, high = mj.jnt_range[j]
                qpos[:, at] = (low + high) / 2 + 0.9 * (high - low) * (u[:, j] - 0.5)
        return {"qpos": qpos, "qvel": start["qvel"]}

    return states


def _humanoid_air(steps: int | None, seed: int) -> Case:
    loaded = _bundled("humanoid", options={"flags": {"contact": False}})
    length = steps or 500
    return Case(
        "humanoid-air",
        "Humanoid, 27 dofs, no contacts, random poses and controls",
        loaded.model,
        length,
        25,
        _random_poses(loaded, 1.4, seed),
        _random(loaded, length, 25, seed),
    )


def _humanoid_drop(steps: int | None, seed: int) -> Case:
    loaded = _bundled("humanoid")
    length = steps or 500
    return Case(
        "humanoid-drop",
        "Humanoid dropped in random poses, floor and self-collision",
        loaded.model,
        length,
        length,
        _random_poses(loaded, 1.4, seed),
        _constant(loaded.start_states(1, 0, seed)["ctrl"][0], length),
    )


def _quadruped_stand(steps: int | None, seed: int) -> Case:
    loaded = _bundled("quadruped")
    length = steps or 500

    def states(n: int) -> dict[str, np.ndarray]:
        start = loaded.start_states(n, 0, seed)
        return {"qpos": start["qpos"] + _joint_noise(loaded.mj, n, 0.05, seed), "qvel": start["qvel"]}

    ctrl = loaded.start_states(1, 0, seed)["ctrl"][0]
    title = "Quadruped standing on PD targets"
    return Case("quadruped-stand", title, loaded.model, length, length, states, _constant(ctrl, length))


def _renamed(preset: str, scene: str, title: str) -> Callable[[int | None, int], Case]:
    def make(steps: int | None, seed: int) -> Case:
        case = open_case(scene, steps, seed)
        case.name, case.title = preset, title
        return case

    return make


PRESETS: dict[str, Callable[[int | None, int], Case]] = {
    "humanoid-air": _humanoid_air,
    "humanoid-drop": _humanoid_drop,
    "quadruped-stand": _quadruped_stand,
    "arm-grip": _renamed("arm-grip", "arm-table", "Arm with gripper among six objects"),
    "wall-50": _renamed("wall-50", "box-wall", "Wall of 50 boxes hit by a ball"),
}

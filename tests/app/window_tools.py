"""Scenes and frames without workers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from app.model.state import AppState
from genesis_core.layout.scene import SceneBundle, initial_rows
from genesis_core.runtime.shm import Frame


@cache
def load_bundle(path: Path) -> SceneBundle:
    """What a worker sends of a scene."""
    from genesis_core.compiler.load import load_scene

    return load_scene(path).bundle


def make_frame(bundle: SceneBundle, envs: list[int], time: float = 1.0, lift: float = 0.0) -> Frame:
    """A frame in which every geom of environment e stands e + lift metres higher than at the start."""
    rows = np.repeat(initial_rows(bundle)[None], len(envs), 0)
    rows[:, :, 11] += np.array(envs, np.float32)[:, None] + lift
    n = len(envs)
    return Frame(
        time=np.full(n, time),
        envs=np.array(envs, np.int32),
        rows=rows,
        qpos=np.repeat(np.asarray(bundle.qpos0, np.float32)[None], n, 0),
        qvel=np.zeros((n, bundle.nv), np.float32),
        ctrl=np.full((n, bundle.nu), 0.25, np.float32),
    )


def show_scene(state: AppState, bundle: SceneBundle, n_envs: int = 16, shown: int = 4) -> None:
    """Puts a running scene into the model."""
    state.set_scene(bundle, "/scenes/tiny.xml", n_envs, (2.0, 3.0))
    state.set_phase("running")
    state.set_shown(list(range(shown)))
    state.take_frame(make_frame(bundle, list(range(shown))))

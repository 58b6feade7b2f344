"""Draws the pictures of the start page: resources/scenes/NAME.jpg for every bundled scene.

Run it after a scene changed its looks: `.venv/bin/python packaging/scene_pictures.py [NAME...]`.
The environments stand at their start states; no kernel is needed.
"""

from __future__ import annotations

import math
import sys

import mujoco
import numpy as np
from PIL import Image

from app.scene3d.view import home_camera
from genesis_core.compiler.load import LoadedScene, load_scene
from genesis_core.layout.grid import env_offsets
from genesis_core.render.offscreen import OffscreenRenderer
from resources import list_scenes, scene_path

WIDTH, HEIGHT = 480, 270
SHOWN = {"playground": 1, "box-wall": 1, "hand-cube": 4, "arm-table": 4, "cartpole": 4, "humanoid": 9, "quadruped": 9}
NEARER = {"playground": 0.55, "box-wall": 0.72, "cartpole": 0.66, "hand-cube": 0.85}  # of the usual distance


def start_rows(loaded: LoadedScene, n_envs: int) -> np.ndarray:
    """Geom poses (n_envs, ngeom, 12) at the start states."""
    data, rows = mujoco.MjData(loaded.mj), np.empty((n_envs, loaded.mj.ngeom, 3, 4), np.float32)
    for env, qpos in enumerate(loaded.start_states(n_envs)["qpos"]):
        data.qpos[:] = qpos
        mujoco.mj_kinematics(loaded.mj, data)
        rows[env, :, :, :3] = data.geom_xmat.reshape(-1, 3, 3)
        rows[env, :, :, 3] = data.geom_xpos
    return rows.reshape(n_envs, -1, 12)


def draw(name: str) -> None:
    """One scene's picture, drawn twice as large and scaled down."""
    loaded = load_scene(scene_path(name))
    n_envs = SHOWN.get(name, 4)
    offsets = env_offsets(n_envs, loaded.spec.env_spacing, per_row=math.ceil(math.sqrt(n_envs)))
    with OffscreenRenderer(loaded.bundle, 2 * WIDTH, 2 * HEIGHT) as renderer:
        rows = start_rows(loaded, n_envs)
        renderer.render(home_camera(loaded.bundle, np.zeros(3), 1.0, 1.0), rows, offsets)  # measures the scene
        scene = renderer.scene
        camera = home_camera(loaded.bundle, scene.center, scene.radius, float(loaded.bundle.stat_extent))
        camera.distance *= NEARER.get(name, 0.82)  # small pictures need large robots
        image = Image.fromarray(renderer.render(camera, rows, offsets))
    path = scene_path(name).with_suffix(".jpg")
    image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS).save(path, quality=86, optimize=True)
    sys.stdout.write(f"{path}  {path.stat().st_size / 1024:.0f} KiB\n")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or list_scenes():
        draw(wanted)

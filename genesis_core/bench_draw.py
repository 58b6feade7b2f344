"""Frames per second off screen: our renderer and `mujoco.Renderer`, one environment, the same camera and size.

MuJoCo is measured twice: with its own defaults (shadow map of 4096, four samples a pixel), as a user gets it, and with
our renderer's settings for the device (shadow map, samples). Mirror images in floors are off in both.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from genesis_core.errors import OptionError

WIDTH, HEIGHT = 640, 480
MISSING_RENDERER = (
    "the comparison needs the full mujoco package (mujoco.Renderer), which is not installed: "
    "pip install 'genesis-studio[bench]', or leave --against out"
)


@dataclass
class DrawTime:
    """Frames per second of one scene; software: the GL renderer string says that a CPU draws."""

    case: str
    width: int
    height: int
    geoms: int
    renderer: str
    quality: str
    fps: float
    mujoco_fps: float | None = None  # with its defaults
    ratio: float | None = None
    mujoco_equal_fps: float | None = None  # with our settings
    equal_ratio: float | None = None
    rounds: int = 0


def measure_draw(name: str, against_mujoco: bool, rounds: int, seconds: float, n_envs: int = 1) -> DrawTime:
    """Frames per second, poses handed over and picture read back each time; both in turn within every round.

    n_envs > 1 draws that many environments with our renderer; the comparison is for one.
    """
    from genesis_core.render.platform import prepare

    prepare()
    os.environ.setdefault("MUJOCO_GL", "egl")  # mujoco looks at it when it is imported, which the compiler does
    from genesis_core.compiler.load import load_scene
    from genesis_core.layout.grid import env_offsets
    from genesis_core.render.camera import Camera

    loaded = load_scene(_path(name))
    bundle = loaded.bundle
    azimuth, elevation, distance = bundle.default_camera
    look = bundle.stat_center
    camera = Camera(look, distance or 2.0 * bundle.stat_extent, azimuth, elevation, float(loaded.mj.vis.global_.fovy))
    poses = _poses(loaded)
    from genesis_core.render.offscreen import OffscreenRenderer

    with OffscreenRenderer(bundle, WIDTH, HEIGHT) as ours:
        offsets = env_offsets(n_envs, loaded.spec.env_spacing)
        many = [np.repeat(rows[None], n_envs, axis=0) for rows in poses]
        result = DrawTime(
            case=name,
            width=WIDTH,
            height=HEIGHT,
            geoms=bundle.ngeom,
            renderer=str(ours.info["renderer"]),
            quality=ours.scene.quality.name,
            fps=0.0,
            rounds=rounds,
        )

        def our_frame(k: int) -> None:
            ours.render(camera, many[k % len(many)], offsets)

        frames: list[Callable[[int], None]] = [our_frame]
        closers: list[Callable[[], None]] = []
        if against_mujoco:
            own = ours.scene.quality
            for shadow_size, samples in ((4096, 4), (own.shadow_size if own.shadows else 0, own.samples)):
                frame, close = _mujoco_frame(loaded, camera, shadow_size, samples)
                frames.append(frame)
                closers.append(close)
        for frame in frames:
            frame(0)
        rates = [[_rate(frame, seconds) for frame in frames] for _ in range(rounds)]
        for close in closers:
            close()
    median = [statistics.median(column) for column in zip(*rates, strict=True)]
    result.fps = median[0]
    if against_mujoco:
        result.mujoco_fps, result.mujoco_equal_fps = median[1], median[2]
        result.ratio = statistics.median(row[0] / row[1] for row in rates)
        result.equal_ratio = statistics.median(row[0] / row[2] for row in rates)
    return result


def _path(name: str) -> Path:
    import resources

    return resources.scene_path(name) if name in resources.list_scenes() else Path(name)


def _rate(frame: Callable[[int], None], seconds: float) -> float:
    began = time.perf_counter()
    frames = 0
    while not frames or time.perf_counter() - began < seconds:
        frame(frames)
        frames += 1
    return frames / (time.perf_counter() - began)


def _states(loaded: Any, count: int = 8) -> np.ndarray:
    """A few start states, so that no renderer can reuse a picture."""
    return loaded.start_states(count)["qpos"]


def _poses(loaded: Any) -> list[np.ndarray]:
    """(ngeom, 12) world transforms of the geoms in those states."""
    import mujoco

    data = mujoco.MjData(loaded.mj)
    out = []
    for qpos in _states(loaded):
        data.qpos[:] = qpos
        mujoco.mj_kinematics(loaded.mj, data)
        rows = np.concatenate([data.geom_xmat.reshape(-1, 3, 3), data.geom_xpos[:, :, None]], axis=2)
        out.append(rows.reshape(-1, 12).astype(np.float32))
    return out


def _mujoco_frame(
    loaded: Any, camera: Any, shadow_size: int, samples: int
) -> tuple[Callable[[int], None], Callable[[], None]]:
    """A function that draws one frame with MuJoCo's renderer, and one that closes it."""
    import mujoco

    if not hasattr(mujoco, "Renderer"):
        raise OptionError(MISSING_RENDERER)
    loaded.mj.vis.quality.shadowsize = shadow_size
    loaded.mj.vis.quality.offsamples = samples if samples > 1 else 0
    renderer = mujoco.Renderer(loaded.mj, HEIGHT, WIDTH)
    data = mujoco.MjData(loaded.mj)
    states = _states(loaded)
    free = mujoco.MjvCamera()
    free.azimuth, free.elevation, free.distance = camera.azimuth, camera.elevation, camera.distance
    free.lookat[:] = camera.lookat

    def frame(k: int) -> None:
        data.qpos[:] = states[k % len(states)]
        mujoco.mj_kinematics(loaded.mj, data)
        mujoco.mj_camlight(loaded.mj, data)
        renderer.update_scene(data, free)
        renderer.scene.flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = False
        renderer.render()

    return frame, renderer.close

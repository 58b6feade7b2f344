"""`genesis-studio [SCENE]`: the window; without a display the same scene is recorded instead."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from genesis_core.cli.common import CommonOptions, find_scene, has_display


def window(scene: str | None, common: CommonOptions) -> int:
    """Opens the window; returns its exit code."""
    path = find_scene(scene) if scene is not None else None
    if not has_display():
        return _record_instead(path, common)
    devices = common.worker_devices(path) if common.devices or common.backend != "auto" else None
    # genesis_core never imports app: the window is found by name, as a plug-in would be
    module = importlib.import_module("app.__main__")
    code = module.open_window(
        str(path) if path is not None else None,
        devices=devices,
        n_envs=common.envs,
        precision=common.precision,
        seed=common.seed,
        env_spacing=common.spacing,
    )
    return _record_instead(path, common) if code == module.NO_DISPLAY else code


def _record_instead(path: Path | None, common: CommonOptions) -> int:
    from genesis_core.cli.record import run_record
    from genesis_core.record.plan import RecordOptions, safe_name
    from resources import scene_path

    scene = path or scene_path()
    print("no display can be reached from here: recording the scene in place of a window", file=sys.stderr)
    options = RecordOptions(
        scene=scene,
        name=f"{safe_name(scene.stem)}-preview",  # not the name of a recording that somebody made on purpose
        n_envs=common.envs,
        select="first:16",
        layout="world",
        devices=common.worker_devices(scene),
        seed=common.seed,
        precision=common.precision,
        env_spacing=common.spacing,
        force=True,
    )
    return run_record(options)

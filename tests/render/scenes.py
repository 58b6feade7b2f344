"""Small scenes for pictures."""

from __future__ import annotations

import numpy as np

from genesis_core.layout.scene import SceneBundle


def compiled(body: str, asset: str = "") -> SceneBundle:
    """The bundle of a little MJCF world."""
    import tempfile
    from pathlib import Path

    from genesis_core.compiler.load import load_scene

    text = f"<mujoco><asset>{asset}</asset><worldbody>{body}</worldbody></mujoco>"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scene.xml"
        path.write_text(text)
        return load_scene(path).bundle


def color_at(picture: np.ndarray, x: int, y: int) -> np.ndarray:
    """Mean colour of a 5x5 patch."""
    return picture[y - 2 : y + 3, x - 2 : x + 3].reshape(-1, 3).mean(axis=0)

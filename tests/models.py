"""Robot files outside of the repository that tests may use where they are present."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def models_folder() -> Path | None:
    """The folder of robot files: GENESIS_TEST_MODELS, or `shared/models` beside the repository; None if absent."""
    for folder in (os.environ.get("GENESIS_TEST_MODELS", ""), str(ROOT.parent / "shared" / "models")):
        if folder and Path(folder).is_dir():
            return Path(folder)
    return None


def model_path(name: str) -> Path:
    """Path of a robot file such as "go2/urdf/go2.urdf"; skips the test where there is none."""
    folder = models_folder()
    if folder is None:
        pytest.skip("robot files are not here: set GENESIS_TEST_MODELS")
    path = folder / name
    if not path.exists():
        pytest.skip(f"{name} is not among the robot files")
    return path


def model_names(*suffixes: str) -> list[str]:
    """Names of all robot files with a suffix, below the folder; empty where there is none."""
    folder = models_folder()
    if folder is None:
        return []
    return sorted(str(p.relative_to(folder)) for s in suffixes for p in folder.rglob(f"*{s}"))

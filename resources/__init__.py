"""Files that ship with Genesis Studio: scenes, robot models, icons, shaders, themes."""

from __future__ import annotations

import difflib
from importlib.resources import files
from pathlib import Path

DEFAULT_SCENE = "quadruped"

_ROOT = Path(str(files("resources")))


def list_scenes() -> list[str]:
    """Names of the bundled scenes, the default one first."""
    names = sorted(path.stem for path in (_ROOT / "scenes").glob("*.toml"))
    return sorted(names, key=lambda name: (name != DEFAULT_SCENE, name))


def list_models() -> list[str]:
    """Names of the bundled MJCF models, as `model_path` takes them ("arm/table" for `models/arm/table.xml`)."""
    root = _ROOT / "models"
    found = (path.relative_to(root).with_suffix("").as_posix() for path in root.rglob("*.xml"))
    return sorted(_short(name) for name in found)


def _short(name: str) -> str:
    folder, _, stem = name.rpartition("/")
    return stem if folder == stem else name


def scene_path(name: str = DEFAULT_SCENE) -> Path:
    """The file of a bundled scene; KeyError names the near ones."""
    path = _ROOT / "scenes" / f"{name}.toml"
    if not path.is_file():
        raise KeyError(_unknown("scene", name, list_scenes()))
    return path


def model_path(name: str) -> Path:
    """The MJCF file of a bundled model: "quadruped", or "arm/table"; KeyError names the near ones."""
    for path in (_ROOT / "models" / f"{name}.xml", _ROOT / "models" / name / f"{name}.xml"):
        if path.is_file():
            return path
    raise KeyError(_unknown("model", name, list_models()))


def _unknown(kind: str, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    return f"no bundled {kind} is named '{name}'; " + (
        f"did you mean {', '.join(near)}?" if near else f"there are: {', '.join(known)}"
    )

"""Where files that a scene or robot names are found: beside it, below its parents, in package folders."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

from genesis_core.compiler.source import near_file
from genesis_core.errors import SceneError

_MAX_PARENTS = 8


def find_file(name: str, folder: Path, what: str = "file", element: str = "") -> Path:
    """The existing path of a file named in a scene file or script.

    SceneError says where it was looked for; `element` is what names the file.
    """
    tried = candidates(name, folder)
    for path in tried:
        if path.is_file():
            return path.resolve()
    for path in tried:
        if path.is_dir():
            raise SceneError(f"'{name}' is a directory, not a {what}", element=element, hint=f"found at {path}")
    hint = near_file(tried[0]) or f"looked for {', '.join(str(p) for p in tried[:3])}"
    raise SceneError(f"the {what} '{name}' does not exist", element=element, hint=hint)


def candidates(name: str, folder: Path) -> list[Path]:
    """Paths at which a file may be, the likeliest first.

    Plain relative names: in `folder`. `package://PKG/REST` and `model://PKG/REST`: `PKG/REST` or `REST` in `folder`
    and its parents, and in the folders of ROS_PACKAGE_PATH, AMENT_PREFIX_PATH and GZ_SIM_RESOURCE_PATH. `file://`: as
    it says. A plain name that is not in `folder` is looked for in its parents too, as exported robots need it.
    """
    for scheme in ("package://", "model://"):
        if name.startswith(scheme):
            return _in_packages(unquote(name[len(scheme) :]), folder)
    if name.startswith("file://"):
        rest = unquote(name[len("file://") :])
        rest = rest.removeprefix("localhost")
        return [Path(rest), *_in_packages(rest.lstrip("/"), folder)]
    plain = Path(os.path.expanduser(name.replace("\\", "/")))
    if plain.is_absolute():
        return [plain]
    return [folder / plain, *(parent / plain for parent in _parents(folder))]


def _parents(folder: Path) -> list[Path]:
    return list(folder.resolve().parents)[:_MAX_PARENTS]


def _in_packages(rest: str, folder: Path) -> list[Path]:
    package, _, inner = rest.partition("/")
    out: list[Path] = []
    for place in (folder.resolve(), *_parents(folder)):
        if place.name == package:
            out.append(place / inner)
        out.append(place / package / inner)
        out.append(place / inner)
    for variable, share in (("ROS_PACKAGE_PATH", ""), ("AMENT_PREFIX_PATH", "share"), ("GZ_SIM_RESOURCE_PATH", "")):
        for entry in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            base = Path(entry) / share
            out.append(base / package / inner)
            if base.name == package:
                out.append(base / inner)
    return list(dict.fromkeys(out))

"""Scenes packed into one .zip or .mjz file, unpacked without trusting the names inside."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from genesis_core.compiler.source import SCENE_SUFFIXES, check_file
from genesis_core.errors import SceneError

MAX_UNPACKED_BYTES = 2 * 2**30
MAX_FILES = 20_000
_ROOT_TAGS = (b"<mujoco", b"<robot")


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The main scene file of an archive, in a temporary folder that is gone afterwards."""
    check_file(path, what="archive")
    folder = Path(tempfile.mkdtemp(prefix="genesis-scene-"))
    try:
        extract(path, folder)
        yield main_file(folder, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def extract(path: Path, folder: Path) -> None:
    """Unpacks an archive below a folder; names that lead out of it, links and bombs are refused."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [m for m in archive.infolist() if not m.is_dir()]
            if len(members) > MAX_FILES:
                raise SceneError(f"the archive holds {len(members)} files, more than {MAX_FILES}", file=path)
            if not members:
                raise SceneError("the archive is empty", file=path)
            left = MAX_UNPACKED_BYTES
            for member in members:
                left -= _extract_one(archive, member, folder, path, left)
    except (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, ValueError, RuntimeError) as error:
        raise SceneError(f"the archive cannot be read: {error}", file=path, hint="is it complete?") from None
    except zipfile.zlib.error as error:  # type: ignore[attr-defined]
        raise SceneError(f"the archive is damaged: {error}", file=path) from None


def _extract_one(archive: zipfile.ZipFile, member: zipfile.ZipInfo, folder: Path, path: Path, left: int) -> int:
    name = PurePosixPath(member.filename.replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts or ":" in name.parts[0]:
        raise SceneError(
            f"the archive names '{member.filename}', outside of its folder", file=path, hint="not unpacked"
        )
    if (member.external_attr >> 16) & 0o170000 == 0o120000:
        raise SceneError(f"the archive holds a link, '{member.filename}'", file=path, hint="pack the files themselves")
    target = folder.joinpath(*name.parts)
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with archive.open(member) as reader, target.open("wb") as writer:
        while chunk := reader.read(1 << 20):
            written += len(chunk)
            if written > left:
                limit = MAX_UNPACKED_BYTES / 2**30
                raise SceneError(f"the archive unpacks to more than {limit:.0f} GiB", file=path)
            writer.write(chunk)
    return written


def main_file(folder: Path, path: Path) -> Path:
    """The file of an unpacked archive that is the scene: the one like the archive's name, "scene", or the only one."""
    found = [p for p in sorted(folder.rglob("*")) if p.is_file() and p.suffix.lower() in SCENE_SUFFIXES[:4]]
    found = [p for p in found if p.suffix.lower() == ".toml" or _is_scene(p)]
    if not found:
        raise SceneError("the archive holds no scene file", file=path, hint="expected .xml, .urdf or .toml inside")
    depth = min(len(p.relative_to(folder).parts) for p in found)
    top = [p for p in found if len(p.relative_to(folder).parts) == depth]
    for wanted in (path.stem, "scene", "model", "robot", "main"):
        for candidate in top:
            if candidate.stem == wanted:
                return candidate
    for suffix in (".toml", ".urdf", ".xml", ".mjcf"):
        same = [p for p in top if p.suffix.lower() == suffix]
        if len(same) == 1:
            return same[0]
    names = ", ".join(str(p.relative_to(folder)) for p in top[:6])
    raise SceneError("the archive holds several scene files", file=path, hint=f"name the main one scene.xml: {names}")


def _is_scene(path: Path) -> bool:
    with path.open("rb") as reader:
        head = reader.read(1 << 16)
    return any(tag in head for tag in _ROOT_TAGS)

"""State recordings: a folder NAME.gsrec that is a Zarr v3 group, with a meta.json and the scene's own files.

    NAME.gsrec/
      meta.json                 versions, scene, seed, devices, environments; "complete" once the run ended as planned
      scene/...                 copies of all files of the scene
      worker-0/                 one Zarr group per worker process: plain arrays, readable with zarr or xarray
        time (T,) [s]  step (T,)  env (n,)  env_time (T, n)  qpos (T, n, nq)  qvel (T, n, nv)  ctrl (T, n, nu) ...

A chunk is one file and is written whole or not at all, so a process that is killed loses the chunk that it was filling.
Arrays have their planned length from the start; what was not written reads as NaN (step: -1) and is cut off by
`finish` or, after a kill, by `RecordingReader`.

    import xarray
    run = xarray.open_zarr("NAME.gsrec", group="worker-0").dropna("time", how="all")
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import json
import os
import platform
import shutil
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import zarr

from genesis_core.errors import RecordingError

SUFFIX = ".gsrec"
FORMAT = "genesis-studio recording"
VERSION = 1
CHUNK_BYTES = 4 * 2**20
MAX_CHUNK = 64  # moments
MAX_SCENE_BYTES = 2**30
_DIMENSIONS = {
    "time": (),
    "step": (),
    "env_time": ("env",),
    "qpos": ("env", "nq"),
    "qvel": ("env", "nv"),
    "ctrl": ("env", "nu"),
    "act": ("env", "na"),
    "mocap_pos": ("env", "nmocap", "xyz"),
    "mocap_quat": ("env", "nmocap", "wxyz"),
}
_UNITS = {"time": "s", "env_time": "s"}


class RecordingMeta(msgspec.Struct, kw_only=True):
    """What meta.json says."""

    name: str
    format: str = FORMAT
    version: int = VERSION
    created: str = ""
    complete: bool = False
    interrupted: bool = False
    versions: dict[str, str] = {}
    scene: str = ""  # the scene's main file, relative to the recording
    source: str = ""  # where it came from
    overrides: dict[str, Any] = {}
    n_envs: int = 1  # simulated; the recorded ones are in the workers' groups
    env_spacing: tuple[float, float] = (1.0, 1.0)
    timestep: float = 0.0  # [s]
    steps: int = 0  # planned
    state_every: int = 1  # steps between two recorded moments
    seed: int = 0
    precision: str = "32"
    devices: list[str] = []
    groups: dict[str, list[int]] = {}  # group -> global numbers of its environments
    video: str = ""
    fps: int = 30
    size: tuple[int, int] = (1280, 720)
    camera: str = ""
    layout: str = "tiles"


def chunk_length(numbers_per_moment: int) -> int:
    """Moments per chunk: few enough that a kill loses little, many enough that files are not tiny."""
    return int(np.clip(CHUNK_BYTES // max(1, 4 * numbers_per_moment), 1, MAX_CHUNK))


def versions() -> dict[str, str]:
    """Versions of everything that a result may depend on."""
    from importlib.metadata import PackageNotFoundError, version

    from genesis_core import __version__

    out = {"genesis-studio": __version__, "python": platform.python_version(), "system": platform.platform()}
    for package in ("mujoco-core", "numpy", "numba", "zarr"):
        with contextlib.suppress(PackageNotFoundError):
            out[package] = version(package)
    return out


@contextlib.contextmanager
def disk_errors(what: str, path: Path) -> Iterator[None]:
    """Full disks, missing rights and the like as one RecordingError that names the file."""
    try:
        yield
    except OSError as error:
        hints = {
            errno.ENOSPC: "the disk is full: free some space or choose another folder with --out",
            errno.EDQUOT: "the quota is used up: free some space or choose another folder with --out",
            errno.EROFS: "the file system is read-only: choose another folder with --out",
            errno.EACCES: "choose a folder that you may write with --out",
            errno.EPERM: "choose a folder that you may write with --out",
            errno.EFBIG: "the file got larger than allowed (ulimit -f)",
        }
        reason = error.strerror or str(error)
        hint = hints.get(error.errno or 0, "")
        raise RecordingError(f"{what} cannot be written: {reason}", where=str(path), hint=hint) from None


def prepare_folder(folder: Path) -> None:
    """Makes the output folder, and proves that files can be made in it; RecordingError where not."""
    with disk_errors("the output folder", folder):
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.write_bytes(b"x")
        probe.unlink()


def refuse_existing(paths: Sequence[Path], force: bool) -> None:
    """Makes way for new files: with `force` old recordings are removed, without it they are an error."""
    there = [p for p in paths if p.exists()]
    if there and not force:
        raise RecordingError(
            f"{there[0].name} exists already",
            where=str(there[0]),
            hint="--force overwrites it; --out or --name avoids it",
        )
    for path in there:
        with disk_errors("the old file", path):
            if not path.is_dir():
                path.unlink()
            elif path.suffix == SUFFIX and (path / "meta.json").is_file():
                shutil.rmtree(path)
            else:
                raise RecordingError(f"{path.name} is a folder but no recording", where=str(path), hint="choose --name")


def copy_scene(files: Sequence[str], folder: Path) -> tuple[str, list[str]]:
    """Copies a scene's files with their relative places; (main file relative to `folder`, remarks)."""
    paths = [Path(f).resolve() for f in files]
    present = [p for p in paths if p.is_file()]
    if not present or present[0] != paths[0]:
        return "", ["the scene's file is gone; the recording holds no copy of it"]
    size = sum(p.stat().st_size for p in present)
    if size > MAX_SCENE_BYTES:
        return "", [f"the scene's files ({size / 2**30:.1f} GiB) are too large to be copied into the recording"]
    root = Path(os.path.commonpath([str(p.parent) for p in present]))
    for path in present:
        target = folder / "scene" / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    gone = [str(p) for p in paths if not p.is_file()]
    return (Path("scene") / present[0].relative_to(root)).as_posix(), [f"not copied, it is gone: {p}" for p in gone]


def write_meta(folder: Path, meta: RecordingMeta) -> None:
    """meta.json, whole or not at all."""
    part = folder / "meta.json.partial"
    part.write_bytes(msgspec.json.format(msgspec.json.encode(meta), indent=2))
    part.replace(folder / "meta.json")


class RecordingWriter:
    """Writes the states that workers send."""

    def __init__(self, folder: Path, meta: RecordingMeta, groups: dict[int, list[int]], chunk: int) -> None:
        """groups: for each worker that records, the global numbers of its environments."""
        self.folder = folder
        self.meta = meta
        self._chunk = chunk
        self._length = meta.steps // meta.state_every + 1
        self._groups: dict[int, zarr.Group] = {}
        self._written: dict[int, int] = {}
        meta.groups = {f"worker-{i}": list(envs) for i, envs in groups.items()}
        meta.created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        meta.versions = versions()
        with disk_errors("the recording", folder):
            folder.mkdir(parents=True, exist_ok=True)
            write_meta(folder, meta)
            root = zarr.open_group(folder, mode="a", zarr_format=3)
            root.attrs.update({"format": FORMAT, "version": VERSION, "name": meta.name})
            for i, envs in groups.items():
                group = root.create_group(f"worker-{i}")
                numbers = group.create_array("env", shape=(len(envs),), dtype="int64", dimension_names=("env",))
                numbers[:] = np.array(envs, np.int64)
                self._groups[i] = group
                self._written[i] = 0

    def write(self, worker: int, start: int, arrays: dict[str, np.ndarray]) -> None:
        """Moments start ... of one worker; `arrays` are time-major."""
        group = self._groups[worker]
        count = len(arrays["step"])
        # `time` and `step` come last: a moment counts once everything else of it is there
        names = sorted(arrays, key=lambda name: name in ("time", "step"))
        with disk_errors("the recording", self.folder):
            if "step" not in group:
                self._create(group, arrays, names)
                self._consolidate()
            for name in names:
                group[name][start : start + count] = arrays[name]  # type: ignore[index]
        self._written[worker] = start + count

    def _create(self, group: zarr.Group, arrays: dict[str, np.ndarray], names: list[str]) -> None:
        for name in names:
            tail = arrays[name].shape[1:]
            group.create_array(
                name,
                shape=(self._length, *tail),
                chunks=(min(self._chunk, self._length), *tail),
                dtype=arrays[name].dtype,
                fill_value=-1 if name == "step" else np.nan,
                dimension_names=("time", *_DIMENSIONS[name]),
                attributes={"units": _UNITS[name]} if name in _UNITS else {},
            )

    def _consolidate(self) -> None:
        """Puts the descriptions of all arrays into the root's file, where xarray looks for them first."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zarr remarks that the specification does not have this yet
            zarr.consolidate_metadata(self.folder)

    @property
    def moments(self) -> int:
        """Recorded moments that every worker has."""
        return min(self._written.values(), default=0)

    def finish(self, complete: bool, interrupted: bool = False) -> None:
        """Cuts the arrays to what was written and closes the recording."""
        self.meta.complete, self.meta.interrupted = complete, interrupted
        with disk_errors("the recording", self.folder):
            for worker, group in self._groups.items():
                written = self._written[worker]
                for name, array in group.arrays():
                    if name != "env" and array.shape[0] != written:
                        array.resize((written, *array.shape[1:]))
            self._consolidate()
            write_meta(self.folder, self.meta)


class RecordingReader:
    """Reads a recording, also one whose writer was killed."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.meta = _read_meta(self.folder)
        try:
            root = zarr.open_group(self.folder, mode="r", zarr_format=3, use_consolidated=False)
            self._groups: list[Any] = [root[name] for name in self.meta.groups]
            self._lengths = [self._count(group) for group in self._groups]
        except (OSError, KeyError, ValueError, TypeError) as error:
            raise RecordingError(f"the recording is damaged: {error}", where=str(self.folder)) from None

    @staticmethod
    def _count(group: Any) -> int:
        if "step" not in group:
            return 0
        missing = np.flatnonzero(np.asarray(group["step"][:]) < 0)
        return int(missing[0]) if len(missing) else int(group["step"].shape[0])

    @property
    def length(self) -> int:
        """Moments that all workers recorded."""
        return min(self._lengths, default=0)

    @property
    def envs(self) -> list[int]:
        """Global numbers of the recorded environments, in the order of the states."""
        return [env for envs in self.meta.groups.values() for env in envs]

    @property
    def names(self) -> list[str]:
        """Recorded quantities per environment."""
        return [n for n in self._groups[0].array_keys() if n not in ("env", "time", "step")] if self.length else []

    @property
    def times(self) -> np.ndarray:
        """(length,) [s]"""
        return self._read(self._groups[0], "time", slice(self.length)) if self.length else np.zeros(0)

    @property
    def scene(self) -> Path:
        """The copy of the scene's main file, or its original place where there is no copy."""
        copy = self.folder / self.meta.scene if self.meta.scene else None
        path = copy if copy is not None and copy.is_file() else Path(self.meta.source)
        if not path.is_file():
            raise RecordingError("the recording's scene file is missing", where=str(path))
        return path

    def states(self, at: int | slice = slice(None)) -> dict[str, np.ndarray]:
        """Quantities at a moment, (n, ...) each, or over a slice of moments, (T, n, ...) each."""
        where: int | slice = at if isinstance(at, int) else slice(*at.indices(self.length))
        axis = 0 if isinstance(at, int) else 1
        return {
            name: np.concatenate([self._read(g, name, where) for g in self._groups], axis=axis) for name in self.names
        }

    def _read(self, group: Any, name: str, where: int | slice) -> np.ndarray:
        try:
            return np.asarray(group[name][where])
        except (OSError, ValueError, RuntimeError) as error:
            place = f"{self.folder}/{group.path}/{name}"
            raise RecordingError(f"a chunk is damaged: {error}", where=place) from None


def _read_meta(folder: Path) -> RecordingMeta:
    if not folder.exists():
        raise RecordingError("the recording does not exist", where=str(folder))
    path = folder / "meta.json"
    if not path.is_file():
        raise RecordingError("this is no recording", where=str(folder), hint=f"a recording is a folder NAME{SUFFIX}")
    try:
        raw = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RecordingError(f"meta.json cannot be read: {error}", where=str(path)) from None
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        raise RecordingError("this is no recording of Genesis Studio", where=str(path))
    if not isinstance(raw.get("version"), int) or raw["version"] > VERSION:
        raise RecordingError(
            f"the recording has format version {raw.get('version')}, this program reads up to {VERSION}",
            where=str(path),
            hint="update Genesis Studio",
        )
    try:
        return msgspec.convert(raw, RecordingMeta)
    except msgspec.ValidationError as error:
        raise RecordingError(f"meta.json is damaged: {error}", where=str(path)) from None

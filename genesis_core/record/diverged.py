"""Saves the last states of environments that diverged as a recording of its own."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from genesis_core.runtime import messages as msg
from genesis_core.runtime.supervisor import Session


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What a recording must say about the session that its states come from."""

    files: tuple[str, ...]  # of the scene, the main one first
    n_envs: int
    env_spacing: tuple[float, float]
    timestep: float
    seed: int
    precision: str
    devices: tuple[str, ...]


def origin_of(loaded: msg.SceneLoaded, session: Session) -> Origin:
    """Of a running session."""
    spec, config = json.loads(loaded.spec_json), session.config
    return Origin(
        files=tuple(loaded.files),
        n_envs=session.n_envs,
        env_spacing=session.env_spacing,
        timestep=float(loaded.bundle.timestep),
        seed=int(spec["seed"] if config.seed is None else config.seed),
        precision=str(config.precision or spec["precision"]),
        devices=tuple(config.devices),
    )


def default_folder() -> Path:
    """Where the window keeps such recordings."""
    import platformdirs

    return Path(platformdirs.user_data_path("genesis-studio", appauthor=False)) / "diverged"


def save_diverged(folder: Path, report: msg.Diverged, origin: Origin) -> Path:
    """Writes folder/diverged-SCENE-envE-stepS.gsrec, with a number behind where that exists; returns it.

    Raises RecordingError where the folder cannot be written.
    """
    # Zarr takes a third of a second to import, which the window should not pay for at its start
    from genesis_core.record import recording

    steps = report.arrays["step"]
    stem = f"diverged-{Path(origin.files[0]).stem}-env{report.envs[0]}-step{int(steps[-1])}"
    target = _unused(folder, stem, recording.SUFFIX)
    with recording.disk_errors("the recording", target):
        target.mkdir(parents=True)
        scene, _ = recording.copy_scene(origin.files, target)
    meta = recording.RecordingMeta(
        name=target.stem,
        scene=scene,
        source=origin.files[0],
        n_envs=origin.n_envs,
        env_spacing=origin.env_spacing,
        timestep=origin.timestep,
        steps=len(steps) - 1,
        seed=origin.seed,
        precision=origin.precision,
        devices=list(origin.devices),
    )
    per_moment = sum(x[0].size for x in report.arrays.values())
    writer = recording.RecordingWriter(target, meta, {0: report.envs}, recording.chunk_length(per_moment))
    writer.write(0, 0, report.arrays)
    writer.finish(complete=True)
    return target


def _unused(folder: Path, stem: str, suffix: str) -> Path:
    target = folder / f"{stem}{suffix}"
    number = 2
    while target.exists():
        target = folder / f"{stem}-{number}{suffix}"
        number += 1
    return target


def told(report: msg.Diverged, path: Path) -> str:
    """One line for the user."""
    envs = ", ".join(str(e) for e in report.envs)
    which = f"environment {envs}" if len(report.envs) == 1 else f"environments {envs}"
    count = len(report.arrays["step"])
    return f"the last {count} steps of {which} before diverging are in {path}: genesis-studio play shows them"

"""State recordings on disk."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest

from genesis_core.errors import RecordingError
from genesis_core.record.recording import (
    RecordingMeta,
    RecordingReader,
    RecordingWriter,
    chunk_length,
    copy_scene,
    prepare_folder,
    refuse_existing,
)

NQ, NV = 3, 2


def _arrays(start: int, count: int, n: int) -> dict[str, np.ndarray]:
    step = np.arange(start, start + count)
    value = step[:, None, None].astype(np.float32)
    return {
        "step": step,
        "time": step * 0.01,
        "env_time": np.repeat(step[:, None] * 0.01, n, axis=1),
        "qpos": np.broadcast_to(value, (count, n, NQ)).copy(),
        "qvel": np.broadcast_to(-value, (count, n, NV)).copy(),
    }


def _writer(folder: Path, steps: int = 99, chunk: int = 10) -> RecordingWriter:
    meta = RecordingMeta(name="run", steps=steps, timestep=0.01, n_envs=5, devices=["cpu:0", "cpu:1"])
    return RecordingWriter(folder, meta, {0: [0, 2], 1: [4]}, chunk)


def test_states_come_back_as_they_were_written(tmp_path: Path) -> None:
    folder = tmp_path / "run.gsrec"
    writer = _writer(folder)
    for start in range(0, 100, 10):
        writer.write(1, start, _arrays(start, 10, 1))
        writer.write(0, start, _arrays(start, 10, 2))
    writer.finish(complete=True)
    reader = RecordingReader(folder)
    assert reader.length == 100 and reader.envs == [0, 2, 4] and reader.meta.complete
    assert set(reader.names) == {"env_time", "qpos", "qvel"}
    assert reader.times == pytest.approx(np.arange(100) * 0.01)
    assert reader.states(37)["qpos"].shape == (3, NQ) and (reader.states(37)["qvel"] == -37).all()
    assert reader.states(slice(95, None))["qpos"].shape == (5, 3, NQ)
    assert reader.meta.versions["mujoco-core"] and reader.meta.created


def test_three_lines_of_xarray_read_it(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    folder = tmp_path / "run.gsrec"
    writer = _writer(folder)
    writer.write(0, 0, _arrays(0, 10, 2))
    writer.write(1, 0, _arrays(0, 10, 1))
    writer.finish(complete=False, interrupted=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = xarray.open_zarr(folder, group="worker-0")
    assert dict(run.sizes) == {"time": 10, "env": 2, "nq": NQ, "nv": NV}
    assert run.qpos.sel(env=2, time=0.05).values == pytest.approx([5, 5, 5])


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from test_recording import _arrays, _writer
from pathlib import Path
writer = _writer(Path(sys.argv[1]), steps=10_000, chunk=7)
for start in range(0, 10_000, 7):
    writer.write(0, start, _arrays(start, 7, 2))
    writer.write(1, start, _arrays(start, 7, 1))
    if start == 7 * 40:
        print("go", flush=True)
"""


def test_a_writer_that_is_killed_loses_one_chunk_at_most(tmp_path: Path) -> None:
    folder = tmp_path / "run.gsrec"
    script = tmp_path / "killed.py"
    script.write_text(textwrap.dedent(KILLED))
    writer = subprocess.Popen(
        [sys.executable, str(script), str(folder), str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout.readline() == "go\n"
    writer.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    writer.wait()
    reader = RecordingReader(folder)
    assert not reader.meta.complete
    assert reader.length >= 7 * 41 and reader.length % 7 == 0
    states = reader.states()
    assert states["qpos"].shape == (reader.length, 3, NQ)
    assert (states["qpos"] == np.arange(reader.length)[:, None, None]).all()
    xarray = pytest.importorskip("xarray")
    run = xarray.open_zarr(folder, group="worker-0").dropna("time", how="all")
    assert run.sizes["time"] >= reader.length


def test_a_recording_without_a_single_chunk_reads_as_empty(tmp_path: Path) -> None:
    _writer(tmp_path / "run.gsrec")
    reader = RecordingReader(tmp_path / "run.gsrec")
    assert reader.length == 0 and reader.names == [] and len(reader.times) == 0 and reader.states() == {}


def test_what_is_no_recording_is_refused_with_its_place(tmp_path: Path) -> None:
    cases = {"missing": None, "empty": "", "binary": "\0\1", "other": '{"a": 1}', "list": "[]"}
    for name, text in cases.items():
        folder = tmp_path / name
        if text is not None:
            folder.mkdir()
            (folder / "meta.json").write_text(text)
        with pytest.raises(RecordingError) as error:
            RecordingReader(folder)
        assert name in str(error.value)
    (tmp_path / "plain").mkdir()
    with pytest.raises(RecordingError, match="no recording"):
        RecordingReader(tmp_path / "plain")


def test_a_newer_format_asks_for_an_update(tmp_path: Path) -> None:
    folder = tmp_path / "run.gsrec"
    _writer(folder)
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, "version": 2}))
    with pytest.raises(RecordingError, match="version 2"):
        RecordingReader(folder)


def test_a_damaged_chunk_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "run.gsrec"
    writer = _writer(folder)
    writer.write(0, 0, _arrays(0, 10, 2))
    writer.write(1, 0, _arrays(0, 10, 1))
    writer.finish(complete=True)
    chunk = next(p for p in (folder / "worker-0" / "qpos" / "c").rglob("*") if p.is_file())
    chunk.write_bytes(b"rubbish")
    with pytest.raises(RecordingError, match="damaged") as error:
        RecordingReader(folder).states(0)
    assert "worker-0/qpos" in str(error.value)


def test_existing_files_are_kept_unless_forced(tmp_path: Path) -> None:
    folder = tmp_path / "run.gsrec"
    _writer(folder)
    video = tmp_path / "run.mp4"
    video.write_bytes(b"old")
    with pytest.raises(RecordingError, match="exists already"):
        refuse_existing([video, folder], force=False)
    assert video.read_bytes() == b"old" and (folder / "meta.json").exists()
    refuse_existing([video, folder], force=True)
    assert not video.exists() and not folder.exists()


def test_force_does_not_delete_a_folder_that_is_no_recording(tmp_path: Path) -> None:
    folder = tmp_path / "thesis.gsrec"
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work")
    with pytest.raises(RecordingError, match="no recording"):
        refuse_existing([folder], force=True)
    assert (folder / "thesis.tex").exists()


def test_a_full_disk_is_one_clear_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    import zarr

    writer = _writer(tmp_path / "run.gsrec")
    writer.write(0, 0, _arrays(0, 10, 2))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(zarr.Array, "__setitem__", full)
    with pytest.raises(RecordingError, match="No space left") as error:
        writer.write(0, 10, _arrays(10, 10, 2))
    assert "disk is full" in error.value.hint and str(tmp_path) in error.value.where


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    for folder in (file, file / "below"):
        with pytest.raises(RecordingError, match="cannot be written"):
            prepare_folder(folder)


def test_the_scene_travels_with_the_recording(tmp_path: Path) -> None:
    source = tmp_path / "src"
    (source / "meshes").mkdir(parents=True)
    main, mesh = source / "robot.xml", source / "meshes" / "a.stl"
    main.write_text("<mujoco/>")
    mesh.write_bytes(b"solid")
    target = tmp_path / "run.gsrec"
    target.mkdir()
    name, remarks = copy_scene([str(main), str(mesh)], target)
    assert name == "scene/robot.xml" and remarks == []
    assert (target / "scene" / "meshes" / "a.stl").read_bytes() == b"solid"
    mesh.unlink()
    name, remarks = copy_scene([str(main), str(mesh)], tmp_path / "other.gsrec")
    assert name and "a.stl" in remarks[0]


def test_chunks_are_neither_tiny_nor_huge() -> None:
    assert chunk_length(1) == chunk_length(100) == 64
    assert chunk_length(10**9) == 1
    assert 1 < chunk_length(100_000) < 64

"""Who simulates is published in small files, and the files of the dead go away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from session_tools import run_until, wait_event

from genesis_core.runtime import messages as msg
from genesis_core.runtime import status
from genesis_core.runtime.status import Reporter, Status, StatusFile, run_folder, running
from genesis_core.runtime.supervisor import Session


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "running"
    monkeypatch.setenv(status.FOLDER, str(place))
    return place


def mine(**more) -> Status:
    return Status(pid=os.getpid(), born=psutil.Process().create_time(), **more)


def test_what_is_published_is_read_and_what_is_closed_is_gone(folder: Path) -> None:
    file = StatusFile()
    assert file.due()
    file.publish(mine(title="quadruped", device="cuda:1", n_envs=64, env_steps_per_second=1e6))
    assert not file.due()
    (found,) = running()
    assert (found.title, found.device, found.n_envs, found.silent) == ("quadruped", "cuda:1", 64, False)
    file.close()
    file.close()
    assert running() == [] and list(folder.iterdir()) == []
    file.publish(mine())
    assert running() == [], "a closed file stays closed"


def test_files_of_the_dead_are_removed(folder: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    born = psutil.Process(child.pid).create_time()
    child.wait()
    folder.mkdir(mode=0o700)
    import msgspec

    for name, entry in (
        ("dead", Status(pid=child.pid, born=born)),
        ("reborn", Status(pid=os.getpid(), born=1.0)),  # another process had our number
        ("alive", mine(title="alive")),
    ):
        (folder / f"{name}.json").write_bytes(msgspec.json.encode(entry))
    assert [s.title for s in running()] == ["alive"]
    assert [p.name for p in folder.iterdir()] == ["alive.json"]


def test_a_damaged_file_is_passed_over_and_removed_when_old(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    for name in ("a.json", "b.json", "c.new"):
        (folder / name).write_bytes(b"{broken" if name != "b.json" else b"\xff\xfe")
    assert running() == [] and len(list(folder.iterdir())) == 3
    for path in folder.iterdir():
        os.utime(path, (1, 1))
    assert running() == [] and list(folder.iterdir()) == []


def test_one_that_does_not_write_any_more_is_silent() -> None:
    assert mine(updated=time.time() - status.SILENCE - 1).silent
    assert not mine(updated=time.time()).silent


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no file modes here")
def test_a_folder_that_others_can_write_is_not_used(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    assert run_folder() is None and running() == []
    StatusFile().publish(mine())  # nobody is told, nothing fails
    assert list(folder.iterdir()) == []


def test_a_file_in_the_folders_place_is_not_used(folder: Path) -> None:
    folder.write_text("")
    assert run_folder() is None and running() == []


def test_the_usual_folder_is_private_to_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(status.FOLDER, raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    found = run_folder()
    assert found is not None
    if hasattr(os, "getuid"):
        assert found.stat().st_mode & 0o077 == 0


def test_a_disk_that_is_full_stops_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = StatusFile()

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    file.publish(mine())
    assert running() == []


def test_a_reporter_tells_rates(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "INTERVAL", 0.2)
    began = time.monotonic()
    reporter = Reporter("script.py", "cpu", lambda: (8, int(8000 * (time.monotonic() - began)), 1))
    try:
        deadline = time.monotonic() + 10
        while not (found := running()) or not found[0].env_steps_per_second:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert found[0].kind == "script" and found[0].n_envs == 8 and found[0].state == "running"
        assert 4000 < found[0].env_steps_per_second < 12000
    finally:
        reporter.close()
    assert running() == []


@pytest.mark.slow
def test_the_workers_of_a_session_are_seen_and_vanish_with_it(
    folder: Path, open_session: Callable[..., Session]
) -> None:
    session = open_session(devices=("cpu:0", "cpu:1"), n_envs=4)
    try:
        session.set_speed(None)
        session.play()
        run_until(session, lambda: len(found := running()) == 2 and min(s.env_steps_per_second for s in found) > 0)
        found = running()
        assert [s.device for s in found] == ["cpu:0", "cpu:1"] and [s.n_envs for s in found] == [2, 2]
        assert {s.pid for s in found} == set(session.pids) and {s.parent for s in found} == {os.getpid()}
        assert all(s.title == "tiny" and s.state == "running" and s.memory > 0 for s in found)
        os.kill(session.pids[1] or 0, signal.SIGKILL)
        wait_event(session, msg.WorkerDied)
        run_until(session, lambda: [s.device for s in running()] == ["cpu:0"])
    finally:
        session.close()
    assert running() == []


@pytest.mark.slow
def test_a_script_that_called_init_is_seen(folder: Path) -> None:
    import genesis_core as gs

    gs.init(backend=gs.cpu, logging_level="error")
    try:
        scene = gs.Scene()
        scene.add_entity(gs.morphs.Sphere(radius=0.1, pos=(0, 0, 5)))
        scene.build(n_envs=16)
        deadline = time.monotonic() + 20
        while not (found := running()) or not found[0].env_steps_per_second:
            assert time.monotonic() < deadline
            scene.step()
        assert (found[0].pid, found[0].device, found[0].n_envs) == (os.getpid(), "cpu", 16)
    finally:
        gs.destroy()
    assert running() == []

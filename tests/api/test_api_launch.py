"""gs.launch: results and tracebacks come back, one failure stops all, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest
from fake_gpus import FakeGpu, install

import genesis_core as gs
from genesis_core.api import launch as launch_module
from genesis_core.api.launch import device_ids
from tests.api import launched

pytestmark = pytest.mark.slow
OURS = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
LINUX = sys.platform.startswith("linux")


def gone(pids: list[int], seconds: float = 3.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(psutil.pid_exists(p) and psutil.Process(p).status() != psutil.STATUS_ZOMBIE for p in pids):
            return True
        time.sleep(0.05)
    return False


def ranks_left() -> list[psutil.Process]:
    """Spawned processes of ours (not multiprocessing's own resource tracker)."""
    return [p for p in psutil.Process().children(recursive=True) if "spawn_main" in " ".join(p.cmdline())]


def test_each_rank_gets_its_arguments_and_the_results_keep_their_order() -> None:
    assert gs.launch(launched.add, "cpu:3", args=(5,), kwargs={"b": 2}) == [7, 107, 207]


def test_a_large_result_comes_back() -> None:
    assert [len(r) for r in gs.launch(launched.large, "cpu:2")] == [5_000_000] * 2


def test_each_rank_finds_its_gpu_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, *(FakeGpu() for _ in range(4)))
    monkeypatch.setenv("LOCAL_RANK", "1")  # of a torchrun around it
    monkeypatch.setattr(launch_module, "thread_share", lambda: 6)
    found = gs.launch(launched.surroundings, [3, "cuda:1"])
    for rank, number in enumerate("31"):
        mine = found[rank]
        assert [mine[v] for v in ("CUDA_VISIBLE_DEVICES", "QD_VISIBLE_DEVICE", "EGL_DEVICE_ID")] == [number] * 3
        assert (mine["CUDA_DEVICE_ORDER"], mine["LOCAL_RANK"]) == ("PCI_BUS_ID", None)
        assert (mine["GENESIS_WORKER"], mine["GENESIS_THREADS"], mine["OMP_NUM_THREADS"]) == (
            f"cuda:{number}",
            "3",
            "3",
        )
    assert os.environ["LOCAL_RANK"] == "1" and "QD_VISIBLE_DEVICE" not in os.environ, "the launcher's own stay"


@pytest.mark.parametrize(
    ("devices", "ids"),
    [
        ("cpu:2", ("cpu:0", "cpu:1")),
        (["cpu:0", "cpu:1"], ("cpu:0", "cpu:1")),
        (["cpu:0"], ("cpu:0",)),
        (["cpu"], ("cpu",)),
        (["cpu:3"], ("cpu:0", "cpu:1", "cpu:2")),
        ([1, 0], ("cuda:1", "cuda:0")),
        (["cuda:0", 1], ("cuda:0", "cuda:1")),
        ("all", ("cuda:0", "cuda:1")),
        (None, ("cuda:0",)),
    ],
)
def test_devices_may_be_named_in_several_ways(monkeypatch, devices, ids) -> None:
    install(monkeypatch, FakeGpu(), FakeGpu())
    assert device_ids(devices) == ids


@pytest.mark.parametrize(
    ("devices", "word"),
    [([], "empty"), (["cpu:0", "cpu:0"], "cpu:0 twice"), ([0, 0], "twice"), ([5], "'5'"), (["cpu", 0], "one kind")],
)
def test_wrong_devices_are_refused_before_anything_starts(monkeypatch, devices, word) -> None:
    install(monkeypatch, FakeGpu())
    with pytest.raises(gs.DeviceError, match=word):
        gs.launch(launched.add, devices, args=(1,))


def test_the_first_failure_stops_all_and_carries_the_traceback() -> None:
    began = time.monotonic()
    with pytest.raises(gs.WorkerError) as caught:
        gs.launch(launched.fail_at, "cpu:3", args=(1,))
    text = str(caught.value)
    assert "rank 1 (cpu:1)" in text and "ValueError: broken at 1" in text and "launched.py" in text
    assert "2 other ranks were stopped" in text
    assert isinstance(caught.value.__cause__, ValueError)
    assert time.monotonic() - began < 30
    assert not ranks_left()


def test_an_exception_that_cannot_be_pickled_is_still_told() -> None:
    with pytest.raises(gs.WorkerError, match="Strange: strange"):
        gs.launch(launched.raise_strange, "cpu:1")


def test_a_result_that_cannot_be_sent_is_told() -> None:
    with pytest.raises(gs.WorkerError, match=r"the result, a function, cannot be sent back"):
        gs.launch(launched.unsendable, "cpu:1")


def test_a_function_that_cannot_be_sent_is_refused() -> None:
    with pytest.raises(gs.OptionError, match="top level of a module"):
        gs.launch(lambda rank: rank, "cpu:2")


@pytest.mark.skipif(not LINUX, reason="signals")
def test_a_killed_rank_is_told_and_leaves_no_child(tmp_path: Path) -> None:
    with pytest.raises(gs.WorkerError, match=r"rank 0 \(cpu:0\): died by signal 9 \(SIGKILL\)"):
        gs.launch(launched.die_at, "cpu:2", args=(0, str(tmp_path)))
    assert gone([int((tmp_path / "child").read_text())])
    assert not ranks_left()


def test_a_timeout_names_those_that_are_late(tmp_path: Path) -> None:
    with pytest.raises(gs.WorkerError, match=r"not finished in time: rank 0 \(cpu:0\), rank 1 \(cpu:1\)"):
        gs.launch(launched.clean_up, "cpu:2", args=(str(tmp_path),), timeout=3.0)
    assert not ranks_left()


def test_the_ranks_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_module, "thread_share", lambda: 4)
    results = gs.launch(launched.run_scene, "cpu:2")
    assert [threads for _, threads in results] == [2, 2]
    assert results[0][0] == results[1][0] < 5.0


LAUNCHER = """
import sys
import genesis_core as gs
from tests.api import launched

if __name__ == "__main__":
    gs.launch(getattr(launched, sys.argv[1]), "cpu:2", args=(sys.argv[2],))
"""


def start(tmp_path: Path, name: str) -> tuple[subprocess.Popen, list[int]]:
    """A launcher in a process of its own, and the pids of its ranks once both are in their function."""
    script = tmp_path / "launcher.py"
    script.write_text(LAUNCHER)
    launcher = subprocess.Popen(
        [sys.executable, str(script), name, str(tmp_path)], env=OURS, stderr=subprocess.PIPE, text=True
    )
    files = [tmp_path / "pid0", tmp_path / "pid1"]
    deadline = time.monotonic() + 60
    while not all(f.exists() and f.read_text() for f in files):
        assert launcher.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    return launcher, [int(f.read_text()) for f in files]


@pytest.mark.skipif(not LINUX, reason="signals")
def test_ctrl_c_lets_ranks_clean_up_and_leaves_none(tmp_path: Path) -> None:
    launcher, pids = start(tmp_path, "clean_up")
    launcher.send_signal(signal.SIGINT)
    _, errors = launcher.communicate(timeout=20)
    assert launcher.returncode == -signal.SIGINT or "KeyboardInterrupt" in errors
    assert gone(pids)
    assert {p.name for p in tmp_path.glob("cleaned*")} == {"cleaned0", "cleaned1"}


@pytest.mark.skipif(not LINUX, reason="signals")
def test_ranks_that_do_not_listen_are_killed(tmp_path: Path) -> None:
    launcher, pids = start(tmp_path, "stubborn")
    launcher.send_signal(signal.SIGINT)
    began = time.monotonic()
    launcher.communicate(timeout=30)
    assert time.monotonic() - began < launch_module.GRACE + 5 and gone(pids)


@pytest.mark.skipif(not LINUX, reason="signals")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_launcher_leaves_no_rank(tmp_path: Path, number: int) -> None:
    launcher, pids = start(tmp_path, "stubborn")
    launcher.send_signal(number)
    launcher.communicate(timeout=10)
    assert gone(pids)


def test_a_script_without_its_main_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(
        textwrap.dedent("""
        import genesis_core as gs

        def work(rank):
            return rank

        gs.launch(work, "cpu:2")
        """)
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, env=OURS)
    assert done.returncode != 0
    assert 'below `if __name__ == "__main__":`' in done.stderr

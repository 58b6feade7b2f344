"""`top` sums up per device what the running processes tell."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from fake_gpus import GIB, FakeGpu, install
from rich.console import Console

from genesis_core.cli import top as top_module
from genesis_core.cli.top import look, picture, top
from genesis_core.errors import OptionError
from genesis_core.runtime.status import FOLDER, Status

NOW = time.time()
ME = {"pid": os.getpid(), "born": 0.0}


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU with one of our processes, two shares of the CPU, one of them silent."""
    install(monkeypatch, FakeGpu(pids=[os.getpid()]), FakeGpu())
    workers = [
        Status(**ME, device="cpu:0", n_envs=10, env_steps_per_second=500, steps_per_second=50, memory=GIB, updated=NOW),
        Status(**ME, device="cpu:1", n_envs=10, env_steps_per_second=700, steps_per_second=70, memory=GIB, updated=1.0),
        Status(**ME, device="cuda:0", n_envs=4096, env_steps_per_second=2e6, memory=2 * GIB, nan_count=3, updated=NOW),
    ]
    monkeypatch.setattr(top_module, "running", lambda: workers)


def test_each_device_has_the_sum_of_its_workers(busy) -> None:
    found = {d.device: d for d in look().devices}
    cpu, first, second = found["cpu"], found["cuda:0"], found["cuda:1"]
    assert (cpu.workers, cpu.n_envs, cpu.env_steps_per_second, cpu.steps_per_second) == (2, 20, 1200, 60)
    assert cpu.host_memory == 2 * GIB
    assert (first.env_steps_per_second, first.host_memory, first.device_memory) == (2e6, 2 * GIB, GIB)
    assert (first.load, first.memory_free) == (0.37, 130 * GIB)
    assert (second.workers, second.device_memory) == (0, 0)


def test_the_table_names_the_silent_and_the_diverged(busy) -> None:
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(picture(look()))
    text = console.export_text()
    for part in ("cuda:0", "2,000,000", "1,200", "silent", "130.0 GiB", "37%", "4,096"):
        assert part in text, part


def test_json_is_one_object_a_line(busy, capsys) -> None:
    assert top(as_json=True, interval=0.1, count=2) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 2 and lines[1]["time"] > lines[0]["time"]
    assert [d["device"] for d in lines[0]["devices"]] == ["cpu", "cuda:0", "cuda:1"]
    assert lines[0]["workers"][2]["nan_count"] == 3


def test_without_a_terminal_there_is_one_table(busy, capsys) -> None:
    assert top() == 0
    assert capsys.readouterr().out.count("Devices") == 1


@pytest.mark.parametrize("wrong", [{"interval": 0}, {"interval": -1}, {"count": 0}, {"interval": float("nan")}])
def test_numbers_that_make_no_sense_are_refused(wrong) -> None:
    with pytest.raises(OptionError):
        top(**wrong)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGINT") or sys.platform == "win32", reason="signals")
def test_ctrl_c_ends_it_quietly(tmp_path: Path) -> None:
    env = {**os.environ, FOLDER: str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-m", "genesis_core.cli.main", "top", "--json", "--interval", "0.2"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    json.loads(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 0 and errors == ""
    assert not psutil.pid_exists(process.pid)

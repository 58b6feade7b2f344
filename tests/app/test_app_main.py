"""The command line of the window, and that nothing is left behind when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from app.__main__ import NO_DISPLAY, main
from app.startup.platform import why_no_display


def test_without_a_display_one_message_and_code_3(monkeypatch, capfd) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    if not sys.platform.startswith("linux"):
        pytest.skip("only Linux can lack a display")
    assert main([]) == NO_DISPLAY
    lines = capfd.readouterr().err.strip().splitlines()
    assert len(lines) == 1 and "DISPLAY" in lines[0]


@pytest.mark.parametrize("display", [":987", "nonsense", ":", "localhost:9876"])
def test_a_display_that_does_not_answer_is_named(monkeypatch, display: str) -> None:
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("QT_QPA_PLATFORM", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("DISPLAY", display)
    assert display in why_no_display()


@pytest.mark.parametrize(
    "argv", [["--envs", "0"], ["--envs", "x"], ["--size", "10x10"], ["--size", "big"], ["--theme", "pink"], ["--nope"]]
)
def test_wrong_arguments_end_with_code_2(argv: list[str], capsys) -> None:
    with pytest.raises(SystemExit) as end:
        main(argv)
    assert end.value.code == 2 and "Traceback" not in capsys.readouterr().err


def test_an_unknown_device_ends_with_code_2_and_says_what_there_is(capsys) -> None:
    assert main(["--devices", "tpu:3"]) == 2
    assert "tpu:3" in capsys.readouterr().err


def test_importing_the_entry_loads_no_qt() -> None:
    code = "import sys, app.__main__; print([m for m in sys.modules if m.startswith(('PySide6', 'OpenGL', 'vispy'))])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def window(*args: str, config: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "app", *args], env=os.environ | {"GENESIS_CONFIG_DIR": str(config)})


def workers_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        try:
            if "spawn_main" in " ".join(child.cmdline()):
                found.append(child)
        except (psutil.ZombieProcess, psutil.NoSuchProcess):  # a short-lived helper of Python or Mesa
            continue
    return found


@pytest.mark.gl
@pytest.mark.slow
def test_a_screenshot_of_the_start_page_is_written(tmp_path: Path) -> None:
    from PIL import Image

    file = tmp_path / "window.png"
    process = window("--screenshot", str(file), "--after", "0.2", "--size", "1000x700", config=tmp_path)
    assert process.wait(120) == 0
    picture = Image.open(file)
    assert picture.size == (1000, 700)
    assert len(picture.convert("RGB").getcolors(1 << 20)) > 50


@pytest.mark.gl
@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("delay", [0.0, 3.0])
def test_ending_the_window_at_any_moment_ends_its_workers(tmp_path: Path, how: signal.Signals, delay: float) -> None:
    process = window("cartpole", "--devices", "cpu:2", config=tmp_path)
    deadline = time.monotonic() + 60
    while not (workers := workers_of(process)):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    time.sleep(delay)
    workers = workers_of(process)
    process.send_signal(how)
    assert process.wait(30) == (0 if how == signal.SIGTERM else -how)
    _, alive = psutil.wait_procs(workers, timeout=15)
    assert alive == []

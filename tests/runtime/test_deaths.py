"""What violent ends leave behind: nothing, and the others go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from session_tools import PATIENCE, run_until, wait_event

from genesis_core.errors import SceneError, StateError, WorkerError
from genesis_core.runtime import messages as msg
from genesis_core.runtime.supervisor import Session, SessionConfig, failure_of

pytestmark = pytest.mark.slow
MakeSession = Callable[..., Session]
LINUX = sys.platform.startswith("linux")


def _segments() -> set[str]:
    return set(os.listdir("/dev/shm")) if LINUX else set()


def _gone(pids: list[int], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        alive = [p for p in pids if psutil.pid_exists(p) and psutil.Process(p).status() != psutil.STATUS_ZOMBIE]
        if not alive:
            return True
        time.sleep(0.05)
    return False


def test_a_killed_worker_is_noticed_at_once_and_the_other_goes_on(open_session: MakeSession) -> None:
    before = _segments()
    session = open_session(devices=("cpu:0", "cpu:1"), n_envs=4)
    try:
        session.show([0, 1, 2, 3])
        session.set_speed(None)
        session.play()
        run_until(session, lambda: min(t.steps for t in session.telemetry) > 0)
        os.kill(session.pids[1], signal.SIGKILL)
        begin = time.monotonic()
        died = wait_event(session, msg.WorkerDied, 5.0)
        assert time.monotonic() - begin < 2.0
        assert died.worker == 1 and died.message.exitcode == -signal.SIGKILL
        assert session.states == ["running", "died"]
        steps = session.telemetry[0].steps
        run_until(session, lambda: session.telemetry[0].steps > steps + 50)

        with pytest.raises(StateError):
            session.restart(0)
        session.restart(1)
        run_until(session, lambda: session.states == ["running", "running"], PATIENCE)
        run_until(session, lambda: (f := session.frame()) is not None and list(f.envs) == [0, 1, 2, 3])
    finally:
        session.close()
    assert _segments() <= before


def test_a_worker_that_hangs_is_reported_within_seconds(open_session: MakeSession) -> None:
    if not hasattr(signal, "SIGSTOP"):
        pytest.skip("no SIGSTOP here")
    session = open_session(n_envs=1)
    try:
        os.kill(session.pids[0], signal.SIGSTOP)
        silent = wait_event(session, msg.WorkerSilent, 6.0)
        assert 2.0 <= silent.message.seconds < 4.0
    finally:
        pid = session.pids[0]
        begin = time.monotonic()
        session.close(timeout=1.0)
        assert time.monotonic() - begin < 6.0
        assert _gone([pid], 1.0)


PARENT = """
import sys, time
from genesis_core.runtime import messages as msg
from genesis_core.runtime.supervisor import Session, SessionConfig

def main():
    session = Session(SessionConfig(scene=msg.SceneRequest(path=sys.argv[1]), devices=("cpu:0", "cpu:1"), n_envs=4))
    session.start()
    shown = False
    while True:
        session.wait(0.1)
        session.pump()
        if session.ready and not shown:
            session.show([0, 3])
            session.play()
            shown = True
        if shown and session.frame() is not None:
            print(*session.pids, flush=True)
            time.sleep(1000)

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_and_segments_vanish_with_a_killed_parent(tiny: Path, tmp_path: Path, number: int) -> None:
    before = _segments()
    script = tmp_path / "parent.py"
    script.write_text(textwrap.dedent(PARENT))
    parent = subprocess.Popen([sys.executable, str(script), str(tiny)], stdout=subprocess.PIPE, text=True)
    try:
        line = parent.stdout.readline()
        pids = [int(p) for p in line.split()]
        assert len(pids) == 2
        family = [parent.pid, *(p.pid for p in psutil.Process(parent.pid).children(recursive=True))]
        assert set(pids) <= set(family)
        parent.send_signal(number)
        parent.wait(10)
        assert _gone(family, 3.0), "processes are left"
        assert _segments() <= before
    finally:
        parent.kill()
        parent.wait()


def test_workers_started_by_a_thread_outlive_the_thread(tiny: Path) -> None:
    import threading

    session = Session(SessionConfig(scene=msg.SceneRequest(path=str(tiny)), n_envs=1))
    starter = threading.Thread(target=session.start)
    starter.start()
    starter.join()
    try:
        run_until(session, lambda: session.ready, PATIENCE)
    finally:
        session.close()


def test_a_bad_file_fails_with_its_place_and_without_a_traceback(tmp_path: Path) -> None:
    bad = tmp_path / "bad.xml"
    bad.write_text("<mujoco>\n  <worldbody>\n    <geom type='spher' size='1'/>\n  </worldbody>\n</mujoco>")
    with Session(SessionConfig(scene=msg.SceneRequest(path=str(bad)), n_envs=1)) as session:
        error = failure_of(wait_event(session, msg.Failed), session)
        assert isinstance(error, SceneError) and error.line == 3 and error.file == str(bad)


def test_a_death_is_told_with_the_log_of_the_worker(open_session: MakeSession) -> None:
    with open_session(n_envs=1) as session:
        os.kill(session.pids[0], signal.SIGSEGV)
        error = failure_of(wait_event(session, msg.WorkerDied), session)
        assert isinstance(error, WorkerError)
        assert "SIGSEGV" in str(error) and session.log_file(0) in str(error)
        assert Path(session.log_file(0)).exists()


def test_closing_while_loading_is_quick(tiny: Path) -> None:
    session = Session(SessionConfig(scene=msg.SceneRequest(path=str(tiny)), n_envs=1))
    session.start()
    pids = [p for p in session.pids if p is not None]
    time.sleep(0.3)
    begin = time.monotonic()
    session.close()
    assert time.monotonic() - begin < 6.0
    assert _gone(pids, 1.0)

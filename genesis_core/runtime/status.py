"""Who simulates on this machine: every worker and script keeps one small file in a folder of the user's own.

Files are replaced as a whole, so readers never see half of one; those of processes that are gone are removed by whoever
reads next. Where the folder cannot be had nothing is published and nothing fails.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import msgspec

from genesis_core.log import get_logger

log = get_logger(__name__)

INTERVAL = 1.0  # [s] between two writings
SILENCE = 5.0  # [s] without one: the process hangs or is stopped
FOLDER = "GENESIS_RUN_DIR"  # another folder, for tests and shared machines


class Status(msgspec.Struct, kw_only=True):
    """One worker or script at one moment."""

    pid: int
    born: float  # the process's creation time: a number alone may come again
    kind: str = "worker"  # "worker" of a session, "script" that called gs.init
    title: str = ""  # the scene or the script
    device: str = "cpu"  # "cpu", "cpu:1", "cuda:0", a MIG slice's UUID, "metal"
    parent: int = 0
    state: str = ""
    n_envs: int = 0
    steps: int = 0
    time: float = 0.0  # [s] simulated
    steps_per_second: float = 0.0
    env_steps_per_second: float = 0.0
    realtime_factor: float = 0.0
    memory: int = 0  # [byte] resident on the host
    cpu_percent: float = 0.0
    nan_count: int = 0
    updated: float = 0.0  # wall clock

    @property
    def silent(self) -> bool:
        """Whether it has not written for longer than it should."""
        return time.time() - self.updated > SILENCE


def run_folder() -> Path | None:
    """The folder, made where missing; None where it would not be private to the user."""
    chosen = os.environ.get(FOLDER)
    folder = Path(chosen) if chosen else _usual_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        private = all(_private(place) for place in ((folder,) if chosen else (folder, folder.parent)))
    except OSError as error:
        log.debug("no run folder %s: %s", folder, error)
        return None
    if not private:
        log.debug("the run folder %s belongs to others, or others can write there", folder)
    return folder if private else None


def _usual_folder() -> Path:
    import platformdirs

    with warnings.catch_warnings():  # without XDG_RUNTIME_DIR it is a folder in /tmp, checked like any other
        warnings.simplefilter("ignore")
        return Path(platformdirs.user_runtime_path("genesis-studio", appauthor=False)) / "running"


def _private(folder: Path) -> bool:
    found = folder.lstat()
    if not hasattr(os, "getuid"):
        return True
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


class StatusFile:
    """The file of this process (of one worker in it)."""

    def __init__(self, name: str = "") -> None:
        import psutil

        self.process = psutil.Process()
        self.born = self.process.create_time()
        self._written = 0.0
        folder = run_folder()
        self._path = folder / f"{self.process.pid}{'-' + name if name else ''}.json" if folder is not None else None

    def due(self) -> bool:
        """Whether it is time to write again."""
        return self._path is not None and time.monotonic() - self._written >= INTERVAL

    def publish(self, status: Status) -> None:
        """Writes a status; a full disk or a folder that vanished is no reason to stop simulating."""
        if self._path is None:
            return
        self._written = time.monotonic()
        status.updated = time.time()
        fresh = self._path.with_suffix(".new")
        try:
            fresh.write_bytes(msgspec.json.encode(status))
            os.replace(fresh, self._path)
        except OSError as error:
            log.debug("status not written: %s", error)

    def close(self) -> None:
        """Removes the file. May be called again."""
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
            self._path = None


class Reporter:
    """Publishes what `sample` returns once a second from a thread of its own, until it is closed or the process ends.

    sample() gives environments, steps taken by all environments together and steps; it must not wait.
    """

    def __init__(self, title: str, device: str, sample: Callable[[], tuple[int, int, int]]) -> None:
        self.title, self.device, self._sample = title, device, sample
        self._file = StatusFile("script")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="genesis-status", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        before = (time.monotonic(), 0, 0)
        while True:
            n_envs, env_steps, steps = self._sample()
            now = time.monotonic()
            passed = now - before[0]
            moved = max(0, env_steps - before[1]), max(0, steps - before[2])
            before = (now, env_steps, steps)
            with contextlib.suppress(Exception):  # psutil, where the system hides a process from itself
                self._publish(n_envs, steps, moved, passed)
            if self._stop.wait(INTERVAL):
                return

    def _publish(self, n_envs: int, steps: int, moved: tuple[int, int], passed: float) -> None:
        process = self._file.process
        rates = [m / passed if passed > 0.1 else 0.0 for m in moved]
        self._file.publish(
            Status(
                pid=process.pid,
                born=self._file.born,
                kind="script",
                title=self.title,
                device=self.device,
                parent=os.getppid(),
                state="running" if moved[0] else "idle",
                n_envs=n_envs,
                steps=steps,
                steps_per_second=rates[1],
                env_steps_per_second=rates[0],
                memory=process.memory_info().rss,
                cpu_percent=process.cpu_percent(),
            )
        )

    def close(self) -> None:
        """Ends the thread and removes the file. May be called again."""
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join(2 * INTERVAL)
        self._file.close()


def running() -> list[Status]:
    """Everybody who simulates now, ordered by device and process; files of the dead are removed."""
    folder = run_folder()
    if folder is None:
        return []
    found: list[Status] = []
    for path in folder.glob("*.json"):
        try:
            status = msgspec.json.decode(path.read_bytes(), type=Status)
        except OSError:
            continue  # gone while we looked
        except (msgspec.DecodeError, UnicodeDecodeError):
            status = None  # of another version, or damaged: its process writes it again
        if status is not None and _alive(status):
            found.append(status)
        elif status is not None or time.time() - path.stat().st_mtime > SILENCE:
            with contextlib.suppress(OSError):
                path.unlink()
    for path in folder.glob("*.new"):  # a process killed while it wrote
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > SILENCE:
                path.unlink()
    return sorted(found, key=lambda s: (s.device, s.pid))


def _alive(status: Status) -> bool:
    import psutil

    try:
        process = psutil.Process(status.pid)
        return abs(process.create_time() - status.born) < 1.0 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True

"""Functions that the tests of gs.launch send to other processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "QD_VISIBLE_DEVICE",
    "EGL_DEVICE_ID",
    "CUDA_DEVICE_ORDER",
    "LOCAL_RANK",
    "GENESIS_WORKER",
    "GENESIS_THREADS",
    "OMP_NUM_THREADS",
)


def surroundings(rank: int) -> dict:
    """Its variables, as they were when the process began."""
    return {"rank": rank, "pid": os.getpid(), **{name: os.environ.get(name) for name in VARIABLES}}


def add(rank: int, a: int, b: int = 0) -> int:
    return 100 * rank + a + b


def fail_at(rank: int, where: int) -> None:
    if rank == where:
        raise ValueError(f"broken at {rank}")
    time.sleep(100)


def die_at(rank: int, where: int, folder: str) -> None:
    """One rank is killed; it had a child of its own."""
    if rank == where:
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
        Path(folder, "child").write_text(str(child.pid))
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(100)


def clean_up(rank: int, folder: str) -> None:
    """Waits, and notes that its `finally` ran."""
    Path(folder, f"pid{rank}").write_text(str(os.getpid()))
    try:
        time.sleep(100)
    finally:
        Path(folder, f"cleaned{rank}").write_text("yes")


def stubborn(rank: int, folder: str) -> None:
    """Does not listen."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(folder, f"pid{rank}").write_text(str(os.getpid()))
    while True:
        time.sleep(1)


def unsendable(rank: int) -> object:
    return lambda: rank


class Strange(Exception):
    """An exception that does not survive pickling."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__("strange")


def raise_strange(rank: int) -> None:
    raise Strange(1, 2)


def large(rank: int) -> bytes:
    """More than a pipe holds."""
    return bytes(5_000_000)


def run_scene(rank: int) -> list:
    """A small simulation, with what the process took for it."""
    import threading

    import genesis_core as gs

    gs.init(backend=gs.cpu, seed=rank, logging_level="error")
    scene = gs.Scene()
    ball = scene.add_entity(gs.morphs.Sphere(radius=0.1, pos=(0, 0, 5)))
    scene.build(n_envs=64)
    for _ in range(10):
        scene.step()
    threads = sum(t.name.startswith("genesis-block") for t in threading.enumerate()) + 1
    height = float(ball.get_pos()[:, 2].mean())
    gs.destroy()
    return [height, threads]

"""`genesis-studio doctor`: tries every path for real and says the remedy.

Each path runs in a process of its own with a time limit: a driver that crashes is an answer, not the end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

KERNEL_LIMIT = 300.0  # [s] a first compilation of the kernels takes minutes on a slow machine
LIMIT = 60.0  # [s]
MIN_SHM = 64 * 2**20  # [byte] poses of the shown environments


class Check(msgspec.Struct, kw_only=True):
    """The outcome of one check. `state` is "ok", "warning" or "failed"."""

    name: str
    state: str
    detail: str
    remedy: str = ""
    seconds: float = 0.0


KERNEL = """
from genesis_core.engine import Model, Simulation
from genesis_core.compiler.load import load_scene
from genesis_core import errors
import numpy as np
from resources import scene_path
sim = Simulation(load_scene(scene_path("cartpole")).model, n_envs=2, backend="cpu")
sim.step(5)
qpos = sim.get("qpos")
assert np.isfinite(qpos).all(), qpos
print(f"5 steps of 2 environments, time {sim.get('time')[0]:.3f} s")
"""

PICTURE = """
from genesis_core.render.platform import prepare
prepare()
from genesis_core.compiler.load import load_scene
from genesis_core.render.camera import Camera
from genesis_core.render.offscreen import OffscreenRenderer
from genesis_core.render.egl import describe_context
from genesis_core.layout.scene import initial_rows
from resources import scene_path
import numpy as np
bundle = load_scene(scene_path("cartpole")).bundle
renderer = OffscreenRenderer(bundle, 64, 48)
camera = Camera()
camera.frame(bundle.stat_center, bundle.stat_extent)
picture = renderer.render(camera, initial_rows(bundle)[None], np.zeros((1, 3)))
assert picture.shape == (48, 64, 3) and picture.std() > 1, "the picture is empty"
print(describe_context())
renderer.close()
"""

TORCH = """
import torch
x = torch.arange(6.0).reshape(2, 3)
assert (x @ x.T)[1, 1].item() == 50.0
print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
"""

ENCODER = """
import io
import av, numpy as np
out = av.open(io.BytesIO(), "w", format="mp4")
stream = out.add_stream("libx264", rate=30)
stream.width = stream.height = 64
stream.pix_fmt = "yuv420p"
packets = sum(len(stream.encode(av.VideoFrame.from_ndarray(np.full((64, 64, 3), i, np.uint8)))) for i in range(3))
packets += len(stream.encode())
out.close()
assert packets == 3, packets
print(f"H.264 by PyAV {av.__version__}")
"""

WINDOW = """
import os, sys
from app.startup.platform import prepare
prepare()
from PySide6.QtWidgets import QApplication
app = QApplication(sys.argv[:1])
screen = app.primaryScreen()
print(f"{app.platformName()}, {screen.size().width()}x{screen.size().height()}")
"""


def _run(code: str, limit: float) -> tuple[bool, str]:
    """Runs Python code in a process of its own; (worked, last line or the reason)."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return False, f"no answer within {limit:.0f} s"
    if done.returncode == 0:
        return True, (done.stdout.strip().splitlines() or [""])[-1]
    lines = [line for line in done.stderr.strip().splitlines() if line.strip()]
    if done.returncode < 0:
        return False, f"killed by signal {-done.returncode}" + (f": {lines[-1]}" if lines else "")
    return False, lines[-1] if lines else f"exit code {done.returncode}"


def _real(name: str, code: str, remedy: str, limit: float = LIMIT) -> Check:
    begin = time.perf_counter()
    worked, detail = _run(code, limit)
    return Check(
        name=name,
        state="ok" if worked else "failed",
        detail=detail,
        remedy="" if worked else remedy,
        seconds=time.perf_counter() - begin,
    )


def check_kernel() -> Check:
    """Compiles (or loads) the kernels and takes a few steps."""
    return _real(
        "simulation on the CPU",
        KERNEL,
        "see the message; a damaged kernel cache is rebuilt after deleting the folder of the check 'kernel cache'",
        KERNEL_LIMIT,
    )


def check_torch() -> Check:
    """One small product."""
    return _real("torch tensors", TORCH, "run packaging/setup.sh again, or: pip install 'torch>=2.9,<3'")


def check_picture() -> Check:
    """Draws one small picture off screen."""
    return _real(
        "off-screen picture",
        PICTURE,
        "install Mesa (Debian: apt-get install libegl1 libgl1 libgl1-mesa-dri libfontconfig1) or the NVIDIA driver's "
        "EGL; EGL_DEVICE_ID chooses the device",
    )


def check_encoder() -> Check:
    """Encodes three frames."""
    return _real("video encoder", ENCODER, "pip install --force-reinstall av; recording with --no-video works without")


def check_window() -> Check:
    """Opens the platform plugin of Qt, without a window."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return Check(
            name="window",
            state="warning",
            detail="no display (neither DISPLAY nor WAYLAND_DISPLAY is set)",
            remedy="on a server use `genesis-studio record SCENE`, or log in with a display (ssh -X, VNC, Xvfb)",
        )
    missing = missing_qt_libraries()
    if missing:
        return Check(
            name="window",
            state="failed",
            detail=f"Qt's xcb plugin misses {', '.join(missing)}",
            remedy="run packaging/setup.sh, or: apt-get install libxcb-cursor0 libxcb-icccm4 libxcb-keysyms1 "
            "libxcb-shape0 libxkbcommon-x11-0",
        )
    return _real("window", WINDOW, "see the message; packaging/apt-packages.txt lists the libraries Qt needs")


def missing_qt_libraries() -> list[str]:
    """Shared libraries that Qt's xcb plugin links and this machine lacks (Qt itself names only one, often wrongly)."""
    import importlib.util

    spec = importlib.util.find_spec("PySide6")
    if spec is None or not spec.submodule_search_locations or not shutil.which("ldd"):
        return []
    plugin = Path(next(iter(spec.submodule_search_locations))) / "Qt/plugins/platforms/libqxcb.so"
    if not plugin.exists():
        return []
    listed = subprocess.run(["ldd", str(plugin)], capture_output=True, text=True, timeout=LIMIT, check=False).stdout
    return [line.split()[0] for line in listed.splitlines() if "not found" in line]


def check_shared_memory() -> Check:
    """Room for the poses that workers hand to the window."""
    path = Path("/dev/shm")
    if not path.is_dir():
        return Check(name="shared memory", state="ok", detail="provided by the operating system")
    free = shutil.disk_usage(path).free
    if free < MIN_SHM:
        return Check(
            name="shared memory",
            state="warning",
            detail=f"/dev/shm has {free / 2**20:.0f} MiB free",
            remedy="give the container more (docker run --shm-size=1g); until then poses travel over pipes, slower",
        )
    return Check(name="shared memory", state="ok", detail=f"/dev/shm has {free / 2**20:.0f} MiB free")


def check_cache() -> Check:
    """The folder where compiled kernels live between runs."""
    from genesis_core.backend.cache import cache_folder

    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as error:
        return Check(
            name="kernel cache",
            state="warning",
            detail=f"{folder} is not writable: {error.strerror}",
            remedy="set GENESIS_CACHE_DIR to a folder you may write; until then every start compiles the kernels again",
        )
    size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    return Check(name="kernel cache", state="ok", detail=f"{folder} ({size / 2**20:.0f} MiB)")


def check_gpu() -> Check:
    """NVIDIA GPUs, without making a context on one."""
    from genesis_core.backend.devices import CUDA_PHYSICS, cuda_devices

    notes: list[str] = []
    found = cuda_devices(notes)
    if not found:
        return Check(name="NVIDIA GPUs", state="ok", detail="; ".join(notes) or "none")
    names = ", ".join(f"{d.id} {d.name}" for d in found)
    return Check(name="NVIDIA GPUs", state="warning", detail=names, remedy=CUDA_PHYSICS)


CHECKS: tuple[tuple[str, Callable[[], Check]], ...] = (
    ("NVIDIA GPUs", check_gpu),
    ("kernel cache", check_cache),
    ("simulation on the CPU", check_kernel),
    ("torch tensors", check_torch),
    ("shared memory", check_shared_memory),
    ("off-screen picture", check_picture),
    ("video encoder", check_encoder),
    ("window", check_window),
)


def run_check(name: str, check: Callable[[], Check]) -> Check:
    """One check; a fault of the check itself is its outcome, never the end of the doctor."""
    begin = time.perf_counter()
    try:
        outcome = check()
    except Exception as error:
        outcome = Check(
            name=name, state="failed", detail=f"{type(error).__name__}: {error}", remedy="please report this"
        )
    outcome.seconds = time.perf_counter() - begin
    return outcome


def doctor(as_json: bool = False) -> int:
    """Runs all checks and prints them; returns 0 when none failed, else 1."""
    if as_json:
        outcomes = [run_check(name, check) for name, check in CHECKS]
        print(msgspec.json.format(msgspec.json.encode(outcomes), indent=2).decode())
        return int(any(o.state == "failed" for o in outcomes))

    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    marks = {"ok": "[green]ok     [/]", "warning": "[yellow]warning[/]", "failed": "[red]failed [/]"}
    outcomes = []
    for name, check in CHECKS:
        with console.status(f"checking {name} ..."):
            outcome = run_check(name, check)
        outcomes.append(outcome)
        console.print(
            f"{marks[outcome.state]} {outcome.name}: {escape(outcome.detail)} [dim]({outcome.seconds:.1f} s)[/]"
        )
        if outcome.remedy:
            console.print(f"        -> {escape(outcome.remedy)}")
    failed = sum(o.state == "failed" for o in outcomes)
    console.print("everything works" if not failed else f"{failed} of {len(outcomes)} checks failed")
    return int(failed > 0)

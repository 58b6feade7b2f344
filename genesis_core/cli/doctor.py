"""`genesis-studio doctor`: tries every path for real and says the remedy.

Each path runs in a process of its own with a time limit: a driver that crashes is an answer, not the end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import msgspec

from genesis_core.backend.devices import DeviceInfo
from genesis_core.backend.resolve import device_environment
from genesis_core.cli.probes import CHOICE, ENCODER, GPUS, KERNEL, PICTURE, TORCH, WINDOW, Outcome, probe

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


def _real(
    name: str,
    code: str,
    remedy: str,
    limit: float | None = None,
    environment: Mapping[str, str | None] | None = None,
) -> Check:
    begin = time.perf_counter()
    outcome = probe(code, LIMIT if limit is None else limit, environment)
    return Check(
        name=name,
        state="ok" if outcome.worked else "failed",
        detail=outcome.said,
        remedy="" if outcome.worked else outcome.hint or remedy,
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
    outcome = probe(GPUS, LIMIT)
    if not outcome.worked:
        return Check(
            name="NVIDIA GPUs", state="failed", detail=outcome.said, remedy=outcome.hint or "nvidia-smi tells more"
        )
    found, notes = _listed(outcome)
    if not found:
        return Check(name="NVIDIA GPUs", state="ok", detail="; ".join(notes) or "none")
    names = ", ".join(f"{d.id} {d.name}" for d in found)
    trouble = list(dict.fromkeys([*notes, *(d.simulate for d in found if d.simulate and "slices" not in d.simulate)]))
    return Check(name="NVIDIA GPUs", state="warning" if trouble else "ok", detail=names, remedy="; ".join(trouble))


def _listed(outcome: Outcome) -> tuple[list[DeviceInfo], list[str]]:
    told = msgspec.json.decode(outcome.said)
    return msgspec.convert(told["devices"], list[DeviceInfo]), told["notes"]


def check_choice() -> Check:
    """What the environment variables and the machine choose together."""
    return _real("device choice", CHOICE, "unset CUDA_VISIBLE_DEVICES, QD_VISIBLE_DEVICE and EGL_DEVICE_ID")


def gpu_checks() -> list[tuple[str, Callable[[], Check]]]:
    """A tensor, a kernel and a picture on each GPU and MIG slice that claims to do it."""
    outcome = probe(GPUS, LIMIT)
    found = _listed(outcome)[0] if outcome.worked else []
    numbers = {d.id: int(d.detail.rpartition(":")[2]) for d in found if d.id.startswith("MIG-")}
    checks: list[tuple[str, Callable[[], Check]]] = []
    for device in found:
        if "lost" in device.simulate or "slices" in device.simulate:
            continue
        env = device_environment(device.id, 1, numbers)
        for title, code, limit, wanted in (
            ("torch tensor", TORCH, LIMIT, True),
            ("simulation", KERNEL, KERNEL_LIMIT, not device.simulate),
            ("off-screen picture", PICTURE, LIMIT, not device.render),
        ):
            if wanted:
                name = f"{title} on {device.id}"
                checks.append((name, partial(_real, name, code, GPU_REMEDIES[title], limit, env)))
    return checks


GPU_REMEDIES = {
    "torch tensor": "install a CUDA build of torch that the driver can run (packaging/setup.sh chooses one), or a "
    "newer driver; nvidia-smi must list the GPU without errors",
    "simulation": "pip install 'genesis-studio[gpu]', a driver of the same major CUDA version or newer; until then use "
    "--backend cpu",
    "off-screen picture": "install the EGL part of the NVIDIA driver (libnvidia-gl); in a container set "
    "NVIDIA_DRIVER_CAPABILITIES=all; EGL_DEVICE_ID chooses another device",
}

CHECKS: tuple[tuple[str, Callable[[], Check]], ...] = (
    ("NVIDIA GPUs", check_gpu),
    ("device choice", check_choice),
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
        outcomes = [run_check(name, check) for name, check in [*CHECKS, *gpu_checks()]]
        print(msgspec.json.format(msgspec.json.encode(outcomes), indent=2).decode())
        return int(any(o.state == "failed" for o in outcomes))

    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    marks = {"ok": "[green]ok     [/]", "warning": "[yellow]warning[/]", "failed": "[red]failed [/]"}
    outcomes = []
    for name, check in [*CHECKS, *gpu_checks()]:
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

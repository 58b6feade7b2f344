"""What this machine has to compute and draw on, found without creating a GPU context, and what of it can be used.

CPU shards (`cpu`, `cpu:0`, `cpu:1`) are devices too: every shard is one worker process with its own share of threads.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from genesis_core.backend.choice import DrawDevice, Gpu, Machine
from genesis_core.backend.driver import fastest_first, seen_devices, torch_cuda
from genesis_core.backend.nvml import GpuProcess, GpuState, read_gpus
from genesis_core.errors import DeviceError

if TYPE_CHECKING:
    from genesis_core.render.egl import EglDevice


class DeviceInfo(msgspec.Struct, kw_only=True):
    """One device. `simulate`, `render` and `encode` are empty when it can do that here, else they say why not."""

    id: str  # "cpu", "cuda:0", "MIG-...", "metal", "egl:0"
    kind: str  # "cpu", "cuda", "metal", "egl"
    name: str
    detail: str = ""
    uuid: str = ""
    pci: str = ""
    cores: int = 0
    memory_total: int = 0  # [byte]
    memory_free: int = 0  # [byte]
    load: float | None = None  # 0..1
    temperature: float | None = None  # [degree Celsius]
    processes: list[GpuProcess] = []
    egl: int | None = None  # EGL's number of the same card
    drm: str = ""  # its device file
    simulate: str = ""
    render: str = ""
    encode: str = ""


class Inventory(msgspec.Struct, kw_only=True):
    """Everything found, and what could not be asked (one sentence each)."""

    devices: list[DeviceInfo] = []
    notes: list[str] = []

    def of_kind(self, kind: str) -> list[DeviceInfo]:
        return [d for d in self.devices if d.kind == kind]


def cpu_count() -> int:
    """Cores that this process may use: the affinity mask, cut by a container's CPU quota, never below 1."""
    try:
        count = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        count = os.cpu_count() or 1
    quota = _cgroup_quota()
    if quota is not None:
        count = min(count, max(1, round(quota)))
    return max(1, count)


def _cgroup_quota() -> float | None:
    try:
        limit, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()[:2]
        return None if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError):
        return None


THREADS, CORE_THREADS, LOCAL_RANKS = "GENESIS_THREADS", "QD_NUM_THREADS", "LOCAL_WORLD_SIZE"


def thread_share(env: Mapping[str, str] | None = None) -> int:
    """CPU threads for a simulation of this process that was given no number.

    GENESIS_THREADS or Genesis' QD_NUM_THREADS where set; else the usable cores, shared out between the ranks that
    torchrun started on this machine (LOCAL_WORLD_SIZE): together they never take more threads than there are cores.
    """
    env = os.environ if env is None else env
    for name in (THREADS, CORE_THREADS):
        text = env.get(name, "").strip()
        if text:
            if not text.isdecimal() or int(text) < 1:
                raise DeviceError(f"{name}={text!r} is no number of threads", hint="a number from 1")
            return int(text)
    ranks = env.get(LOCAL_RANKS, "").strip()
    return max(1, cpu_count() // max(1, int(ranks))) if ranks.isdecimal() else cpu_count()


def _cpu_temperature() -> float | None:
    """The hottest core [degree Celsius], where the system tells."""
    import psutil

    try:
        sensors = psutil.sensors_temperatures()
    except (AttributeError, OSError, ValueError):
        return None
    readings = [t.current for name in ("coretemp", "k10temp", "cpu_thermal") for t in sensors.get(name, ())]
    return max(readings, default=None)


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cpu_device() -> DeviceInfo:
    """The processor of this machine."""
    import psutil

    memory = psutil.virtual_memory()
    cores = cpu_count()
    return DeviceInfo(
        id="cpu",
        kind="cpu",
        name=_cpu_name(),
        detail=f"{cores} core{'s' if cores != 1 else ''} usable",
        cores=cores,
        memory_total=memory.total,
        memory_free=memory.available,
        load=psutil.cpu_percent(0.05) / 100,
        temperature=_cpu_temperature(),
        render="draws through the EGL devices below",
    )


CUDA_PHYSICS = "physics on CUDA is not in this version; simulation runs on the CPU"


def no_cuda_physics() -> str:
    """Why this installation cannot simulate on CUDA, whatever the machine has; "" = it can."""
    if importlib.util.find_spec("genesis_core.backend.cuda") is None:
        return CUDA_PHYSICS
    if importlib.util.find_spec("numba_cuda") is None:
        return "the package numba-cuda is not installed: pip install 'genesis-studio[gpu]'"
    needed = torch_cuda()
    if not needed:
        build = "is a CPU build" if needed == "" else "is not installed"
        return f"torch {build}; a CUDA build is needed (packaging/setup.sh chooses it where it finds a GPU)"
    return ""


def _old_driver(state: GpuState) -> str:
    """The driver against torch's CUDA: a driver runs everything of its own major version and older."""
    needed = torch_cuda()
    if not needed or not state.cuda or state.cuda // 1000 >= int(needed.split(".")[0]):
        return ""
    has = f"{state.cuda // 1000}.{state.cuda % 1000 // 10}"
    return f"the driver {state.driver} runs CUDA up to {has}, torch was built for {needed}: install a newer driver"


def cuda_devices(notes: list[str]) -> list[DeviceInfo]:
    """NVIDIA GPUs and their MIG slices (NVML's order). Adds to `notes` why there are none."""
    found: list[DeviceInfo] = []
    physics = no_cuda_physics()
    for state in read_gpus(notes):
        found += _described(state, physics)
    return found


def _described(state: GpuState, physics: str) -> list[DeviceInfo]:
    gpu = state.gpu
    why_not = state.lost or _old_driver(state) or physics
    if gpu.mig_mode and not why_not:
        why_not = "in MIG mode: its slices simulate" if gpu.mig else "in MIG mode without slices"
    whole = DeviceInfo(
        id=f"cuda:{gpu.index}",
        kind="cuda",
        name=gpu.name,
        detail=f"driver {state.driver}" if state.driver else "",
        uuid=gpu.uuid,
        pci=gpu.pci,
        memory_total=state.memory_total,
        memory_free=state.memory_free,
        load=state.load,
        temperature=state.temperature,
        processes=state.processes,
        simulate=why_not,
        render=state.lost,
        encode="video is encoded on the CPU (libx264)",
    )
    slices = [
        DeviceInfo(
            id=mig.uuid,
            kind="cuda",
            name=f"slice {mig.gpu_instance}/{mig.compute_instance} of {gpu.name}",
            detail=f"of cuda:{gpu.index}",
            uuid=mig.uuid,
            pci=gpu.pci,
            memory_total=mig.memory_total,
            simulate=state.lost or _old_driver(state) or physics,
            render="MIG slices do not draw",
            encode="video is encoded on the CPU (libx264)",
        )
        for mig in gpu.mig
    ]
    return [whole, *slices]


def no_metal() -> str:
    """Why Metal cannot be used on this machine; "" = it can."""
    if sys.platform != "darwin":
        return f"it exists on macOS only, this is {sys.platform}"
    return "" if platform.machine() == "arm64" else f"it needs an Apple chip, this is {platform.machine()}"


def metal_devices() -> list[DeviceInfo]:
    """Apple's GPU: torch tensors live on it, the physics runs on the CPU lanes of the same chip."""
    if no_metal():
        return []
    return [
        DeviceInfo(
            id="metal",
            kind="metal",
            name="Apple GPU",
            detail="tensors on mps, physics on the CPU lanes",
            render="off-screen pictures need EGL, which macOS does not have",
            encode="video is encoded on the CPU (libx264)",
        )
    ]


def read_machine(draw: list[EglDevice] | None = None, *, computing: bool = True) -> tuple[Machine, list[GpuState]]:
    """What `choose` chooses from, and how the GPUs are doing.

    draw: what EGL listed, None where that does not matter. computing=False is for drawing: GPUs count there even where
    nothing can be simulated on them.
    """
    notes: list[str] = []
    states = [state for state in read_gpus(notes) if not state.lost]
    gpus = _ranked([state.gpu for state in states])
    old = next((text for state in states if (text := _old_driver(state))), "")
    known = [g.uuid for g in gpus] + [m.uuid for g in gpus for m in g.mig]
    devices = None
    if draw is not None:
        devices = tuple(DrawDevice(d.index, d.name, d.software, d.pci, d.uuid, d.cuda_ordinal) for d in draw)
    machine = Machine(
        system=sys.platform,
        gpus=tuple(gpus),
        draw=devices,
        no_cuda=("; ".join(notes) if not gpus else no_cuda_physics() or old) if computing else "",
        no_metal=no_metal(),
        seen=seen_devices(known) if gpus else None,
    )
    return machine, states


def _ranked(gpus: list[Gpu]) -> list[Gpu]:
    """With CUDA's own order, which differs from NVML's where GPUs differ."""
    if len({g.name for g in gpus}) <= 1:
        return gpus
    order = {address.lower()[-12:]: k for k, address in enumerate(fastest_first())}
    return [msgspec.structs.replace(g, speed_rank=order.get(g.pci.lower()[-12:])) for g in gpus]


def egl_devices(notes: list[str]) -> list[DeviceInfo]:
    """Devices that can draw off screen."""
    from genesis_core.render.egl import list_egl_devices

    if sys.platform in ("darwin", "win32"):
        notes.append(f"no EGL devices: {sys.platform} has no EGL; record mode and camera.render() need Linux")
        return []
    try:
        listed = list_egl_devices()
    except Exception as error:  # a broken GL driver must not hide the other devices
        notes.append(f"no EGL devices: {error}")
        return []
    return [
        DeviceInfo(
            id=f"egl:{device.index}",
            kind="egl",
            name=device.name,
            detail=_card(device),
            uuid=device.uuid,
            pci=device.pci,
            egl=device.index,
            drm=device.drm_file or "",
            simulate="an EGL device only draws",
            encode="video is encoded on the CPU (libx264)",
        )
        for device in listed
    ]


def _card(device: EglDevice) -> str:
    """What ties an EGL device to a card: its device file and its number in CUDA, where the driver tells."""
    if device.software:
        return "software"
    ordinal = f"CUDA {device.cuda_ordinal}" if device.cuda_ordinal is not None else ""
    return ", ".join(part for part in (device.drm_file or "", ordinal) if part)


def inventory(*, with_egl: bool = True) -> Inventory:
    """Everything this machine offers."""
    notes: list[str] = []
    gpus = cuda_devices(notes)
    devices = [cpu_device(), *gpus, *metal_devices()]
    if with_egl:
        drawing = egl_devices(notes)
        _join_drawing(gpus, drawing)
        devices += drawing
    return Inventory(devices=devices, notes=notes)


def _join_drawing(gpus: list[DeviceInfo], drawing: list[DeviceInfo]) -> None:
    """Notes at each GPU which EGL device is the same card, or that there is none."""
    by_card = {d.pci.lower()[-12:]: d for d in drawing if d.pci} | {d.uuid: d for d in drawing if d.uuid}
    for gpu in gpus:
        if gpu.render:
            continue
        same = by_card.get(gpu.uuid) or by_card.get(gpu.pci.lower()[-12:])
        if same is None:
            gpu.render = "EGL lists no device for it (containers: NVIDIA_DRIVER_CAPABILITIES must hold 'graphics')"
        else:
            gpu.egl, gpu.drm = same.egl, same.drm
            same.detail = f"{same.detail}, the card of {gpu.id}".lstrip(", ")

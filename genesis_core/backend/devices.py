"""What this machine has to compute and draw on, found without creating a GPU context, and what of it can be used.

CPU shards (`cpu`, `cpu:0`, `cpu:1`) are devices too: every shard is one worker process with its own share of threads.
"""

from __future__ import annotations

import difflib
import os
import platform
import sys
from pathlib import Path

import msgspec

from genesis_core.errors import DeviceError

BACKENDS = ("auto", "cpu", "cuda", "metal")
MAX_CPU_SHARDS = 1024


class DeviceInfo(msgspec.Struct, kw_only=True):
    """One device. `simulate`, `render` and `encode` are empty when it can do that here, else they say why not."""

    id: str  # "cpu", "cuda:0", "metal", "egl:0"
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
        render="draws through the EGL devices below",
    )


CUDA_PHYSICS = "physics on CUDA is not in this version; the GPU is listed, simulation runs on cpu"


def cuda_devices(notes: list[str]) -> list[DeviceInfo]:
    """NVIDIA GPUs as NVML tells them (physical order), without a CUDA context. Adds to `notes` why there are none."""
    try:
        import pynvml
    except ImportError:
        notes.append("NVIDIA GPUs were not looked for: the package nvidia-ml-py is not installed")
        return []
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        notes.append(f"no NVIDIA GPU: {error} (no NVIDIA driver on this machine, or it is not running)")
        return []
    found = []
    try:
        for index in range(pynvml.nvmlDeviceGetCount()):
            try:
                found.append(_nvml_device(pynvml, index))
            except pynvml.NVMLError as error:
                notes.append(f"GPU {index} does not answer NVML: {error}")
    except pynvml.NVMLError as error:
        notes.append(f"NVML failed while listing GPUs: {error}")
    finally:
        pynvml.nvmlShutdown()
    return found


def _nvml_device(nvml, index: int) -> DeviceInfo:
    def ask(call, *args):
        try:
            return call(*args)
        except nvml.NVMLError:
            return None

    def text(value) -> str:
        return value.decode() if isinstance(value, bytes) else str(value or "")

    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = ask(nvml.nvmlDeviceGetMemoryInfo, handle)
    pci = ask(nvml.nvmlDeviceGetPciInfo, handle)
    usage = ask(nvml.nvmlDeviceGetUtilizationRates, handle)
    return DeviceInfo(
        id=f"cuda:{index}",
        kind="cuda",
        name=text(ask(nvml.nvmlDeviceGetName, handle)),
        detail=f"driver {text(ask(nvml.nvmlSystemGetDriverVersion))}",
        uuid=text(ask(nvml.nvmlDeviceGetUUID, handle)),
        pci=text(pci.busId) if pci else "",
        memory_total=memory.total if memory else 0,
        memory_free=memory.free if memory else 0,
        load=usage.gpu / 100 if usage else None,
        temperature=ask(nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
        simulate=CUDA_PHYSICS,
    )


def metal_devices() -> list[DeviceInfo]:
    """Apple's GPU: torch tensors live on it, the physics runs on the CPU lanes of the same chip."""
    if sys.platform != "darwin" or platform.machine() != "arm64":
        return []
    return [DeviceInfo(id="metal", kind="metal", name="Apple GPU", detail="tensors on mps, physics on the CPU lanes")]


def egl_devices(notes: list[str]) -> list[DeviceInfo]:
    """Devices that can draw off screen."""
    from genesis_core.render.egl import list_egl_devices

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
            detail="software" if device.software else (device.drm_file or ""),
            simulate="an EGL device only draws",
            encode="video is encoded on the CPU",
        )
        for device in listed
    ]


def inventory(*, with_egl: bool = True) -> Inventory:
    """Everything this machine offers."""
    notes: list[str] = []
    devices = [cpu_device(), *cuda_devices(notes), *metal_devices()]
    if with_egl:
        devices += egl_devices(notes)
    return Inventory(devices=devices, notes=notes)


def resolve_devices(text: str | None, backend: str = "auto") -> tuple[str, ...]:
    """The worker devices that `--devices TEXT --backend NAME` asks for, one id per worker process.

    `None` and "all" mean everything the backend has; "cpu:4" means four CPU shards ("cpu:0" ... "cpu:3"); "cpu" one.
    Raises DeviceError with the value, what is there, and what to write instead.
    """
    if backend not in BACKENDS:
        near = difflib.get_close_matches(backend, BACKENDS, 1)
        raise DeviceError(
            f"unknown backend {backend!r}",
            hint=f"did you mean {near[0]!r}?" if near else f"one of {', '.join(BACKENDS)}",
        )
    if backend == "cuda":
        notes: list[str] = []
        found = cuda_devices(notes)
        if found:
            names = ", ".join(d.name for d in found)
            raise DeviceError(f"backend 'cuda': {CUDA_PHYSICS} (found: {names})", hint="use --backend cpu")
        raise DeviceError(f"backend 'cuda' is not available: {'; '.join(notes)}", hint="use --backend cpu or auto")
    if backend == "metal" and not metal_devices():
        raise DeviceError(
            f"backend 'metal' is not available: this is {sys.platform} on {platform.machine()}, not an Apple chip",
            hint="use --backend cpu or auto",
        )
    wanted = (text or "cpu").strip()
    if wanted in ("all", "cpu", "auto", ""):
        return ("cpu",)
    parts = [part.strip() for part in wanted.split(",")]
    if len(parts) == 1 and parts[0].startswith("cpu:"):
        return _cpu_shards(parts[0])
    for part in parts:
        if not part.startswith("cpu"):
            raise _unknown_device(part)
    raise DeviceError(
        f"devices {wanted!r} name the CPU more than once",
        hint=f"for {len(parts)} worker processes on the CPU write cpu:{len(parts)}",
    )


def _cpu_shards(part: str) -> tuple[str, ...]:
    count = part[len("cpu:") :]
    if not count.isdecimal() or not 1 <= int(count) <= MAX_CPU_SHARDS:
        raise DeviceError(
            f"device {part!r} needs a number of CPU workers from 1 to {MAX_CPU_SHARDS}",
            hint=f"this machine has {cpu_count()} usable cores; more workers than cores are slower",
        )
    return tuple(f"cpu:{i}" for i in range(int(count)))


def _unknown_device(part: str) -> DeviceError:
    notes: list[str] = []
    gpus = cuda_devices(notes)
    if part.isdecimal() and gpus:
        names = ", ".join(f"{i} {g.name}" for i, g in enumerate(gpus))
        return DeviceError(f"device {part!r}: {CUDA_PHYSICS} (GPUs: {names})", hint="use --devices cpu")
    there = "; ".join(notes) or ", ".join(g.id for g in gpus)
    return DeviceError(
        f"unknown device {part!r} ({there})", hint="on this machine: cpu, or cpu:N for N worker processes"
    )

"""NVIDIA GPUs as NVML tells them: no CUDA context is made, and no mask is frozen."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import msgspec

from genesis_core.backend.choice import Gpu, Mig


class GpuProcess(msgspec.Struct):
    """A process that computes or draws on a GPU."""

    pid: int
    memory: int = 0  # [byte]; 0 where the driver does not tell
    name: str = ""


class GpuState(msgspec.Struct):
    """A GPU and how it is doing. `lost` says why it does not answer ("" = it does)."""

    gpu: Gpu
    memory_total: int = 0  # [byte]
    memory_free: int = 0  # [byte]
    load: float | None = None  # 0..1
    temperature: float | None = None  # [degree Celsius]
    processes: list[GpuProcess] = []
    driver: str = ""
    cuda: int = 0  # newest CUDA that the driver runs, 1000 major + 10 minor
    lost: str = ""


def read_gpus(notes: list[str]) -> list[GpuState]:
    """All GPUs in NVML's order. Adds to `notes` why there are none, or which of them do not answer."""
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        notes.append("NVIDIA GPUs were not looked for: the package nvidia-ml-py is not installed")
        return []
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        notes.append(f"no NVIDIA GPU: {error} (no NVIDIA driver on this machine, or it is not running)")
        return []
    except OSError as error:  # a library that is there and does not load
        notes.append(f"no NVIDIA GPU: NVML does not load: {error}")
        return []
    found = []
    try:
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                found.append(_read_gpu(nvml, index))
            except nvml.NVMLError as error:
                why = f"GPU {index} does not answer NVML: {error}"
                notes.append(f"{why} (nvidia-smi tells more; a lost GPU comes back with a restart of the machine)")
                found.append(GpuState(Gpu(index, "GPU that does not answer", ""), lost=why))
    except nvml.NVMLError as error:
        notes.append(f"NVML failed while listing GPUs: {error}")
    finally:
        _asked(nvml, nvml.nvmlShutdown)
    return found


def _asked(nvml: Any, call: Callable[..., Any], *args: Any) -> Any:
    """The answer, or None where this GPU or driver has none."""
    try:
        return call(*args)
    except nvml.NVMLError:
        return None


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value or "")


def _read_gpu(nvml: Any, index: int) -> GpuState:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    name = _text(nvml.nvmlDeviceGetName(handle))  # also the first question that a lost GPU fails
    pci = _asked(nvml, nvml.nvmlDeviceGetPciInfo, handle)
    memory = _asked(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    usage = _asked(nvml, nvml.nvmlDeviceGetUtilizationRates, handle)
    mode, slices = _slices(nvml, handle)
    gpu = Gpu(
        index=index,
        name=name,
        uuid=_text(_asked(nvml, nvml.nvmlDeviceGetUUID, handle)),
        pci=_text(pci.busId) if pci else "",
        mig_mode=mode,
        mig=slices,
    )
    return GpuState(
        gpu=gpu,
        memory_total=memory.total if memory else 0,
        memory_free=memory.free if memory else 0,
        load=usage.gpu / 100 if usage else None,
        temperature=_asked(nvml, nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU),
        processes=_processes(nvml, handle),
        driver=_text(_asked(nvml, nvml.nvmlSystemGetDriverVersion)),
        cuda=_asked(nvml, nvml.nvmlSystemGetCudaDriverVersion) or 0,
    )


def _slices(nvml: Any, handle: Any) -> tuple[bool, tuple[Mig, ...]]:
    mode = _asked(nvml, nvml.nvmlDeviceGetMigMode, handle)
    if not mode or not mode[0]:
        return False, ()
    out = []
    for k in range(_asked(nvml, nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
        part = _asked(nvml, nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, k)
        if part is None:
            continue  # places of slices that were not made
        memory = _asked(nvml, nvml.nvmlDeviceGetMemoryInfo, part)
        out.append(
            Mig(
                uuid=_text(_asked(nvml, nvml.nvmlDeviceGetUUID, part)),
                gpu_instance=_asked(nvml, nvml.nvmlDeviceGetGpuInstanceId, part) or 0,
                compute_instance=_asked(nvml, nvml.nvmlDeviceGetComputeInstanceId, part) or 0,
                memory_total=memory.total if memory else 0,
            )
        )
    return True, tuple(out)


def _processes(nvml: Any, handle: Any) -> list[GpuProcess]:
    found: dict[int, int] = {}
    for ask in (nvml.nvmlDeviceGetComputeRunningProcesses, nvml.nvmlDeviceGetGraphicsRunningProcesses):
        for process in _asked(nvml, ask, handle) or ():
            found[process.pid] = max(found.get(process.pid, 0), process.usedGpuMemory or 0)
    return [GpuProcess(pid, memory, _process_name(pid)) for pid, memory in sorted(found.items())]


def _process_name(pid: int) -> str:
    """The program's name; empty for one in another container."""
    import psutil

    try:
        return psutil.Process(pid).name()
    except psutil.Error:
        return ""

"""A stand-in for the module pynvml: GPUs that answer, do not answer, or are not there."""

from __future__ import annotations

import types
from dataclasses import dataclass, field

import pytest

GIB = 2**30


class NVMLError(Exception):
    """As pynvml's."""


@dataclass
class FakeSlice:
    uuid: str
    instance: int
    memory: int = 20 * GIB


@dataclass
class FakeGpu:
    name: str = "NVIDIA H200"
    uuid: str = ""
    pci: str = ""
    memory: int = 140 * GIB
    used: int = 10 * GIB
    lost: bool = False
    slices: list[FakeSlice] | None = None
    pids: list[int] = field(default_factory=list)


class FakeNvml(types.ModuleType):
    """What `genesis_core.backend.nvml` asks; handles are the fakes themselves."""

    NVML_TEMPERATURE_GPU = 0
    NVMLError = NVMLError

    def __init__(self, gpus: list[FakeGpu], *, broken: str = "", cuda: int = 13000) -> None:
        super().__init__("pynvml")
        self.gpus, self.broken, self.cuda = gpus, broken, cuda
        self.started = 0
        for k, gpu in enumerate(gpus):
            gpu.uuid = gpu.uuid or f"GPU-{k}{k}aa-0000"
            gpu.pci = gpu.pci or f"00000000:{k + 1:02X}:00.0"

    def nvmlInit(self) -> None:
        if self.broken == "init":
            raise NVMLError("Driver Not Loaded")
        if self.broken == "library":
            raise OSError("libnvidia-ml.so.1: invalid ELF header")
        self.started += 1

    def nvmlShutdown(self) -> None:
        self.started -= 1

    def nvmlDeviceGetCount(self) -> int:
        if self.broken == "count":
            raise NVMLError("Unknown Error")
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:
        if self.gpus[index].lost:
            raise NVMLError("GPU is lost")
        return self.gpus[index]

    def nvmlDeviceGetName(self, handle: FakeGpu) -> bytes:
        return handle.name.encode()

    def nvmlDeviceGetUUID(self, handle: FakeGpu | FakeSlice) -> str:
        return handle.uuid

    def nvmlDeviceGetPciInfo(self, handle: FakeGpu):
        return types.SimpleNamespace(busId=handle.pci)

    def nvmlDeviceGetMemoryInfo(self, handle):
        used = getattr(handle, "used", 0)
        return types.SimpleNamespace(total=handle.memory, free=handle.memory - used, used=used)

    def nvmlDeviceGetUtilizationRates(self, handle):
        return types.SimpleNamespace(gpu=37)

    def nvmlDeviceGetTemperature(self, handle, kind: int) -> int:
        raise NVMLError("Not Supported")

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.65"

    def nvmlSystemGetCudaDriverVersion(self) -> int:
        return self.cuda

    def nvmlDeviceGetMigMode(self, handle: FakeGpu):
        if handle.slices is None:
            raise NVMLError("Not Supported")
        return 1, 1

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: FakeGpu) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: FakeGpu, index: int) -> FakeSlice:
        if handle.slices is None or index >= len(handle.slices):
            raise NVMLError("Not Found")
        return handle.slices[index]

    def nvmlDeviceGetGpuInstanceId(self, part: FakeSlice) -> int:
        return part.instance

    def nvmlDeviceGetComputeInstanceId(self, part: FakeSlice) -> int:
        return 0

    def nvmlDeviceGetComputeRunningProcesses(self, handle: FakeGpu):
        return [types.SimpleNamespace(pid=pid, usedGpuMemory=GIB) for pid in handle.pids]

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: FakeGpu):
        return [types.SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in handle.pids]


def install(
    monkeypatch: pytest.MonkeyPatch, *gpus: FakeGpu, physics: str = "", torch: str = "13.0", **more
) -> FakeNvml:
    """Puts fake GPUs in place. physics: why they cannot simulate ("" = they can); torch: its CUDA version."""
    from genesis_core.backend import devices

    nvml = FakeNvml(list(gpus), **more)
    monkeypatch.setitem(__import__("sys").modules, "pynvml", nvml)
    monkeypatch.setattr(devices, "no_cuda_physics", lambda: physics)
    monkeypatch.setattr(devices, "torch_cuda", lambda: torch)
    monkeypatch.setattr(devices, "seen_devices", lambda known: None)
    for name in ("CUDA_VISIBLE_DEVICES", "QD_VISIBLE_DEVICE", "EGL_DEVICE_ID", "LOCAL_RANK", "CUDA_DEVICE_ORDER"):
        monkeypatch.delenv(name, raising=False)
    return nvml

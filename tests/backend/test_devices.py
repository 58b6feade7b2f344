"""Devices are found without a context, and whatever does not answer is told."""

from __future__ import annotations

import ctypes
import os
import sys

import pytest
from fake_gpus import GIB, FakeGpu, FakeSlice, install

from genesis_core.backend import devices, driver
from genesis_core.backend.devices import cpu_count, cpu_device, inventory, read_machine, thread_share
from genesis_core.errors import DeviceError
from genesis_core.render.egl import EglDevice


def test_the_cpu_is_described_from_the_machine():
    info = cpu_device()
    assert info.cores == cpu_count() >= 1
    assert 0 < info.memory_free <= info.memory_total
    assert info.simulate == ""
    assert info.name


def test_a_cgroup_quota_cuts_the_core_count(monkeypatch):
    monkeypatch.setattr(devices.os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)
    monkeypatch.setattr(devices, "_cgroup_quota", lambda: 2.5)
    assert cpu_count() == 2
    monkeypatch.setattr(devices, "_cgroup_quota", lambda: 0.3)
    assert cpu_count() == 1


@pytest.mark.parametrize(
    ("env", "threads"),
    [
        ({}, 16),
        ({"LOCAL_WORLD_SIZE": "4"}, 4),
        ({"LOCAL_WORLD_SIZE": "3"}, 5),
        ({"LOCAL_WORLD_SIZE": "40"}, 1),
        ({"LOCAL_WORLD_SIZE": "4", "GENESIS_THREADS": "9"}, 9),
        ({"QD_NUM_THREADS": "2"}, 2),
        ({"GENESIS_THREADS": " "}, 16),
        ({"OMP_NUM_THREADS": "1"}, 16),
    ],
)
def test_ranks_on_one_machine_share_its_cores(monkeypatch, env, threads):
    monkeypatch.setattr(devices, "cpu_count", lambda: 16)
    assert thread_share(env) == threads


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
def test_a_thread_count_that_makes_no_sense_is_refused(value):
    with pytest.raises(DeviceError, match="GENESIS_THREADS"):
        thread_share({"GENESIS_THREADS": value})


def test_a_gpu_tells_everything_that_nvml_knows(monkeypatch):
    nvml = install(monkeypatch, FakeGpu(pids=[os.getpid(), 4_000_000]))
    notes: list[str] = []
    (gpu,) = devices.cuda_devices(notes)
    assert notes == [] and nvml.started == 0
    assert (gpu.id, gpu.name, gpu.uuid, gpu.pci) == ("cuda:0", "NVIDIA H200", "GPU-00aa-0000", "00000000:01:00.0")
    assert (gpu.memory_total, gpu.memory_free, gpu.load) == (140 * GIB, 130 * GIB, 0.37)
    assert gpu.temperature is None, "a question without an answer stays empty"
    assert gpu.simulate == "" and "CPU" in gpu.encode
    own, foreign = gpu.processes
    assert (own.pid, own.memory) == (os.getpid(), GIB) and "python" in own.name.lower()
    assert foreign.name == ""


def test_slices_are_devices_and_the_sliced_gpu_is_none(monkeypatch):
    install(monkeypatch, FakeGpu(slices=[FakeSlice("MIG-aaaa", 1), FakeSlice("MIG-bbbb", 5)]))
    whole, first, second = devices.cuda_devices([])
    assert "slices simulate" in whole.simulate
    assert (first.id, first.simulate, first.memory_total) == ("MIG-aaaa", "", 20 * GIB)
    assert second.name == "slice 5/0 of NVIDIA H200"


def test_a_lost_gpu_hides_no_other(monkeypatch):
    install(monkeypatch, FakeGpu(), FakeGpu(lost=True), FakeGpu())
    notes: list[str] = []
    found = devices.cuda_devices(notes)
    assert [g.id for g in found] == ["cuda:0", "cuda:1", "cuda:2"]
    assert "GPU is lost" in found[1].simulate and "GPU is lost" in found[1].render
    assert found[2].simulate == ""
    assert "GPU 1" in notes[0] and "restart" in notes[0]
    machine, _ = read_machine()
    assert [g.index for g in machine.gpus] == [0, 2]


@pytest.mark.parametrize(
    ("broken", "word"), [("init", "Driver Not Loaded"), ("library", "invalid ELF"), ("count", "Unknown Error")]
)
def test_nvml_failing_is_a_note_and_not_an_error(monkeypatch, broken, word):
    install(monkeypatch, FakeGpu(), broken=broken)
    notes: list[str] = []
    assert devices.cuda_devices(notes) == []
    assert len(notes) == 1 and word in notes[0]
    assert word in read_machine()[0].no_cuda


def test_nvml_missing_is_a_note(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)  # what import does without the package
    notes: list[str] = []
    assert devices.cuda_devices(notes) == []
    assert "nvidia-ml-py is not installed" in notes[0]


@pytest.mark.parametrize(("driver_cuda", "torch", "old"), [(12040, "13.0", True), (13000, "13.2", False)])
def test_a_driver_older_than_torch_is_said(monkeypatch, driver_cuda, torch, old):
    install(monkeypatch, FakeGpu(), cuda=driver_cuda, torch=torch)
    why = devices.cuda_devices([])[0].simulate
    assert ("CUDA up to 12.4" in why and "13.0" in why) if old else why == ""


@pytest.mark.parametrize(("torch", "word"), [("", "CPU build"), (None, "not installed")])
def test_torch_without_cuda_is_said(monkeypatch, torch, word):
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(devices, "torch_cuda", lambda: torch)
    assert word in devices.no_cuda_physics()


def test_the_cuda_version_of_torch_is_read_without_importing_it():
    import torch

    assert driver.torch_cuda() == (torch.version.cuda or "")


def test_fastest_first_is_asked_only_where_gpus_differ(monkeypatch):
    asked = []

    def order():
        asked.append(1)
        return ("0000:02:00.0", "0000:01:00.0")

    monkeypatch.setattr(devices, "fastest_first", order)
    install(monkeypatch, FakeGpu(), FakeGpu())
    assert [g.speed_rank for g in read_machine()[0].gpus] == [None, None] and not asked
    install(monkeypatch, FakeGpu("NVIDIA T4"), FakeGpu())
    assert [g.speed_rank for g in read_machine()[0].gpus] == [1, 0] and asked


def test_a_gpu_knows_the_egl_device_of_the_same_card(monkeypatch):
    install(monkeypatch, FakeGpu(), FakeGpu(), FakeGpu())
    listed = [
        EglDevice(0, "b", False, "/dev/dri/card7", 1, pci="0000:02:00.0"),
        EglDevice(1, "a", False, uuid="GPU-00aa-0000"),
        EglDevice(2, "llvmpipe", True),
    ]
    monkeypatch.setattr("genesis_core.render.egl.list_egl_devices", lambda: listed)
    found = {d.id: d for d in inventory().devices}
    assert [found[f"cuda:{k}"].egl for k in range(3)] == [1, 0, None]
    assert found["cuda:1"].drm == "/dev/dri/card7" and found["cuda:1"].render == ""
    assert "graphics" in found["cuda:2"].render
    assert found["egl:0"].detail == "/dev/dri/card7, CUDA 1, the card of cuda:1"
    assert found["egl:2"].detail == "software"


class Driver:
    """The few calls of libcuda that are asked."""

    def __init__(self, uuids: list[bytes] | None) -> None:
        self.uuids = uuids

    def cuDeviceGetCount(self, count) -> int:
        if self.uuids is None:
            return driver.NOT_INITIALIZED
        count._obj.value = len(self.uuids)
        return 0

    def cuDeviceGetUuid_v2(self, raw, ordinal: int) -> int:
        ctypes.memmove(raw._obj, (self.uuids or [])[ordinal], 16)
        return 0


def test_what_cuda_shows_this_process_is_read_without_initialising_it():
    one, two = bytes(range(16)), bytes(range(16, 32))
    known = ["GPU-10111213-1415-1617-1819-1a1b1c1d1e1f", "MIG-00010203-0405-0607-0809-0a0b0c0d0e0f"]
    assert driver.seen_devices(known, Driver(None)) is None
    assert driver.seen_devices(known, Driver([])) == ()
    assert driver.seen_devices(known, Driver([two, one])) == (known[0], known[1])
    assert driver.seen_devices([], Driver([one])) == ("GPU-000102030405060708090a0b0c0d0e0f",)

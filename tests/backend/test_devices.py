"""Devices are named, found and refused plainly."""

import pytest

from genesis_core.backend import devices
from genesis_core.backend.devices import DeviceInfo, cpu_count, cpu_device, resolve_devices
from genesis_core.errors import DeviceError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, ("cpu",)),
        ("cpu", ("cpu",)),
        ("all", ("cpu",)),
        ("auto", ("cpu",)),
        (" cpu ", ("cpu",)),
        ("cpu:1", ("cpu:0",)),
        ("cpu:3", ("cpu:0", "cpu:1", "cpu:2")),
    ],
)
def test_device_text_becomes_one_id_per_worker(text, expected):
    assert resolve_devices(text, "cpu") == expected


@pytest.mark.parametrize("text", ["cpu:0", "cpu:-1", "cpu:x", "cpu:", "cpu:99999", "cpu:1.5"])
def test_a_shard_count_that_makes_no_sense_is_refused_with_its_value(text):
    with pytest.raises(DeviceError, match="number of CPU workers") as caught:
        resolve_devices(text)
    assert text in str(caught.value)


def test_the_same_cpu_twice_is_refused_and_shards_are_proposed():
    with pytest.raises(DeviceError, match="cpu:2"):
        resolve_devices("cpu,cpu")


@pytest.mark.parametrize("text", ["7", "gpu0", "cuda:1", "0,1"])
def test_an_unknown_device_says_what_is_there(text, monkeypatch):
    monkeypatch.setattr(devices, "cuda_devices", lambda notes: notes.append("no NVIDIA GPU: test") or [])
    with pytest.raises(DeviceError, match="no NVIDIA GPU"):
        resolve_devices(text)


def test_an_unknown_backend_proposes_the_near_name():
    with pytest.raises(DeviceError, match="did you mean 'cuda'"):
        resolve_devices(None, "cdua")


def test_cuda_without_a_gpu_names_the_reason(monkeypatch):
    monkeypatch.setattr(devices, "cuda_devices", lambda notes: notes.append("driver not loaded") or [])
    with pytest.raises(DeviceError, match="driver not loaded"):
        resolve_devices(None, "cuda")


def test_cuda_with_a_gpu_names_the_gpu_and_what_is_missing(monkeypatch):
    gpu = DeviceInfo(id="cuda:0", kind="cuda", name="NVIDIA Test 9000")
    monkeypatch.setattr(devices, "cuda_devices", lambda notes: [gpu])
    with pytest.raises(DeviceError, match="NVIDIA Test 9000"):
        resolve_devices(None, "cuda")


def test_metal_is_refused_off_apple_chips(monkeypatch):
    monkeypatch.setattr(devices, "metal_devices", list)
    with pytest.raises(DeviceError, match="not an Apple chip"):
        resolve_devices(None, "metal")


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


def test_nvml_failing_is_a_note_and_not_an_error(monkeypatch):
    import pynvml

    def fail():
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", fail)
    notes: list[str] = []
    assert devices.cuda_devices(notes) == []
    assert len(notes) == 1 and "NVIDIA" in notes[0]

"""What --devices asks for becomes one id per worker, and each worker's variables."""

from __future__ import annotations

import pytest
from fake_gpus import FakeGpu, FakeSlice, install

from genesis_core.backend import devices
from genesis_core.backend.choice import choose
from genesis_core.backend.devices import CUDA_PHYSICS, read_machine
from genesis_core.backend.resolve import device_environment, resolve_devices, slice_numbers
from genesis_core.errors import DeviceError


@pytest.fixture
def four(monkeypatch):
    install(monkeypatch, *(FakeGpu() for _ in range(4)))


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
@pytest.mark.parametrize("backend", ["cpu", "auto"])
def test_device_text_becomes_one_id_per_worker(text, expected, backend, monkeypatch):
    install(monkeypatch)
    assert resolve_devices(text, backend) == expected


@pytest.mark.parametrize(
    ("text", "backend", "expected"),
    [
        (None, "auto", ("cuda:0",)),
        ("all", "auto", ("cuda:0", "cuda:1", "cuda:2", "cuda:3")),
        ("all", "cuda", ("cuda:0", "cuda:1", "cuda:2", "cuda:3")),
        ("2,0", "auto", ("cuda:2", "cuda:0")),
        ("cuda:3", "cuda", ("cuda:3",)),
        ("GPU-22", "auto", ("cuda:2",)),
        ("cpu:2", "auto", ("cpu:0", "cpu:1")),
        ("all", "cpu", ("cpu",)),
    ],
)
def test_gpus_are_named_by_number_or_uuid(text, backend, expected, four):
    assert resolve_devices(text, backend) == expected


def test_a_mask_around_leaves_only_what_it_shows(four, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    assert resolve_devices("all") == ("cuda:3", "cuda:1")
    assert resolve_devices(None) == ("cuda:3",)
    assert resolve_devices("1") == ("cuda:1",)
    with pytest.raises(DeviceError, match="cuda:0 is hidden by CUDA_VISIBLE_DEVICES='3,1'"):
        resolve_devices("0")


def test_a_slice_is_a_device(monkeypatch):
    install(monkeypatch, FakeGpu(), FakeGpu(slices=[FakeSlice("MIG-aaaa", 1), FakeSlice("MIG-bbbb", 2)]))
    assert resolve_devices("MIG-b") == ("MIG-bbbb",)
    env = device_environment("MIG-bbbb", 4, slice_numbers(["MIG-bbbb"]))
    assert (env["CUDA_VISIBLE_DEVICES"], env["QD_VISIBLE_DEVICE"], env["EGL_DEVICE_ID"]) == ("MIG-bbbb", "1", "1")


@pytest.mark.parametrize("text", ["cpu:0", "cpu:-1", "cpu:x", "cpu:", "cpu:99999", "cpu:1.5"])
def test_a_shard_count_that_makes_no_sense_is_refused_with_its_value(text):
    with pytest.raises(DeviceError, match="number of CPU workers") as caught:
        resolve_devices(text)
    assert text in str(caught.value)


def test_the_same_cpu_twice_is_refused_and_shards_are_proposed():
    with pytest.raises(DeviceError, match="cpu:2"):
        resolve_devices("cpu,cpu")


@pytest.mark.parametrize("text", ["1,1", "cuda:1,1", "GPU-11,1"])
def test_the_same_gpu_twice_is_refused(text, four):
    with pytest.raises(DeviceError, match="cuda:1 twice"):
        resolve_devices(text)


@pytest.mark.parametrize(("text", "backend"), [("cpu,0", "auto"), ("0", "cpu"), ("cpu", "cuda"), ("0,cpu", "cuda")])
def test_kinds_do_not_mix(text, backend, four):
    with pytest.raises(DeviceError, match="one kind") as caught:
        resolve_devices(text, backend)
    assert "cuda:0 NVIDIA H200" in str(caught.value)


@pytest.mark.parametrize("text", ["7", "gpu0", "cuda:9", "0,9", "GPU-9", "MIG-", "-1", "1,,2"])
def test_an_unknown_device_says_what_is_there(text, four):
    with pytest.raises(DeviceError, match="unknown device") as caught:
        resolve_devices(text)
    assert "GPU 3 (NVIDIA H200)" in str(caught.value)


def test_without_gpus_the_reason_is_told(monkeypatch):
    install(monkeypatch, broken="init")
    for call in (lambda: resolve_devices("0"), lambda: resolve_devices(None, "cuda")):
        with pytest.raises(DeviceError, match="Driver Not Loaded"):
            call()


def test_gpus_without_kernels_for_them_are_named(monkeypatch):
    install(monkeypatch, FakeGpu("NVIDIA Test 9000"), physics=CUDA_PHYSICS)
    for call in (lambda: resolve_devices("0"), lambda: resolve_devices(None, "cuda")):
        with pytest.raises(DeviceError, match="not in this version"):
            call()
    with pytest.raises(DeviceError, match="NVIDIA Test 9000"):
        resolve_devices(None, "cuda")
    assert resolve_devices("all") == ("cpu",)


def test_an_unknown_backend_proposes_the_near_name():
    with pytest.raises(DeviceError, match="did you mean 'cuda'"):
        resolve_devices(None, "cdua")


def test_metal_is_refused_off_apple_chips_and_runs_on_cpu_lanes_there(monkeypatch):
    monkeypatch.setattr(devices, "no_metal", lambda: "it exists on macOS only")
    with pytest.raises(DeviceError, match="macOS only"):
        resolve_devices(None, "metal")
    monkeypatch.setattr(devices, "no_metal", lambda: "")
    assert resolve_devices(None, "metal") == ("cpu",)


@pytest.mark.parametrize("device", ["cuda:0", "cuda:2", "cuda:3"])
def test_a_worker_finds_the_device_that_its_launcher_meant(device, four):
    env = {k: v for k, v in device_environment(device, 3).items() if v is not None}
    choice = choose(env, read_machine()[0])
    assert choice.gpu is not None and f"cuda:{choice.gpu.index}" == device and choice.ordinal == 0
    assert env["GENESIS_THREADS"] == env["OMP_NUM_THREADS"] == "3"
    assert device_environment(device, 3)["LOCAL_RANK"] is None


def test_a_cpu_worker_keeps_the_variables_of_gpus():
    assert not {"CUDA_VISIBLE_DEVICES", "LOCAL_RANK"} & set(device_environment("cpu:1", 1))

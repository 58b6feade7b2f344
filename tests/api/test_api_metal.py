"""gs.metal on a fake mps device: tensors live there, the physics runs on the CPU lanes."""

from __future__ import annotations

import types
from collections.abc import Iterator

import pytest
import torch
from fake_mps import FakeMps, OnMps

import genesis_core as gs
from genesis_core.api import session
from genesis_core.backend import devices


@pytest.fixture
def mps(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeMps]:
    """An Apple chip."""
    gs.destroy()
    monkeypatch.setattr(devices, "sys", types.SimpleNamespace(platform="darwin"))
    monkeypatch.setattr(devices.platform, "machine", lambda: "arm64")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    emptied: list[int] = []
    monkeypatch.setattr(torch.mps, "empty_cache", lambda: emptied.append(1))
    with FakeMps() as mode:
        yield mode
        gs.destroy()
    assert emptied, "destroy gives the GPU's memory back"


@pytest.mark.parametrize("backend", [gs.metal, "metal", gs.gpu, None])
def test_an_apple_chip_gets_mps_tensors_and_cpu_lanes(mps: FakeMps, backend) -> None:
    gs.init(backend=backend, logging_level="error")
    assert gs.backend == gs.metal
    assert gs.device.type == "mps"
    assert session.current().engine == "cpu"


@pytest.mark.slow
def test_a_whole_scene_runs_with_tensors_on_mps(mps: FakeMps) -> None:
    gs.init(backend=gs.metal, seed=1, logging_level="error")
    scene = gs.Scene(sim_options=gs.options.SimOptions(dt=0.01))
    scene.add_entity(gs.morphs.Plane())
    arm = scene.add_entity(gs.morphs.MJCF(file="arm/arm.xml"))
    scene.build(n_envs=3)
    target = torch.full((3, arm.n_dofs), 0.1, device=gs.device)
    assert isinstance(target, OnMps)
    arm.control_dofs_position(target)
    for _ in range(20):
        scene.step()
    position = arm.get_dofs_position()
    assert isinstance(position, OnMps) and position.device.type == "mps"
    assert mps.made == 2, "the target above and what the getter gives"
    error = position - target  # one device: no hidden copy on the host
    assert isinstance(error, OnMps) and float(error.cpu().abs().max()) < 1.0
    arm.set_dofs_position(position)
    assert torch.equal(arm.get_dofs_position().cpu(), position.cpu())
    with pytest.raises(RuntimeError, match="same device"):
        position + torch.zeros(3, arm.n_dofs)


def test_metal_has_no_64_bit_numbers(mps: FakeMps) -> None:
    with pytest.raises(gs.DeviceError, match="no 64-bit numbers"):
        gs.init(backend=gs.metal, precision="64")
    gs.init(backend=gs.gpu, precision="64", logging_level="error")
    assert gs.backend == gs.cpu
    gs.destroy()
    gs.init(backend=gs.metal, logging_level="error")  # for the fixture's check


def test_metal_can_be_switched_off(mps: FakeMps, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("QD_ENABLE_METAL", "0")
    gs.init(backend=gs.gpu)
    assert gs.backend == gs.cpu and "QD_ENABLE_METAL=0" in capsys.readouterr().out
    gs.destroy()
    monkeypatch.delenv("QD_ENABLE_METAL")
    gs.init(backend=gs.metal, logging_level="error")

"""gs.init and gs.destroy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

import genesis_core as gs


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    gs.destroy()
    yield
    gs.destroy()


def test_the_cpu_backend_gives_cpu_tensors_of_the_chosen_precision() -> None:
    gs.init(backend=gs.cpu, precision="64", logging_level="error")
    assert (gs.backend, gs.device, gs.tc_float, gs.np_float) == (gs.cpu, torch.device("cpu"), torch.float64, np.float64)
    assert gs.tc_int is torch.int32 and gs.tc_bool is torch.bool
    assert pytest.approx(np.finfo(np.float64).eps) == gs.EPS


def test_a_gpu_that_is_absent_falls_back_to_the_cpu_with_a_warning_that_says_what_was_looked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    gs.init(backend=gs.gpu)
    out = capsys.readouterr().out
    if gs.backend == gs.cpu:
        assert "[WARNING]" in out and "CUDA" in out and "Metal" in out


def test_no_backend_falls_back_silently(capsys: pytest.CaptureFixture[str]) -> None:
    gs.init()
    assert "[WARNING]" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["cuda", "amdgpu"])
def test_a_backend_asked_for_by_name_raises_where_it_cannot_be_used(name: str) -> None:
    with pytest.raises(gs.DeviceError, match=f"Backend gs.{name} not available on this machine: .{{10}}"):
        gs.init(backend=getattr(gs, name))
    assert gs.backend is None
    gs.init(backend=gs.cpu, logging_level="error")  # a failed init leaves nothing behind


def test_metal_is_refused_off_macos() -> None:
    import sys

    if sys.platform == "darwin":
        pytest.skip("this is macOS")
    with pytest.raises(gs.DeviceError, match="macOS only"):
        gs.init(backend=gs.metal)


def test_a_second_init_raises_until_destroy() -> None:
    gs.init(backend=gs.cpu, logging_level="error")
    with pytest.raises(gs.StateError, match=r"Genesis already initialized\."):
        gs.init(backend=gs.cpu)
    gs.destroy()
    gs.init(backend=gs.cpu, logging_level="error")


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"precision": "16"}, "Unsupported precision type: 16"),
        ({"precision": 32}, "Unsupported precision type: 32"),
        ({"theme": "pink"}, "Unsupported theme"),
        ({"logging_level": "warnng"}, 'did you mean "warning"'),
        ({"backend": "cpu"}, "unknown backend 'cpu'"),
    ],
)
def test_wrong_arguments_are_refused_by_value(kwargs: dict, message: str) -> None:
    with pytest.raises(gs.OptionError, match=message):
        gs.init(**kwargs)
    assert gs.device is None


def test_the_seed_makes_random_numbers_repeat() -> None:
    draws = []
    for _ in range(2):
        gs.init(backend=gs.cpu, seed=7, logging_level="error")
        assert gs.SEED == 7
        draws.append((float(torch.rand(())), float(np.random.rand())))
        gs.destroy()
    assert draws[0] == draws[1]


def test_logs_are_plain_text_when_the_output_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    gs.init(backend=gs.cpu, theme="dark")
    out = capsys.readouterr().out
    assert "[Genesis]" in out and "\033" not in out


def test_scenes_and_morphs_need_init() -> None:
    for make in (gs.Scene, gs.morphs.Plane):
        with pytest.raises(gs.StateError, match="Genesis hasn't been initialized"):
            make()


def test_destroy_closes_scenes() -> None:
    gs.init(backend=gs.cpu, logging_level="error")
    scene = gs.Scene()
    scene.add_entity(gs.morphs.Plane())
    scene.destroy()
    with pytest.raises(gs.StateError, match="destroyed"):
        scene.build()

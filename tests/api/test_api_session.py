"""gs.init and gs.destroy."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from fake_gpus import FakeGpu, install

import genesis_core as gs
from genesis_core.api import session
from genesis_core.backend import crew


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
        ({"backend": "cdua"}, "unknown backend 'cdua'(.|\n)*did you mean gs.cuda"),
        ({"backend": 7}, "unknown backend 7(.|\n)*gs.metal"),
        ({"seed": "one"}, "seed = 'one'"),
        ({"seed": True}, "seed = True"),
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


def test_destroy_gives_the_log_level_back() -> None:
    """A script that asked for errors only kept the warnings of everything that came after it to itself."""
    log = logging.getLogger("genesis_core")
    before, handlers = log.level, list(log.handlers)
    gs.init(backend=gs.cpu, logging_level="error")
    assert log.level == logging.ERROR
    gs.destroy()
    assert (log.level, log.handlers) == (before, handlers)


def test_destroy_closes_scenes() -> None:
    gs.init(backend=gs.cpu, logging_level="error")
    scene = gs.Scene()
    scene.add_entity(gs.morphs.Plane())
    scene.destroy()
    with pytest.raises(gs.StateError, match="destroyed"):
        scene.build()


@pytest.mark.parametrize("name", ["cpu", "gs.cpu", "CPU"])
def test_a_backend_may_be_a_string(name: str) -> None:
    gs.init(backend=name, logging_level="error")
    assert gs.backend == gs.cpu


def test_all_parameters_that_genesis_scripts_pass_are_taken() -> None:
    gs.init(
        backend=gs.cpu,
        precision="32",
        logging_level="warning",
        debug=False,
        seed=3,
        eps=1e-12,
        theme="light",
        logger_verbose_time=True,
        performance_mode=True,
        use_deterministic_algorithms=True,
    )
    assert torch.are_deterministic_algorithms_enabled() and gs.use_deterministic_algorithms
    gs.destroy()
    assert not torch.are_deterministic_algorithms_enabled() and gs.use_deterministic_algorithms is None


# ---------------------------------------------------------------------------------------------------------- GPUs
def fake_gpus(monkeypatch: pytest.MonkeyPatch, *gpus: FakeGpu, **more) -> None:
    """GPUs on which torch's part is left out."""
    install(monkeypatch, *gpus, **more)
    monkeypatch.setattr(session, "_started", lambda choice: torch.device("cuda", choice.ordinal))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)


@pytest.mark.parametrize("backend", [None, gs.gpu, gs.cuda, "cuda"])
def test_a_gpu_is_taken_where_it_can_simulate(monkeypatch: pytest.MonkeyPatch, backend, capsys) -> None:
    fake_gpus(monkeypatch, FakeGpu(), FakeGpu())
    gs.init(backend=backend)
    assert (gs.backend, gs.device) == (gs.cuda, torch.device("cuda:0"))
    assert session.current().engine == "cuda"
    assert "[WARNING]" not in capsys.readouterr().out


def test_a_rank_of_torchrun_takes_its_own_gpu_inside_the_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_gpus(monkeypatch, *(FakeGpu() for _ in range(4)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    monkeypatch.setenv("LOCAL_RANK", "1")
    gs.init(backend=gs.gpu, logging_level="error")
    assert gs.device == torch.device("cuda:1")


@pytest.mark.parametrize("backend", [None, gs.gpu, gs.cuda])
def test_variables_that_contradict_each_other_are_never_a_fall_back(monkeypatch: pytest.MonkeyPatch, backend) -> None:
    fake_gpus(monkeypatch, FakeGpu(), FakeGpu())
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("QD_VISIBLE_DEVICE", "1")
    with pytest.raises(gs.DeviceError, match=r"CUDA_VISIBLE_DEVICES='0' is GPU 0.*QD_VISIBLE_DEVICE='1' is GPU 1"):
        gs.init(backend=backend)
    gs.init(backend=gs.cpu, logging_level="error")  # the CPU does not care


def test_a_mask_set_after_cuda_began_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from genesis_core.backend import devices

    fake_gpus(monkeypatch, FakeGpu(), FakeGpu())
    monkeypatch.setattr(devices, "seen_devices", lambda known: tuple(known[:2]))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with pytest.raises(gs.DeviceError, match="CUDA_VISIBLE_DEVICES='1' came too late"):
        gs.init(backend=gs.gpu)


def test_cuda_can_be_switched_off(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    fake_gpus(monkeypatch, FakeGpu())
    monkeypatch.setenv("QD_ENABLE_CUDA", "0")
    gs.init(backend=gs.gpu)
    out = capsys.readouterr().out
    assert gs.backend == gs.cpu and "QD_ENABLE_CUDA=0" in out and out.count("[WARNING]") == 1
    gs.destroy()
    with pytest.raises(gs.DeviceError, match=r"found: GPU 0 \(NVIDIA H200\)"):
        gs.init(backend=gs.cuda)


@pytest.mark.skipif(bool(torch.version.cuda), reason="torch is a CUDA build")
def test_a_gpu_that_does_not_start_is_a_reason_to_fall_back_and_an_error_by_force(monkeypatch, capsys) -> None:
    install(monkeypatch, FakeGpu())
    gs.init(backend=gs.gpu)
    assert gs.backend == gs.cpu and "GPU 0 (NVIDIA H200) does not start" in capsys.readouterr().out
    gs.destroy()
    with pytest.raises(gs.DeviceError, match="does not start"):
        gs.init(backend=gs.cuda)


def test_a_forked_child_of_a_gpu_session_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_gpus(monkeypatch, FakeGpu())
    gs.init(backend=gs.cuda, logging_level="error")
    monkeypatch.setattr(session.os, "getpid", lambda: -1)
    with pytest.raises(gs.StateError, match=r"forked(.|\n)*spawn"):
        gs.Scene()


def test_destroy_gives_threads_and_memory_back() -> None:
    import threading
    import weakref

    from genesis_core.engine import Simulation

    def threads() -> list[str]:
        return [t.name for t in threading.enumerate() if t.name.startswith("genesis-")]

    before = threads()
    gs.init(backend=gs.cpu, logging_level="error")
    scene = gs.Scene()
    scene.add_entity(gs.morphs.Sphere(radius=0.1, pos=(0, 0, 5)))
    scene.build(n_envs=64)
    scene.step()
    sim = scene.sim
    assert isinstance(sim, Simulation) and "genesis-status" in threads()
    state = weakref.ref(sim._state)
    gs.destroy()
    assert threads() == before
    assert state() is None, "the arrays are free though the scene is still held"
    with pytest.raises(gs.StateError):
        sim.step()


# ---------------------------------------------------------------------------------------------------------- results
def _episode(seed: int) -> torch.Tensor:
    gs.init(backend=gs.cpu, seed=seed, logging_level="error")
    scene = gs.Scene(sim_options=gs.options.SimOptions(dt=0.01))
    scene.add_entity(gs.morphs.Plane())
    arm = scene.add_entity(gs.morphs.MJCF(file="arm/arm.xml"))
    scene.build(n_envs=5)
    for _ in range(30):
        arm.control_dofs_force(torch.randn(5, arm.n_dofs))
        scene.step()
    result = torch.cat([arm.get_dofs_position(), arm.get_dofs_velocity()], 1)
    gs.destroy()
    return result


@pytest.mark.slow
def test_the_same_seed_gives_the_same_result_after_destroy() -> None:
    one, two, other = _episode(7), _episode(7), _episode(8)
    assert torch.equal(one, two) and not torch.equal(one, other)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_steps_a_scene_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of the parent do not exist in the child: it must make its own instead of waiting for them."""
    gs.init(backend=gs.cpu, seed=0, logging_level="error")
    scene = gs.Scene()
    ball = scene.add_entity(gs.morphs.Sphere(radius=0.1, pos=(0, 0, 5)))
    monkeypatch.setenv("GENESIS_THREADS", "3")
    monkeypatch.setattr(crew, "WORTH_A_THREAD", 1e-12)  # every call takes helpers
    scene.build(n_envs=64)
    scene.step()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            scene.step()
            os.write(write, f"{float(ball.get_pos()[63, 2]):.6f}".encode())
        finally:
            os._exit(0)
    os.close(write)
    import select

    ready, _, _ = select.select([read], [], [], 60)
    if not ready:
        os.kill(pid, 9)
    os.waitpid(pid, 0)
    assert ready, "the child waits for threads that it has not"
    scene.step()
    assert os.read(read, 99).decode() == f"{float(ball.get_pos()[63, 2]):.6f}"
    os.close(read)

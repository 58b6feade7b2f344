"""Pictures are drawn on the card that computes, in workers, threads and several contexts; in software with a reason."""

from __future__ import annotations

import logging
import os
import threading

import numpy as np
import pytest
from fake_gpus import FakeGpu, install

from genesis_core.errors import RenderError

pytestmark = pytest.mark.gl
egl = pytest.importorskip("genesis_core.render.egl")
try:
    egl.EglContext().close()
except RenderError as error:
    pytest.skip(f"no off-screen OpenGL: {error}", allow_module_level=True)

from genesis_core.api.launch import launch  # noqa: E402
from tests.render.drawn import SIZES, picture  # noqa: E402

EglDevice = egl.EglDevice
LISTED = [
    EglDevice(0, "H200 b", False, "/dev/dri/card1", pci="0000:02:00.0"),
    EglDevice(1, "H200 a", False, "/dev/dri/card0", pci="0000:01:00.0"),
    EglDevice(2, "llvmpipe", True),
]


@pytest.fixture
def two_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, FakeGpu(), FakeGpu())


@pytest.mark.parametrize(
    ("env", "index"),
    [
        ({}, 1),
        ({"CUDA_VISIBLE_DEVICES": "1"}, 0),
        ({"QD_VISIBLE_DEVICE": "0"}, 1),
        ({"EGL_DEVICE_ID": "1"}, 0),
        ({"LOCAL_RANK": "1"}, 0),
        ({"EGL_DEVICE_ID": "2"}, 2),
        ({"CUDA_VISIBLE_DEVICES": "0", "EGL_DEVICE_ID": "0"}, 1),
    ],
)
def test_the_variables_choose_the_card_and_not_its_place_in_egls_list(two_cards, monkeypatch, env, index) -> None:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    chosen = egl.chosen_device(LISTED)
    assert chosen is not None and chosen.index == index


def test_drawing_follows_a_gpu_even_where_it_cannot_simulate(monkeypatch) -> None:
    install(monkeypatch, FakeGpu(), FakeGpu(), physics="not in this version")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert egl.chosen_device(LISTED).index == 0


def test_a_card_that_egl_does_not_list_is_a_warning_with_the_reason(two_cards, monkeypatch, caplog) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with caplog.at_level(logging.WARNING):
        chosen = egl.chosen_device(LISTED[1:])
    assert (chosen is not None and chosen.software) or chosen.name == "llvmpipe"
    assert "EGL has no device for GPU 1" in caplog.text and "graphics" in caplog.text and "llvmpipe" in caplog.text


@pytest.mark.parametrize("value", ["3", "-1", "x"])
def test_an_egl_device_out_of_range_lists_all(two_cards, monkeypatch, value) -> None:
    monkeypatch.setenv("EGL_DEVICE_ID", value)
    with pytest.raises(RenderError, match=f"EGL_DEVICE_ID='{value}'") as caught:
        egl.chosen_device(LISTED)
    assert "0 NVIDIA H200, 1 NVIDIA H200" in str(caught.value) and "2 llvmpipe" in str(caught.value)


def test_contradicting_variables_are_not_drawn_around(two_cards, monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("EGL_DEVICE_ID", "1")
    with pytest.raises(RenderError, match=r"CUDA_VISIBLE_DEVICES='0'.*EGL_DEVICE_ID='1'"):
        egl.chosen_device(LISTED)


def software() -> int:
    """Number of the software device, or the test cannot be."""
    found = [d.index for d in egl.list_egl_devices() if d.software]
    if not found:
        pytest.skip("EGL lists no software device here")
    return found[0]


def test_a_device_that_does_not_start_gives_way_to_software_with_its_reason(monkeypatch, caplog) -> None:
    real = egl.list_egl_devices()[software()]
    devices = [EglDevice(0, "H200", False, handle=12345), EglDevice(1, real.name, True, handle=real.handle)]
    monkeypatch.setattr(egl, "list_egl_devices", lambda: devices)
    usual = egl.EglContext._open_display

    def open_display(context):
        if context.device is not None and not context.device.software:
            raise RenderError("the EGL device 0 (H200) does not start")
        return usual(context)

    monkeypatch.setattr(egl.EglContext, "_open_display", open_display)
    monkeypatch.delenv("DISPLAY", raising=False)
    with caplog.at_level(logging.WARNING):
        context = egl.EglContext()
    try:
        assert context.device == devices[1]
        assert "in software: the EGL device 0 (H200) does not start" in caplog.text
    finally:
        context.close()
    with pytest.raises(RenderError, match="does not start"):
        egl.EglContext(0)  # asked for by number: no other is meant


def test_a_driver_that_hangs_is_an_error_in_time(monkeypatch) -> None:
    monkeypatch.setattr(egl, "TIMEOUT", 0.3)
    never = threading.Event()
    monkeypatch.setattr(egl, "list_egl_devices", lambda: never.wait(5))
    with pytest.raises(RenderError, match="did not answer"):
        egl.EglContext()
    never.set()


# ---------------------------------------------------------------------------------------- contexts of several owners
def test_several_contexts_in_one_thread_draw_in_turn() -> None:
    from tests.render.drawn import Drawer

    drawers = [Drawer(*size) for size in SIZES]
    try:
        first = [drawer.picture() for drawer in drawers]
        again = [drawer.picture() for drawer in reversed(drawers)][::-1]
        for size, one, two in zip(SIZES, first, again, strict=True):
            assert one.shape == (size[1], size[0], 3) and one.std() > 5
            assert np.array_equal(one, two)
        drawers[0].close()
        assert np.array_equal(drawers[1].picture(), first[1]), "the end of one leaves the others"
    finally:
        for drawer in drawers:
            drawer.close()


def test_threads_with_contexts_of_their_own_draw_the_same() -> None:
    expected = picture(0)
    results: dict[int, list[np.ndarray]] = {}
    start = threading.Barrier(3)

    def work(k: int) -> None:
        from tests.render.drawn import Drawer

        start.wait(30)
        drawer = Drawer(*SIZES[0])
        results[k] = [drawer.picture() for _ in range(5)]
        drawer.close()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(results) == [0, 1, 2]
    for pictures in results.values():
        assert all(np.array_equal(p, expected) for p in pictures)


@pytest.mark.slow
def test_worker_processes_draw_the_same() -> None:
    expected = picture(0)
    for drawn in launch(picture, "cpu:2"):
        assert np.array_equal(drawn, expected)


@pytest.mark.slow
def test_a_worker_that_cannot_draw_where_it_is_told_says_which_devices_there_are(monkeypatch) -> None:
    from genesis_core.errors import WorkerError

    monkeypatch.setenv("EGL_DEVICE_ID", "42")
    with pytest.raises(WorkerError, match="EGL_DEVICE_ID='42'"):
        launch(picture, "cpu:1")
    assert os.environ["EGL_DEVICE_ID"] == "42"

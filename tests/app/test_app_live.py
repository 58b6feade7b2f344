"""The whole window with real workers: drop a file, run, pause, step, a bad file, close."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import psutil
import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from session_tools import PATIENCE

from app.model.launch import Launch

pytestmark = [pytest.mark.gl, pytest.mark.slow, pytest.mark.timeout(600)]

STALL = 0.25  # [s] longest hold-up of the event loop that a loaded machine with software GL is allowed


def drop(widget: QWidget, path: Path) -> bool:
    """Drags a file onto the middle of a widget and lets go, as a desktop does."""
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    at = widget.rect().center()
    how = (Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    enter = QDragEnterEvent(at, *how)
    QApplication.sendEvent(widget, enter)
    if not enter.isAccepted():
        return False
    event = QDropEvent(QPointF(at), *how)
    QApplication.sendEvent(widget, event)
    return event.isAccepted()


async def until(wanted: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not wanted():
        assert time.monotonic() < deadline, f"waited {seconds} s in vain"
        await asyncio.sleep(0.02)


def play(qapp: QApplication, story: Callable[..., Awaitable[None]]) -> None:
    """Runs a window with a story told to it, closes it as a user does, and looks for what is left behind."""
    import qasync

    from app.startup.compose import Studio

    before = {child.pid for child in psutil.Process().children(recursive=True)}
    qapp.setQuitOnLastWindowClosed(False)

    async def main() -> None:
        studio = Studio(qapp, Launch(size=(1000, 700), n_envs=16, seed=1))
        running = asyncio.get_running_loop().create_task(studio.run())
        try:
            await until(studio.window.isVisible)
            await asyncio.sleep(0.1)
            studio.window.activateWindow()
            await until(studio.window.isActiveWindow)
            await story(studio)
        finally:
            studio.window.close()
            begin = time.monotonic()
            await running
            assert time.monotonic() - begin < 5.0
            studio.canvas.release()
            studio.window.deleteLater()

    loop = qasync.QEventLoop(qapp)
    asyncio.set_event_loop(loop)
    with loop:
        loop.run_until_complete(main())
    left = [c for c in psutil.Process().children(recursive=True) if c.pid not in before]
    left = [c for c in left if "resource_tracker" not in " ".join(c.cmdline())]
    assert left == []


def differs(one: QImage, two: QImage) -> float:
    """Part of the pixels that changed."""

    def pixels(image: QImage) -> np.ndarray:
        image = image.convertToFormat(QImage.Format.Format_RGB32)
        return np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), -1, 4)[:, :, :3].astype(int)

    return float((np.abs(pixels(one) - pixels(two)).max(axis=2) > 8).mean())


def test_a_dropped_file_runs_pauses_steps_and_survives_a_bad_one(qapp, tiny: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.xml"
    bad.write_text('<mujoco>\n<worldbody>\n<geom type="sphere" size="wide"/>\n</worldbody>\n</mujoco>\n')

    async def story(studio) -> None:
        state, window = studio.state, studio.window
        assert drop(window, tiny)
        await until(lambda: state.bundle is not None, 60)
        first = studio.canvas.picture()  # before kernels are there
        await until(lambda: state.phase == "running" and state.time > 0.2, PATIENCE)
        assert differs(first, studio.canvas.picture()) > 0.001  # balls fell
        QTest.keyClick(window, Qt.Key.Key_Space)
        await until(lambda: state.phase == "paused")
        await asyncio.sleep(0.3)
        held = state.time
        await asyncio.sleep(0.3)
        assert state.time == held
        QTest.keyClick(window, Qt.Key.Key_Right)
        await until(lambda: state.time > held)
        assert state.time == pytest.approx(held + 0.002, abs=1e-6)
        QTest.keyClick(window, Qt.Key.Key_Backspace)
        await until(lambda: state.time == 0.0)
        QTest.keyClick(window, Qt.Key.Key_Space)
        await until(lambda: state.phase == "running" and state.time > 0)
        assert drop(window, bad)
        await until(lambda: state.problem is not None, 60)
        assert window.problem.isVisible() and window.problem.where.text().replace("\u200b", "").startswith(f"{bad}:3")
        then = state.time
        await until(lambda: state.time > then)
        assert state.path == str(tiny) and state.phase == "running"
        window.problem._close.click()
        assert not window.problem.isVisible()

    play(qapp, story)


def test_the_window_answers_while_a_scene_loads_and_runs(qapp, tiny: Path) -> None:
    async def story(studio) -> None:
        stalls: list[float] = []

        async def watch() -> None:
            while True:
                begin = time.monotonic()
                await asyncio.sleep(0.005)
                stalls.append(time.monotonic() - begin)

        watcher = asyncio.get_running_loop().create_task(watch())
        drop(studio.window, tiny)
        await until(lambda: studio.state.phase == "running" and studio.state.time > 0.5, PATIENCE)
        watcher.cancel()
        assert np.percentile(stalls, 99) < STALL and max(stalls) < 4 * STALL

    play(qapp, story)


def test_closing_while_a_scene_loads_leaves_nothing(qapp, tiny: Path) -> None:
    async def story(studio) -> None:
        drop(studio.window, tiny)
        await until(lambda: studio.state.loading is not None)

    play(qapp, story)


def test_closing_while_kernels_are_prepared_leaves_nothing(qapp, tiny: Path) -> None:
    async def story(studio) -> None:
        drop(studio.window, tiny)
        await until(lambda: studio.state.bundle is not None, 60)

    play(qapp, story)

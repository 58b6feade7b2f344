"""Puts the rooms together and runs them: the only file that sees all of them."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys

from app.startup import platform

platform.prepare()

import qasync  # noqa: E402
from PySide6.QtGui import QImage, QOffscreenSurface, QOpenGLContext, QSurfaceFormat  # noqa: E402
from PySide6.QtWidgets import QApplication  # noqa: E402

from app.control.frame_pump import FramePump  # noqa: E402
from app.control.playback import PlaybackControl  # noqa: E402
from app.control.session import SessionControl  # noqa: E402
from app.model.intents import Intents  # noqa: E402
from app.model.launch import Launch  # noqa: E402
from app.model.settings import load_settings, save_settings  # noqa: E402
from app.model.state import AppState  # noqa: E402
from app.scene3d.canvas import Canvas, surface_format  # noqa: E402
from app.ui.main_window import MainWindow  # noqa: E402
from app.ui.theme import apply_theme  # noqa: E402
from genesis_core.log import get_logger  # noqa: E402
from genesis_core.render.egl import is_software  # noqa: E402

log = get_logger(__name__)

SCREENSHOT_LIMIT = 600.0  # [s] until a scene has to run


class Studio:
    """All parts of one window."""

    def __init__(self, app: QApplication, launch: Launch) -> None:
        self.app = app
        settings, notes = load_settings()
        self.state = AppState(settings, launch)
        for note in notes:
            self.state.add_log("warning", note)
        self.intents = Intents()
        self.sessions = SessionControl(self.state, self.intents)
        self.playback = PlaybackControl(self.state, self.intents, self.sessions)
        self.pump = FramePump(self.state, self.sessions)
        apply_theme(app, self.state.theme)
        self.state.theme_changed.connect(self._on_theme)
        self.canvas = Canvas(self.state, self.intents)
        self.window = MainWindow(self.state, self.intents, self.canvas, self.canvas.picture, self._may_close)
        missing = self.state.commands.unbound()
        assert not missing, f"nobody does {', '.join(missing)}"
        self.closed = asyncio.Event()
        self._done = False
        self.exit_code = 0

    def _on_theme(self, name: str) -> None:
        apply_theme(self.app, name)

    def _may_close(self) -> bool:
        self.closed.set()
        return self._done

    async def run(self) -> int:
        """From the first picture to the last worker's end."""
        self.pump.start()
        self.window.show()
        job = asyncio.get_running_loop().create_task(self._job())
        if self.state.launch.scene:
            self.intents.open_path.emit(self.state.launch.scene)
        await self.closed.wait()
        job.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await job
        await self.close()
        return self.exit_code

    async def close(self) -> None:
        """Ends everything; the window is gone at once, workers within seconds."""
        self.window.remember()
        if not self.state.launch.screenshot:
            save_settings(self.state.settings)
        self.window.hide()
        await self.pump.stop()
        await self.sessions.close()
        self.canvas.release()
        self._done = True
        self.window.close()

    async def _job(self) -> None:
        """The screenshot that the command line asked for."""
        launch, state = self.state.launch, self.state
        if not launch.screenshot:
            return
        waited = 0.0
        while launch.scene and not state.live and state.problem is None and waited < SCREENSHOT_LIMIT:
            await asyncio.sleep(0.1)
            waited += 0.1
        await asyncio.sleep(launch.after)
        if launch.scene and not state.live:
            self.exit_code = 1
        if not self.screenshot().save(launch.screenshot):
            print(f"{launch.screenshot}: the picture cannot be written", file=sys.stderr)  # noqa: T201
            self.exit_code = 2
        self.closed.set()

    def screenshot(self) -> QImage:
        """The whole window with the 3D view in it, at its sharpest."""
        self.canvas.sharpen()
        return self.window.grab().toImage()


def _surface() -> None:
    """Multisampling only where a GPU does it: software renderers take twice as long with it."""
    wanted = surface_format()
    QSurfaceFormat.setDefaultFormat(wanted)
    context, surface = QOpenGLContext(), QOffscreenSurface()
    surface.create()
    if context.create() and context.makeCurrent(surface):
        from OpenGL import GL

        name = GL.glGetString(GL.GL_RENDERER)
        if name is not None and is_software(name.decode(errors="replace")):
            wanted.setSamples(0)
            QSurfaceFormat.setDefaultFormat(wanted)
        context.doneCurrent()


def run(launch: Launch) -> int:
    """Opens the window and returns the exit code when it is closed."""
    app = QApplication.instance() or QApplication(sys.argv[:1])
    assert isinstance(app, QApplication)
    app.setApplicationName("Genesis Studio")
    app.setDesktopFileName("genesis-studio")
    app.setQuitOnLastWindowClosed(False)
    _surface()
    loop = qasync.QEventLoop(app)
    asyncio.set_event_loop(loop)
    with loop:
        return loop.run_until_complete(_main(app, launch))


async def _main(app: QApplication, launch: Launch) -> int:
    studio = Studio(app, launch)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, studio.closed.set)
    return await studio.run()

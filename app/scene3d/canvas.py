"""The 3D view: draws the shown environments, turns mouse moves into camera moves, selections and pulls."""

from __future__ import annotations

import time
import weakref
from functools import partial

import numpy as np
from PySide6.QtCore import QPointF, QSize, Qt, QTimer
from PySide6.QtGui import QImage, QMouseEvent, QSurfaceFormat, QWheelEvent
from PySide6.QtOpenGL import QOpenGLFramebufferObject
from PySide6.QtOpenGLWidgets import QOpenGLWidget
from PySide6.QtWidgets import QWidget

from app.model.intents import Intents
from app.model.state import AppState, Problem, Selection
from app.scene3d.pace import Pace
from app.scene3d.pull_line import PullLine
from app.scene3d.view import body_pose, fit, followed_body, home_camera, on_plane, to_pixel
from genesis_core.log import get_logger
from genesis_core.render.camera import MAX_ELEVATION, Camera
from genesis_core.render.egl import is_software
from genesis_core.render.picking import pick
from genesis_core.render.scene_renderer import SceneRenderer
from genesis_core.render.theme import THEMES

log = get_logger(__name__)

REST = 0.6  # of a picture's cost, left to the rest of the window
FAST = 1 / 62  # [s] shortest time between pictures
QUIET = 350  # [ms] without a change, then a sharp picture is drawn
ZOOM_STEP = 0.12  # per notch of the wheel


def surface_format() -> QSurfaceFormat:
    """What every GL widget of the program asks for."""
    wanted = QSurfaceFormat()
    wanted.setDepthBufferSize(24)
    wanted.setSamples(4)
    wanted.setSwapInterval(0)
    return wanted


class Canvas(QOpenGLWidget):
    """One scene in one context; a new scene gets a new renderer in the same context."""

    def __init__(self, state: AppState, intents: Intents, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("canvas")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(320, 200)
        self.state = state
        self.intents = intents
        self.camera = Camera()
        self.renderer: SceneRenderer | None = None
        self._fresh_scene = True
        self._homed = False
        self._stale_shown = self._stale_rows = True
        self._radius = 0.0
        self._broken = False
        self._drag: QPointF | None = None
        self._pulled: tuple[int, int, np.ndarray, np.ndarray] | None = None  # env, body, point in body, point drawn
        self._followed: np.ndarray | None = None
        self._cost = 0.0
        self._finished = 0.0
        self._drawn = 0
        self._line = PullLine(self)
        self._pointer = QPointF()
        self._pace = Pace(False)
        self._small: QOpenGLFramebufferObject | None = None
        self._sharp = False
        self._quiet = QTimer(self)
        self._quiet.setSingleShot(True)
        self._quiet.setInterval(QUIET)
        self._quiet.timeout.connect(self.sharpen)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.update)
        self._meter = QTimer(self)
        self._meter.setInterval(1000)
        self._meter.timeout.connect(self._measure)
        self._meter.start()
        state.scene_changed.connect(self._on_scene)
        state.shown_changed.connect(self._on_shown)
        state.frame_arrived.connect(self._on_frame)
        state.selection_changed.connect(self._on_selection)
        state.theme_changed.connect(self._on_theme)
        state.follow_changed.connect(self._on_follow)
        bind = state.commands.bind
        bind("view.frame", self.frame_all)
        bind("view.home", self.home)
        for name, azimuth, elevation in (("front", 180.0, 0.0), ("side", 90.0, 0.0), ("top", 90.0, -MAX_ELEVATION)):
            bind(f"view.{name}", partial(self.look_along, azimuth, elevation))
        bind("view.follow", lambda: state.set_follow(not state.follow))

    # ------------------------------------------------------------------ facts
    def _on_scene(self) -> None:
        self._fresh_scene, self._homed, self._followed, self._pulled = True, False, None, None
        self._line.hide()
        self._broken = False
        self.redraw()

    def _on_shown(self) -> None:
        self._stale_shown = True
        self._followed = None
        self.redraw()

    def _on_frame(self) -> None:
        self._stale_rows = True
        self.redraw()

    def _on_selection(self) -> None:
        self._followed = None
        self.redraw()

    def _on_theme(self, _theme: str) -> None:
        self.redraw()

    def _on_follow(self, _on: bool) -> None:
        self._followed = None
        self.redraw()

    def redraw(self) -> None:
        """Asks for a picture, so late that slow pictures leave time for everything else."""
        if not self._timer.isActive():
            wait = self._finished + max(REST * self._cost, FAST - self._cost) - time.perf_counter()
            self._timer.start(max(0, round(1000 * wait)))

    def _measure(self) -> None:
        self.state.rendered.emit(float(self._drawn))
        self._drawn = 0

    # ------------------------------------------------------------------ drawing
    def initializeGL(self) -> None:
        # Qt tells this from inside the widget's destructor too: no call may reach the widget itself then.
        view = weakref.ref(self)

        def gone() -> None:
            found = view()
            if found is not None:
                found.forget()

        self.context().aboutToBeDestroyed.connect(gone)

    def paintGL(self) -> None:
        begin = time.perf_counter()
        bundle = self.state.bundle
        if bundle is None or self._broken:
            return
        try:
            self._sync()
            assert self.renderer is not None
            self._paint(self.renderer)
            self._draw_pull()
        except Exception as error:  # a driver's fault must leave the window usable
            log.exception("drawing failed")
            self._broken = True
            hint = "run genesis-studio doctor; the simulation itself goes on"
            self.state.set_problem(Problem("The scene cannot be drawn", f"{type(error).__name__}: {error}", hint=hint))
            return
        self._finished = time.perf_counter()
        self._cost = self._finished - begin
        self._drawn += 1
        if self._sharp:
            self._sharp = False
        else:
            self._pace.took(self._cost)
            if self._pace.scale < 1.0:
                self._quiet.start()

    def _paint(self, renderer: SceneRenderer) -> None:
        """At full size, or smaller and stretched where the renderer is too slow for what moves."""
        width, height = self.pixels
        scale = 1.0 if self._sharp else self._pace.scale
        if scale >= 1.0:
            renderer.draw(self.camera, width, height, framebuffer=self.defaultFramebufferObject())
        else:
            size = QSize(max(1, round(width * scale)), max(1, round(height * scale)))
            if self._small is None or self._small.size() != size:
                self._small = QOpenGLFramebufferObject(size, QOpenGLFramebufferObject.Attachment.CombinedDepthStencil)
            renderer.draw(self.camera, size.width(), size.height(), framebuffer=self._small.handle())
            self._stretch(self._small, width, height)
        if self._pace.adaptive:
            self.context().functions().glFinish()  # software renderers draw late; the cost must be known

    def _stretch(self, source: QOpenGLFramebufferObject, width: int, height: int) -> None:
        """The small picture over the whole view."""
        from OpenGL import GL

        GL.glBindFramebuffer(GL.GL_READ_FRAMEBUFFER, source.handle())
        GL.glBindFramebuffer(GL.GL_DRAW_FRAMEBUFFER, self.defaultFramebufferObject())
        GL.glBlitFramebuffer(
            0, 0, source.width(), source.height(), 0, 0, width, height, GL.GL_COLOR_BUFFER_BIT, GL.GL_LINEAR
        )
        GL.glBindFramebuffer(GL.GL_FRAMEBUFFER, self.defaultFramebufferObject())

    def sharpen(self) -> None:
        """The next picture is drawn at full size."""
        self._sharp = True
        self.update()

    @property
    def pixels(self) -> tuple[int, int]:
        """Size of the picture in device pixels."""
        ratio = self.devicePixelRatioF()
        return max(1, round(self.width() * ratio)), max(1, round(self.height() * ratio))

    def _sync(self) -> None:
        """Brings the renderer to the state of the model; the context is current."""
        state = self.state
        assert state.bundle is not None
        theme = THEMES[state.theme]
        if self.renderer is None or self._fresh_scene:
            if self.renderer is not None:
                self.renderer.close()
            self.renderer = SceneRenderer(state.bundle, theme=theme)
            self._fresh_scene = False
            self._stale_shown = True
            name = self.renderer.info["renderer"]
            self._pace = Pace(is_software(name))
            state.renderer_found.emit(name, is_software(name))
        renderer = self.renderer
        if renderer.theme is not theme:
            renderer.set_theme(theme)
        if self._stale_shown and len(state.shown):
            renderer.set_shown(state.offsets)
            self._stale_rows = True
            self._stale_shown = False
            self._settle()
        if self._stale_rows and len(state.shown):
            renderer.set_rows(state.rows)
            self._stale_rows = False
        self._follow()
        chosen = state.selection
        row = state.shown.index(chosen.env) if chosen is not None and chosen.env in state.shown else None
        renderer.set_highlight((row, chosen.body) if chosen is not None and row is not None else None)

    def _settle(self) -> None:
        """First camera of a scene, and a new distance when much more or less is shown than before."""
        assert self.renderer is not None
        radius = self.renderer.radius
        if not self._homed:
            self._go_home()
        elif not 0.6 < radius / max(1e-9, self._radius) < 1.7:
            fit(self.camera, self._center(), radius)
        self._radius = radius

    def _go_home(self) -> None:
        assert self.renderer is not None and self.state.bundle is not None
        extent = float(self.state.bundle.stat_extent)
        self.camera = home_camera(
            self.state.bundle, self._center(), self.renderer.radius, extent, self.width() / max(1, self.height())
        )
        self._homed = True

    def release(self) -> None:
        """Frees what the view holds in its context; to be called before the widget is destroyed."""
        if self.renderer is not None:
            self.makeCurrent()
            self.renderer.close()
            self.doneCurrent()
        self.forget()

    def forget(self) -> None:
        """The context is gone, and everything in it."""
        self.renderer = None
        self._small = None
        self._fresh_scene = True

    def picture(self) -> QImage:
        """The view as an image."""
        self._sharp = True
        return self.grabFramebuffer()

    # ------------------------------------------------------------------ camera
    def frame_all(self) -> None:
        if self.renderer is not None:
            fit(self.camera, self._center(), self.renderer.radius)
            self._followed = None
            self.redraw()

    def look_along(self, azimuth: float, elevation: float) -> None:
        """Turns the camera around what it looks at, in degrees."""
        self.camera.azimuth, self.camera.elevation = azimuth, elevation
        self.redraw()

    def home(self) -> None:
        if self.renderer is not None:
            self._go_home()
            self._followed = None
            self.redraw()

    def _center(self) -> np.ndarray:
        """Middle of everything shown, where it is by now: robots walk away from where they started [m]."""
        state = self.state
        assert self.renderer is not None and state.bundle is not None
        body = state.follow_body or followed_body(state.bundle)
        geoms = np.flatnonzero(state.bundle.geom_bodyid == body)
        if not body or not len(geoms) or not len(state.rows):
            return self.renderer.center
        moved = state.rows[:, geoms[0]].reshape(-1, 3, 4)[:, :2, 3] - np.asarray(state.bundle.geom_pos0[geoms[0]])[:2]
        moved = moved[np.isfinite(moved).all(axis=1)]
        return self.renderer.center + np.append(np.median(moved, axis=0), 0.0) if len(moved) else self.renderer.center

    def _place_followed(self) -> np.ndarray | None:
        """Where that is what the camera follows: the selected body, else the middle of all shown robots [m]."""
        state = self.state
        if state.bundle is None or not state.shown:
            return None
        if state.selection is not None and state.selection.env in state.shown:
            rows, body = [state.shown.index(state.selection.env)], state.selection.body
        else:
            body = state.follow_body or followed_body(state.bundle)
            rows = list(range(len(state.shown)))
        geoms = np.flatnonzero(state.bundle.geom_bodyid == body)
        if not body or not len(geoms):
            return None
        points = state.rows[rows, geoms[0]].reshape(-1, 3, 4)[:, :, 3] + state.offsets[rows]
        points = points[np.isfinite(points).all(axis=1)]
        return points.mean(axis=0) if len(points) else None

    def _follow(self) -> None:
        """Moves the look-at point as what is followed moved; a selected body comes into the middle."""
        now = self._place_followed() if self.state.follow else None
        if now is None:
            return
        if self._followed is not None:
            self.camera.lookat = self.camera.lookat + (now - self._followed)
        elif self.state.selection is not None:
            self.camera.lookat = now.copy()
        self._followed = now

    # ------------------------------------------------------------------ keys and mouse
    def focusNextPrevChild(self, forward: bool) -> bool:
        """Tab hides and shows the panels, as in MuJoCo's viewer; Shift+Tab leaves the view."""
        if forward and self.hasFocus():
            self.state.commands.run("view.docks")
            return True
        return super().focusNextPrevChild(forward)

    def _pick(self, at: QPointF) -> Selection | None:
        """What is under the pointer."""
        if self.renderer is None or self.state.bundle is None or self._broken:
            return None
        ratio = self.devicePixelRatioF()
        width, height = self.pixels
        self.makeCurrent()
        try:
            hit = pick(self.renderer, self.camera, width, height, at.x() * ratio, at.y() * ratio,
                       restore=self.defaultFramebufferObject())  # fmt: skip
        finally:
            self.doneCurrent()
        if hit is None or hit.row >= len(self.state.shown):
            return None
        body = int(self.state.bundle.geom_bodyid[hit.geom])
        return Selection(self.state.shown[hit.row], body, hit.point)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.state.select(self._pick(event.position()))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._drag = event.position()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._begin_pull(event.position())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._drag is None:
            return
        move = event.position() - self._drag
        self._drag = event.position()
        dx, dy = move.x() / max(1, self.height()), move.y() / max(1, self.height())
        buttons = event.buttons()
        if self._pulled is not None:
            self._move_pull(event.position())
        elif buttons & Qt.MouseButton.LeftButton:
            self.camera.orbit(dx, dy)
        elif buttons & Qt.MouseButton.RightButton:
            self.camera.pan(dx, dy)
        elif buttons & Qt.MouseButton.MiddleButton:
            self.camera.zoom(-2 * dy)
        self.redraw()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if not event.buttons():
            self._drag = None
        if self._pulled is not None:
            self.intents.let_go.emit(self._pulled[0], self._pulled[1])
            self._pulled = None
            self._line.hide()

    def wheelEvent(self, event: QWheelEvent) -> None:
        self.camera.zoom(ZOOM_STEP * event.angleDelta().y() / 120)
        self.redraw()
        event.accept()

    # ------------------------------------------------------------------ pulling
    def _begin_pull(self, at: QPointF) -> None:
        """Takes hold of the selected body, or of the one under the pointer where none is selected."""
        state = self.state
        under = self._pick(at)
        chosen = state.selection or under
        if chosen is None or state.bundle is None or chosen.env not in state.shown:
            return
        if state.bundle.body_weldid[chosen.body] == 0:
            state.add_log("info", f"{state.bundle.body_name[chosen.body]} is fixed to the world and cannot be pulled")
            return
        row = state.shown.index(chosen.env)
        pose = body_pose(state.bundle, state.rows[row], chosen.body)
        if pose is None:
            return
        same = under is not None and (under.env, under.body) == (chosen.env, chosen.body)
        position = pose[0] + state.offsets[row]
        held = np.array(under.point) if under is not None and same and under.point is not None else position
        local = pose[1].T @ (held - position)
        if state.selection is None:
            state.select(chosen)
        self._pulled = (chosen.env, chosen.body, local, held)
        self._move_pull(at)

    def _move_pull(self, at: QPointF) -> None:
        assert self._pulled is not None
        self._pointer = at
        self._draw_pull()
        env, body, local, held = self._pulled
        if env not in self.state.shown:
            return
        there = on_plane(self.camera, at.x(), at.y(), self.width(), self.height(), held)
        target = there - self.state.offsets[self.state.shown.index(env)]
        self.intents.pull.emit(env, body, tuple(map(float, local)), tuple(map(float, target)))

    def _draw_pull(self) -> None:
        """The line from where the body is held now to the pointer."""
        if self._pulled is None or self.state.bundle is None:
            return
        env, body, local, _ = self._pulled
        if env not in self.state.shown:
            return
        row = self.state.shown.index(env)
        pose = body_pose(self.state.bundle, self.state.rows[row], body)
        if pose is not None:
            held = pose[0] + pose[1] @ local + self.state.offsets[row]
            seen = to_pixel(self.camera, held, self.width(), self.height())
            if seen is not None:
                self._line.set_ends(QPointF(*seen), self._pointer)

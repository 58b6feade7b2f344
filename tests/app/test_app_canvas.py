"""The 3D view in a real GL context: pictures, mouse, picking, pulling."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from window_tools import make_frame, show_scene

from app.model.intents import Intents
from app.model.state import AppState
from app.scene3d.canvas import Canvas
from app.scene3d.pace import SMALLEST, TARGET, Pace
from app.scene3d.view import body_pose, followed_body, on_plane, to_pixel
from genesis_core.layout.scene import SceneBundle, initial_rows
from genesis_core.render.camera import Camera

pytestmark = pytest.mark.gl


@pytest.fixture
def canvas(qtbot, state: AppState, intents: Intents, bundle: SceneBundle) -> Iterator[Canvas]:
    made = Canvas(state, intents)
    made.resize(400, 300)
    made.show()
    qtbot.waitExposed(made)
    show_scene(state, bundle, n_envs=4, shown=1)
    qtbot.waitUntil(lambda: made._drawn > 0 and made.renderer is not None, timeout=20000)
    made.camera = Camera(lookat=(0, 0, 0.5), distance=4.0, azimuth=90, elevation=-10)
    yield made
    destroy(made)


def destroy(canvas: Canvas) -> None:
    canvas.release()
    canvas.close()
    canvas.deleteLater()
    QApplication.sendPostedEvents(canvas, QEvent.Type.DeferredDelete)


def colors(image: QImage) -> set[str]:
    return {image.pixelColor(x, y).name() for x in range(0, image.width(), 8) for y in range(0, image.height(), 8)}


def red(image: QImage, x: int, y: int) -> bool:
    color = image.pixelColor(x, y)
    return color.red() > 1.6 * max(color.green(), color.blue(), 1)


def test_the_picture_shows_the_scene(canvas: Canvas, state: AppState) -> None:
    image = canvas.picture()
    assert len(colors(image)) > 20
    assert red(image, image.width() // 2, image.height() // 2)  # the ball


def test_a_frame_moves_what_is_drawn(canvas: Canvas, state: AppState, bundle: SceneBundle) -> None:
    state.take_frame(make_frame(bundle, [0], lift=50.0))
    image = canvas.picture()
    assert not red(image, image.width() // 2, image.height() // 2)


def test_the_renderer_is_named_and_software_said_plainly(qtbot, state: AppState, intents: Intents, bundle) -> None:
    told: list[tuple[str, bool]] = []
    state.renderer_found.connect(lambda name, software: told.append((name, software)))
    made = Canvas(state, intents)
    made.show()
    show_scene(state, bundle)
    qtbot.waitUntil(lambda: bool(told), timeout=20000)
    assert told[0][0] and told[0][1] == any(s in told[0][0].lower() for s in ("llvmpipe", "softpipe", "swrast"))
    destroy(made)


def test_the_mouse_moves_the_camera_as_in_mujoco(canvas: Canvas) -> None:
    before = canvas.camera.copy()

    def drag(button: Qt.MouseButton) -> None:
        QTest.mousePress(canvas, button, Qt.KeyboardModifier.NoModifier, QPoint(200, 150))
        for x in (220, 240):
            _move(canvas, QPoint(x, 150), button)
        QTest.mouseRelease(canvas, button, Qt.KeyboardModifier.NoModifier, QPoint(240, 150))

    drag(Qt.MouseButton.LeftButton)
    assert canvas.camera.azimuth == pytest.approx(before.azimuth - 180 * 40 / 300)
    assert canvas.camera.distance == before.distance
    lookat = canvas.camera.lookat.copy()
    drag(Qt.MouseButton.RightButton)
    assert np.linalg.norm(canvas.camera.lookat - lookat) > 0.1


def _move(canvas: Canvas, to: QPoint, button: Qt.MouseButton) -> None:
    event = QMouseEvent(
        QEvent.Type.MouseMove, QPointF(to), canvas.mapToGlobal(QPointF(to)), Qt.MouseButton.NoButton, button,
        Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    QApplication.sendEvent(canvas, event)


def test_double_click_selects_the_body_and_the_sky_deselects(canvas: Canvas, state: AppState) -> None:
    QTest.mouseDClick(canvas, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, QPoint(200, 150))
    assert state.selection is not None
    assert state.bundle is not None and state.bundle.body_name[state.selection.body] == "ball"
    QTest.mouseDClick(canvas, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, QPoint(200, 5))
    assert state.selection is None


def test_ctrl_drag_pulls_the_body_to_the_pointer_and_lets_go(canvas: Canvas, state: AppState, intents: Intents) -> None:
    pulls: list[tuple] = []
    ends: list[tuple] = []
    intents.pull.connect(lambda *args: pulls.append(args))
    intents.let_go.connect(lambda *args: ends.append(args))
    control = Qt.KeyboardModifier.ControlModifier
    QTest.mousePress(canvas, Qt.MouseButton.LeftButton, control, QPoint(200, 150))
    _move(canvas, QPoint(200, 90), Qt.MouseButton.LeftButton)
    QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, control, QPoint(200, 90))
    env, body, point, target = pulls[-1]
    assert (env, body) == (0, 1) and ends == [(0, 1)]
    assert np.linalg.norm(point) == pytest.approx(0.3, abs=0.03)  # the ball's surface
    first = pulls[0][3]
    assert target[2] > first[2] + 0.3  # upwards


def test_what_is_fixed_is_not_pulled(canvas: Canvas, state: AppState, intents: Intents) -> None:
    from app.model.state import Selection

    pulls: list[tuple] = []
    intents.pull.connect(lambda *args: pulls.append(args))
    state.select(Selection(0, 0))
    QTest.mousePress(canvas, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier, QPoint(200, 150))
    assert pulls == [] and "fixed" in state.log[-1].text


def test_follow_keeps_a_moving_robot_in_its_place(canvas: Canvas, state: AppState, bundle: SceneBundle, qtbot) -> None:
    state.set_follow(True)
    canvas.picture()
    before = canvas.camera.lookat.copy()
    state.take_frame(make_frame(bundle, [0], lift=2.0))
    canvas.picture()
    assert canvas.camera.lookat - before == pytest.approx([0, 0, 2.0], abs=1e-5)


def test_frame_all_shows_every_environment(canvas: Canvas, state: AppState) -> None:
    state.set_shown([0, 1, 2, 3])
    canvas.picture()
    canvas.frame_all()
    for offset in state.offsets:
        seen = to_pixel(canvas.camera, offset + np.array([0, 0, 0.5]), 400, 300)
        assert seen is not None and 0 <= seen[0] <= 400 and 0 <= seen[1] <= 300


def test_frame_all_finds_robots_that_walked_away(canvas: Canvas, state: AppState, bundle: SceneBundle) -> None:
    frame = make_frame(bundle, [0])
    frame.rows[:, :, 3] += 40.0  # x
    state.take_frame(frame)
    canvas.frame_all()
    canvas.picture()
    ball = frame.rows[0, 1].reshape(3, 4)[:, 3] + state.offsets[0]
    seen = to_pixel(canvas.camera, ball, 400, 300)
    assert seen is not None and 0 <= seen[0] <= 400 and 0 <= seen[1] <= 300


def test_a_new_scene_gets_a_new_renderer_in_the_same_view(canvas: Canvas, state: AppState, bundle: SceneBundle) -> None:
    old = canvas.renderer
    show_scene(state, bundle, shown=2)
    assert len(colors(canvas.picture())) > 20
    assert canvas.renderer is not old


def test_body_poses_come_from_geoms(bundle: SceneBundle) -> None:
    pose = body_pose(bundle, initial_rows(bundle), bundle.body_name.index("arm"))
    assert pose is not None
    assert pose[0] == pytest.approx([1, 0, 1], abs=1e-6) and pose[1] == pytest.approx(np.eye(3), abs=1e-6)
    assert bundle.body_name[followed_body(bundle)] == "ball"


def test_a_pixel_and_its_point_agree() -> None:
    camera = Camera(lookat=(1, 2, 3), distance=5, azimuth=33, elevation=-12)
    point = on_plane(camera, 120, 80, 400, 300, np.array([1.0, 2.0, 3.0]))
    assert to_pixel(camera, point, 400, 300) == pytest.approx((120, 80), abs=1e-6)


def test_slow_pictures_get_fewer_pixels_and_quick_ones_more_again() -> None:
    pace = Pace(adaptive=True)
    for _ in range(20):
        pace.took(10 * TARGET)
    assert pace.scale == SMALLEST
    for _ in range(200):
        pace.took(0.1 * TARGET)
    assert pace.scale == 1.0
    fixed = Pace(adaptive=False)
    fixed.took(1.0)
    assert fixed.scale == 1.0

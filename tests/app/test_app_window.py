"""The window without workers: docks, cards, drops, palette, theme, closing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, QRectF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QImage, QStandardItemModel
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from window_tools import show_scene

from app.model.intents import Intents
from app.model.state import AppState, Loading, Problem, WorkerFacts
from app.ui.main_window import MainWindow
from app.ui.theme import apply_theme, draw_icon, theme
from genesis_core.layout.scene import SceneBundle


class Heard:
    """What the window asked for."""

    def __init__(self, intents: Intents) -> None:
        self.opened: list[str] = []
        self.toggled: list[int] = []
        self.ctrl: list[tuple] = []
        self.speeds: list[float | None] = []
        self.others: list[str] = []
        intents.open_path.connect(self.opened.append)
        intents.toggle_env.connect(self.toggled.append)
        intents.set_ctrl.connect(lambda values, env: self.ctrl.append((values, env)))
        intents.set_speed.connect(self.speeds.append)
        for name in ("load", "stop", "cancel"):
            getattr(intents, name).connect(lambda name=name: self.others.append(name))


@pytest.fixture
def window(qtbot, state: AppState, intents: Intents) -> Iterator[MainWindow]:
    apply_theme(QApplication.instance(), state.theme)
    state.theme_changed.connect(lambda name: apply_theme(QApplication.instance(), name))
    may_close = [False]
    made = MainWindow(state, intents, QWidget(), lambda: QImage(4, 4, QImage.Format.Format_RGB32), lambda: may_close[0])
    for name in state.commands.unbound():
        state.commands.bind(name, lambda: None)
    made.resize(1280, 800)
    made.show()
    qtbot.waitExposed(made)
    yield made
    may_close[0] = True
    made.close()
    made.deleteLater()
    QApplication.sendPostedEvents(made, QEvent.Type.DeferredDelete)  # else every window styles all before it anew


@pytest.fixture
def heard(intents: Intents) -> Heard:
    return Heard(intents)


def drop(widget: QWidget, *urls: QUrl) -> bool:
    """Drops files on a widget; whether they were taken."""
    mime = QMimeData()
    mime.setUrls(list(urls))
    at = widget.rect().center()
    args = (Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier)
    enter = QDragEnterEvent(at, *args)
    QApplication.sendEvent(widget, enter)
    if not enter.isAccepted():
        return False
    event = QDropEvent(QPointF(at), *args)
    QApplication.sendEvent(widget, event)
    return event.isAccepted()


def test_the_start_page_offers_every_bundled_scene(window: MainWindow, heard: Heard, qtbot) -> None:
    from resources import list_scenes, scene_path

    assert list(window.start_page.cards) == list_scenes()
    card = window.start_page.cards["cartpole"]
    qtbot.mouseClick(card, Qt.MouseButton.LeftButton)
    assert heard.opened == [str(scene_path("cartpole"))]


def test_nothing_on_the_start_page_is_cut_off_at_the_side(window: MainWindow) -> None:
    for dock in window.docks[:3]:
        area = dock.widget()
        assert area.widget().minimumSizeHint().width() <= area.viewport().width(), dock.objectName()


@pytest.mark.parametrize("name", ["a.xml", "a.urdf", "a.toml", "a.zip", "a.obj", "a.txt"])
def test_dropped_files_are_opened_whatever_they_are(window: MainWindow, heard: Heard, name: str) -> None:
    assert drop(window, QUrl.fromLocalFile(f"/robots/{name}"))
    assert heard.opened == [f"/robots/{name}"]  # the compiler says what is wrong with a .txt


def test_of_several_dropped_files_the_scene_is_opened(window: MainWindow, heard: Heard, state: AppState) -> None:
    assert drop(window, QUrl.fromLocalFile("/r/part.stl"), QUrl.fromLocalFile("/r/robot.urdf"))
    assert heard.opened == ["/r/robot.urdf"] and "2 files" in state.log[-1].text


def test_a_dropped_web_address_is_refused_in_words(window: MainWindow, heard: Heard, state: AppState) -> None:
    drop(window, QUrl("https://example.org/robot.urdf"))
    assert heard.opened == [] and "example.org" in state.log[-1].text


def test_a_problem_is_a_card_with_what_where_and_hint(window: MainWindow, state: AppState, qtbot) -> None:
    state.set_problem(Problem("x.urdf cannot be opened", "it is empty", "/a/x.urdf:1", "write something"))
    card = window.problem
    assert card.isVisible() and window.stack.rect().contains(card.geometry())
    texts = [w.text().replace("\u200b", "") for w in card.findChildren(QLabel) if w.isVisible()]
    for part in state.problem[:4]:
        assert part in texts
    state.commands.run("view.deselect")
    assert state.problem is None and not card.isVisible()


def test_a_long_problem_stays_inside_the_view(window: MainWindow, state: AppState) -> None:
    state.set_problem(Problem("t " * 80, "word " * 300, "/very/long" * 40, "hint " * 100, "log\n" * 200))
    assert window.stack.rect().contains(window.problem.geometry())


@pytest.mark.parametrize("words", range(8, 30, 3))
def test_no_line_of_a_problem_is_cut_off(window: MainWindow, state: AppState, words: int) -> None:
    state.set_problem(Problem("x.urdf cannot be opened", "word " * words, "/a/x.urdf:1", "hint " * words))
    QApplication.processEvents()
    for part in (window.problem.text, window.problem.hint):
        assert part.height() >= part.heightForWidth(part.width())


def test_loading_shows_its_stage_and_can_be_cancelled(window: MainWindow, state: AppState, heard: Heard, qtbot) -> None:
    state.set_loading(Loading("/s/robot.urdf", "reading files", 0.25))
    assert window.loading.isVisible() and window.loading.stage.text() == "Reading files"
    assert window.loading.bar.value() == 250
    qtbot.mouseClick(window.loading.cancel, Qt.MouseButton.LeftButton)
    assert heard.others == ["cancel"]
    state.set_loading(None)
    assert not window.loading.isVisible()


def test_a_scene_replaces_the_start_page_and_fills_the_docks(
    window: MainWindow, state: AppState, bundle: SceneBundle
) -> None:
    assert window.stack.currentIndex() == 0
    show_scene(state, bundle)
    assert window.stack.currentIndex() == 1 and "tiny.xml" in window.windowTitle()
    assert window.environments_dock.count.text() == "4 of 16 shown"
    assert [round(s.value(), 2) for s in window.environments_dock.spacing] == [2.0, 3.0]
    texts = [w.text() for w in window.inspector_dock.findChildren(QLabel)]
    assert "swing" in texts and "0.250" in texts  # the actuator and its control


def test_a_slider_sets_the_control_within_its_limits(
    window: MainWindow, state: AppState, bundle: SceneBundle, heard: Heard
) -> None:
    show_scene(state, bundle)
    slider = window.inspector_dock._sliders[0][0]
    slider.setValue(slider.maximum())
    window.inspector_dock.everywhere.setChecked(True)
    slider.setValue(slider.minimum())
    assert heard.ctrl == [([10.0], 0), ([-10.0], None)]


def test_a_frame_does_not_send_controls_back(
    window: MainWindow, state: AppState, bundle: SceneBundle, heard: Heard
) -> None:
    show_scene(state, bundle)
    window.inspector_dock._updated = 0.0
    state.frame_arrived.emit()
    assert heard.ctrl == []


def test_a_click_in_the_map_toggles_that_environment(
    window: MainWindow, state: AppState, bundle: SceneBundle, heard: Heard, qtbot
) -> None:
    show_scene(state, bundle, n_envs=16)
    grid = window.environments_dock.map
    qtbot.mouseClick(grid, Qt.MouseButton.LeftButton, pos=grid.rect_of(6).center().toPoint())
    qtbot.mouseClick(grid, Qt.MouseButton.LeftButton, pos=QPoint(grid.width() - 1, grid.height() - 1))
    assert heard.toggled == [6]


@pytest.mark.parametrize("n_envs", [1, 7, 64, 4096, 100_000])
def test_every_cell_of_the_map_is_found_where_it_is_drawn(
    window: MainWindow, state: AppState, bundle: SceneBundle, n_envs: int
) -> None:
    show_scene(state, bundle, n_envs=n_envs, shown=1)
    grid = window.environments_dock.map
    QApplication.processEvents()
    for env in {0, n_envs // 2, n_envs - 1}:
        assert QRectF(grid.rect()).contains(grid.rect_of(env).center())
        assert grid.env_at(grid.rect_of(env).center()) == env
    assert not grid.grab().isNull()


def test_backends_that_are_not_there_say_why(window: MainWindow, state: AppState) -> None:
    state.set_devices(2, {"cuda": "no NVIDIA driver", "metal": "not an Apple chip"})
    picker = window.session_dock.backend
    model = picker.model()
    assert isinstance(model, QStandardItemModel)
    enabled = {picker.itemData(i): (model.item(i).isEnabled(), model.item(i).toolTip()) for i in range(picker.count())}
    assert enabled["cuda"] == (False, "no NVIDIA driver") and enabled["metal"] == (False, "not an Apple chip")
    assert enabled["auto"][0] and enabled["cpu"][0]
    assert window.session_dock.workers.maximum() == 2


def test_the_session_dock_writes_what_is_wanted(window: MainWindow, state: AppState, heard: Heard, qtbot) -> None:
    dock = window.session_dock
    state.set_devices(8, {})
    dock.workers.setValue(3)
    dock.envs.setValue(500)
    dock.precision.setCurrentIndex(1)
    dock.seed.setValue(42)
    wanted = state.wanted
    assert (wanted.cpu_workers, wanted.n_envs, wanted.precision, wanted.seed) == (3, 500, "64", 42)
    dock.envs.setValue(0)
    dock.seed.setValue(-1)
    assert wanted.n_envs is None and wanted.seed is None
    qtbot.mouseClick(dock.load, Qt.MouseButton.LeftButton)
    assert heard.others == ["load"]


def test_a_worker_that_died_has_a_restart_button_that_stays(
    window: MainWindow, state: AppState, bundle: SceneBundle
) -> None:
    from PySide6.QtWidgets import QPushButton

    def facts(rate: float) -> list[WorkerFacts]:
        return [WorkerFacts("cpu:0", "died", 0, 0, 0, 0, 0), WorkerFacts("cpu:1", "running", rate, 1, 1 << 20, 5, 2)]

    state.set_workers(facts(10))
    button = next(b for b in window.session_dock.findChildren(QPushButton) if b.text() == "Restart")
    state.set_workers(facts(2000))
    assert button in window.session_dock.findChildren(QPushButton)
    texts = [w.text() for w in window.session_dock.findChildren(QLabel)]
    assert "2 k steps/s" in texts and any("2 diverged" in t for t in texts)


def test_the_status_bar_says_speed_and_software_drawing(window: MainWindow, state: AppState) -> None:
    state.set_workers([WorkerFacts("cpu", "running", 12345.0, 0.5, 0, 0, 0)])
    state.set_phase("running")
    state.renderer_found.emit("llvmpipe (LLVM 15, 256 bits)", True)
    bar = window.statusBar()
    assert bar.phase.text() == "Running" and bar.factor.text() == "0.50× real time"
    assert "12.3 k env-steps/s" in bar.rate.text() and bar.factor.property("tone") == "warn"
    assert bar.renderer.text() == "software OpenGL (llvmpipe)"


def test_the_palette_finds_and_runs(window: MainWindow, state: AppState, qtbot) -> None:
    done = []
    state.commands.bind("view.frame", lambda: done.append(1))
    state.commands.run("help.palette")
    assert window.palette_.isVisible()
    qtbot.keyClicks(window.palette_.text, "frame all")
    qtbot.keyClick(window.palette_.text, Qt.Key.Key_Return)
    assert done == [1] and not window.palette_.isVisible()


def test_every_shortcut_is_on_the_help_sheet(window: MainWindow, state: AppState) -> None:
    state.commands.run("help.sheet")
    texts = {w.text() for w in window.help.findChildren(QLabel)}
    assert {c.shortcut for c in state.commands.table.values() if c.shortcut} <= texts
    assert window.stack.rect().contains(window.help.geometry())
    assert window.help.minimumSizeHint().width() <= window.help.width()


def test_menus_follow_what_can_be_done(window: MainWindow, state: AppState) -> None:
    action = window.actions_.actions["sim.step"]
    state.commands.set_enabled("sim.step", False)
    assert not action.isEnabled()
    state.commands.set_enabled("sim.step", True)
    assert action.isEnabled()


def test_the_theme_changes_everywhere_and_back(window: MainWindow, state: AppState) -> None:
    def corner() -> str:
        return window.grab().toImage().pixelColor(window.width() // 2, 8).name()

    assert corner() == theme("dark").colors["window"]
    state.commands.run("view.theme")
    assert state.theme == "light" and corner() == theme("light").colors["window"]
    assert state.settings.theme == "light" and window.actions_.actions["view.theme"].isChecked()
    state.commands.run("view.theme")
    assert corner() == theme("dark").colors["window"]


def test_both_themes_name_the_same_colours_and_the_sheet_uses_no_other() -> None:
    assert theme("dark").colors.keys() == theme("light").colors.keys()
    for name in ("dark", "light"):
        assert "@" not in theme(name).sheet()


def test_every_icon_of_a_command_exists_and_is_not_empty(qapp, state: AppState) -> None:
    for command in state.commands.table.values():
        if command.icon:
            image = draw_icon(command.icon, theme("dark").color("text"), 24).toImage()
            assert any(image.pixelColor(x, y).alpha() for x in range(24) for y in range(24)), command.icon


def test_speed_is_chosen_in_the_playback_bar(window: MainWindow, heard: Heard) -> None:
    picker = window.playback.speed
    picker.activated.emit(picker.count() - 1)
    picker.activated.emit(0)
    assert heard.speeds == [None, 0.1]


def test_closing_waits_for_the_workers(window: MainWindow) -> None:
    assert not window.close() and window.isVisible()


def test_the_layout_is_remembered(window: MainWindow, state: AppState) -> None:
    window.remember()
    assert state.settings.geometry and state.settings.docks
    state.settings.docks = "not base64 !"
    window._restore()  # a broken layout is ignored
    assert window.session_dock.isVisible()


def test_a_picture_that_cannot_be_written_is_told(window: MainWindow, state: AppState, tmp_path: Path) -> None:
    window._save(QImage(4, 4, QImage.Format.Format_RGB32), str(tmp_path / "no" / "x.png"))
    assert state.log[-1].level == "error"
    window._save(QImage(4, 4, QImage.Format.Format_RGB32), str(tmp_path / "x.png"))
    assert (tmp_path / "x.png").stat().st_size > 0

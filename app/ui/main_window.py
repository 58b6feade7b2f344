"""The main window: the view in the middle, docks around it, files dropped anywhere."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QByteArray, QSize, Qt
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDragLeaveEvent, QDropEvent, QImage
from PySide6.QtWidgets import QFileDialog, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from app.model.intents import Intents
from app.model.state import AppState
from app.ui.actions import Actions
from app.ui.docks.dock import Dock
from app.ui.docks.environments import EnvironmentsDock
from app.ui.docks.inspector import InspectorDock
from app.ui.docks.log import LogDock
from app.ui.docks.session import SessionDock
from app.ui.overlays import LoadingCard, ProblemCard
from app.ui.palette import HelpSheet, Palette
from app.ui.playback import PlaybackBar
from app.ui.start_page import StartPage
from app.ui.status import StatusBar
from app.ui.theme import icon, set_role
from app.ui.widgets.basics import framed

SCENES = (".xml", ".mjcf", ".urdf", ".toml", ".zip", ".mjz")
MESHES = (".obj", ".stl", ".dae", ".glb", ".gltf", ".ply")
LAYOUT_VERSION = 1
DEFAULT_SIZE = QSize(1440, 900)


class MainWindow(QMainWindow):
    """`view` is the 3D view; `on_close` is asked when the user closes the window and answers whether it may go now."""

    def __init__(
        self,
        state: AppState,
        intents: Intents,
        view: QWidget,
        picture: Callable[[], QImage],
        on_close: Callable[[], bool],
    ) -> None:
        super().__init__()
        self.setObjectName("mainWindow")
        self.state = state
        self.intents = intents
        self._picture = picture
        self._on_close = on_close
        self._dialog: QFileDialog | None = None
        self._hidden: list[Dock] = []
        self.setAcceptDrops(True)
        self.setMinimumSize(760, 520)
        self.setDockOptions(QMainWindow.DockOption.AnimatedDocks | QMainWindow.DockOption.AllowTabbedDocks)
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, self.tabPosition(Qt.DockWidgetArea.TopDockWidgetArea))
        self.actions_ = Actions(state, self)
        self._center(view)
        self._docks()
        self.setStatusBar(StatusBar(state))
        self._bind()
        self._restore()
        state.theme_changed.connect(self._on_theme)
        state.scene_changed.connect(self._on_scene)
        state.recent_changed.connect(self._fill_recent)
        state.loading_changed.connect(self._on_scene)
        self._on_theme(state.theme)
        self._on_scene()
        self._fill_recent()

    # ------------------------------------------------------------------ parts
    def _center(self, view: QWidget) -> None:
        center = QWidget()
        center.setObjectName("central")
        column = QVBoxLayout(center)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self.stack = QStackedWidget()
        self.start_page = StartPage(self.state, self.intents)
        self.stack.addWidget(self.start_page)
        self.stack.addWidget(view)
        self.playback = PlaybackBar(self.state, self.intents, self.actions_)
        column.addWidget(self.stack, 1)
        column.addWidget(self.playback)
        self.setCentralWidget(center)
        self.problem = ProblemCard(self.stack, self.state)
        self.loading = LoadingCard(self.stack, self.state, self.intents)
        self.palette_ = Palette(self.stack, self.state)
        self.help = HelpSheet(self.stack, self.state)
        self.veil = framed("dropVeil", self.stack)
        self.veil.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.veil.hide()

    def _docks(self) -> None:
        area = Qt.DockWidgetArea
        self.session_dock = SessionDock(self.state, self.intents)
        self.environments_dock = EnvironmentsDock(self.state, self.intents)
        self.inspector_dock = InspectorDock(self.state, self.intents)
        self.log_dock = LogDock(self.state)
        self.docks: tuple[Dock, ...] = (self.session_dock, self.environments_dock, self.inspector_dock, self.log_dock)
        self.setCorner(Qt.Corner.BottomLeftCorner, area.LeftDockWidgetArea)
        self.setCorner(Qt.Corner.BottomRightCorner, area.RightDockWidgetArea)
        self._standard_layout()
        for dock in self.docks:
            self.actions_.docks.addAction(dock.toggleViewAction())

    def _standard_layout(self) -> None:
        area = Qt.DockWidgetArea
        for dock, place in zip(
            self.docks,
            (area.LeftDockWidgetArea, area.RightDockWidgetArea, area.RightDockWidgetArea, area.BottomDockWidgetArea),
            strict=True,
        ):
            dock.setFloating(False)
            self.addDockWidget(place, dock)
            dock.show()
        self._hidden = []
        self.state.commands.set_checked("view.docks", False)
        horizontal, vertical = Qt.Orientation.Horizontal, Qt.Orientation.Vertical
        self.resizeDocks([self.session_dock, self.environments_dock], [270, 290], horizontal)
        self.resizeDocks([self.environments_dock, self.inspector_dock], [420, 380], vertical)
        self.resizeDocks([self.log_dock], [120], vertical)

    def _bind(self) -> None:
        bind = self.state.commands.bind
        bind("file.open", self.open_dialog)
        bind("file.screenshot", self.save_dialog)
        bind("app.quit", self.close)
        bind("view.theme", lambda: self.state.set_theme("light" if self.state.theme == "dark" else "dark"))
        bind("view.fullscreen", self._full_screen)
        bind("view.layout", self._standard_layout)
        bind("view.docks", self._only_picture)
        bind("view.deselect", self._escape)
        bind("help.palette", self.palette_.open)
        bind("help.sheet", self.help.toggle)
        bind("help.about", self._about)
        self.state.commands.set_checked("view.theme", self.state.theme == "light")

    # ------------------------------------------------------------------ what is remembered
    def _restore(self) -> None:
        size, settings = self.state.launch.size, self.state.settings
        if size is not None:
            self.resize(*size)
        elif not (settings.geometry and self.restoreGeometry(_bytes(settings.geometry))):
            self.resize(DEFAULT_SIZE)
        if size is None and settings.docks:
            self.restoreState(_bytes(settings.docks), LAYOUT_VERSION)

    def remember(self) -> None:
        """Geometry and docks into the settings."""
        if self.state.launch.size is None:
            self.state.settings.geometry = base64.b64encode(self.saveGeometry().data()).decode()
            self.state.settings.docks = base64.b64encode(self.saveState(LAYOUT_VERSION).data()).decode()

    # ------------------------------------------------------------------ facts
    def _on_theme(self, name: str) -> None:
        self.setWindowIcon(icon("logo", name, "accent"))
        for dock in self.docks:
            dock.set_icons(name)

    def _on_scene(self) -> None:
        bundle, loading = self.state.bundle, self.state.loading
        self.stack.setCurrentIndex(0 if bundle is None else 1)
        self.start_page.setEnabled(loading is None or bundle is not None)
        title = Path(self.state.path).name if bundle is not None else ""
        self.setWindowTitle(f"{title} — Genesis Studio" if title else "Genesis Studio")

    def _fill_recent(self) -> None:
        menu = self.actions_.recent
        menu.clear()
        menu.setEnabled(bool(self.state.settings.recent))
        for path in self.state.settings.recent:
            action = menu.addAction(Path(path).name)
            action.setStatusTip(path)
            action.setToolTip(path)
            action.triggered.connect(lambda _=False, path=path: self.intents.open_path.emit(path))

    # ------------------------------------------------------------------ commands
    def open_dialog(self) -> None:
        """A file dialog that blocks nothing."""
        if self._dialog is None:
            patterns = " ".join(f"*{suffix}" for suffix in (*SCENES, *MESHES))
            dialog = QFileDialog(self, "Open a robot, scene, mesh or archive")
            dialog.setOption(QFileDialog.Option.DontUseNativeDialog, True)
            dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
            dialog.setNameFilters([f"Robots, scenes and meshes ({patterns})", "All files (*)"])
            dialog.fileSelected.connect(self._opened)
            self._dialog = dialog
        self._dialog.setDirectory(self.state.settings.last_folder or str(Path.home()))
        self._dialog.open()

    def _opened(self, path: str) -> None:
        self.state.settings.last_folder = str(Path(path).parent)
        self.intents.open_path.emit(path)

    def save_dialog(self) -> None:
        """Takes the picture now, asks for its name afterwards."""
        image = self._picture()
        dialog = QFileDialog(self, "Save the picture as")
        dialog.setOption(QFileDialog.Option.DontUseNativeDialog, True)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("png")
        dialog.setNameFilter("PNG pictures (*.png)")
        dialog.selectFile(f"{Path(self.state.path).stem or 'scene'}.png")
        dialog.fileSelected.connect(lambda path: self._save(image, path))
        dialog.open()

    def _save(self, image: QImage, path: str) -> None:
        if image.save(path):
            self.state.add_log("info", f"saved {path}")
        else:
            self.state.add_log("error", "the picture cannot be written", path, "choose another folder")

    def _full_screen(self) -> None:
        on = not self.isFullScreen()
        (self.showFullScreen if on else self.showNormal)()
        self.state.commands.set_checked("view.fullscreen", on)

    def _only_picture(self) -> None:
        """Hides the docks that can be seen, or brings those back."""
        seen = [dock for dock in self.docks if not dock.isHidden()]
        for dock in seen or self._hidden or self.docks:
            dock.setVisible(not seen)
        self._hidden = seen
        self.state.commands.set_checked("view.docks", bool(seen))

    def _escape(self) -> None:
        """What is open goes first, then the selection."""
        for card in (self.palette_, self.help):
            if card.isVisible():
                card.hide()
                return
        if self.state.problem is not None:
            self.state.set_problem(None)
        else:
            self.state.select(None)

    def _about(self) -> None:
        from importlib.metadata import version

        status = self.statusBar()
        assert isinstance(status, StatusBar)
        self.state.add_log(
            "info", f"Genesis Studio {version('genesis-studio')}, {status.renderer.text() or 'nothing drawn'}"
        )
        self.log_dock.show()
        self.log_dock.raise_()

    # ------------------------------------------------------------------ drops
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():
            event.setDropAction(Qt.DropAction.CopyAction)
            event.accept()
            self._show_veil(True)

    def dragLeaveEvent(self, _event: QDragLeaveEvent) -> None:
        self._show_veil(False)

    def dropEvent(self, event: QDropEvent) -> None:
        self._show_veil(False)
        urls = event.mimeData().urls()
        paths = [url.toLocalFile() for url in urls if url.isLocalFile()]
        if not paths:
            self.state.add_log("warning", f"only files of this machine can be dropped, not {urls[0].toString()}")
            return
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        if len(paths) > 1:
            self.state.add_log("info", f"{len(paths)} files were dropped, the first scene of them is opened")
        scenes = [p for p in paths if Path(p).suffix.lower() in SCENES]
        self.intents.open_path.emit((scenes or paths)[0])

    def _show_veil(self, on: bool) -> None:
        set_role(self.start_page.hint, active="true" if on else "false")
        self.veil.setGeometry(self.stack.rect())
        self.veil.setVisible(on)
        self.veil.raise_()

    # ------------------------------------------------------------------ end
    def closeEvent(self, event: QCloseEvent) -> None:
        if self._on_close():
            event.accept()
        else:
            event.ignore()


def _bytes(text: str) -> QByteArray:
    try:
        return QByteArray(base64.b64decode(text, validate=True))
    except ValueError:
        return QByteArray()

"""Every command of the window as data: menus, tool buttons, shortcuts, palette and help sheet are made from this table.

A command is bound to what it does by whoever does it (`Commands.bind`) and run by its name (`Commands.run`), so that
the widgets need not know who answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from psygnal import Signal


class Command(NamedTuple):
    """One row of the table. Shortcuts are in Qt's portable notation ("Ctrl+O")."""

    id: str
    title: str
    menu: str = ""
    shortcut: str = ""
    icon: str = ""
    checkable: bool = False
    tip: str = ""
    separator: bool = False  # a line above it in the menu


TABLE: tuple[Command, ...] = (
    Command("file.open", "Open scene…", "File", "Ctrl+O", "open", tip="Open a robot, scene, mesh or archive"),
    Command("file.reload", "Load again", "File", "Ctrl+R", "reload", tip="Read the file again"),
    Command("file.close", "Close scene", "File", "Ctrl+W", "close", tip="End the workers and go to the start page"),
    Command("file.screenshot", "Save picture…", "File", "Ctrl+Shift+S", "camera", tip="Save the 3D view as a PNG file",
            separator=True),
    Command("app.quit", "Quit", "File", "Ctrl+Q", tip="Close the window and end all workers", separator=True),
    Command("sim.play", "Play or pause", "Simulation", "Space", "play", tip="Run or hold all environments"),
    Command("sim.step", "One step", "Simulation", "Right", "step", tip="Advance every environment by one time step"),
    Command("sim.step10", "Ten steps", "Simulation", "Shift+Right", tip="Advance every environment by ten time steps"),
    Command("sim.reset", "Reset all", "Simulation", "Backspace", "reset", tip="Back to the start states"),
    Command("sim.reset_selected", "Reset the inspected one", "Simulation", "Shift+Backspace",
            tip="Only the environment that the inspector shows"),
    Command("sim.faster", "Faster", "Simulation", "+", tip="Next higher speed", separator=True),
    Command("sim.slower", "Slower", "Simulation", "-", tip="Next lower speed"),
    Command("sim.realtime", "Real time", "Simulation", "=", tip="One simulated second per second"),
    Command("sim.fastest", "As fast as it goes", "Simulation", "Ctrl+=", "fast", tip="No pacing"),
    Command("sim.cancel", "Cancel loading", "Simulation", "Ctrl+.", tip="Keep the scene that is open", separator=True),
    Command("view.frame", "Frame all", "View", "F", "frame", tip="Show all shown environments as large as they fit"),
    Command("view.follow", "Follow", "View", "T", "follow", True, "The camera moves with the selected body"),
    Command("view.home", "Scene's own view", "View", "Home", "home", tip="The camera that the scene file asks for"),
    Command("view.front", "From the front", "View", tip="Look along -x", separator=True),
    Command("view.side", "From the side", "View", tip="Look along +y"),
    Command("view.top", "From above", "View", tip="Look straight down"),
    Command("view.deselect", "Select nothing", "View", "Esc", tip="Clear the selection, close messages"),
    Command("view.first1", "Show the first one", "View", "1", tip="Environment 0", separator=True),
    Command("view.first4", "Show the first 4", "View", "2", tip="Environments 0 to 3"),
    Command("view.first16", "Show the first 16", "View", "3", tip="Environments 0 to 15"),
    Command("view.first64", "Show the first 64", "View", "4", tip="Environments 0 to 63"),
    Command("view.random16", "Show 16 at random", "View", "5", tip="Other ones each time"),
    Command("view.all", "Show all", "View", "6", tip="Every environment, up to the limit of the drawing"),
    Command("view.theme", "Light theme", "View", "Ctrl+L", "theme", True, "Switch between dark and light",
            separator=True),
    Command("view.fullscreen", "Full screen", "View", "F11", checkable=True, tip="Without the frame of the window"),
    Command("view.docks", "Only the picture", "View", "Ctrl+B", checkable=True,
            tip="Hide all panels, or show them again; Tab does it too while the view has the keyboard"),
    Command("view.layout", "Standard layout", "View", "", tip="All docks back to their places"),
    Command("help.palette", "Command palette…", "Help", "Ctrl+Shift+P", "search", tip="Find and run any command"),
    Command("help.sheet", "Keys and mouse", "Help", "F1", "help", tip="Every shortcut on one sheet"),
    Command("help.about", "About Genesis Studio", "Help", tip="Version and OpenGL renderer"),
)  # fmt: skip

MENUS = ("File", "Simulation", "View", "Help")


class Commands:
    """Who does what, what can be done now, and which switches are on."""

    enabled_changed = Signal(str, bool)
    checked_changed = Signal(str, bool)

    def __init__(self, table: tuple[Command, ...] = TABLE) -> None:
        self.table = {c.id: c for c in table}
        self._does: dict[str, Callable[[], object]] = {}
        self._disabled: set[str] = set()
        self._checked: set[str] = set()

    def bind(self, command: str, does: Callable[[], object]) -> None:
        """Says what a command does; KeyError for a name that is not in the table."""
        if command not in self.table:
            raise KeyError(f"no command is named '{command}'")
        self._does[command] = does

    def unbound(self) -> list[str]:
        """Commands that nobody does."""
        return [name for name in self.table if name not in self._does]

    def run(self, command: str) -> bool:
        """Runs a command; False where it is not possible now."""
        if command in self._disabled:
            return False
        self._does[command]()
        return True

    def set_enabled(self, command: str, on: bool) -> None:
        if on == (command in self._disabled):
            (self._disabled.discard if on else self._disabled.add)(command)
            self.enabled_changed.emit(command, on)

    def enabled(self, command: str) -> bool:
        return command not in self._disabled

    def set_checked(self, command: str, on: bool) -> None:
        if on != (command in self._checked):
            (self._checked.add if on else self._checked.discard)(command)
            self.checked_changed.emit(command, on)

    def checked(self, command: str) -> bool:
        return command in self._checked

    def search(self, text: str) -> list[Command]:
        """Commands that can be run now and hold every letter of `text` in order, the best first."""
        found = []
        for place, command in enumerate(self.table.values()):
            score = match_score(text, f"{command.menu} {command.title}") if command.menu else None
            if score is not None and self.enabled(command.id):
                found.append((score, place, command))
        return [command for _, _, command in sorted(found, key=lambda item: item[:2])]


def match_score(text: str, title: str) -> int | None:
    """How far the letters of `text` lie apart in `title`: 0 = a word begins with them, None = they are not in it."""
    wanted, title = text.casefold().replace(" ", ""), title.casefold()
    if not wanted:
        return 0
    at = title.find(text.casefold().strip())
    if at >= 0:
        return 0 if at == 0 or title[at - 1] == " " else 1
    score, position = 2, -1
    for letter in wanted:
        found = title.find(letter, position + 1)
        if found < 0:
            return None
        score += found - position - 1 if position >= 0 else 0
        position = found
    return score

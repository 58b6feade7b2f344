"""The table of commands and what is made of it."""

from __future__ import annotations

from collections import Counter

import pytest

from app.model.commands import MENUS, TABLE, Commands, match_score


def test_names_titles_and_shortcuts_are_unique() -> None:
    for values in ([c.id for c in TABLE], [c.title for c in TABLE], [c.shortcut for c in TABLE if c.shortcut]):
        assert [v for v, n in Counter(values).items() if n > 1] == []


def test_every_command_is_in_a_menu_and_says_what_it_does() -> None:
    assert [c.id for c in TABLE if c.menu not in MENUS or not c.tip] == []


def test_a_command_runs_what_it_is_bound_to_only_while_enabled() -> None:
    commands, done = Commands(), []
    commands.bind("sim.play", lambda: done.append(1))
    assert commands.run("sim.play")
    commands.set_enabled("sim.play", False)
    assert not commands.run("sim.play")
    assert done == [1]


def test_binding_an_unknown_command_names_it() -> None:
    with pytest.raises(KeyError, match=r"sim\.fly"):
        Commands().bind("sim.fly", lambda: None)


def test_signals_tell_only_changes() -> None:
    commands, told = Commands(), []
    commands.enabled_changed.connect(lambda name, on: told.append((name, on)))
    commands.set_enabled("sim.step", True)
    commands.set_enabled("sim.step", False)
    commands.set_enabled("sim.step", False)
    assert told == [("sim.step", False)]


def test_search_finds_the_best_first_and_leaves_out_what_cannot_be_done() -> None:
    commands = Commands()
    assert commands.search("step")[0].id == "sim.step"
    assert commands.search("frame")[0].id == "view.frame"
    commands.set_enabled("sim.step", False)
    assert "sim.step" not in [c.id for c in commands.search("step")]
    assert commands.search("xyzzy") == []


@pytest.mark.parametrize(
    ("text", "title", "found"), [("oms", "Open MJCF scene", True), ("smo", "Open", False), ("", "x", True)]
)
def test_letters_must_come_in_order(text: str, title: str, found: bool) -> None:
    assert (match_score(text, title) is not None) == found

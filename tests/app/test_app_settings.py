"""Settings survive writing and reading, broken files and full disks."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.model.settings import MAX_RECENT, VERSION, Settings, load_settings, save_settings, settings_file

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(folder=TEXT, recent=st.lists(TEXT, max_size=MAX_RECENT), workers=st.integers(1, 1024))
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, folder, recent, workers) -> None:
    path = tmp_path_factory.mktemp("settings") / "settings.toml"
    settings = Settings(last_folder=folder, recent=recent, cpu_workers=workers, theme="light", compact=False)
    assert save_settings(settings, path)
    assert load_settings(path) == (settings, [])


def test_a_missing_file_gives_defaults_without_a_word(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "none.toml") == (Settings(), [])


@pytest.mark.parametrize("content", [b"theme = ", b"\xff\xfe\x00", b"[[[", b"a" * 5000])
def test_a_broken_file_is_kept_beside_and_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(content)
    settings, notes = load_settings(path)
    assert settings == Settings()
    assert len(notes) == 1 and str(path) in notes[0]
    assert path.with_suffix(".toml.bak").read_bytes() == content


def test_one_bad_value_leaves_the_others_alone(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('theme = "pink"\ncpu_workers = 0\nprecision = "64"\nfuture = 3\n')
    settings, notes = load_settings(path)
    assert (settings.theme, settings.cpu_workers, settings.precision) == ("dark", 1, "64")
    assert any("'pink'" in note for note in notes) and any("cpu_workers = 0" in note for note in notes)


def test_a_file_of_a_newer_version_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(f'version = {VERSION + 5}\ntheme = "light"\n[panels]\nx = 1\n')
    settings, notes = load_settings(path)
    assert settings.theme == "light" and settings.version == VERSION and notes == []


def test_recent_files_are_unique_newest_first_and_few() -> None:
    settings = Settings()
    for i in [*range(15), 3]:
        settings.remember(f"/s/{i}.xml")
    assert settings.recent[:2] == ["/s/3.xml", "/s/14.xml"]
    assert len(settings.recent) == MAX_RECENT == len(set(settings.recent))


def test_a_folder_that_cannot_be_made_loses_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not save_settings(Settings(), tmp_path / "file" / "settings.toml")


def test_the_variable_moves_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GENESIS_CONFIG_DIR", str(tmp_path / "here"))
    assert settings_file() == tmp_path / "here" / "settings.toml"
    save_settings(Settings())
    assert tomllib.loads((tmp_path / "here" / "settings.toml").read_text())["version"] == VERSION
    assert os.listdir(tmp_path / "here") == ["settings.toml"]

"""Files that cannot be used: one SceneError with file, line and element, and nothing else."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from genesis_core.compiler.load import load_scene
from genesis_core.errors import SceneError

BODY = '<mujoco>\n<worldbody>\n<body name="b"><joint name="j"/>\n{}\n</body></worldbody></mujoco>'

MJCF = {
    # name: (text, line, element, words of the message)
    "unknown element": ("<mujoco>\n<worldbody>\n<bodi/></worldbody></mujoco>", 3, "bodi", "unrecognized element"),
    "unknown attribute": (BODY.format('<geom siz="1"/>'), 4, "geom", "siz"),
    "bad number": (BODY.format('<geom size="1 x"/>'), 4, "geom", "size"),
    "not a number": (BODY.format('<geom size="nan"/>'), 4, "geom", "NaN"),
    "infinite": (BODY.format('<geom size="inf"/>'), 4, "geom", "infinite"),
    "absurd size": (BODY.format('<geom name="g" size="1e300"/>'), 3, 'body "b"', "is inf"),
    "no mass": (BODY.format('<geom size="1" mass="0"/>'), 3, 'body "b"', "mass and inertia"),
    "negative size": (BODY.format('<geom name="g" size="-1"/>'), 4, 'geom "g"', "must be positive"),
    "zero quaternion": (BODY.format('<geom size="1" quat="0 0 0 0"/>'), 4, "geom", "zero quaternion"),
    "name used twice": (BODY.format('<geom name="g" size="1"/>\n<geom name="g" size="1"/>'), 5, 'geom "g"', "repeated"),
    "missing mesh": ('<mujoco>\n<asset>\n<mesh name="m" file="no.obj"/></asset></mujoco>', 3, 'mesh "m"', "no.obj"),
    "missing include": ('<mujoco>\n<include file="no.xml"/></mujoco>', 2, "include", "no.xml"),
    "includes itself": ('<mujoco>\n<include file="scene.xml"/></mujoco>', 2, "include", "twice"),
    "time step of zero": ('<mujoco>\n<option timestep="0"/></mujoco>', 2, "option", "not positive"),
    "too many copies": (
        '<mujoco><worldbody>\n<replicate count="1000000000"><geom size="1"/></replicate></worldbody></mujoco>',
        2,
        "replicate",
        "1e+09",
    ),
    "copies of copies": (
        '<mujoco><worldbody>\n<replicate count="10000">\n<replicate count="10000"><geom size="1"/></replicate>'
        "</replicate></worldbody></mujoco>",
        3,
        "replicate",
        "1e+08",
    ),
    "huge height field": (
        '<mujoco><asset>\n<hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset></mujoco>',
        2,
        'hfield "h"',
        "1e+10",
    ),
    "entity": ('<!DOCTYPE x [\n<!ENTITY a "b">]>\n<mujoco/>', 2, "", "&a;"),
    "print format in a name": (BODY.format('<geom name="%n%s" size="1"/>'), 4, "geom", "per cent"),
    "cut off": ("<mujoco>\n<worldbody>\n<body>", 3, "body", "no element found"),
    "wrong end tag": ("<mujoco>\n<worldbody>\n</mujoco>", 3, "worldbody", "mismatched tag"),
    "wrong root": ("<foo/>", 1, "foo", "not <mujoco>"),
    "text": ("hello", 1, "", "not XML"),
}


@pytest.mark.parametrize("case", MJCF)
def test_a_faulty_mjcf_names_file_line_and_element(case: str, tmp_path: Path) -> None:
    text, line, element, words = MJCF[case]
    path = tmp_path / "scene.xml"
    path.write_text(text)
    with pytest.raises(SceneError) as caught:
        load_scene(path)
    error = caught.value
    assert error.file == str(path)
    assert error.line == line
    assert error.element.startswith(element)
    assert words in error.what


def test_a_deep_nest_is_refused_before_it_overflows_a_stack(tmp_path: Path) -> None:
    path = tmp_path / "deep.xml"
    path.write_text("<mujoco><worldbody>" + "<body>" * 50_000 + "</body>" * 50_000 + "</worldbody></mujoco>")
    with pytest.raises(SceneError, match="nested more than 200 deep"):
        load_scene(path)


def test_a_fault_in_an_included_file_is_placed_there(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "scene.xml").write_text('<mujoco>\n<include file="parts/robot.xml"/></mujoco>')
    part = tmp_path / "parts" / "robot.xml"
    part.write_text('<mujoco>\n<worldbody>\n\n<body name="b"><geom siz="1"/></body></worldbody></mujoco>')
    with pytest.raises(SceneError) as caught:
        load_scene(tmp_path / "scene.xml")
    assert (caught.value.file, caught.value.line) == (str(part), 4)
    part.write_text('<mujoco>\n<worldbody>\n\n\n<body name="b"><joint/></body></worldbody></mujoco>')
    with pytest.raises(SceneError) as caught:
        load_scene(tmp_path / "scene.xml")
    assert (caught.value.file, caught.value.line, caught.value.element) == (str(part), 5, 'body "b"')


FILES = {
    "empty.xml": (b"", "empty"),
    "blank.xml": (b"  \n ", "white space"),
    "binary.xml": (bytes(range(256)) * 8, "binary"),
    "latin.xml": (b'<mujoco>\n<worldbody>\n<body name="K\xf6rper"/></worldbody></mujoco>', "0xf6"),
    "utf16.xml": ("<mujoco/>".encode("utf-16"), "UTF-16"),
    "picture.xml": (b"\x89PNG\r\n\x1a\n\0\0\0", "binary"),
    "strange.foo": (b"hello", "no kind of file"),
    "robot.urdf.xacro": (b"<robot/>", "xacro"),
    "short.stl": (b"\0" * 20, "cut off"),
    "hollow.stl": (b"\0" * 84, "no triangles"),
    "half.stl": (b"\0" * 80 + (100).to_bytes(4, "little") + b"\0" * 60, "1 of 100"),
    "bad.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", "cannot be read"),
    "bad.dae": (b"<COLLADA>", "cannot be read"),
    "bad.glb": (b"glTF\2\0\0\0", "cannot be read"),
    "bad.ply": (b"ply\nformat ascii 1.0\nelement vertex 3\n", "cannot be read"),
    "bad.zip": (b"hello", "cannot be read"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_wrong_content_is_told_apart(name: str, tmp_path: Path) -> None:
    content, words = FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(SceneError, match=words) as caught:
        load_scene(path)
    assert caught.value.file == str(path)


def test_the_line_of_a_byte_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "latin.xml"
    path.write_bytes(FILES["latin.xml"][0])
    with pytest.raises(SceneError) as caught:
        load_scene(path)
    assert caught.value.line == 3


def test_a_missing_file_suggests_the_near_name(tmp_path: Path) -> None:
    (tmp_path / "humanoid.xml").write_text("<mujoco/>")
    with pytest.raises(SceneError, match=r"did you mean .*humanoid\.xml"):
        load_scene(tmp_path / "humanoi.xml")


def test_a_directory_names_the_scenes_inside(tmp_path: Path) -> None:
    (tmp_path / "robot.xml").write_text("<mujoco/>")
    with pytest.raises(SceneError, match=r"directory.*\n.*robot\.xml"):
        load_scene(tmp_path)


@pytest.mark.parametrize("name", ["", "a\0b", "x" * 5000, "~nobody-here/scene.xml", "scene.xml/inside.xml"])
def test_a_strange_path_is_a_scene_error_too(name: str) -> None:
    with pytest.raises(SceneError):
        load_scene(name)


def test_paths_with_any_letters_open(tmp_path: Path) -> None:
    folder = tmp_path / "Roböter λ 机器人"
    folder.mkdir()
    (folder / "ä b.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    path = folder / "é.xml"
    path.write_text(
        '<mujoco><asset><mesh name="ü" file="ä b.obj"/></asset><worldbody><geom name="ß" type="mesh" mesh="ü"/>'
        "</worldbody></mujoco>",
        encoding="utf-8",
    )
    assert load_scene(path).bundle.geom_name == ["ß"]


def test_a_device_file_is_refused_at_once() -> None:
    with pytest.raises(SceneError, match="device or pipe"):
        load_scene("/dev/zero")


def test_a_huge_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "huge.xml"
    with path.open("wb") as file:
        os.truncate(file.fileno(), 70 * 2**20)
    with pytest.raises(SceneError, match="70 MiB, more than the 64 MiB"):
        load_scene(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_read_permission_says_so(tmp_path: Path) -> None:
    path = tmp_path / "secret.xml"
    path.write_text("<mujoco/>")
    path.chmod(0)
    with pytest.raises(SceneError, match="cannot be read"):
        load_scene(path)


def test_an_archive_is_opened_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "robot.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("robot/scene.xml", '<mujoco>\n<include file="part.xml"/></mujoco>')
        archive.writestr("robot/part.xml", '<mujoco><worldbody><geom name="g" size="1"/></worldbody></mujoco>')
    loaded = load_scene(path)
    assert loaded.bundle.geom_name == ["g"]
    assert loaded.bundle.source == str(path)
    assert [p.name for p in tmp_path.iterdir()] == ["robot.zip"]


@pytest.mark.parametrize("name", ["../evil.xml", "/evil.xml", "a/../../evil.xml", "c:\\evil.xml", "..\\evil.xml"])
def test_an_archive_that_writes_outside_of_its_folder_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "inner" / "slip.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, "<mujoco/>")
    with pytest.raises(SceneError, match="outside of its folder"):
        load_scene(path)
    assert not list(tmp_path.rglob("evil.xml"))


def test_an_archive_with_a_link_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "link.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("scene.xml")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(SceneError, match="link"):
        load_scene(path)


def test_an_archive_that_unpacks_to_too_much_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("genesis_core.compiler.archive.MAX_UNPACKED_BYTES", 10_000)
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("scene.xml", " " * 1_000_000)
    with pytest.raises(SceneError, match="unpacks to more"):
        load_scene(path)


def test_infinite_limits_and_dashes_in_comments_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "scene.xml"
    path.write_text(
        "<!-- -- a line -- -->\n<mujoco><!----><worldbody><body>"
        '<joint range="-inf inf"/><geom size="1"/></body></worldbody></mujoco>'
    )
    assert load_scene(path).mj.nv == 1


def test_reading_writes_no_log_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scene.xml").write_text(
        '<mujoco><compiler settotalmass="3"/><worldbody><body><joint/><geom size="1"/></body></worldbody></mujoco>'
    )
    loaded = load_scene("scene.xml")
    assert [p.name for p in tmp_path.iterdir()] == ["scene.xml"]
    assert any("settotalmass" in w for w in loaded.warnings)

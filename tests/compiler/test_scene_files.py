"""Scene files: what they mean, and what they say when they are wrong."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import resources
from genesis_core.compiler.load import load_scene
from genesis_core.compiler.scenefile import SceneSpec, key_lines, read_scene_file, scene_schema, spec_from_dict
from genesis_core.errors import OptionError, SceneError

ROBOT = """<mujoco model="bob"><option timestep="0.004"/><worldbody>
<body name="trunk" pos="0 0 1"><freejoint name="root"/><geom size=".1"/>
<body name="leg"><joint name="hip" axis="0 1 0" range="-90 90"/>
<geom name="shin" type="capsule" size=".05" fromto="0 0 0 0 0 -.5"/></body></body>
</worldbody><actuator><position name="hip" joint="hip" kp="10"/></actuator>
<keyframe><key name="home" qpos="1 2 3 1 0 0 0 0.5" ctrl="0.25"/></keyframe></mujoco>"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bob.xml").write_text(ROBOT)
    return tmp_path


def scene(folder: Path, text: str) -> Path:
    path = folder / "scene.toml"
    path.write_text(text)
    return path


WRONG = """n_envs = 0
nam = "x"
[options]
timestp = 0.1
integrator = "eulr"
[[entities]]
type = "box"
radius = 1
[[entities]]
type = "bx"
[[entities]]
type = "sphere"
radius = nan
euler = [1, 2]
[start]
[[start.noise]]
qps = 1
"""


def test_all_mistakes_come_at_once_with_lines_and_near_names(folder: Path) -> None:
    with pytest.raises(SceneError) as caught:
        load_scene(scene(folder, WRONG))
    text = caught.value.what
    for words in (
        "line 1: n_envs: 0 is wrong",
        "line 2: nam: unknown key 'nam'; did you mean 'name'?",
        "line 4: options.timestp: unknown key 'timestp'; did you mean 'timestep'?",
        "line 5: options.integrator: 'eulr' is wrong",
        "did you mean 'euler'?",
        "line 8: entities[0].radius: a box has no key 'radius'",
        "line 10: entities[1].type: 'bx' is wrong",
        "line 13: entities[2].radius: nan is wrong",
        "line 14: entities[2].euler: too few numbers",
        "line 17: start.noise[0].qps: unknown key 'qps'; did you mean 'qpos'?",
    ):
        assert words in text
    assert text.startswith("9 mistakes")
    assert caught.value.line == 1


SINGLE = {
    "n_envs of minus one": ("n_envs = -1", 1, "n_envs: -1 is wrong"),
    "a billion environments": ("\nn_envs = 1000000000", 2, "1000000000 is wrong"),
    "half an environment": ("n_envs = 1.5", 1, "n_envs"),
    "broken TOML": ("name = 'a'\nn_envs = \n", 2, "not valid TOML"),
    "missing robot": ('[[entities]]\ntype = "mjcf"\nname = "r"\nfile = "bobb.xml"', 4, "'bobb.xml' does not exist"),
    "a folder as robot": ('[[entities]]\ntype = "mjcf"\nname = "r"\nfile = "."', 4, "is a directory"),
    "unknown body of a camera": ('[[cameras]]\nname = "c"\nbody = "zz"\npos = [1, 2, 3]', 3, "no body is named 'zz'"),
    "camera in its own target": ('[[cameras]]\nname = "c"\npos = [1, 2, 3]\nlookat = [1, 2, 3]', 1, "camera stands"),
    "unknown keyframe": ('[start]\nkeyframe = "home"', 2, "no keyframe is named 'home'"),
    "unknown joint": ("[start]\nqpos = { knee = 1.0 }", 2, "no joint is named 'knee'"),
    "unknown noise": ('[[start.noise]]\njoints = "knee"', 1, "no joint is named 'knee'"),
    "same name twice": (
        '[[entities]]\ntype = "plane"\nname = "a"\n[[entities]]\ntype = "plane"\nname = "a"',
        6,
        "two entity tables have the name 'a'",
    ),
    "both rotations": ('[[entities]]\ntype = "plane"\nquat = [1, 0, 0, 0]\neuler = [0, 0, 1]', 1, "quat or euler"),
    "no selection": ('[view]\nshown = "best:3"', 2, "no selection"),
}


@pytest.mark.parametrize("case", SINGLE)
def test_a_single_mistake_names_its_line(case: str, folder: Path) -> None:
    text, line, words = SINGLE[case]
    path = scene(folder, text)
    with pytest.raises(SceneError) as caught:
        load_scene(path)
    assert words in caught.value.what
    assert (caught.value.file, caught.value.line) == (str(path), line)


def test_a_wrong_override_is_an_option_error(folder: Path) -> None:
    with pytest.raises(OptionError, match="n_envs: 0 is wrong"):
        load_scene(folder / "bob.xml", {"n_envs": 0})


def test_every_key_of_a_toml_text_has_its_line() -> None:
    text = 'a = """\n[b]\nc = 1\n"""\nd = [\n  1,\n]\n[x.y]\nz = { w = 2 }\n[[e]]\n[[e.f]]\ng = 1\n[[e]]\n"h i" = 2\n'
    lines = key_lines(text)
    assert lines["a",] == 1
    assert ("b",) not in lines
    assert lines["d",] == 5
    assert lines["x", "y", "z"] == 9
    assert lines["x", "y", "z", "w"] == 9
    assert lines["e", 0, "f", 0, "g"] == 12
    assert lines["e", 1, "h i"] == 14


def test_a_scene_composes_robots_under_their_names(folder: Path) -> None:
    path = scene(
        folder,
        """n_envs = 8
[options]
timestep = 0.002
[[entities]]
type = "plane"
name = "floor"
[[entities]]
type = "mjcf"
name = "left"
file = "bob.xml"
pos = [0, 1, 0]
euler = [0, 0, 90]
[[entities]]
type = "mjcf"
name = "right"
file = "bob.xml"
pos = [0, -1, 0]
[[cameras]]
name = "eye"
body = "left/trunk"
pos = [1, 0, 0]
lookat = [0, 0, 0]
[start]
keyframe = "home"
""",
    )
    loaded = load_scene(path)
    b = loaded.bundle
    assert b.name == "scene"
    assert b.jnt_name == ["left/root", "left/hip", "right/root", "right/hip"]
    assert b.actuator_name == ["left/hip", "right/hip"]
    assert b.key_name == ["left/home", "right/home"]
    assert loaded.mj.opt.timestep == 0.002
    assert b.cameras[0].name == "eye"
    # The keyframe's pose is the robot's own (1, 2, 3), turned by 90 degrees and moved with its entity.
    np.testing.assert_allclose(loaded.start.qpos[:3], [-2, 1 + 1, 3], atol=1e-12)
    np.testing.assert_allclose(loaded.start.qpos[3:7], [np.sqrt(0.5), 0, 0, np.sqrt(0.5)], atol=1e-12)
    np.testing.assert_allclose(loaded.start.qpos[8:11], [1, 1, 3], atol=1e-12)
    assert loaded.start.ctrl.tolist() == [0.25, 0.25]
    np.testing.assert_allclose(b.geom_pos0[b.geom_name.index("left/shin")][2], 3 - 0.25 * np.cos(0.5), atol=1e-6)


def test_options_that_files_set_differently_are_told_once(folder: Path) -> None:
    (folder / "other.xml").write_text(ROBOT.replace("0.004", "0.01"))
    text = '[[entities]]\ntype = "mjcf"\nname = "a"\nfile = "bob.xml"\n'
    text += '[[entities]]\ntype = "mjcf"\nname = "b"\nfile = "other.xml"\n'
    loaded = load_scene(scene(folder, text))
    told = [w for w in loaded.warnings if "timestep" in w]
    assert len(told) == 1
    assert "0.004 of bob.xml is used, 0.01 of other.xml is not" in told[0]
    assert loaded.mj.opt.timestep == 0.004
    ruled = load_scene(scene(folder, text + "[options]\ntimestep = 0.003\n"))
    assert not [w for w in ruled.warnings if "timestep" in w]
    assert ruled.mj.opt.timestep == 0.003


def test_start_states_differ_by_environment_and_by_nothing_else(folder: Path) -> None:
    text = '[[entities]]\ntype = "mjcf"\nname = "a"\nfile = "bob.xml"\n[[start.noise]]\njoints = "a/hip"\n'
    text += 'qpos = 2.0\nqvel = 0.5\n[[start.noise]]\njoints = "a/root"\npos = [0.1, 0.2, 0]\nyaw = 90\ntilt = 10\n'
    loaded = load_scene(scene(folder, text))
    whole = loaded.start_states(64, seed=3)
    part = loaded.start_states(10, first_env=20, seed=3)
    for name, values in part.items():
        np.testing.assert_array_equal(values, whole[name][20:30])
    qpos = whole["qpos"]
    assert len(np.unique(qpos[:, 7])) > 32
    assert np.all(np.abs(qpos[:, 7]) <= np.pi / 2 + 1e-12), "clipped to the joint's range"
    assert np.abs(qpos[:, 0]).max() <= 0.1 < np.abs(qpos[:, 1]).max() <= 0.2
    assert np.ptp(qpos[:, 2]) == 0
    np.testing.assert_allclose(np.linalg.norm(qpos[:, 3:7], axis=1), 1.0, atol=1e-12)
    up = 1 - 2 * (qpos[:, 4] ** 2 + qpos[:, 5] ** 2)
    assert np.cos(np.radians(10)) - 1e-9 <= up.min() < 0.999
    assert not np.array_equal(whole["qpos"], loaded.start_states(64, seed=4)["qpos"])


def test_a_start_pose_can_be_given_by_joint(folder: Path) -> None:
    text = '[[entities]]\ntype = "box"\nname = "crate"\nsize = [1, 2, 3]\n'
    text += "[start]\nqpos = { crate = [1, 2, 3, 2, 0, 0, 0] }"
    loaded = load_scene(scene(folder, text))
    assert loaded.start.qpos.tolist() == [1, 2, 3, 1, 0, 0, 0]
    assert loaded.bundle.geom_pos0[0].tolist() == [1, 2, 3]
    assert loaded.bundle.geom_size[0].tolist() == [0.5, 1, 1.5]


def test_a_scene_given_as_data_means_the_same_as_the_file(folder: Path) -> None:
    path = scene(folder, '[[entities]]\ntype = "mjcf"\nname = "a"\nfile = "bob.xml"\n')
    loaded = load_scene(path)
    again = load_scene(SceneSpec.model_validate(loaded.spec.model_dump(exclude_unset=True)))
    assert again.bundle.body_name == loaded.bundle.body_name
    assert Path(loaded.spec.entities[0].file).is_absolute()


def test_overrides_reach_into_tables(folder: Path) -> None:
    path = scene(folder, "n_envs = 4\n[options]\ntimestep = 0.01\niterations = 7\n")
    spec = read_scene_file(path, {"n_envs": 9, "options": {"timestep": 0.02}})
    assert (spec.n_envs, spec.options.timestep, spec.options.iterations) == (9, 0.02, 7)


def test_the_schema_accepts_the_bundled_scenes_and_refuses_a_wrong_key() -> None:
    schema = scene_schema()
    for path in sorted(resources.scene_path("quadruped").parent.glob("*.toml")):
        jsonschema.validate(tomllib.loads(path.read_text()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"nam": "x"}, schema)


@pytest.mark.parametrize("key", ["n_envs", "seed"])
def test_true_is_no_number(key: str) -> None:
    with pytest.raises(OptionError):
        spec_from_dict({key: True})


def test_the_documented_example_is_valid() -> None:
    text = (Path(__file__).parents[2] / "docs" / "scene-files.md").read_text()
    example = text.split("```toml\n")[1].split("```")[0]
    spec = spec_from_dict(tomllib.loads(example))
    assert {e.type for e in spec.entities} >= {"plane", "mjcf", "urdf", "box", "sphere", "capsule", "cylinder", "mesh"}
    assert spec.start.noise[1].yaw == 180

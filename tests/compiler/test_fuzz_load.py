"""Mutated scene files: a scene or a SceneError, never anything else. The seeds are fixed."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest

import resources
from genesis_core.compiler.load import load_scene
from genesis_core.errors import GenesisError

WORDS = (
    *("nan", "inf", "-1", "0", "1e30", "1e300", "1e-320", "2147483648", "-2147483649", "0 0 0", "1 2 3 4 5 6 7 8 9"),
    *("", "x", "true", "hinge", "world", "%", "%n%s", "../..", "é"),
)
URDF = """<robot name="r"><material name="m"><color rgba="1 0 0 1"/></material>
<link name="a"><inertial><origin xyz="0 0 1" rpy="0 0 0"/><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><box size="1 1 1"/></geometry><material name="m"/></visual>
<collision><geometry><mesh filename="package://x/cube.obj" scale="1 1 1"/></geometry></collision></link>
<link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0 0 1"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="3" velocity="4"/><dynamics damping="1" friction="2"/></joint>
<joint name="k" type="fixed"><parent link="b"/><child link="c"/></joint><link name="c"/></robot>"""
TOML = """name = "t"
n_envs = 3
[options]
timestep = 0.01
integrator = "euler"
[[entities]]
type = "box"
name = "b"
size = [1, 1, 1]
euler = [0, 0, 90]
[[entities]]
type = "plane"
[start]
qpos = { b = [0, 0, 1, 1, 0, 0, 0] }
[[start.noise]]
joints = "b"
yaw = 10.0
"""


def mutate(rng: random.Random, text: str) -> str:
    """Text with one to three random changes to attributes, elements or characters."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        tags = list(re.finditer(r"<[a-zA-Z][^<>]*>", text)) or list(re.finditer(r"^.+$", text, re.MULTILINE))
        values = list(re.finditer(r'="([^"]*)"|(?<== )([^\n]+)', text))
        kind = rng.randrange(7)
        if kind < 3 and values:
            spot = rng.choice(values)
            group = 1 if spot.group(1) is not None else 2
            new = rng.choice((rng.choice(WORDS), rng.choice(values).group(group) or ""))
            text = text[: spot.start(group)] + new + text[spot.end(group) :]
        elif kind == 3 and tags:
            spot = rng.choice(tags)
            text = text[: spot.start()] + text[spot.end() :]
        elif kind == 4 and tags:
            spot = rng.choice(tags)
            text = text[: spot.start()] + rng.choice(tags).group() + text[spot.start() :]
        elif kind == 5 and text:
            k = rng.randrange(len(text))
            text = text[:k] + chr(rng.randrange(1, 256)) + text[k + 1 :]
        elif text:
            text = text[: rng.randrange(len(text))]
    return text


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("fuzz")
    out = []
    for name in ("quadruped", "hand", "arm", "playground"):
        source = resources.scene_path("quadruped").parents[1] / "models" / name
        for file in source.glob("*.xml"):
            out.append(Path(shutil.copy(file, folder / file.name)))
    (folder / "robot.urdf").write_text(URDF)
    (folder / "scene.toml").write_text(TOML)
    return [*out, folder / "robot.urdf", folder / "robot.urdf", folder / "scene.toml", folder / "scene.toml"]


@pytest.mark.parametrize("block", range(10))
def test_a_mutated_file_gives_a_scene_or_a_scene_error(block: int, bases: list[Path]) -> None:
    loaded = 0
    for seed in range(20 * block, 20 * block + 20):
        rng = random.Random(seed)
        base = rng.choice(bases)
        path = base.with_name(f"mutated{base.suffix}")
        path.write_text(mutate(rng, base.read_text()), encoding="utf-8", errors="replace")
        try:
            load_scene(path)
            loaded += 1
        except GenesisError as error:
            assert str(error), f"seed {seed}: an error without words"
    assert loaded < 20, "no mutation did anything: the test is blind"

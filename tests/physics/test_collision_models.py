"""Contacts of whole models, stepped by MuJoCo into contact, against MuJoCo's."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from collision_rig import Contacts, Rig, mujoco_pose

from genesis_core.compiler.load import load_scene
from genesis_core.compiler.lower_collision import candidates, pair_kinds

pytestmark = pytest.mark.parity

SCENES = Path(__file__).parents[2] / "resources" / "scenes"


def stepped(mj: mujoco.MjModel, count: int, steps: int, seed: int = 0) -> list:
    """`count` states along random motions."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(mj)
    found = []
    for k in range(count):
        if k % 4 == 0:
            mujoco.mj_resetData(mj, data)
            if mj.nkey and k % 8 == 0:
                mujoco.mj_resetDataKeyframe(mj, data, 0)
            data.qvel[:] = rng.normal(size=mj.nv) * 0.5
        for _ in range(steps):
            data.ctrl[:] = rng.normal(size=mj.nu) * 0.3
            mujoco.mj_step(mj, data)
        found.append(mujoco_pose(mj, data))
    return found


def simulated(mj: mujoco.MjModel, contacts: Contacts) -> Contacts:
    """Without contacts of pairs that this program leaves out (and names in `unsupported`)."""
    pairs = candidates(mj)
    pairs = pairs.where(pair_kinds(mj, pairs) >= 0)
    known = set(zip(pairs.geom1.tolist(), pairs.geom2.tolist(), strict=True))
    keep = np.array([tuple(g) in known for g in contacts.geoms.tolist()], bool)
    return Contacts(contacts.geoms[keep], contacts.dist[keep], contacts.pos[keep], contacts.frame[keep])


def check(mj: mujoco.MjModel, least: int) -> None:
    total = 0
    for k, (found, expected) in enumerate(Rig(mj).run(stepped(mj, 40, 50))):
        expected = simulated(mj, expected)
        assert found.geoms.tolist() == expected.geoms.tolist(), f"state {k}"
        assert found.error(expected) < 1e-9, f"state {k}"
        total += len(found)
    assert total >= least


@pytest.mark.parametrize(
    ("scene", "least"),
    [
        ("arm-table", 300),
        ("quadruped", 40),
        ("humanoid", 20),
        ("hand-cube", 40),
        ("box-wall", 5000),
        ("playground", 100),
    ],
)
def test_contacts_of_the_bundled_scenes_are_mujocos(scene, least):
    check(load_scene(SCENES / f"{scene}.toml").model.mj, least)


@pytest.mark.parametrize("name", ["ant", "half_cheetah", "hopper", "humanoid", "pusher", "walker2d_v5"])
def test_contacts_of_gymnasiums_models_are_mujocos(name):
    gymnasium = pytest.importorskip("gymnasium")
    path = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets" / f"{name}.xml"
    check(mujoco.MjModel.from_xml_path(str(path)), 10)


@pytest.mark.parametrize("name", ["cheetah", "dog", "humanoid_CMU", "manipulator", "quadruped", "stacker", "walker"])
def test_contacts_of_the_control_suites_models_are_mujocos(name):
    suite = pytest.importorskip("dm_control.suite")
    common = pytest.importorskip("dm_control.suite.common")
    text = (Path(suite.__file__).parent / f"{name}.xml").read_bytes()
    assets = dict(common.ASSETS)
    assets |= {
        p.name: p.read_bytes() for p in (Path(suite.__file__).parent / f"{name}_assets").glob("*") if p.is_file()
    }
    check(mujoco.MjModel.from_xml_string(text.decode(), assets), 10)

"""Robot files that people have: all of them open."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import mujoco
import numpy as np
import pytest
from models import model_names, model_path

from genesis_core.compiler.load import load_scene
from genesis_core.errors import SceneError

pytestmark = pytest.mark.slow


def package_files(package: str) -> list[str]:
    """All XML files that an installed package ships."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return []
    root = Path(next(iter(spec.submodule_search_locations)))
    return [str(p.relative_to(root.parent)) for p in sorted(root.rglob("*.xml"))]


def package_path(name: str) -> Path:
    package = name.split("/")[0]
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations))).parent / name


@pytest.mark.parametrize("name", model_names(".xml", ".urdf") or ["none"])
def test_a_robot_file_opens(name: str) -> None:
    loaded = load_scene(model_path(name))
    assert loaded.mj.nbody > 1
    assert np.isfinite(loaded.start.qpos).all()
    data = mujoco.MjData(loaded.mj)
    data.qpos[:] = loaded.start.qpos
    mujoco.mj_forward(loaded.mj, data)
    assert np.isfinite(data.qacc).all()
    if name.endswith(".urdf"):
        assert (loaded.bundle.geom_group == 2).any(), "visual shapes are there"
        own = [c for c in data.contact if loaded.mj.geom_bodyid[[c.geom1, c.geom2]].all() and c.dist < -2e-3]
        assert not own, "no robot starts with its links inside of each other"


@pytest.mark.parametrize("name", package_files("gymnasium") + package_files("dm_control"))
def test_a_file_that_mujoco_opens_opens_here_with_the_same_model(name: str) -> None:
    path = package_path(name)
    try:
        reference = mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        with pytest.raises(SceneError) as caught:
            load_scene(path)
        assert caught.value.line is not None
        return
    mj = load_scene(path).mj
    for field in (
        "body_mass",
        "body_inertia",
        "body_pos",
        "geom_size",
        "qpos0",
        "actuator_gear",
        "key_qpos",
        "geom_pos",
    ):
        np.testing.assert_array_equal(getattr(mj, field), getattr(reference, field))
    assert mj.opt.timestep == reference.opt.timestep


def test_an_authored_inertia_of_a_robot_file_is_kept() -> None:
    """Valid links of a URDF keep mass and inertia to the last digit that matters."""
    path = model_path("go2/urdf/go2.urdf")
    loaded = load_scene(path)
    reference = mujoco.MjSpec.from_file(str(path))
    reference.compiler.fusestatic = False
    reference.compiler.discardvisual = True
    for geom in list(reference.geoms):
        if geom.type == mujoco.mjtGeom.mjGEOM_MESH:
            reference.delete(geom)
    for mesh in list(reference.meshes):
        reference.delete(mesh)
    expected = reference.compile()
    for name in ("FL_hip", "FL_thigh", "FL_calf", "RR_foot"):
        a, b = loaded.mj.body(name), expected.body(name)
        np.testing.assert_allclose(a.mass, b.mass, rtol=1e-12)
        np.testing.assert_allclose(np.sort(a.inertia), np.sort(b.inertia), rtol=1e-9)
        np.testing.assert_allclose(a.ipos, b.ipos, atol=1e-12)
    assert not [w for w in loaded.warnings if "inertia" in w]

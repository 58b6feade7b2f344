"""Scenes put together in Python: primitives, meshes and files by `compose`, as `gs.Scene` does it."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
import trimesh
from pydantic import ValidationError

from genesis_core.compiler.compose import EntitySpec, OptionsSpec, compose
from genesis_core.compiler.load import load_scene
from genesis_core.errors import SceneError

ROBOT = (
    '<mujoco><worldbody><geom name="ground" type="plane" size="1 1 1"/><light name="l" pos="0 0 3"/>'
    '<body name="b"><freejoint/><geom size="1"/></body></worldbody></mujoco>'
)


def model(*entities: dict, **options: object) -> mujoco.MjModel:
    return compose([EntitySpec(**e) for e in entities], OptionsSpec(**options)).compile()


def test_primitives_have_the_sizes_that_are_written() -> None:
    mj = model(
        {"type": "box", "name": "b", "size": (1, 2, 3), "mass": 6},
        {"type": "sphere", "name": "s", "radius": 0.5, "pos": (0, 0, 5)},
        {"type": "cylinder", "name": "c", "radius": 0.5, "height": 2, "density": 100},
        {"type": "capsule", "name": "p", "radius": 0.5, "height": 2},
        {"type": "ellipsoid", "name": "e", "size": (1, 2, 3)},
    )
    assert [mj.geom(n).size.tolist() for n in "bscpe"] == [
        [0.5, 1, 1.5],
        [0.5, 0, 0],
        [0.5, 1, 0],
        [0.5, 1, 0],
        [1, 2, 3],
    ]
    assert mj.body("b").mass[0] == pytest.approx(6)
    assert mj.body("c").mass[0] == pytest.approx(100 * np.pi * 0.25 * 2)
    assert mj.njnt == 5
    assert mj.qpos0[mj.joint("s").qposadr[0] :][:3].tolist() == [0, 0, 5]


def test_fixed_things_are_part_of_the_world() -> None:
    mj = model({"type": "box", "name": "b", "size": (1, 1, 1), "fixed": True, "euler": (0, 0, 90)})
    assert mj.nv == 0
    np.testing.assert_allclose(mj.body("b").quat, [np.sqrt(0.5), 0, 0, np.sqrt(0.5)])


def test_euler_angles_turn_about_fixed_axes_in_degrees() -> None:
    mj = model({"type": "box", "name": "b", "size": (1, 1, 1), "euler": (90, 0, 90)})
    rotation = np.zeros(9)
    mujoco.mju_quat2Mat(rotation, mj.body("b").quat)
    # First about x: z goes to -y; then about the world's z: -y goes to x.
    np.testing.assert_allclose(rotation.reshape(3, 3) @ [0, 0, 1], [1, 0, 0], atol=1e-12)


def test_contact_settings_and_looks_reach_the_geom() -> None:
    mj = model(
        {
            "type": "box",
            "name": "b",
            "size": (1, 1, 1),
            "friction": 0.3,
            "condim": 4,
            "solref": (0.01, 1),
            "rgba": (1, 0, 0),
            "material": {"specular": 0.9, "roughness": 0.2},
        }
    )
    geom = mj.geom("b")
    assert geom.friction.tolist() == [0.3, 0.005, 0.0001]
    assert (geom.condim[0], geom.solref.tolist(), geom.rgba.tolist()) == (4, [0.01, 1], [1, 0, 0, 1])
    assert mj.material("b").specular[0] == pytest.approx(0.9)


def test_a_plane_looks_like_something_and_the_scene_has_light_and_sky() -> None:
    mj = model({"type": "plane", "name": "floor"})
    assert mj.geom("floor").type[0] == mujoco.mjtGeom.mjGEOM_PLANE
    assert mj.ntex == 2
    assert mj.nlight == 1


def test_a_file_keeps_its_light_and_gets_no_second_one() -> None:
    mj = model({"type": "mjcf", "name": "r", "text": ROBOT})
    assert [mj.light(i).name for i in range(mj.nlight)] == ["r/l"]
    dark = model({"type": "mjcf", "name": "r", "text": ROBOT, "keep_lights": False, "keep_ground": False})
    assert [dark.light(i).name for i in range(dark.nlight)] == ["sun"]
    assert dark.ngeom == 1


def test_unnamed_entities_get_names_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "bob.xml").write_text(ROBOT)
    composed = compose(
        [EntitySpec(type="mjcf", file="bob.xml"), EntitySpec(type="mjcf", file="bob.xml")], None, tmp_path
    )
    assert [p.name for p in composed.parts] == ["bob", "bob2"]
    assert composed.compile().body("bob2/b").id == 2


def test_bases_are_fixed_or_freed_as_asked() -> None:
    still = '<mujoco><worldbody><body name="b"><geom size="1"/></body></worldbody></mujoco>'
    assert model({"type": "mjcf", "text": ROBOT}).nv == 6
    assert model({"type": "mjcf", "text": ROBOT, "fixed": True}).nv == 0
    assert model({"type": "mjcf", "text": still}).nv == 0
    assert model({"type": "mjcf", "text": still, "fixed": False}).nv == 6


def test_keyframes_of_a_fixed_base_lose_its_coordinates() -> None:
    text = ROBOT.replace("</worldbody>", "</worldbody><keyframe><key name='k' qpos='1 2 3 1 0 0 0 0.5'/></keyframe>")
    text = text.replace('<geom size="1"/></body>', '<geom size="1"/><body><joint/><geom size="1"/></body></body>')
    mj = model({"type": "mjcf", "name": "r", "text": text, "fixed": True})
    assert mj.key_qpos.tolist() == [[0.5]]


def test_keyframes_of_a_freed_base_get_its_coordinates() -> None:
    text = """<mujoco><worldbody><body name="a" pos="0 0 1"><geom size="1"/><body><joint/><geom size="1"/></body></body>
<body name="b"><joint type="slide"/><geom size="1"/></body></worldbody>
<keyframe><key qpos="0.5 0.25" qvel="1 2"/></keyframe></mujoco>"""
    mj = model({"type": "mjcf", "name": "r", "text": text, "fixed": False})
    assert mj.key_qpos.tolist() == [[0, 0, 1, 1, 0, 0, 0, 0.5, 0.25]]
    assert mj.key_qvel.tolist() == [[0, 0, 0, 0, 0, 0, 1, 2]]


def test_options_rule_over_files() -> None:
    text = ROBOT.replace(
        "<worldbody>", '<option timestep="0.01" integrator="RK4"><flag contact="disable"/></option><worldbody>', 1
    )
    mj = model({"type": "mjcf", "text": text})
    assert (mj.opt.timestep, mj.opt.integrator) == (0.01, mujoco.mjtIntegrator.mjINT_RK4)
    assert mj.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CONTACT
    mj = model({"type": "mjcf", "text": text}, integrator="implicitfast", flags={"contact": True, "energy": True})
    assert (mj.opt.timestep, mj.opt.integrator) == (0.01, mujoco.mjtIntegrator.mjINT_IMPLICITFAST)
    assert not mj.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CONTACT
    assert mj.opt.enableflags & mujoco.mjtEnableBit.mjENBL_ENERGY


def test_a_scaled_mjcf_has_scaled_lengths_masses_and_keyframes() -> None:
    text = """<mujoco><worldbody><body name="a" pos="0 0 1"><freejoint/><geom size=".1"/>
<body name="b" pos="1 0 0"><joint type="slide" range="-1 1"/><inertial pos="0 0 1" mass="2" diaginertia="1 1 1"/>
<geom type="capsule" fromto="0 0 0 1 0 0" size=".1"/><site name="s" pos="0 1 0"/></body></body></worldbody>
<equality><connect body1="a" body2="b" anchor="1 2 3"/></equality>
<keyframe><key qpos="1 2 3 1 0 0 0 0.5"/></keyframe></mujoco>"""
    one, two = (model({"type": "mjcf", "name": "r", "text": text, "scale": s}) for s in (1.0, 2.0))
    for field in ("body_pos", "body_ipos", "geom_pos", "geom_size", "site_pos", "qpos0"):
        a, b = getattr(one, field).copy(), getattr(two, field).copy()
        if field == "qpos0":
            a, b = a[:3], b[:3]
        np.testing.assert_allclose(b, 2 * a, atol=1e-12)
    np.testing.assert_allclose(two.body_mass, 8 * one.body_mass)
    np.testing.assert_allclose(two.body_inertia, 32 * one.body_inertia)
    np.testing.assert_allclose(two.jnt_range[1], [-2, 2])
    np.testing.assert_allclose(two.eq_data[0, :6], 2 * one.eq_data[0, :6])
    np.testing.assert_allclose(two.key_qpos[0], [2, 4, 6, 1, 0, 0, 0, 1])


@pytest.mark.parametrize("suffix", ["obj", "stl", "ply", "glb", "dae"])
def test_a_mesh_of_any_kind_falls_on_a_floor(suffix: str, tmp_path: Path) -> None:
    mesh = trimesh.creation.box((0.2, 0.4, 0.6))
    path = tmp_path / f"brick.{suffix}"
    mesh.export(path)
    loaded = load_scene(path)
    assert (loaded.mj.nv, loaded.mj.ngeom) == (6, 3)
    size = np.ptp(loaded.bundle.meshes[-1].vertices, axis=0)
    np.testing.assert_allclose(np.sort(size), [0.2, 0.4, 0.6], rtol=1e-5)
    assert loaded.mj.body("brick").mass[0] == pytest.approx(1000 * 0.2 * 0.4 * 0.6, rel=1e-4)


@pytest.mark.parametrize("suffix", ["obj", "stl", "text.stl", "ply", "glb", "dae"])
def test_an_mjcf_file_may_name_meshes_of_any_kind(suffix: str, tmp_path: Path) -> None:
    mesh = trimesh.creation.box((0.2, 0.4, 0.6))
    (tmp_path / "assets").mkdir()
    path = tmp_path / "assets" / f"brick.{suffix}"
    if suffix == "text.stl":
        path.write_text(mesh.export(file_type="stl_ascii"))
    else:
        mesh.export(path)
    (tmp_path / "r.xml").write_text(
        f'<mujoco><compiler meshdir="assets"/><asset><mesh name="m" file="{path.name}" scale="1 1 2"/></asset>'
        '<worldbody><body><joint/><geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    loaded = load_scene(tmp_path / "r.xml")
    np.testing.assert_allclose(np.sort(np.ptp(loaded.bundle.meshes[0].vertices, axis=0)), [0.2, 0.4, 1.2], rtol=1e-5)
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(SceneError) as caught:
        load_scene(tmp_path / "r.xml")
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "r.xml"), 1)


def test_a_gltf_mesh_is_turned_upright(tmp_path: Path) -> None:
    trimesh.creation.box((0.2, 0.4, 0.6)).export(tmp_path / "b.glb")
    entity = EntitySpec(type="mesh", name="b", file="b.glb", fixed=True)
    mj = compose([entity], None, tmp_path).compile()
    data = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, data)
    box = data.geom_xmat[1].reshape(3, 3) @ mj.mesh_vert[mj.mesh_vertadr[mj.geom_dataid[1]] :][:8].T
    np.testing.assert_allclose(np.ptp(box, axis=1), [0.2, 0.6, 0.4], rtol=1e-5)


def test_a_flat_mesh_touches_as_a_thin_box(tmp_path: Path) -> None:
    (tmp_path / "flat.obj").write_text("v 0 0 1\nv 2 0 1\nv 2 1 1\nv 0 1 1\nf 1 2 3\nf 1 3 4\n")
    loaded = load_scene(tmp_path / "flat.obj")
    geom = loaded.mj.geom("flat")
    assert geom.type[0] == mujoco.mjtGeom.mjGEOM_BOX
    np.testing.assert_allclose(geom.pos, [1, 0.5, 1], atol=1e-9)
    assert any("flat" in w and "thin box" in w for w in loaded.warnings)


def test_wrong_entities_are_refused_with_the_reason() -> None:
    for bad, words in (
        ({"type": "box"}, "needs the key 'size'"),
        ({"type": "box", "size": (1, 1, 1), "radius": 1}, "no key 'radius'"),
        ({"type": "box", "size": (1, 1)}, "has 3 numbers"),
        ({"type": "box", "size": (1, 1, 0)}, "must be positive"),
        ({"type": "mjcf"}, "either file or text"),
        ({"type": "box", "size": (1, 1, 1), "mass": 1, "density": 1}, "mass or density"),
        ({"type": "sphere", "radius": float("inf")}, "finite"),
        ({"type": "plane", "quat": (0, 0, 0, 0)}, "no rotation"),
    ):
        with pytest.raises(ValidationError, match=words):
            EntitySpec(**bad)
    with pytest.raises(SceneError, match="two entities have the name 'a'"):
        model({"type": "plane", "name": "a"}, {"type": "plane", "name": "a"})


def test_loading_the_package_loads_no_heavy_library() -> None:
    import subprocess
    import sys

    heavy = {"mujoco", "trimesh", "pydantic", "numba", "torch"}
    code = f"import sys, genesis_core; print(sorted({heavy} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"

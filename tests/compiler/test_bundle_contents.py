"""The scene bundle: shapes where MuJoCo has them, colours as it draws them, poses of the initial state."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
import trimesh
from models import model_path

from genesis_core.compiler.bundle import build_bundle, colour_channels
from genesis_core.compiler.load import load_scene
from genesis_core.layout.scene import SceneBundle, decode, encode, initial_rows

TETRA = "v 1 0 0\nv 2 0 0\nv 1 1 0\nv 1 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"

MESH_SCENE = """<mujoco><asset><mesh name="m" file="m.obj"/></asset>
<worldbody><geom type="mesh" mesh="m"/></worldbody></mujoco>"""


def bundle_of(xml: str, assets: dict[str, bytes] | None = None) -> tuple[SceneBundle, mujoco.MjModel]:
    mj = mujoco.MjModel.from_xml_string(xml, assets or {})
    return build_bundle(mj), mj


def test_a_mesh_stands_where_its_file_puts_it_though_mujoco_moves_it() -> None:
    b, _ = bundle_of(MESH_SCENE, {"m.obj": TETRA.encode()})
    mesh = b.meshes[b.geom_dataid[0]]
    points = mesh.vertices @ b.geom_xmat0[0].T + b.geom_pos0[0]
    expected = {(1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1)}
    assert {tuple(p) for p in np.round(points, 5).tolist()} == expected


def test_faces_point_outwards_and_normals_are_unit_and_split_at_edges() -> None:
    b, _ = bundle_of(MESH_SCENE, {"m.obj": TETRA.encode()})
    mesh = b.meshes[0]
    corners = mesh.vertices[mesh.faces]
    flat = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    outward = corners.mean(axis=1) - mesh.vertices.mean(axis=0)
    assert np.all(np.einsum("ij,ij->i", flat, outward) > 0)
    np.testing.assert_allclose(np.linalg.norm(mesh.normals, axis=1), 1, atol=1e-6)
    for k in range(3):
        assert np.all(np.einsum("ij,ij->i", mesh.normals[mesh.faces[:, k]], flat) > 0.9), "sharp edges stay sharp"


def test_a_round_mesh_stays_smooth() -> None:
    ball = trimesh.creation.icosphere(subdivisions=3)
    b, _ = bundle_of(MESH_SCENE, {"m.obj": trimesh.exchange.obj.export_obj(ball, include_normals=False).encode()})
    mesh = b.meshes[0]
    assert len(mesh.vertices) == len(ball.vertices)
    outward = mesh.vertices / np.linalg.norm(mesh.vertices, axis=1, keepdims=True)
    assert np.einsum("ij,ij->i", mesh.normals, outward).min() > 0.99


def test_copies_of_a_mesh_are_stored_once(tmp_path: Path) -> None:
    (tmp_path / "m.obj").write_text(TETRA)
    (tmp_path / "r.xml").write_text(
        '<mujoco><asset><mesh name="m" file="m.obj"/></asset><worldbody><body><geom type="mesh" mesh="m"/></body>'
        "</worldbody></mujoco>"
    )
    entities = [{"type": "mjcf", "name": f"r{k}", "file": str(tmp_path / "r.xml"), "pos": [k, 0, 0]} for k in range(5)]
    (tmp_path / "s.toml").write_text("# five copies\n")
    b = load_scene(tmp_path / "s.toml", {"entities": entities}).bundle
    assert b.ngeom == 5
    assert len(b.meshes) == 1
    assert b.geom_dataid.tolist() == [0] * 5


def test_height_fields_are_surfaces_over_their_area() -> None:
    xml = """<mujoco><asset><hfield name="h" nrow="2" ncol="3" size="2 1 5 1" elevation="0 0 0  0 1 0"/></asset>
<worldbody><geom type="hfield" hfield="h" pos="0 0 1"/></worldbody></mujoco>"""
    b, _ = bundle_of(xml)
    mesh = b.meshes[b.geom_dataid[0]]
    np.testing.assert_allclose(np.ptp(mesh.vertices, axis=0), [4, 2, 5])
    top = mesh.vertices[np.argmax(mesh.vertices[:, 2])]
    assert top[0] == 0
    corners = mesh.vertices[mesh.faces]
    assert np.all(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])[:, 2] > 0)
    assert np.all(mesh.normals[:, 2] > 0)


def test_colours_follow_mujocos_rule() -> None:
    xml = """<mujoco><asset><material name="red" rgba="1 0 0 1"/></asset><worldbody>
<geom size="1"/><geom size="1" material="red"/><geom size="1" material="red" rgba="0 1 0 0.5"/></worldbody></mujoco>"""
    b, _ = bundle_of(xml)
    assert b.geom_rgba.tolist() == [[0.5, 0.5, 0.5, 1], [1, 0, 0, 1], [0, 1, 0, 0.5]]


def test_textures_of_all_kinds_come_with_three_or_four_channels() -> None:
    xml = """<mujoco><asset><texture type="skybox" builtin="gradient" rgb1="1 0 0" rgb2="0 0 1" width="8" height="48"/>
<texture name="c" type="cube" builtin="flat" rgb1="0 1 0" width="4" height="4"/>
<texture name="t" type="2d" builtin="checker" rgb1="1 1 1" rgb2="0 0 0" width="8" height="8"/>
<texture name="unused" type="2d" builtin="flat" width="8" height="8"/>
<material name="a" texture="c"/><material name="b" texture="t" texrepeat="3 4" texuniform="true"/></asset>
<worldbody><geom size="1" material="a"/><geom size="1" material="b"/></worldbody></mujoco>"""
    b, _ = bundle_of(xml)
    assert sorted(t.kind for t in b.textures) == ["2d", "cube", "skybox"]
    by_name = {m.name: m for m in b.materials}
    cube = b.textures[by_name["a"].texture]
    assert (cube.kind, cube.data.shape) == ("cube", (24, 4, 3))
    assert cube.data[0, 0].tolist() == [0, 255, 0]
    assert (by_name["b"].texrepeat, by_name["b"].texuniform) == ((3.0, 4.0), True)


@pytest.mark.parametrize(("channels", "expected"), [(1, 3), (2, 4), (3, 3), (4, 4), (5, 4)])
def test_any_number_of_channels_is_repaired(channels: int, expected: int) -> None:
    image = np.arange(channels, dtype=np.uint8)[None, None].repeat(2, 0)
    out = colour_channels(image)
    assert out.shape == (2, 1, expected)
    if channels == 2:
        assert out[0, 0].tolist() == [0, 0, 0, 1]


def test_poses_are_those_of_the_start_state(tmp_path: Path) -> None:
    (tmp_path / "r.xml").write_text(
        '<mujoco><worldbody><body><joint name="j" type="slide" axis="1 0 0"/><geom size="1"/></body></worldbody>'
        '<keyframe><key name="home" qpos="3"/></keyframe></mujoco>'
    )
    plain = load_scene(tmp_path / "r.xml").bundle
    home = load_scene(tmp_path / "r.xml", {"start": {"keyframe": "home"}}).bundle
    assert plain.geom_pos0[0, 0] == 0
    assert home.geom_pos0[0, 0] == 3
    assert initial_rows(home)[0].tolist() == [1, 0, 0, 3, 0, 1, 0, 0, 0, 0, 1, 0]


def test_the_size_of_a_scene_ignores_the_ground_and_far_things() -> None:
    ground = '<geom type="plane" size="50 50 1"/><geom type="box" size="100 100 1" pos="0 0 -1"/>'
    robot = '<body pos="0 0 1"><freejoint/><geom type="box" size=".5 .2 .1"/></body>'
    far = '<geom size="1" pos="0 0 500"/>'
    alone, _ = bundle_of(f"<mujoco><worldbody>{robot}</worldbody></mujoco>")
    among, _ = bundle_of(f"<mujoco><worldbody>{ground}{robot}{far}</worldbody></mujoco>")
    assert among.stat_extent == alone.stat_extent == pytest.approx(1.0)
    assert among.stat_center == pytest.approx((0, 0, 1))
    table = '<geom type="box" size=".4 .4 .3" pos="0.2 0 .3"/>'
    beside, _ = bundle_of(f"<mujoco><worldbody>{ground}{robot}{table}</worldbody></mujoco>")
    assert beside.stat_center == pytest.approx(((0.6 - 0.5) / 2, 0, 0.55))


def test_an_empty_scene_has_a_size() -> None:
    b, _ = bundle_of("<mujoco/>")
    assert (b.ngeom, b.stat_extent) == (0, 1.0)


def test_mocap_bodies_count_as_moving() -> None:
    b, _ = bundle_of(
        '<mujoco><worldbody><body mocap="true"><geom size="1"/><body><geom size="1"/></body></body>'
        '<body><geom size="1"/></body></worldbody></mujoco>'
    )
    assert b.body_weldid.tolist() == [0, 1, 1, 0]


def test_cameras_and_lights_that_follow_bodies_keep_their_meaning() -> None:
    b, mj = bundle_of(
        """<mujoco><worldbody><body name="b" pos="0 0 1" euler="0 0 90"><freejoint/><geom size=".1"/>
<camera name="track" mode="trackcom" pos="1 0 0"/><camera name="fixed" pos="1 0 0"/>
<light name="lamp" mode="targetbodycom" target="b" pos="0 0 3"/><light name="own" pos="0 0 3"/></body>
<camera name="aim" mode="targetbody" target="b" pos="5 0 0"/></worldbody></mujoco>"""
    )
    cameras = {c.name: c for c in b.cameras}
    assert (cameras["fixed"].mode, cameras["fixed"].pos) == ("fixed", (1, 0, 0))
    assert cameras["track"].mode == "track"
    np.testing.assert_allclose(cameras["track"].pos, [0, 1, 0], atol=1e-9)
    assert (cameras["aim"].mode, cameras["aim"].target) == ("target", 1)
    lights = {light.name: light for light in b.lights}
    assert lights["lamp"].body == 0
    np.testing.assert_allclose(lights["lamp"].pos, [0, 0, 4], atol=1e-9)
    np.testing.assert_allclose(lights["lamp"].dir, [0, 0, -1], atol=1e-9)
    assert lights["own"].body == 1
    assert mj.nlight == 2


def test_geoms_that_can_touch_are_told_from_those_that_cannot() -> None:
    b, _ = bundle_of(
        """<mujoco><worldbody><geom name="a" size="1"/><geom name="b" size="1" contype="0" conaffinity="0"/>
<body><joint/><geom name="c" size="1" contype="0" conaffinity="0"/></body></worldbody>
<contact><pair geom1="a" geom2="c"/></contact></mujoco>"""
    )
    assert b.geom_collides.tolist() == [True, False, True]


def test_unnamed_actuators_are_called_after_their_joint() -> None:
    b, _ = bundle_of(
        '<mujoco><worldbody><body><joint name="hip"/><geom size="1"/></body></worldbody>'
        '<actuator><motor joint="hip"/><motor name="m" joint="hip" ctrlrange="-1 2"/></actuator></mujoco>'
    )
    assert b.actuator_name == ["hip", "m"]
    assert b.actuator_ctrllimited.tolist() == [False, True]
    assert b.actuator_ctrlrange[1].tolist() == [-1, 2]


def test_a_bundle_survives_the_way_between_processes() -> None:
    bundle = load_scene(model_path("franka_emika_panda/scene.xml")).bundle
    copy = decode(encode(bundle), SceneBundle)
    assert copy.body_name == bundle.body_name
    assert len(copy.meshes) == len(bundle.meshes) > 10
    np.testing.assert_array_equal(copy.meshes[3].faces, bundle.meshes[3].faces)
    np.testing.assert_array_equal(copy.geom_xmat0, bundle.geom_xmat0)
    assert copy.unsupported == bundle.unsupported


def test_every_bundled_index_is_in_range() -> None:
    b = load_scene(model_path("anymal_c/urdf/anymal_c.urdf")).bundle
    assert b.geom_dataid.max() < len(b.meshes)
    assert b.geom_matid.max() < len(b.materials)
    assert all(m.texture < len(b.textures) for m in b.materials)
    assert all(m.faces.max() < len(m.vertices) for m in b.meshes)
    assert b.geom_bodyid.max() < b.nbody

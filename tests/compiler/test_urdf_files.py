"""URDF as found in the wild: what is read, repaired, left out and said."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from PIL import Image

from genesis_core.compiler.load import LoadedScene, load_scene
from genesis_core.errors import SceneError

CUBE = "".join(f"v {x} {y} {z}\n" for x in (0, 1) for y in (0, 1) for z in (0, 1))
CUBE += "f 1 2 4\nf 1 4 3\nf 5 7 8\nf 5 8 6\nf 1 5 6\nf 1 6 2\nf 3 4 8\nf 3 8 7\nf 1 3 7\nf 1 7 5\nf 2 6 8\nf 2 8 4\n"
INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
BALL = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'


def robot(*links: str, joints: str = "", extra: str = "") -> str:
    """A robot of links a, b, c ...; each next one hangs on the one before by a hinge."""
    names = "abcdefgh"
    text = '<robot name="r">\n'
    for k, inner in enumerate(links):
        text += f'<link name="{names[k]}">{inner}</link>\n'
        if k and not joints:
            text += f'<joint name="{names[k]}_joint" type="continuous"><parent link="{names[k - 1]}"/>'
            text += f'<child link="{names[k]}"/><origin xyz="0 0 1"/></joint>\n'
    return text + joints + extra + "</robot>"


def load(folder: Path, text: str, **entity: object) -> LoadedScene:
    """The scene of one URDF entity, without a floor."""
    (folder / "r.urdf").write_text(text)
    (folder / "scene.toml").write_text("# entities are given below\n")
    item = {"type": "urdf", "name": "r", "file": "r.urdf", "prefix": "", **entity}
    return load_scene(folder / "scene.toml", {"entities": [item]})


def said(loaded: LoadedScene, *words: str) -> bool:
    return any(all(w in text for w in words) for text in loaded.warnings)


def test_frames_limits_and_dynamics_are_read_as_written(tmp_path: Path) -> None:
    joints = """<joint name="j" type="revolute"><parent link="a"/><child link="b"/>
<origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/><axis xyz="0 2 0"/>
<limit lower="-0.5" upper="1.5" effort="7" velocity="3"/><dynamics damping="0.4" friction="0.2"/></joint>"""
    mj = load(tmp_path, robot(INERTIAL, INERTIAL, joints=joints), fixed=True).mj
    body, joint = mj.body("b"), mj.joint("j")
    np.testing.assert_allclose(body.pos, [1, 2, 3])
    np.testing.assert_allclose(body.quat, [np.sqrt(0.5), 0, 0, np.sqrt(0.5)])
    np.testing.assert_allclose(joint.axis, [0, 1, 0])
    np.testing.assert_allclose(joint.range, [-0.5, 1.5])
    dof = joint.dofadr[0]
    assert (mj.dof_damping[dof], mj.dof_frictionloss[dof]) == (0.4, 0.2)
    assert mj.jnt_actfrcrange[joint.id].tolist() == [-7, 7]


def test_a_single_chain_is_fixed_and_several_legs_float(tmp_path: Path) -> None:
    arm = load(tmp_path, robot(INERTIAL, INERTIAL + BALL))
    assert arm.mj.nv == 1
    assert said(arm, "base 'a' is fixed to the world", "one chain")
    legs = '<joint name="1" type="continuous"><parent link="a"/><child link="b"/></joint>'
    legs += '<joint name="2" type="continuous"><parent link="a"/><child link="c"/></joint>'
    walker = load(tmp_path, robot(INERTIAL, INERTIAL + BALL, INERTIAL, joints=legs))
    assert walker.mj.nv == 8
    assert said(walker, "base 'a' is floating", "2 chains")
    assert load(tmp_path, robot(INERTIAL, INERTIAL), fixed=False).mj.nv == 7


def test_a_floating_robot_stands_on_the_ground(tmp_path: Path) -> None:
    body = INERTIAL + '<collision><origin xyz="0 0 -0.7"/><geometry><box size="1 1 0.6"/></geometry></collision>'
    loaded = load(tmp_path, robot(body), fixed=False)
    assert loaded.mj.qpos0[2] == pytest.approx(1.0)
    placed = load(tmp_path, robot(body), fixed=False, pos=[0, 0, 5])
    assert placed.mj.qpos0[2] == 5.0


def test_an_opened_robot_file_gets_a_floor(tmp_path: Path) -> None:
    (tmp_path / "r.urdf").write_text(robot(INERTIAL + BALL))
    loaded = load_scene(tmp_path / "r.urdf")
    assert loaded.bundle.geom_type[0] == mujoco.mjtGeom.mjGEOM_PLANE
    assert loaded.bundle.body_name[1] == "a", "names of a single robot stay as they are"


@pytest.mark.parametrize(
    "name", ["package://pack/meshes/cube.obj", "package://meshes/cube.obj", "../meshes/cube.obj", "meshes/cube.obj"]
)
def test_meshes_are_found_beside_above_and_in_packages(name: str, tmp_path: Path) -> None:
    (tmp_path / "pack" / "meshes").mkdir(parents=True)
    (tmp_path / "pack" / "urdf").mkdir()
    (tmp_path / "pack" / "meshes" / "cube.obj").write_text(CUBE)
    visual = f'<visual><geometry><mesh filename="{name}" scale="0.1 0.2 0.3"/></geometry></visual>'
    (tmp_path / "pack" / "urdf" / "r.urdf").write_text(robot(INERTIAL + visual))
    loaded = load_scene(tmp_path / "pack" / "urdf" / "r.urdf")
    assert len(loaded.bundle.meshes) == 1
    np.testing.assert_allclose(np.sort(np.ptp(loaded.bundle.meshes[0].vertices, axis=0)), [0.1, 0.2, 0.3], rtol=1e-6)


def test_a_mesh_lands_where_the_file_puts_it(tmp_path: Path) -> None:
    (tmp_path / "cube.obj").write_text(CUBE)
    shape = '<origin xyz="1 0 0" rpy="0 0 1.5707963267948966"/><geometry><mesh filename="cube.obj"/></geometry>'
    loaded = load(tmp_path, robot(f"{INERTIAL}<visual>{shape}</visual><collision>{shape}</collision>"), fixed=True)
    b = loaded.bundle
    for g in range(2):
        mesh = b.meshes[b.geom_dataid[g]]
        points = mesh.vertices @ b.geom_xmat0[g].T + b.geom_pos0[g]
        np.testing.assert_allclose(points.min(axis=0), [0, 0, 0], atol=1e-6)
        np.testing.assert_allclose(points.max(axis=0), [1, 1, 1], atol=1e-6)
    assert b.geom_group.tolist() == [2, 3]
    assert b.geom_collides.tolist() == [False, True]


def test_a_missing_visual_warns_and_a_missing_collision_mesh_is_an_error(tmp_path: Path) -> None:
    visual = '<visual><geometry>\n<mesh filename="package://p/no.obj"/></geometry></visual>'
    loaded = load(tmp_path, robot(INERTIAL + visual + BALL))
    assert said(loaded, "link 'a' (line 3)", "not shown; its collision shapes are shown", "package://p/no.obj")
    assert loaded.bundle.geom_group.tolist() == [2]
    with pytest.raises(SceneError, match=r"collision mesh of link 'a'.*does not exist") as caught:
        load(tmp_path, robot(INERTIAL + visual.replace("visual", "collision")))
    assert (caught.value.line, caught.value.file) == (3, str(tmp_path / "r.urdf"))


def test_a_missing_collision_mesh_is_replaced_by_the_hull_of_the_visual(tmp_path: Path) -> None:
    (tmp_path / "cube.obj").write_text(CUBE)
    shown = '<visual><origin xyz="0 0 2"/><geometry><mesh filename="cube.obj"/></geometry></visual>'
    touching = '<collision><geometry><mesh filename="no.stl"/></geometry></collision>'
    loaded = load(tmp_path, robot(INERTIAL + shown + touching), fixed=True)
    assert said(loaded, "no.stl", "hull of its visual mesh")
    g = int(np.flatnonzero(loaded.bundle.geom_collides)[0])
    np.testing.assert_allclose(loaded.bundle.geom_pos0[g], [0.5, 0.5, 2.5], atol=1e-6)


def test_colours_come_from_the_mesh_then_from_the_robots_materials(tmp_path: Path) -> None:
    (tmp_path / "cube.obj").write_text(CUBE)
    (tmp_path / "red.mtl").write_text("newmtl red\nKd 1 0 0\n")
    (tmp_path / "red.obj").write_text("mtllib red.mtl\n" + CUBE.replace("f 1 2 4", "usemtl red\nf 1 2 4"))
    blue = '<material name="blue"/>'
    shapes = "".join(f'<visual><geometry><mesh filename="{n}.obj"/></geometry>{blue}</visual>' for n in ("cube", "red"))
    text = robot(INERTIAL + shapes, extra='<material name="blue"><color rgba="0 0 1 0.5"/></material>')
    rgba = load(tmp_path, text).bundle.geom_rgba
    np.testing.assert_allclose(rgba, [[0, 0, 1, 0.5], [1, 0, 0, 1]], atol=0.01)


def test_a_textured_mesh_keeps_its_picture_and_coordinates(tmp_path: Path) -> None:
    Image.fromarray(np.array([[[255, 0, 0], [0, 255, 0]], [[0, 0, 255], [9, 9, 9]]], np.uint8)).save(tmp_path / "p.png")
    (tmp_path / "m.mtl").write_text("newmtl m\nmap_Kd p.png\n")
    quad = "mtllib m.mtl\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0.5\nvt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\nusemtl m\n"
    (tmp_path / "q.obj").write_text(quad + "f 1/1 2/2 3/3\nf 1/1 3/3 4/4\n")
    loaded = load(tmp_path, robot(INERTIAL + '<visual><geometry><mesh filename="q.obj"/></geometry></visual>'))
    b = loaded.bundle
    material = b.materials[b.geom_matid[0]]
    assert b.textures[material.texture].data[0, 0].tolist() == [255, 0, 0], "the first row is the top of the picture"
    mesh = b.meshes[0]
    assert mesh.uv is not None
    points = mesh.vertices @ b.geom_xmat0[0].T + b.geom_pos0[0]
    lower_left = np.argmin(np.linalg.norm(points - points[np.argmin(points[:, 0] + points[:, 1])], axis=1))
    np.testing.assert_allclose(mesh.uv[lower_left], [0, 0], atol=1e-6)


def inertial(*moments: float, mass: float = 1.0) -> str:
    xx, yy, zz = moments
    tensor = f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/>'
    return f'<inertial><mass value="{mass}"/>\n{tensor}</inertial>'


def test_a_valid_inertia_is_not_touched(tmp_path: Path) -> None:
    turned = '<inertial><origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><mass value="2"/>'
    turned += '<inertia ixx="0.3" iyy="0.4" izz="0.5" ixy="0.01" ixz="0.02" iyz="0.03"/></inertial>'
    mj = load(tmp_path, robot(INERTIAL, turned), fixed=True).mj
    b = mj.body("b").id
    assert mj.body_mass[b] == 2
    np.testing.assert_allclose(mj.body_ipos[b], [1, 2, 3])
    frame = np.zeros(9)
    mujoco.mju_quat2Mat(frame, mj.body_iquat[b])
    frame = frame.reshape(3, 3)
    rpy = np.zeros(9)
    quat = np.zeros(4)
    mujoco.mju_euler2Quat(quat, np.array([0.1, 0.2, 0.3]), "XYZ")
    mujoco.mju_quat2Mat(rpy, quat)
    rpy = rpy.reshape(3, 3)
    given = rpy @ np.array([[0.3, 0.01, 0.02], [0.01, 0.4, 0.03], [0.02, 0.03, 0.5]]) @ rpy.T
    np.testing.assert_allclose(frame @ np.diag(mj.body_inertia[b]) @ frame.T, given, atol=1e-12)


@pytest.mark.parametrize(
    ("moments", "expected"),
    [((0.1, 0.1, 1.0), (0.5, 0.5, 1.0)), ((-1.0, 1.0, 1.0), (1e-6, 1.0, 1.0)), ((1.0, 0.2, 0.3), (1.0, 0.45, 0.55))],
)
def test_an_impossible_inertia_is_repaired_as_little_as_needed(
    moments: tuple[float, ...], expected: tuple[float, ...], tmp_path: Path
) -> None:
    loaded = load(tmp_path, robot(INERTIAL, inertial(*moments)), fixed=True)
    assert said(loaded, "link 'b' (line 4)", "no body can have")
    values = loaded.mj.body_inertia[loaded.mj.body("b").id]
    np.testing.assert_allclose(np.sort(values), np.sort(expected), rtol=1e-5)


def test_a_flat_plate_whose_moments_add_up_exactly_is_fine(tmp_path: Path) -> None:
    loaded = load(tmp_path, robot(INERTIAL, inertial(0.1, 0.2, 0.3)), fixed=True)
    assert not said(loaded, "inertia")


def test_a_zero_inertia_takes_the_size_of_the_shapes(tmp_path: Path) -> None:
    box = '<collision><geometry><box size="1 2 3"/></geometry></collision>'
    loaded = load(tmp_path, robot(INERTIAL, inertial(0, 0, 0, mass=12) + box), fixed=True)
    assert said(loaded, "link 'b'", "inertia is zero")
    np.testing.assert_allclose(loaded.mj.body_inertia[loaded.mj.body("b").id], [13, 10, 5])


@pytest.mark.parametrize("inner", ["", inertial(0, 0, 0, mass=0)])
def test_a_moving_link_without_mass_is_named(inner: str, tmp_path: Path) -> None:
    loaded = load(tmp_path, robot(INERTIAL, inner + BALL), fixed=True)
    assert said(loaded, "link 'b'", "moves but has no mass", "size of its shapes")
    assert loaded.mj.body_mass[loaded.mj.body("b").id] == pytest.approx(4.0)


def test_a_fixed_link_without_mass_weighs_nothing(tmp_path: Path) -> None:
    joints = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
    joints += '<joint name="k" type="fixed"><parent link="b"/><child link="c"/></joint>'
    loaded = load(tmp_path, robot(INERTIAL, INERTIAL, BALL, joints=joints), fixed=True)
    assert loaded.mj.body_mass[loaded.mj.body("c").id] == 0
    assert not said(loaded, "mass")


def test_mimic_joints_become_equality_constraints_and_are_told(tmp_path: Path) -> None:
    joints = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
    joints += '<joint name="k" type="continuous"><parent link="a"/><child link="c"/>'
    joints += '<mimic joint="j" multiplier="-2" offset="0.1"/></joint>'
    loaded = load(tmp_path, robot(INERTIAL, INERTIAL, INERTIAL, joints=joints), fixed=True)
    assert said(loaded, "joint 'k'", "mimics 'j'")
    assert loaded.mj.eq_data[0, :2].tolist() == [0.1, -2]
    assert loaded.mj.joint("k").id == loaded.mj.eq_obj1id[0]
    assert any("equality" in u for u in loaded.unsupported)


def test_planar_and_floating_joints_have_all_their_freedoms(tmp_path: Path) -> None:
    joints = '<joint name="j" type="planar"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint>'
    joints += '<joint name="k" type="floating"><parent link="a"/><child link="c"/><origin xyz="1 2 3"/></joint>'
    mj = load(tmp_path, robot(INERTIAL, INERTIAL, INERTIAL, joints=joints), fixed=True).mj
    assert mj.nv == 3 + 6
    axes = mj.jnt_axis[:3]
    np.testing.assert_allclose(np.abs(axes @ [0, 0, 1]), [0, 0, 1], atol=1e-12)
    np.testing.assert_allclose(mj.qpos0[mj.joint("k").qposadr[0] :][:3], [1, 2, 3])


@pytest.mark.parametrize(
    ("kind", "gain", "bias"), [("motor", 1, (0, 0)), ("position", 80, (-80, None)), ("velocity", 3, (0, -3))]
)
def test_actuators_can_be_added(kind: str, gain: float, bias: tuple[float, float | None], tmp_path: Path) -> None:
    joints = '<joint name="j" type="revolute"><parent link="a"/><child link="b"/>'
    joints += '<limit lower="-1" upper="2" effort="20" velocity="5"/></joint>'
    kv = {"kv": 3.0} if kind == "velocity" else {}
    mj = load(tmp_path, robot(INERTIAL, INERTIAL, joints=joints), fixed=True, actuators=kind, **kv).mj
    assert mj.actuator("j").gainprm[0] == gain
    assert mj.actuator_biasprm[0, 1] == bias[0]
    if bias[1] is not None:
        assert mj.actuator_biasprm[0, 2] == bias[1]
    else:
        assert mj.actuator_biasprm[0, 2] == pytest.approx(-2 * np.sqrt(80 * mj.dof_M0[0]))
    assert mj.actuator_forcerange[0].tolist() == [-20, 20]
    expected = {"motor": [-20, 20], "position": [-1, 2], "velocity": [-5, 5]}[kind]
    assert mj.actuator_ctrlrange[0].tolist() == expected


def test_a_scaled_robot_has_scaled_lengths_and_masses(tmp_path: Path) -> None:
    text = robot(INERTIAL + BALL, INERTIAL + BALL)
    one, two = load(tmp_path, text, fixed=True).mj, load(tmp_path, text, fixed=True, scale=2.0).mj
    np.testing.assert_allclose(two.body_pos, 2 * one.body_pos)
    np.testing.assert_allclose(two.geom_size, 2 * one.geom_size)
    np.testing.assert_allclose(two.body_mass, 8 * one.body_mass)
    np.testing.assert_allclose(two.body_inertia, 32 * one.body_inertia)


def test_links_that_no_joint_moves_can_be_merged(tmp_path: Path) -> None:
    joints = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
    joints += '<joint name="k" type="fixed"><parent link="b"/><child link="c"/><origin xyz="0 0 2"/></joint>'
    text = robot(INERTIAL, INERTIAL, INERTIAL + BALL, joints=joints)
    apart, merged = load(tmp_path, text, fixed=True).mj, load(tmp_path, text, fixed=True, merge_fixed_links=True).mj
    assert merged.nbody < apart.nbody
    np.testing.assert_allclose(merged.body_subtreemass[0], apart.body_subtreemass[apart.body("b").id])
    np.testing.assert_allclose(merged.dof_M0, apart.dof_M0)


def test_links_that_overlap_at_the_start_pass_through_each_other(tmp_path: Path) -> None:
    big = '<collision><geometry><sphere radius="1.5"/></geometry></collision>'
    loaded = load(tmp_path, robot(INERTIAL + big, INERTIAL + BALL, INERTIAL + big), fixed=False)
    assert said(loaded, "overlap at the start", "a and c by 1000 mm")
    assert loaded.mj.nexclude == 1
    apart = load(tmp_path, robot(INERTIAL + BALL, INERTIAL + BALL, INERTIAL + BALL), fixed=False)
    assert apart.mj.nexclude == 0


def test_links_beside_a_fixed_base_do_not_push_it(tmp_path: Path) -> None:
    """MuJoCo's filter of parents leaves out bodies of the world; every arm's first joint would be blocked."""
    touching = '<collision><geometry><sphere radius="0.5005"/></geometry></collision>'
    mj = load(tmp_path, robot(INERTIAL + touching, INERTIAL + touching), fixed=True).mj
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    assert data.ncon == 0


def test_the_floor_of_an_opened_robot_is_below_it(tmp_path: Path) -> None:
    wheel = '<collision><geometry><sphere radius="0.5"/></geometry></collision>'
    (tmp_path / "r.urdf").write_text(robot(INERTIAL, INERTIAL + wheel).replace("0 0 1", "0 0 0"))
    loaded = load_scene(tmp_path / "r.urdf")
    assert loaded.mj.geom("floor").pos[2] == pytest.approx(-0.55)


def test_self_collision_can_be_switched_off(tmp_path: Path) -> None:
    text = robot(INERTIAL + BALL, INERTIAL + BALL, INERTIAL + BALL)
    assert load(tmp_path, text, fixed=False).mj.nexclude == 0
    assert load(tmp_path, text, fixed=False, self_collision=False).mj.nexclude == 3


def test_elements_for_other_programs_are_left_out_and_told(tmp_path: Path) -> None:
    loaded = load(tmp_path, robot(INERTIAL, extra="<gazebo/><gazebo/><transmission/>"))
    assert said(loaded, "<gazebo> (2x)", "<transmission>")


ENDS = '<parent link="a"/><child link="b"/>'
WRONG = {
    "joint type": ('<joint name="j" type="spin"><parent link="a"/><child link="b"/></joint>', "'spin' is unknown"),
    "parent": ('<joint name="j" type="fixed"><parent link="aa"/><child link="b"/></joint>', "'aa' does not exist"),
    "axis": (
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 0 0"/></joint>',
        "zero",
    ),
    "number": (
        '<joint name="j" type="fixed"><parent link="a"/><child link="b"/><origin xyz="0 q 0"/></joint>',
        "0 q 0",
    ),
    "own child": ('<joint name="j" type="fixed"><parent link="a"/><child link="a"/></joint>', "with itself"),
    "xacro": ("<xacro:include/>", "xacro program"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_joint_is_named_with_its_line(case: str, tmp_path: Path) -> None:
    joint, words = WRONG[case]
    with pytest.raises(SceneError, match=words) as caught:
        load(tmp_path, robot(INERTIAL, INERTIAL, joints=joint))
    assert caught.value.line == 4


def test_loops_and_double_links_are_refused(tmp_path: Path) -> None:
    loop = '<joint name="1" type="fixed"><parent link="a"/><child link="b"/></joint>'
    loop += '<joint name="2" type="fixed"><parent link="b"/><child link="a"/></joint>'
    with pytest.raises(SceneError, match="form a loop"):
        load(tmp_path, robot(INERTIAL, INERTIAL, joints=loop))
    with pytest.raises(SceneError, match=r"'a' is used twice, first in line 2"):
        load(tmp_path, robot(INERTIAL, joints='<link name="a"/>'))
    with pytest.raises(SceneError, match="no links"):
        load(tmp_path, "<robot/>")


def test_a_joint_name_used_twice_is_made_unique(tmp_path: Path) -> None:
    joints = "".join(f'<joint name="j" type="continuous"><parent link="a"/><child link="{c}"/></joint>\n' for c in "bc")
    loaded = load(tmp_path, robot(INERTIAL, INERTIAL, INERTIAL, joints=joints))
    assert said(loaded, "'j' is used twice (lines 5 and 6)", "'j_2'")
    assert "j_2" in loaded.bundle.jnt_name


def test_swapped_limits_are_put_right_and_equal_ones_left_out(tmp_path: Path) -> None:
    joints = '<joint name="j" type="revolute"><parent link="a"/><child link="b"/><limit lower="1" upper="-1"/></joint>'
    joints += '<joint name="k" type="revolute"><parent link="b"/><child link="c"/><limit lower="0" upper="0"/></joint>'
    loaded = load(tmp_path, robot(INERTIAL, INERTIAL, INERTIAL, joints=joints), fixed=True)
    assert loaded.mj.jnt_range[0].tolist() == [-1, 1]
    assert loaded.mj.jnt_limited.tolist() == [1, 0]
    assert said(loaded, "'j'", "swapped")
    assert said(loaded, "'k'", "without end")

"""Every collision function against MuJoCo's, in random and in awkward poses."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import mujoco
import numpy as np
import pytest
from collision_rig import WIDTH, Contacts, Pose, Rig, poses, random_quat

from genesis_core.layout.counters import NCON, NEED_CON, OVERFLOW

pytestmark = pytest.mark.parity

HULL = np.random.default_rng(5).normal(size=(40, 3)) * 0.2
PRISM = np.array([[np.cos(a), np.sin(a), z] for z in (-1, 1) for a in np.arange(12) * np.pi / 6]) * [0.2, 0.2, 0.1]
CRATE = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * [0.3, 0.2, 0.1]
MESHES = {"hull": HULL, "prism": PRISM, "crate": CRATE}

SIZES = {
    "sphere": ("0.3", "0.05"),
    "capsule": ("0.15 0.4", "0.3 0.02"),
    "ellipsoid": ("0.2 0.3 0.4", "0.01 0.3 0.3"),
    "cylinder": ("0.25 0.3", "0.3 0.02"),
    "box": ("0.2 0.3 0.25", "0.4 0.02 0.1"),
}
FAMILIES = [("plane", b) for b in (*SIZES, *MESHES)]
FAMILIES += [("sphere", b) for b in ("sphere", "capsule", "cylinder", "box")]
FAMILIES += [("capsule", "capsule"), ("capsule", "box"), ("box", "box")]


def geom(kind: str, size: int, margin: float) -> str:
    if kind == "plane":
        shape = 'type="plane" size="1 1 1"'
    elif kind in MESHES:
        shape = f'type="mesh" mesh="{kind}"'
    else:
        shape = f'type="{kind}" size="{SIZES[kind][size]}"'
    return f'<geom {shape} margin="{margin}" gap="{margin / 2}"/>'


@cache
def two_geoms(kind1: str, kind2: str, size: int = 0, margin: float = 0.0) -> mujoco.MjModel:
    """A mocap body and a free one with a geom each."""
    assets = "".join(
        f'<mesh name="{k}" vertex="{" ".join(map(str, MESHES[k].ravel()))}"/>' for k in (kind1, kind2) if k in MESHES
    )
    return mujoco.MjModel.from_xml_string(
        f"<mujoco><asset>{assets}</asset><worldbody>"
        f'<body mocap="true">{geom(kind1, size, margin)}</body>'
        f"<body><freejoint/>{geom(kind2, 0, margin)}</body></worldbody></mujoco>"
    )


def random_place(seed: int, spread: float) -> Callable[[mujoco.MjData, int], None]:
    rng = np.random.default_rng(seed)

    def place(data: mujoco.MjData, _: int) -> None:
        data.mocap_pos[:] = rng.normal(size=3)
        data.mocap_quat[:] = random_quat(rng)
        data.qpos[:3] = data.mocap_pos[0] + rng.normal(size=3) * spread
        data.qpos[3:] = random_quat(rng)

    return place


QUARTERS = [
    np.array(q, float) / np.linalg.norm(q)
    for q in ((1, 0, 0, 0), (1, 1, 0, 0), (1, 0, 1, 0), (1, 0, 0, 1), (0, 1, 0, 0))
]
EIGHTH = np.array([np.cos(np.pi / 8), 0, 0, np.sin(np.pi / 8)])


def awkward_place(seed: int) -> Callable[[mujoco.MjData, int], None]:
    """Concentric, parallel, touching and nearly so: offsets on a coarse grid, quarter turns, tilts of 1e-12 to 1e-2."""
    rng = np.random.default_rng(seed)
    steps = np.array([0, 0, 0, 0.1, -0.25, 0.3, -0.45, 0.5])

    def place(data: mujoco.MjData, k: int) -> None:
        data.mocap_pos[:] = 0
        data.mocap_quat[:] = QUARTERS[rng.integers(5)]
        data.qpos[:3] = rng.choice(steps, 3) if k else 0
        data.qpos[3:] = QUARTERS[rng.integers(5)]
        if k % 4 == 1:
            mujoco.mju_mulQuat(data.qpos[3:], data.qpos[3:].copy(), EIGHTH)
        if k % 4 > 1:
            data.qpos[:3] += rng.normal(size=3) * 1e-3
            data.qpos[3:] += rng.normal(size=4) * 10.0 ** rng.uniform(-12, -2)
            data.qpos[3:] /= np.linalg.norm(data.qpos[3:])

    return place


def assert_same(rig: Rig, states: list[Pose], tolerance: float = 1e-9) -> int:
    """All contacts equal MuJoCo's; how many there were."""
    total = 0
    for k, (found, expected) in enumerate(rig.run(states)):
        assert len(found) == len(expected), f"state {k}: {len(found)} contacts, MuJoCo has {len(expected)}"
        assert (found.geoms == expected.geoms).all()
        assert found.error(expected) < tolerance, f"state {k}"
        total += len(found)
    return total


@pytest.mark.parametrize("margin", [0.0, 0.04])
@pytest.mark.parametrize(("kind1", "kind2"), FAMILIES)
def test_contacts_in_random_poses_are_mujocos(kind1, kind2, margin):
    mj = two_geoms(kind1, kind2, 0, margin)
    rig = Rig(mj)
    found = assert_same(rig, poses(mj, 800, random_place(1, 0.35)))
    found += assert_same(rig, poses(mj, 200, random_place(2, 0.05)))  # deep inside each other
    assert found > 400


@pytest.mark.parametrize(("kind1", "kind2"), [f for f in FAMILIES if f[0] != "plane"])
def test_contacts_of_thin_and_small_geoms_are_mujocos(kind1, kind2):
    mj = two_geoms(kind1, kind2, 1, 0.01)
    found = assert_same(Rig(mj), poses(mj, 800, random_place(3, 0.25)))
    assert found > 100


@pytest.mark.parametrize("scale", [1e-3, 1e3])
@pytest.mark.parametrize(("kind1", "kind2"), [f for f in FAMILIES if not {*f} & {"plane", *MESHES}])
def test_contacts_of_tiny_and_huge_geoms_are_mujocos(kind1, kind2, scale):
    text = (
        f'<mujoco><worldbody><body mocap="true"><geom type="{kind1}" size="{{}}"/></body>'
        f'<body><freejoint/><geom type="{kind2}" size="{{}}" mass="1"/></body></worldbody></mujoco>'
    )
    sizes = (" ".join(str(float(s) * scale) for s in SIZES[kind][0].split()) for kind in (kind1, kind2))
    mj = mujoco.MjModel.from_xml_string(text.format(*sizes))
    place = random_place(4, 0.35 * scale)

    def at_origin(data: mujoco.MjData, k: int) -> None:
        place(data, k)
        data.qpos[:3] -= data.mocap_pos[0]
        data.mocap_pos[:] = 0

    assert assert_same(Rig(mj), poses(mj, 400, at_origin), 1e-9 * max(scale, 1)) > 100


def in_any_order(c: Contacts) -> np.ndarray:
    """Rows of distance, position and normal, sorted: for poses in which rounding decides which contact comes first."""
    rows = np.hstack([c.dist[:, None], c.pos, c.frame[:, :3]])
    return rows[np.lexsort(np.round(rows, 7).T)]


@pytest.mark.parametrize(("kind1", "kind2"), FAMILIES)
def test_contacts_in_awkward_poses_are_mujocos(kind1, kind2):
    mj = two_geoms(kind1, kind2, 0, 0.02)
    states = poses(mj, 640, awkward_place(6))
    different = 0
    for found, expected in Rig(mj).run(states):
        assert np.isfinite(found.frame).all()
        same = len(found) == len(expected)
        different += not (same and np.allclose(in_any_order(found), in_any_order(expected), rtol=0, atol=1e-7))
    # where two faces, edges or corners are equally near, rounding chooses between contacts that are equally right
    assert different <= 12, f"{different} of {len(states)} states differ"


@pytest.mark.parametrize(("kind1", "kind2"), FAMILIES)
def test_single_precision_contacts_are_close_to_mujocos(kind1, kind2):
    mj = two_geoms(kind1, kind2, 0, 0.02)
    errors = []
    for found, expected in Rig(mj, bits=32).run(poses(mj, 800, random_place(1, 0.35))):
        if len(found) == len(expected):
            errors.append(found.error(expected))
        else:  # only a contact at the very edge of the margin may come or go
            assert abs(max(found.dist.tolist() + expected.dist.tolist()) - 0.06) < 1e-5
    assert np.median(errors) < 1e-6
    assert max(errors) < 1e-4


def level_place(seed: int, kind: str) -> Callable[[mujoco.MjData, int], None]:
    """A lying capsule or a standing box on a box, turned about the vertical and tilted by no more than rounding."""
    rng = np.random.default_rng(seed)
    lying = np.array([np.cos(np.pi / 4), 0, np.sin(np.pi / 4), 0])

    def place(data: mujoco.MjData, k: int) -> None:
        yaw, tilt = (rng.integers(4) * np.pi / 2 if k % 2 else rng.uniform(-3, 3)), rng.normal(size=2) * 1e-7
        quat = np.array([np.cos(yaw / 2), *tilt, np.sin(yaw / 2)])
        if kind == "capsule":
            mujoco.mju_mulQuat(quat, quat.copy(), lying)
        data.mocap_quat[:] = quat / np.linalg.norm(quat)
        height = 0.15 if kind == "capsule" else 0.25
        data.mocap_pos[:] = [*rng.uniform(-0.1, 0.1, 2), 0.25 + height - 1e-4]
        data.qpos[:] = [0, 0, 0, 1, 0, 0, 0]

    return place


@pytest.mark.parametrize(("kind", "least"), [("capsule", 2), ("box", 4)])
def test_single_precision_keeps_level_geoms_on_enough_contacts(kind, least):
    mj = two_geoms(kind, "box")
    for found, _ in Rig(mj, bits=32).run(poses(mj, 400, level_place(8, kind))):
        assert len(found) >= least
        np.testing.assert_allclose(found.dist, -1e-4, atol=2e-6)
        np.testing.assert_allclose(np.abs(found.frame[:, 2]), 1, atol=1e-5)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(("kind1", "kind2"), FAMILIES)
def test_a_lane_has_the_same_contacts_whatever_its_neighbours_do(kind1, kind2, bits):
    mj = two_geoms(kind1, kind2, 0, 0.02)
    rig = Rig(mj, bits)
    states = poses(mj, 24, random_place(9, 0.3)) + poses(mj, 24, awkward_place(9))
    nan = Pose(np.full((2, 3), np.nan), np.full((2, 9), np.nan), states[0].expected)
    far = Pose(np.array([[0, 0, 0], [0, 0, 9.0]]), states[0].xmat, states[0].expected)
    for k, state in enumerate(states):
        rig.block([state] * WIDTH)
        alone = rig.lane(k % WIDTH)
        for others in ([nan] * WIDTH, [far] * WIDTH, [states[(k + 7 * j) % len(states)] for j in range(WIDTH)]):
            lanes = list(others)
            lanes[k % WIDTH] = state
            rig.block(lanes)
            found = rig.lane(k % WIDTH)
            for name in ("geoms", "dist", "pos", "frame"):
                assert getattr(found, name).tobytes() == getattr(alone, name).tobytes()


def test_lanes_with_nan_have_no_contacts():
    mj = two_geoms("box", "box")
    rig = Rig(mj)
    state = poses(mj, 1, awkward_place(1))[0]
    nan = Pose(np.full((2, 3), np.nan), state.xmat, state.expected)
    rig.block([state, nan] * (WIDTH // 2))
    assert [len(rig.lane(k)) for k in range(4)] == [len(state.expected), 0, len(state.expected), 0]
    assert len(state.expected) > 0


def test_geoms_out_of_reach_are_not_even_listed():
    mj = two_geoms("capsule", "box")
    rig = Rig(mj)
    pose = Pose(np.array([[0, 0, 0], [0, 0, 1.1]]), np.tile(np.eye(3).ravel(), (2, 1)), None)
    rig.block([pose] * WIDTH)
    assert rig.slots == 0


def heap(n: int) -> mujoco.MjModel:
    boxes = "".join('<body><freejoint/><geom type="box" size=".1 .1 .1"/></body>' for _ in range(n))
    return mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{boxes}</worldbody></mujoco>")


def random_heap(seed: int, n: int, spread: float) -> Callable[[mujoco.MjData, int], None]:
    rng = np.random.default_rng(seed)

    def place(data: mujoco.MjData, _: int) -> None:
        for k in range(n):
            data.qpos[7 * k : 7 * k + 3] = rng.uniform(-spread, spread, 3)
            data.qpos[7 * k + 3 : 7 * k + 7] = random_quat(rng)

    return place


def test_a_heap_of_boxes_has_mujocos_contacts_in_mujocos_order():
    mj = heap(12)
    assert assert_same(Rig(mj), poses(mj, 80, random_heap(3, 12, 0.3))) > 1000


def test_a_full_contact_list_asks_for_room_and_fits_the_second_time():
    mj = heap(6)
    states = poses(mj, WIDTH, random_heap(4, 6, 0.15))
    rig = Rig(mj, capacity=10)
    rig.block(states)
    count = rig.d.arrays["count"]
    assert count[OVERFLOW] == 1
    assert count[NCON] == 0
    need = int(count[NEED_CON])
    assert need > 10
    rig = Rig(mj, capacity=need)
    rig.block(states)
    assert rig.d.arrays["count"][OVERFLOW] == 0
    for k, state in enumerate(states):
        assert rig.lane(k).error(state.expected) < 1e-9

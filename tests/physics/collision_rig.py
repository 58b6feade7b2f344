"""Runs the collision stages on given poses of geoms, beside MuJoCo's collision detection in the same state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import mujoco
import numpy as np

from genesis_core.backend.tables import Work, model_table
from genesis_core.compiler.build import Model
from genesis_core.layout.counters import NCON, OVERFLOW
from genesis_core.layout.fields import WORK_FIELDS
from genesis_core.physics.broadphase import broadphase
from genesis_core.physics.pairs import narrowphase

WIDTH = 8


@dataclass
class Contacts:
    """The contacts of one state, in order; poses are those of all geoms."""

    geoms: np.ndarray  # (n, 2)
    dist: np.ndarray  # (n,)
    pos: np.ndarray  # (n, 3)
    frame: np.ndarray  # (n, 9)

    def __len__(self) -> int:
        return len(self.dist)

    def error(self, other: Contacts) -> float:
        """Largest difference of a number to the other contacts, which are as many."""
        parts = ((self.dist, other.dist), (self.pos, other.pos), (self.frame, other.frame))
        return max((float(np.abs(a - b).max()) for a, b in parts if a.size), default=0.0)


@dataclass
class Pose:
    """Poses of all geoms of a state, and the contacts that MuJoCo finds there."""

    xpos: np.ndarray  # (ngeom, 3)
    xmat: np.ndarray  # (ngeom, 9)
    expected: Contacts


def mujoco_pose(mj: mujoco.MjModel, data: mujoco.MjData) -> Pose:
    """Runs MuJoCo's kinematics and collision detection for the state in data."""
    mujoco.mj_kinematics(mj, data)
    mujoco.mj_comPos(mj, data)
    mujoco.mj_collision(mj, data)
    c = data.contact
    expected = Contacts(c.geom.copy(), c.dist.copy(), c.pos.copy(), c.frame.copy())
    return Pose(data.geom_xpos.copy(), data.geom_xmat.copy(), expected)


def poses(mj: mujoco.MjModel, count: int, place: Callable[[mujoco.MjData, int], None]) -> list[Pose]:
    """`count` states, each set up by place(data, index)."""
    data = mujoco.MjData(mj)
    found = []
    for k in range(count):
        place(data, k)
        found.append(mujoco_pose(mj, data))
    return found


class Rig:
    """Model and workspace for the collision stages; every real of the workspace starts as NaN."""

    def __init__(self, mj: mujoco.MjModel, bits: int = 64, capacity: int | None = None) -> None:
        self.model = Model.from_mujoco(mj)
        room = self.model.arrays["ncon_bound"] if capacity is None else capacity
        self.m = model_table(self.model, bits, WIDTH)
        self.d = Work(self.model, bits, WIDTH, {"ncon_max": room, "nefc_max": 1, "njac_max": 1})
        for field in WORK_FIELDS:
            if field.kind == "r":
                self.d.arrays[field.name][:] = np.nan

    def block(self, lanes: list[Pose]) -> None:
        """Runs the stages for eight poses at once."""
        self.d.set_lanes("geom_xpos", np.array([p.xpos.ravel() for p in lanes]))
        self.d.set_lanes("geom_xmat", np.array([p.xmat.ravel() for p in lanes]))
        self.d.arrays["count"][:] = 0
        broadphase(self.m, self.d)
        narrowphase(self.m, self.d)

    @property
    def slots(self) -> int:
        return int(self.d.arrays["count"][NCON])

    def lane(self, k: int) -> Contacts:
        """The contacts that lane k sees."""
        n = self.slots
        active = self.d.lanes("con_active")[k, :n]
        assert set(np.unique(active)) <= {0.0, 1.0}
        own = active > 0
        geoms = np.stack([self.d.arrays["con_geom1"][:n], self.d.arrays["con_geom2"][:n]], axis=-1)
        return Contacts(
            geoms[own],
            self.d.lanes("con_dist")[k, :n][own],
            self.d.lanes("con_pos")[k, : 3 * n].reshape(n, 3)[own],
            self.d.lanes("con_frame")[k, : 9 * n].reshape(n, 9)[own],
        )

    def run(self, states: list[Pose]) -> Iterable[tuple[Contacts, Contacts]]:
        """(found, expected) of every state, eight states to a block; a block's list must be finite in every lane."""
        for start in range(0, len(states), WIDTH):
            part = states[start : start + WIDTH]
            self.block([part[k % len(part)] for k in range(WIDTH)])
            assert self.d.arrays["count"][OVERFLOW] == 0
            n = self.slots
            for name, items in (("con_dist", n), ("con_pos", 3 * n), ("con_frame", 9 * n)):
                assert np.isfinite(self.d.lanes(name)[:, :items]).all(), f"{name} is not finite in an idle lane"
            for k, pose in enumerate(part):
                yield self.lane(k), pose.expected


def random_quat(rng: np.random.Generator) -> np.ndarray:
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)

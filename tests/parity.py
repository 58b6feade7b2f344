"""Holds MuJoCo and our engine in the same states, so that tests can compare any quantity of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from genesis_core.engine import Model, Simulation

OUTPUTS = ("qacc", "qacc_smooth", "qfrc_bias", "qfrc_passive", "qfrc_actuator", "qfrc_constraint", "actuator_force")


@dataclass
class Engines:
    """`sim` has one environment per state; `datas` one MjData per state."""

    mj: mujoco.MjModel
    model: Model
    sim: Simulation
    datas: list[mujoco.MjData]

    def errors(self, name: str) -> np.ndarray:
        """Per state: |ours - MuJoCo| / |MuJoCo| of a quantity (absolute where MuJoCo's is zero)."""
        ours = self.sim.get(name).reshape(len(self.datas), -1).astype(float)
        theirs = np.array([np.ravel(getattr(d, name)) for d in self.datas], float).reshape(ours.shape)
        size = np.linalg.norm(theirs, axis=1)
        return np.linalg.norm(ours - theirs, axis=1) / np.where(size > 1e-9, size, 1.0)

    def forward(self) -> None:
        """Both engines evaluate everything but integration; our outputs hold NaN before."""
        self.prefill()
        self.sim.forward()
        for d in self.datas:
            mujoco.mj_forward(self.mj, d)

    def step(self, n: int) -> None:
        """Both engines take n steps."""
        self.prefill()
        self.sim.step(n)
        for d in self.datas:
            for _ in range(n):
                mujoco.mj_step(self.mj, d)

    def prefill(self) -> None:
        """NaN into everything that a forward evaluation writes, so that what is not written cannot pass."""
        for name in (*OUTPUTS, "energy", "ncon", "nefc"):
            self.sim._state.arrays[name][:] = np.nan
        for work in self.sim._cpu.works:
            for name in ("xpos", "xquat", "cvel", "M", "qacc", "qfrc_constraint", "con_dist", "con_pos", "con_frame"):
                work.arrays[name][:] = np.nan


def load_mujoco(source: str | Path | mujoco.MjModel) -> mujoco.MjModel:
    """A compiled model from a path, from MJCF text, or as it is."""
    if isinstance(source, mujoco.MjModel):
        return source
    text = str(source)
    return mujoco.MjModel.from_xml_string(text) if text.lstrip().startswith("<") else mujoco.MjModel.from_xml_path(text)


def random_state(mj: mujoco.MjModel, rng: np.random.Generator, d: mujoco.MjData, spread: float, speed: float) -> None:
    """A random pose around the first keyframe (or qpos0), random velocities, controls and applied forces."""
    d.qpos[:] = mj.key_qpos[0] if mj.nkey else mj.qpos0
    mujoco.mj_integratePos(mj, d.qpos, rng.normal(size=mj.nv) * spread, 1.0)
    d.qvel[:] = rng.normal(size=mj.nv) * speed
    d.ctrl[:] = rng.uniform(-1, 1, mj.nu)


def engines(
    source: Any,
    n_states: int,
    seed: int = 0,
    precision: str = "64",
    *,
    spread: float = 0.3,
    speed: float = 1.0,
    applied: bool = False,
    change: Callable[[mujoco.MjModel], None] | None = None,
    **options: Any,
) -> Engines:
    """Both engines in the same n_states random states. `change` may alter the MjModel before it is used."""
    mj = load_mujoco(source)
    if change is not None:
        change(mj)
    model = Model.from_mujoco(mj)
    rng = np.random.default_rng(seed)
    datas = []
    for _ in range(n_states):
        d = mujoco.MjData(mj)
        random_state(mj, rng, d, spread, speed)
        if applied:
            d.qfrc_applied[:] = rng.normal(size=mj.nv)
            d.xfrc_applied[1:] = rng.normal(size=(mj.nbody - 1, 6))
        datas.append(d)
    sim = Simulation(model, n_states, precision=precision, threads=1, **options)
    for name in ("qpos", "qvel", "ctrl", "qfrc_applied", "xfrc_applied"):
        sim.set(name, np.array([getattr(d, name) for d in datas]))
    return Engines(mj, model, sim, datas)

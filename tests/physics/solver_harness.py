"""Runs the constraint stages alone, on MuJoCo's own smooth dynamics and contacts: one state of a model per lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from genesis_core.backend.tables import Work, model_table
from genesis_core.backend.width import lane_width
from genesis_core.compiler.build import Model
from genesis_core.layout.counters import NCON
from genesis_core.physics import constraint, mass_matrix, solver

FROM_MUJOCO = ("qpos", "qvel", "cdof", "cvel", "subtree_com", "M", "qacc_smooth", "qacc_warmstart", "qfrc_smooth")
PREFILLED = ("qacc", "qfrc_constraint", "con_force", "con_x", "con_v", "hess", "mover_vel", "mover_frc", "mover_K")


@dataclass
class Solved:
    """What the constraint stages left, per state."""

    qacc: np.ndarray
    qfrc_constraint: np.ndarray
    nefc: np.ndarray
    niter: np.ndarray
    forces: list[np.ndarray]  # (contacts of the state, 6), in MuJoCo's order
    work: Work


def _pair_index(model: Model) -> dict[tuple[int, int], int]:
    a = model.arrays
    return {(int(g), int(h)): k for k, (g, h) in enumerate(zip(a["pair_geom1"], a["pair_geom2"], strict=True))}


def _fill_contacts(model: Model, work: Work, datas: list[mujoco.MjData]) -> list[list[int]]:
    """Writes the union of the states' contacts; returns the slot of every contact of every state."""
    index = _pair_index(model)
    per_state = []
    most: dict[int, int] = {}
    for data in datas:
        seen: dict[int, int] = {}
        mine = []
        for contact in data.contact:
            pair = index[(int(contact.geom[0]), int(contact.geom[1]))]
            number = seen.get(pair, 0)
            seen[pair] = number + 1
            mine.append((pair, number))
        for pair, number in seen.items():
            most[pair] = max(most.get(pair, 0), number)
        per_state.append(mine)
    first, total = {}, 0
    for pair in sorted(most):
        first[pair] = total
        total += most[pair]
    arrays = work.arrays
    arrays["count"][:] = 0
    arrays["count"][NCON] = total
    lanes = {n: arrays[n].reshape(-1, work.width) for n in ("con_dist", "con_pos", "con_frame", "con_active")}
    for values in lanes.values():
        values[:] = 0
    for pair, start in first.items():
        for slot in range(start, start + most[pair]):
            arrays["con_pair"][slot] = pair
            arrays["con_geom1"][slot] = model.arrays["pair_geom1"][pair]
            arrays["con_geom2"][slot] = model.arrays["pair_geom2"][pair]
    slots: list[list[int]] = []
    for k, (data, mine) in enumerate(zip(datas, per_state, strict=True)):
        slots.append([])
        for contact, (pair, number) in zip(data.contact, mine, strict=True):
            slot = first[pair] + number
            slots[-1].append(slot)
            lanes["con_dist"][slot, k] = contact.dist
            lanes["con_active"][slot, k] = 1
            lanes["con_pos"][3 * slot : 3 * slot + 3, k] = contact.pos
            lanes["con_frame"][9 * slot : 9 * slot + 9, k] = contact.frame
    return slots


def solve_states(model: Model, datas: list[mujoco.MjData], bits: int = 64) -> Solved:
    """Solves the constraints of states that mj_forward has been called on; at most `width` of them share a block."""
    width = lane_width(bits)
    table = model_table(model, bits, width)
    ncon = max(sum(d.ncon for d in datas[k : k + width]) for k in range(0, len(datas), width))
    work = Work(model, bits, width, {"ncon_max": max(ncon, 1), "nefc_max": 1, "njac_max": 1})
    out: dict[str, list[Any]] = {"qacc": [], "qfrc_constraint": [], "nefc": [], "niter": [], "forces": []}
    for start in range(0, len(datas), width):
        block = datas[start : start + width]
        filled = block + [block[-1]] * (width - len(block))
        for name in FROM_MUJOCO:
            work.set_lanes(name, np.stack([np.asarray(getattr(d, name)).reshape(-1) for d in filled]))
        for name in PREFILLED:
            work.arrays[name][:] = np.nan
        mass_matrix.factor_m(table, work)
        slots = _fill_contacts(model, work, filled)
        constraint.make(table, work)
        solver.solve(table, work)
        solver.contact_forces(table, work)
        force = work.lanes("con_force")
        for k in range(len(block)):
            out["forces"].append(force[k].reshape(-1, 6)[slots[k]])
        for name, field in (("qacc", "qacc"), ("qfrc_constraint",) * 2, ("nefc", "nefc"), ("niter", "solver_niter")):
            values = work.lanes(field)[: len(block)]
            out[name].extend(values if name.startswith("q") else values[:, 0])
    return Solved(
        np.array(out["qacc"]), np.array(out["qfrc_constraint"]), np.array(out["nefc"]), np.array(out["niter"]),
        out["forces"], work,
    )  # fmt: skip


def contact_forces(mj: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """mj_contactForce of every contact."""
    out = np.zeros((data.ncon, 6))
    for k in range(data.ncon):
        mujoco.mj_contactForce(mj, data, k, out[k])
    return out


def settled_states(mj: mujoco.MjModel, n: int, steps: int, seed: int = 0, kick: float = 0.5) -> list[mujoco.MjData]:
    """States after up to `steps` steps of random controls from disturbed starts, kicked out of rest at the end."""
    rng = np.random.default_rng(seed)
    datas = []
    for _ in range(n):
        data = mujoco.MjData(mj)
        data.qvel[:] = rng.normal(size=mj.nv) * 0.5
        data.ctrl[:] = rng.normal(size=mj.nu) * 0.5
        for _ in range(int(rng.integers(steps // 2, steps + 1))):
            mujoco.mj_step(mj, data)
        data.qvel[:] += rng.normal(size=mj.nv) * kick
        mujoco.mj_forward(mj, data)
        datas.append(data)
    return datas


def relative_errors(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """|got - want| / |want| per state."""
    scale = np.maximum(np.linalg.norm(want, axis=-1), 1e-9)
    return np.linalg.norm(got - want, axis=-1) / scale

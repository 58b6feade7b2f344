"""Candidate pairs of geoms, decided once when the model is compiled.

Which pairs may touch, in which order, and with which contact parameters follows MuJoCo 4.0.0
(`engine_collision_driver.c`; "Collision detection" and "Contact parameters" in its documentation):

* bodies that are welded together, a body and its parent (unless the parent is welded to the world), bodies that both
  cannot move, excluded bodies and incompatible `contype`/`conaffinity` are left out;
* explicit `<pair>` elements are kept whatever those rules say, and replace the dynamic pair of the same geoms;
* pairs are sorted by body signature, explicit ones first, then by geom; a contact list in pair order is then the
  contact list of MuJoCo.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

from genesis_core.compiler.lower_hulls import lower_hulls
from genesis_core.layout.enums import DisableFlag, GeomType
from genesis_core.layout.fields_collision import PAIR_MAX_CONTACTS, PAIR_TYPES, PairType

MINVAL = 1e-15  # mjMINVAL
MINMU = 1e-5  # mjMINMU: MuJoCo never lets a friction coefficient fall below it


@dataclass(frozen=True)
class Candidates:
    """Pairs of geoms that may touch, row by row; `explicit` is the index of a `<pair>` or -1."""

    geom1: np.ndarray  # the geom with the lower type
    geom2: np.ndarray
    explicit: np.ndarray

    def __len__(self) -> int:
        return len(self.geom1)

    def where(self, mask: np.ndarray) -> Candidates:
        return Candidates(self.geom1[mask], self.geom2[mask], self.explicit[mask])


class _Filter:
    """Which geoms can collide with a given one, by MuJoCo's rules for bodies and bit masks."""

    def __init__(self, mj: mujoco.MjModel) -> None:
        body = np.array(mj.geom_bodyid, np.int64)
        weld = np.array(mj.body_weldid, np.int64)
        self.body, self.weld = body, weld[body]
        self.parent = weld[mj.body_parentid[weld]][body]
        # static bodies, and mocap bodies with what is welded to them, are moved by no joint
        self.movable = (mj.body_dofnum[weld] > 0)[body]
        self.type, self.affinity = np.array(mj.geom_contype), np.array(mj.geom_conaffinity)
        self.parents_pass = bool(mj.opt.disableflags & DisableFlag.FILTERPARENT)
        self.excluded: dict[int, list[int]] = {}
        for signature in mj.exclude_signature.tolist():
            self.excluded.setdefault(signature >> 16, []).append(signature & 0xFFFF)
        self.explicit: dict[int, list[int]] = {}
        for one, two in zip(mj.pair_geom1.tolist(), mj.pair_geom2.tolist(), strict=True):
            self.explicit.setdefault(min(one, two), []).append(max(one, two))

    def partners(self, geom: int) -> np.ndarray:
        """Geoms after `geom` that can touch it."""
        rest = slice(geom + 1, None)
        weld, parent = self.weld[geom], self.parent[geom]
        hit = (self.type[geom] & self.affinity[rest]) | (self.type[rest] & self.affinity[geom]) != 0
        hit &= self.weld[rest] != weld
        hit &= self.movable[rest] | self.movable[geom]
        if not self.parents_pass and weld != 0:
            related = (self.parent[rest] == weld) | (self.weld[rest] == parent)
            hit &= ~((self.weld[rest] != 0) & related)
        found = np.flatnonzero(hit) + geom + 1
        if others := self.excluded.get(int(self.body[geom])):
            found = found[~np.isin(self.body[found], others)]
        if others := self.explicit.get(geom):
            found = found[~np.isin(found, others)]
        return found


def _dynamic(mj: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """Geoms of all pairs that are not explicit, the lower index first."""
    rule = _Filter(mj)
    colliding = np.flatnonzero(rule.type | rule.affinity)
    partners = [rule.partners(int(geom)) for geom in colliding]
    counts = [len(p) for p in partners]
    return np.repeat(colliding, counts), np.concatenate([*partners, np.zeros(0, np.int64)])


def candidates(mj: mujoco.MjModel) -> Candidates:
    """All geom pairs that can touch in some state, sorted as MuJoCo sorts its contacts."""
    if mj.opt.disableflags & (DisableFlag.CONSTRAINT | DisableFlag.CONTACT):
        none = np.zeros(0, np.int64)
        return Candidates(none, none, none)
    first, second = _dynamic(mj)
    explicit = np.concatenate([np.arange(mj.npair), np.full(len(first), -1, np.int64)])
    first = np.concatenate([mj.pair_geom1, first]).astype(np.int64)
    second = np.concatenate([mj.pair_geom2, second]).astype(np.int64)
    types = np.array(mj.geom_type, np.int64)
    swap = types[first] > types[second]
    geom1, geom2 = np.where(swap, second, first), np.where(swap, first, second)
    # MuJoCo walks bodies with several geoms through a tree of boxes, then sorts by the swapped geoms; without the tree
    # it goes through the geoms as they are
    midphase = not mj.opt.disableflags & DisableFlag.MIDPHASE
    keys = (geom1, geom2) if midphase else (first, second)
    body1, body2 = mj.geom_bodyid[first], mj.geom_bodyid[second]
    signature = (np.minimum(body1, body2).astype(np.int64) << 16) + np.maximum(body1, body2)
    given = np.where(explicit >= 0, explicit, mj.npair)  # explicit pairs come first, in their order
    within = [np.where(explicit >= 0, 0, key) for key in keys]
    order = np.lexsort((within[1], within[0], given, signature))
    # there is no collision function for two planes or height fields
    order = order[(types[first] > GeomType.HFIELD)[order] | (types[second] > GeomType.HFIELD)[order]]
    return Candidates(geom1[order], geom2[order], explicit[order])


_KIND = np.full((len(GeomType), len(GeomType)), -1, np.int64)
for _types, _kind in PAIR_TYPES.items():
    _KIND[_types] = int(_kind)


def pair_kinds(mj: mujoco.MjModel, pairs: Candidates) -> np.ndarray:
    """The PairType of every pair, -1 where this program has no collision function."""
    types = np.array(mj.geom_type, np.int64)
    return _KIND[types[pairs.geom1], types[pairs.geom2]]


def unsupported_pairs(mj: mujoco.MjModel) -> list[str]:
    """A sentence for every combination of geom types that can touch in this model but is not simulated."""
    pairs = candidates(mj)
    missing = pairs.where(pair_kinds(mj, pairs) < 0)
    types = np.array(mj.geom_type, np.int64)
    combined = types[missing.geom1] * len(GeomType) + types[missing.geom2]
    sentences = []
    for combination, first, count in zip(*np.unique(combined, return_index=True, return_counts=True), strict=True):
        type1, type2 = (GeomType(int(t)).name.lower() for t in divmod(combination, len(GeomType)))
        sentence = (
            f"contacts between {type1} and {type2} geoms are not simulated: "
            f"{_geom_name(mj, int(missing.geom1[first]))} and {_geom_name(mj, int(missing.geom2[first]))}"
        )
        if count > 1:
            sentence += f" and {count - 1} more pair{'s' if count > 2 else ''}"
        sentences.append(sentence)
    return sentences


def _geom_name(mj: mujoco.MjModel, geom: int) -> str:
    if name := mj.geom(geom).name:
        return f'"{name}"'
    body = mj.body(int(mj.geom_bodyid[geom])).name or "world"
    return f'geom {geom} of body "{body}"'


def _mix_weights(solmix1: np.ndarray, solmix2: np.ndarray) -> np.ndarray:
    weight = solmix1 / np.maximum(solmix1 + solmix2, MINVAL)
    weight = np.where((solmix1 < MINVAL) & (solmix2 < MINVAL), 0.5, weight)
    weight = np.where((solmix1 < MINVAL) & (solmix2 >= MINVAL), 0.0, weight)
    return np.where((solmix1 >= MINVAL) & (solmix2 < MINVAL), 1.0, weight)[:, None]


def _mixed(mj: mujoco.MjModel, geom1: np.ndarray, geom2: np.ndarray) -> dict[str, np.ndarray]:
    """Contact parameters of pairs without a `<pair>`: priority, then solmix, as `mj_contactParam`."""
    lead = np.sign(mj.geom_priority[geom1] - mj.geom_priority[geom2])

    def choose(values: np.ndarray, mixed: np.ndarray) -> np.ndarray:
        wide = lead.reshape(-1, *[1] * (values.ndim - 1))
        return np.where(wide > 0, values[geom1], np.where(wide < 0, values[geom2], mixed))

    weight = _mix_weights(mj.geom_solmix[geom1], mj.geom_solmix[geom2])
    solref1, solref2 = mj.geom_solref[geom1], mj.geom_solref[geom2]
    standard = ((solref1[:, 0] > 0) & (solref2[:, 0] > 0))[:, None]
    solref = np.where(standard, weight * solref1 + (1 - weight) * solref2, np.minimum(solref1, solref2))
    solimp = weight * mj.geom_solimp[geom1] + (1 - weight) * mj.geom_solimp[geom2]
    friction = choose(mj.geom_friction, np.maximum(mj.geom_friction[geom1], mj.geom_friction[geom2]))
    return {
        "condim": choose(mj.geom_condim, np.maximum(mj.geom_condim[geom1], mj.geom_condim[geom2])),
        "friction": friction[:, [0, 0, 1, 2, 2]],
        "solref": choose(mj.geom_solref, solref),
        "solreffriction": np.zeros_like(solref),
        "solimp": choose(mj.geom_solimp, solimp),
        "margin": mj.geom_margin[geom1] + mj.geom_margin[geom2],
        "gap": mj.geom_gap[geom1] + mj.geom_gap[geom2],
    }


def contact_parameters(mj: mujoco.MjModel, pairs: Candidates) -> dict[str, np.ndarray]:
    """condim, friction (n, 5), solref (n, 2), solreffriction (n, 2), solimp (n, 5), margin and gap of every pair."""
    values = _mixed(mj, pairs.geom1, pairs.geom2)
    given = pairs.explicit >= 0
    for name, field in values.items():
        source = mj.pair_dim if name == "condim" else getattr(mj, f"pair_{name}")
        field[given] = source[pairs.explicit[given]]
    values["friction"] = np.maximum(values["friction"], MINMU)
    return values


def lower_collision(mj: mujoco.MjModel, out: dict[str, Any]) -> None:
    """Fill the pair table and the hulls of colliding meshes."""
    pairs = candidates(mj)
    kinds = pair_kinds(mj, pairs)
    pairs, kinds = pairs.where(kinds >= 0), kinds[kinds >= 0]
    out["npair"] = len(pairs)
    out["pair_geom1"], out["pair_geom2"], out["pair_type"] = pairs.geom1, pairs.geom2, kinds
    slots = np.array([PAIR_MAX_CONTACTS[kind] for kind in PairType], np.int64)
    out["pair_slots"] = slots[kinds]
    values = contact_parameters(mj, pairs)
    out["pair_condim"] = values.pop("condim").astype(np.int64)
    for name, field in values.items():
        out[f"pair_{name}"] = field.reshape(-1)
    reach = out["pair_margin"] + out["pair_gap"]
    out["pair_reach"] = reach
    out["pair_bound"] = mj.geom_rbound[pairs.geom1] + mj.geom_rbound[pairs.geom2] + reach
    out["ncon_bound"] = int(out["pair_slots"].sum())
    lower_hulls(mj, np.unique(pairs.geom2[kinds == PairType.PLANE_MESH]).tolist(), out)

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
class Candidate:
    """Two geoms that may touch, in MuJoCo's order (lower type first); `explicit` is the index of a `<pair>` or -1."""

    geom1: int
    geom2: int
    explicit: int


def _movable(mj: mujoco.MjModel, body: int) -> bool:
    """Whether any joint moves the body: static bodies and mocap bodies (with what is welded to them) do not move."""
    return bool(mj.body_dofnum[mj.body_weldid[body]] > 0)


def _bodies_collide(mj: mujoco.MjModel, body1: int, body2: int, filter_parent: bool) -> bool:
    weld1, weld2 = int(mj.body_weldid[body1]), int(mj.body_weldid[body2])
    if weld1 == weld2 or not (_movable(mj, body1) or _movable(mj, body2)):
        return False
    if filter_parent and weld1 != 0 and weld2 != 0:
        parent1 = mj.body_weldid[mj.body_parentid[weld1]]
        parent2 = mj.body_weldid[mj.body_parentid[weld2]]
        return bool(weld1 != parent2 and weld2 != parent1)
    return True


def _geoms_of(mj: mujoco.MjModel, body: int) -> range:
    start = int(mj.body_geomadr[body])
    return range(start, start + int(mj.body_geomnum[body])) if start >= 0 else range(0)


def _ordered(mj: mujoco.MjModel, geom1: int, geom2: int) -> tuple[int, int]:
    return (geom2, geom1) if mj.geom_type[geom1] > mj.geom_type[geom2] else (geom1, geom2)


def _dynamic_pairs(mj: mujoco.MjModel, body1: int, body2: int, taken: set[frozenset[int]]) -> list[tuple[int, int]]:
    """Geom pairs of two bodies that pass `contype`/`conaffinity`, in the order of MuJoCo's contact list."""
    geoms1, geoms2 = _geoms_of(mj, body1), _geoms_of(mj, body2)
    pairs = []
    for geom1 in geoms1:
        for geom2 in geoms2:
            hit = (mj.geom_contype[geom1] & mj.geom_conaffinity[geom2]) | (
                mj.geom_contype[geom2] & mj.geom_conaffinity[geom1]
            )
            if hit and frozenset((geom1, geom2)) not in taken:
                pairs.append(_ordered(mj, geom1, geom2))
    midphase = not mj.opt.disableflags & DisableFlag.MIDPHASE
    if midphase and (len(geoms1) > 1 or len(geoms2) > 1):
        pairs.sort()  # MuJoCo walks a tree of bounding boxes, then sorts the contacts by their (swapped) geoms
    return pairs


def _exists(mj: mujoco.MjModel, geom1: int, geom2: int) -> bool:
    """Whether MuJoCo has a collision function for the types at all: none for two planes or height fields."""
    return not (mj.geom_type[geom1] <= GeomType.HFIELD and mj.geom_type[geom2] <= GeomType.HFIELD)


def candidates(mj: mujoco.MjModel) -> list[Candidate]:
    """All geom pairs that can touch in some state, sorted as MuJoCo sorts its contacts."""
    if mj.opt.disableflags & (DisableFlag.CONSTRAINT | DisableFlag.CONTACT):
        return []
    explicit: dict[int, list[int]] = {}
    for index in range(mj.npair):
        explicit.setdefault(int(mj.pair_signature[index]), []).append(index)
    excluded = {int(s) for s in mj.exclude_signature}
    filter_parent = not mj.opt.disableflags & DisableFlag.FILTERPARENT
    dynamic: dict[int, list[tuple[int, int]]] = {}
    colliding = [
        b for b in range(mj.nbody) if any(mj.geom_contype[g] or mj.geom_conaffinity[g] for g in _geoms_of(mj, b))
    ]
    for i, body1 in enumerate(colliding):
        for body2 in colliding[i + 1 :]:
            signature = (body1 << 16) + body2
            if signature in excluded or not _bodies_collide(mj, body1, body2, filter_parent):
                continue
            taken = {frozenset((int(mj.pair_geom1[k]), int(mj.pair_geom2[k]))) for k in explicit.get(signature, ())}
            dynamic[signature] = _dynamic_pairs(mj, body1, body2, taken)
    found = []
    for signature in sorted(set(explicit) | set(dynamic)):
        for index in explicit.get(signature, ()):
            geom1, geom2 = _ordered(mj, int(mj.pair_geom1[index]), int(mj.pair_geom2[index]))
            found.append(Candidate(geom1, geom2, index))
        found += [Candidate(geom1, geom2, -1) for geom1, geom2 in dynamic.get(signature, ())]
    return [c for c in found if _exists(mj, c.geom1, c.geom2)]


def pair_type(mj: mujoco.MjModel, pair: Candidate) -> PairType | None:
    """The collision function of a pair, or None where this program has none."""
    types = GeomType(int(mj.geom_type[pair.geom1])), GeomType(int(mj.geom_type[pair.geom2]))
    return PAIR_TYPES.get(types)


def unsupported_pairs(mj: mujoco.MjModel) -> list[str]:
    """A sentence for every combination of geom types that can touch in this model but is not simulated."""
    missing: dict[tuple[GeomType, GeomType], list[Candidate]] = {}
    for pair in candidates(mj):
        if pair_type(mj, pair) is None:
            types = GeomType(int(mj.geom_type[pair.geom1])), GeomType(int(mj.geom_type[pair.geom2]))
            missing.setdefault(types, []).append(pair)
    sentences = []
    for (type1, type2), pairs in sorted(missing.items()):
        first = pairs[0]
        sentence = (
            f"contacts between {type1.name.lower()} and {type2.name.lower()} geoms are not simulated: "
            f"{_geom_name(mj, first.geom1)} and {_geom_name(mj, first.geom2)}"
        )
        if len(pairs) > 1:
            sentence += f" and {len(pairs) - 1} more pair{'s' if len(pairs) > 2 else ''}"
        sentences.append(sentence)
    return sentences


def _geom_name(mj: mujoco.MjModel, geom: int) -> str:
    if name := mj.geom(geom).name:
        return f'"{name}"'
    body = mj.body(int(mj.geom_bodyid[geom])).name or "world"
    return f'geom {geom} of body "{body}"'


def _mix(mj: mujoco.MjModel, geom1: int, geom2: int) -> dict[str, Any]:
    """Contact parameters of two geoms without a `<pair>`: priority, then solmix, as `mj_contactParam`."""
    priority1, priority2 = mj.geom_priority[geom1], mj.geom_priority[geom2]
    if priority1 != priority2:
        winner = geom1 if priority1 > priority2 else geom2
        condim, friction = int(mj.geom_condim[winner]), mj.geom_friction[winner]
        solref, solimp = mj.geom_solref[winner], mj.geom_solimp[winner]
    else:
        condim = int(max(mj.geom_condim[geom1], mj.geom_condim[geom2]))
        friction = np.maximum(mj.geom_friction[geom1], mj.geom_friction[geom2])
        weight = _mix_weight(float(mj.geom_solmix[geom1]), float(mj.geom_solmix[geom2]))
        solref1, solref2 = mj.geom_solref[geom1], mj.geom_solref[geom2]
        if solref1[0] > 0 and solref2[0] > 0:
            solref = weight * solref1 + (1 - weight) * solref2
        else:
            solref = np.minimum(solref1, solref2)
        solimp = weight * mj.geom_solimp[geom1] + (1 - weight) * mj.geom_solimp[geom2]
    slide, spin, roll = friction
    return {
        "condim": condim,
        "friction": np.array([slide, slide, spin, roll, roll]),
        "solref": solref,
        "solreffriction": np.zeros(2),
        "solimp": solimp,
        "margin": mj.geom_margin[geom1] + mj.geom_margin[geom2],
        "gap": mj.geom_gap[geom1] + mj.geom_gap[geom2],
    }


def _mix_weight(solmix1: float, solmix2: float) -> float:
    if solmix1 >= MINVAL and solmix2 >= MINVAL:
        return solmix1 / (solmix1 + solmix2)
    if solmix1 < MINVAL and solmix2 < MINVAL:
        return 0.5
    return 0.0 if solmix1 < MINVAL else 1.0


def _explicit(mj: mujoco.MjModel, index: int) -> dict[str, Any]:
    return {
        "condim": int(mj.pair_dim[index]),
        "friction": mj.pair_friction[index],
        "solref": mj.pair_solref[index],
        "solreffriction": mj.pair_solreffriction[index],
        "solimp": mj.pair_solimp[index],
        "margin": mj.pair_margin[index],
        "gap": mj.pair_gap[index],
    }


def contact_parameters(mj: mujoco.MjModel, pair: Candidate) -> dict[str, Any]:
    """condim, friction (5), solref (2), solreffriction (2), solimp (5), margin and gap of the contacts of a pair."""
    values = _explicit(mj, pair.explicit) if pair.explicit >= 0 else _mix(mj, pair.geom1, pair.geom2)
    values["friction"] = np.maximum(values["friction"], MINMU)
    return values


def lower_collision(mj: mujoco.MjModel, out: dict[str, Any]) -> None:
    """Fill the pair table and the hulls of colliding meshes."""
    pairs = [(c, kind) for c in candidates(mj) if (kind := pair_type(mj, c)) is not None]
    values = [contact_parameters(mj, c) for c, _ in pairs]
    out["npair"] = len(pairs)
    out["pair_geom1"] = np.array([c.geom1 for c, _ in pairs], np.int64)
    out["pair_geom2"] = np.array([c.geom2 for c, _ in pairs], np.int64)
    out["pair_type"] = np.array([int(kind) for _, kind in pairs], np.int64)
    out["pair_slots"] = np.array([PAIR_MAX_CONTACTS[kind] for _, kind in pairs], np.int64)
    out["pair_condim"] = np.array([v["condim"] for v in values], np.int64)
    widths = {"friction": 5, "solref": 2, "solreffriction": 2, "solimp": 5, "margin": 1, "gap": 1}
    for name, width in widths.items():
        out[f"pair_{name}"] = np.array([v[name] for v in values], np.float64).reshape(len(pairs) * width)
    reach = out["pair_margin"] + out["pair_gap"]
    bound = [mj.geom_rbound[c.geom1] + mj.geom_rbound[c.geom2] for c, _ in pairs]
    out["pair_reach"] = reach
    out["pair_bound"] = np.array(bound, np.float64).reshape(len(pairs)) + reach
    out["ncon_bound"] = int(out["pair_slots"].sum())
    lower_hulls(mj, [c.geom2 for c, kind in pairs if kind == PairType.PLANE_MESH], out)

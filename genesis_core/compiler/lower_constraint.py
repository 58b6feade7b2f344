"""Constraint parameters and the static structure of the solver's Hessian.

Impedance and reference follow MuJoCo 4.0.0 (`engine_core_constraint.c`; "Solver parameters" in its documentation).
The order of elimination is fixed here, from the model alone: a lane's result must not depend on which contacts the
other lanes of its block have.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from genesis_core.layout.enums import DisableFlag, JointType
from genesis_core.layout.fields_constraint import (
    FORM_CROSS,
    FORM_ROW,
    FORM_TREE,
    FORM_WORLD,
    PANEL_BITS,
    PANEL_MAX,
    REFERENCE,
)

MINVAL = 1e-15  # mjMINVAL
MINIMP, MAXIMP = 1e-4, 0.9999  # mjMINIMP, mjMAXIMP
DEFAULT_SOLREF = (0.02, 1.0)


def reference(solref: np.ndarray, solimp: np.ndarray, timestep: float, refsafe: bool) -> list[float]:
    """K, B, d0, d1, 1/width, mid, power, 1/mid^(power-1), 1/(1-mid)^(power-1) of one constraint.

    aref = -B v - K d(r) r and R = (1 - d(r))/d(r) * diag, with d(r) = d0 + y (d1 - d0) and y of x = |r|/width:
    x^power/mid^(power-1) up to mid, 1 - (1-x)^power/(1-mid)^(power-1) above.
    """
    ref = [float(solref[0]), float(solref[1])]
    if (ref[0] > 0) != (ref[1] > 0):
        ref = list(DEFAULT_SOLREF)
    if refsafe and ref[0] > 0:
        ref[0] = max(ref[0], 2 * timestep)
    d0, d1, mid = (float(np.clip(solimp[k], MINIMP, MAXIMP)) for k in (0, 1, 3))
    width, power = max(0.0, float(solimp[2])), max(1.0, float(solimp[4]))
    if ref[0] > 0:
        stiffness = 1 / max(MINVAL, d1 * d1 * ref[0] * ref[0] * ref[1] * ref[1])
    else:
        stiffness = -ref[0] / max(MINVAL, d1 * d1)
    damping = 2 / max(MINVAL, d1 * ref[0]) if ref[1] > 0 else -ref[1] / max(MINVAL, d1)
    if d0 == d1 or width <= MINVAL:
        d0 = d1 = 0.5 * (d0 + d1)
        width = 1.0
    low, high = mid ** (1 - power), (1 - mid) ** (1 - power)
    return [stiffness, damping, d0, d1, 1 / width, mid, power, low, high]


def _movers(mj: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """(bodies with joints, index of the mover that a body moves with or -1)."""
    bodies = np.array([b for b in range(mj.nbody) if mj.body_dofnum[b] > 0], np.int64)
    index = np.full(mj.nbody, -1, np.int64)
    index[bodies] = np.arange(len(bodies))
    return bodies, np.array([index[mj.body_weldid[b]] for b in range(mj.nbody)], np.int64)


def _lower_movers(mj: mujoco.MjModel, out: dict[str, Any]) -> np.ndarray:
    bodies, mover_of = _movers(mj)
    out["tree_dofadr"] = np.asarray(mj.tree_dofadr, np.int64)
    out["tree_dofnum"] = np.asarray(mj.tree_dofnum, np.int64)
    out["nmover"] = len(bodies)
    out["mover_body"] = bodies
    out["mover_parent"] = np.array([mover_of[mj.body_parentid[b]] for b in bodies], np.int64)
    out["mover_tree"] = np.array([mj.body_treeid[b] for b in bodies], np.int64)
    out["mover_dofadr"] = np.array([mj.body_dofadr[b] for b in bodies], np.int64)
    out["mover_dofnum"] = np.array([mj.body_dofnum[b] for b in bodies], np.int64)
    out["mover_root"] = np.array([mj.body_rootid[b] for b in bodies], np.int64)
    out["dof_mover"] = np.array([mover_of[b] for b in mj.dof_bodyid], np.int64)
    return mover_of


# ------------------------------------------------------------------ panels and the order of elimination
def _split(length: int) -> list[int]:
    """Sizes of the panels of a run of dofs: whole sixes, then the rest; multiples of three suit the register tiles."""
    sizes = [PANEL_MAX] * (length // PANEL_MAX)
    rest = length % PANEL_MAX
    if rest in (1, 2) and sizes:
        sizes[-1:] = [3 + rest, 3]
    elif rest:
        sizes.append(rest)
    return sizes


def tree_panels(mj: mujoco.MjModel, tree: int) -> list[tuple[int, int]]:
    """(first dof, dofs) of the panels of a tree: unbranched runs of dofs, so that a block is full or absent."""
    start, num = int(mj.tree_dofadr[tree]), int(mj.tree_dofnum[tree])
    children = np.zeros(mj.nv + 1, np.int64)
    for i in range(start, start + num):
        children[mj.dof_parentid[i]] += 1
    panels = []
    first = start
    for i in range(start, start + num):
        last = i + 1 == start + num or mj.dof_parentid[i + 1] != i or children[i] != 1
        if last:
            for size in _split(i + 1 - first):
                panels.append((first, size))
                first += size
    return panels


def _touching_trees(mj: mujoco.MjModel, out: dict[str, Any]) -> set[tuple[int, int]]:
    """Pairs of trees whose geoms are near each other in the start pose (first keyframe, else qpos0)."""
    data = mujoco.MjData(mj)
    if mj.nkey:
        mujoco.mj_resetDataKeyframe(mj, data, 0)
    mujoco.mj_kinematics(mj, data)
    edges = set()
    for geom1, geom2 in zip(out["pair_geom1"], out["pair_geom2"], strict=True):
        tree1, tree2 = (int(mj.body_treeid[mj.geom_bodyid[g]]) for g in (geom1, geom2))
        if tree1 < 0 or tree2 < 0 or tree1 == tree2:
            continue
        reach = 1.1 * (mj.geom_rbound[geom1] + mj.geom_rbound[geom2])
        if np.linalg.norm(data.geom_xpos[geom1] - data.geom_xpos[geom2]) < reach:
            edges.add((min(tree1, tree2), max(tree1, tree2)))
    return edges


def elimination_order(mj: mujoco.MjModel, edges: set[tuple[int, int]]) -> list[int]:
    """Trees in the order of elimination: minimum degree, counted in dofs, on the graph of trees that touch."""
    near: dict[int, set[int]] = {t: set() for t in range(mj.ntree)}
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)
    size = [int(n) for n in mj.tree_dofnum]
    order = []
    left = set(near)
    while left:
        tree = min(left, key=lambda t: (sum(size[o] for o in near[t]) + size[t], t))
        for other in near[tree]:
            near[other] |= near[tree] - {other}
            near[other].discard(tree)
        order.append(tree)
        left.discard(tree)
    return order


def _lower_panels(mj: mujoco.MjModel, out: dict[str, Any]) -> None:
    order = elimination_order(mj, _touching_trees(mj, out))
    panels = [p for tree in reversed(order) for p in tree_panels(mj, tree)]
    words = max(1, -(-len(panels) // PANEL_BITS))
    dof_panel = np.zeros(mj.nv, np.int64)
    for k, (first, size) in enumerate(panels):
        dof_panel[first : first + size] = k
    mask = np.zeros((len(panels), words), np.int64)
    above_of = np.full(len(panels), -1, np.int64)
    for k, (first, _) in enumerate(panels):
        parent = int(mj.dof_parentid[first])
        if parent >= 0:
            above = int(dof_panel[parent])
            above_of[k] = above
            mask[k] = mask[above]
            mask[k, above // PANEL_BITS] |= 1 << above % PANEL_BITS
    start = np.array([p[0] for p in panels], np.int64)
    num = np.array([p[1] for p in panels], np.int64)
    depth = np.zeros(len(panels), np.int64)
    for k, above in enumerate(above_of):
        depth[k] = depth[above] + num[above] if above >= 0 else 0
    out["npanel"], out["npanelword"] = len(panels), words
    out["panel_dof"], out["panel_num"] = start, num
    out["panel_tree"] = np.array([mj.dof_treeid[p[0]] for p in panels], np.int64)
    out["panel_mask"] = mask.reshape(-1)
    out["panel_parent"] = above_of
    out["dof_panel"] = dof_panel
    out["panel_depth"] = depth
    out["nhess"] = int(sum(num[k] * num[: k + 1].sum() for k in range(len(panels))))


# ------------------------------------------------------------------ limits and contacts
def _lower_limits(mj: mujoco.MjModel, out: dict[str, Any], refsafe: bool) -> None:
    off = mj.opt.disableflags & (DisableFlag.CONSTRAINT | DisableFlag.LIMIT)
    kinds = (JointType.SLIDE, JointType.HINGE, JointType.BALL)
    joints = [j for j in range(mj.njnt) if mj.jnt_limited[j] and mj.jnt_type[j] in kinds and not off]
    ball = np.array([mj.jnt_type[j] == JointType.BALL for j in joints], bool)
    dofs = np.array([mj.jnt_dofadr[j] for j in joints], np.int64)
    timestep = float(mj.opt.timestep)
    out["nlimit"] = len(joints)
    out["nlimitjac"] = int(2 * (~ball).sum() + 3 * ball.sum())
    out["limit_kind"] = ball.astype(np.int64)
    out["limit_qpos"] = np.array([mj.jnt_qposadr[j] for j in joints], np.int64)
    out["limit_dof"] = dofs
    out["limit_range"] = np.array([mj.jnt_range[j] for j in joints], np.float64).reshape(-1)
    out["limit_margin"] = np.array([mj.jnt_margin[j] for j in joints], np.float64)
    out["limit_diag"] = np.array([mj.dof_invweight0[i] for i in dofs], np.float64)
    out["limit_reference"] = np.array(
        [reference(mj.jnt_solref[j], mj.jnt_solimp[j], timestep, refsafe) for j in joints], np.float64
    ).reshape(-1)


def _lower_pairs(mj: mujoco.MjModel, out: dict[str, Any], mover_of: np.ndarray, refsafe: bool) -> None:
    npair = int(out["npair"])
    bodies = [np.asarray(mj.geom_bodyid, np.int64)[out[f"pair_geom{s}"]] for s in (1, 2)]
    movers = np.stack([mover_of[b] for b in bodies], 1).reshape(npair, 2) if npair else np.zeros((0, 2), np.int64)
    tree = np.append(out["mover_tree"], -1)
    links: dict[tuple[int, int], int] = {}
    frictionless: dict[tuple[int, int], bool] = {}
    for (a, b), dim in zip(movers.tolist(), out["pair_condim"], strict=True):
        if a >= 0 and b >= 0:
            key = (min(a, b), max(a, b))
            links.setdefault(key, len(links))
            frictionless[key] = frictionless.get(key, True) and bool(dim == 1)
    link, form = np.full(npair, -1, np.int64), np.full(npair, FORM_WORLD, np.int64)
    for k, (a, b) in enumerate(movers.tolist()):
        if a >= 0 and b >= 0:
            key = (min(a, b), max(a, b))
            link[k] = links[key]
            if tree[a] != tree[b]:
                form[k] = FORM_CROSS
            else:
                form[k] = FORM_ROW if frictionless[key] else FORM_TREE
    out["pair_mover"] = movers.reshape(-1)
    out["pair_link"], out["pair_form"] = link, form
    solref, solimp = np.reshape(out["pair_solref"], (-1, 2)), np.reshape(out["pair_solimp"], (-1, 5))
    out["pair_reference"] = np.array(
        [reference(solref[k], solimp[k], float(mj.opt.timestep), refsafe) for k in range(npair)], np.float64
    ).reshape(npair * REFERENCE)
    weight = mj.body_invweight0[bodies[0]] + mj.body_invweight0[bodies[1]]
    out["pair_diag"] = np.asarray(weight, np.float64).reshape(-1)


def lower_constraint(mj: mujoco.MjModel, out: dict[str, Any]) -> None:
    """Fill the fields of `fields_constraint`; needs the pair table of `lower_collision` in `out`."""
    flags = mj.opt.disableflags
    refsafe = not flags & DisableFlag.REFSAFE
    out["iterations"] = int(mj.opt.iterations)
    out["ls_iterations"] = int(mj.opt.ls_iterations)
    out["tolerance"] = float(mj.opt.tolerance)
    out["ls_tolerance"] = float(mj.opt.ls_tolerance)
    out["impratio"] = max(MINVAL, float(mj.opt.impratio))
    out["meaninertia"] = float(mj.stat.meaninertia)
    out["islands"] = int(not flags & DisableFlag.ISLAND)
    out["warmstart"] = int(not flags & DisableFlag.WARMSTART)
    mover_of = _lower_movers(mj, out)
    _lower_panels(mj, out)
    _lower_limits(mj, out, refsafe)
    _lower_pairs(mj, out, mover_of, refsafe)

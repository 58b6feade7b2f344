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
    DUAL_MAX,
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
ENOUGH_ITERATIONS = 10  # with so many Newton's method reaches the minimum


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
    geoms = [np.asarray(out[f"pair_geom{side}"], np.int64) for side in (1, 2)]
    trees = [mj.body_treeid[mj.geom_bodyid[g]] for g in geoms]
    reach = 1.1 * (mj.geom_rbound[geoms[0]] + mj.geom_rbound[geoms[1]])
    near = np.linalg.norm(data.geom_xpos[geoms[0]] - data.geom_xpos[geoms[1]], axis=-1) < reach
    near &= (trees[0] >= 0) & (trees[1] >= 0) & (trees[0] != trees[1])
    pairs = np.sort(np.stack([t[near] for t in trees], 1), axis=1)
    return {(int(a), int(b)) for a, b in np.unique(pairs, axis=0)}


def elimination_order(mj: mujoco.MjModel, edges: set[tuple[int, int]]) -> list[int]:
    """Trees in the order of elimination: minimum degree, counted in dofs, on the graph of trees that touch."""
    near: dict[int, set[int]] = {t: set() for t in range(mj.ntree)}
    for a, b in edges:
        near[a].add(b)
        near[b].add(a)
    size = [int(n) for n in mj.tree_dofnum]
    cost = {t: size[t] + sum(size[o] for o in near[t]) for t in near}
    order = []
    while cost:
        tree = min(cost, key=lambda t: (cost[t], t))
        del cost[tree]
        for other in near[tree]:
            near[other] |= near[tree]
            near[other] -= {other, tree}
            cost[other] = size[other] + sum(size[o] for o in near[other])
        order.append(tree)
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
    for k, parent in enumerate(above_of.tolist()):
        depth[k] = depth[parent] + num[parent] if parent >= 0 else 0
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
    # A model that asks for few iterations wants an approximation, and gets that of the general solver.
    chains = mj.M_rownnz[dofs + np.where(ball, 2, 0)] if len(joints) else np.zeros(0, np.int64)
    alone = out["nlimitjac"] <= DUAL_MAX and mj.opt.iterations >= ENOUGH_ITERATIONS
    alone = alone and bool((chains >= np.where(ball, 3, 1)).all())
    out["ndual"] = out["nlimitjac"] if alone else 0
    out["dual_chain"] = int(chains.max(initial=1))
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
    low, high = movers.min(1), movers.max(1)
    tree = np.append(out["mover_tree"], -1)
    linked = low >= 0
    keys = low * max(1, int(out["nmover"])) + high
    names, which = np.unique(keys[linked], return_inverse=True)
    rubs = np.bincount(which, weights=out["pair_condim"][linked] > 1, minlength=len(names)) > 0
    link, form = np.full(npair, -1, np.int64), np.full(npair, FORM_WORLD, np.int64)
    link[linked] = which
    form[linked] = np.where(
        tree[low[linked]] != tree[high[linked]], FORM_CROSS, np.where(rubs[which], FORM_TREE, FORM_ROW)
    )
    out["pair_mover"] = movers.reshape(-1)
    out["pair_link"], out["pair_form"] = link, form
    rules = np.hstack([np.reshape(out["pair_solref"], (-1, 2)), np.reshape(out["pair_solimp"], (-1, 5))])
    kinds, which = np.unique(rules, axis=0, return_inverse=True)
    table = [reference(rule[:2], rule[2:], float(mj.opt.timestep), refsafe) for rule in kinds]
    out["pair_reference"] = np.array(table, np.float64).reshape(-1, REFERENCE)[which.reshape(-1)].reshape(-1)
    weight = mj.body_invweight0[bodies[0]] + mj.body_invweight0[bodies[1]]
    out["pair_diag"] = np.asarray(weight, np.float64).reshape(-1)


def lower_constraint(mj: mujoco.MjModel, out: dict[str, Any]) -> None:
    """Fill the fields of `fields_constraint`; needs the pair table of `lower_collision` in `out`."""
    flags = mj.opt.disableflags
    refsafe = not flags & DisableFlag.REFSAFE
    out["least_R"] = MINVAL
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

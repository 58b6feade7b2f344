"""Fields of the constraint stages (see `fields.py` for their meaning).

Words used here: a *mover* is a body with joints of its own (bodies welded to it count as it; -1 is the world); a
*link* is a pair of movers that can touch; a *panel* is a run of at most six dofs that is treated as one block of the
Hessian; a *component* of a contact is the normal (0) or a friction direction (1 ..); its pyramid has the rows 0 + k
and 0 - k.
"""

from __future__ import annotations

from genesis_core.layout.counters import FIRST_FREE
from genesis_core.layout.field import Field

F = Field

# slots of `count`; collision's start at FIRST_FREE
NROW = FIRST_FREE + 16  # scalar rows (joint limits) in the block's list
NLINK = FIRST_FREE + 17  # links in the block's list
NACTIVE = FIRST_FREE + 18  # contacts that still matter to an unfinished lane
NJOIN = FIRST_FREE + 19  # pairs of a tree and the smallest tree of its island
NEVAL = FIRST_FREE + 20  # line search evaluations of the block in its last step
NFACTOR = FIRST_FREE + 21  # factorizations of the block in its last step
NFILL = FIRST_FREE + 22  # entries of the Hessian's pattern with fill
NROWLIVE = FIRST_FREE + 23  # scalar rows that still matter to an unfinished lane

PANEL_MAX = 6  # widest panel
PANEL_BITS = 32  # panels per word of a set of panels
DUAL_MAX = 64  # most limit rows of a model that are solved among themselves
REFERENCE = 9  # numbers per row of pair_reference / limit_reference

# how a pair's contacts enter the Hessian
FORM_WORLD = 0  # one mover: through the composite contact inertia of the tree
FORM_ROW = 1  # two movers of one tree, frictionless only: one sparse row per contact
FORM_TREE = 2  # two movers of one tree: 6x6 contact inertia of the link over the dofs between them
FORM_CROSS = 3  # movers of different trees: 6x6 contact inertia of the link, one coupling block

MODEL_FIELDS: list[Field] = [
    F("iterations", "I", doc="cap on Newton iterations"),
    F("ls_iterations", "I", doc="cap on line search evaluations per iteration"),
    F("tolerance", "R"),
    F("ls_tolerance", "R"),
    F("impratio", "R", doc="ratio of frictional to normal impedance"),
    F("least_R", "R", doc="smallest 1/D of a row: mjMINVAL, and in single precision what its digits can bear"),
    F("meaninertia", "R", "1", "kg or kg m^2", "mean diagonal of the mass matrix at qpos0"),
    F("islands", "I", doc="1 = trees without contact between them are solved apart, as MuJoCo"),
    F("warmstart", "I", doc="1 = start from the last acceleration"),
    # --- trees and movers
    F("tree_dofadr", "i", "ntree"),
    F("tree_dofnum", "i", "ntree"),
    F("nmover", "I", doc="bodies with joints"),
    F("mover_body", "i", "nmover"),
    F("mover_parent", "i", "nmover", doc="mover that carries it, -1 = the world"),
    F("mover_tree", "i", "nmover"),
    F("mover_dofadr", "i", "nmover"),
    F("mover_dofnum", "i", "nmover"),
    F("mover_root", "i", "nmover", doc="root body of its tree: the tree's centre of mass is subtree_com of it"),
    F("dof_mover", "i", "nv"),
    # --- panels, in the order of elimination backwards: the last one is eliminated first
    F("npanel", "I"),
    F("npanelword", "I", doc="words of a set of panels"),
    F("panel_dof", "i", "npanel", doc="first dof"),
    F("panel_num", "i", "npanel", doc="dofs, 1 .. 6"),
    F("panel_tree", "i", "npanel"),
    F("panel_depth", "i", "npanel", doc="dofs that carry it: place of its first dof in a row of the mass matrix"),
    F("panel_mask", "i", "npanel*npanelword", doc="set of panels that carry it (lower numbers)"),
    F("panel_parent", "i", "npanel", doc="panel that it hangs on, -1 = none"),
    F("dof_panel", "i", "nv"),
    F("nhess", "I", doc="room for the Hessian's blocks when everything touches everything"),
    # --- joint limits
    F("nlimit", "I", doc="limited joints"),
    F("nlimitjac", "I", doc="Jacobian entries when all limits are active"),
    F("limit_kind", "i", "nlimit", doc="0 slide or hinge, 1 ball"),
    F("limit_qpos", "i", "nlimit"),
    F("limit_dof", "i", "nlimit"),
    F("limit_range", "r", "nlimit*2", "m or rad"),
    F("limit_margin", "r", "nlimit", "m or rad"),
    F("limit_diag", "r", "nlimit", "1/kg or 1/(kg m^2)", "approximate inverse inertia"),
    F(
        "limit_reference",
        "r",
        "nlimit*9",
        doc="K, B, d0, d1, 1/width, mid, power and its two factors",
    ),
    F(
        "ndual",
        "I",
        doc="rows that limits alone can make, where these are few enough to be solved among themselves; else 0",
    ),
    F("dual_chain", "I", doc="most dofs that carry a limited joint, its own included"),
    # --- contacts, per pair of geoms
    F("pair_mover", "i", "npair*2", doc="movers of geom1 and geom2, -1 = the world"),
    F("pair_link", "i", "npair", doc="link, ascending; -1 with the world"),
    F("pair_form", "i", "npair", doc="FORM_*"),
    F("pair_reference", "r", "npair*9", doc="as limit_reference"),
    F("pair_diag", "r", "npair*2", "1/kg, 1/(kg m^2)", "inverse inertia of both bodies: translation, rotation"),
]

WORK_FIELDS: list[Field] = [
    F("nefc", "r", "1", doc="constraint rows of each environment"),
    F("solver_niter", "r", "1", doc="Newton iterations of each environment"),
    # --- contacts as the solver sees them
    F("con_body1", "i", "ncon_max", doc="mover on the first side, -1 = the world"),
    F("con_body2", "i", "ncon_max", doc="mover on the second side, never the world (sides are swapped for it)"),
    F("con_tree", "i", "ncon_max", doc="tree that the contact's sums are booked on"),
    F("con_dim", "i", "ncon_max", doc="1, 3, 4 or 6"),
    F("con_slot", "i", "ncon_max", doc="place of its link in the block's list, -1 with the world"),
    F("con_form", "i", "ncon_max"),
    F("con_list", "i", "ncon_max", doc="contacts that matter to an unfinished lane"),
    F("con_dir", "r", "ncon_max*9", doc="normal, friction * tangents; zero where the contact is not active"),
    F("con_turn", "r", "ncon_max*9", doc="friction * axes of spin and roll (condim 4 and 6)"),
    F("con_arm1", "r", "ncon_max*3", "m", "contact point from the centre of mass of side 1's tree"),
    F("con_arm2", "r", "ncon_max*3", "m", "contact point from the centre of mass of side 2's tree"),
    F("con_D", "r", "ncon_max", doc="1/R of every pyramid row, 0 = not active"),
    F("con_aref", "r", "ncon_max*6", doc="reference acceleration of each component"),
    F("con_x", "r", "ncon_max*6", doc="J qacc - aref of each component"),
    F("con_v", "r", "ncon_max*6", doc="J search of each component"),
    F("con_force", "r", "ncon_max*6", "N, N m", "force on geom2 in the contact frame, as mj_contactForce"),
    # --- scalar rows
    F("row_list", "i", "nlimitjac", doc="rows that matter to an unfinished lane"),
    F("row_dof", "i", "nlimitjac", doc="dof of each Jacobian entry"),
    F("row_adr", "i", "nlimitjac"),
    F("row_num", "i", "nlimitjac"),
    F("row_tree", "i", "nlimitjac"),
    F("row_J", "r", "nlimitjac"),
    F("row_D", "r", "nlimitjac"),
    F("row_aref", "r", "nlimitjac"),
    F("row_x", "r", "nlimitjac"),
    F("row_v", "r", "nlimitjac"),
    # --- limits solved in the space of the rows (solver_limits)
    F("dual_y", "r", "ndual*dual_chain", doc="L^-T J^T of each row, along its chain of dofs"),
    F("dual_A", "r", "ndual*ndual", doc="J M^-1 J^T, lower triangle"),
    F("dual_G", "r", "ndual*ndual", doc="A + 1/D of the rows that push, then its factor"),
    F("dual_pair", "i", "ndual*ndual", doc="1 = some lane has both rows"),
    F("dual_has", "r", "ndual", doc="1 = the lane has the row"),
    F("dual_on", "r", "ndual", doc="1 = the row is taken to push"),
    F("dual_x", "r", "ndual", doc="J qacc_smooth - aref"),
    F("dual_f", "r", "ndual", "N or N m", "force of each row"),
    F("dual_qacc", "r", "nv"),
    F("dual_frc", "r", "nv"),
    F("dual_done", "r", "1", doc="1 = solved here"),
    F("dual_tries", "r", "1"),
    # --- links
    F("link_id", "i", "ncon_max"),
    F("link_body1", "i", "ncon_max"),
    F("link_body2", "i", "ncon_max"),
    F("link_form", "i", "ncon_max"),
    F("link_on", "i", "ncon_max", doc="1 = has a row in this Hessian"),
    F("link_D", "r", "ncon_max", doc="sum of its contacts' D: positive where the two sides touch"),
    F("link_K", "r", "ncon_max*21", doc="contact inertia about side 2's centre of mass"),
    F("run_dof", "i", "nv", doc="first dof of each run of dofs between the two sides of a link, descending"),
    F("run_num", "i", "nv", doc="its dofs, all of one panel"),
    F("run_sign", "i", "nv", doc="1 on side 2, -1 on side 1"),
    F("dof_J", "r", "nv*6", doc="what a link is to each dof: a Jacobian entry, or a motion"),
    # --- movers
    F("mover_on", "i", "nmover", doc="1 = carries a contact"),
    F("mover_vel", "r", "nmover*6", doc="motion about the tree's centre of mass"),
    F("mover_frc", "r", "nmover*6", doc="contact force about the tree's centre of mass"),
    F("mover_K", "r", "nmover*21", doc="contact inertia, lower triangle"),
    # --- Hessian
    F("hess_mask", "i", "npanel*npanelword", doc="set of lower panels that a panel is coupled with"),
    F("hess_num", "i", "npanel"),
    F("hess_col", "i", "npanel*npanel", doc="those panels, ascending"),
    F("panel_path", "i", "npanel*2", doc="panels on the two sides of a link"),
    F("hess_blk", "i", "npanel*npanel", doc="address of a block, rows of the higher panel, row by row"),
    F("hess", "r", "nhess", doc="H, then the factor: L^T D L by panels"),
    F("hess_dinv", "r", "nv"),
    F("hess_u", "r", "nv*6 + 36", doc="rows of the panel being eliminated, before the division by D"),
    # --- vectors
    F("grad", "r", "nv"),
    F("search", "r", "nv"),
    F("Mv", "r", "nv", doc="M search"),
    F("Mr", "r", "nv", doc="M (qacc - qacc_smooth)"),
    F("qfrc_new", "r", "nv"),
    # --- per tree and lane
    F("tree_live", "i", "ntree", doc="1 = some lane is not finished with it"),
    F("tree_label", "r", "ntree", doc="smallest tree of its island"),
    F("tree_done", "r", "ntree", doc="1 = finished"),
    F("tree_scale", "r", "ntree"),
    F("tree_iter", "r", "ntree"),
    F("tree_sum", "r", "ntree*8", doc="sums over a tree, then over its island"),
    F("join_tree", "i", "ntree*32", doc="a tree that some lane has in the island of another"),
    F("join_root", "i", "ntree*32", doc="smallest tree of that island"),
    F(
        "tree_line",
        "r",
        "ntree*8",
        doc="line search: see solver_linesearch",
    ),
]

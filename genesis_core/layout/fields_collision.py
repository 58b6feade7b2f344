"""Fields of the collision stages: the candidate pairs of the model and the contact list of a block."""

from __future__ import annotations

from enum import IntEnum

from genesis_core.layout.counters import FIRST_FREE
from genesis_core.layout.enums import GeomType as G
from genesis_core.layout.field import Field

F = Field


class PairType(IntEnum):
    """The collision function of a pair; the first geom is the one with the lower type."""

    PLANE_SPHERE = 0
    PLANE_CAPSULE = 1
    PLANE_ELLIPSOID = 2
    PLANE_CYLINDER = 3
    PLANE_BOX = 4
    PLANE_MESH = 5
    SPHERE_SPHERE = 6
    SPHERE_CAPSULE = 7
    SPHERE_CYLINDER = 8
    SPHERE_BOX = 9
    CAPSULE_CAPSULE = 10
    CAPSULE_BOX = 11
    BOX_BOX = 12


PAIR_TYPES: dict[tuple[G, G], PairType] = {
    (G.PLANE, G.SPHERE): PairType.PLANE_SPHERE,
    (G.PLANE, G.CAPSULE): PairType.PLANE_CAPSULE,
    (G.PLANE, G.ELLIPSOID): PairType.PLANE_ELLIPSOID,
    (G.PLANE, G.CYLINDER): PairType.PLANE_CYLINDER,
    (G.PLANE, G.BOX): PairType.PLANE_BOX,
    (G.PLANE, G.MESH): PairType.PLANE_MESH,
    (G.SPHERE, G.SPHERE): PairType.SPHERE_SPHERE,
    (G.SPHERE, G.CAPSULE): PairType.SPHERE_CAPSULE,
    (G.SPHERE, G.CYLINDER): PairType.SPHERE_CYLINDER,
    (G.SPHERE, G.BOX): PairType.SPHERE_BOX,
    (G.CAPSULE, G.CAPSULE): PairType.CAPSULE_CAPSULE,
    (G.CAPSULE, G.BOX): PairType.CAPSULE_BOX,
    (G.BOX, G.BOX): PairType.BOX_BOX,
}

# the most contacts that a collision function returns
PAIR_MAX_CONTACTS: dict[PairType, int] = {
    PairType.PLANE_SPHERE: 1,
    PairType.PLANE_CAPSULE: 2,
    PairType.PLANE_ELLIPSOID: 1,
    PairType.PLANE_CYLINDER: 4,
    PairType.PLANE_BOX: 4,
    PairType.PLANE_MESH: 4,
    PairType.SPHERE_SPHERE: 1,
    PairType.SPHERE_CAPSULE: 1,
    PairType.SPHERE_CYLINDER: 1,
    PairType.SPHERE_BOX: 1,
    PairType.CAPSULE_CAPSULE: 2,
    PairType.CAPSULE_BOX: 2,
    PairType.BOX_BOX: 8,
}

NNEAR = FIRST_FREE  # slot of `count`: length of near_pair
SCRATCH = 144  # items of col_tmp; the box-box manifold needs the most

MODEL_FIELDS: list[Field] = [
    # --- candidate pairs, in the order of MuJoCo's contact list
    F("npair", "I", doc="pairs of geoms that can touch"),
    F("pair_geom1", "i", "npair", doc="the geom with the lower type"),
    F("pair_geom2", "i", "npair"),
    F("pair_type", "i", "npair", doc="PairType"),
    F("pair_slots", "i", "npair", doc="most contacts of the pair"),
    F("pair_condim", "i", "npair", doc="1, 3, 4 or 6"),
    F("pair_friction", "r", "npair*5", doc="slide, slide, spin, roll, roll"),
    F("pair_solref", "r", "npair*2"),
    F("pair_solreffriction", "r", "npair*2", doc="0, 0 = as pair_solref"),
    F("pair_solimp", "r", "npair*5"),
    F("pair_margin", "r", "npair", "m", "a contact pushes where its distance is below this"),
    F("pair_gap", "r", "npair", "m", "contacts are listed up to margin + gap"),
    F("pair_reach", "r", "npair", "m", "margin + gap"),
    F(
        "pair_bound",
        "r",
        "npair",
        "m",
        "largest distance of the geoms' centres (from a plane: of the second) with a contact",
    ),
    # --- convex hulls of meshes that can touch a plane
    F("nhull", "I", doc="hulls"),
    F("nhullvert", "I", doc="vertices of all hulls"),
    F("nhullmap", "I", doc="(vertex, face) incidences of all hulls"),
    F("geom_hull", "i", "ngeom", doc="hull of a mesh geom, -1 = none"),
    F("hull_adr", "i", "nhull", doc="first vertex"),
    F("hull_num", "i", "nhull", doc="vertices that can be the lowest"),
    F("hull_vert", "r", "nhullvert*3", "m", "in the geom's frame"),
    F("hull_mapadr", "i", "nhullvert", doc="first incidence of a vertex"),
    F("hull_mapnum", "i", "nhullvert", doc="faces at a vertex"),
    F("hull_normal", "r", "nhullmap*3", doc="outward normal of the face"),
    F("hull_quad", "i", "nhullmap*3", doc="the face's other contact vertices, in order; -1 = none"),
]

WORK_FIELDS: list[Field] = [
    F("near_pair", "i", "npair", doc="pairs whose bounds overlap in some lane, ascending"),
    # --- contacts of the block: those of any lane, in pair order, then as MuJoCo numbers the contacts of a pair
    F("con_pair", "i", "ncon_max"),
    F("con_geom1", "i", "ncon_max"),
    F("con_geom2", "i", "ncon_max"),
    F("con_active", "r", "ncon_max", doc="1 in lanes that have the contact (distance <= margin + gap), else 0"),
    F("con_dist", "r", "ncon_max", "m", "negative = overlap; 0 in lanes without the contact"),
    F("con_pos", "r", "ncon_max*3", "m", "midpoint of the two surfaces, world frame; 0 in lanes without the contact"),
    F("con_frame", "r", "ncon_max*9", doc="rows: normal from geom1 to geom2, two tangents; finite in every lane"),
    F("col_tmp", "r", f"{SCRATCH}", doc="scratch of one pair"),
]

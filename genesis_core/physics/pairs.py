"""Narrow phase: the collision function of every near pair, in pair order."""

from genesis_core.lanes.segment import segment
from genesis_core.layout.counters import NCON, NEED_CON, OVERFLOW
from genesis_core.layout.fields_collision import NNEAR, PairType
from genesis_core.physics.narrowphase.box_box import box_box
from genesis_core.physics.narrowphase.capsule import capsule_capsule
from genesis_core.physics.narrowphase.capsule_box import capsule_box
from genesis_core.physics.narrowphase.mesh import plane_mesh
from genesis_core.physics.narrowphase.plane import (
    plane_box,
    plane_capsule,
    plane_cylinder,
    plane_ellipsoid,
    plane_sphere,
)
from genesis_core.physics.narrowphase.sphere import sphere_box, sphere_capsule, sphere_cylinder, sphere_sphere

PLANE_SPHERE = int(PairType.PLANE_SPHERE)
PLANE_CAPSULE = int(PairType.PLANE_CAPSULE)
PLANE_CYLINDER = int(PairType.PLANE_CYLINDER)
PLANE_BOX = int(PairType.PLANE_BOX)
PLANE_MESH = int(PairType.PLANE_MESH)
SPHERE_SPHERE = int(PairType.SPHERE_SPHERE)
SPHERE_CAPSULE = int(PairType.SPHERE_CAPSULE)
SPHERE_CYLINDER = int(PairType.SPHERE_CYLINDER)
SPHERE_BOX = int(PairType.SPHERE_BOX)
CAPSULE_CAPSULE = int(PairType.CAPSULE_CAPSULE)
CAPSULE_BOX = int(PairType.CAPSULE_BOX)
BOX_BOX = int(PairType.BOX_BOX)


@segment("md")
def narrowphase(m, d):
    """Writes the contact list of the block from near_pair."""
    c = 0
    for k in range(d.count[NNEAR]):
        p = d.near_pair[k]
        if c + m.pair_slots[p] > d.ncon_max:
            need = c
            for q in range(k, d.count[NNEAR]):
                need += m.pair_slots[d.near_pair[q]]
            d.count[NEED_CON] = need
            d.count[OVERFLOW] = 1
            d.count[NCON] = 0
            return
        kind = m.pair_type[p]
        # every function returns the number of slots that it used; the most frequent kinds come first
        if kind == CAPSULE_CAPSULE:
            c += capsule_capsule(m, d, p, c)
        elif kind == PLANE_CAPSULE:
            c += plane_capsule(m, d, p, c)
        elif kind == PLANE_SPHERE:
            c += plane_sphere(m, d, p, c)
        elif kind == SPHERE_CAPSULE:
            c += sphere_capsule(m, d, p, c)
        elif kind == SPHERE_SPHERE:
            c += sphere_sphere(m, d, p, c)
        elif kind == BOX_BOX:
            c += box_box(m, d, p, c)
        elif kind == PLANE_BOX:
            c += plane_box(m, d, p, c)
        elif kind == CAPSULE_BOX:
            c += capsule_box(m, d, p, c)
        elif kind == SPHERE_BOX:
            c += sphere_box(m, d, p, c)
        elif kind == PLANE_MESH:
            c += plane_mesh(m, d, p, c)
        elif kind == PLANE_CYLINDER:
            c += plane_cylinder(m, d, p, c)
        elif kind == SPHERE_CYLINDER:
            c += sphere_cylinder(m, d, p, c)
        else:
            c += plane_ellipsoid(m, d, p, c)
    d.count[NCON] = c

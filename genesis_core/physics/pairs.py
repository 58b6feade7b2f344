"""Collision of a block: broad phase, then the collision function of every near pair."""

from genesis_core.lanes import inline, kernel
from genesis_core.layout.counters import NCON, NEED_CON, OVERFLOW
from genesis_core.layout.fields_collision import NNEAR, PairType
from genesis_core.physics.broadphase import broadphase
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
PLANE_ELLIPSOID = int(PairType.PLANE_ELLIPSOID)
PLANE_CYLINDER = int(PairType.PLANE_CYLINDER)
PLANE_BOX = int(PairType.PLANE_BOX)
PLANE_MESH = int(PairType.PLANE_MESH)
SPHERE_SPHERE = int(PairType.SPHERE_SPHERE)
SPHERE_CAPSULE = int(PairType.SPHERE_CAPSULE)
SPHERE_CYLINDER = int(PairType.SPHERE_CYLINDER)
SPHERE_BOX = int(PairType.SPHERE_BOX)
CAPSULE_CAPSULE = int(PairType.CAPSULE_CAPSULE)
CAPSULE_BOX = int(PairType.CAPSULE_BOX)


@inline
def _plane_pair(m, d, p, c, kind):
    if kind == PLANE_SPHERE:
        return plane_sphere(m, d, p, c)
    if kind == PLANE_CAPSULE:
        return plane_capsule(m, d, p, c)
    if kind == PLANE_ELLIPSOID:
        return plane_ellipsoid(m, d, p, c)
    if kind == PLANE_CYLINDER:
        return plane_cylinder(m, d, p, c)
    if kind == PLANE_BOX:
        return plane_box(m, d, p, c)
    return plane_mesh(m, d, p, c)


@inline
def _pair(m, d, p, c, kind):
    """Writes the contacts of a pair from slot c on; the number of slots used."""
    if kind <= PLANE_MESH:
        return _plane_pair(m, d, p, c, kind)
    if kind == SPHERE_SPHERE:
        return sphere_sphere(m, d, p, c)
    if kind == SPHERE_CAPSULE:
        return sphere_capsule(m, d, p, c)
    if kind == CAPSULE_CAPSULE:
        return capsule_capsule(m, d, p, c)
    if kind == SPHERE_CYLINDER:
        return sphere_cylinder(m, d, p, c)
    if kind == SPHERE_BOX:
        return sphere_box(m, d, p, c)
    if kind == CAPSULE_BOX:
        return capsule_box(m, d, p, c)
    return box_box(m, d, p, c)


@kernel
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
        c += _pair(m, d, p, c, m.pair_type[p])
    d.count[NCON] = c


@kernel
def collision(m, d):
    """Contacts of the block at the current poses of its geoms (geom_xpos, geom_xmat)."""
    broadphase(m, d)
    narrowphase(m, d)

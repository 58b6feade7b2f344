"""The pairs of geoms that may touch: bounding spheres, and half-spaces for planes."""

from genesis_core.lanes import any_, dot3, inline, kernel, load3, param, sub3
from genesis_core.layout.fields_collision import NNEAR, PairType
from genesis_core.physics.narrowphase.common import axis_z

LAST_PLANE = int(PairType.PLANE_MESH)  # the pair types up to here have a plane


@inline
def _near(m, d, p, centre1, plane):
    """Mask of the lanes in which the bounds of a pair overlap; never where a position is NaN."""
    dif = sub3(load3(d.geom_xpos, 3 * m.pair_geom2[p]), centre1)
    bound = param(m.pair_bound, p)
    if plane:
        return dot3(dif, axis_z(d, m.pair_geom1[p])) <= bound
    return dot3(dif, dif) <= bound * bound


@kernel
def broadphase(m, d):
    """Writes near_pair: the pairs whose bounds overlap in any lane, in pair order."""
    found = 0
    for p in range(m.npair):
        centre = load3(d.geom_xpos, 3 * m.pair_geom1[p])
        if any_(_near(m, d, p, centre, m.pair_type[p] <= LAST_PLANE)):
            d.near_pair[found] = p
            found += 1
    d.count[NNEAR] = found

"""Constraint rows: joint limits and contacts with pyramidal friction cones.

Formulas of MuJoCo 4.0.0 (`engine_core_constraint.c`): aref = -B v - K d r, R = (1 - d)/d * diag, D = 1/R with the
impedance d(r), r = distance - margin. A contact of dimension n has the rows normal +- friction_k * direction_k, k = 1
.. n-1, which share one D; its *components* (normal, friction_k * direction_k) are stored instead, so row k is
component 0 +- component k.

No Jacobian is built for contacts. A component's velocity is its direction dotted with the relative velocity of the
contact point, which follows from the motions of the two bodies; a component's force acts on the two bodies at that
point.
"""

from __future__ import annotations

from genesis_core.lanes import (
    add3,
    any_,
    cross,
    dot3,
    fabs,
    inline,
    kernel,
    lane,
    load,
    load3,
    load4,
    maximum,
    minimum,
    norm3,
    param,
    pow_,
    quat_normalize,
    quat_to_vel,
    scale3,
    select,
    store,
    store3,
    sub3,
    tiny,
)
from genesis_core.lanes.segment import segment
from genesis_core.layout.counters import NCON, NEFC
from genesis_core.layout.fields_constraint import FORM_WORLD, NLINK, NROW


@inline
def impedance(table, k, r):
    """d(r) of row k of a reference table; r = distance - margin."""
    x = minimum(fabs(r) * param(table, 9 * k + 4), 1.0)
    low = x <= param(table, 9 * k + 5)
    z = select(low, x, 1.0 - x)
    power = table[9 * k + 6]
    if power == 2.0:
        z = z * z
    elif power != 1.0:
        z = pow_(z, power)
    y = select(low, z * param(table, 9 * k + 7), 1.0 - z * param(table, 9 * k + 8))
    d0 = param(table, 9 * k + 2)
    return d0 + y * (param(table, 9 * k + 3) - d0)


@inline
def add_row(m, d, k, r, act, adr, num):
    """Closes the limit row whose Jacobian entries adr .. adr+num-1 are written; r = distance - margin of limit k."""
    row = d.count[NROW]
    zero = lane(d, 0.0)
    imp = impedance(m.limit_reference, k, r)
    R = maximum((1.0 - imp) * param(m.limit_diag, k) / imp, lane(d, m.least_R))
    store(d.row_D, row, select(act, 1.0 / R, zero))
    vel = zero
    for j in range(adr, adr + num):
        vel = vel + load(d.row_J, j) * load(d.qvel, d.row_dof[j])
    aref = -param(m.limit_reference, 9 * k + 1) * vel - param(m.limit_reference, 9 * k) * imp * r
    store(d.row_aref, row, select(act, aref, zero))
    d.row_adr[row] = adr
    d.row_num[row] = num
    d.row_tree[row] = m.dof_treeid[d.row_dof[adr]]
    d.count[NROW] = row + 1


@kernel
def make_limits(m, d):
    """Rows of the joint limits that any lane has reached. Returns the number of rows of each lane."""
    d.count[NROW] = 0
    adr = 0
    one = lane(d, 1.0)
    zero = lane(d, 0.0)
    nefc = zero
    for k in range(m.nlimit):
        q = m.limit_qpos[k]
        i = m.limit_dof[k]
        margin = param(m.limit_margin, k)
        if m.limit_kind[k] == 0:
            for side in range(2):
                if side == 0:
                    dist = load(d.qpos, q) - param(m.limit_range, 2 * k)
                    sign = one
                else:
                    dist = param(m.limit_range, 2 * k + 1) - load(d.qpos, q)
                    sign = -one
                act = dist < margin
                if any_(act):
                    d.row_dof[adr] = i
                    store(d.row_J, adr, sign)
                    add_row(m, d, k, dist - margin, act, adr, 1)
                    nefc = nefc + select(act, one, zero)
                    adr += 1
        else:
            v = quat_to_vel(quat_normalize(load4(d.qpos, q)))
            angle = norm3(v)
            dist = maximum(param(m.limit_range, 2 * k), param(m.limit_range, 2 * k + 1)) - angle
            act = dist < margin
            if any_(act):
                axis = scale3(v, -1.0 / maximum(angle, tiny(angle)))
                for j in range(3):
                    d.row_dof[adr + j] = i + j
                store3(d.row_J, adr, axis)
                add_row(m, d, k, dist - margin, act, adr, 3)
                nefc = nefc + select(act, one, zero)
                adr += 3
    return nefc


@inline
def contact_inverse_mass(m, d, p, dim, r):
    """1/R of the rows of a contact of pair p (MuJoCo matches the friction impedance of the elliptic cone)."""
    imp = impedance(m.pair_reference, p, r)
    tran = param(m.pair_diag, 2 * p)
    if dim == 1:
        R = maximum((1.0 - imp) * tran / imp, lane(d, m.least_R))
    else:
        mu = param(m.pair_friction, 5 * p)
        R = maximum((1.0 - imp) * (tran + mu * mu * tran) / imp, lane(d, m.least_R))
        R = 2.0 * mu * mu * (R / m.impratio)
    return 1.0 / R, imp


@inline
def point_velocity(vel, k, arm):
    """Velocity of a point of the body whose motion about its tree's centre of mass is item k of `vel`."""
    return add3(load3(vel, k + 3), cross(load3(vel, k), arm))


@inline
def contact_frame(m, d, c, p, dim, act, sign):
    """Directions and arms of contact c, zero in the lanes that do not have it."""
    zero = lane(d, 0.0)
    for k in range(min(dim, 3)):
        s = lane(d, sign)
        if k > 0:
            s = s * param(m.pair_friction, 5 * p + k - 1)
        s = select(act, s, zero)
        for x in range(3):
            store(d.con_dir, 9 * c + 3 * k + x, select(act, load(d.con_frame, 9 * c + 3 * k + x), zero) * s)
    for k in range(3, dim):
        s = select(act, param(m.pair_friction, 5 * p + k - 1) * sign, zero)
        for x in range(3):
            e = select(act, load(d.con_frame, 9 * c + 3 * (k - 3) + x), zero)
            store(d.con_turn, 9 * c + 3 * (k - 3) + x, e * s)


@inline
def contact_arm(m, d, c, b, act):
    """Contact point from the centre of mass of the tree of mover b, zero in the lanes that do not have it."""
    zero = lane(d, 0.0)
    r = sub3(load3(d.con_pos, 3 * c), load3(d.subtree_com, 3 * m.mover_root[b]))
    return select(act, r[0], zero), select(act, r[1], zero), select(act, r[2], zero)


@inline
def contact_aref(m, d, c, p, dim, imp, r, act):
    """Reference acceleration of every component, from the present velocities."""
    zero = lane(d, 0.0)
    K = param(m.pair_reference, 9 * p)
    B = param(m.pair_reference, 9 * p + 1)
    b1 = d.con_body1[c]
    v2 = 6 * m.mover_body[d.con_body2[c]]
    u = point_velocity(d.cvel, v2, load3(d.con_arm2, 3 * c))
    w = load3(d.cvel, v2)
    if b1 >= 0:
        v1 = 6 * m.mover_body[b1]
        u = sub3(u, point_velocity(d.cvel, v1, load3(d.con_arm1, 3 * c)))
        w = sub3(w, load3(d.cvel, v1))
    a = -B * dot3(load3(d.con_dir, 9 * c), u) - K * imp * r
    store(d.con_aref, 6 * c, select(act, a, zero))
    for k in range(1, min(dim, 3)):
        store(d.con_aref, 6 * c + k, select(act, -B * dot3(load3(d.con_dir, 9 * c + 3 * k), u), zero))
    for k in range(3, dim):
        a = -B * dot3(load3(d.con_turn, 9 * c + 3 * (k - 3)), w)
        store(d.con_aref, 6 * c + k, select(act, a, zero))


@kernel
def make_contacts(m, d):
    """Rows of the block's contacts. Returns the number of rows of each lane."""
    zero = lane(d, 0.0)
    nefc = zero
    for c in range(d.count[NCON]):
        p = d.con_pair[c]
        dim = m.pair_condim[p]
        b1 = m.pair_mover[2 * p]
        b2 = m.pair_mover[2 * p + 1]
        sign = 1.0
        if b2 < b1:  # the world and the lower mover come first, whatever the order of the geoms
            b1, b2 = b2, b1
            sign = -1.0
        d.con_dim[c] = dim
        d.con_form[c] = m.pair_form[p]
        d.con_slot[c] = -1
        d.con_body1[c] = b1
        d.con_body2[c] = max(b2, 0)
        d.con_tree[c] = m.mover_tree[max(b2, 0)]
        r = load(d.con_dist, c) - param(m.pair_margin, p)
        act = (load(d.con_active, c) > 0.5) & (r < 0.0)
        if b2 < 0 or b1 == b2:  # an explicit pair of geoms that no joint moves against each other
            act = act & (r > 0.0)
        r = select(act, r, zero)
        inverse, imp = contact_inverse_mass(m, d, p, dim, r)
        store(d.con_D, c, select(act, inverse, zero))
        contact_frame(m, d, c, p, dim, act, sign)
        store3(d.con_arm2, 3 * c, contact_arm(m, d, c, max(b2, 0), act))
        if b1 >= 0:
            store3(d.con_arm1, 3 * c, contact_arm(m, d, c, b1, act))
        contact_aref(m, d, c, p, dim, imp, r, act)
        rows = 1.0 if dim == 1 else 2.0 * (dim - 1)
        nefc = nefc + select(act, lane(d, rows), zero)
    return nefc


@kernel
def make_links(m, d):
    """The block's list of links, in ascending order of their number: the order must not depend on who asked first."""
    n = 0
    ncon = d.count[NCON]
    for c in range(ncon):
        p = d.con_pair[c]
        if d.con_form[c] == FORM_WORLD:
            continue
        link = m.pair_link[p]
        k = n
        while k > 0 and d.link_id[k - 1] > link:
            k -= 1
        if k > 0 and d.link_id[k - 1] == link:
            continue
        for j in range(n, k, -1):
            d.link_id[j] = d.link_id[j - 1]
        d.link_id[k] = link
        n += 1
    d.count[NLINK] = n
    for k in range(n):
        store(d.link_D, k, lane(d, 0.0))
    k = 0
    for c in range(ncon):
        if d.con_form[c] == FORM_WORLD:
            continue
        link = m.pair_link[d.con_pair[c]]
        while d.link_id[k] < link:
            k += 1
        while d.link_id[k] > link:
            k -= 1
        d.con_slot[c] = k
        d.link_body1[k] = d.con_body1[c]
        d.link_body2[k] = d.con_body2[c]
        d.link_form[k] = d.con_form[c]
        store(d.link_D, k, load(d.link_D, k) + load(d.con_D, c))


@segment("md")
def make(m, d):
    """Builds all constraint rows from the contact list and the state; leaves `nefc`, the rows of each environment."""
    nefc = make_limits(m, d)
    nefc = nefc + make_contacts(m, d)
    make_links(m, d)
    store(d.nefc, 0, nefc)
    d.count[NEFC] = d.count[NROW] + d.count[NCON]

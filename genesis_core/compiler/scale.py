"""A robot file made larger or smaller: lengths by the factor, masses by its cube, inertias by its fifth power."""

from __future__ import annotations

import mujoco
import numpy as np


def scale_spec(spec: mujoco.MjSpec, factor: float) -> None:
    """Scales an editable model in place about its origin.

    Positions, sizes, meshes and height fields, ranges of slides, masses (factor^3) and inertias (factor^5). Gains and
    force limits stay as they are.
    """
    for body in spec.bodies:
        _multiply(body, "pos", factor)
        if body.explicitinertial:
            _multiply(body, "ipos", factor)
            body.mass *= factor**3
            _multiply(body, "inertia", factor**5)
            _multiply(body, "fullinertia", factor**5)
    for geom in spec.geoms:
        _multiply(geom, "pos", factor)
        _multiply(geom, "size", factor)
        _multiply(geom, "fromto", factor)
        if not np.isnan(geom.mass):
            geom.mass *= factor**3
    for site in spec.sites:
        _multiply(site, "pos", factor)
        _multiply(site, "size", factor)
        _multiply(site, "fromto", factor)
    for element in (*spec.cameras, *spec.lights, *spec.frames):
        _multiply(element, "pos", factor)
    for joint in spec.joints:
        _multiply(joint, "pos", factor)
        if joint.type == mujoco.mjtJoint.mjJNT_SLIDE:
            _multiply(joint, "range", factor)
            joint.ref *= factor
            joint.springref *= factor
    for mesh in spec.meshes:
        _multiply(mesh, "scale", factor)
        _multiply(mesh, "refpos", factor)
    for field in spec.hfields:
        _multiply(field, "size", factor)
    for tendon in spec.tendons:
        _multiply(tendon, "range", factor)
        _multiply(tendon, "springlength", factor)
    for equality in spec.equalities:
        _scale_equality(equality, factor)
    _scale_keys(spec, factor)


def _multiply(element: object, name: str, factor: float) -> None:
    value = np.asarray(getattr(element, name), float)
    if not np.isnan(value).all():
        setattr(element, name, value * factor)


def _scale_equality(equality: mujoco.MjsEquality, factor: float) -> None:
    """Lengths among the numbers of a constraint: anchors, and the relative position of a weld."""
    count = {mujoco.mjtEq.mjEQ_CONNECT: 3, mujoco.mjtEq.mjEQ_WELD: 6}.get(equality.type, 0)
    if count and equality.objtype == mujoco.mjtObj.mjOBJ_BODY:
        data = np.array(equality.data, float)
        data[:count] *= factor
        equality.data = data


def _scale_keys(spec: mujoco.MjSpec, factor: float) -> None:
    """Lengths inside keyframes: free joints' positions and slides."""
    adr = 0
    kinds = [j.type for j in spec.joints]
    for kind in kinds:
        free, slide = kind == mujoco.mjtJoint.mjJNT_FREE, kind == mujoco.mjtJoint.mjJNT_SLIDE
        count = 3 if free else 1 if slide else 0
        for key in spec.keys:
            qpos = list(key.qpos)
            if count and len(qpos) >= adr + count:
                qpos[adr : adr + count] = [x * factor for x in qpos[adr : adr + count]]
                key.qpos = qpos
        adr += 7 if free else 4 if kind == mujoco.mjtJoint.mjJNT_BALL else 1

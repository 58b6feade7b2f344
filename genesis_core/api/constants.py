"""Closed sets under the names that Genesis scripts use."""

from __future__ import annotations

from enum import IntEnum


class GEOM_TYPE(IntEnum):
    PLANE = 0
    SPHERE = 1
    ELLIPSOID = 2
    CYLINDER = 3
    CAPSULE = 4
    BOX = 5
    MESH = 6
    TERRAIN = 7


class JOINT_TYPE(IntEnum):
    FIXED = 0
    REVOLUTE = 1
    PRISMATIC = 2
    SPHERICAL = 3
    FREE = 4


class CTRL_MODE(IntEnum):
    POSITION = 0
    VELOCITY = 1
    FORCE = 2


class integrator(IntEnum):
    Euler = 0
    implicitfast = 1
    approximate_implicitfast = 2


class constraint_solver(IntEnum):
    CG = 0
    Newton = 1


class friction_cone(IntEnum):
    pyramidal = 0
    elliptic = 1

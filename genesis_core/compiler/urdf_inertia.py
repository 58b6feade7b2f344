"""Masses and inertias of URDF links: valid ones as they are, others repaired with a warning that names the link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from genesis_core.compiler.pose import IDENTITY, matrix_to_quat, multiply
from genesis_core.compiler.urdf_xml import Link, read_origin, scalar

if TYPE_CHECKING:
    from genesis_core.compiler.urdf_shapes import Shapes

_MIN = 1e-14  # MuJoCo refuses moving bodies with less than mjMINVAL = 1e-15
_ROUNDING = 1e-6  # triangle inequality: printed numbers miss it by this share without being wrong
_DENSITY = 1000.0  # [kg/m^3] of a link whose mass nobody wrote down
_FALLBACK_MASS, _FALLBACK_RADIUS = 0.01, 0.02  # [kg], [m] of a moving link without any shape


@dataclass
class Inertia:
    """Mass [kg], place and axes of the inertial frame in the link's frame, moments about them [kg m^2]."""

    mass: float
    pos: np.ndarray
    quat: np.ndarray
    diagonal: np.ndarray


def checked_inertia(link: Link, shapes: Shapes, warnings: list[str]) -> Inertia | None:
    """The link's <inertial>, repaired where it is no possible one; None where its mass is zero or missing."""
    node = link.inertial
    assert node is not None
    pos, quat = read_origin(node)
    mass_node = node.find("mass")
    mass = scalar(mass_node, "value", 0.0) if mass_node is not None else 0.0
    place = f"link '{link.name}' (line {node.line})"
    if mass < 0:
        warnings.append(f"{place}: the mass {mass:g} is negative, {-mass:g} kg is used")
        mass = -mass
    if mass < _MIN:
        return None
    tensor_node = node.find("inertia")
    if tensor_node is None:
        diagonal = _box_inertia(mass, shapes.half_extents(link))
        warnings.append(f"{place}: no <inertia>; that of a box of its size is used")
        return Inertia(mass, pos, quat, diagonal)
    xx, yy, zz = (scalar(tensor_node, k, 0.0) for k in ("ixx", "iyy", "izz"))
    xy, xz, yz = (scalar(tensor_node, k, 0.0) for k in ("ixy", "ixz", "iyz"))
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    values, axes = np.linalg.eigh(tensor)
    if np.linalg.det(axes) < 0:
        axes[:, 0] = -axes[:, 0]
    place = f"link '{link.name}' (line {tensor_node.line})"
    if values.max() < _MIN:
        diagonal = _box_inertia(mass, shapes.half_extents(link))
        warnings.append(f"{place}: the inertia is zero; that of a box of its size is used")
        return Inertia(mass, pos, quat, diagonal)
    repaired = _possible(values)
    change = float(np.abs(repaired - values).max() / values.max())
    if change > _ROUNDING:
        was, now = (", ".join(f"{v:.3g}" for v in x) for x in (values, repaired))
        warnings.append(f"{place}: no body can have the principal inertias {was}; {now} are used")
    if np.count_nonzero(tensor - np.diag(np.diagonal(tensor))) == 0 and change == 0.0:
        return Inertia(mass, pos, quat, np.diagonal(tensor).copy())
    return Inertia(mass, pos, multiply(quat, matrix_to_quat(axes)), repaired)


def _possible(values: np.ndarray) -> np.ndarray:
    """The nearest principal moments that a body can have: positive, and none larger than the sum of the others.

    `values` ascend. Only what must change is changed: moments that are too small grow.
    """
    out = np.maximum(values, values[-1] * 1e-6)
    lack = out[2] * (1 + 1e-12) - out[0] - out[1]
    if lack > 0:
        out[0] += lack / 2
        out[1] += lack / 2
        out = np.minimum(out, out[2])
        out[0] = max(out[0], out[2] * (1 + 1e-12) - out[1])
    return out


def guessed_inertia(link: Link, shapes: Shapes, warnings: list[str]) -> Inertia:
    """Mass and inertia of a moving link that has none: from the size of its shapes, at the density of water."""
    half = shapes.half_extents(link)
    node = link.inertial or link.node
    if half is None:
        mass = _FALLBACK_MASS
        diagonal = np.full(3, 0.4 * mass * _FALLBACK_RADIUS**2)
        middle = np.zeros(3)
        how = "it has no shape either"
    else:
        mass = float(max(np.prod(2 * half) * 0.5 * _DENSITY, 1e-3))  # shapes fill about half of their box
        diagonal = _box_inertia(mass, half)
        middle = shapes.middle(link)
        how = "taken from the size of its shapes"
    warnings.append(f"link '{link.name}' (line {node.line}) moves but has no mass: {mass:.3g} kg is used ({how})")
    return Inertia(mass, middle, np.array(IDENTITY), diagonal)


def _box_inertia(mass: float, half: np.ndarray | None) -> np.ndarray:
    """Principal moments of a box with half edges `half`; of a small ball where the size is unknown."""
    if half is None:
        return np.full(3, 0.4 * mass * _FALLBACK_RADIUS**2)
    x, y, z = np.maximum(half, 1e-3) ** 2
    return mass / 3 * np.array([y + z, x + z, x + y])

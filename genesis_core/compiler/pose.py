"""Rotations and poses while a scene is put together: quaternions w-x-y-z, metres."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

IDENTITY = (1.0, 0.0, 0.0, 0.0)


def euler_to_quat(degrees: Sequence[float]) -> np.ndarray:
    """Quaternion of turns about the fixed x, then y, then z axis (Genesis' and URDF's order) [degree]."""
    return rpy_to_quat([math.radians(x) for x in degrees])


def rpy_to_quat(rpy: Sequence[float]) -> np.ndarray:
    """Quaternion of roll, pitch, yaw about fixed axes [rad]."""
    (cr, sr), (cp, sp), (cy, sy) = ((math.cos(a / 2), math.sin(a / 2)) for a in rpy)
    return np.array(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ]
    )


def multiply(a: Sequence[float] | np.ndarray, b: Sequence[float] | np.ndarray) -> np.ndarray:
    """Product of two quaternions: first b's rotation, then a's."""
    w, x, y, z = a
    return np.array(
        [
            w * b[0] - x * b[1] - y * b[2] - z * b[3],
            w * b[1] + x * b[0] + y * b[3] - z * b[2],
            w * b[2] - x * b[3] + y * b[0] + z * b[1],
            w * b[3] + x * b[2] - y * b[1] + z * b[0],
        ]
    )


def matrix(quat: Sequence[float] | np.ndarray) -> np.ndarray:
    """Rotation matrix (3, 3) of a quaternion of any length."""
    w, x, y, z = np.asarray(quat, float) / np.linalg.norm(quat)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def matrix_to_quat(m: np.ndarray) -> np.ndarray:
    """Quaternion of a rotation matrix (Shepperd's choice of the largest component)."""
    t = np.array([1 + m[0, 0] + m[1, 1] + m[2, 2], 1 + m[0, 0] - m[1, 1] - m[2, 2],
                  1 - m[0, 0] + m[1, 1] - m[2, 2], 1 - m[0, 0] - m[1, 1] + m[2, 2]])  # fmt: skip
    k = int(np.argmax(t))
    rows = (
        (t[0], m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]),
        (m[2, 1] - m[1, 2], t[1], m[0, 1] + m[1, 0], m[0, 2] + m[2, 0]),
        (m[0, 2] - m[2, 0], m[0, 1] + m[1, 0], t[2], m[1, 2] + m[2, 1]),
        (m[1, 0] - m[0, 1], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1], t[3]),
    )
    q = np.array(rows[k]) / (2 * math.sqrt(t[k]))
    return q if q[0] >= 0 else -q


def look_at(pos: Sequence[float], target: Sequence[float]) -> np.ndarray:
    """Quaternion of a camera at `pos` that looks along its own -z at `target`, +y up as far as world z allows."""
    back = np.subtract(pos, target).astype(float)
    back /= np.linalg.norm(back)
    right = np.cross((0.0, 0.0, 1.0), back)
    if np.linalg.norm(right) < 1e-9:
        right = np.array([1.0, 0.0, 0.0])
    right /= np.linalg.norm(right)
    return matrix_to_quat(np.stack([right, np.cross(back, right), back], axis=1))


def turn_to(axis: Sequence[float] | np.ndarray) -> np.ndarray:
    """The shortest rotation from +z to an axis."""
    a = np.asarray(axis, float) / np.linalg.norm(axis)
    q = np.array([1.0 + a[2], -a[1], a[0], 0.0])
    if q[0] < 1e-9:
        return np.array([0.0, 1.0, 0.0, 0.0])
    return q / np.linalg.norm(q)

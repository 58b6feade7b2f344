"""Rotations for scripts: quaternions w-x-y-z, NumPy arrays or torch tensors in, the same kind out.

All functions work on the last axis and broadcast over the others. `euler_to_quat` takes degrees (extrinsic x-y-z),
`xyz_to_quat` and `quat_to_xyz` radians unless told otherwise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Array = Any  # numpy.ndarray or torch.Tensor


def _module(value: Any) -> Any:
    if type(value).__module__.startswith("torch"):
        import torch

        return torch
    return np


def _array(value: Any) -> Any:
    return value if _module(value) is not np else np.asarray(value, dtype=np.result_type(np.float32, np.asarray(value)))


def _stack(xp: Any, parts: list[Any]) -> Any:
    parts = list(xp.broadcast_arrays(*parts)) if xp is np else list(xp.broadcast_tensors(*parts))
    return xp.stack(parts, -1)


def _cross(a: Any, b: Any) -> Any:
    xp = _module(a)
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return _stack(xp, [ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])


def xyz_to_quat(xyz: Array, rpy: bool = False, degrees: bool = False) -> Array:
    """Angles about x, y, z (…, 3) to a quaternion (…, 4).

    rpy=True: the axes stay fixed (roll, pitch, yaw; q = qz qy qx); False: they turn along (q = qx qy qz).
    """
    xyz = _array(xyz)
    xp = _module(xyz)
    half = xyz * (math.pi / 360.0 if degrees else 0.5)
    c, s = xp.cos(half), xp.sin(half)
    cx, cy, cz = c[..., 0], c[..., 1], c[..., 2]
    sx, sy, sz = s[..., 0], s[..., 1], s[..., 2]
    k = 1.0 if rpy else -1.0
    return _stack(
        xp,
        [
            cx * cy * cz + k * sx * sy * sz,
            sx * cy * cz - k * cx * sy * sz,
            cx * sy * cz + k * sx * cy * sz,
            cx * cy * sz - k * sx * sy * cz,
        ],
    )


def euler_to_quat(euler_xyz: Array) -> Array:
    """Extrinsic x-y-z angles in degrees (…, 3) to a quaternion (…, 4)."""
    return xyz_to_quat(euler_xyz, rpy=True, degrees=True)


def quat_to_xyz(quat: Array, rpy: bool = False, degrees: bool = False) -> Array:
    """The inverse of `xyz_to_quat`; the middle angle lies in [-90, 90] degrees."""
    q = _array(quat)
    xp = _module(q)
    w, x, y, z = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    k = 1.0 if rpy else -1.0
    atan2 = xp.arctan2 if xp is np else xp.atan2
    arcsin = xp.arcsin if xp is np else xp.asin
    out = _stack(
        xp,
        [
            atan2(2 * (w * x + k * y * z), 1 - 2 * (x * x + y * y)),
            arcsin(xp.clip(2 * (w * y - k * x * z), -1.0, 1.0)),
            atan2(2 * (w * z + k * x * y), 1 - 2 * (y * y + z * z)),
        ],
    )
    return out * (180.0 / math.pi) if degrees else out


def inv_quat(quat: Array) -> Array:
    """The opposite rotation of a unit quaternion."""
    q = _array(quat)
    return _stack(_module(q), [q[..., 0], -q[..., 1], -q[..., 2], -q[..., 3]])


def normalize(x: Array, eps: float = 1e-12) -> Array:
    """Vectors of length 1 along the last axis (those shorter than eps stay as they are)."""
    x = _array(x)
    length = (x * x).sum(-1)[..., None] ** 0.5
    xp = _module(x)
    return x / xp.where(length > eps, length, xp.ones_like(length))


def transform_quat_by_quat(v: Array, u: Array) -> Array:
    """The rotation v followed by u: the Hamilton product u v."""
    v, u = _array(v), _array(u)
    a, b, c, d = u[..., 0], u[..., 1], u[..., 2], u[..., 3]
    w, x, y, z = v[..., 0], v[..., 1], v[..., 2], v[..., 3]
    return _stack(
        _module(v),
        [
            a * w - b * x - c * y - d * z,
            a * x + b * w + c * z - d * y,
            a * y - b * z + c * w + d * x,
            a * z + b * y - c * x + d * w,
        ],
    )


def transform_by_quat(v: Array, quat: Array) -> Array:
    """The vector v (…, 3) turned by the quaternion (…, 4)."""
    v, q = _array(v), _array(quat)
    w, axis = q[..., :1], q[..., 1:]
    t = 2 * _cross(axis, v)
    return v + w * t + _cross(axis, t)


def inv_transform_by_quat(v: Array, quat: Array) -> Array:
    """The vector v turned back by the quaternion."""
    return transform_by_quat(v, inv_quat(quat))


def axis_angle_to_quat(angle: Array, axis: Array) -> Array:
    """A turn by `angle` [rad] (…) about the unit vector `axis` (…, 3)."""
    axis = _array(axis)
    xp = _module(axis)
    half = xp.as_tensor(angle)[..., None] * 0.5 if xp is not np else np.asarray(angle)[..., None] * 0.5
    s = xp.sin(half) * axis
    return _stack(xp, [xp.cos(half)[..., 0] + 0 * s[..., 0], s[..., 0], s[..., 1], s[..., 2]])


def quat_to_R(quat: Array) -> Array:
    """The rotation matrix (…, 3, 3) of a unit quaternion."""
    q = _array(quat)
    xp = _module(q)
    w, x, y, z = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return xp.stack([xp.stack(row, -1) for row in rows], -2)


def R_to_quat(R: Array) -> Array:
    """The unit quaternion with w >= 0 of a rotation matrix (…, 3, 3).

    The eigenvector of the largest eigenvalue of Bar-Itzhack's matrix (J. Guidance 23-6, 2000): no case distinction.
    """
    R = _array(R)
    xp = _module(R)
    m = lambda i, j: R[..., i, j]  # noqa: E731
    rows = [
        [m(0, 0) + m(1, 1) + m(2, 2), m(2, 1) - m(1, 2), m(0, 2) - m(2, 0), m(1, 0) - m(0, 1)],
        [m(2, 1) - m(1, 2), m(0, 0) - m(1, 1) - m(2, 2), m(0, 1) + m(1, 0), m(0, 2) + m(2, 0)],
        [m(0, 2) - m(2, 0), m(0, 1) + m(1, 0), m(1, 1) - m(0, 0) - m(2, 2), m(1, 2) + m(2, 1)],
        [m(1, 0) - m(0, 1), m(0, 2) + m(2, 0), m(1, 2) + m(2, 1), m(2, 2) - m(0, 0) - m(1, 1)],
    ]
    K = xp.stack([xp.stack(row, -1) for row in rows], -2)
    quat = xp.linalg.eigh(K)[1][..., :, -1]
    sign = xp.where(quat[..., :1] < 0, -xp.ones_like(quat[..., :1]), xp.ones_like(quat[..., :1]))
    return quat * sign

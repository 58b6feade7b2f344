"""A camera that looks at a point, as MuJoCo's free camera: azimuth and elevation in degrees, distance in metres.

Azimuth 90, elevation 0 looks along +y; the eye is at lookat - distance * forward. Matrices are row-major and act on
columns.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

MIN_DISTANCE = 0.02  # [m]
MAX_ELEVATION = 89.9  # [degree]


class Camera:
    """Position and lens."""

    def __init__(
        self,
        lookat: ArrayLike = (0.0, 0.0, 0.5),
        distance: float = 4.0,
        azimuth: float = 135.0,
        elevation: float = -20.0,
        fovy: float = 42.0,
    ) -> None:
        self.lookat = np.array(lookat, np.float64)
        self.distance = float(distance)
        self.azimuth = float(azimuth)
        self.elevation = float(elevation)
        self.fovy = float(fovy)

    def copy(self) -> Camera:
        return Camera(self.lookat.copy(), self.distance, self.azimuth, self.elevation, self.fovy)

    @classmethod
    def from_pose(cls, pos: ArrayLike, quat: ArrayLike, fovy: float, distance: float = 1.0) -> Camera:
        """The camera at `pos` that looks along -z of `quat` (w-x-y-z); its roll is dropped."""
        w, x, y, z = np.asarray(quat, np.float64) / np.linalg.norm(np.asarray(quat))
        forward = -np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
        azimuth = math.degrees(math.atan2(forward[1], forward[0]))
        elevation = math.degrees(math.asin(float(np.clip(forward[2], -1, 1))))
        return cls(np.asarray(pos, np.float64) + distance * forward, distance, azimuth, elevation, fovy)

    # ------------------------------------------------------------------ geometry
    @property
    def forward(self) -> np.ndarray:
        """Unit vector from the eye to the look-at point."""
        a, e = math.radians(self.azimuth), math.radians(self.elevation)
        return np.array([math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)])

    @property
    def right(self) -> np.ndarray:
        a = math.radians(self.azimuth)
        return np.array([math.sin(a), -math.cos(a), 0.0])

    @property
    def up(self) -> np.ndarray:
        return np.cross(self.right, self.forward)

    @property
    def eye(self) -> np.ndarray:
        """Position of the eye, world frame [m]."""
        return self.lookat - self.distance * self.forward

    def view(self) -> np.ndarray:
        """World to camera, (4, 4); the camera looks along its -z."""
        out = np.eye(4)
        out[0, :3], out[1, :3], out[2, :3] = self.right, self.up, -self.forward
        out[:3, 3] = -out[:3, :3] @ self.eye
        return out

    def clip_planes(self, scene_radius: float = 10.0) -> tuple[float, float]:
        """Near and far distance that show the scene and keep depth precise."""
        near = max(0.005, min(0.05 * self.distance, 0.1 * self.distance + 0.01))
        return near, self.distance + 4 * scene_radius + 100.0

    def projection(self, aspect: float, scene_radius: float = 10.0) -> np.ndarray:
        """Camera to clip space, (4, 4)."""
        near, far = self.clip_planes(scene_radius)
        f = 1 / math.tan(math.radians(self.fovy) / 2)
        out = np.zeros((4, 4))
        out[0, 0], out[1, 1] = f / aspect, f
        out[2, 2], out[2, 3] = (far + near) / (near - far), 2 * far * near / (near - far)
        out[3, 2] = -1
        return out

    def ray(self, x: float, y: float, width: float, height: float) -> tuple[np.ndarray, np.ndarray]:
        """Eye and unit direction through a pixel (origin at the upper left)."""
        t = math.tan(math.radians(self.fovy) / 2)
        sx = (2 * x / width - 1) * t * width / height
        sy = (1 - 2 * y / height) * t
        direction = self.forward + sx * self.right + sy * self.up
        return self.eye, direction / np.linalg.norm(direction)

    # ------------------------------------------------------------------ motion
    def orbit(self, dx: float, dy: float) -> None:
        """Turns around the look-at point by fractions of the window's height."""
        self.azimuth = (self.azimuth - 180 * dx + 180) % 360 - 180
        self.elevation = float(np.clip(self.elevation - 180 * dy, -MAX_ELEVATION, MAX_ELEVATION))

    def pan(self, dx: float, dy: float) -> None:
        """Moves in the picture plane by fractions of the window's height: what is under the pointer stays there."""
        scale = 2 * self.distance * math.tan(math.radians(self.fovy) / 2)
        self.lookat += (-dx * self.right + dy * self.up) * scale

    def zoom(self, amount: float) -> None:
        """Comes nearer (amount > 0) or goes away, exponentially."""
        self.distance = float(np.clip(self.distance * math.exp(-amount), MIN_DISTANCE, 1e5))

    def frame(self, center: ArrayLike, radius: float) -> None:
        """Shows a ball of the scene as large as it fits."""
        self.lookat = np.array(center, np.float64)
        self.distance = max(MIN_DISTANCE, float(radius) / math.sin(math.radians(self.fovy) / 2))

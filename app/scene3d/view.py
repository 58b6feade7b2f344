"""Pure geometry of the view: where the camera starts, what it follows, where a body is."""

from __future__ import annotations

import math

import numpy as np

from genesis_core.layout.scene import SceneBundle
from genesis_core.render.camera import Camera

AUTHORED = 16 / 9  # aspect of the pictures that scenes are composed for
FILL = 0.72  # of the distance at which the whole ball of the scene would be seen


def home_camera(
    bundle: SceneBundle, center: np.ndarray, radius: float, one_radius: float, aspect: float = AUTHORED
) -> Camera:
    """The scene's own view: its angles, and its distance unless so few are shown that one can come nearer.

    Narrow windows see less at the sides than the picture that the distance was chosen for: they step back.
    """
    azimuth, elevation, distance = bundle.default_camera
    distance *= max(1.0, AUTHORED / max(0.2, aspect)) ** 0.5
    camera = Camera(center, azimuth=azimuth, elevation=elevation)
    fit(camera, center, radius)
    if distance > 0 and radius <= 1.05 * one_radius:
        camera.distance = distance
    elif distance > 0:
        camera.distance = max(min(camera.distance, distance), 0.5 * camera.distance)
    return camera


def fit(camera: Camera, center: np.ndarray, radius: float) -> None:
    """Looks at the middle of everything shown from where it fills the picture."""
    camera.frame(center, radius)
    camera.distance *= FILL


def body_pose(bundle: SceneBundle, rows: np.ndarray, body: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Position (3,) and orientation (3, 3) of a body from its geoms' rows (ngeom, 12); None where it has no geom."""
    geoms = np.flatnonzero(bundle.geom_bodyid == body)
    if not len(geoms):
        return None
    g = geoms[0]
    row = rows[g].reshape(3, 4).astype(np.float64)
    turn = row[:, :3] @ rotation(bundle.geom_quat[g]).T
    return row[:, 3] - turn @ bundle.geom_pos[g], turn


def rotation(quat: np.ndarray) -> np.ndarray:
    """Matrix of a unit quaternion w-x-y-z."""
    w, x, y, z = (float(v) for v in quat)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def followed_body(bundle: SceneBundle) -> int:
    """The body that a camera follows when none is selected: the first that moves and can be seen, 0 = none."""
    for body in range(1, bundle.nbody):
        if bundle.body_weldid[body] != 0 and np.any(bundle.geom_bodyid == body):
            return body
    return 0


def on_plane(camera: Camera, x: float, y: float, width: float, height: float, through: np.ndarray) -> np.ndarray:
    """Where the ray of a pixel meets the plane through a point that is parallel to the picture."""
    eye, direction = camera.ray(x, y, width, height)
    along = float((through - eye) @ camera.forward) / max(1e-6, float(direction @ camera.forward))
    return eye + direction * min(along, math.inf)


def to_pixel(camera: Camera, point: np.ndarray, width: float, height: float) -> tuple[float, float] | None:
    """Where a point of the drawing is seen, origin at the upper left; None behind the eye."""
    x, y, _, w = camera.projection(width / max(1.0, height)) @ camera.view() @ np.append(point, 1.0)
    if w <= 0:
        return None
    return (x / w + 1) / 2 * width, (1 - y / w) / 2 * height

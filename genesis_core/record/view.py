"""What a recorded picture shows: tiles, one environment each, or the environments side by side in one world."""

from __future__ import annotations

import difflib
import math

import numpy as np

from genesis_core.errors import OptionError
from genesis_core.layout.enums import GeomType
from genesis_core.layout.grid import env_offsets
from genesis_core.layout.scene import CameraInfo, SceneBundle
from genesis_core.render.camera import Camera
from genesis_core.render.offscreen import OffscreenRenderer, tile

LAYOUTS = ("tiles", "world")
SLACK = 0.35  # part of the scene's radius that its middle may move before the free camera follows
MIN_RADIUS = 0.05  # [m]
LABEL_SIZE = 15  # [pixel]
LABELLED = 100  # more tiles than this are too small for labels


class PoseCamera(Camera):
    """A camera with any orientation, roll included."""

    def __init__(self, pos: np.ndarray, rotation: np.ndarray, fovy: float) -> None:
        """rotation (3, 3): camera to world; the camera looks along its -z, +y is up."""
        self._rotation = rotation
        super().__init__(lookat=pos - rotation[:, 2], distance=1.0, fovy=fovy)

    def copy(self) -> PoseCamera:
        return PoseCamera(self.eye, self._rotation, self.fovy)

    @property
    def forward(self) -> np.ndarray:
        return -self._rotation[:, 2]

    @property
    def right(self) -> np.ndarray:
        return self._rotation[:, 0]

    @property
    def up(self) -> np.ndarray:
        return self._rotation[:, 1]


class CameraChoice:
    """What `--camera` asked for: a camera of the scene, or angles and a distance."""

    def __init__(self, info: CameraInfo | None, angles: tuple[float, float, float]) -> None:
        self.info = info
        self.angles = angles  # azimuth, elevation [degree], distance [m], 0 = as far as the scene needs

    @property
    def bodies(self) -> list[int]:
        """Bodies whose poses place the camera: its own and, for a camera that looks at one, its target."""
        if self.info is None or (self.info.body == 0 and self.info.target < 0):
            return []
        return [self.info.body] + ([self.info.target] if self.info.target >= 0 else [])


def choose_camera(text: str, bundle: SceneBundle) -> CameraChoice:
    """Reads a camera's name or "azimuth,elevation[,distance]"; "" is the scene's default view."""
    text = text.strip()
    azimuth, elevation, _ = bundle.default_camera
    if not text:
        return CameraChoice(None, (azimuth, elevation, 0.0))
    for camera in bundle.cameras:
        if camera.name == text:
            return CameraChoice(camera, (0.0, 0.0, 0.0))
    parts = text.split(",")
    try:
        numbers = [float(p) for p in parts]
    except ValueError:
        names = [c.name for c in bundle.cameras if c.name]
        near = difflib.get_close_matches(text, names, 1)
        have = f"cameras of the scene: {', '.join(names)}" if names else "the scene has no cameras"
        hint = f"did you mean '{near[0]}'?" if near else f'{have}; or write "azimuth,elevation,distance"'
        raise OptionError(f"no camera is named '{text}'", hint=hint) from None
    if len(numbers) not in (2, 3) or not all(map(math.isfinite, numbers)):
        raise OptionError(f"camera '{text}' is not azimuth,elevation,distance", hint="for example 135,-20,3")
    distance = numbers[2] if len(numbers) == 3 else 0.0
    if distance < 0 or abs(numbers[1]) > 90:
        raise OptionError(f"camera '{text}': the distance is positive, the elevation from -90 to 90")
    return CameraChoice(None, (numbers[0], numbers[1], distance))


def moving_geoms(bundle: SceneBundle) -> np.ndarray:
    """Indices of the geoms that can move; all bounded ones where nothing can."""
    bounded = ~np.isin(bundle.geom_type, (int(GeomType.PLANE), int(GeomType.HFIELD)))
    moving = bounded & (np.asarray(bundle.body_weldid)[bundle.geom_bodyid] != 0)
    return np.flatnonzero(moving if moving.any() else bounded)


def start_ball(bundle: SceneBundle, geoms: np.ndarray) -> tuple[np.ndarray, float]:
    """Centre and radius of a ball around geoms at the initial state."""
    if not len(geoms):
        return np.array(bundle.stat_center, float), max(MIN_RADIUS, float(bundle.stat_extent) / 2)
    reach = np.array([_reach(bundle, int(g)) for g in geoms])[:, None]
    pos = np.asarray(bundle.geom_pos0)[geoms]
    low, high = (pos - reach).min(axis=0), (pos + reach).max(axis=0)
    return (low + high) / 2, max(MIN_RADIUS, float(np.linalg.norm(high - low)) / 2)


def _reach(bundle: SceneBundle, geom: int) -> float:
    """Radius around a geom's centre that holds it."""
    size = np.asarray(bundle.geom_size[geom], float)
    match int(bundle.geom_type[geom]):
        case GeomType.SPHERE:
            return float(size[0])
        case GeomType.CAPSULE:
            return float(size[0] + size[1])
        case GeomType.CYLINDER:
            return float(np.hypot(size[0], size[1]))
        case GeomType.ELLIPSOID:
            return float(size.max())
    mesh = int(bundle.geom_dataid[geom])
    if mesh >= 0 and len(bundle.meshes[mesh].vertices):
        return float(np.linalg.norm(bundle.meshes[mesh].vertices, axis=1).max())
    return float(np.linalg.norm(size))


class StudioView:
    """Draws the recorded environments of one moment. Belongs to the thread that makes it."""

    def __init__(
        self,
        bundle: SceneBundle,
        envs: list[int],
        size: tuple[int, int],
        camera: CameraChoice,
        layout: str = "tiles",
        env_spacing: tuple[float, float] = (1.0, 1.0),
        labels: bool = True,
    ) -> None:
        self.envs = envs
        self.camera = camera
        self.layout = layout
        self._geoms = moving_geoms(bundle)
        self._start_center, self._radius = start_ball(bundle, self._geoms)
        self._offsets = env_offsets(len(envs), env_spacing)
        self._renderer = OffscreenRenderer(bundle, *size)
        self._size = size
        wanted = labels and layout == "tiles" and 1 < len(envs) <= LABELLED
        self._labels = [_label(str(env)) for env in envs] if wanted else []
        self._cameras = [self._free_camera(self._radius) for _ in envs]
        self._world = self._world_camera()

    @property
    def info(self) -> dict[str, str]:
        """Vendor, renderer and version of OpenGL."""
        return self._renderer.info

    def _free_camera(self, radius: float) -> Camera:
        azimuth, elevation, distance = self.camera.angles
        camera = Camera(azimuth=azimuth, elevation=elevation)
        camera.frame(self._start_center, radius)
        if distance > 0:
            camera.distance = distance
        return camera

    def _world_camera(self) -> Camera:
        """A camera that has all environments in the picture: the floor's far corners may touch its edges."""
        spread = float(np.linalg.norm(self._offsets[:, :2].max(axis=0))) if len(self._offsets) else 0.0
        return self._free_camera(self._radius + 0.75 * spread)

    def draw(self, rows: np.ndarray, bodies: np.ndarray | None = None) -> np.ndarray:
        """The picture, (height, width, 3) uint8. rows (n, ngeom, 12); bodies (n, k, 7) poses of `camera.bodies`."""
        if self.layout == "world":
            world = self._world
            if self.camera.info is not None:
                world = self._model_camera(rows, bodies, 0)
            return self._renderer.render(world, rows, self._offsets)
        if self.camera.info is not None:
            cameras = [self._model_camera(rows, bodies, i) for i in range(len(rows))]
        else:
            cameras = [self._follow(i, rows[i]) for i in range(len(rows))]
        picture = self._renderer.render_tiles(cameras, rows)
        for cell, label in enumerate(self._labels):
            x, y, _, height = tile(cell, len(rows), *self._size)
            _blend(picture, label, x + 8, self._size[1] - y - height + 6)
        return picture

    def _follow(self, i: int, rows: np.ndarray) -> Camera:
        """The free camera of a tile; it moves along when the scene's middle leaves the middle of the picture."""
        camera = self._cameras[i]
        if len(self._geoms):
            middle = rows.reshape(-1, 3, 4)[self._geoms, :, 3].mean(axis=0)
            if np.isfinite(middle).all():
                away = middle - camera.lookat
                distance = float(np.linalg.norm(away))
                if distance > SLACK * self._radius:
                    camera.lookat += away * (1 - SLACK * self._radius / distance)
        return camera

    def _model_camera(self, rows: np.ndarray, bodies: np.ndarray | None, i: int) -> Camera:
        info = self.camera.info
        assert info is not None
        pos, rotation = np.array(info.pos, float), quat_matrix(np.array(info.quat, float))
        if bodies is None or not self.camera.bodies:
            return PoseCamera(pos, rotation, info.fovy)
        own = bodies[i, 0].astype(float)
        turn = quat_matrix(own[3:])
        if info.mode == "track":
            return PoseCamera(own[:3] + pos, rotation, info.fovy)
        eye = own[:3] + turn @ pos
        if info.mode == "target" and info.target >= 0:
            return PoseCamera(eye, _looking(bodies[i, 1, :3].astype(float) - eye), info.fovy)
        return PoseCamera(eye, turn @ rotation, info.fovy)

    def close(self) -> None:
        self._renderer.close()


def quat_matrix(quat: np.ndarray) -> np.ndarray:
    """Rotation matrix of a quaternion w-x-y-z."""
    w, x, y, z = quat / max(1e-12, float(np.linalg.norm(quat)))
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _looking(direction: np.ndarray) -> np.ndarray:
    """Orientation of a camera that looks along `direction` with z up."""
    length = float(np.linalg.norm(direction))
    back = -direction / length if length > 1e-9 else np.array([0.0, 0.0, 1.0])
    right = np.cross([0.0, 0.0, 1.0], back)
    size = float(np.linalg.norm(right))
    right = right / size if size > 1e-6 else np.array([1.0, 0.0, 0.0])
    return np.stack([right, np.cross(back, right), back], axis=1)


def _label(text: str) -> np.ndarray:
    """How much of each pixel is ink and how much is shadow, (2, height, width) 0..1."""
    from PIL import Image, ImageDraw, ImageFilter, ImageFont

    font = ImageFont.load_default(LABEL_SIZE)
    left, top, right, bottom = font.getbbox(text)
    size = (int(right - left) + 8, int(bottom - top) + 8)
    ink = Image.new("L", size)
    ImageDraw.Draw(ink).text((4 - left, 4 - top), text, fill=255, font=font)
    shadow = ink.filter(ImageFilter.GaussianBlur(2))
    return np.stack([np.asarray(ink), np.minimum(255, np.asarray(shadow, np.int32) * 2)]).astype(np.float32) / 255


def _blend(picture: np.ndarray, label: np.ndarray, x: int, y: int) -> None:
    """White ink on a dark shadow, in place; what reaches beyond the picture is cut off."""
    part = picture[y : y + label.shape[1], x : x + label.shape[2]]
    ink, shadow = label[0, : part.shape[0], : part.shape[1], None], label[1, : part.shape[0], : part.shape[1], None]
    part[:] = (part * (1 - 0.6 * shadow) * (1 - ink) + 235 * ink).astype(np.uint8)

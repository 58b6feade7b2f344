"""Shapes and files that become entities: `scene.add_entity(gs.morphs.MJCF(file="robot.xml"))`.

Lengths in metres, euler angles in degrees (extrinsic x-y-z), quaternions w-x-y-z.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from genesis_core.api.elsewhere import absent_class
from genesis_core.api.options import Number, Options, Vec2, Vec3, Vec4, _to_tuple
from genesis_core.api.session import current

_HULLS = "meshes collide as their convex hulls"
_NO_TET = "it is for soft bodies"
Scale = Annotated[float | tuple[float, float, float], BeforeValidator(_to_tuple)]


class Morph(Options):
    """What all morphs share. quat or euler, not both."""

    INERT: ClassVar[Mapping[str, str]] = {"enable_custom_vverts": "vertices follow their bodies"}

    pos: Vec3 = (0.0, 0.0, 0.0)
    euler: Vec3 | None = None
    quat: Vec4 | None = None
    offset_pos: Vec3 = (0.0, 0.0, 0.0)
    offset_euler: Vec3 | None = None
    offset_quat: Vec4 | None = None
    visualization: bool = True
    collision: bool = True
    enable_custom_vverts: bool = False

    def __init__(self, **data: Any) -> None:
        current()  # as in Genesis, morphs are made after gs.init()
        super().__init__(**data)

    @model_validator(mode="after")
    def _consistent(self) -> Morph:
        if self.euler is not None and self.quat is not None:
            raise ValueError("give euler or quat, not both")
        if self.quat is not None and not np.linalg.norm(self.quat) > 1e-8:
            raise ValueError(f"quat {self.quat} has no length")
        if not self.visualization and not self.collision:
            raise ValueError("visualization and collision cannot both be False: the entity would have no geometry")
        for name in ("pos", "euler", "quat"):
            value = getattr(self, name)
            if value is not None and not np.isfinite(value).all():
                raise ValueError(f"{name} {value} is not finite")
        return self

    @property
    def rotation(self) -> tuple[float, float, float, float]:
        """The pose's unit quaternion (w, x, y, z)."""
        from genesis_core.api.geom import euler_to_quat

        if self.quat is not None:
            unit = np.asarray(self.quat) / np.linalg.norm(self.quat)
        elif self.euler is not None:
            unit = euler_to_quat(np.asarray(self.euler))
        else:
            unit = np.array([1.0, 0.0, 0.0, 0.0])
        w, x, y, z = (float(v) for v in unit)
        return (w, x, y, z)


class Plane(Morph):
    """The ground: fixed, its normal along z of its frame."""

    INERT: ClassVar[Mapping[str, str]] = {
        **Morph.INERT,
        "tile_size": "the renderer chooses the grid",
        "plane_size": "planes are endless",
    }

    normal: Vec3 = (0.0, 0.0, 1.0)
    plane_size: Vec2 = (1e3, 1e3)
    tile_size: Vec2 = (1.0, 1.0)
    fixed: bool = True
    contype: int = 0xFFFF
    conaffinity: int = 0xFFFF


class _Primitive(Morph):
    INERT: ClassVar[Mapping[str, str]] = {
        **Morph.INERT,
        "batch_fixed_verts": "fixed entities stand at the same place in every environment",
        **dict.fromkeys(("order", "mindihedral", "minratio", "nobisect", "quality", "maxvolume", "verbose"), _NO_TET),
        "force_retet": _NO_TET,
    }

    fixed: bool = False
    contype: int = 0xFFFF
    conaffinity: int = 0xFFFF
    batch_fixed_verts: bool = True
    order: int = 1
    mindihedral: int = 10
    minratio: Number = 1.1
    nobisect: bool = True
    quality: bool = True
    maxvolume: Number = -1.0
    verbose: int = 0
    force_retet: bool = False


class Box(_Primitive):
    """size = full edge lengths, or the corners lower and upper (then pos must not be given)."""

    size: Vec3 | None = None
    lower: Vec3 | None = None
    upper: Vec3 | None = None

    @model_validator(mode="after")
    def _box(self) -> Box:
        corners = self.lower is not None and self.upper is not None
        if (self.size is None) == (not corners) or (self.lower is None) != (self.upper is None):
            raise ValueError("give either size, or lower and upper")
        if corners and "pos" in self.model_fields_set:
            raise ValueError("pos follows from lower and upper: leave it out")
        if any(not edge > 0 for edge in self.edges):
            raise ValueError(f"the edges {self.edges} must be positive")
        return self

    @property
    def edges(self) -> tuple[float, float, float]:
        if self.size is not None:
            return self.size
        assert self.lower is not None and self.upper is not None
        x, y, z = (b - a for a, b in zip(self.lower, self.upper, strict=True))
        return (x, y, z)

    @property
    def center(self) -> tuple[float, float, float]:
        if self.size is not None:
            return self.pos
        assert self.lower is not None and self.upper is not None
        x, y, z = ((a + b) / 2 for a, b in zip(self.lower, self.upper, strict=True))
        return (x, y, z)


class Sphere(_Primitive):
    radius: Number = Field(0.5, gt=0)


class Cylinder(_Primitive):
    """Axis along z; height is the whole length."""

    radius: Number = Field(0.5, gt=0)
    height: Number = Field(1.0, gt=0)


class Capsule(_Primitive):
    """Axis along z; height is the length of the straight part (Genesis has no capsule morph: this one is ours)."""

    radius: Number = Field(0.5, gt=0)
    height: Number = Field(1.0, gt=0)


class _FileMorph(Morph):
    INERT: ClassVar[Mapping[str, str]] = {
        **Morph.INERT,
        **dict.fromkeys(
            (
                "convexify",
                "decimate",
                "decimate_face_num",
                "decimate_aggressiveness",
                "watertighten",
                "decompose_object_error_threshold",
                "decompose_robot_error_threshold",
                "coacd_options",
            ),
            _HULLS,
        ),
        "align": "frames stay where the file puts them",
        "batch_fixed_verts": "fixed entities stand at the same place in every environment",
        "file_meshes_are_zup": "the file's own convention is used",
        "recompute_inertia": "inertias are those of the file, repaired with a warning where they are invalid",
    }

    file: str | Path = ""
    scale: Scale = 1.0
    convexify: bool | None = None
    decimate: bool | None = None
    decimate_face_num: int = 500
    decimate_aggressiveness: int = 2
    watertighten: int = 5
    decompose_object_error_threshold: Number = 0.15
    decompose_robot_error_threshold: Number = float("inf")
    coacd_options: Any = None
    recompute_inertia: bool = False
    align: bool | None = None
    file_meshes_are_zup: bool | None = True
    batch_fixed_verts: bool = False

    @model_validator(mode="after")
    def _has_file(self) -> _FileMorph:
        if not str(self.file):
            raise ValueError("file is missing")
        return self

    @property
    def path(self) -> Path:
        """The file, looked for in the working directory and then among the bundled models."""
        given = Path(self.file).expanduser()
        if given.exists() or given.is_absolute():
            return given
        from importlib.resources import files

        for root in ("models", "."):
            bundled = Path(str(files("resources"))) / root / given
            if bundled.is_file():
                return bundled
        return given


class Mesh(_FileMorph):
    """A mesh file; collides as its convex hull."""

    INERT: ClassVar[Mapping[str, str]] = {
        **_FileMorph.INERT,
        "group_by_material": _HULLS,
        "merge_submeshes_for_collision": _HULLS,
    }

    fixed: bool = False
    contype: int = 0xFFFF
    conaffinity: int = 0xFFFF
    group_by_material: bool = False
    merge_submeshes_for_collision: bool = False
    file_meshes_are_zup: bool | None = None


class MJCF(_FileMorph):
    """A MuJoCo model. pos/quat move the file's world; default_armature goes to hinges and slides that have none."""

    default_armature: Number | None = Field(0.1, ge=0)
    exclude_ground_plane: bool = False


class URDF(_FileMorph):
    """A URDF robot; the base floats unless fixed."""

    INERT: ClassVar[Mapping[str, str]] = {
        **_FileMorph.INERT,
        "links_to_keep": "links are found by name whether merged or not",
        "prioritize_urdf_material": "the file's materials are used",
    }

    fixed: bool = False
    merge_fixed_links: bool = True
    links_to_keep: Annotated[tuple[str, ...], BeforeValidator(_to_tuple)] = ()
    prioritize_urdf_material: bool = False
    default_armature: Number | None = Field(0.1, ge=0)
    xacro_args: dict[str, Any] = Field(default_factory=dict)


_LATER = "this version has Plane, Box, Sphere, Capsule, Cylinder, Mesh, MJCF and URDF"
Terrain = absent_class("morphs", "Terrain", _LATER)
Drone = absent_class("morphs", "Drone", _LATER)
USD = absent_class("morphs", "USD", _LATER)
MeshSet = absent_class("morphs", "MeshSet", _LATER)
Nowhere = absent_class("morphs", "Nowhere", _LATER)

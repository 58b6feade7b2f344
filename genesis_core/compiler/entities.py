"""What a scene is made of, as data: entities and simulation options, checked strictly."""

from __future__ import annotations

import math
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator, model_validator

Vec2 = tuple[float, float]
Vec3 = tuple[float, float, float]
Quat = tuple[float, float, float, float]
Rgba = Annotated[tuple[float, ...], Field(min_length=3, max_length=4)]
Positive = Annotated[float, Field(gt=0, le=1e9)]
NotNegative = Annotated[float, Field(ge=0, le=1e12)]

EntityType = Literal["plane", "box", "sphere", "capsule", "cylinder", "ellipsoid", "mesh", "mjcf", "urdf"]

_POSE = frozenset(("name", "type", "prefix", "pos", "quat", "euler"))
_LOOK = frozenset(("rgba", "material", "group"))
_TOUCH = frozenset(("friction", "condim", "contype", "conaffinity", "priority", "solref", "solimp", "margin"))
_SURFACE = _LOOK | _TOUCH
_SOLID = _POSE | _SURFACE | {"fixed", "mass", "density"}
ALLOWED: dict[str, frozenset[str]] = {
    "plane": _POSE | _SURFACE | {"size"},
    "box": _SOLID | {"size"},
    "sphere": _SOLID | {"radius"},
    "capsule": _SOLID | {"radius", "height"},
    "cylinder": _SOLID | {"radius", "height"},
    "ellipsoid": _SOLID | {"size"},
    "mesh": _SOLID | {"file", "scale", "up"},
    "mjcf": _POSE | {"file", "text", "fixed", "scale", "keep_ground", "keep_lights", "armature"},
    "urdf": _POSE
    | {"file", "text", "fixed", "scale", "merge_fixed_links", "armature", "actuators", "kp", "kv", "self_collision"},
}
REQUIRED: dict[str, tuple[str, ...]] = {
    "box": ("size",),
    "sphere": ("radius",),
    "capsule": ("radius", "height"),
    "cylinder": ("radius", "height"),
    "ellipsoid": ("size",),
    "mesh": ("file",),
}


def _leaf_types(annotation: Any) -> set[type]:
    """The types that a field takes, those inside of unions included; the values of a Literal count as their types."""
    if get_origin(annotation) is Literal:
        return {type(value) for value in get_args(annotation)}
    if get_origin(annotation) in (Union, UnionType, Annotated):
        return set().union(*(_leaf_types(arg) for arg in get_args(annotation)))
    origin = get_origin(annotation) or annotation
    return {origin} if isinstance(origin, type) else set()


class Strict(BaseModel):
    """Base of all parts of a scene file: unknown keys and wrong types are errors, NaN and infinity too."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, validate_default=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_other_type(cls, value: Any, info: ValidationInfo) -> Any:
        """Words and truth values are not turned into numbers, nor numbers into truth values."""
        if not isinstance(value, str | bool | int | float) or info.field_name is None:
            return value
        kinds = _leaf_types(cls.model_fields[info.field_name].annotation)
        if isinstance(value, str) and kinds & {int, float} and str not in kinds:
            raise ValueError(f"{value!r} is not a number")
        if isinstance(value, bool) and bool not in kinds:
            raise ValueError(
                f"{str(value).lower()} is not a {'number' if kinds & {int, float} else 'value of this key'}"
            )
        if not isinstance(value, bool | str) and kinds <= {bool, type(None)}:
            raise ValueError(f"{value!r} is neither true nor false")
        return value


class MaterialSpec(Strict):
    """How a surface looks (physics is in the entity's friction and solref)."""

    texture: str = Field("", description="picture file (PNG), relative to the scene file")
    texrepeat: Vec2 = (1.0, 1.0)
    texuniform: bool = Field(False, description="repeat per metre in place of per object")
    emission: float = Field(0.0, ge=0)
    specular: float = Field(0.5, ge=0, le=1)
    shininess: float = Field(0.5, ge=0, le=1)
    reflectance: float = Field(0.0, ge=0, le=1)
    metallic: float = Field(-1.0, ge=-1, le=1)
    roughness: float = Field(-1.0, ge=-1, le=1)


class EntitySpec(Strict):
    """One thing in the scene: a primitive, a mesh, or a robot file. Lengths in m, angles in degrees."""

    type: EntityType
    name: str = Field("", description="prefix of everything inside; unique in the scene")
    prefix: str | None = Field(None, description='put before the names of things in a file; default "NAME/"')
    pos: Vec3 = Field((0.0, 0.0, 0.0), description="[m]; of a free URDF without it: standing on the ground")
    quat: Quat | None = Field(None, description="w, x, y, z")
    euler: Vec3 | None = Field(None, description="[degree], about the fixed x, then y, then z axis")
    fixed: bool | None = Field(
        None,
        description="true: part of the world, false: floats freely. Default: primitives and meshes float, an MJCF file "
        "decides itself, the base of a URDF is fixed if one chain of joints starts from it",
    )
    file: str = Field("", description="path, relative to the scene file, or package://")
    text: str = Field("", description="the XML itself in place of a file", repr=False)
    scale: Positive | tuple[Positive, Positive, Positive] = Field(1.0, description="a mesh takes three numbers too")
    up: Literal["auto", "y", "z"] = Field("auto", description="which axis of the mesh file points up")
    # primitives
    size: tuple[float, ...] | None = Field(
        None, description="[m] box: edges x, y, z; plane: half sizes x, y, 0 = endless; ellipsoid: half axes"
    )
    radius: Positive | None = Field(None, description="[m]")
    height: Positive | None = Field(None, description="[m] cylinder: full height; capsule: of its straight part")
    mass: Positive | None = Field(None, description="[kg], in place of density")
    density: Positive | None = Field(None, description="[kg/m^3], default 1000")
    rgba: Rgba | None = None
    material: MaterialSpec | None = None
    friction: NotNegative | tuple[NotNegative, NotNegative, NotNegative] | None = Field(
        None, description="sliding, or sliding, torsional [m], rolling [m]"
    )
    condim: Literal[1, 3, 4, 6] | None = None
    contype: int | None = Field(None, ge=0, le=2**31 - 1)
    conaffinity: int | None = Field(None, ge=0, le=2**31 - 1)
    priority: int | None = None
    solref: Vec2 | None = None
    solimp: tuple[float, float, float, float, float] | None = None
    margin: NotNegative | None = None
    group: int | None = Field(None, ge=0, le=5)
    # robots
    keep_ground: bool = Field(True, description="false: leave out planes of the file's world body")
    keep_lights: bool = Field(True, description="false: leave out the file's lights")
    merge_fixed_links: bool = Field(False, description="fuse links that no joint moves into their parents")
    armature: NotNegative | None = Field(None, description="[kg m^2] for hinge and slide joints that have none")
    actuators: Literal["none", "motor", "position", "velocity"] = Field(
        "none", description="add one actuator per moving joint, named as the joint"
    )
    kp: Positive | None = Field(None, description="position gain [N m/rad or N/m]; default from the effort limit")
    kv: NotNegative | None = Field(None, description="velocity gain [N m s/rad or N s/m]")
    self_collision: bool = Field(True, description="false: links of this robot pass through each other")

    @field_validator("quat")
    @classmethod
    def _quat_is_a_rotation(cls, value: Quat | None) -> Quat | None:
        if value is not None and math.hypot(*value) < 1e-9:
            raise ValueError("a quaternion of zeros is no rotation; write [1, 0, 0, 0] for none")
        return value

    @model_validator(mode="after")
    def _keys_fit_the_type(self) -> EntitySpec:
        allowed = ALLOWED[self.type]
        wrong = sorted(self.model_fields_set - allowed)
        if wrong:
            keys = ", ".join(sorted(allowed - {"type"}))
            raise ValueError(f"a {self.type} has no key '{wrong[0]}'; it takes {keys}")
        missing = [key for key in REQUIRED.get(self.type, ()) if not getattr(self, key)]
        if missing:
            raise ValueError(f"a {self.type} needs the key '{missing[0]}'")
        if self.type in ("mjcf", "urdf") and bool(self.file) == bool(self.text):
            raise ValueError(f"a {self.type} needs either file or text")
        if self.quat is not None and self.euler is not None:
            raise ValueError("give quat or euler, not both")
        if self.mass is not None and self.density is not None:
            raise ValueError("give mass or density, not both")
        if self.type in ("mjcf", "urdf") and not isinstance(self.scale, float | int):
            raise ValueError(f"the scale of a {self.type} is one number")
        self._check_size()
        return self

    def _check_size(self) -> None:
        if self.size is None:
            return
        counts = {"box": (3,), "ellipsoid": (3,), "plane": (2, 3)}[self.type]
        if len(self.size) not in counts:
            raise ValueError(f"the size of a {self.type} has {counts[0]} numbers, not {len(self.size)}")
        low = 0.0 if self.type == "plane" else 1e-9
        if any(not low <= x <= 1e9 for x in self.size):
            raise ValueError(f"the size {list(self.size)} must be {'positive' if low else 'zero or more'}")

    @property
    def label(self) -> str:
        """What messages call it."""
        return f'entity "{self.name}"' if self.name else f"entity of type {self.type}"


class FlagsSpec(Strict):
    """Parts of the simulation switched on or off, as MJCF's <flag>; absent: as the files say."""

    constraint: bool | None = None
    equality: bool | None = None
    frictionloss: bool | None = None
    limit: bool | None = None
    contact: bool | None = None
    spring: bool | None = None
    damper: bool | None = None
    gravity: bool | None = None
    clampctrl: bool | None = None
    warmstart: bool | None = None
    filterparent: bool | None = None
    actuation: bool | None = None
    refsafe: bool | None = None
    sensor: bool | None = None
    eulerdamp: bool | None = None
    override: bool | None = None
    energy: bool | None = None


class OptionsSpec(Strict):
    """Simulation options. Only what is given overrides what the entities' files say."""

    timestep: float | None = Field(None, gt=0, le=1, description="[s]")
    gravity: Vec3 | None = Field(None, description="[m/s^2]")
    integrator: Literal["euler", "implicitfast", "implicit", "rk4"] | None = None
    solver: Literal["newton", "cg", "pgs"] | None = None
    cone: Literal["pyramidal", "elliptic"] | None = None
    iterations: int | None = Field(None, ge=0, le=10000)
    ls_iterations: int | None = Field(None, ge=0, le=10000)
    noslip_iterations: int | None = Field(None, ge=0, le=10000)
    ccd_iterations: int | None = Field(None, ge=0, le=10000)
    tolerance: float | None = Field(None, ge=0, le=1)
    ls_tolerance: float | None = Field(None, ge=0, le=1)
    noslip_tolerance: float | None = Field(None, ge=0, le=1)
    ccd_tolerance: float | None = Field(None, ge=0, le=1)
    impratio: float | None = Field(None, gt=0, le=1e6)
    wind: Vec3 | None = Field(None, description="[m/s]")
    density: float | None = Field(None, ge=0, description="of the medium [kg/m^3]")
    viscosity: float | None = Field(None, ge=0, description="of the medium [Pa s]")
    magnetic: Vec3 | None = None
    o_margin: float | None = None
    o_solref: Vec2 | None = None
    o_solimp: tuple[float, float, float, float, float] | None = None
    o_friction: tuple[float, float, float, float, float] | None = None
    flags: FlagsSpec = FlagsSpec()

    @field_validator("integrator", "solver", "cone", mode="before")
    @classmethod
    def _any_case(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

"""Options of a scene, under Genesis' names and defaults. Unknown names and wrong types raise, with the near name.

Every class says in `INERT` which of its fields exist for scripts written for Genesis but change nothing here, and why:
setting one gives a warning with its name. Fields that would change the physics in a way that is not built raise
UnsupportedFeatureError.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from genesis_core.api.constants import constraint_solver as _Solver
from genesis_core.api.constants import friction_cone as _Cone
from genesis_core.api.constants import integrator as _Integrator
from genesis_core.errors import OptionError, UnsupportedFeatureError


def _to_tuple(value: Any) -> Any:
    """Lists, arrays and tensors as tuples of plain numbers; strict types check the rest."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(v.item() if isinstance(v, np.generic) else v for v in value)
    return value


def _to_number(value: Any) -> Any:
    if isinstance(value, np.generic) or (hasattr(value, "item") and getattr(value, "ndim", 1) == 0):
        return value.item()
    return value


Number = Annotated[float, BeforeValidator(_to_number)]
Vec2 = Annotated[tuple[float, float], BeforeValidator(_to_tuple)]
Vec3 = Annotated[tuple[float, float, float], BeforeValidator(_to_tuple)]
Vec4 = Annotated[tuple[float, float, float, float], BeforeValidator(_to_tuple)]


class Options(BaseModel):
    """Base of everything that scripts configure: strict, immutable in its set of names, with helpful errors."""

    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True, validate_assignment=True)

    INERT: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise OptionError(_explain(type(self), error), where=type(self).__name__) from None

    def inert(self) -> list[str]:
        """One sentence for each field that was set, differs from its default and has no effect here."""
        fields = type(self).model_fields
        return [
            f"{type(self).__name__}.{name} has no effect: {why}"
            for name, why in self.INERT.items()
            if name in self.model_fields_set and getattr(self, name) != fields[name].default
        ]


def _explain(kind: type[BaseModel], error: ValidationError) -> str:
    lines = []
    for item in error.errors():
        name = ".".join(str(part) for part in item["loc"])
        if item["type"] == "extra_forbidden":
            known = sorted(kind.model_fields)
            near = difflib.get_close_matches(name, known, n=1)
            lines.append(
                f"Unrecognized attribute '{name}'"
                + (f"; did you mean '{near[0]}'?" if near else f"; there are: {', '.join(known)}")
            )
        elif item["type"] == "value_error":
            lines.append(str(item["ctx"]["error"]) if "ctx" in item else item["msg"])
        else:
            lines.append(f"'{name}': {item['msg'][0].lower()}{item['msg'][1:]}, got {_short(item['input'])}")
    return "; ".join(lines)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


class SimOptions(Options):
    """Time and gravity."""

    INERT: ClassVar[Mapping[str, str]] = {
        "substeps_local": "there is one solver",
        "floor_height": "it is for soft bodies; add gs.morphs.Plane",
    }

    dt: Number = Field(1e-2, gt=0, description="[s] one scene.step()")
    substeps: int = Field(1, ge=1, description="integration steps per dt")
    substeps_local: int | None = None
    gravity: Vec3 = (0.0, 0.0, -9.81)
    floor_height: Number = 0.0
    requires_grad: bool = False


_GROWS = "buffers grow by themselves and nothing is lost"
_EXACT = "collision follows MuJoCo"


class RigidOptions(Options):
    """The rigid body solver."""

    INERT: ClassVar[Mapping[str, str]] = {
        "enable_neutral_collision": _EXACT + ": overlapping pairs are filtered by parent, contype and excludes",
        "max_collision_pairs": _GROWS,
        "max_contacts": _GROWS,
        "multiplier_collision_broad_phase": _GROWS,
        "max_dynamic_constraints": _GROWS,
        "IK_max_targets": "there is no inverse kinematics in this version",
        "batch_links_info": "masses and inertias are shared by all environments in this version",
        "batch_joints_info": "joint parameters are shared by all environments in this version",
        "contact_resolution": _EXACT,
        "contact_pruning_tolerance": "contacts are never pruned",
        "sparse_solve": "the solver is always sparse",
        "box_box_detection": _EXACT,
        "use_hibernation": "bodies never sleep, results do not depend on it",
        "hibernation_thresh_vel": "bodies never sleep",
        "enable_multi_contact": "contacts always have as many points as MuJoCo gives them",
        "enable_mujoco_compatibility": "MuJoCo's conventions are always on",
        "use_gjk_collision": _EXACT,
        "enable_contact_patch": _EXACT,
        "broadphase_traversal": "there is one broad phase",
    }

    dt: Number | None = Field(None, gt=0, description="[s] None: SimOptions.dt / substeps")
    gravity: Vec3 | None = None
    enable_collision: bool = True
    enable_joint_limit: bool = True
    enable_self_collision: bool = True
    enable_neutral_collision: bool = False
    enable_adjacent_collision: bool = False
    disable_constraint: bool = False
    max_collision_pairs: int = 150
    max_contacts: int | None = None
    multiplier_collision_broad_phase: int = 8
    integrator: _Integrator = _Integrator.approximate_implicitfast
    IK_max_targets: int = 6
    batch_links_info: bool = False
    batch_joints_info: bool = False
    batch_dofs_info: bool = False
    constraint_solver: _Solver = _Solver.Newton
    iterations: int = Field(25, ge=1)
    tolerance: Number | None = Field(None, gt=0, description="None: 1e-6 in 32-bit, 1e-9 in 64-bit")
    ls_iterations: int = Field(50, ge=1)
    ls_tolerance: Number = Field(1e-2, gt=0)
    noslip_iterations: int = Field(0, ge=0)
    noslip_tolerance: Number = 1e-6
    friction_cone: _Cone = _Cone.pyramidal
    contact_resolution: Any = None
    enable_torsional_friction: bool = False
    enable_rolling_friction: bool = False
    impratio: Number | None = None
    contact_pruning_tolerance: Number | None = 0.02
    sparse_solve: bool | None = None
    constraint_timeconst: Number = Field(0.01, gt=0, description="[s] of primitives' contacts, at least 2 substeps")
    box_box_detection: bool = False
    use_hibernation: bool = False
    hibernation_thresh_vel: Number | None = None
    max_dynamic_constraints: int = 8
    enable_multi_contact: bool = True
    enable_mujoco_compatibility: bool = False
    use_gjk_collision: bool | None = None
    enable_contact_patch: bool | None = None
    broadphase_traversal: Any = None

    def refuse_unsupported(self) -> None:
        """UnsupportedFeatureError for settings that change the physics and are not built."""
        if self.constraint_solver is not _Solver.Newton:
            raise UnsupportedFeatureError("RigidOptions.constraint_solver = gs.constraint_solver.CG", hint="use Newton")
        if self.friction_cone is not _Cone.pyramidal:
            raise UnsupportedFeatureError(
                "RigidOptions.friction_cone = gs.friction_cone.elliptic", hint="use gs.friction_cone.pyramidal"
            )
        if self.noslip_iterations:
            raise UnsupportedFeatureError(f"RigidOptions.noslip_iterations = {self.noslip_iterations}", hint="use 0")


class KinematicOptions(Options):
    """Ghost entities; none in this version."""

    INERT: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("batch_links_info", "batch_joints_info", "batch_dofs_info", "IK_max_targets"),
        "there are no kinematic entities",
    )

    batch_links_info: bool = False
    batch_joints_info: bool = False
    batch_dofs_info: bool = False
    IK_max_targets: int = 6


_NO_DRAWING = "scripts do not draw in this version; open the scene with genesis-studio"


class VisOptions(Options):
    """Pictures."""

    show_world_frame: bool = False
    world_frame_size: Number = 1.0
    show_link_frame: bool = False
    link_frame_size: Number = 0.2
    show_cameras: bool = False
    shadow: bool = True
    plane_reflection: bool = False
    split_envs: bool = False
    env_separate_rigid: bool = False
    background_color: Vec3 = (0.04, 0.08, 0.12)
    ambient_light: Vec3 = (0.1, 0.1, 0.1)
    segmentation_level: str = "link"
    render_particle_as: str = "sphere"
    particle_size_scale: Number = 1.0
    contact_force_scale: Number = 0.01
    n_support_neighbors: int = 12
    rendered_envs_idx: Any = None
    n_rendered_envs: int | None = None
    lights: Any = None

    INERT: ClassVar[Mapping[str, str]] = {}

    def inert(self) -> list[str]:
        return _all_inert(self)


class ViewerOptions(Options):
    """The live window of a script."""

    res: Annotated[tuple[int, int] | None, BeforeValidator(_to_tuple)] = None
    run_in_thread: bool | None = None
    refresh_rate: int = 60
    max_FPS: int | None = None
    realtime_factor: Number | None = 1.0
    camera_pos: Vec3 = (3.5, 0.5, 2.5)
    camera_lookat: Vec3 = (0.0, 0.0, 0.5)
    camera_up: Vec3 = (0.0, 0.0, 1.0)
    camera_fov: Number = 40.0
    enable_help_text: bool = True
    enable_default_keybinds: bool = True
    enable_gui: bool = False

    INERT: ClassVar[Mapping[str, str]] = {}

    def inert(self) -> list[str]:
        return _all_inert(self)


class ProfilingOptions(Options):
    """Speed messages."""

    show_FPS: bool = True
    FPS_tracker_alpha: Number = 0.95

    INERT: ClassVar[Mapping[str, str]] = {}

    def inert(self) -> list[str]:
        return []


def _all_inert(options: Options) -> list[str]:
    names = sorted(n for n in options.model_fields_set if getattr(options, n) != type(options).model_fields[n].default)
    if not names:
        return []
    return [
        f"{type(options).__name__}: {', '.join(names)} {'has' if len(names) == 1 else 'have'} no effect: {_NO_DRAWING}"
    ]


class SceneOptions(Options):
    """All groups in one, for `gs.Scene(options=...)`."""

    sim: SimOptions = SimOptions()
    rigid: RigidOptions = RigidOptions()
    kinematic: KinematicOptions = KinematicOptions()
    vis: VisOptions = VisOptions()
    viewer: ViewerOptions = ViewerOptions()
    profiling: ProfilingOptions = ProfilingOptions()
    renderer: Any = None


SOFT = ("tool", "mpm", "sph", "fem", "sf", "pbd", "coupler")
_SOFT_CLASSES = {
    **dict.fromkeys(("MPMOptions", "SPHOptions", "FEMOptions", "SFOptions", "PBDOptions"), "soft bodies and fluids"),
    "ToolOptions": "tool entities",
    "LegacyCouplerOptions": "coupling of solvers",
    "SAPCouplerOptions": "coupling of solvers",
    "IPCCouplerOptions": "coupling of solvers",
    "CoacdOptions": "convex decomposition",
    "FoamOptions": "fluids",
}


def __getattr__(name: str) -> Any:
    if name in _SOFT_CLASSES:
        from genesis_core.api.elsewhere import absent_class

        return absent_class(
            "options", name, f"{_SOFT_CLASSES[name]}: not in this version, which simulates rigid bodies"
        )
    raise AttributeError(f"module 'genesis_core.api.options' has no attribute '{name}'")

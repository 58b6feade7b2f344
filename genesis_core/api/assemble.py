"""From the entities of a gs.Scene to a running Simulation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis_core.api import morphs, session
from genesis_core.api.constants import integrator
from genesis_core.api.control import Controller
from genesis_core.errors import OptionError, UnsupportedFeatureError

if TYPE_CHECKING:
    from genesis_core.api.entity import RigidEntity
    from genesis_core.api.scene import Scene

BITS = 0x7FFFFFFF  # MuJoCo's contype is a signed 32-bit number
PLAIN_DENSITY = 600.0  # [kg/m^3] what Genesis gives to shapes without a material density


@dataclass
class Built:
    """What `Scene.build` needs to know."""

    model: Any
    sim: Any
    controller: Controller
    bodies: list[list[int]]  # per entity, the engine's bodies in order
    body_names: list[list[str]]  # without prefix
    local_names: list[str]  # per entity, the prefix of its names in the engine
    warnings: list[str]


def assemble(scene: Scene, n_rows: int) -> Built:
    """Compose, compile and start the scene in n_rows environments."""
    from genesis_core.compiler.control import Tweaks, compile_controlled
    from genesis_core.engine import Simulation

    if not scene.entities:
        raise OptionError("the scene is empty", where="scene.build", hint="scene.add_entity(gs.morphs.Plane())")
    current = session.current()
    options = _options(scene, current.precision)
    tweaks = []
    for entity in scene.entities:
        robot = isinstance(entity.morph, (morphs.MJCF, morphs.URDF))
        tweaks.append(
            Tweaks(
                prefix=f"{entity.name}/" if robot else entity.name,
                whole_name=not robot,
                self_collision=scene.options.rigid.enable_self_collision,
                condim=_condim(scene),
                gravcomp=entity.material.gravity_compensation,
                friction=_friction(entity) if robot else None,
                rgba=entity.surface.rgba() if robot and entity.surface is not None else None,
            )
        )
    controlled = compile_controlled([_entity_spec(entity, scene) for entity in scene.entities], options, tweaks)
    model = controlled.model
    sim = Simulation(
        model,
        n_rows,
        backend=current.engine,
        precision=current.precision,
        seed=current.seed or 0,
        on_diverge="reset",
    )
    bodies, names, prefixes = [], [], []
    for entity, tweak in zip(scene.entities, tweaks, strict=True):
        own = _bodies_of(model.names["body"], tweak.prefix, tweak.whole_name)
        bodies.append(own)
        names.append([entity.name if tweak.whole_name else model.names["body"][b][len(tweak.prefix) :] for b in own])
        prefixes.append("" if tweak.whole_name else tweak.prefix)
    controller = Controller(controlled.table, n_rows, scene.options.rigid.batch_dofs_info)
    warnings = list(controlled.warnings)
    warnings += [f"not simulated: {sentence}" for sentence in model.unsupported]
    return Built(model, sim, controller, bodies, names, prefixes, warnings)


def _bodies_of(body_names: list[str], prefix: str, whole_name: bool) -> list[int]:
    if whole_name:
        return [i for i, name in enumerate(body_names) if i and name == prefix]
    return [i for i, name in enumerate(body_names) if i and name.startswith(prefix)]


def _condim(scene: Scene) -> int | None:
    rigid = scene.options.rigid
    return 6 if rigid.enable_rolling_friction else 4 if rigid.enable_torsional_friction else None


def _options(scene: Scene, precision: str) -> Any:
    from genesis_core.compiler.entities import FlagsSpec, OptionsSpec

    rigid = scene.options.rigid
    gravity = scene.options.sim.gravity if rigid.gravity is None else rigid.gravity
    tolerance = rigid.tolerance
    if tolerance is None:
        tolerance = 1e-6 if precision == "32" else 1e-9
    flags: dict[str, bool] = {}
    if not rigid.enable_collision:
        flags["contact"] = False
    if not rigid.enable_joint_limit:
        flags["limit"] = False
    if rigid.disable_constraint:
        flags["constraint"] = False
    if rigid.enable_adjacent_collision:
        flags["filterparent"] = False
    given: dict[str, Any] = {
        "timestep": scene.dt / scene.substeps,
        "gravity": gravity,
        "integrator": "euler" if rigid.integrator is integrator.Euler else "implicitfast",
        "solver": "newton",
        "cone": "pyramidal",
        "iterations": rigid.iterations,
        "tolerance": tolerance,
        "ls_iterations": rigid.ls_iterations,
        "ls_tolerance": rigid.ls_tolerance,
        "flags": FlagsSpec(**flags),
    }
    if rigid.impratio is not None:
        given["impratio"] = rigid.impratio
    return OptionsSpec(**given)


def _friction(entity: RigidEntity) -> tuple[float | None, float | None, float | None] | None:
    material = entity.material
    parts = (material.friction, material.friction_torsional, material.friction_rolling)
    return None if parts == (None, None, None) else parts


def _entity_spec(entity: RigidEntity, scene: Scene) -> Any:
    """The compiler's description of one entity."""
    from genesis_core.compiler.entities import EntitySpec, MaterialSpec

    morph = entity.morph
    fields: dict[str, Any] = {"name": entity.name, "pos": morph.pos, "quat": morph.rotation}
    if isinstance(morph, morphs.MJCF):
        fields |= {"type": "mjcf", "scale": _one_scale(morph), "armature": morph.default_armature}
        fields |= {"keep_ground": not morph.exclude_ground_plane, **_file(morph)}
        return EntitySpec(**fields)
    if isinstance(morph, morphs.URDF):
        fields |= {"type": "urdf", "scale": _one_scale(morph), "armature": morph.default_armature, "fixed": morph.fixed}
        fields |= {"merge_fixed_links": morph.merge_fixed_links, **_file(morph)}
        if morph.xacro_args or str(morph.file).endswith(".xacro"):
            raise UnsupportedFeatureError("xacro files", hint="convert it with `xacro robot.xacro > robot.urdf`")
        return EntitySpec(**fields)
    fields |= _shape(entity)
    surface = entity.surface
    if surface is not None:
        if surface.rgba() is not None:
            fields["rgba"] = surface.rgba()
        look = {k: getattr(surface, k) for k in ("roughness", "metallic") if getattr(surface, k) is not None}
        if look:
            fields["material"] = MaterialSpec(**look)
    friction = _friction(entity)
    if friction is not None:
        fallback = (1.0, 0.005, 0.0001)
        fields["friction"] = tuple(f if g is None else g for f, g in zip(fallback, friction, strict=True))
    if not morph.collision:
        fields |= {"contype": 0, "conaffinity": 0}
    substep = scene.dt / scene.substeps
    fields["solref"] = (max(scene.options.rigid.constraint_timeconst, 2 * substep), 1.0)
    return EntitySpec(**fields)


def _shape(entity: RigidEntity) -> dict[str, Any]:
    """The fields of a primitive or mesh."""
    morph = entity.morph
    fields: dict[str, Any]
    if isinstance(morph, morphs.Plane):
        fields = {"type": "plane", "quat": _plane_rotation(morph)}
    elif isinstance(morph, morphs.Box):
        fields = {"type": "box", "size": morph.edges, "pos": morph.center}
    elif isinstance(morph, morphs.Sphere):
        fields = {"type": "sphere", "radius": morph.radius}
    elif isinstance(morph, morphs.Capsule):
        fields = {"type": "capsule", "radius": morph.radius, "height": morph.height}
    elif isinstance(morph, morphs.Cylinder):
        fields = {"type": "cylinder", "radius": morph.radius, "height": morph.height}
    elif isinstance(morph, morphs.Mesh):
        fields = {"type": "mesh", "scale": morph.scale, "file": str(morph.path)}
    else:
        raise UnsupportedFeatureError(f"morph {type(morph).__name__}")
    if not isinstance(morph, morphs.Plane):
        assert isinstance(morph, (morphs.Box, morphs.Sphere, morphs.Capsule, morphs.Cylinder, morphs.Mesh))
        fields |= {"fixed": morph.fixed, "density": entity.material.rho or PLAIN_DENSITY}
    fields |= {"contype": morph.contype & BITS, "conaffinity": morph.conaffinity & BITS}
    return fields


def _plane_rotation(morph: morphs.Plane) -> tuple[float, float, float, float]:
    """The morph's rotation after the shortest turn of z onto its normal."""
    from genesis_core.api.geom import transform_quat_by_quat

    normal = np.asarray(morph.normal, dtype=float)
    length = np.linalg.norm(normal)
    if not length > 1e-9:
        raise OptionError(f"the normal {morph.normal} of a plane has no length")
    x, y, z = normal / length
    turn = np.array([1.0 + z, -y, x, 0.0]) if z > -1 + 1e-12 else np.array([0.0, 1.0, 0.0, 0.0])
    out = transform_quat_by_quat(turn / np.linalg.norm(turn), np.asarray(morph.rotation))
    w, a, b, c = (float(v) for v in out)
    return (w, a, b, c)


def _one_scale(morph: morphs.MJCF | morphs.URDF) -> float:
    if isinstance(morph.scale, tuple):
        if len(set(morph.scale)) != 1:
            raise UnsupportedFeatureError(f"scale {morph.scale} of a robot", hint="one number")
        return float(morph.scale[0])
    return float(morph.scale)


def _file(morph: morphs.MJCF | morphs.URDF) -> dict[str, str]:
    """The XML itself, or a path."""
    given = str(morph.file)
    if given.lstrip().startswith("<"):
        return {"text": given}
    return {"file": str(Path(morph.path).absolute())}

"""Several entities in one MuJoCo model: primitives, meshes and robot files attached under unique prefixes."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import mujoco
import numpy as np

from genesis_core.compiler.entities import EntitySpec, MaterialSpec, OptionsSpec
from genesis_core.compiler.locate import find_file
from genesis_core.compiler.mjcf import compile_spec, forget_assets, mujoco_warnings, read_mjcf
from genesis_core.compiler.options import OptionMerger
from genesis_core.compiler.pose import IDENTITY, euler_to_quat, matrix, multiply
from genesis_core.compiler.primitives import add_plane, add_primitive
from genesis_core.compiler.scale import scale_spec
from genesis_core.compiler.source import XmlSource, read_xml, xml_from_text
from genesis_core.errors import SceneError

__all__ = ["Composed", "EntityPart", "EntitySpec", "MaterialSpec", "OptionsSpec", "compose", "entity_pose"]


_OVERLAP = 1e-3  # [m] links that are deeper in each other than this at the start pass through each other


@dataclass
class EntityPart:
    """Where an entity went: its prefix, the bodies at its root, and its pose."""

    name: str
    type: str
    prefix: str
    pos: np.ndarray
    quat: np.ndarray
    roots: list[str] = field(default_factory=list)  # names of its outermost bodies, as compiled
    lowest: float = 0.0  # [m] lowest point of a fixed robot below its origin (0 where it is not known)


@dataclass
class Composed:
    """An editable model of all entities; `compile()` makes the MjModel."""

    spec: mujoco.MjSpec
    parts: list[EntityPart]
    sources: list[XmlSource]
    warnings: list[str]

    def compile(self) -> mujoco.MjModel:
        """The compiled model; SceneError names the element where MuJoCo refuses it."""
        forget_assets()
        with mujoco_warnings(self.warnings):
            mj = compile_spec(self.spec, self.sources, self.warnings)
            if self._exclude_overlaps(mj):
                mj = compile_spec(self.spec, self.sources, self.warnings)
        _move_keyframes(mj, self.parts)
        return mj

    def _exclude_overlaps(self, mj: mujoco.MjModel) -> bool:
        """Excludes links of URDF robots that overlap where the robot starts, as other simulators do.

        Their shapes are drawn generously; MuJoCo would drive them apart with great force.
        """
        prefixes = [part.prefix for part in self.parts if part.type == "urdf"]
        if not prefixes or not mj.ngeom:
            return False
        data = mujoco.MjData(mj)
        mujoco.mj_kinematics(mj, data)
        mujoco.mj_comPos(mj, data)
        mujoco.mj_collision(mj, data)
        owner = [_owner(mj, b, self.parts) for b in range(mj.nbody)]
        pairs: dict[tuple[str, str], float] = {}
        for contact in data.contact:
            first, second = sorted(int(mj.geom_bodyid[g]) for g in (contact.geom1, contact.geom2))
            if contact.dist < -_OVERLAP and owner[first] is not None and owner[first] is owner[second]:
                names = mj.body(first).name, mj.body(second).name
                pairs[names] = min(pairs.get(names, 0.0), float(contact.dist))
        for first_name, second_name in pairs:
            self.spec.add_exclude(bodyname1=first_name, bodyname2=second_name)
        if pairs:
            shown = ", ".join(f"{a} and {b} by {-1000 * d:.0f} mm" for (a, b), d in list(pairs.items())[:4])
            more = f" and {len(pairs) - 4} more pairs" if len(pairs) > 4 else ""
            self.warnings.append(f"links overlap at the start, they pass through each other: {shown}{more}")
        return bool(pairs)


def _owner(mj: mujoco.MjModel, body: int, parts: Sequence[EntityPart]) -> EntityPart | None:
    """The URDF robot that a body belongs to."""
    while body and int(mj.body_parentid[body]):
        body = int(mj.body_parentid[body])
    name = mj.body(body).name
    return next((part for part in parts if part.type == "urdf" and name in part.roots), None)


def entity_pose(entity: EntitySpec) -> tuple[np.ndarray, np.ndarray]:
    """Position (3,) [m] and unit quaternion (4,) of an entity."""
    if entity.quat is not None:
        quat = np.array(entity.quat, float) / np.linalg.norm(entity.quat)
    elif entity.euler is not None:
        quat = euler_to_quat(entity.euler)
    else:
        quat = np.array(IDENTITY)
    return np.array(entity.pos, float), quat


def compose(
    entities: Sequence[EntitySpec], options: OptionsSpec | None = None, folder: str | Path | None = None
) -> Composed:
    """One model of several entities.

    Names inside a file get the prefix "NAME/" (entities without a name are called after their file or type);
    relative files are looked for in `folder`. Options that two files set differently give one warning that says which
    rules; `options` rules over all of them. Errors: SceneError.
    """
    builder = _Builder(Path(folder) if folder else Path.cwd())
    for entity in entities:
        builder.add(entity)
    return builder.finish(options or OptionsSpec())


class _Builder:
    """The model while entities are added."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spec = mujoco.MjSpec()
        self.warnings: list[str] = []
        self.sources: list[XmlSource] = []
        self.parts: list[EntityPart] = []
        self.merger = OptionMerger()
        self.prefixes: set[str] = set()
        self.names: set[str] = set()
        self.has_light = False

    def add(self, entity: EntitySpec) -> None:
        name = self._unique_name(entity)
        pos, quat = entity_pose(entity)
        if entity.type == "plane":
            add_plane(self.spec, entity, name, pos, quat, self.folder)
            self.parts.append(EntityPart(name, entity.type, "", pos, quat))
        elif entity.type in ("mjcf", "urdf"):
            self._add_file(entity, name, pos, quat)
        else:
            add_primitive(self.spec, entity, name, pos, quat, self.folder, self.warnings)
            self.parts.append(EntityPart(name, entity.type, "", pos, quat, [name]))

    def finish(self, options: OptionsSpec) -> Composed:
        if not self.has_light:
            add_default_light(self.spec)
        self.merger.apply(self.spec, options)
        self.warnings.extend(self.merger.warnings)
        return Composed(self.spec, self.parts, self.sources, self.warnings)

    def _unique_name(self, entity: EntitySpec) -> str:
        wanted = entity.name or (Path(entity.file).stem if entity.file else entity.type)
        name = wanted
        number = 1
        while name in self.names and not entity.name:
            number += 1
            name = f"{wanted}{number}"
        if name in self.names:
            hint = "give each entity its own name"
            raise SceneError(f"two entities have the name '{name}'", element=f'entity "{name}"', hint=hint)
        self.names.add(name)
        return name

    def _add_file(self, entity: EntitySpec, name: str, pos: np.ndarray, quat: np.ndarray) -> None:
        prefix = f"{name}/" if entity.prefix is None else entity.prefix
        if prefix in self.prefixes:
            element, hint = f'entity "{name}" prefix', "give each its own prefix"
            raise SceneError(f"two entities have the prefix '{prefix}'", element=element, hint=hint)
        self.prefixes.add(prefix)
        if entity.text:
            source = xml_from_text(entity.text, f"<{entity.type} text of {name}>")
        else:
            source = read_xml(find_file(entity.file, self.folder, f"{entity.type} file", f'entity "{entity.name}"'))
        self.sources.append(source)
        with mujoco_warnings(self.warnings):
            child, lift, lowest = self._child(entity, source)
        pos = pos + lift if "pos" not in entity.model_fields_set else pos
        self.merger.add(child, source)
        self.has_light = self.has_light or bool(child.lights)
        roots = [body.name for body in child.worldbody.bodies]
        frame = self.spec.worldbody.add_frame(pos=pos, quat=quat)
        self._attach(child, prefix, frame, source)
        names = [prefix + r for r in roots]
        self.parts.append(EntityPart(name, entity.type, prefix, pos, quat, names, pos[2] + lowest))

    def _child(self, entity: EntitySpec, source: XmlSource) -> tuple[mujoco.MjSpec, np.ndarray, float]:
        """The entity's own model, how far a free robot must be lifted to stand, and its lowest point."""
        lift, lowest = np.zeros(3), 0.0
        if source.root.tag == "robot":
            from genesis_core.compiler.urdf import read_urdf

            robot = read_urdf(source, entity, self.warnings)
            child, lift, lowest = robot.spec, np.array([0.0, 0.0, robot.lift]), robot.lowest
        else:
            child = read_mjcf(source)
            _fix_or_free(child, entity)
            _drop_extras(child, entity)
            if entity.armature is not None:
                add_armature(child, entity.armature)
        scale = float(entity.scale)  # type: ignore[arg-type]
        if scale != 1.0:
            scale_spec(child, scale)
            lift, lowest = lift * scale, lowest * scale
        return child, lift, lowest

    def _attach(self, child: mujoco.MjSpec, prefix: str, frame: mujoco.MjsFrame, source: XmlSource) -> None:
        ignored: list[str] = []  # conflicts of options are reported by the merger, in plain words
        with mujoco_warnings(ignored), python_warnings.catch_warnings():
            python_warnings.simplefilter("ignore")
            try:
                self.spec.attach(child, prefix=prefix, frame=frame)
            except (ValueError, RuntimeError, mujoco.FatalError) as error:
                raise SceneError(
                    f"cannot be put into the scene: {' '.join(str(error).split())}",
                    file=source.path,
                    hint="names that occur twice need a prefix",
                ) from None


def _fix_or_free(child: mujoco.MjSpec, entity: EntitySpec) -> None:
    """Removes or adds the free joints of the outermost bodies as `fixed` asks; keyframes are fitted to it."""
    if entity.fixed is None:
        return
    before = _coordinates(child)
    for body in child.worldbody.bodies:
        free = [j for j in body.joints if j.type == mujoco.mjtJoint.mjJNT_FREE]
        if entity.fixed:
            for joint in free:
                child.delete(joint)
        elif not body.joints and not body.mocap:
            body.add_freejoint(name=f"{body.name}_free" if body.name else "")
    after = _coordinates(child)
    if after != before:
        for key in child.keys:
            _refit_key(key, child, before, after)


def _coordinates(child: mujoco.MjSpec) -> list[tuple[int, int, int, int]]:
    """Body, number within it, coordinates and freedoms of every joint, in the order of the state."""
    widths = {mujoco.mjtJoint.mjJNT_FREE: (7, 6), mujoco.mjtJoint.mjJNT_BALL: (4, 3)}
    return [
        (index, k, *widths.get(joint.type, (1, 1)))
        for index, body in enumerate(child.bodies)
        for k, joint in enumerate(body.joints)
    ]


def _refit_key(
    key: mujoco.MjsKey,
    child: mujoco.MjSpec,
    before: list[tuple[int, int, int, int]],
    after: list[tuple[int, int, int, int]],
) -> None:
    """A keyframe's state with the numbers of removed joints left out and those of new free joints put in."""
    bodies = list(child.bodies)
    for name, width in (("qpos", 2), ("qvel", 3)):
        values = list(getattr(key, name))
        if len(values) != sum(entry[width] for entry in before):
            continue
        parts: dict[tuple[int, int], list[float]] = {}
        first = 0
        for entry in before:
            parts[entry[:2]] = values[first : first + entry[width]]
            first += entry[width]
        out: list[float] = []
        for entry in after:
            body = bodies[entry[0]]
            new = [*body.pos, *body.quat] if name == "qpos" else [0.0] * 6
            out += parts.get(entry[:2], new)
        setattr(key, name, out)


def _drop_extras(child: mujoco.MjSpec, entity: EntitySpec) -> None:
    if not entity.keep_ground:
        for geom in list(child.worldbody.geoms):
            if geom.type == mujoco.mjtGeom.mjGEOM_PLANE:
                child.delete(geom)
    if not entity.keep_lights:
        for light in list(child.lights):
            child.delete(light)


def add_armature(child: mujoco.MjSpec, armature: float) -> None:
    """Rotor inertia for hinge and slide joints that have none [kg m^2]."""
    for joint in child.joints:
        if joint.type in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE) and joint.armature == 0:
            joint.armature = armature


def add_default_light(spec: mujoco.MjSpec) -> None:
    """A sun that casts shadows, for scenes whose files bring no light."""
    spec.worldbody.add_light(
        name="sun",
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        pos=[0.0, 0.0, 10.0],
        dir=[-0.35, 0.45, -0.85],
        diffuse=[0.75, 0.74, 0.72],
        specular=[0.25, 0.25, 0.25],
        castshadow=True,
    )


def _move_keyframes(mj: mujoco.MjModel, parts: Sequence[EntityPart]) -> None:
    """Puts the floating bodies of an entity's keyframes where the entity stands.

    A keyframe holds world coordinates of free joints and mocap bodies as its file knows them; MuJoCo leaves them so
    when the file is attached under a frame.
    """
    for part in parts:
        moved = np.any(part.pos != 0) or not np.allclose(part.quat, IDENTITY)
        if not part.prefix or not moved:
            continue
        rotation = matrix(part.quat)
        for k in range(mj.nkey):
            if not (mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_KEY, k) or "").startswith(part.prefix):
                continue
            for j in range(mj.njnt):
                body = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_BODY, int(mj.jnt_bodyid[j])) or ""
                if int(mj.jnt_type[j]) != int(mujoco.mjtJoint.mjJNT_FREE) or not body.startswith(part.prefix):
                    continue
                q = mj.key_qpos[k, mj.jnt_qposadr[j] : mj.jnt_qposadr[j] + 7]
                q[:3] = part.pos + rotation @ q[:3]
                q[3:] = multiply(part.quat, q[3:])

"""URDF as found in the wild, built into a MuJoCo model link by link, with every repair named.

Visuals become geoms of group 2 that touch nothing, collisions geoms of group 3. Links keep their frames and names;
links that no joint moves stay bodies of their own unless they are merged. http://wiki.ros.org/urdf/XML
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import mujoco
import numpy as np

from genesis_core.compiler.entities import EntitySpec
from genesis_core.compiler.pose import IDENTITY, matrix, multiply, turn_to
from genesis_core.compiler.source import XmlSource
from genesis_core.compiler.urdf_inertia import Inertia, checked_inertia, guessed_inertia
from genesis_core.compiler.urdf_shapes import Shapes
from genesis_core.compiler.urdf_xml import Joint, Link, read_origin, read_robot, vector
from genesis_core.compiler.xmltree import Node

_WORLD_NAMES = ("world", "world_link", "map", "odom")
_QUIET_TAGS = frozenset(("link", "joint", "material", "mujoco"))


@dataclass
class Robot:
    """A URDF as an editable model; `lift` is how high its origin must be for it to stand on the ground if it floats."""

    spec: mujoco.MjSpec
    lift: float
    fixed: bool
    lowest: float  # [m] of its shapes above its origin, joints at zero


@dataclass
class _Placed:
    """A link while the model is built: its body and its pose with all joints at zero."""

    link: Link
    body: mujoco.MjsBody
    pos: np.ndarray
    quat: np.ndarray
    moves: bool  # has a joint of its own
    inertia: Inertia | None = None
    fixed_children: list[_Placed] = field(default_factory=list)

    def fused_mass(self) -> float:
        """Mass of the link and of everything fixed to it [kg]."""
        own = self.inertia.mass if self.inertia else 0.0
        return own + sum(child.fused_mass() for child in self.fixed_children)


def read_urdf(source: XmlSource, entity: EntitySpec, warnings: list[str]) -> Robot:
    """The editable model of a parsed URDF; what was repaired or left out is added to `warnings`."""
    builder = _Builder(source, entity, warnings)
    return builder.build()


class _Builder:
    def __init__(self, source: XmlSource, entity: EntitySpec, warnings: list[str]) -> None:
        self.source = source
        self.entity = entity
        self.warnings = warnings
        self.tree = read_robot(source, warnings)
        self.spec = mujoco.MjSpec()
        self.spec.modelname = source.root.get("name") or source.path.stem
        self.spec.compiler.degree = False
        self.shapes = Shapes(self.spec, source, warnings)
        self.placed: dict[str, _Placed] = {}
        self.lowest = np.inf
        self.actuated: list[tuple[mujoco.MjsJoint, Joint]] = []

    def build(self) -> Robot:
        fixed = self._is_fixed()
        self._read_extension()
        for root in self.tree.roots:
            self._add_tree(root, fixed)
        self._settle_masses(fixed)
        self._add_mimics()
        self._add_actuators()
        if self.entity.self_collision:
            self._exclude_neighbours()
        else:
            self._exclude_all()
        self._report_tags()
        if self.entity.merge_fixed_links:
            self.spec.fuse_static()
        lowest = float(self.lowest) if np.isfinite(self.lowest) else 0.0
        return Robot(self.spec, 0.0 if fixed else -lowest, fixed, lowest)

    # --- the tree

    def _is_fixed(self) -> bool:
        """Whether the base is part of the world: as asked, or by the robot's shape."""
        if self.entity.fixed is not None:
            return self.entity.fixed
        root = self.tree.roots[0]
        if root.lower() in _WORLD_NAMES and not self.tree.links[root].inertial:
            return True
        chains = self._chains(root)
        fixed = chains == 1
        kind = "fixed to the world" if fixed else "floating"
        why = (
            "one chain of joints starts"
            if fixed
            else f"{chains} chains of joints start"
            if chains
            else "no joint starts"
        )
        self.warnings.append(f"the base '{root}' is {kind}, as {why} from it; set fixed in a scene file to choose")
        return fixed

    def _chains(self, root: str) -> int:
        """How many moving joints start from a link and what is fixed to it."""
        count = 0
        stack = [root]
        while stack:
            for joint in self.tree.children.get(stack.pop(), ()):
                if joint.type == "fixed":
                    stack.append(joint.child)
                else:
                    count += 1
        return count

    def _add_tree(self, root: str, fixed: bool) -> None:
        stack: list[tuple[str, Joint | None, _Placed | None]] = [(root, None, None)]
        while stack:
            name, joint, parent = stack.pop()
            placed = self._add_link(name, joint, parent, fixed)
            for child in reversed(self.tree.children.get(name, [])):
                stack.append((child.child, child, placed))

    def _add_link(self, name: str, joint: Joint | None, parent: _Placed | None, fixed: bool) -> _Placed:
        link = self.tree.links[name]
        if joint is None or parent is None:
            pos, quat = np.zeros(3), np.array(IDENTITY)
            if fixed and name.lower() == "world":  # a body cannot have the world's name
                placed = _Placed(link, self.spec.worldbody, pos, quat, False)
            else:
                body = self.spec.worldbody.add_body(name=name)
                if not fixed:
                    body.add_freejoint(name=self._free_name(name))
                placed = _Placed(link, body, pos, quat, not fixed)
        else:
            pos = parent.pos + matrix(parent.quat) @ joint.pos
            quat = multiply(parent.quat, joint.quat)
            floats = joint.type == "floating" and self._is_static(parent)
            home = self.spec.worldbody if floats else parent.body
            body = home.add_body(name=name, pos=pos if floats else joint.pos, quat=quat if floats else joint.quat)
            placed = _Placed(link, body, pos, quat, joint.type != "fixed")
            if joint.type == "fixed":
                parent.fixed_children.append(placed)
            else:
                self._add_joint(body, joint, floats)
        self.placed[name] = placed
        self._add_shapes(placed)
        return placed

    def _free_name(self, root: str) -> str:
        name = f"{root}_free"
        return name if name not in self.tree.joints else ""

    def _is_static(self, placed: _Placed) -> bool:
        """Whether a link is fixed to the world through all its parents."""
        while True:
            if placed.moves:
                return False
            joint = self.tree.parent_joint.get(placed.link.name)
            if joint is None:
                return True
            placed = self.placed[joint.parent]

    def _add_joint(self, body: mujoco.MjsBody, joint: Joint, floats: bool) -> None:
        kind = mujoco.mjtJoint
        if joint.type == "floating":
            if floats:
                body.add_freejoint(name=joint.name)
                return
            for axis, label in zip(np.eye(3), "xyz", strict=True):
                body.add_joint(name=f"{joint.name}_{label}", type=kind.mjJNT_SLIDE, axis=axis)
            body.add_joint(name=joint.name, type=kind.mjJNT_BALL)
            return
        if joint.type == "planar":
            turn = matrix(turn_to(joint.axis))
            body.add_joint(name=f"{joint.name}_x", type=kind.mjJNT_SLIDE, axis=turn[:, 0])
            body.add_joint(name=f"{joint.name}_y", type=kind.mjJNT_SLIDE, axis=turn[:, 1])
            body.add_joint(name=joint.name, type=kind.mjJNT_HINGE, axis=joint.axis)
            return
        slide = joint.type == "prismatic"
        made = body.add_joint(
            name=joint.name,
            type=kind.mjJNT_SLIDE if slide else kind.mjJNT_HINGE,
            axis=joint.axis,
            frictionloss=joint.friction,
            armature=self.entity.armature or 0.0,
        )
        made.damping = (
            [joint.damping, *list(np.atleast_1d(made.damping))[1:]] if np.ndim(made.damping) else joint.damping
        )
        if joint.limits is not None:
            made.limited = mujoco.mjtLimited.mjLIMITED_TRUE
            made.range = joint.limits
        else:
            made.limited = mujoco.mjtLimited.mjLIMITED_FALSE
        if joint.effort > 0:
            made.actfrclimited = mujoco.mjtLimited.mjLIMITED_TRUE
            made.actfrcrange = [-joint.effort, joint.effort]
        self.actuated.append((made, joint))

    # --- shapes and masses

    def _add_shapes(self, placed: _Placed) -> None:
        lowest = self.shapes.add_link(placed.body, placed.link, placed.pos, placed.quat)
        self.lowest = min(self.lowest, lowest)
        if placed.link.inertial is not None:
            placed.inertia = checked_inertia(placed.link, self.shapes, self.warnings)

    def _settle_masses(self, fixed: bool) -> None:
        """Writes the inertias; a moving link that has no mass at all gets one, with a warning that names it."""
        for placed in self.placed.values():
            if placed.moves and placed.fused_mass() <= 0:
                placed.inertia = guessed_inertia(placed.link, self.shapes, self.warnings)
            body = placed.body
            if body is self.spec.worldbody:
                continue
            inertia = placed.inertia
            body.explicitinertial = True
            if inertia is None:
                # As in URDF, a link without <inertial> weighs nothing: it rides on what it is fixed to.
                body.mass, body.inertia, body.ipos = 0.0, np.zeros(3), np.zeros(3)
                continue
            body.mass = inertia.mass
            body.ipos = inertia.pos
            body.iquat = inertia.quat
            body.inertia = inertia.diagonal

    # --- what else a URDF can say

    def _add_mimics(self) -> None:
        for joint in self.tree.joints.values():
            if joint.mimic is None:
                continue
            name, factor, offset = joint.mimic
            if name not in self.tree.joints or joint.type not in ("revolute", "continuous", "prismatic"):
                self.warnings.append(
                    f"joint '{joint.name}' (line {joint.node.line}) mimics '{name}', which cannot be followed"
                )
                continue
            equality = self.spec.add_equality(
                name=f"{joint.name}_mimic", type=mujoco.mjtEq.mjEQ_JOINT, name1=joint.name, name2=name
            )
            equality.objtype = mujoco.mjtObj.mjOBJ_JOINT
            data = np.zeros(len(equality.data))
            data[:2] = offset, factor
            equality.data = data
            self.warnings.append(
                f"joint '{joint.name}' (line {joint.node.line}) mimics '{name}': read as an equality constraint"
            )

    def _add_actuators(self) -> None:
        kind = self.entity.actuators
        if kind == "none":
            return
        mimics = {j.name for j in self.tree.joints.values() if j.mimic is not None}
        for made, joint in self.actuated:
            if joint.name in mimics:
                continue
            actuator = self.spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            if joint.effort > 0:
                actuator.forcelimited = mujoco.mjtLimited.mjLIMITED_TRUE
                actuator.forcerange = [-joint.effort, joint.effort]
            if kind == "motor":
                actuator.set_to_motor()
                span = (-joint.effort, joint.effort) if joint.effort > 0 else None
            elif kind == "position":
                # Full effort at a quarter of a radian (or 5 cm) of error, critically damped.
                stiff = self.entity.kp or (joint.effort * (20.0 if joint.type == "prismatic" else 4.0) or 100.0)
                if self.entity.kv is not None:
                    actuator.set_to_position(kp=stiff, kv=self.entity.kv)
                else:
                    actuator.set_to_position(kp=stiff, dampratio=1.0)
                span = joint.limits
            else:
                actuator.set_to_velocity(kv=self.entity.kv if self.entity.kv is not None else joint.effort or 10.0)
                span = (-joint.velocity, joint.velocity) if joint.velocity > 0 else None
            if span is not None:
                actuator.ctrllimited = mujoco.mjtLimited.mjLIMITED_TRUE
                actuator.ctrlrange = span
            del made

    def _exclude_neighbours(self) -> None:
        """Links on both sides of a joint may overlap. MuJoCo lets them by itself, but not next to a fixed base."""
        for joint in self.tree.joints.values():
            parent, child = self.placed[joint.parent], self.placed[joint.child]
            if joint.type == "fixed" or not self._is_static(parent):
                continue
            for first in self._welded(joint.parent):
                for second in self._welded(child.link.name):
                    if self.placed[first].body is not self.spec.worldbody:
                        self.spec.add_exclude(bodyname1=first, bodyname2=second)

    def _welded(self, name: str) -> list[str]:
        """Links with collision shapes in the group of links that are fixed to each other around one."""
        found, stack = [], [name]
        seen = {name}
        while stack:
            link = stack.pop()
            if self.placed[link].link.collisions:
                found.append(link)
            near = [j.child for j in self.tree.children.get(link, ()) if j.type == "fixed"]
            above = self.tree.parent_joint.get(link)
            if above is not None and above.type == "fixed":
                near.append(above.parent)
            stack.extend(n for n in near if n not in seen)
            seen.update(near)
        return found

    def _exclude_all(self) -> None:
        names = [n for n, p in self.placed.items() if p.body is not self.spec.worldbody and p.link.collisions]
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                self.spec.add_exclude(bodyname1=first, bodyname2=second)

    def _read_extension(self) -> None:
        """Options of a <mujoco> element, which MuJoCo reads in URDF too."""
        for node in self.source.root.all("mujoco"):
            for option in node.all("option"):
                _read_option(self.spec, option)

    def _report_tags(self) -> None:
        counts = Counter(child.tag for child in self.source.root.children if child.tag not in _QUIET_TAGS)
        if counts:
            listed = ", ".join(f"<{tag}> ({n}x)" if n > 1 else f"<{tag}>" for tag, n in sorted(counts.items()))
            self.warnings.append(f"elements that describe no body or joint are left out: {listed}")


def _first(values: object, value: float) -> object:
    """A number, or a polynomial's coefficients with the number as the first."""
    if np.ndim(values) == 0:  # type: ignore[arg-type]
        return value
    return [value, *list(values)[1:]]  # type: ignore[call-overload]


def _read_option(spec: mujoco.MjSpec, node: Node) -> None:
    from genesis_core.compiler.options import ENUM_WORDS

    for name, value in node.attributes.items():
        if name in ENUM_WORDS:
            number = ENUM_WORDS[name].get(value.lower())
            if number is None:
                raise node.error(f'{name}="{value}" is unknown', hint=f"known: {', '.join(ENUM_WORDS[name])}")
            setattr(spec.option, name, number)
        elif hasattr(spec.option, name):
            now = getattr(spec.option, name)
            words = vector(node, name, np.size(now) if np.ndim(now) else 1)
            setattr(spec.option, name, words if np.ndim(now) else type(now)(words[0]))


__all__ = ["Robot", "read_origin", "read_urdf"]

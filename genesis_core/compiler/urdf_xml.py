"""The elements of a URDF as checked records: links, joints, materials, and how they hang together."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from genesis_core.compiler.pose import IDENTITY, rpy_to_quat
from genesis_core.compiler.source import XmlSource
from genesis_core.compiler.xmltree import Node
from genesis_core.errors import SceneError

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
Rgba = tuple[float, float, float, float]


@dataclass
class Link:
    """One <link>."""

    name: str
    node: Node
    inertial: Node | None
    visuals: list[Node]
    collisions: list[Node]


@dataclass
class Joint:
    """One <joint>, numbers checked."""

    name: str
    node: Node
    type: str
    parent: str
    child: str
    pos: np.ndarray
    quat: np.ndarray
    axis: np.ndarray
    limits: tuple[float, float] | None = None  # [rad or m]
    effort: float = 0.0  # [N m or N], 0 = unlimited
    velocity: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    mimic: tuple[str, float, float] | None = None  # joint, factor, offset


@dataclass
class RobotTree:
    """All links and joints of a robot."""

    links: dict[str, Link] = field(default_factory=dict)
    joints: dict[str, Joint] = field(default_factory=dict)
    children: dict[str, list[Joint]] = field(default_factory=dict)
    parent_joint: dict[str, Joint] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)


def vector(node: Node, attribute: str, count: int, default: tuple[float, ...] | None = None) -> np.ndarray:
    """`count` finite numbers from an attribute; an error that names element and line otherwise."""
    text = node.get(attribute).replace(",", " ").strip()
    if not text and default is not None:
        return np.array(default, float)
    words = text.split()
    try:
        values = [float(word) for word in words]
    except ValueError:
        raise node.error(f'{attribute}="{node.get(attribute)}" holds something that is not a number') from None
    if not all(math.isfinite(v) for v in values):
        raise node.error(f'{attribute}="{node.get(attribute)}" holds a number that is not finite')
    if len(values) != count:
        raise node.error(f'{attribute}="{node.get(attribute)}" has {len(values)} numbers, {count} are needed')
    return np.array(values)


def scalar(node: Node, attribute: str, default: float | None = None) -> float:
    """One finite number from an attribute."""
    return float(vector(node, attribute, 1, None if default is None else (default,))[0])


def read_origin(node: Node | None) -> tuple[np.ndarray, np.ndarray]:
    """Position (3,) [m] and quaternion (4,) of an element's <origin>; identity without one."""
    origin = node.find("origin") if node is not None else None
    if origin is None:
        return np.zeros(3), np.array(IDENTITY)
    pos = vector(origin, "xyz", 3, (0.0, 0.0, 0.0))
    if origin.get("quat_xyzw"):
        x, y, z, w = vector(origin, "quat_xyzw", 4)
        return pos, np.array([w, x, y, z])
    return pos, rpy_to_quat(list(vector(origin, "rpy", 3, (0.0, 0.0, 0.0))))


def read_robot(source: XmlSource, warnings: list[str]) -> RobotTree:
    """Links and joints of a <robot>, checked to form a tree."""
    tree = RobotTree()
    root = source.root
    if any(n.tag.startswith("xacro:") for n in root.walk()):
        node = next(n for n in root.walk() if n.tag.startswith("xacro:"))
        raise node.error("this is a xacro program, not URDF", hint=f"run: xacro {source.path.name} -o robot.urdf")
    for node in root.all("link"):
        _read_link(node, tree)
    if not tree.links:
        raise root.error("the robot has no links", hint="a URDF needs at least one <link>")
    for node in root.all("joint"):
        _read_joint(node, tree, warnings)
    tree.roots = [name for name in tree.links if name not in tree.parent_joint]
    if not tree.roots:
        joint = next(iter(tree.joints.values()))
        raise joint.node.error("the joints form a loop: no link is the base", hint="one link must have no parent joint")
    if len(tree.roots) > 1:
        names = ", ".join(f"'{r}'" for r in tree.roots[:6])
        warnings.append(f"{len(tree.roots)} links have no parent: {names}; each becomes a base of its own")
    _check_reachable(tree)
    return tree


def _read_link(node: Node, tree: RobotTree) -> None:
    name = node.get("name")
    if not name:
        raise node.error("the link has no name")
    if name in tree.links:
        first = tree.links[name].node.line
        raise node.error(f"the link name '{name}' is used twice, first in line {first}", hint="rename one of them")
    tree.links[name] = Link(name, node, node.find("inertial"), node.all("visual"), node.all("collision"))


def _link_of(node: Node, tag: str, tree: RobotTree) -> str:
    child = node.find(tag)
    if child is None:
        raise node.error(f"the joint names no {tag} link", hint=f'add <{tag} link="..."/>')
    name = child.get("link")
    if name not in tree.links:
        from genesis_core.compiler.source import near_word

        raise child.error(f"the {tag} link '{name}' does not exist", hint=near_word(name, tree.links))
    return name


def _read_joint(node: Node, tree: RobotTree, warnings: list[str]) -> None:
    name = node.get("name")
    if not name:
        raise node.error("the joint has no name")
    if name in tree.joints:
        first, k = tree.joints[name].node.line, 2
        while f"{name}_{k}" in tree.joints:
            k += 1
        warnings.append(
            f"the joint name '{name}' is used twice (lines {first} and {node.line}): the second is '{name}_{k}'"
        )
        name = f"{name}_{k}"
    kind = node.get("type")
    if kind not in JOINT_TYPES:
        raise node.error(f"the joint type '{kind}' is unknown", hint=f"known: {', '.join(JOINT_TYPES)}")
    parent, child = _link_of(node, "parent", tree), _link_of(node, "child", tree)
    if child in tree.parent_joint:
        other = tree.parent_joint[child]
        what = f"the link '{child}' is the child of two joints, '{other.name}' (line {other.node.line}) and '{name}'"
        raise node.error(what, hint="URDF robots are trees; close loops with constraints in MJCF")
    if child == parent:
        raise node.error(f"the joint connects the link '{child}' with itself")
    pos, quat = read_origin(node)
    joint = Joint(name, node, kind, parent, child, pos, quat, _read_axis(node, kind))
    _read_limits(joint, warnings)
    dynamics = node.find("dynamics")
    if dynamics is not None:
        joint.damping = _not_negative(dynamics, "damping", warnings)
        joint.friction = _not_negative(dynamics, "friction", warnings)
    mimic = node.find("mimic")
    if mimic is not None:
        joint.mimic = (mimic.get("joint"), scalar(mimic, "multiplier", 1.0), scalar(mimic, "offset", 0.0))
    tree.joints[name] = joint
    tree.children.setdefault(parent, []).append(joint)
    tree.parent_joint[child] = joint


def _not_negative(node: Node, attribute: str, warnings: list[str]) -> float:
    value = scalar(node, attribute, 0.0)
    if value < 0:
        warnings.append(f'line {node.line}: {attribute}="{value:g}" is negative, 0 is used')
        return 0.0
    return value


def _read_axis(node: Node, kind: str) -> np.ndarray:
    found = node.find("axis")
    axis = vector(found, "xyz", 3, (1.0, 0.0, 0.0)) if found is not None else np.array([1.0, 0.0, 0.0])
    length = float(np.linalg.norm(axis))
    if length < 1e-9:
        if kind in ("fixed", "floating"):
            return np.array([1.0, 0.0, 0.0])
        raise (found or node).error("the joint axis is zero", hint='write a direction, such as xyz="0 0 1"')
    return axis / length


def _read_limits(joint: Joint, warnings: list[str]) -> None:
    limit = joint.node.find("limit")
    if limit is None:
        if joint.type in ("revolute", "prismatic"):
            warnings.append(f"joint '{joint.name}' (line {joint.node.line}) has no <limit>: it moves without end")
        return
    joint.effort = max(scalar(limit, "effort", 0.0), 0.0)
    joint.velocity = max(scalar(limit, "velocity", 0.0), 0.0)
    if joint.type not in ("revolute", "prismatic"):
        return
    low, high = _limit_value(limit, "lower"), _limit_value(limit, "upper")
    if low > high:
        warnings.append(f"joint '{joint.name}' (line {limit.line}): the limits {low:g} and {high:g} are swapped")
        low, high = high, low
    if low == high:
        if "lower" in limit.attributes or "upper" in limit.attributes:
            warnings.append(f"joint '{joint.name}' (line {limit.line}): both limits are {low:g}, it moves without end")
        return
    if math.isfinite(low) and math.isfinite(high) and max(abs(low), abs(high)) < 1e6:
        joint.limits = (low, high)


def _limit_value(node: Node, attribute: str) -> float:
    """A limit, where infinity is a way to say that there is none."""
    text = node.get(attribute, "0").strip() or "0"
    try:
        value = float(text)
    except ValueError:
        raise node.error(f'{attribute}="{text}" is not a number') from None
    if math.isnan(value):
        raise node.error(f'{attribute}="{text}" is not a number')
    return value


def _check_reachable(tree: RobotTree) -> None:
    seen: set[str] = set()
    stack = list(tree.roots)
    while stack:
        name = stack.pop()
        seen.add(name)
        stack.extend(j.child for j in tree.children.get(name, ()))
    lost = [name for name in tree.links if name not in seen]
    if lost:
        raise tree.links[lost[0]].node.error(
            f"the link '{lost[0]}' is in a loop of joints that no base leads to",
            hint="check the parent and child links",
        )


def read_colour(node: Node) -> Rgba | None:
    """Colour of a <material>, clipped to 0..1; None where it gives none."""
    colour = node.find("color")
    if colour is None:
        return None
    try:
        values = vector(colour, "rgba", 4)
    except SceneError:
        values = np.append(vector(colour, "rgba", 3), 1.0)
    r, g, b, a = np.clip(values, 0.0, 1.0).tolist()
    return (r, g, b, a)

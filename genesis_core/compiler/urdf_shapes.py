"""Visual and collision shapes of URDF links as geoms of a MuJoCo model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from genesis_core.compiler.locate import candidates
from genesis_core.compiler.meshes import (
    MeshPart,
    add_collision_mesh,
    add_mesh_asset,
    add_picture,
    load_mesh,
    merged_part,
    read_image,
)
from genesis_core.compiler.pose import matrix
from genesis_core.compiler.source import XmlSource, near_file
from genesis_core.compiler.urdf_xml import Link, Rgba, read_colour, read_origin, scalar, vector
from genesis_core.compiler.xmltree import Node
from genesis_core.errors import SceneError

VISUAL_GROUP, COLLISION_GROUP = 2, 3
_DEFAULT_RGBA: Rgba = (0.72, 0.73, 0.75, 1.0)
_PRIMITIVES = ("box", "sphere", "cylinder", "capsule")


class Shapes:
    """Adds the shapes of links; each mesh file is read once per scale."""

    def __init__(self, spec: mujoco.MjSpec, source: XmlSource, warnings: list[str]) -> None:
        self.spec = spec
        self.source = source
        self.warnings = warnings
        self.folder = source.path.parent
        self.colours: dict[str, Rgba] = {}
        self.pictures: dict[str, Path] = {}
        self._parts: dict[tuple[Path, tuple[float, ...]], list[MeshPart]] = {}
        self._visual_assets: dict[tuple[Path, tuple[float, ...]], list[str]] = {}
        self._hull_assets: dict[tuple[Path, tuple[float, ...]], str] = {}
        self._boxes: dict[str, list[np.ndarray]] = {}  # link -> points around its shapes, link frame
        self._names: set[str] = set()
        self._unseen: list[tuple[Link, Node, str]] = []  # visuals of the link at hand that could not be read
        self.meshdir, self.strip = self._extension()
        for node in source.root.all("material"):
            self._read_material(node)

    def _extension(self) -> tuple[str, bool]:
        """meshdir and strippath of a <mujoco><compiler/> element."""
        for node in self.source.root.all("mujoco"):
            for compiler in node.all("compiler"):
                return compiler.get("meshdir"), compiler.get("strippath") == "true"
        return "", False

    def add_link(self, body: mujoco.MjsBody, link: Link, pos: np.ndarray, quat: np.ndarray) -> float:
        """Adds all shapes of a link; returns the lowest point of those that touch, world frame, joints at zero [m]."""
        shown: list[list[MeshPart]] = []
        for k, node in enumerate(link.visuals):
            parts = self._add_visual(body, link, node, k)
            if parts:
                shown.append(parts)
        touching: list[np.ndarray] = []
        for k, node in enumerate(link.collisions):
            around = self._add_collision(body, link, node, k, shown)
            if around is not None:
                touching.append(around)
        self._report_unseen(body, link, bool(shown) or len(self._unseen) < len(link.visuals))
        points = touching or self._boxes.get(link.name, [])
        if touching:
            self._boxes[link.name] = touching  # sizes are taken from what touches where there is any
        rotation = matrix(quat)
        return min((float((pos + p @ rotation.T)[:, 2].min()) for p in points), default=np.inf)

    def _report_unseen(self, body: mujoco.MjsBody, link: Link, something: bool) -> None:
        """Warns about visuals that could not be read; a link with no other shows its collision shapes."""
        if not self._unseen:
            return
        instead = ""
        touching = [geom for geom in body.geoms if geom.group == COLLISION_GROUP]
        if not something and touching:
            instead = "; its collision shapes are shown"
            for geom in touching:
                geom.group = VISUAL_GROUP
        for _, shape, text in self._unseen:
            self.warnings.append(f"link '{link.name}' (line {shape.line}): a visual is not shown{instead}: {text}")
        self._unseen.clear()

    def half_extents(self, link: Link) -> np.ndarray | None:
        """Half edges (3,) of the box around a link's shapes [m], None without shapes."""
        points = self._boxes.get(link.name)
        return np.ptp(np.concatenate(points), axis=0) / 2 if points else None

    def middle(self, link: Link) -> np.ndarray:
        """Middle (3,) of the box around a link's shapes, link frame [m]."""
        points = np.concatenate(self._boxes[link.name])
        return (points.min(axis=0) + points.max(axis=0)) / 2

    # --- visuals

    def _add_visual(self, body: mujoco.MjsBody, link: Link, node: Node, k: int) -> list[MeshPart]:
        pos, quat = read_origin(node)
        rgba = self._colour(node)
        shape = self._geometry(node, link)
        if shape is None:
            return []
        common: dict[str, Any] = {"pos": pos, "quat": quat, "contype": 0, "conaffinity": 0, "density": 0}
        common["group"] = VISUAL_GROUP
        if shape.tag in _PRIMITIVES:
            half = self._primitive(shape)
            if half is None:
                self._left_out(link, shape, f"a visual <{shape.tag}> of size zero")
                return []
            geom = body.add_geom(type=half[0], size=half[1], **common)
            geom.rgba = rgba or _DEFAULT_RGBA
            self._note_points(link, half[2], pos, quat)
            return []
        try:
            key, parts = self._mesh(shape, link)
        except SceneError as error:
            self._unseen.append((link, shape, f"{error.what}. {error.hint}".rstrip(". ")))
            return []
        for name, part in zip(self._visual_names(key, parts), parts, strict=True):
            if not name:
                continue
            geom = body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=name, **common)
            self._paint(geom, part, name, rgba, node)
            self._note_points(link, _box_corners(part.vertices), pos, quat)
        placed = matrix(quat)
        return [MeshPart(p.vertices @ placed.T + pos, p.faces) for p in parts]

    def _visual_names(self, key: tuple[Path, tuple[float, ...]], parts: list[MeshPart]) -> list[str]:
        """Names of the mesh assets of a file, made at its first use; "" for parts too small to be shown."""
        if key not in self._visual_assets:
            names = []
            for part in parts:
                if len(part.vertices) < 4 or np.ptp(part.vertices, axis=0).max() <= 0:
                    names.append("")
                    continue
                name = self._unique(key[0].stem)
                add_mesh_asset(self.spec, name, part, visual=True)
                names.append(name)
            self._visual_assets[key] = names
        return self._visual_assets[key]

    def _paint(self, geom: mujoco.MjsGeom, part: MeshPart, name: str, rgba: Rgba | None, node: Node) -> None:
        """The mesh's own colour or picture first, then the URDF's material, then a light grey."""
        image = part.image
        material = node.find("material")
        picture = self.pictures.get(material.get("name")) if material is not None else None
        if image is None and picture is not None and part.uv is not None:
            image = read_image(picture)
        if image is not None:
            if self.spec.material(name) is None:
                add_picture(self.spec, name, image, part.rgba)
            geom.material = name
            return
        geom.rgba = part.rgba or rgba or _DEFAULT_RGBA

    def _colour(self, visual: Node) -> Rgba | None:
        material = visual.find("material")
        if material is None:
            return None
        self._read_material(material)
        return read_colour(material) or self.colours.get(material.get("name"))

    def _read_material(self, node: Node) -> None:
        name = node.get("name")
        colour = read_colour(node)
        if colour is not None and name:
            self.colours.setdefault(name, colour)
        texture = node.find("texture")
        if texture is not None and name and name not in self.pictures:
            try:
                self.pictures[name] = self._find(texture, "texture")
            except SceneError as error:
                self.warnings.append(
                    f"material '{name}' (line {texture.line}): {error.what}. {error.hint}".rstrip(". ")
                )

    # --- collisions

    def _add_collision(
        self, body: mujoco.MjsBody, link: Link, node: Node, k: int, shown: list[list[MeshPart]]
    ) -> np.ndarray | None:
        """Adds one shape; returns points around it in the link's frame."""
        pos, quat = read_origin(node)
        shape = self._geometry(node, link)
        if shape is None:
            return None
        name = self._unique(node.get("name") or (f"{link.name}_collision" + (str(k) if k else "")), geom=True)
        common: dict[str, Any] = {"name": name, "pos": pos, "quat": quat, "group": COLLISION_GROUP, "density": 0}
        if shape.tag in _PRIMITIVES:
            half = self._primitive(shape)
            if half is None:
                raise shape.error(f"the collision <{shape.tag}> of link '{link.name}' has size zero")
            geom = body.add_geom(type=half[0], size=half[1], **common)
            self._friction(geom, link)
            geom.rgba = _DEFAULT_RGBA
            return _placed(half[2], pos, quat)
        try:
            key, parts = self._mesh(shape, link)
        except SceneError as error:
            if not shown:
                raise shape.error(f"collision mesh of link '{link.name}': {error.what}", hint=error.hint) from None
            self.warnings.append(
                f"link '{link.name}' (line {shape.line}): {error.what}; the hull of its visual mesh replaces it"
            )
            parts = [p for group in shown for p in group]
            common["pos"], common["quat"] = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
            pos, quat = common["pos"], common["quat"]
            key = (Path(f"{link.name}_hull"), ())
        points = merged_part(parts).vertices
        if key in self._hull_assets:
            geom = body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=self._hull_assets[key], **common)
        else:
            asset = self._unique(f"{key[0].stem}_collision")
            geom = add_collision_mesh(self.spec, body, parts, asset, key[0], self.warnings, **common)
            if geom.type == mujoco.mjtGeom.mjGEOM_MESH:
                self._hull_assets[key] = asset
        self._friction(geom, link)
        geom.rgba = _DEFAULT_RGBA
        return _placed(_box_corners(points), pos, quat)

    def _friction(self, geom: mujoco.MjsGeom, link: Link) -> None:
        """Friction of Bullet's <contact> extension."""
        contact = link.node.find("contact")
        if contact is None:
            return
        friction = list(geom.friction)
        for i, tag in enumerate(("lateral_friction", "spinning_friction", "rolling_friction")):
            node = contact.find(tag)
            if node is not None:
                friction[i] = max(scalar(node, "value", friction[i]), 0.0)
        geom.friction = friction

    # --- geometry

    def _geometry(self, node: Node, link: Link) -> Node | None:
        geometry = node.find("geometry")
        if geometry is None or not geometry.children:
            self._left_out(link, node, f"a <{node.tag}> without a shape")
            return None
        shape = geometry.children[0]
        if shape.tag not in (*_PRIMITIVES, "mesh"):
            self.warnings.append(
                f"link '{link.name}' (line {shape.line}): the shape <{shape.tag}> is unknown and left out"
            )
            return None
        return shape

    def _primitive(self, node: Node) -> tuple[mujoco.mjtGeom, list[float], np.ndarray] | None:
        """MuJoCo's type and size of a primitive and the corners of the box around it; None where it has no size."""
        if node.tag == "box":
            half = vector(node, "size", 3) / 2
            kind, size = mujoco.mjtGeom.mjGEOM_BOX, list(half)
        else:
            radius = scalar(node, "radius")
            if node.tag == "sphere":
                kind, size, half = mujoco.mjtGeom.mjGEOM_SPHERE, [radius, 0.0, 0.0], np.full(3, radius)
            else:
                length = scalar(node, "length") / 2
                capsule = node.tag == "capsule"
                kind = mujoco.mjtGeom.mjGEOM_CAPSULE if capsule else mujoco.mjtGeom.mjGEOM_CYLINDER
                size, half = [radius, length, 0.0], np.array([radius, radius, length + (radius if capsule else 0.0)])
        if half.min() < 0:
            raise node.error(f"the {node.tag} has a negative size")
        if half.min() == 0:
            return None
        signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
        return kind, size, signs * half

    def _mesh(self, node: Node, link: Link) -> tuple[tuple[Path, tuple[float, ...]], list[MeshPart]]:
        path = self._find(node, "mesh")
        if len(node.get("scale").replace(",", " ").split()) == 1:
            factor = np.full(3, scalar(node, "scale"))
        else:
            factor = vector(node, "scale", 3, (1.0, 1.0, 1.0))
        if np.any(factor == 0):
            raise node.error(f"scale=\"{node.get('scale')}\" flattens the mesh of link '{link.name}'")
        key = (path, tuple(factor.tolist()))
        if key not in self._parts:
            self._parts[key] = load_mesh(path, key[1])
        return key, self._parts[key]

    def _find(self, node: Node, what: str) -> Path:
        name = node.get("filename") or node.get("file")
        if not name:
            raise node.error(f"the {what} names no file")
        tried: list[Path] = []
        plain = Path(name.split("://")[-1]).name if self.strip else name
        if self.meshdir:
            tried.append(self.folder / self.meshdir / plain)
        tried.extend(candidates(plain, self.folder))
        for path in tried:
            if path.is_file():
                return path.resolve()
        places = "; ".join(dict.fromkeys(str(p) for p in tried[:3]))
        raise node.error(f"the {what} file '{name}' does not exist", hint=near_file(tried[0]) or f"looked for {places}")

    def _left_out(self, link: Link, node: Node, what: str) -> None:
        self.warnings.append(f"link '{link.name}' (line {node.line}): {what} is left out")

    def _unique(self, name: str, geom: bool = False) -> str:
        prefix = "geom:" if geom else "asset:"
        name = name.replace("%", "_")
        out, k = name, 1
        while prefix + out in self._names:
            k += 1
            out = f"{name}_{k}"
        self._names.add(prefix + out)
        return out

    def _note_points(self, link: Link, points: np.ndarray, pos: np.ndarray, quat: np.ndarray) -> None:
        self._boxes.setdefault(link.name, []).append(_placed(points, pos, quat))


def _box_corners(points: np.ndarray) -> np.ndarray:
    low, high = points.min(axis=0), points.max(axis=0)
    return np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])


def _placed(points: np.ndarray, pos: np.ndarray, quat: np.ndarray) -> np.ndarray:
    return points @ matrix(quat).T + pos

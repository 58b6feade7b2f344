"""Planes, boxes, balls and single meshes as parts of a scene, with looks that need no further work."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

from genesis_core.compiler.entities import EntitySpec, MaterialSpec
from genesis_core.compiler.locate import find_file
from genesis_core.compiler.meshes import (
    add_collision_mesh,
    add_picture,
    add_visual_parts,
    load_mesh,
    read_image,
    set_texture,
    turned_up,
)

_PLANE_SPACING = 0.05  # [m] third size of a plane: distance of MuJoCo's grid lines
_TYPES = {
    "box": mujoco.mjtGeom.mjGEOM_BOX,
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
    "capsule": mujoco.mjtGeom.mjGEOM_CAPSULE,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
    "ellipsoid": mujoco.mjtGeom.mjGEOM_ELLIPSOID,
}
VISUAL_GROUP, COLLISION_GROUP = 2, 3
# Muted colours for primitives without one, told apart at a glance and calm side by side.
_PALETTE = (
    (0.85, 0.45, 0.25, 1.0),
    (0.27, 0.55, 0.72, 1.0),
    (0.90, 0.72, 0.30, 1.0),
    (0.36, 0.62, 0.45, 1.0),
    (0.62, 0.42, 0.62, 1.0),
    (0.75, 0.76, 0.78, 1.0),
)


def add_plane(
    spec: mujoco.MjSpec, entity: EntitySpec, name: str, pos: np.ndarray, quat: np.ndarray, folder: Path
) -> None:
    """A ground plane: a quiet checker of one-metre tiles unless a look is given. Adds a sky if there is none."""
    geom = spec.worldbody.add_geom(name=name, type=mujoco.mjtGeom.mjGEOM_PLANE, pos=pos, quat=quat)
    half = entity.size or (0.0, 0.0)
    geom.size = [half[0], half[1], _PLANE_SPACING]
    _contact_settings(geom, entity)
    if entity.rgba is None and entity.material is None:
        texture = f"{name}_checker"
        spec.add_texture(
            name=texture,
            type=mujoco.mjtTexture.mjTEXTURE_2D,
            builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
            mark=mujoco.mjtMark.mjMARK_EDGE,
            rgb1=[0.24, 0.27, 0.31],
            rgb2=[0.29, 0.32, 0.36],
            markrgb=[0.40, 0.43, 0.47],
            width=256,
            height=256,
        )
        material = spec.add_material(name=name, texrepeat=[1, 1], texuniform=True, reflectance=0.08, specular=0.2)
        set_texture(material, texture)
        geom.material = name
    else:
        _look(spec, geom, entity, name, folder)
    if not any(t.type == mujoco.mjtTexture.mjTEXTURE_SKYBOX for t in spec.textures):
        spec.add_texture(
            name=f"{name}_sky",
            type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
            builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
            rgb1=[0.62, 0.72, 0.82],
            rgb2=[0.16, 0.20, 0.26],
            width=256,
            height=1536,
        )


def add_primitive(
    spec: mujoco.MjSpec,
    entity: EntitySpec,
    name: str,
    pos: np.ndarray,
    quat: np.ndarray,
    folder: Path,
    warnings: list[str],
) -> None:
    """A body with one shape; it floats unless it is fixed."""
    body = spec.worldbody.add_body(name=name, pos=pos, quat=quat)
    if not entity.fixed:
        body.add_freejoint(name=name)
    if entity.type == "mesh":
        _add_mesh(spec, body, entity, name, folder, warnings)
        return
    geom = body.add_geom(name=name, type=_TYPES[entity.type])
    geom.size = _half_sizes(entity)
    _physics(geom, entity)
    if entity.rgba is None and entity.material is None:
        geom.rgba = _PALETTE[len(spec.bodies) % len(_PALETTE)]
    _look(spec, geom, entity, name, folder)


def _half_sizes(entity: EntitySpec) -> list[float]:
    """MuJoCo's geom size from the entity's full lengths."""
    if entity.type == "box":
        return [x / 2 for x in entity.size or ()]
    if entity.type == "ellipsoid":
        return list(entity.size or ())
    radius = entity.radius or 0.0
    if entity.type == "sphere":
        return [radius, 0.0, 0.0]
    return [radius, (entity.height or 0.0) / 2, 0.0]


def _add_mesh(
    spec: mujoco.MjSpec, body: mujoco.MjsBody, entity: EntitySpec, name: str, folder: Path, warnings: list[str]
) -> None:
    """Visual parts with the file's colours, and the convex hull of all of them for contacts and mass."""
    path = find_file(entity.file, folder, "mesh file", f'entity "{entity.name}"')
    scale = entity.scale if isinstance(entity.scale, tuple) else (entity.scale,) * 3
    parts = turned_up(load_mesh(path, scale), path, entity.up)
    own_look = entity.rgba is not None or entity.material is not None
    geoms = add_visual_parts(spec, body, parts, name, path, warnings, plain=own_look)
    for geom in geoms:
        geom.group = VISUAL_GROUP
        if own_look:
            _look(spec, geom, entity, name, folder)
    hull = add_collision_mesh(spec, body, parts, f"{name}_collision", path, warnings)
    hull.name = name
    hull.group = COLLISION_GROUP
    _physics(hull, entity)


def _physics(geom: mujoco.MjsGeom, entity: EntitySpec) -> None:
    if entity.mass is not None:
        geom.mass = entity.mass
    elif entity.density is not None:
        geom.density = entity.density
    _contact_settings(geom, entity)


def _contact_settings(geom: mujoco.MjsGeom, entity: EntitySpec) -> None:
    if entity.friction is not None:
        friction = entity.friction if isinstance(entity.friction, tuple) else (entity.friction,)
        geom.friction = [*friction, *list(geom.friction)[len(friction) :]]
    for key in ("condim", "contype", "conaffinity", "priority", "margin", "group"):
        value = getattr(entity, key)
        if value is not None:
            setattr(geom, key, value)
    if entity.solref is not None:
        geom.solref = entity.solref
    if entity.solimp is not None:
        geom.solimp = entity.solimp


def _look(spec: mujoco.MjSpec, geom: mujoco.MjsGeom, entity: EntitySpec, name: str, folder: Path) -> None:
    if entity.rgba is not None:
        geom.rgba = [*entity.rgba, 1.0][:4]
    if entity.material is None:
        return
    if spec.material(name) is None:
        _add_material(spec, entity.material, name, entity, folder)
    geom.material = name


def _add_material(spec: mujoco.MjSpec, look: MaterialSpec, name: str, entity: EntitySpec, folder: Path) -> None:
    rgba = [*entity.rgba, 1.0][:4] if entity.rgba is not None else [1.0, 1.0, 1.0, 1.0]
    if look.texture:
        path = find_file(look.texture, folder, "texture file", f'entity "{entity.name}" material')
        material = add_picture(spec, name, read_image(path), rgba)
    else:
        material = spec.add_material(name=name, rgba=rgba)
    for key in ("texuniform", "emission", "specular", "shininess", "reflectance", "metallic", "roughness"):
        setattr(material, key, getattr(look, key))
    material.texrepeat = list(look.texrepeat)

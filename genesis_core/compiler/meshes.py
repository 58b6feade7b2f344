"""Mesh files of any common kind as triangle parts with colours and textures, and their way into a MuJoCo model."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from genesis_core.compiler.source import MAX_ASSET_BYTES, MESH_SUFFIXES, check_file, read_bytes
from genesis_core.errors import SceneError

MAX_FACES = 5_000_000
MAX_IMAGE_SIDE = 1024  # [pixel] larger pictures are made smaller: a robot seldom fills the window
MAX_IMAGE_PIXELS = 1 << 28  # more than this is refused
_STL_FACE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_FLAT = 1e-6  # a mesh thinner than this share of its size has no volume


@dataclass
class MeshPart:
    """Triangles with one look, in the mesh file's frame after scaling."""

    vertices: np.ndarray  # (n, 3) float64 [m]
    faces: np.ndarray  # (m, 3) int32
    normals: np.ndarray | None = None  # (n, 3)
    uv: np.ndarray | None = None  # (n, 2), origin at the lower left
    rgba: tuple[float, float, float, float] | None = None
    image: np.ndarray | None = None  # (h, w, 3 or 4) uint8
    name: str = ""


def load_mesh(path: Path, scale: Sequence[float] = (1.0, 1.0, 1.0)) -> list[MeshPart]:
    """The parts of a mesh file (.obj .stl .dae .glb .gltf .ply), one per material; SceneError if it is broken."""
    check_file(path, MAX_ASSET_BYTES, "mesh file")
    suffix = path.suffix.lower()
    if suffix not in MESH_SUFFIXES:
        raise SceneError(
            f"'{suffix}' is no kind of mesh that can be read", file=path, hint=f"known: {', '.join(MESH_SUFFIXES)}"
        )
    parts = _binary_stl(path) if suffix == ".stl" else None
    if parts is None:
        parts = _by_trimesh(path)
    parts = [_cleaned(part, path) for part in parts]
    parts = [part for part in parts if len(part.faces)]
    if not parts:
        raise SceneError("the mesh holds no triangles", file=path)
    total = sum(len(part.faces) for part in parts)
    if total > MAX_FACES:
        raise SceneError(f"the mesh has {total} triangles, more than {MAX_FACES}", file=path, hint="simplify it")
    factor = np.asarray(scale, float)
    return parts if np.all(factor == 1.0) else [_scaled(part, factor) for part in parts]


def _binary_stl(path: Path) -> list[MeshPart] | None:
    """A binary STL by NumPy alone (the usual case, a hundred times faster); None if the file is text."""
    raw = read_bytes(path, what="mesh file")
    if len(raw) < 84:
        if raw[:5].lower() == b"solid":
            return None
        raise SceneError(f"the STL file has only {len(raw)} bytes: it is cut off", file=path)
    count = int(np.frombuffer(raw, "<u4", 1, 80)[0])
    expected = 84 + 50 * count
    if raw[:5].lower() == b"solid" and len(raw) != expected:
        return None
    if count == 0:
        raise SceneError("the STL file holds no triangles", file=path)
    if len(raw) < expected:
        have = (len(raw) - 84) // 50
        raise SceneError(f"the STL file is cut off: {have} of {count} triangles", file=path, hint="export it again")
    corners = np.frombuffer(raw, _STL_FACE, count, 84)["corners"].reshape(-1, 3)
    if not np.isfinite(corners).all():
        bad = int(np.argwhere(~np.isfinite(corners).all(axis=1))[0, 0]) // 3
        raise SceneError(f"triangle {bad} of the STL file has a corner that is not a finite number", file=path)
    vertices, faces = np.unique(corners, axis=0, return_inverse=True)
    return [MeshPart(vertices.astype(np.float64), faces.reshape(-1, 3).astype(np.int32))]


def _by_trimesh(path: Path) -> list[MeshPart]:
    import trimesh

    try:
        scene = trimesh.load_scene(str(path), process=False)
    except MemoryError:
        raise SceneError("the mesh does not fit in memory", file=path) from None
    except RecursionError:
        raise SceneError("the mesh file refers to itself", file=path) from None
    except Exception as error:  # trimesh and its readers raise whatever they meet
        raise SceneError(f"the mesh cannot be read: {_short(error)}", file=path, hint="is the file complete?") from None
    unit = _unit(scene) if path.suffix.lower() == ".dae" else 1.0
    plain = path.suffix.lower() == ".obj" and b"usemtl" not in read_bytes(path, what="mesh file")
    parts: list[MeshPart] = []
    for node in scene.graph.nodes_geometry:
        transform, name = scene.graph[node]
        mesh = scene.geometry[name]
        if isinstance(mesh, trimesh.Trimesh) and len(mesh.faces):
            if np.shape(mesh.vertices)[1:] != (3,) or np.shape(mesh.faces)[1:] != (3,):
                raise SceneError("the vertices of the mesh do not have three coordinates", file=path)
            part = _part_of(mesh, transform, str(name))
            if plain:
                part.rgba = None  # the reader's own grey
            parts.append(part if unit == 1.0 else _scaled(part, np.full(3, unit)))
    return parts


def _unit(scene: Any) -> float:
    """Metres per unit of a COLLADA file."""
    text = str(scene.units or "")
    number = text.split("*")[0].strip() if "*" in text else "1"
    try:
        return float(number)
    except ValueError:
        return 1.0


def _part_of(mesh: Any, transform: np.ndarray, name: str) -> MeshPart:
    linear = transform[:3, :3]
    vertices = np.asarray(mesh.vertices, float) @ linear.T + transform[:3, 3]
    faces = np.asarray(mesh.faces, np.int32)
    if np.linalg.det(linear) < 0:
        faces = faces[:, ::-1].copy()
    normals = None
    given = mesh._cache.cache.get("vertex_normals") if hasattr(mesh, "_cache") else None
    if given is not None and len(given) == len(vertices):
        normals = np.asarray(given, float) @ np.linalg.pinv(linear)
    part = MeshPart(vertices, faces, normals, name=name)
    _read_look(part, mesh.visual, len(vertices))
    return part


def _read_look(part: MeshPart, visual: Any, count: int) -> None:
    """Colour, picture and texture coordinates of a trimesh visual."""
    material = getattr(visual, "material", None)
    uv = getattr(visual, "uv", None)
    if material is not None:
        image = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
        if image is not None and uv is not None and len(uv) == count:
            part.image = _image_array(image)
            part.uv = np.asarray(uv, float)[:, :2]
        factor = getattr(material, "baseColorFactor", None)
        colour = factor if factor is not None else getattr(material, "diffuse", None)
        if colour is None:
            colour = getattr(material, "main_color", None)
        part.rgba = _rgba(colour)
        if part.image is not None and factor is None:
            part.rgba = (1.0, 1.0, 1.0, part.rgba[3] if part.rgba else 1.0)
    elif getattr(visual, "kind", None) in ("vertex", "face"):
        colours = np.asarray(visual.vertex_colors if visual.kind == "vertex" else visual.face_colors, float)
        part.rgba = _rgba(colours.mean(axis=0))


def _rgba(colour: Any) -> tuple[float, float, float, float] | None:
    """Numbers between 0 and 1 from 0..255 integers or 0..1 floats, with opacity."""
    if colour is None:
        return None
    values = np.asarray(colour)
    numbers = values.astype(float)
    if np.issubdtype(values.dtype, np.integer) or numbers.max(initial=0.0) > 1.0:
        numbers = numbers / 255.0
    if len(numbers) == 3:
        numbers = np.append(numbers, 1.0)
    if len(numbers) != 4 or not np.isfinite(numbers).all():
        return None
    r, g, b, a = np.clip(numbers, 0.0, 1.0).tolist()
    return (r, g, b, a if a > 0 else 1.0)  # exporters write opacity 0 for "not given"


def _short(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text[:160]


def _cleaned(part: MeshPart, path: Path) -> MeshPart:
    """Faces with valid corners; non-finite vertices are an error."""
    if not np.isfinite(part.vertices).all():
        bad = int(np.argwhere(~np.isfinite(part.vertices).all(axis=1))[0, 0])
        raise SceneError(f"vertex {bad} of the mesh is not a finite number", file=path)
    if part.faces.size and (part.faces.min() < 0 or part.faces.max() >= len(part.vertices)):
        raise SceneError(
            f"a triangle names vertex {int(part.faces.max())}, but there are {len(part.vertices)}", file=path
        )
    f = part.faces
    good = (f[:, 0] != f[:, 1]) & (f[:, 1] != f[:, 2]) & (f[:, 0] != f[:, 2])
    if not good.all():
        part = replace(part, faces=f[good])
    if part.normals is not None and not np.isfinite(part.normals).all():
        part = replace(part, normals=None)
    if part.uv is not None and not np.isfinite(part.uv).all():
        part = replace(part, uv=None, image=None)
    return part


def _scaled(part: MeshPart, factor: np.ndarray) -> MeshPart:
    faces = part.faces[:, ::-1].copy() if np.prod(factor) < 0 else part.faces
    normals = None if part.normals is None else part.normals / factor
    return replace(part, vertices=part.vertices * factor, faces=faces, normals=normals)


def turned_up(parts: list[MeshPart], path: Path, up: str) -> list[MeshPart]:
    """Parts with z up: glTF is y-up by its standard; other files are taken as they are unless `up` says "y"."""
    if up == "z" or (up == "auto" and path.suffix.lower() not in (".glb", ".gltf")):
        return parts
    turn = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    return [
        replace(p, vertices=p.vertices @ turn.T, normals=None if p.normals is None else p.normals @ turn.T)
        for p in parts
    ]


def read_image(path: Path) -> np.ndarray:
    """A picture file as (height, width, 3 or 4) uint8."""
    from PIL import Image

    raw = read_bytes(path, what="picture")
    try:
        with Image.open(io.BytesIO(raw)) as image:
            if image.width * image.height > MAX_IMAGE_PIXELS:
                raise SceneError(
                    f"the picture has {image.width}x{image.height} pixels", file=path, hint="make it smaller"
                )
            return _image_array(image)
    except SceneError:
        raise
    except Exception as error:  # PIL's readers raise whatever they meet
        raise SceneError(f"the picture cannot be read: {_short(error)}", file=path) from None


def _image_array(image: Any) -> np.ndarray:
    if max(image.size) > MAX_IMAGE_SIDE:
        image.thumbnail((MAX_IMAGE_SIDE, MAX_IMAGE_SIDE))  # decodes JPEG at the smaller size at once
    transparent = image.mode in ("RGBA", "LA") or "transparency" in image.info
    return np.asarray(image.convert("RGBA" if transparent else "RGB"), np.uint8)


def thickness(vertices: np.ndarray) -> float:
    """Smallest extent of points along their principal axes, divided by the largest (0 = flat)."""
    if len(vertices) < 4:
        return 0.0
    centred = vertices - vertices.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    spread = np.ptp(centred @ axes, axis=0)
    return float(spread.min() / spread.max()) if spread.max() > 0 else 0.0


def add_mesh_asset(spec: mujoco.MjSpec, name: str, part: MeshPart, visual: bool) -> mujoco.MjsMesh:
    """A mesh asset from triangles held in memory."""
    mesh = spec.add_mesh(name=name)
    fill_mesh(mesh, part, visual)
    if visual:
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL  # visuals need not be closed
    return mesh


def fill_mesh(mesh: mujoco.MjsMesh, part: MeshPart, visual: bool) -> None:
    """Puts triangles into a mesh asset, with normals and texture coordinates if it is to be seen."""
    mesh.uservert = np.ascontiguousarray(part.vertices, np.float32).ravel()
    mesh.userface = np.ascontiguousarray(part.faces, np.int32).ravel()
    if not visual:
        return
    if part.normals is not None:
        mesh.usernormal = np.ascontiguousarray(part.normals, np.float32).ravel()
        mesh.userfacenormal = mesh.userface
    if part.uv is not None:
        uv = part.uv.astype(np.float32).copy()
        uv[:, 1] = 1.0 - uv[:, 1]  # MuJoCo counts from the first image row
        mesh.usertexcoord = uv.ravel()
        mesh.userfacetexcoord = mesh.userface


def add_visual_parts(
    spec: mujoco.MjSpec,
    body: mujoco.MjsBody,
    parts: Sequence[MeshPart],
    name: str,
    path: Path,
    warnings: list[str],
    plain: bool = False,
    **geom: Any,
) -> list[mujoco.MjsGeom]:
    """Geoms that are only seen, one per part, with the parts' colours (not if `plain`)."""
    out = []
    for k, part in enumerate(parts):
        label = name if len(parts) == 1 else f"{name}_{k}"
        if len(part.vertices) < 4 or np.ptp(part.vertices, axis=0).max() <= 0:
            continue
        add_mesh_asset(spec, label, part, visual=True)
        shape = body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_MESH, meshname=label, contype=0, conaffinity=0, density=0, group=2, **geom
        )
        if not plain:
            _paint(spec, shape, part, label)
        out.append(shape)
    if not out:
        warnings.append(f"{path.name}: the mesh is too small to be shown")
    return out


def _paint(spec: mujoco.MjSpec, shape: mujoco.MjsGeom, part: MeshPart, label: str) -> None:
    if part.image is not None:
        add_picture(spec, label, part.image, part.rgba)
        shape.material = label
    elif part.rgba is not None:
        shape.rgba = part.rgba


def add_picture(
    spec: mujoco.MjSpec, name: str, image: np.ndarray, rgba: Sequence[float] | None = None
) -> mujoco.MjsMaterial:
    """A texture and a material that shows it, both called `name`; image (h, w, 3 or 4) uint8, first row at the top."""
    texture = spec.add_texture(
        name=name,
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        width=image.shape[1],
        height=image.shape[0],
        nchannel=image.shape[2],
    )
    texture.data = np.ascontiguousarray(image).tobytes()
    material = spec.add_material(name=name, rgba=list(rgba or (1.0, 1.0, 1.0, 1.0)), specular=0.3)
    set_texture(material, name)
    return material


def set_texture(material: mujoco.MjsMaterial, texture: str) -> None:
    """Gives a material a colour texture."""
    textures = list(material.textures)
    textures[int(mujoco.mjtTextureRole.mjTEXROLE_RGB)] = texture
    material.textures = textures


def merged_part(parts: Sequence[MeshPart]) -> MeshPart:
    """All triangles as one part without looks."""
    if len(parts) == 1:
        return MeshPart(parts[0].vertices, parts[0].faces)
    offsets = np.cumsum([0, *(len(p.vertices) for p in parts[:-1])])
    faces = np.concatenate([p.faces + o for p, o in zip(parts, offsets, strict=True)]).astype(np.int32)
    return MeshPart(np.concatenate([p.vertices for p in parts]), faces)


def add_collision_mesh(
    spec: mujoco.MjSpec,
    body: mujoco.MjsBody,
    parts: Sequence[MeshPart],
    asset: str,
    path: Path,
    warnings: list[str],
    **geom: Any,
) -> mujoco.MjsGeom:
    """A geom that touches: the convex hull of all parts, or a thin box where the mesh is flat."""
    part = merged_part(parts)
    if thickness(part.vertices) > _FLAT:
        mesh = add_mesh_asset(spec, asset, part, visual=False)
        mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
        return body.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=asset, **geom)
    low, high = part.vertices.min(axis=0), part.vertices.max(axis=0)
    half = np.maximum((high - low) / 2, 1e-4)
    warnings.append(f"{path.name}: the collision mesh is flat, a thin box of its size replaces it")
    shape = body.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=half, **geom)
    turn = np.zeros(4)
    mujoco.mju_copy4(turn, np.asarray(shape.quat, float))
    offset = np.zeros(3)
    mujoco.mju_rotVecQuat(offset, (low + high) / 2, turn)
    shape.pos = np.asarray(shape.pos, float) + offset
    return shape

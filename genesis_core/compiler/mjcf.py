"""MJCF files to MjSpec, MjSpec to MjModel, and MuJoCo's messages to SceneErrors with file, line and element."""

from __future__ import annotations

import re
import warnings as python_warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import mujoco
import numpy as np

from genesis_core.compiler.source import MAX_ASSET_BYTES, XmlSource, check_file, near_file
from genesis_core.compiler.xmltree import Node
from genesis_core.errors import SceneError

_PARSE = re.compile(r"(?P<what>.*?)\s*\n\s*Element '(?P<tag>[^']*)'(?:, line (?P<line>\d+))?", re.DOTALL)
_COMPILE = re.compile(
    r"(?P<what>.*?)\s*\n\s*Element name '(?P<name>.*?)', id -?\d+(?:, line (?P<line>\d+))?(?P<more>.*)", re.DOTALL
)
_QUOTED = re.compile(r"'([^']+)'")
_ASSET_TAGS = {"mesh": "meshdir", "hfield": "meshdir", "skin": "meshdir", "texture": "texturedir"}
_FACES = ("fileright", "fileleft", "fileup", "filedown", "filefront", "fileback")

# Said by MuJoCo about attached files: conflicts of options are found and worded by OptionMerger.
_EXPECTED = ("Attach conflict", "Attaching a spec with an empty prefix")

_HINTS = (
    ("mass and inertia of moving bodies", "give the body an <inertial>, or a geom with mass or density"),
    ("inertia must satisfy A + B >= C", 'correct the inertia, or set <compiler balanceinertia="true"/>'),
    ("unrecognized element", "check the spelling and where the element stands"),
    ("unrecognized attribute", "check the spelling; MuJoCo's XML reference lists the attributes of each element"),
    ("repeated name", "names must be unique among elements of a kind"),
    ("free joint can only be used on top level", "only bodies directly in <worldbody> can float freely"),
    ("mesh volume is too small", 'use inertia="shell" for thin meshes'),
    ("at least 4 vertices required", "the mesh is flat or empty; use a box in its place"),
    ("plugin", "only plugins that ship with MuJoCo can be found"),
)


@contextmanager
def mujoco_warnings(into: list[str]) -> Iterator[None]:
    """Collects what MuJoCo would print (and write to MUJOCO_LOG.TXT) while files are read."""
    before = mujoco.get_mju_user_warning()

    def take(message: str) -> None:
        text = " ".join(message.split())
        if text not in into and not text.startswith(_EXPECTED):
            into.append(text)

    mujoco.set_mju_user_warning(take)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def read_mjcf(source: XmlSource) -> mujoco.MjSpec:
    """The editable model of a parsed MJCF file. Assets are only checked to exist; compiling reads them."""
    if source.root.tag != "mujoco":
        raise source.root.error(f"the root element is <{source.root.tag}>, not <mujoco>", hint="is it an MJCF file?")
    check_assets(source)
    try:
        spec = mujoco.MjSpec.from_file(str(source.path)) if source.files else mujoco.MjSpec.from_string(source.text)
    except (ValueError, RuntimeError, mujoco.FatalError, mujoco.UnexpectedError) as error:
        raise scene_error(str(error), [source]) from None
    _read_foreign_meshes(spec, source)
    return spec


def _read_foreign_meshes(spec: mujoco.MjSpec, source: XmlSource) -> None:
    """Reads meshes of kinds that MuJoCo has no decoder for (COLLADA, glTF, PLY, STL as text)."""
    for mesh in spec.meshes:
        suffix = Path(mesh.file).suffix.lower()
        if suffix not in (".dae", ".glb", ".gltf", ".ply", ".stl"):
            continue
        path = asset_folder(source, "meshdir") / mesh.file
        if suffix == ".stl" and not is_text_stl(path):
            continue
        from genesis_core.compiler.meshes import fill_mesh, load_mesh, merged_part

        node = next((n for n in source.nodes() if n.tag == "mesh" and n.get("file") == mesh.file), source.root)
        try:
            parts = load_mesh(path)
        except SceneError as error:
            raise node.error(f"{error.what}: {path.name}", hint=error.hint) from None
        if not mesh.name:
            mesh.name = Path(mesh.file).stem
        mesh.file = ""
        fill_mesh(mesh, parts[0] if len(parts) == 1 else merged_part(parts), visual=len(parts) == 1)


def is_text_stl(path: Path) -> bool:
    """Whether an STL file is of the text kind."""
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError:
        return False
    return head[:5].lower() == b"solid" and b"facet" in head and b"\0" not in head


def forget_assets() -> None:
    """Empties MuJoCo's cache of meshes and textures, which misses files that change within a second (hot reload)."""
    mujoco.mj_clearCache(mujoco.mj_getCache())


def _compile(spec: mujoco.MjSpec, warnings: list[str] | None) -> mujoco.MjModel:
    """Compiles; where only the length ranges of muscles cannot be computed, they are left out with a warning."""
    try:
        return spec.compile()
    except ValueError as error:
        if "Lengthrange computation" not in str(error):
            raise
        spec.compiler.LRopt.mode = int(mujoco.mjtLRMode.mjLRMODE_NONE)
        mj = spec.compile()
        if warnings is not None:
            warnings.append(f"length ranges of actuators are left out: {' '.join(str(error).split())}")
        return mj


def compile_spec(
    spec: mujoco.MjSpec, sources: Sequence[XmlSource] = (), warnings: list[str] | None = None
) -> mujoco.MjModel:
    """The compiled model of a spec, checked to hold finite numbers."""
    try:
        with python_warnings.catch_warnings(record=True) as said:
            python_warnings.simplefilter("always", UserWarning)
            mj = _compile(spec, warnings)
        if warnings is not None:
            texts = (" ".join(str(w.message).split()) for w in said)
            warnings.extend(t for t in texts if not t.startswith(_EXPECTED))
    except (ValueError, RuntimeError, mujoco.FatalError, mujoco.UnexpectedError) as error:
        raise scene_error(str(error), sources) from None
    except MemoryError:
        raise SceneError("the scene does not fit in memory", file=sources[0].path if sources else None) from None
    check_finite(mj, sources)
    return mj


def asset_folder(source: XmlSource, attribute: str) -> Path:
    """The folder in which MuJoCo looks for a kind of asset ("meshdir" or "texturedir")."""
    found = ""
    for node in source.nodes():
        if node.tag == "compiler":
            found = node.get(attribute) or node.get("assetdir") or found
    return source.path.parent / found if found else source.path.parent


def check_assets(source: XmlSource) -> None:
    """Every file that an asset names must exist and be of a size that can be read."""
    strip = any(n.tag == "compiler" and n.get("strippath") == "true" for n in source.nodes())
    for node in source.nodes():
        attribute = _ASSET_TAGS.get(node.tag)
        if attribute is None:
            continue
        names = [node.get(a) for a in ("file", *(_FACES if node.tag == "texture" else ())) if node.get(a)]
        for name in names:
            wanted = asset_folder(source, attribute) / (Path(name).name if strip else name)
            if not wanted.is_file() and not wanted.is_dir():
                hint = near_file(wanted) or f"looked for {wanted}"
                raise node.error(f"the file '{name}' does not exist", hint=hint)
            try:
                check_file(wanted, MAX_ASSET_BYTES, f"{node.tag} file")
            except SceneError as error:
                raise node.error(f"{error.what}: {wanted}", hint=error.hint) from None


def check_finite(mj: mujoco.MjModel, sources: Sequence[XmlSource] = ()) -> None:
    """Refuses a compiled model with NaN or absurd numbers (a radius of 1e300 gives an infinite inertia)."""
    owner = {"body": mujoco.mjtObj.mjOBJ_BODY, "geom": mujoco.mjtObj.mjOBJ_GEOM, "jnt": mujoco.mjtObj.mjOBJ_JOINT}
    owner |= {"actuator": mujoco.mjtObj.mjOBJ_ACTUATOR, "site": mujoco.mjtObj.mjOBJ_SITE}
    for name in (
        "body_mass", "body_inertia", "body_pos", "body_quat", "body_ipos", "body_iquat", "geom_pos", "geom_quat",
        "geom_size", "geom_friction", "site_pos", "site_size", "cam_pos", "light_pos", "geom_rgba",
        "jnt_pos", "jnt_axis", "jnt_stiffness", "actuator_gear", "actuator_gainprm",
        "actuator_biasprm", "dof_damping", "dof_armature", "qpos0", "key_qpos", "key_qvel", "mesh_vert",
    ):  # fmt: skip
        values = np.asarray(getattr(mj, name), dtype=np.float64)
        if values.size == 0:
            continue
        bad = ~(np.abs(values) < 1e15)
        if not bad.any():
            continue
        row = int(np.argwhere(bad.reshape(len(values), -1).any(axis=1))[0, 0])
        value = float(values.reshape(len(values), -1)[row][bad.reshape(len(values), -1)[row]][0])
        kind = name.split("_")[0]
        label = mujoco.mj_id2name(mj, owner[kind], row) if kind in owner else None
        node = find_named(sources, label) if label else None
        what = f"{name} of {kind} {label!r} is {value:g}" if label else f"{name}[{row}] is {value:g}"
        if node is not None:
            raise node.error(what, hint="a number in the file is not finite or far too large")
        file = sources[0].path if sources else None
        raise SceneError(what, file=file, hint="a number in the file is not finite or far too large")


def find_named(sources: Sequence[XmlSource], name: str, line: int = 0, kind: str = "") -> Node | None:
    """The element with a name (also without the prefix that attaching adds), best the one at a line or of a kind."""
    names = [name]
    while "/" in names[-1]:
        names.append(names[-1].split("/", 1)[1])
    for wanted in names:
        found = [n for s in sources for n in s.nodes() if n.get("name") == wanted]
        exact = [n for n in found if line and n.line == line]
        same = [n for n in found if kind and n.tag in kind]
        if exact or same or found:
            return (exact or same or found)[0]
    return None


def _find_tag(sources: Sequence[XmlSource], tag: str, line: int, what: str) -> Node | None:
    """The element that a parser message means: by tag and line, or by the quoted attribute it complains about."""
    nodes = [n for s in sources for n in s.nodes() if n.tag == tag]
    at_line = [n for n in nodes if line and n.line <= line <= max(n.end_line, n.line)]
    exact = [n for n in at_line if n.line == line]
    quoted = _QUOTED.findall(what)
    pool = exact or at_line or nodes
    for word in quoted:
        having = [n for n in pool if word in n.attributes or word in n.attributes.values()]
        if having:
            return having[0]
    if len(pool) == 1 or exact:
        return pool[0]
    return None


def scene_error(message: str, sources: Sequence[XmlSource]) -> SceneError:
    """A SceneError from what MuJoCo says, with the place found again in the parsed files."""
    message = message.strip()
    file = sources[0].path if sources else None
    node: Node | None = None
    line = 0
    element = ""
    if match := _COMPILE.search(message):
        what = " ".join((match["what"] + " " + match["more"]).split())
        line = int(match["line"] or 0)
        name = match["name"]
        kind = next((w for w in reversed(re.findall(r"\w+", match["what"]))), "")
        if name:
            node = find_named(sources, name, line, kind)
            element = name
        elif line:
            at_line = [n for s in sources for n in s.nodes() if n.line == line]
            said = [n for n in at_line if re.search(rf"\b{re.escape(n.tag)}\b", what)]
            node = next(iter(said or at_line), None)
    elif match := _PARSE.search(message):
        what = " ".join(match["what"].split())
        line = int(match["line"] or 0)
        element = match["tag"]
        node = _find_tag(sources, element, line, what)
    else:
        what = " ".join(message.split())
        for word in _QUOTED.findall(what):
            node = next((n for s in sources for n in s.nodes() if word in n.attributes.values()), None)
            if node is not None:
                break
    what = re.sub(r"^(XML )?Error: ", "", what.replace("Schema violation: ", "")).strip()
    what = what.removeprefix("Error: ") or "MuJoCo cannot compile the scene"
    hint = next((h for key, h in _HINTS if key in what), "")
    if node is not None:
        return node.error(what, hint=hint)
    return SceneError(what, file=file, line=line or None, element=element, hint=hint)

"""From a file of any known kind to a loaded scene: the model, the bundle, the specification, the warnings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from genesis_core.compiler.archive import unpacked
from genesis_core.compiler.bundle import build_bundle
from genesis_core.compiler.compose import Composed, EntityPart, compose
from genesis_core.compiler.entities import EntitySpec
from genesis_core.compiler.mjcf import compile_spec, forget_assets, mujoco_warnings, read_mjcf
from genesis_core.compiler.options import OptionMerger
from genesis_core.compiler.scenefile import (
    CameraSpec,
    SceneSpec,
    line_in_scene_file,
    merged,
    read_scene_file,
    spec_from_dict,
)
from genesis_core.compiler.source import MESH_SUFFIXES, SCENE_SUFFIXES, XmlSource, check_file, read_xml
from genesis_core.compiler.start import Start, start_states
from genesis_core.compiler.support import unsupported
from genesis_core.errors import SceneError
from genesis_core.layout.scene import SceneBundle

if TYPE_CHECKING:
    from genesis_core.compiler.build import Model

Report = Callable[[str, float], None]


@dataclass
class LoadedScene:
    """A scene that is ready to be simulated and shown."""

    spec: SceneSpec
    mj: mujoco.MjModel = field(repr=False)
    bundle: SceneBundle = field(repr=False)
    start: Start = field(repr=False)
    warnings: list[str]
    source: Path | None = None
    files: list[Path] = field(default_factory=list)  # every file that was read, for hot reload

    @cached_property
    def model(self) -> Model:
        """The model for `Simulation`."""
        from genesis_core.compiler.build import Model

        return Model.from_mujoco(self.mj)

    @property
    def unsupported(self) -> tuple[str, ...]:
        """One sentence per feature of the files that is not simulated."""
        return tuple(self.bundle.unsupported)

    def start_states(self, n_envs: int, first_env: int = 0, seed: int | None = None) -> dict[str, np.ndarray]:
        """Start values of environments first_env .. first_env + n_envs - 1 for `Simulation.set`.

        qpos (n_envs, nq), qvel (n_envs, nv), act (n_envs, na), ctrl (n_envs, nu), and mocap_pos (n_envs, nmocap, 3),
        mocap_quat (n_envs, nmocap, 4). An environment's values depend on the seed and its global index alone.
        """
        return start_states(self.start, self.spec.start, n_envs, first_env, self.spec.seed if seed is None else seed)


@dataclass
class _Parts:
    """What reading a file gave, before compiling."""

    mj: mujoco.MjModel
    sources: list[XmlSource]
    parts: list[EntityPart]
    authored_view: bool = False
    authored_stat: bool = False


def load_scene(
    source: str | os.PathLike[str] | SceneSpec,
    overrides: dict[str, Any] | None = None,
    report: Report | None = None,
) -> LoadedScene:
    """Reads and compiles a scene.

    `source` is a path to MJCF (.xml, .mjcf), URDF, a scene file (.toml), an archive of one (.zip, .mjz), a mesh (.obj
    .stl .dae .glb .gltf .ply: it falls on a floor), or a SceneSpec. `overrides` are keys of a scene file that rule over
    what it says, for example `{"n_envs": 64, "options": {"timestep": 0.005}}`. `report(stage, fraction)` is called
    while it works. Errors: SceneError with file, line and element; OptionError for a wrong override.
    """
    report = report or (lambda stage, fraction: None)
    if isinstance(source, SceneSpec):
        spec = spec_from_dict(merged(source.model_dump(exclude_unset=True), overrides)) if overrides else source
        return _load_spec(spec, Path.cwd(), None, report)
    path = check_file(source, what="scene file")
    suffix = path.suffix.lower()
    report("reading files", 0.0)
    if suffix in (".zip", ".mjz"):
        with unpacked(path) as inner:
            loaded = load_scene(inner, overrides, report)
        loaded.bundle.source = str(path)
        loaded.source = path
        loaded.files = [path]
        return loaded
    if suffix == ".toml":
        return _load_spec(read_scene_file(path, overrides), path.parent, path, report)
    if suffix == ".xacro":
        raise SceneError(
            "xacro files are programs that write URDF",
            file=path,
            hint=f"run: xacro {path.name} -o {path.name.removesuffix('.xacro').removesuffix('.urdf')}.urdf",
        )
    if suffix in MESH_SUFFIXES:
        return _load_spec(_mesh_scene(path, overrides), path.parent, path, report)
    if suffix not in (".xml", ".mjcf", ".urdf", ""):
        known = ", ".join((*SCENE_SUFFIXES, *MESH_SUFFIXES))
        raise SceneError(f"'{suffix}' is no kind of file that can be opened", file=path, hint=f"known: {known}")
    xml = read_xml(path)
    if xml.root.tag == "robot":
        return _load_spec(_urdf_scene(path, overrides), path.parent, path, report)
    return _load_mjcf(xml, overrides, report)


def _load_mjcf(xml: XmlSource, overrides: dict[str, Any] | None, report: Report) -> LoadedScene:
    """A single MJCF file, exactly as MuJoCo compiles it, no names changed."""
    path = xml.path
    entity = {"type": "mjcf", "name": path.stem, "file": str(path.resolve()), "prefix": ""}
    spec = spec_from_dict(merged({"name": path.stem, "entities": [entity]}, overrides))
    warnings: list[str] = []
    forget_assets()
    with mujoco_warnings(warnings):
        editable = read_mjcf(xml)
        OptionMerger().apply(editable, spec.options)
        name = editable.modelname
        add_cameras(editable, spec.cameras)
        report("compiling the scene", 0.3)
        mj = compile_spec(editable, [xml], warnings)
    if name and name != "MuJoCo Model" and "name" not in (overrides or {}):
        spec.name = name
    parts = _Parts(mj, [xml], [], *_authored([xml]))
    return _finish(spec, parts, warnings, path, report)


def _load_spec(spec: SceneSpec, folder: Path, path: Path | None, report: Report) -> LoadedScene:
    """A scene of entities."""
    with _placed(spec, path):
        composed = compose(spec.entities, spec.options, folder)
        if path is not None and path.suffix.lower() != ".toml":
            _lower_floor(composed)
        add_cameras(composed.spec, spec.cameras)
        report("compiling the scene", 0.3)
        mj = composed.compile()
    _make_absolute(spec, folder)
    view, stat = _authored(composed.sources)
    only_one = len([e for e in spec.entities if e.type != "plane"]) == 1
    parts = _Parts(mj, composed.sources, composed.parts, view and only_one, stat and only_one)
    return _finish(spec, parts, composed.warnings, path, report, composed)


def _lower_floor(composed: Composed) -> None:
    """Puts the floor that a robot file gets below robots that reach under their origin."""
    lowest = min((part.lowest for part in composed.parts), default=0.0)
    floor = composed.spec.geom("floor")
    if lowest < -1e-6 and floor is not None:
        floor.pos = [0.0, 0.0, 1.1 * lowest]


@contextmanager
def _placed(spec: SceneSpec, path: Path | None) -> Iterator[None]:
    """Adds the scene file and the line to errors about what it says."""
    try:
        yield
    except SceneError as error:
        if error.file is not None or path is None:
            raise
        line = line_in_scene_file(spec, error.element)
        raise SceneError(error.what, file=path, line=line, element=error.element, hint=error.hint) from None


def _finish(
    spec: SceneSpec,
    parts: _Parts,
    warnings: list[str],
    path: Path | None,
    report: Report,
    composed: Composed | None = None,
) -> LoadedScene:
    report("preparing what is drawn", 0.7)
    mj = parts.mj
    with _placed(spec, path):
        start = Start.of(mj, spec.start, parts.parts)
    data = make_data(mj, path)
    data.qpos[:] = start.qpos
    if mj.nmocap:
        data.mocap_pos[:], data.mocap_quat[:] = start.mocap_pos, start.mocap_quat
    warnings.extend(model_warnings(mj))
    bundle = build_bundle(
        mj,
        data,
        name=spec.name,
        source=str(path or ""),
        authored_view=parts.authored_view,
        authored_stat=parts.authored_stat,
        unsupported=unsupported(mj),
        warnings=list(dict.fromkeys(warnings)),
    )
    if spec.cameras:  # the scene's cameras come before those of its robots: the first is the default view
        names = [c.name for c in spec.cameras]
        bundle.cameras.sort(key=lambda c: names.index(c.name) if c.name in names else len(names))
    view = spec.view
    azimuth, elevation, distance = bundle.default_camera
    bundle.default_camera = (
        azimuth if view.azimuth is None else view.azimuth,
        elevation if view.elevation is None else view.elevation,
        distance if view.distance is None else view.distance,
    )
    if view.lookat is not None:
        bundle.stat_center = view.lookat
    files = [file for source in parts.sources for file in source.files]
    if path is not None and path not in files:
        files.insert(0, path)
    report("scene is ready", 1.0)
    return LoadedScene(spec, mj, bundle, start, bundle.warnings, path, files)


def add_cameras(editable: mujoco.MjSpec, cameras: list[CameraSpec]) -> None:
    """Puts the scene file's cameras into the model."""
    from genesis_core.compiler.pose import IDENTITY, euler_to_quat, look_at

    for camera in cameras:
        body = editable.worldbody if not camera.body else editable.body(camera.body)
        if body is None:
            names = [b.name for b in editable.bodies if b.name]
            element, hint = f'camera "{camera.name}" body', near_name(camera.body, names)
            raise SceneError(f"no body is named '{camera.body}'", element=element, hint=hint)
        if camera.lookat is not None:
            quat = look_at(camera.pos, camera.lookat)
        elif camera.euler is not None:
            quat = euler_to_quat(camera.euler)
        else:
            quat = np.array(camera.quat if camera.quat is not None else IDENTITY)
        if editable.camera(camera.name) is not None:
            element = f'camera "{camera.name}" name'
            raise SceneError(f"a camera '{camera.name}' exists already", element=element, hint="choose another name")
        body.add_camera(name=camera.name, pos=camera.pos, quat=quat, fovy=camera.fovy)


def make_data(mj: mujoco.MjModel, path: Path | None) -> mujoco.MjData:
    """Room for one state; a SceneError where the file asks for more memory than there is."""
    try:
        return mujoco.MjData(mj)
    except (MemoryError, mujoco.FatalError, mujoco.UnexpectedError) as error:
        text = " ".join(str(error).split())
        raise SceneError(f"no memory for the scene's data: {text}", file=path, hint="see <size memory>") from None


def near_name(name: str, names: list[str]) -> str:
    """A hint with the likeliest meant name."""
    import difflib

    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    same_end = [n for n in names if n.split("/")[-1] == name]
    found = same_end or near
    return (
        f"did you mean '{found[0]}'?" if found else f"names are: {', '.join(names[:8])}" if names else "there are none"
    )


def model_warnings(mj: mujoco.MjModel) -> list[str]:
    """What is legal but surely not meant."""
    out = []
    for j in range(mj.njnt):
        low, high = mj.jnt_range[j]
        if mj.jnt_limited[j] and low >= high and int(mj.jnt_type[j]) in (2, 3):
            name = mujoco.mj_id2name(mj, mujoco.mjtObj.mjOBJ_JOINT, j) or str(j)
            out.append(f"joint '{name}': the lower limit {low:g} is not below the upper limit {high:g}")
    return out


def _authored(sources: list[XmlSource]) -> tuple[bool, bool]:
    """Whether the files set the free camera's angles and the extent themselves."""
    view = any(
        n.tag == "global" and ("azimuth" in n.attributes or "elevation" in n.attributes)
        for s in sources
        for n in s.nodes()
    )
    stat = any(n.tag == "statistic" and {"extent", "center"} <= set(n.attributes) for s in sources for n in s.nodes())
    return view, stat


def _make_absolute(spec: SceneSpec, folder: Path) -> None:
    """Entity files as full paths, so that the specification means the same in another process."""
    from genesis_core.compiler.locate import find_file

    for entity in spec.entities:
        if entity.file:
            entity.file = str(find_file(entity.file, folder))


def _urdf_scene(path: Path, overrides: dict[str, Any] | None) -> SceneSpec:
    floor = {"type": "plane", "name": "floor"}
    robot = {"type": "urdf", "name": path.stem, "file": str(path.resolve()), "prefix": ""}
    return spec_from_dict(merged({"name": path.stem, "entities": [floor, robot]}, overrides))


def _mesh_scene(path: Path, overrides: dict[str, Any] | None) -> SceneSpec:
    floor = {"type": "plane", "name": "floor"}
    mesh = {"type": "mesh", "name": path.stem or "mesh", "file": str(path.resolve())}
    return spec_from_dict(merged({"name": path.stem, "entities": [floor, mesh]}, overrides))


def entity_specs(items: list[dict[str, Any]]) -> list[EntitySpec]:
    """Checked entities from plain data."""
    return spec_from_dict({"entities": items}).entities

"""gs.Scene: entities, build, step, reset."""

from __future__ import annotations

import difflib
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis_core.api import session
from genesis_core.api.elsewhere import absent_class
from genesis_core.api.entity import RigidEntity
from genesis_core.api.index import IndexingError, indices
from genesis_core.api.materials import Rigid
from genesis_core.api.morphs import Morph
from genesis_core.api.options import (
    SOFT,
    Options,
    ProfilingOptions,
    RigidOptions,
    SceneOptions,
    SimOptions,
    ViewerOptions,
    VisOptions,
)
from genesis_core.api.surfaces import Default
from genesis_core.errors import GenesisError, OptionError, StateError, UnsupportedFeatureError
from genesis_core.layout.grid import env_offsets
from genesis_core.log import get_logger

if TYPE_CHECKING:
    import torch

    from genesis_core.api.control import Controller

log = get_logger(__name__)

MAX_ENVS = 1 << 20
WATCH_EVERY = 32  # steps between looks for diverged environments, which cost as much as a small batch's step
NO_VIEWER = (
    "show_viewer=True has no effect: a window for scripts is not in this version; open scene files with "
    "genesis-studio, or record them with genesis-studio record"
)


class SceneState:
    """What `Scene.get_state` returns and `Scene.reset` takes: positions, velocities and times of all environments."""

    def __init__(self, qpos: np.ndarray, qvel: np.ndarray, time: np.ndarray) -> None:
        self.qpos, self.qvel, self.time = qpos, qvel, time


class Scene:
    """A scene of entities, built into n_envs copies that are stepped together."""

    def __init__(
        self,
        sim_options: SimOptions | None = None,
        tool_options: Any = None,
        rigid_options: RigidOptions | None = None,
        kinematic_options: Options | None = None,
        mpm_options: Any = None,
        sph_options: Any = None,
        fem_options: Any = None,
        sf_options: Any = None,
        pbd_options: Any = None,
        coupler_options: Any = None,
        vis_options: VisOptions | None = None,
        viewer_options: ViewerOptions | None = None,
        profiling_options: ProfilingOptions | None = None,
        renderer: Any = None,
        show_viewer: bool | None = None,
        show_FPS: bool | None = None,
        options: SceneOptions | None = None,
    ) -> None:
        """The groups of options, each with Genesis' defaults; or all of them in `options`.

        Raises StateError before `gs.init`, UnsupportedFeatureError for soft bodies and for solver settings that are
        not built; settings without effect here are named in one warning each.
        """
        session.current()
        soft = (tool_options, mpm_options, sph_options, fem_options, sf_options, pbd_options, coupler_options)
        for name, given in zip(SOFT, soft, strict=True):
            if given is not None:
                raise UnsupportedFeatureError(f"{name}_options: this version simulates rigid bodies")
        groups: dict[str, Any] = {
            "sim": sim_options,
            "rigid": rigid_options,
            "kinematic": kinematic_options,
            "vis": vis_options,
        }
        groups |= {"viewer": viewer_options, "profiling": profiling_options, "renderer": renderer}
        given_groups = {name: value for name, value in groups.items() if value is not None}
        if options is not None and given_groups:
            raise OptionError(f"give options alone, not with {', '.join(given_groups)}", where="gs.Scene")
        self.options = options if options is not None else SceneOptions(**given_groups)
        self.uid = uuid.uuid4().hex[:8]
        self._check_options(show_viewer)
        self._entities: list[RigidEntity] = []
        self._sim: Any = None
        self._model: Any = None
        self._control: Controller | None = None
        self._n_envs = 0
        self._steps = 0
        self._destroyed = False
        self._initial: SceneState | None = None
        self._bad_seen = 0
        self.env_spacing = (0.0, 0.0)
        self.n_envs_per_row: int | None = None
        self.warnings: list[str] = []
        session.register(self)

    def _check_options(self, show_viewer: bool | None) -> None:
        if self.options.sim.requires_grad:
            raise UnsupportedFeatureError("SimOptions.requires_grad = True: the simulation is not differentiable")
        self.options.rigid.refuse_unsupported()
        renderer = self.options.renderer
        if renderer is not None and not isinstance(renderer, Options):
            raise OptionError(f"renderer is {renderer!r}", where="gs.Scene", hint="use gs.renderers.Rasterizer()")
        for group in (
            self.options.sim,
            self.options.rigid,
            self.options.kinematic,
            self.options.vis,
            self.options.viewer,
        ):
            for sentence in group.inert():
                log.warning("%s", sentence)
        if show_viewer:
            log.warning("%s", NO_VIEWER)

    # ------------------------------------------------------------------ entities
    def add_entity(
        self,
        morph: Morph,
        material: Rigid | None = None,
        surface: Default | None = None,
        visualize_contact: bool = False,
        vis_mode: str | None = None,
        name: str | None = None,
    ) -> RigidEntity:
        """Add a shape or a robot file; returns its entity, whose getters work after `build`.

        Raises StateError after build, OptionError for a name that is taken, UnsupportedFeatureError for anything that
        is not a rigid morph.
        """
        if self.is_built:
            raise StateError("Scene is already built.", hint="add entities before scene.build()")
        if isinstance(morph, (list, tuple)):
            raise UnsupportedFeatureError("a list of morphs (heterogeneous entity)", hint="add one entity per morph")
        if not isinstance(morph, Morph):
            raise OptionError(f"not a morph: {morph!r}", where="add_entity", hint="e.g. gs.morphs.Box(size=(1, 1, 1))")
        material = Rigid() if material is None else material
        if not isinstance(material, Rigid):
            raise OptionError(f"not a rigid material: {material!r}", where="add_entity", hint="gs.materials.Rigid()")
        if surface is not None and not isinstance(surface, Default):
            raise OptionError(f"not a surface: {surface!r}", where="add_entity", hint="gs.surfaces.Default()")
        for part in (morph, material, surface):
            for sentence in part.inert() if part is not None else ():
                log.warning("%s", sentence)
        if visualize_contact:
            log.warning("visualize_contact=True has no effect: scripts do not draw in this version")
        taken = {entity.name for entity in self._entities}
        if name is None:
            name = _default_name(morph, taken)
        if name in taken:
            raise OptionError(f"an entity is already named '{name}'", where="add_entity")
        if not name or "/" in name:
            raise OptionError(f"entity name {name!r}: it must not be empty or contain '/'", where="add_entity")
        entity = RigidEntity(self, len(self._entities), name, morph, material, surface)
        self._entities.append(entity)
        return entity

    @property
    def entities(self) -> list[RigidEntity]:
        return list(self._entities)

    @property
    def entity_names(self) -> list[str]:
        return [entity.name for entity in self._entities]

    def get_entity(self, name: str) -> RigidEntity:
        """The entity of that name."""
        for entity in self._entities:
            if entity.name == name:
                return entity
        near = difflib.get_close_matches(name, self.entity_names, n=1)
        raise IndexingError(
            f"Entity not found for name: {name}. Available entity names: {self.entity_names}",
            hint=f"did you mean '{near[0]}'?" if near else "",
        )

    # ------------------------------------------------------------------ build
    def build(
        self,
        n_envs: int = 0,
        env_spacing: tuple[float, float] = (0.0, 0.0),
        n_envs_per_row: int | None = None,
        center_envs_at_origin: bool = True,
    ) -> None:
        """Compile the scene into n_envs environments (0: one, and tensors have no environment axis).

        env_spacing [m] is for drawing only: simulated poses are never shifted. Raises SceneError for a file that
        cannot be used, OptionError for sizes that make no sense.
        """
        if self.is_built:
            raise StateError("Scene is already built.")
        if self._destroyed:
            raise StateError("the scene was destroyed", hint="make a new gs.Scene")
        if isinstance(n_envs, bool) or not isinstance(n_envs, (int, np.integer)) or not 0 <= n_envs <= MAX_ENVS:
            raise OptionError(f"n_envs is {n_envs!r}", where="scene.build", hint=f"an integer from 0 to {MAX_ENVS}")
        if len(env_spacing) != 2 or not np.isfinite(env_spacing).all():
            raise OptionError(f"env_spacing is {env_spacing!r}", where="scene.build", hint="two numbers [m]")
        from genesis_core.api.assemble import assemble

        built = assemble(self, max(1, int(n_envs)))
        self._model, self._sim, self._control = built.model, built.sim, built.controller
        self.warnings = built.warnings
        for sentence in built.warnings:
            log.warning("%s", sentence)
        self._n_envs = int(n_envs)
        self.env_spacing = (float(env_spacing[0]), float(env_spacing[1]))
        self.n_envs_per_row = n_envs_per_row
        self._center = center_envs_at_origin
        self._local_names = built.local_names
        link_start = joint_start = 0
        for entity, bodies, names in zip(self._entities, built.bodies, built.body_names, strict=True):
            entity.bind(bodies, names, link_start, joint_start)
            link_start += entity.n_links
            joint_start += entity.n_joints
        self._initial = self._snapshot()
        log.info(
            "built: %d entities, %d dofs, %d environments, dt %g s",
            len(self._entities),
            self._model.nv,
            self.n_rows,
            self.dt,
        )

    @property
    def is_built(self) -> bool:
        return self._sim is not None

    def _built(self) -> None:
        if not self.is_built:
            raise StateError("Scene is not built yet.", hint="call scene.build()")

    def local_name(self, entity: RigidEntity, name: str) -> str:
        """A name of the engine without the entity's prefix."""
        prefix = self._local_names[entity.idx]
        return name[len(prefix) :] if prefix and name.startswith(prefix) else name

    def placed_at(self, entity: RigidEntity) -> tuple[float, float, float]:
        """Where a fixed primitive stands."""
        x, y, z = getattr(entity.morph, "center", entity.morph.pos)
        return (float(x), float(y), float(z))

    def body_is_static(self, body: int) -> bool:
        return int(self.engine_model.mj.body_weldid[body]) == 0

    # ------------------------------------------------------------------ time
    def step(self, update_visualizer: bool = True, refresh_visualizer: bool = True) -> None:
        """Advance all environments by dt (substeps integration steps), with the current control targets."""
        self._built()
        self.controller.flush(self._sim)
        self._sim.step(self.substeps)
        self._steps += 1
        if self._steps % WATCH_EVERY == 0:
            self._watch()

    def _watch(self) -> None:
        """Say it once per new case when environments diverge; they were put back to the start state."""
        bad = int(self._sim.stats().get("nan_count", 0))
        if bad > self._bad_seen:
            log.warning(
                "%d environment state%s became NaN or too fast and went back to the start (%d in all); "
                "a smaller dt or smaller gains help",
                bad - self._bad_seen,
                "" if bad - self._bad_seen == 1 else "s",
                bad,
            )
            self._bad_seen = bad

    def reset(self, state: SceneState | None = None, envs_idx: Any = None) -> None:
        """Back to the initial state (a given state becomes the new initial one); control goes back to zero force."""
        self._built()
        envs = self.envs_write(envs_idx)
        if state is not None:
            if not isinstance(state, SceneState):
                raise OptionError(f"not a scene state: {type(state).__name__}", hint="use scene.get_state()")
            self._initial = state
        assert self._initial is not None
        self._sim.reset(envs)
        self._sim.set("qpos", self._initial.qpos[envs], envs)
        self._sim.set("qvel", self._initial.qvel[envs], envs)
        self.controller.reset(envs)
        if len(envs) == self.n_rows:
            self._steps = 0

    def _snapshot(self) -> SceneState:
        return SceneState(*(np.array(self._sim.get(name)) for name in ("qpos", "qvel", "time")))

    def get_state(self) -> SceneState:
        """The state of all environments (always with an environment axis)."""
        self._built()
        return self._snapshot()

    @property
    def t(self) -> int:
        """Steps since the build or the last reset of all environments."""
        return self._steps

    @property
    def dt(self) -> float:
        """[s] of one `step`."""
        rigid = self.options.rigid.dt
        return self.options.sim.dt if rigid is None else rigid * self.substeps

    @property
    def substeps(self) -> int:
        return self.options.sim.substeps

    def get_time(self, envs_idx: Any = None) -> torch.Tensor:
        """Simulated time [s], (n_envs,)."""
        self._built()
        time = np.asarray(self._sim.get("time", self.envs_read(envs_idx))).reshape(-1)
        return self.tensor(time if self.batched else time[0])

    # ------------------------------------------------------------------ batch
    @property
    def n_envs(self) -> int:
        """As given to `build`: 0 stands for one environment without an axis."""
        return self._n_envs

    @property
    def n_rows(self) -> int:
        """Environments that are simulated."""
        return max(1, self._n_envs)

    @property
    def batched(self) -> bool:
        return self._n_envs > 0

    @property
    def envs_offset(self) -> np.ndarray:
        """Where the environments are drawn, (n_envs, 3) [m]."""
        self._built()
        return env_offsets(self.n_rows, self.env_spacing, self.n_envs_per_row, self._center)

    def envs_read(self, envs_idx: Any) -> np.ndarray:
        """Environments that a getter means."""
        self._built()
        return indices(envs_idx, self.n_rows, "envs_idx")

    def envs_write(self, envs_idx: Any) -> np.ndarray:
        """Environments that a setter means; a scene without batch takes none."""
        self._built()
        if envs_idx is not None and not self.batched:
            raise GenesisError("`envs_idx` is not supported for non-parallelized scene.")
        return indices(envs_idx, self.n_rows, "envs_idx")

    def tensor(self, array: Any) -> torch.Tensor:
        """An own copy on gs.device with gs.tc_float."""
        import torch

        current = session.current()
        return torch.tensor(np.asarray(array), dtype=current.tc_float, device=current.device)

    # ------------------------------------------------------------------ engine
    @property
    def sim(self) -> Any:
        """The engine's Simulation: any array by name, sim.get("xpos"), sim.contacts(env)."""
        self._built()
        return self._sim

    @property
    def engine_simulation(self) -> Any:
        """The engine's Simulation, None before the build and after destroy."""
        return self._sim

    @property
    def engine_model(self) -> Any:
        """The engine's Model."""
        self._built()
        return self._model

    @property
    def controller(self) -> Controller:
        self._built()
        assert self._control is not None
        return self._control

    def engine_get(self, name: str, envs: np.ndarray) -> np.ndarray:
        """(len(envs), n) copy of an engine array."""
        everyone = len(envs) == self.n_rows and bool((envs == np.arange(self.n_rows)).all())
        array: np.ndarray = self._sim.get(name, None if everyone else envs)  # already a copy
        return array.reshape(len(envs), -1)

    def engine_set(self, name: str, value: np.ndarray, envs: np.ndarray) -> None:
        everyone = len(envs) == self.n_rows and bool((envs == np.arange(self.n_rows)).all())
        self._sim.set(name, value, None if everyone else envs)

    def set_force_range(self, dofs: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> None:
        """New control force limits of dofs (global indices)."""
        from genesis_core.compiler.control import UNLIMITED

        control, mj = self.controller, self.engine_model.mj
        if np.intersect1d(dofs, control.free).size:
            raise UnsupportedFeatureError("a force range of free or ball joints")
        ranges = np.array(mj.jnt_actfrcrange, dtype=np.float64)
        joints = mj.dof_jntid[dofs]
        ranges[joints, 0] = np.clip(lower, -UNLIMITED, UNLIMITED)
        ranges[joints, 1] = np.clip(upper, -UNLIMITED, UNLIMITED)
        self._sim.set_param("jnt_actfrcrange", ranges)
        mj.jnt_actfrcrange[:] = ranges
        control.lower[dofs], control.upper[dofs] = lower, upper

    # ------------------------------------------------------------------ end
    def destroy(self) -> None:
        """Release the simulation. Harmless when called twice."""
        if self._sim is not None:
            self._sim.close()
            self._sim = None
        self._destroyed = True

    def __getattr__(self, name: str) -> Any:
        if name in NOT_HERE:
            return absent_class("Scene", name, "see the README for what this version has")
        raise AttributeError(f"'Scene' object has no attribute '{name}'")

    def __repr__(self) -> str:
        state = f"{self.n_rows} environments" if self.is_built else "not built"
        return f"<Scene {self.uid}: {len(self._entities)} entities, {state}>"


NOT_HERE = frozenset(
    (
        *("add_camera", "add_sensor", "add_recorder", "start_recording", "stop_recording", "add_light", "add_stage"),
        *("add_emitter", "add_force_field", "add_mesh_light", "render_all_cameras", "read_sensors", "backward"),
        *("save_checkpoint", "load_checkpoint", "load_trajectory", "register_pre_step_callback", "draw_debug_line"),
        *("draw_debug_arrow", "draw_debug_frame", "draw_debug_sphere", "draw_debug_spheres", "draw_debug_box"),
        *("draw_debug_points", "draw_debug_mesh", "draw_debug_frames", "clear_debug_objects", "clear_debug_object"),
    )
)


def _default_name(morph: Morph, taken: set[str]) -> str:
    """The file's stem or the morph's kind, with a number where it is taken."""
    file = getattr(morph, "file", None)
    stem = type(morph).__name__.lower()
    if file is not None and "<" not in str(file):
        stem = getattr(morph, "path").stem  # noqa: B009
    stem = stem.replace("/", "_") or "entity"
    name, k = stem, 1
    while name in taken:
        k += 1
        name = f"{stem}_{k}"
    return name

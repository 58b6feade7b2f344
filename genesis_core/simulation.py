"""Simulation: the single owner of the arrays of many environments on one device."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis_core.backend.cpu import CpuBackend
from genesis_core.backend.devices import thread_share
from genesis_core.backend.tables import aligned, real_type, state_struct
from genesis_core.backend.width import lane_width
from genesis_core.errors import DeviceError, GenesisError, OptionError, StateError, UnsupportedFeatureError
from genesis_core.lanes.types import Table
from genesis_core.layout.counters import NCON
from genesis_core.layout.derived import SOURCES, derive
from genesis_core.layout.fields import MODEL_FIELDS, STATE_FIELDS, shape_size
from genesis_core.layout.names import ITEM_SHAPES, ON_DEMAND, OUTPUTS, SETTABLE
from genesis_core.physics.block import FORWARD, STEP

if TYPE_CHECKING:
    from genesis_core.compiler.build import Model

Envs = None | int | slice | Iterable[int] | np.ndarray
LAZY = ("qfrc_applied", "xfrc_applied")  # stored only once somebody sets them
POLICIES = ("reset", "freeze", "raise")


class Simulation:
    """n_envs copies of a model, stepped together.

    model: what to simulate; n_envs: how many; backend: "cpu"; precision: "32" or "64"; threads: CPU threads (None = the
    cores that this process may use, shared out between the ranks of a torchrun); seed: kept for the random streams of
    sensors and domain randomisation; on_diverge: what happens to an environment whose state or acceleration is NaN or
    beyond 1e10: "reset" puts it back into the initial state as MuJoCo does, "freeze" keeps the state that it had at the
    start of the call, "raise" freezes it and raises a GenesisError that names it; progress: called as
    progress(stage, fraction) while kernels compile.

    Quantities have MuJoCo's names, frames, units and order; quaternions are w-x-y-z.
    """

    def __init__(
        self,
        model: Model,
        n_envs: int = 1,
        backend: str = "cpu",
        precision: str = "32",
        threads: int | None = None,
        seed: int = 0,
        on_diverge: str = "reset",
        progress: Callable[[str, float], None] | None = None,
    ) -> None:
        self._closed = True
        self.model = model
        self.n_envs = _checked_count("n_envs", n_envs)
        self.precision = str(precision)
        if self.precision not in ("32", "64"):
            raise OptionError(f"precision = {precision!r} is unknown", hint='choose "32" or "64"')
        if on_diverge not in POLICIES:
            raise OptionError(f"on_diverge = {on_diverge!r} is unknown", hint=f"choose one of {', '.join(POLICIES)}")
        if backend != "cpu":
            known = backend in ("cuda", "gpu", "metal")
            raise DeviceError(
                f"backend = {backend!r} cannot simulate here" if known else f"backend = {backend!r} is unknown",
                hint='choose backend="cpu"',
            )
        self.backend, self.seed, self.on_diverge = backend, int(seed), on_diverge
        self.threads = thread_share() if threads is None else _checked_count("threads", threads)
        bits = int(self.precision)
        self.width = lane_width(bits)
        self._real = real_type(bits)
        self._blocks = -(-self.n_envs // self.width)
        self._check_memory()
        self._cpu = CpuBackend(
            model, bits, self.width, self.threads, progress, diverge_policy=0 if on_diverge == "reset" else 1
        )
        self._items = {f.name: shape_size(f.shape, model.sizes) for f in STATE_FIELDS}
        self._state = self._make_state(bits)
        self._every = np.arange(self.n_envs)  # stands for "all": such calls copy whole blocks
        self._time = np.zeros(self.n_envs)
        self._bad_before = np.zeros(self.n_envs)
        self._diverged = np.zeros(0, np.int64)
        self._steps = 0
        self._closed = False
        self.reset()

    # ------------------------------------------------------------------ memory
    def bytes_per_env(self) -> int:
        """Bytes that one environment adds, beyond the threads' workspaces."""
        numbers = sum(shape_size(f.shape, self.model.sizes) for f in STATE_FIELDS if f.name not in LAZY)
        return numbers * (8 if self.precision == "64" else 4) + 8

    def _check_memory(self) -> None:
        import psutil

        need = self.bytes_per_env() * self._blocks * self.width
        free = psutil.virtual_memory().available
        if need > 0.9 * free:
            most = int(0.9 * free / self.bytes_per_env())
            raise OptionError(
                f"n_envs = {self.n_envs} needs {_size(need)} of memory; {_size(free)} are free",
                hint=f"at most about {most} environments of this model fit",
            )

    def _make_state(self, bits: int) -> Table:
        arrays: dict[str, Any] = {
            "nblock": self._blocks,
            "has_applied": 0,
            "has_xfrc": 0,
            "cursor": np.zeros(8, np.int64),
            "done": np.zeros(self._blocks, np.int64),
            "need": np.zeros(self._blocks, np.int64),
            "touched": np.zeros(2, np.int64),
        }
        for f in STATE_FIELDS:
            items = 0 if f.name in LAZY else self._items[f.name]
            arrays[f.name] = aligned(self._blocks * items * self.width, self._real)
        return Table(state_struct(bits, self.width), arrays)

    def _view(self, name: str) -> np.ndarray:
        """A stored field as (block, item, lane)."""
        n = self._items[name]
        return self._state.arrays[name][: self._blocks * n * self.width].reshape(self._blocks, n, self.width)

    # ------------------------------------------------------------------ reading
    def get(self, name: str, envs: Envs = None) -> np.ndarray:
        """A copy of a quantity of the chosen environments, shape (environments, ...) with MuJoCo's shape behind.

        Kinematic quantities (xpos, xquat, xipos, geom_xpos, geom_xmat, site_xpos, site_xmat, subtree_com, cvel)
        belong to the current state; qacc, forces, energy, ncon and nefc to the last step or forward evaluation.
        """
        self._check_open()
        ids = self._env_ids(envs)
        if name == "time":
            return self._time[ids].copy()
        if name in SETTABLE or name in OUTPUTS:
            data = self._gather(name, ids)
            if name in ("ncon", "nefc"):
                return data[:, 0].astype(np.int64)
            return data.reshape((len(ids), *self._shape(name)))
        if name in ON_DEMAND:
            return self._poses(name, ids)
        if name == "sensordata":
            if self.model.mj.nsensordata == 0:
                return np.zeros((len(ids), 0), self._real)
            raise UnsupportedFeatureError("sensordata: sensors are not simulated", hint="see model.unsupported")
        raise OptionError(f"there is no quantity {name!r}", hint=_known(name))

    def _shape(self, name: str) -> tuple[int, ...]:
        return tuple(shape_size(s, self.model.sizes) for s in ITEM_SHAPES[name])

    def _is_stored(self, name: str) -> bool:
        flag = {"qfrc_applied": "has_applied", "xfrc_applied": "has_xfrc"}.get(name)
        return flag is None or bool(self._state.arrays[flag])

    def _gather(self, name: str, ids: np.ndarray) -> np.ndarray:
        if not self._is_stored(name):
            return np.zeros((len(ids), self._items[name]), self._real)
        if ids is self._every:
            whole = self._view(name).transpose(0, 2, 1).copy()
            return whole.reshape(self._blocks * self.width, self._items[name])[: self.n_envs]
        return self._view(name)[ids // self.width, :, ids % self.width]

    def _scatter(self, name: str, ids: np.ndarray, data: np.ndarray) -> None:
        """Writes data (environments or 1, items) into a stored field."""
        view = self._view(name)
        if len(data) == 1 and ids is self._every:
            view[:] = data[:, :, None]
            return
        if ids is not self._every:
            view[ids // self.width, :, ids % self.width] = data
            self._mirror(ids, (name,))
            return
        whole, rest = divmod(self.n_envs, self.width)
        blocks = data[: whole * self.width].reshape(whole, self.width, data.shape[1])
        view[:whole] = blocks.transpose(0, 2, 1)
        if rest:
            view[whole, :, :rest] = data[whole * self.width :].T
            view[whole, :, rest:] = view[whole, :, rest - 1 : rest]

    def _poses(self, name: str, ids: np.ndarray) -> np.ndarray:
        shape = self._shape(name)
        out: np.ndarray = np.empty((len(ids), math.prod(shape)), self._real)
        order = ids // self.width
        for b in np.unique(order):
            work = self._cpu.pose(self._state, int(b), everything=True)
            rows = order == b
            out[rows] = work.arrays[name].reshape(-1, self.width)[:, ids[rows] % self.width].T
        return out.reshape((len(ids), *shape))

    def geom_rows(self, envs: Envs = None) -> np.ndarray:
        """World transforms of all geoms at the current state, (environments, ngeom, 12) float32: rows of [R | p]."""
        self._check_open()
        ids = self._env_ids(envs)
        n = self.model.ngeom
        out = np.empty((len(ids), n, 3, 4), np.float32)
        order = ids // self.width
        for b in np.unique(order):
            work = self._cpu.pose(self._state, int(b), everything=False)
            rows = order == b
            lanes = ids[rows] % self.width
            mat = work.arrays["geom_xmat"].reshape(-1, self.width)[:, lanes].T
            pos = work.arrays["geom_xpos"].reshape(-1, self.width)[:, lanes].T
            out[rows, :, :, :3] = mat.reshape(-1, n, 3, 3)
            out[rows, :, :, 3] = pos.reshape(-1, n, 3)
        return out.reshape(len(ids), n, 12)

    # ------------------------------------------------------------------ writing
    def set(self, name: str, value: Any, envs: Envs = None) -> None:
        """Sets a quantity of the chosen environments.

        value has MuJoCo's shape (the same for all chosen environments) or that with the environments in front; a single
        number fills everything.
        """
        self._check_open()
        ids = self._env_ids(envs)
        if name == "time":
            self._time[ids] = self._checked_value(name, value, (), len(ids))[:, 0]
            return
        if name not in SETTABLE:
            readable = name in OUTPUTS or name in ON_DEMAND
            raise OptionError(
                f"{name!r} can only be read" if readable else f"there is no quantity {name!r}",
                hint="settable: time " + " ".join(SETTABLE),
            )
        data = self._checked_value(name, value, self._shape(name), len(ids))
        if not self._is_stored(name):
            if not data.any():
                return
            self._store_lazily(name)
        self._scatter(name, ids, data)
        if name in ("qpos", "qvel", "act"):
            self._scatter("frozen", ids, np.zeros((1, 1)))

    def _store_lazily(self, name: str) -> None:
        size = self._blocks * self._items[name] * self.width
        self._state.put(name, aligned(size, self._real))
        self._state.put("has_applied" if name == "qfrc_applied" else "has_xfrc", 1)

    def _checked_value(self, name: str, value: Any, shape: tuple[int, ...], n: int) -> np.ndarray:
        """The value as (n, items) or (1, items) of numbers."""
        try:
            if hasattr(value, "detach"):  # a torch tensor, on any device
                value = value.detach().cpu().numpy()
            data = np.asarray(value, np.float64)
        except (TypeError, ValueError) as error:
            raise OptionError(f"{name}: {value!r:.60} is not an array of numbers") from error
        items = math.prod(shape)
        if data.ndim == 0:
            data = np.broadcast_to(data, shape)
        fits = {shape: 1, (items,): 1, (n, *shape): n, (n, items): n}
        if data.shape not in fits:
            want = " or ".join(str(s) for s in dict.fromkeys([shape, (n, *shape)]))
            raise OptionError(f"{name}: got an array of shape {data.shape}, want {want}", where="Simulation.set")
        data = data.reshape(fits[data.shape], items)
        if not np.isfinite(data).all():
            row, item = np.argwhere(~np.isfinite(data))[0]
            raise OptionError(f"{name}: item {item} of row {row} is {data[row, item]}", hint="give finite numbers")
        return data

    def set_param(self, name: str, value: Any) -> None:
        """Overwrites a real array of the model, shared by all environments, from the next step on.

        name: a real field of the model such as "jnt_actfrcrange" or "gravity"; value: as many numbers as it holds.
        What the compiler derived from it (for example weights of constraints from masses) stays as it is.
        """
        self._check_open()
        field = next((f for f in MODEL_FIELDS if f.name == name and f.kind == "r"), None)
        if field is None:
            reals = [f.name for f in MODEL_FIELDS if f.kind == "r"]
            near = difflib.get_close_matches(name, reals, n=3)
            raise OptionError(
                f"the model has no real array {name!r}", hint=f"did you mean {', '.join(near)}?" if near else ""
            )
        data = np.asarray(value, np.float64).reshape(-1)
        size = shape_size(field.shape, self.model.sizes)
        if data.size != size:
            raise OptionError(f"{name}: got {data.size} numbers, want {size}", where="Simulation.set_param")
        if np.isnan(data).any():
            raise OptionError(f"{name}: item {int(np.flatnonzero(np.isnan(data))[0])} is NaN")
        self._cpu.table.arrays[name][:size] = data
        if name in SOURCES:
            derive(self._cpu.table.arrays, self.model.njnt, self.model.nbody)

    def _mirror(self, ids: np.ndarray, names: Iterable[str]) -> None:
        """Unused lanes of the last block follow the last environment, so that they cost nothing extra."""
        last = self.n_envs - 1
        lane = last % self.width
        if lane + 1 == self.width or last not in ids:
            return
        for name in names:
            view = self._view(name)[-1]
            view[:, lane + 1 :] = view[:, lane : lane + 1]

    def reset(self, envs: Envs = None, key: int | str | None = None) -> None:
        """Puts environments into the initial state or into a keyframe (index or name); forces and controls to zero."""
        self._check_open()
        ids = self._env_ids(envs)
        where = (ids // self.width, slice(None), ids % self.width)
        for f in STATE_FIELDS:
            if f.name not in ("bad",) and self._is_stored(f.name):
                self._view(f.name)[where] = 0.0
        for name, value in self._initial(self._key_index(key)).items():
            self._view(name)[where] = value
        self._time[ids] = 0.0 if key is None else self.model.mj.key_time[self._key_index(key)]
        self._mirror(ids, [f.name for f in STATE_FIELDS if self._is_stored(f.name)])

    def _key_index(self, key: int | str | None) -> int | None:
        if key is None:
            return None
        names = self.model.names["key"]
        if isinstance(key, str):
            if key not in names:
                have = ", ".join(n for n in names if n) or "none"
                raise OptionError(f"there is no keyframe {key!r}", hint=f"keyframes of the model: {have}")
            return names.index(key)
        if not 0 <= int(key) < self.model.nkey:
            raise OptionError(f"key = {key} is out of range", hint=f"the model has {self.model.nkey} keyframes")
        return int(key)

    def _initial(self, key: int | None) -> dict[str, np.ndarray]:
        mj = self.model.mj
        bodies = self.model.arrays["mocap_bodyid"]
        state = {
            "qpos": mj.qpos0,
            "mocap_pos": mj.body_pos[bodies].ravel(),
            "mocap_quat": mj.body_quat[bodies].ravel(),
            "eq_active": self.model.arrays["eq_active0"],
        }
        if key is not None:
            state |= {"qpos": mj.key_qpos[key], "qvel": mj.key_qvel[key], "act": mj.key_act[key]}
            state |= {"ctrl": mj.key_ctrl[key]}
            state |= {"mocap_pos": mj.key_mpos[key].ravel(), "mocap_quat": mj.key_mquat[key].ravel()}
        return state

    # ------------------------------------------------------------------ simulating
    def step(self, n: int = 1) -> None:
        """n integration steps for all environments."""
        self._check_open()
        n = _checked_count("n", n, least=0)
        if n == 0:
            return
        touched = self._run(n, STEP)
        self._steps += n
        self._diverged = self._newly_bad() if touched else self._every[:0]
        self._time[self._gather("frozen", self._every)[:, 0] == 0 if touched else slice(None)] += (
            n * self.model.timestep
        )
        if touched:
            self._after_divergence(n)

    def forward(self) -> None:
        """Everything but integration (mj_forward): accelerations and forces of the current state."""
        self._check_open()
        self._run(1, FORWARD)

    def _run(self, n: int, mode: int) -> bool:
        """Returns whether some environment went bad."""
        self._cpu.run(self._state, n, mode)
        return bool(self._state.arrays["touched"][0])

    def _newly_bad(self) -> np.ndarray:
        now = self._gather("bad", self._every)[:, 0]
        new = np.flatnonzero(now > self._bad_before)
        self._bad_before = now
        return new

    @property
    def diverged(self) -> np.ndarray:
        """Environments that went bad (NaN, or beyond 1e10) in the last call of `step`."""
        return self._diverged

    def snapshot(self, reuse: dict[str, np.ndarray] | None = None) -> dict[str, np.ndarray]:
        """A copy of everything that the next steps depend on, in the form that `pick` reads.

        reuse: an old snapshot whose memory may be written over; new memory costs as much as the copy.
        """
        self._check_open()
        now = {name: self._state.arrays[name] for name in SETTABLE if self._is_stored(name)} | {"time": self._time}
        if reuse is None or reuse.keys() != now.keys():
            return {name: values.copy() for name, values in now.items()}
        for name, values in now.items():
            np.copyto(reuse[name], values)
        return reuse

    def pick(self, snapshot: dict[str, np.ndarray], envs: Envs = None) -> dict[str, np.ndarray]:
        """Values of some environments in a snapshot, as `set` takes them, without those that the model has none of."""
        ids = self._env_ids(envs)
        out = {"time": snapshot["time"][ids]}
        for name, values in snapshot.items():
            n = self._items.get(name, 0)
            if n:
                view = values[: self._blocks * n * self.width].reshape(self._blocks, n, self.width)
                out[name] = view[ids // self.width, :, ids % self.width].reshape(len(ids), *self._shape(name))
        return out

    def _after_divergence(self, n: int) -> None:
        every = self._every
        if self.on_diverge == "reset":
            at = self._view("reset_at")
            again = self._gather("reset_at", every)[:, 0]
            hit = again > 0
            self._time[hit] = (n - again[hit] + 1) * self.model.timestep
            at[:] = 0.0
        elif self.on_diverge == "raise":
            bad = np.flatnonzero(self._gather("frozen", every)[:, 0])
            if len(bad):
                raise GenesisError(
                    f"{len(bad)} of {self.n_envs} environments diverged (NaN, or beyond 1e10)",
                    where=f"environment {bad[0]}, time {self._time[bad[0]]:.4g} s",
                    hint="reset them, use a smaller timestep, or create the simulation with on_diverge='reset'",
                )

    def contacts(self, env: int) -> dict[str, np.ndarray]:
        """Contacts of one environment in its current state.

        geom1, geom2 (n,) int; dist (n,) [m], negative = overlap; pos (n, 3) world frame; frame (n, 3, 3), first row the
        normal from geom1 to geom2; force (n, 6) force and torque in the contact frame, on geom2.
        """
        self._check_open()
        ids = self._env_ids(int(env))
        b, lane = int(ids[0]) // self.width, int(ids[0]) % self.width
        work = self._cpu.look(self._state, b)
        n = int(work.arrays["count"][NCON])

        def column(name: str, items: int) -> np.ndarray:
            return work.arrays[name].reshape(-1, self.width)[: n * items, lane].reshape(n, items)

        use = column("con_active", 1)[:, 0] > 0
        return {
            "geom1": work.arrays["con_geom1"][:n][use].copy(),
            "geom2": work.arrays["con_geom2"][:n][use].copy(),
            "dist": column("con_dist", 1)[use, 0],
            "pos": column("con_pos", 3)[use],
            "frame": column("con_frame", 9)[use].reshape(-1, 3, 3),
            "force": column("con_force", 6)[use],
        }

    def stats(self) -> dict[str, Any]:
        """Counters since the simulation was made."""
        self._check_open()
        every = self._every
        return {
            "steps": self._steps,
            "nan_count": int(self._gather("bad", every).sum()),
            "newton_iterations": float(self._gather("solver_niter", every).mean()),
            "frozen": int((self._gather("frozen", every) > 0).sum()),
            "overflow": self._cpu.overflows,
            "capacities": dict(self._cpu.capacities),
            "bytes_per_env": self.bytes_per_env(),
            "workspace_bytes": sum(w.nbytes for w in self._cpu.works),
            "compile_seconds": self._cpu.compile_seconds,
            "width": self.width,
            "threads": self.threads,
        }

    @property
    def steps(self) -> int:
        """Steps taken since the simulation was made; may be read from another thread."""
        return self._steps

    # ------------------------------------------------------------------ housekeeping
    def _env_ids(self, envs: Envs) -> np.ndarray:
        n = self.n_envs
        if envs is None:
            return self._every
        if isinstance(envs, slice):
            return np.arange(n)[envs]
        if hasattr(envs, "detach"):
            envs = envs.detach().cpu().numpy()
        if not isinstance(envs, np.ndarray) and isinstance(envs, Iterable):
            envs = list(envs)
        ids = np.atleast_1d(np.asarray(envs))
        if ids.dtype == bool:
            if ids.shape != (n,):
                raise OptionError(f"envs: got a mask of shape {ids.shape}, want ({n},)")
            return np.flatnonzero(ids)
        if ids.size == 0:
            return np.zeros(0, np.int64)
        if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
            raise OptionError(f"envs = {envs!r:.60} is not a list of environment numbers")
        wrong = ids[(ids < 0) | (ids >= n)]
        if len(wrong):
            raise OptionError(f"environment {wrong[0]} does not exist", hint=f"numbers go from 0 to {n - 1}")
        return ids.astype(np.int64)

    def _check_open(self) -> None:
        if self._closed:
            raise StateError("the simulation is closed", hint="make a new Simulation")

    def close(self) -> None:
        """Gives the memory and the threads back. May be called again."""
        if not self._closed:
            self._closed = True
            self._cpu.close()
            del self._cpu, self._state

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _checked_count(name: str, value: Any, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise OptionError(f"{name} = {value!r} is not a whole number")
    if value < least:
        raise OptionError(f"{name} = {value} is too small", hint=f"give at least {least}")
    return int(value)


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if count < 1000 or unit == "TB":
            return f"{count:.3g} {unit}"
        count /= 1000
    return ""


def _known(name: str) -> str:
    import difflib

    names = ["time", *SETTABLE, *OUTPUTS, *ON_DEMAND, "sensordata"]
    near = difflib.get_close_matches(name, names, 1)
    return f"did you mean {near[0]!r}?" if near else "known: " + " ".join(names)

"""What a worker does with its environments: start states, the scene's drive, pulling, frames, recordings."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import psutil

from genesis_core.drive import Drive
from genesis_core.errors import OptionError
from genesis_core.runtime import messages as msg
from genesis_core.runtime.blackbox import BlackBox
from genesis_core.runtime.pacer import Pacer
from genesis_core.runtime.shm import Frame
from genesis_core.simulation import Simulation

if TYPE_CHECKING:
    from genesis_core.compiler.load import LoadedScene

DRIVE_INTERVAL = 0.02  # [s] simulated time between two values of an open-loop drive
RECORDED = ("qpos", "qvel", "ctrl", "act", "mocap_pos", "mocap_quat")  # those that the model has none of are left out
PULL_STIFFNESS = 16.0  # [1/s^2] times the mass of the whole tree
PULL_DAMPING = 8.0  # [1/s] times the mass of the body


class Host:
    """One worker's Simulation with everything around it. Environment numbers are global."""

    def __init__(
        self,
        loaded: LoadedScene,
        config: msg.WorkerConfig,
        first_env: int,
        n_envs: int,
        progress: Callable[[str, float], None],
    ) -> None:
        self.loaded = loaded
        self.first_env = first_env
        self.n_envs = n_envs
        self.seed = loaded.spec.seed if config.seed is None else config.seed
        self.sim = Simulation(
            loaded.model,
            n_envs=n_envs,
            precision=config.precision or loaded.spec.precision,
            threads=config.threads,
            seed=self.seed,
            on_diverge=config.on_diverge,
            progress=progress,
        )
        self.timestep = float(loaded.bundle.timestep)
        self.steps = 0
        self._pulls: dict[int, msg.Perturb] = {}
        self._driven = True
        self._start = loaded.start_states(n_envs, first_env, self.seed)
        self._tree_mass, self._body_mass = _masses(loaded)
        bundle = loaded.bundle
        self._drive = Drive(
            loaded.spec.drive,
            bundle.actuator_name,
            self._start["ctrl"][0] if n_envs else np.zeros(bundle.nu),
            bundle.actuator_ctrlrange,
            n_envs,
            self.seed,
            first_env,
            bundle.actuator_ctrllimited,
        )
        self._drive_every = max(1, round(DRIVE_INTERVAL / self.timestep))
        self._process = psutil.Process(os.getpid())
        self._box = BlackBox(self.sim)
        self.news: list[msg.Diverged] = []  # for the worker to send
        self._process.cpu_percent()  # the first call has nothing to compare with
        self.reset(None)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """ngeom, nq, nv, nu of the model."""
        bundle = self.loaded.bundle
        return bundle.ngeom, bundle.nq, bundle.nv, bundle.nu

    def owns(self, env: int) -> bool:
        return self.first_env <= env < self.first_env + self.n_envs

    def _local(self, env: int) -> int:
        if not self.owns(env):
            last = self.first_env + self.n_envs - 1
            raise OptionError(
                f"environment {env} does not exist here", hint=f"numbers go from {self.first_env} to {last}"
            )
        return env - self.first_env

    # ------------------------------------------------------------------ stepping
    def advance(self, n: int) -> None:
        """n steps. The drive is renewed on a fixed grid of steps, so the motion does not depend on the chunks."""
        driven = self._driven and bool(self._drive)
        while n > 0:
            k = n
            if driven:
                if self.steps % self._drive_every == 0:
                    self.sim.set("ctrl", self._drive.at(self.sim.get("time")))
                k = min(n, self._drive_every - self.steps % self._drive_every)
            self._apply_pulls()
            self._box.before(self.steps, k)
            self.sim.step(k)
            self.steps += k
            if len(self.sim.diverged):
                report = self._box.explain(self.first_env)
                if report is not None:
                    self.news.append(report)
            n -= k

    def reset(self, envs: list[int] | None) -> None:
        """Back to the start states; all environments when None."""
        local = np.arange(self.n_envs) if envs is None else np.array([e - self.first_env for e in envs if self.owns(e)])
        if not len(local):
            return
        self._box.forget()
        self.sim.reset(local)
        for name, values in self._start.items():
            if np.prod(values.shape[1:]) > 0:
                self.sim.set(name, values[local], local)
        if envs is None:
            self.steps = 0
            self._driven = True
        for env in [e for e in self._pulls if e - self.first_env in set(local.tolist())]:
            del self._pulls[env]

    def set_ctrl(self, values: list[float], env: int | None) -> None:
        """Holds controls; the scene's drive stops until the next full reset."""
        self._driven = False
        if env is None:
            self.sim.set("ctrl", values)
        elif self.owns(env):
            self.sim.set("ctrl", values, [self._local(env)])

    def set_qpos(self, env: int, values: list[float]) -> None:
        """A configuration, at rest."""
        if self.owns(env):
            local = [self._local(env)]
            self.sim.set("qpos", values, local)
            self.sim.set("qvel", np.zeros(self.loaded.bundle.nv), local)
            self._box.forget()

    # ------------------------------------------------------------------ pulling
    def perturb(self, pull: msg.Perturb) -> None:
        """Begins, moves or ends a pull."""
        if not self.owns(pull.env):
            return
        if not 0 < pull.body < self.loaded.bundle.nbody:
            raise OptionError(f"body {pull.body} cannot be pulled", hint=f"1 .. {self.loaded.bundle.nbody - 1}")
        if pull.active:
            self._pulls[pull.env] = pull
        elif self._pulls.pop(pull.env, None) is not None:
            self.sim.set("xfrc_applied", np.zeros((self.loaded.bundle.nbody, 6)), [self._local(pull.env)])

    def _apply_pulls(self) -> None:
        for env, pull in self._pulls.items():
            local = [self._local(env)]
            b = pull.body
            pos, quat = self.sim.get("xpos", local)[0, b], self.sim.get("xquat", local)[0, b]
            com, velocity = self.sim.get("xipos", local)[0, b], self.sim.get("cvel", local)[0, b]
            root_com = self.sim.get("subtree_com", local)[0, int(self.loaded.mj.body_rootid[b])]
            point = pos + _rotate(quat, np.array(pull.point))
            speed = velocity[3:] + np.cross(velocity[:3], point - root_com)
            force = PULL_STIFFNESS * self._tree_mass[b] * (np.array(pull.target) - point)
            force -= PULL_DAMPING * self._body_mass[b] * speed
            wrench = np.zeros((self.loaded.bundle.nbody, 6))
            wrench[b, :3] = force
            wrench[b, 3:] = np.cross(point - com, force) + np.array(pull.torque)
            self.sim.set("xfrc_applied", wrench, local)

    # ------------------------------------------------------------------ showing
    def frame(self, envs: list[int]) -> Frame:
        """The present moment of some environments."""
        local = np.array([self._local(e) for e in envs], np.int64)
        return Frame(
            time=self.sim.get("time", local),
            envs=np.array(envs, np.int32),
            rows=self.sim.geom_rows(local),
            qpos=self.sim.get("qpos", local).astype(np.float32),
            qvel=self.sim.get("qvel", local).astype(np.float32),
            ctrl=self.sim.get("ctrl", local).astype(np.float32),
            step=self.steps,
        )

    def telemetry(self, steps_per_second: float) -> msg.Telemetry:
        """A snapshot for the status bar."""
        stats = self.sim.stats()
        return msg.Telemetry(
            time=float(self.sim.get("time", [0])[0]),
            steps=self.steps,
            steps_per_second=steps_per_second,
            env_steps_per_second=steps_per_second * self.n_envs,
            realtime_factor=steps_per_second * self.timestep,
            n_envs=self.n_envs,
            memory=self._process.memory_info().rss,
            cpu_percent=self._process.cpu_percent(),
            nan_count=int(stats["nan_count"]),
            overflow=int(stats["overflow"]),
            stats={"newton_iterations": float(stats["newton_iterations"])},
        )

    # ------------------------------------------------------------------ recording
    def record(self, job: msg.Record) -> Iterator[msg.Message | None]:
        """Steps through a recording, yielding frames and runs of states in order, and None between chunks of steps."""
        video = [e for e in job.video_envs if self.owns(e)]
        states = StateRuns([e - self.first_env for e in job.state_envs if self.owns(e)], job, self.sim, self.timestep)
        frames = list(enumerate(job.frame_steps))
        begin = self.steps
        pace = Pacer(self.timestep)
        while True:
            done = self.steps - begin
            while frames and frames[0][1] <= done:
                index, _ = frames.pop(0)
                if video:
                    local = [self._local(e) for e in video]
                    yield self._recorded_frame(index, done * self.timestep, local, job.camera_bodies)
            yield from states.take(done)
            if done >= job.steps:
                break
            stops = [job.steps, states.next_step(done), done + pace.chunk()]
            if frames:
                stops.append(frames[0][1])
            now = time.perf_counter()
            self.advance(min(stops) - done)
            pace.took(min(stops) - done, time.perf_counter() - now)
            yield None
        yield from states.flush()

    def pose(self, job: msg.Pose) -> msg.RecordedFrame:
        """Forward kinematics of recorded states in the first environments."""
        n = len(job.states.get("qpos", ()))
        if n > self.n_envs:
            raise OptionError(f"{n} environments cannot be posed with {self.n_envs}")
        local = list(range(n))
        for name in ("qpos", "mocap_pos", "mocap_quat"):
            if name in job.states and job.states[name].size:
                self.sim.set(name, job.states[name], local)
        return self._recorded_frame(job.index, 0.0, local, job.camera_bodies)

    def _recorded_frame(self, index: int, when: float, local: list[int], bodies: list[int]) -> msg.RecordedFrame:
        poses = None
        if bodies:
            pos, quat = self.sim.get("xpos", local)[:, bodies], self.sim.get("xquat", local)[:, bodies]
            poses = np.concatenate([pos, quat], axis=2).astype(np.float32)
        return msg.RecordedFrame(index=index, time=when, rows=self.sim.geom_rows(local), bodies=poses)


class StateRuns:
    """Collects states and hands them out in runs of `chunk` moments."""

    def __init__(self, local: list[int], job: msg.Record, sim: Simulation, timestep: float) -> None:
        self._local = np.array(local, np.int64)
        self._every = job.state_every if local else 0
        self._chunk = job.chunk
        self._sim = sim
        self._timestep = timestep
        self._start = 0
        self._kept: list[dict[str, np.ndarray]] = []
        self._names = [name for name in RECORDED if sim.get(name, self._local[:1]).size]

    def next_step(self, done: int) -> int:
        """The next step whose state is wanted, far away when none is."""
        return (done // self._every + 1) * self._every if self._every else 2**62

    def take(self, done: int) -> Iterator[msg.Message]:
        if not self._every or done % self._every:
            return
        moment = {name: self._sim.get(name, self._local) for name in self._names}
        moment["env_time"] = self._sim.get("time", self._local)
        moment["step"] = np.array(done)
        moment["time"] = np.array(done * self._timestep)
        self._kept.append(moment)
        if len(self._kept) == self._chunk:
            yield from self.flush()

    def flush(self) -> Iterator[msg.Message]:
        if not self._kept:
            return
        arrays = {name: np.stack([moment[name] for moment in self._kept]) for name in self._kept[0]}
        yield msg.RecordedStates(start=self._start, arrays=arrays)
        self._start += len(self._kept)
        self._kept = []


def _masses(loaded: LoadedScene) -> tuple[np.ndarray, np.ndarray]:
    """Mass of the kinematic tree of each body and of the body itself, (nbody,) [kg]."""
    root = np.asarray(loaded.mj.body_rootid)
    return np.asarray(loaded.mj.body_subtreemass)[root], np.asarray(loaded.mj.body_mass)


def _rotate(quat: np.ndarray, v: np.ndarray) -> np.ndarray:
    """v turned by a unit quaternion w-x-y-z."""
    u = quat[1:]
    t = 2 * np.cross(u, v)
    return v + quat[0] * t + np.cross(u, t)

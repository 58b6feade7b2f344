"""Who decides about time: play, pause, step, reset, speed, and which environments are shown."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from app.control.session import SessionControl
from app.model.intents import Intents
from app.model.state import AppState
from genesis_core.runtime.messages import Perturb


class PlaybackControl:
    """Passes the wishes on to the running session."""

    def __init__(self, state: AppState, intents: Intents, sessions: SessionControl) -> None:
        self.state = state
        self.sessions = sessions
        bind = state.commands.bind
        bind("sim.play", self.play_or_pause)
        bind("sim.step", partial(self.step, 1))
        bind("sim.step10", partial(self.step, 10))
        bind("sim.reset", self.reset)
        bind("sim.reset_selected", self.reset_selected)
        bind("sim.faster", lambda: self.set_speed(state.next_speed(True)))
        bind("sim.slower", lambda: self.set_speed(state.next_speed(False)))
        bind("sim.realtime", lambda: self.set_speed(1.0))
        bind("sim.fastest", lambda: self.set_speed(None))
        for name, selection in (("first1", "first:1"), ("first4", "first:4"), ("first16", "first:16"),
                                ("first64", "first:64"), ("all", "all")):  # fmt: skip
            bind(f"view.{name}", partial(sessions.show, selection))
        bind("view.random16", self.show_random)
        intents.show.connect(sessions.show)
        intents.toggle_env.connect(self.toggle_env)
        intents.set_speed.connect(self.set_speed)
        intents.set_ctrl.connect(self.set_ctrl)
        intents.pull.connect(self.pull)
        intents.let_go.connect(self.let_go)
        self._random = np.random.default_rng()

    def _do(self, what: Callable[..., None], *args: object) -> None:
        session = self.sessions.current
        if session is not None and not session.closed:
            what(session, *args)

    def play_or_pause(self) -> None:
        running = self.state.phase == "running"
        self._do(lambda session: session.pause() if running else session.play())

    def step(self, n: int) -> None:
        self._do(lambda session: session.step(n))

    def reset(self) -> None:
        self._do(lambda session: session.reset())

    def reset_selected(self) -> None:
        self._do(lambda session: session.reset([self.state.inspected]))

    def set_speed(self, speed: float | None) -> None:
        """Kept for the next session too."""
        self.state.set_speed(speed)
        self._do(lambda session: session.set_speed(speed))

    def show_random(self) -> None:
        n = self.state.n_envs
        if n:
            chosen = self._random.choice(n, min(16, n), replace=False)
            self.sessions.show_envs(sorted(int(e) for e in chosen))

    def toggle_env(self, env: int) -> None:
        """Adds an environment to the shown ones, or takes it away; one always stays."""
        shown = self.state.shown
        if env in shown:
            if len(shown) > 1:
                self.sessions.show_envs([e for e in shown if e != env])
        elif 0 <= env < self.state.n_envs:
            self.sessions.show_envs(sorted([*shown, env]))

    def set_ctrl(self, values: list[float], env: int | None) -> None:
        self._do(lambda session: session.set_ctrl(values, env))

    def pull(self, env: int, body: int, point: tuple[float, float, float], target: tuple[float, float, float]) -> None:
        self._do(lambda session: session.perturb(Perturb(env=env, body=body, point=point, target=target)))

    def let_go(self, env: int, body: int) -> None:
        self._do(lambda session: session.perturb(Perturb(env=env, body=body, active=False)))

"""Opening, swapping, cancelling and losing sessions, with sessions that only pretend."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import ClassVar

import pytest
from window_tools import make_frame

from app.control import session as module
from app.control.playback import PlaybackControl
from app.control.session import SessionControl
from app.model.intents import Intents
from app.model.state import AppState
from genesis_core.errors import GenesisError
from genesis_core.layout.scene import SceneBundle
from genesis_core.runtime import messages as msg
from genesis_core.runtime.supervisor import SessionEvent


class FakeSession:
    """Notes what it is asked; says what the test puts into `events`."""

    made: ClassVar[list[FakeSession]] = []
    fails = False

    def __init__(self, config) -> None:
        self.config = config
        self.calls: list[tuple] = []
        self.events: list[msg.Message] = []
        self.states = ["starting"] * len(config.devices)
        self.telemetry = [msg.Telemetry() for _ in config.devices]
        self.closed = False
        self.next_frame = None
        FakeSession.made.append(self)

    def start(self) -> None:
        if FakeSession.fails:
            raise GenesisError("no process left", hint="close something")

    def close(self) -> None:
        self.closed = True

    def pump(self) -> list[SessionEvent]:
        events, self.events = self.events, []
        for message in events:
            if isinstance(message, msg.State):
                self.states[0] = message.state
        return [SessionEvent(0, m) for m in events]

    def frame(self):
        found, self.next_frame = self.next_frame, None
        return found

    @property
    def ready(self) -> bool:
        return all(s in ("paused", "running") for s in self.states)

    def log_file(self, _worker: int) -> str:
        return "/logs/worker-0.log"

    def log_tail(self, _worker: int) -> str:
        return "the last words"

    def __getattr__(self, name: str):
        return lambda *args: self.calls.append((name, *args))


class Rig:
    def __init__(self, state: AppState, intents: Intents, bundle: SceneBundle) -> None:
        self.state, self.intents, self.bundle = state, intents, bundle
        self.control = SessionControl(state, intents)
        self.playback = PlaybackControl(state, intents, self.control)

    def loaded(self, session: FakeSession, n_envs: int = 16) -> None:
        session.events.append(msg.SceneLoaded(bundle=self.bundle, n_envs=n_envs, env_spacing=(2.0, 2.0)))
        self.control.pump()

    def running(self, session: FakeSession) -> None:
        session.events += [msg.Ready(seconds=1.0, width=8, threads=2, bytes_per_env=100), msg.State(state="running")]
        self.control.pump()


@pytest.fixture
def play(state: AppState, intents: Intents, bundle: SceneBundle, monkeypatch) -> Iterator[Callable[..., None]]:
    """Runs a test's coroutine with a rig."""
    FakeSession.made, FakeSession.fails = [], False
    monkeypatch.setattr(module, "Session", FakeSession)

    def run(test: Callable[[Rig], Awaitable[None]]) -> None:
        async def main() -> None:
            rig = Rig(state, intents, bundle)
            await test(rig)
            await rig.control.close()
            assert all(s.closed for s in FakeSession.made)

        asyncio.run(main())

    yield run


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0.005)


def test_a_scene_is_shown_and_played_once_it_is_loaded(play) -> None:
    async def test(rig: Rig) -> None:
        rig.intents.open_path.emit("/a.xml")
        session = FakeSession.made[0]
        assert session.config.scene.path == "/a.xml" and rig.state.loading is not None
        rig.loaded(session)
        assert rig.state.bundle is rig.bundle and rig.state.phase == "compiling" and rig.state.loading.preview
        assert ("show", list(range(16))) in session.calls and ("play",) in session.calls
        rig.running(session)
        assert rig.state.phase == "running" and rig.state.loading is None
        session.next_frame = make_frame(rig.bundle, list(range(16)))
        rig.control.pump()
        assert rig.state.live
        assert rig.state.settings.recent == ["/a.xml"]

    play(test)


def test_the_old_scene_runs_until_the_new_one_is_loaded(play) -> None:
    async def test(rig: Rig) -> None:
        rig.intents.open_path.emit("/a.xml")
        old = FakeSession.made[0]
        rig.loaded(old)
        rig.running(old)
        rig.intents.open_path.emit("/b.xml")
        new = FakeSession.made[1]
        new.events.append(msg.Progress(stage="reading files", fraction=0.2))
        old.next_frame = make_frame(rig.bundle, [0], time=9.0)
        rig.control.pump()
        await settle()
        assert not old.closed and rig.state.time == 9.0 and rig.state.loading.stage == "reading files"
        rig.loaded(new)
        await settle()
        assert old.closed and rig.state.path == "/b.xml"

    play(test)


def test_a_bad_file_shows_what_where_and_hint_and_keeps_the_old_scene(play) -> None:
    async def test(rig: Rig) -> None:
        rig.intents.open_path.emit("/a.xml")
        old = FakeSession.made[0]
        rig.loaded(old)
        rig.running(old)
        rig.intents.open_path.emit("/bad.urdf")
        bad = FakeSession.made[1]
        bad.events.append(
            msg.Failed(kind="SceneError", text="no mass", where="/bad.urdf:7 <link>", hint="add inertial")
        )
        rig.control.pump()
        await settle()
        problem = rig.state.problem
        assert problem is not None and problem.title == "bad.urdf cannot be opened"
        assert (problem.text, problem.where, problem.hint) == ("no mass", "/bad.urdf:7 <link>", "add inertial")
        assert bad.closed and not old.closed
        assert rig.state.phase == "running" and rig.state.path == "/a.xml" and rig.state.loading is None
        assert rig.state.wanted.path == "/a.xml"  # "Load again" means the scene that runs

    play(test)


def test_an_internal_error_comes_with_the_worker_log(play) -> None:
    async def test(rig: Rig) -> None:
        rig.intents.open_path.emit("/a.xml")
        FakeSession.made[0].events.append(msg.Failed(kind="ZeroDivisionError", text="oh", internal=True))
        rig.control.pump()
        assert rig.state.problem is not None and rig.state.problem.log == "the last words"
        assert "/logs/worker-0.log" in rig.state.problem.hint and rig.state.phase == "empty"

    play(test)


def test_cancel_while_loading_goes_back_to_what_was_there(play) -> None:
    async def test(rig: Rig) -> None:
        rig.intents.open_path.emit("/a.xml")
        rig.intents.cancel.emit()
        await settle()
        assert FakeSession.made[0].closed and rig.state.phase == "empty" and rig.state.loading is None
        rig.intents.open_path.emit("/a.xml")
        rig.loaded(FakeSession.made[1])
        rig.state.commands.run("sim.cancel")  # while kernels compile: the start page comes back
        await settle()
        assert FakeSession.made[1].closed and rig.state.bundle is None

    play(test)


def test_opening_twice_gives_up_the_first(play) -> None:
    async def test(rig: Rig) -> None:
        rig.intents.open_path.emit("/a.xml")
        rig.intents.open_path.emit("/b.xml")
        first, second = FakeSession.made
        first.events.append(msg.SceneLoaded(bundle=rig.bundle, n_envs=3, env_spacing=(1.0, 1.0)))
        rig.control.pump()
        await settle()
        assert first.closed and not second.closed and rig.state.bundle is None

    play(test)


def test_a_dead_worker_is_reported_and_can_be_restarted(play) -> None:
    async def test(rig: Rig) -> None:
        rig.intents.open_path.emit("/a.xml")
        session = FakeSession.made[0]
        rig.loaded(session)
        rig.running(session)
        session.states = ["died"]
        session.events.append(msg.WorkerDied(exitcode=-9, log_tail="killed"))
        rig.control.pump()
        assert rig.state.phase == "failed"
        assert rig.state.problem is not None and "signal 9" in rig.state.problem.text
        rig.intents.restart_worker.emit(0)
        assert ("restart", 0) in session.calls and rig.state.problem is None

    play(test)


def test_a_session_that_cannot_start_is_a_problem_not_a_crash(play) -> None:
    async def test(rig: Rig) -> None:
        FakeSession.fails = True
        rig.intents.open_path.emit("/a.xml")
        assert rig.state.problem is not None and rig.state.problem.text == "no process left"

    play(test)


@pytest.mark.parametrize("backend", ["cuda", "metal"])
def test_a_backend_that_is_not_there_is_a_problem_with_its_reason(play, backend: str) -> None:
    async def test(rig: Rig) -> None:
        rig.state.wanted.backend = backend
        rig.intents.open_path.emit("/a.xml")
        assert FakeSession.made == []
        assert rig.state.problem is not None and backend in rig.state.problem.text

    play(test)


def test_wishes_reach_the_session(play) -> None:
    async def test(rig: Rig) -> None:
        rig.intents.open_path.emit("/a.xml")
        session = FakeSession.made[0]
        rig.loaded(session)
        rig.running(session)
        session.calls.clear()
        run = rig.state.commands.run
        run("sim.play")
        run("sim.step10")
        run("sim.reset")
        run("sim.fastest")
        rig.intents.set_ctrl.emit([0.5], 3)
        rig.intents.pull.emit(2, 1, (0.0, 0.0, 0.1), (1.0, 2.0, 3.0))
        rig.intents.let_go.emit(2, 1)
        assert session.calls == [
            ("pause",),
            ("step", 10),
            ("reset",),
            ("set_speed", None),
            ("set_ctrl", [0.5], 3),
            ("perturb", msg.Perturb(env=2, body=1, point=(0.0, 0.0, 0.1), target=(1.0, 2.0, 3.0))),
            ("perturb", msg.Perturb(env=2, body=1, active=False)),
        ]

    play(test)


def test_environments_are_chosen_by_text_by_click_and_by_preset(play) -> None:
    async def test(rig: Rig) -> None:
        rig.intents.open_path.emit("/a.xml")
        rig.loaded(FakeSession.made[0], n_envs=40)
        rig.intents.show.emit("3,1")
        assert rig.state.shown == [3, 1]
        rig.intents.toggle_env.emit(3)
        rig.intents.toggle_env.emit(1)
        assert rig.state.shown == [1]  # the last one stays
        rig.intents.toggle_env.emit(0)
        assert rig.state.shown == [0, 1]
        rig.state.commands.run("view.random16")
        assert len(set(rig.state.shown)) == 16
        rig.intents.show.emit("7-3")
        assert rig.state.shown == list(range(16)) and rig.state.log[-1].level == "warning"
        rig.state.commands.run("view.all")
        assert len(rig.state.shown) == 40

    play(test)


def test_only_what_can_be_drawn_is_shown(play, monkeypatch) -> None:
    async def test(rig: Rig) -> None:
        rig.intents.open_path.emit("/a.xml")
        rig.loaded(FakeSession.made[0], n_envs=5000)
        rig.state.commands.run("view.all")
        assert len(rig.state.shown) == 1024 and "1024" in rig.state.log[-1].text

    play(test)

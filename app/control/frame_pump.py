"""The heart of the window: about sixty times a second everything new is taken from the workers."""

from __future__ import annotations

import asyncio
import contextlib

from app.control.session import SessionControl
from app.model.state import AppState
from genesis_core.backend.devices import cpu_count
from genesis_core.backend.resolve import BACKENDS, resolve_devices
from genesis_core.errors import DeviceError
from genesis_core.log import get_logger

log = get_logger(__name__)

PERIOD = 1 / 60  # [s]


class FramePump:
    """Two tasks: one pumps for ever, one looks once which devices there are."""

    def __init__(self, state: AppState, sessions: SessionControl) -> None:
        self.state = state
        self.sessions = sessions
        self._task: asyncio.Task[None] | None = None
        self._asking: asyncio.Task[None] | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._run())
        self._asking = loop.create_task(find_devices(self.state))

    async def stop(self) -> None:
        for task in (self._task, self._asking):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def _run(self) -> None:
        while True:
            try:
                self.sessions.pump()
            except Exception as error:  # one bad message must not stop the window
                log.exception("pumping failed")
                self.state.add_log("error", f"internal error: {error!r}")
            await asyncio.sleep(PERIOD)


async def find_devices(state: AppState) -> None:
    """Which backends can be chosen, asked on a helper thread (NVML may take long)."""
    cores, unavailable = await asyncio.get_running_loop().run_in_executor(None, _ask)
    state.set_devices(cores, unavailable)


def _ask() -> tuple[int, dict[str, str]]:
    unavailable = {}
    for backend in BACKENDS:
        try:
            resolve_devices(None, backend)
        except DeviceError as error:
            unavailable[backend] = error.what
    return cpu_count(), unavailable

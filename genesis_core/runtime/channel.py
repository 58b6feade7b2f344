"""One end of the pipe between supervisor and worker: whole messages, safe to send from several threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from multiprocessing.connection import Connection

from genesis_core.runtime.messages import Message, pack


class ChannelClosed(Exception):
    """The other side is gone."""


class Channel:
    """Wraps a connection. `unpack` turns bytes into the messages of the other side."""

    def __init__(self, connection: Connection, unpack: Callable[[bytes], Message]) -> None:
        self._connection = connection
        self._unpack = unpack
        self._lock = threading.Lock()

    def fileno(self) -> int:
        return self._connection.fileno()

    @property
    def closed(self) -> bool:
        return self._connection.closed

    def send(self, message: Message) -> None:
        """Sends one message; ChannelClosed when nobody listens any more."""
        data = pack(message)
        try:
            with self._lock:
                self._connection.send_bytes(data)
        except (OSError, ValueError) as error:
            raise ChannelClosed from error

    def poll(self, timeout: float = 0.0) -> bool:
        """Whether a message (or the end) is there within `timeout` seconds."""
        try:
            return self._connection.poll(timeout)
        except (OSError, EOFError):
            return True

    def receive(self) -> Message:
        """The next message, waiting for it."""
        try:
            return self._unpack(self._connection.recv_bytes())
        except (EOFError, OSError) as error:
            raise ChannelClosed from error

    def close(self) -> None:
        self._connection.close()

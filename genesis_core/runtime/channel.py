"""One end of the pipe between supervisor and worker: whole messages, safe to send from several threads."""

from __future__ import annotations

import select
import sys
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
    def connection(self) -> Connection:
        """What multiprocessing.connection.wait takes."""
        return self._connection

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

    def offer(self, message: Message) -> bool:
        """Sends a snapshot unless the pipe is full or busy: whoever does not read must not stop the sender."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if not _writable(self._connection):
                return False
            self._connection.send_bytes(pack(message))
            return True
        except (OSError, ValueError) as error:
            raise ChannelClosed from error
        finally:
            self._lock.release()

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


def _writable(connection: Connection) -> bool:
    """Whether the pipe takes bytes now. Windows' pipes cannot be asked: there the write may wait."""
    if sys.platform == "win32":
        return True
    poller = select.poll()
    poller.register(connection.fileno(), select.POLLOUT)
    return bool(poller.poll(0))

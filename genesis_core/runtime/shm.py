"""Poses of the shown environments in shared memory: three slots, the newest complete one wins, no side ever waits.

The supervisor creates a block, a worker attaches, then the name is removed at once: whatever dies afterwards, nothing
stays in /dev/shm. Pages are reserved when the block is made, so that a full /dev/shm is an error here and not a bus
error later.
"""

from __future__ import annotations

import contextlib
import os
from multiprocessing import shared_memory
from typing import Any

import msgspec
import numpy as np

from genesis_core.errors import GenesisError

SLOTS = 3
HEADER = 64  # [byte] latest slot + 1 (0 = none yet), generation
SLOT_HEADER = 64  # [byte] sequence number at the begin, at the end, count of environments, step counter, time
ALIGN = 64


class Frame(msgspec.Struct, kw_only=True):
    """A moment of the shown environments. Poses are in each environment's own world frame (no grid offset)."""

    time: np.ndarray  # (n,) float64 [s]
    envs: np.ndarray  # (n,) int32, global numbers
    rows: np.ndarray  # (n, ngeom, 12) float32: 3x4 row-major [R | p]
    qpos: np.ndarray  # (n, nq) float32
    qvel: np.ndarray  # (n, nv) float32
    ctrl: np.ndarray  # (n, nu) float32
    step: int = 0


class FrameShape(msgspec.Struct, frozen=True):
    """Sizes of a frame, and where its parts lie in a slot."""

    capacity: int
    ngeom: int
    nq: int
    nv: int
    nu: int

    def parts(self) -> list[tuple[str, type, tuple[int, ...]]]:
        n = self.capacity
        return [
            ("time", np.float64, (n,)),
            ("envs", np.int32, (n,)),
            ("rows", np.float32, (n, self.ngeom, 12)),
            ("qpos", np.float32, (n, self.nq)),
            ("qvel", np.float32, (n, self.nv)),
            ("ctrl", np.float32, (n, self.nu)),
        ]

    def empty(self) -> Frame:
        """A frame of no environments."""
        parts: dict[str, Any] = {name: np.zeros((0, *dims[1:]), kind) for name, kind, dims in self.parts()}
        return Frame(**parts)

    @property
    def slot_bytes(self) -> int:
        payload = sum(_padded(int(np.prod(s)) * np.dtype(t).itemsize) for _, t, s in self.parts())
        return SLOT_HEADER + payload

    @property
    def total_bytes(self) -> int:
        return HEADER + SLOTS * self.slot_bytes


def _padded(n: int) -> int:
    return -(-n // ALIGN) * ALIGN


class FrameBuffer:
    """The block as arrays; used by both sides."""

    def __init__(self, memory: shared_memory.SharedMemory, shape: FrameShape) -> None:
        self.memory = memory
        self.shape = shape
        buffer = memory.buf
        self._head = np.ndarray((HEADER // 8,), np.int64, buffer, 0)
        self._slots: list[dict[str, np.ndarray]] = []
        for slot in range(SLOTS):
            base = HEADER + slot * shape.slot_bytes
            arrays = {"head": np.ndarray((SLOT_HEADER // 8,), np.int64, buffer, base)}
            at = base + SLOT_HEADER
            for name, kind, dims in shape.parts():
                arrays[name] = np.ndarray(dims, kind, buffer, at)
                at += _padded(arrays[name].nbytes)
            self._slots.append(arrays)
        self._sequence = 0

    @classmethod
    def create(cls, shape: FrameShape) -> FrameBuffer:
        """A new block under a random name, readable by this user alone; GenesisError where there is no room."""
        size = shape.total_bytes
        try:
            memory = shared_memory.SharedMemory(create=True, size=size)
        except OSError as error:
            raise GenesisError(f"no shared memory of {size} bytes: {error.strerror}") from None
        try:
            descriptor = getattr(memory, "_fd", -1)
            if descriptor >= 0 and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(descriptor, 0, size)
        except OSError as error:
            memory.close()
            memory.unlink()
            raise GenesisError(
                f"/dev/shm has no room for {size} bytes: {error.strerror}",
                hint="give the container more (docker run --shm-size=1g)",
            ) from None
        return cls(memory, shape)

    @classmethod
    def attach(cls, name: str, shape: FrameShape) -> FrameBuffer:
        """Maps a block that another process made."""
        return cls(shared_memory.SharedMemory(name=name), shape)

    def write(self, frame: Frame) -> None:
        """Writes into the oldest slot and makes it the newest."""
        self._sequence += 1
        slot = self._sequence % SLOTS
        arrays = self._slots[slot]
        head, n = arrays["head"], len(frame.envs)
        head[0] = self._sequence
        head[2], head[3] = n, frame.step
        for name, _, _ in self.shape.parts():
            arrays[name][:n] = getattr(frame, name)
        head[1] = self._sequence
        self._head[0] = slot + 1

    def read(self, newer_than: int = -1) -> tuple[int, Frame] | None:
        """The newest complete frame and its number, as copies; None if there is none newer."""
        for _ in range(SLOTS + 1):
            slot = int(self._head[0]) - 1
            if slot < 0:
                return None
            arrays = self._slots[slot]
            number = int(arrays["head"][1])
            if number <= newer_than:
                return None
            n = int(arrays["head"][2])
            copies = {name: arrays[name][:n].copy() for name, _, _ in self.shape.parts()}
            frame = Frame(step=int(arrays["head"][3]), **copies)
            if int(arrays["head"][0]) == number == int(arrays["head"][1]):
                return number, frame
        return None

    def unlink(self) -> None:
        """Removes the name; mapped memory stays usable."""
        with contextlib.suppress(FileNotFoundError):
            self.memory.unlink()

    def close(self) -> None:
        """Unmaps the block."""
        self._slots.clear()
        self._head = np.zeros(1, np.int64)
        with contextlib.suppress(BufferError):
            self.memory.close()

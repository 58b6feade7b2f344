"""Poses through shared memory."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from genesis_core.errors import GenesisError
from genesis_core.runtime.shm import SLOTS, Frame, FrameBuffer, FrameShape

SHAPE = FrameShape(capacity=3, ngeom=2, nq=4, nv=3, nu=1)


def _frame(step: int, n: int = 2) -> Frame:
    value = float(step)
    return Frame(
        time=np.full(n, value),
        envs=np.arange(n, dtype=np.int32),
        rows=np.full((n, 2, 12), value, np.float32),
        qpos=np.full((n, 4), value, np.float32),
        qvel=np.full((n, 3), value, np.float32),
        ctrl=np.full((n, 1), value, np.float32),
        step=step,
    )


@pytest.fixture
def pair() -> Iterator[tuple[FrameBuffer, FrameBuffer]]:
    reader = FrameBuffer.create(SHAPE)
    writer = FrameBuffer.attach(reader.memory.name, SHAPE)
    yield writer, reader
    writer.close()
    reader.unlink()
    reader.close()


def test_the_reader_gets_the_newest_frame_once(pair) -> None:
    writer, reader = pair
    assert reader.read() is None
    for step in range(1, 8):
        writer.write(_frame(step, n=1 + step % 3))
    number, frame = reader.read()
    assert frame.step == 7 and len(frame.envs) == 2
    assert (frame.rows == 7).all() and (frame.qpos == 7).all() and (frame.time == 7).all()
    assert reader.read(number) is None
    writer.write(_frame(8))
    assert reader.read(number)[1].step == 8


def test_a_frame_that_is_being_overwritten_is_not_handed_out(pair) -> None:
    writer, reader = pair
    writer.write(_frame(1))
    slot = int(reader._head[0]) - 1
    writer._slots[slot]["head"][0] = 1 + SLOTS  # the writer has begun to fill this slot again
    assert reader.read() is None


def test_the_block_is_private_and_its_name_can_go_at_once(pair) -> None:
    writer, reader = pair
    path = Path("/dev/shm") / reader.memory.name
    if path.exists():
        assert path.stat().st_mode & 0o077 == 0
    reader.unlink()
    assert not path.exists()
    writer.write(_frame(5))
    assert reader.read()[1].step == 5
    reader.unlink()  # again does no harm


def test_a_full_dev_shm_is_an_error_with_advice_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(os, "posix_fallocate"):
        pytest.skip("this system reserves pages by itself")

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = set(os.listdir("/dev/shm"))
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(GenesisError, match=r"no room for .* bytes") as error:
        FrameBuffer.create(SHAPE)
    assert "shm-size" in error.value.hint
    assert set(os.listdir("/dev/shm")) == before

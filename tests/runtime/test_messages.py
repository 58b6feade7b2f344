"""The protocol: every message survives the pipe, and nothing else does."""

from __future__ import annotations

import typing

import msgspec
import numpy as np
import pytest

from genesis_core.errors import OptionError, SceneError
from genesis_core.layout.scene import encode
from genesis_core.runtime import messages as msg

VALUES: dict[str, dict] = {
    "Reset": {"envs": [1, 2]},
    "SetSpeed": {"factor": None},
    "Show": {"envs": [3], "shm": "psm_1", "capacity": 4, "generation": 2},
    "Perturb": {"env": 1, "body": 2, "point": (1.0, 2.0, 3.0)},
    "SetCtrl": {"values": [0.5], "env": 3},
    "SetQpos": {"env": 0, "values": [1.0]},
    "Record": {"steps": 5, "frame_steps": [0, 3], "video_envs": [1], "camera_bodies": [2]},
    "Pose": {"index": 1, "states": {"qpos": np.arange(6.0).reshape(2, 3)}},
    "Hello": {"pid": 7},
    "Progress": {"stage": "solver", "fraction": 0.5},
    "Ready": {"seconds": 1.0, "width": 8, "threads": 2, "bytes_per_env": 100},
    "State": {"state": "running"},
    "Attached": {"generation": 1},
    "FrameData": {"generation": 1, "payload": b"\x00\xff"},
    "Diagnostic": {"level": "warning", "text": "ä"},
    "Failed": {"kind": "SceneError", "text": "x", "line": 4},
    "RecordedFrame": {"index": 1, "time": 0.5, "rows": np.ones((1, 2, 12), np.float32)},
    "RecordedStates": {"start": 0, "arrays": {"qpos": np.zeros((2, 1, 3)), "step": np.array([0, 1])}},
    "RecordDone": {"steps": 5, "seconds": 0.1},
    "Diverged": {"envs": [4], "arrays": {"qpos": np.zeros((2, 1, 3)), "step": np.array([0, 1])}},
}


def _same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    return a == b


@pytest.mark.parametrize(
    ("kind", "unpack"),
    [(k, msg.unpack_down) for k in typing.get_args(msg.DOWN)]
    + [(k, msg.unpack_up) for k in typing.get_args(msg.UP) if k is not msg.SceneLoaded],  # tests/layout sends a bundle
)
def test_every_message_arrives_as_it_was_sent(kind: type[msg.Message], unpack) -> None:
    sent = kind(**VALUES.get(kind.__name__, {}))
    back = unpack(msg.pack(sent))
    assert type(back) is kind
    for field in kind.__struct_fields__:
        assert _same(getattr(sent, field), getattr(back, field)), field


def test_a_message_of_the_other_direction_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msg.unpack_down(msg.pack(msg.Hello(pid=1)))
    with pytest.raises(msgspec.ValidationError):
        msg.unpack_up(msg.pack(msg.Play()))


def test_arrays_of_python_objects_do_not_travel() -> None:
    head = msgspec.msgpack.encode(("|O", (1,)))
    forged = msgspec.msgpack.Ext(1, len(head).to_bytes(4, "little") + head + b"\0" * 8)
    data = encode({"type": "RecordedFrame", "index": 0, "time": 0.0, "rows": forged})
    with pytest.raises((ValueError, msgspec.ValidationError)):
        msg.unpack_up(data)


def test_an_error_keeps_its_place_on_the_way_up() -> None:
    failed = msg.failure(SceneError("too heavy", file="a.xml", line=3, element="body", hint="lighter"))
    assert (failed.kind, failed.file, failed.line, failed.element) == ("SceneError", "a.xml", 3, "body")
    assert not failed.internal
    assert msg.failure(OptionError("x", where="y")).where == "y"
    assert msg.failure(ZeroDivisionError("q")).internal


@pytest.mark.parametrize(("n_envs", "workers"), [(1, 1), (7, 3), (64, 2), (5, 5), (1000, 7)])
def test_shares_cover_every_environment_once(n_envs: int, workers: int) -> None:
    shares = [msg.share(n_envs, workers, i) for i in range(workers)]
    covered = [e for first, count in shares for e in range(first, first + count)]
    assert covered == list(range(n_envs))
    counts = [count for _, count in shares]
    assert max(counts) - min(counts) <= 1

"""`gs.launch(fn, devices=[...])`: one process per device, each told its device by environment variables.

It does no more than the plain `multiprocessing` recipe (examples/multi_gpu.py) and less can go wrong: results and
tracebacks come back, one failure stops all, and neither Ctrl+C nor a killed launcher leaves a process behind.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import Pipe, current_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from genesis_core.backend.devices import thread_share
from genesis_core.backend.resolve import device_environment, resolve_devices, slice_numbers
from genesis_core.errors import DeviceError, OptionError, StateError, WorkerError
from genesis_core.runtime.guard import end_with_parent
from genesis_core.runtime.spawn import from_main_thread, spawn

GRACE = 5.0  # [s] that a process gets to clean up before it is killed
LAST_WORDS = 1.0  # [s] for a message of a process that has ended


def launch(
    fn: Callable[..., Any],
    devices: str | Sequence[str | int] | None = None,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    timeout: float | None = None,
) -> list[Any]:
    """Calls `fn(rank, *args, **kwargs)` in one new process per device; returns the results in the order of `devices`.

    fn: a function of a module or of the script (its name travels, not its code), which calls `gs.init()` itself.
    devices: [0, 1] or ["cuda:0", "cuda:1"] GPUs by nvidia-smi's number, ["cpu:0", "cpu:1"] or "cpu:2" two CPU shares,
    "all" every GPU, None the best one. Each process finds CUDA_VISIBLE_DEVICES, QD_VISIBLE_DEVICE and EGL_DEVICE_ID
    set for its GPU, and its share of the CPU cores in GENESIS_THREADS and OMP_NUM_THREADS. timeout: [s] for all.

    Raises WorkerError with the rank, its device and its traceback where one fails or dies; the others are stopped then
    (they see KeyboardInterrupt, so `finally` blocks run, and are killed after 5 s). DeviceError for devices that do not
    exist, OptionError for a function that cannot be sent, StateError where the script lacks its main guard.
    """
    if getattr(current_process(), "_inheriting", False):
        raise StateError(
            "gs.launch was called while one of its own processes was importing the script",
            hint='put the call below `if __name__ == "__main__":`',
        )
    if timeout is not None and not timeout > 0:
        raise OptionError(f"timeout = {timeout!r}", where="gs.launch", hint="seconds, or None for no limit")
    ids = device_ids(devices)
    ranks: list[_Rank] = []
    try:
        _start(ranks, fn, ids, tuple(args), dict(kwargs or {}))
        _collect(ranks, None if timeout is None else time.monotonic() + timeout)
    except BaseException:
        _stop(ranks)
        raise
    finally:
        for rank in ranks:
            rank.end(GRACE)
            rank.close()
    return [rank.result for rank in ranks]


def device_ids(devices: str | Sequence[str | int] | None) -> tuple[str, ...]:
    """One id per process from what `launch` was given."""
    if devices is None or isinstance(devices, str):
        return resolve_devices(devices)
    names = [str(device) for device in devices]
    if not names:
        raise DeviceError("devices is empty", where="gs.launch", hint='for example [0, 1] or "cpu:2"')
    shares = [name for name in names if name.partition(":")[0] == "cpu" and name[4:].isdecimal()]
    if len(shares) == len(names) > 1 or (len(names) == 1 and shares == ["cpu:0"]):
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise DeviceError(f"devices name {twice[0]} twice", where="gs.launch", hint="each process needs its own")
        return tuple(names)
    return resolve_devices(",".join(names))


class _Rank:
    """One process as the launcher sees it."""

    def __init__(self, index: int, device: str, process: BaseProcess, connection: Connection) -> None:
        self.index, self.device, self.process, self.connection = index, device, process, connection
        self.finished = False
        self.result: Any = None
        self._ended = False

    def __str__(self) -> str:
        return f"rank {self.index} ({self.device})"

    def ask_to_stop(self) -> None:
        """SIGTERM to the process and its children; where there are no process groups, its end."""
        if wait([self.process.sentinel], 0) or _signal_group(self.process, getattr(signal, "SIGTERM", 15)):
            return
        self.process.terminate()

    def end(self, seconds: float) -> int | None:
        """Waits for the process, at most so long; kills what is left of it and of its children; its exit code.

        The group is killed before the process is reaped: until then nobody else can have its number.
        """
        if self._ended:
            return self.process.exitcode
        self._ended = True
        wait([self.process.sentinel], seconds)
        if not _signal_group(self.process, getattr(signal, "SIGKILL", 9)):
            self.process.kill()
        self.process.join()
        return self.process.exitcode

    def close(self) -> None:
        self.connection.close()
        self.process.close()


def _signal_group(process: BaseProcess, number: int) -> bool:
    try:
        os.killpg(process.pid or 0, number)
    except (OSError, AttributeError):  # it has not made its group yet, or there are none on this system
        return False
    return True


def _start(
    ranks: list[_Rank], fn: Callable[..., Any], ids: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    try:
        pickle.dumps((fn, args, kwargs))
    except Exception as error:
        raise OptionError(
            f"{getattr(fn, '__qualname__', fn)!s} and its arguments cannot be sent to another process: {error}",
            where="gs.launch",
            hint="give a function defined at the top level of a module, and plain values",
        ) from None
    threads = max(1, thread_share() // len(ids))
    slices = slice_numbers(ids)
    for index, device in enumerate(ids):
        ours, theirs = Pipe(duplex=False)
        process = spawn(
            _main,
            (theirs, os.getpid(), from_main_thread(), index, fn, args, kwargs),
            f"genesis-rank-{index}",
            device_environment(device, threads, slices),
            daemon=False,  # a rank may have children, which multiprocessing forbids to daemons
        )
        theirs.close()
        ranks.append(_Rank(index, device, process, ours))


def _main(
    connection: Connection,
    parent: int,
    with_thread: bool,
    index: int,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """Entry point of a rank."""
    with contextlib.suppress(OSError, AttributeError):
        os.setpgid(0, 0)  # Ctrl+C goes to the launcher alone, which stops all in order
    end_with_parent(parent, with_thread)
    signal.signal(signal.SIGTERM, _stopped)
    try:
        answer: tuple[Any, ...] = ("done", fn(index, *args, **kwargs))
    except BaseException as error:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        answer = _failure(error)
    try:
        connection.send(answer)
    except OSError:
        pass  # the launcher has given up
    except Exception as error:  # a result that cannot be pickled
        kind = type(answer[1]).__name__
        text = f"the result, a {kind}, cannot be sent back: {error}"
        connection.send(("failed", "TypeError", text, "", None))
    connection.close()
    sys.stdout.flush()


def _stopped(number: int, frame: Any) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _failure(error: BaseException) -> tuple[Any, ...]:
    first = error.__traceback__
    text = "".join(traceback.format_exception(type(error), error, first.tb_next if first is not None else None))
    try:
        pickle.loads(pickle.dumps(error))
        cause: BaseException | None = error
    except Exception:
        cause = None
    return "failed", type(error).__name__, str(error), text, cause


def _collect(ranks: list[_Rank], deadline: float | None) -> None:
    """Waits for every rank; raises WorkerError for the first that fails, dies or is late."""
    while waiting := [rank for rank in ranks if not rank.finished]:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = wait([r.connection for r in waiting] + [r.process.sentinel for r in waiting], left)
        if not ready:
            late = ", ".join(str(rank) for rank in waiting)
            raise WorkerError(f"not finished in time: {late}", where="gs.launch", hint="all ranks were stopped")
        for rank in waiting:
            if rank.connection in ready or rank.process.sentinel in ready:
                _hear(rank, waiting)


def _hear(rank: _Rank, waiting: list[_Rank]) -> None:
    try:
        if not rank.connection.poll(LAST_WORDS):
            raise EOFError
        answer = rank.connection.recv()
    except (EOFError, OSError):
        raise _death(rank) from None
    except Exception as error:  # what came cannot be unpickled here
        raise WorkerError(f"its result cannot be read: {error}", where=f"gs.launch, {rank}") from None
    if answer[0] == "done":
        rank.finished, rank.result = True, answer[1]
        return
    _, kind, text, trace, cause = answer
    others = len(waiting) - 1
    stopped = f"; the {others} other rank{'s were' if others > 1 else ' was'} stopped" if others else ""
    lines = "".join(f"\n    {line}" for line in trace.rstrip().splitlines())
    raise WorkerError(
        f"{kind}: {text}{stopped}", where=f"gs.launch, {rank}", hint=f"its traceback:{lines}" if lines else ""
    ) from cause


def _death(rank: _Rank) -> WorkerError:
    code = rank.end(LAST_WORDS)
    if code is not None and code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else "unknown"
        how, hint = f"signal {-code} ({name})", "the other ranks were stopped"
        if name == "SIGKILL":
            hint += "; when nobody sent it, the system ran out of memory (dmesg tells)"
    else:
        how = f"exit code {code}"
        hint = "the other ranks were stopped; what it printed is above. Calls of gs.launch belong below "
        hint += '`if __name__ == "__main__":`'
    return WorkerError(f"died by {how} without a result", where=f"gs.launch, {rank}", hint=hint)


def _stop(ranks: list[_Rank]) -> None:
    """Asks all to end, and kills those that do not; a second Ctrl+C kills at once."""
    deadline = time.monotonic() + GRACE
    with contextlib.suppress(KeyboardInterrupt):
        for rank in ranks:
            rank.ask_to_stop()
        for rank in ranks:
            rank.end(max(0.0, deadline - time.monotonic()))
    for rank in ranks:
        rank.end(0.0)

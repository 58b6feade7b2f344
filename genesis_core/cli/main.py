"""The command `genesis-studio`: finds the verb, and turns every way of failing into one message and an exit code.

0 success, 1 our own fault or a machine that gave up (with a hint where the log is), 2 the user's mistake, 130 Ctrl+C.
Module level stays free of heavy imports: spawned worker processes import it again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

VERBS = ("window", "record", "play", "info", "devices", "doctor", "top", "bench", "run")
OK, INTERNAL, MISTAKE, INTERRUPTED = 0, 1, 2, 130
_OWN = ("--help", "-h", "--version", "--install-completion", "--show-completion")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return guarded(lambda: _dispatch(arguments), debug="--debug" in arguments)


def _dispatch(arguments: list[str]) -> int:
    if not arguments or (arguments[0] not in VERBS and arguments[0] not in _OWN):
        if arguments and not arguments[0].startswith("-"):
            _refuse_slip(arguments[0])
        arguments = ["window", *arguments]  # genesis-studio [SCENE] [options]
    from genesis_core.cli.verbs import run_app

    return run_app(arguments)


def _refuse_slip(word: str) -> None:
    """A first word that is neither verb nor scene, but nearly a verb, is a slip of the pen."""
    import difflib

    from genesis_core.cli.common import find_scene
    from genesis_core.errors import OptionError, SceneError

    try:
        find_scene(word)
    except SceneError as error:
        near = difflib.get_close_matches(word, VERBS, 1, cutoff=0.6)
        if not near or "/" in word or "." in word:
            raise
        raise OptionError(
            f"'{word}' is neither a command nor a scene", hint=f"did you mean `genesis-studio {near[0]}`? {error.hint}"
        ) from None


def guarded(call: Callable[[], int], debug: bool = False) -> int:
    """The exit code of `call()`, with its errors told as users should hear them."""
    from genesis_core.errors import GenesisError, WorkerError

    try:
        return call() or OK
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output (head, less) has seen enough
        _silence_stdout()
        return OK
    except GenesisError as error:
        _say(f"error: {error}")
        return INTERNAL if isinstance(error, WorkerError) else MISTAKE
    except MemoryError:
        _say("error: out of memory\n  hint: use fewer environments (--envs)")
        return INTERNAL
    except Exception as error:
        if debug:
            raise
        _say(
            f"internal error: {type(error).__name__}: {error}\n"
            f"  hint: please report this with the file {_crash_report(error)}; --debug shows the traceback here"
        )
        return INTERNAL


def _say(text: str) -> None:
    import contextlib

    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def _silence_stdout() -> None:
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _crash_report(error: BaseException) -> Path:
    """Writes the traceback to a file in the log folder."""
    import time
    import traceback

    from genesis_core.runtime.supervisor import log_folder

    path = log_folder() / f"crash-{time.strftime('%Y%m%d-%H%M%S')}.log"
    lines = [f"genesis-studio {' '.join(sys.argv[1:])}\n", *traceback.format_exception(error)]
    path.write_text("".join(lines), errors="replace")
    return path


if __name__ == "__main__":
    sys.exit(main())

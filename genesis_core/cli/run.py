"""`genesis-studio run SCRIPT`: runs a script written for Genesis; `import genesis` finds genesis_core."""

from __future__ import annotations

import importlib
import os
import runpy
import sys
import traceback
from pathlib import Path

from genesis_core.errors import GenesisError, OptionError


def run(script: Path, arguments: list[str]) -> int:
    """Runs the script as `python SCRIPT ARGS` would; returns its exit code."""
    if not script.is_file():
        raise OptionError(
            f"{script} is a folder" if script.is_dir() else f"the script {script} does not exist",
            hint="give a Python file",
        )
    sys.modules.setdefault("genesis", importlib.import_module("genesis_core"))
    _tell_children()
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as done:
        if done.code is None or isinstance(done.code, int):
            return done.code or 0
        print(done.code, file=sys.stderr)
        return 1
    except GenesisError as error:
        print(f"error: {error}\n  in {_place(error, script)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the script's own fault: its traceback, without our frames
        first = error.__traceback__
        while first is not None and Path(first.tb_frame.f_code.co_filename) != script:
            first = first.tb_next
        traceback.print_exception(type(error), error, first or error.__traceback__)
        return 1
    return 0


def _tell_children() -> None:
    """A stand-in for processes of the script: spawned ones get our sys.path, others (torchrun's) the variable."""
    shim = str(Path(__file__).parent / "shim")
    sys.path.insert(0, shim)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([shim, *([before] if before else [])])


def _place(error: BaseException, script: Path) -> str:
    """The line of the script from which an error came."""
    lines = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == script]
    return f"{script}:{lines[-1].lineno}: {lines[-1].line}" if lines else str(script)

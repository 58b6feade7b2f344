"""One writer per name: two runs that were started with the same output would mix their files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from genesis_core.errors import RecordingError
from genesis_core.log import get_logger
from genesis_core.record.recording import disk_errors

log = get_logger(__name__)


@contextlib.contextmanager
def claimed(output: Path) -> Iterator[None]:
    """Holds the name of an output file against other processes; RecordingError where another one has it.

    The claim is a lock of the system on a hidden file beside the output and ends with this process, however it ends.
    """
    from filelock import FileLock, Timeout

    path = output.with_name(f".{output.stem}.lock")
    lock = FileLock(path, timeout=0)
    with disk_errors("the output folder", output.parent):
        try:
            lock.acquire()
        except Timeout:  # an OSError, too
            raise RecordingError(
                f"another process is writing {output.stem} there",
                where=str(output.parent),
                hint="give another --name or --out",
            ) from None
        except NotImplementedError:
            log.warning("%s knows no locks: do not write %s there twice at a time", output.parent, output.stem)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()  # while it is held: whoever comes now makes a file of its own
        lock.release()  # nothing, where there was no lock

"""Where compiled kernels are kept between runs.

The folder's name is a hash of everything that changes the machine code: the sources of `lanes`, `layout` and
`physics` (Numba does not notice edits in callee modules), the versions of Numba and LLVM, and the CPU with its
features. Precision and lane width are part of the types of every kernel's arguments, hence of Numba's own key inside
the folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import platform
import shutil
import stat
import sys
import tempfile
import time
from functools import lru_cache
from pathlib import Path

from genesis_core.log import get_logger

log = get_logger(__name__)
PACKAGE = Path(__file__).resolve().parent.parent
SOURCES = ("lanes", "layout", "physics")
KEPT = 4  # folders of other versions that are kept however old they are
OLD = 24 * 3600.0  # [s] a folder used since then is kept too: another checkout may be at work with it


def cache_root() -> Path:
    """`GENESIS_CACHE_DIR`, or the user's cache folder of this system."""
    override = os.environ.get("GENESIS_CACHE_DIR")
    if override:
        return Path(override).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("genesis-studio", appauthor=False))


def _cpu_identity() -> str:
    """Name and feature flags of the CPU, without loading LLVM."""
    parts = [platform.machine(), platform.system(), os.environ.get("NUMBA_CPU_NAME", "")]
    parts.append(os.environ.get("NUMBA_CPU_FEATURES", ""))
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "flags", "Features", "CPU part")):
                parts.append(line)
            if not line.strip():
                break
    except OSError:
        parts.append(platform.processor())
    return "\n".join(parts)


@lru_cache(maxsize=1)
def kernel_key() -> str:
    """Hash of the kernel sources and of the compiler and CPU that they are compiled with."""
    digest = hashlib.sha256()
    for room in SOURCES:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            if path.name == "cuda.py":  # the other target's lanes change nothing in kernels for the CPU
                continue
            digest.update(path.relative_to(PACKAGE).as_posix().encode())
            digest.update(path.read_bytes())
    for name in ("numba", "llvmlite"):
        digest.update(importlib.metadata.version(name).encode())
    digest.update(sys.version.encode())
    digest.update(_cpu_identity().encode())
    return digest.hexdigest()[:24]


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@lru_cache(maxsize=1)
def cache_folder() -> Path:
    """The folder of compiled kernels for this source, compiler and CPU.

    Falls back to a private folder under the system's temporary files when the user's cache cannot be written (read-only
    home, full disk): kernels are then compiled once per boot instead of once.
    """
    folder = cache_root() / "kernels" / kernel_key()
    if _writable(folder):
        prune(folder)
        return folder
    uid = os.getuid() if hasattr(os, "getuid") else 0
    private = Path(tempfile.gettempdir()) / f"genesis-studio-{uid}"
    if not _is_ours(private):
        private = Path(tempfile.mkdtemp(prefix="genesis-kernels-"))
    fallback = private / "kernels" / kernel_key()
    log.warning("cannot write the kernel cache %s; using %s", folder, fallback)
    return fallback if _writable(fallback) else Path(tempfile.mkdtemp(prefix="genesis-kernels-"))


def _is_ours(folder: Path) -> bool:
    """Makes a private folder below a public one; False if somebody else has it. Cached kernels are code that is run."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    if not hasattr(os, "getuid"):
        return True
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def prune(current: Path) -> None:
    """Removes kernels of versions that are no longer used: all but the newest few, and none that was used today."""
    with contextlib.suppress(OSError):
        os.utime(current)
        others = [f for f in current.parent.iterdir() if f.is_dir() and f != current]
        others.sort(key=lambda f: f.stat().st_mtime, reverse=True)
        for folder in others[KEPT:]:
            if time.time() - folder.stat().st_mtime > OLD:
                shutil.rmtree(folder, ignore_errors=True)

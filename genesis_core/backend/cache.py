"""Where compiled kernels are kept between runs.

The folder's name is a hash of everything that changes the machine code: the sources of `lanes`, `layout` and
`physics` (Numba does not notice edits in callee modules), the versions of Numba and LLVM, and the CPU with its
features. Precision and lane width are part of the types of every kernel's arguments, hence of Numba's own key inside
the folder.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

from genesis_core.log import get_logger

log = get_logger(__name__)
PACKAGE = Path(__file__).resolve().parent.parent
SOURCES = ("lanes", "layout", "physics")


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
        return folder
    uid = os.getuid() if hasattr(os, "getuid") else 0
    fallback = Path(tempfile.gettempdir()) / f"genesis-studio-{uid}" / "kernels" / kernel_key()
    log.warning("cannot write the kernel cache %s; using %s", folder, fallback)
    if not _writable(fallback):
        fallback = Path(tempfile.mkdtemp(prefix="genesis-kernels-"))
    return fallback

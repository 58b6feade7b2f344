"""Questions to the CUDA driver that neither make a context nor initialise it in this process."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from genesis_core.backend.choice import MASK, ORDER

NOT_INITIALIZED = 3  # CUDA_ERROR_NOT_INITIALIZED
LIMIT = 20.0  # [s]

# Prints the PCI addresses in the order in which CUDA counts. A process of its own: initialising the driver freezes its
# mask, and must not happen here.
_ORDER = """
import ctypes, sys
cuda = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
count, text = ctypes.c_int(), ctypes.create_string_buffer(64)
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
for k in range(count.value):
    assert cuda.cuDeviceGetPCIBusId(text, 64, k) == 0
    print(text.value.decode())
"""


def _loaded_driver() -> Any:
    """The driver's library where this process has loaded it already, else None."""
    try:
        if sys.platform == "win32":
            handle = ctypes.windll.kernel32.GetModuleHandleW("nvcuda.dll")
            return ctypes.WinDLL("nvcuda.dll", handle=handle) if handle else None
        return ctypes.CDLL("libcuda.so.1", mode=getattr(os, "RTLD_NOLOAD", 4) | os.RTLD_LAZY)
    except (OSError, AttributeError):
        return None


def seen_devices(known: Sequence[str], library: Any = None) -> tuple[str, ...] | None:
    """UUIDs of the GPUs and MIG slices that CUDA shows this process, in its order; None before its initialisation.

    cuDeviceGetCount answers NOT_INITIALIZED until somebody called cuInit, as torch.cuda.is_available() does; from then
    on CUDA_VISIBLE_DEVICES is not read again. known: UUIDs as NVML writes them ("GPU-...", "MIG-...").
    """
    cuda = library if library is not None else _loaded_driver()
    if cuda is None:
        return None
    count = ctypes.c_int()
    if cuda.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return None
    by_digits = {"".join(c for c in u[4:] if c != "-").lower(): u for u in known}
    found = []
    # the second version tells a slice by its own UUID
    ask = getattr(cuda, "cuDeviceGetUuid_v2", None) or cuda.cuDeviceGetUuid
    for ordinal in range(count.value):
        raw = (ctypes.c_ubyte * 16)()
        if ask(ctypes.byref(raw), ordinal) != 0:
            return None
        digits = bytes(raw).hex()
        found.append(by_digits.get(digits, f"GPU-{digits}"))
    return tuple(found)


@functools.cache
def fastest_first() -> tuple[str, ...]:
    """PCI addresses of all GPUs as CUDA counts them where CUDA_DEVICE_ORDER is not set; empty where it cannot tell."""
    env = {k: v for k, v in os.environ.items() if k not in (MASK, ORDER)}
    try:
        done = subprocess.run([sys.executable, "-c", _ORDER], env=env, capture_output=True, text=True, timeout=LIMIT)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(done.stdout.split()) if done.returncode == 0 else ()


@functools.cache
def torch_cuda() -> str | None:
    """CUDA version of the installed torch ("" = a CPU build, None = no torch), without importing it."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not spec.origin:
        return None
    try:
        text = (Path(spec.origin).parent / "version.py").read_text()
    except OSError:
        return None
    for line in text.splitlines():
        name, equals, value = line.partition("=")
        if equals and name.split(":")[0].strip() == "cuda":
            return "" if value.strip() == "None" else value.strip().strip("'\"")
    return None

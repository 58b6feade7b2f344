"""`gs.init` and `gs.destroy`: backend, precision and logging of this process, and the scenes that are alive."""

from __future__ import annotations

import atexit
import difflib
import logging
import random
import sys
import time
import weakref
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from genesis_core.errors import DeviceError, GenesisError, OptionError, StateError
from genesis_core.log import ROOT, get_logger

if TYPE_CHECKING:
    import torch

    from genesis_core.api.scene import Scene

log = get_logger(__name__)


class Backend(IntEnum):
    """Where a simulation runs; the numbers are Genesis'."""

    cpu = 0
    gpu = 1
    cuda = 2
    amdgpu = 3
    metal = 4

    def __str__(self) -> str:
        return f"gs.{self.name}"

    __repr__ = __str__


cpu, gpu, cuda, amdgpu, metal = Backend


@dataclass
class Session:
    """What `init` decided."""

    backend: Backend
    device: torch.device
    precision: str
    debug: bool
    seed: int | None
    eps: float
    logger: logging.Logger
    tc_float: torch.dtype
    np_float: type


_session: Session | None = None
_scenes: weakref.WeakSet[Scene] = weakref.WeakSet()
_handler: logging.Handler | None = None
_NAMES = {"EPS": "eps", "SEED": "seed"}


def value(name: str) -> Any:
    """The value of `gs.<name>`: None before `init` and after `destroy`."""
    if _session is None:
        return get_logger(ROOT) if name == "logger" else None
    if name in ("tc_int", "tc_bool"):
        import torch

        return torch.int32 if name == "tc_int" else torch.bool
    if name in ("np_int", "np_bool"):
        return np.int32 if name == "np_int" else np.bool_
    return getattr(_session, _NAMES.get(name, name))


def current() -> Session:
    """The session, or StateError."""
    if _session is None:
        raise StateError("Genesis hasn't been initialized. Did you call `gs.init()`?")
    return _session


def register(scene: Scene) -> None:
    """Remember a scene so that `destroy` can close it."""
    _scenes.add(scene)


def raise_exception(message: str = "Something went wrong.") -> NoReturn:
    """Raise a GenesisException (kept for scripts that call `gs.raise_exception`)."""
    raise GenesisError(message)


def init(
    *,
    backend: Backend | None = None,
    precision: str = "32",
    logging_level: int | str | None = None,
    debug: bool = False,
    seed: int | None = None,
    eps: float = 1e-15,
    theme: str = "dark",
    logger_verbose_time: bool = False,
    performance_mode: bool = False,
    use_deterministic_algorithms: bool | None = None,
) -> None:
    """Prepare this process: choose the backend, the precision and the seed.

    backend: `gs.cpu`, `gs.gpu` (the best there is: CUDA, else Metal, else the CPU with a warning), `gs.cuda`,
        `gs.metal`; None is `gs.gpu` without the warning (the CPU where `debug` is on). A backend that is asked for by
        name and absent raises DeviceError.
    precision: "32" or "64", the kind of all real numbers.
    logging_level: a name ("warning") or a number of the logging module; default "info", "debug" with `debug`.
    seed: seeds `random`, numpy and torch, and stands as `gs.SEED`.
    eps: `gs.EPS` is this or the smallest step of the real type, whichever is larger.
    theme: "dark", "light", or "raw" (no colours; also what a file or a pipe gets).
    performance_mode, use_deterministic_algorithms: accepted for scripts written for Genesis. Kernels are never
        specialised to a scene here and results are always reproducible, so neither changes anything.

    Raises StateError on a second call without `gs.destroy()`, OptionError, DeviceError.
    """
    global _session
    if _session is not None:
        raise StateError("Genesis already initialized.", hint="call gs.destroy() first")
    if precision not in ("32", "64"):
        raise OptionError(f"Unsupported precision type: {precision}", where="gs.init", hint='it is "32" or "64"')
    if theme not in ("dark", "light", "raw"):
        raise OptionError(f"Unsupported theme: {theme!r}", where="gs.init", hint='it is "dark", "light" or "raw"')
    level = _level(logging_level, debug)
    import torch

    _start_logging(level, theme, logger_verbose_time)
    try:
        chosen, device = _choose(backend, debug, precision)
    except DeviceError:
        _stop_logging()
        raise
    np_float: type = np.float32 if precision == "32" else np.float64
    _session = Session(
        backend=chosen,
        device=device,
        precision=precision,
        debug=debug,
        seed=seed,
        eps=max(eps, float(np.finfo(np_float).eps)),
        logger=logging.getLogger(ROOT),
        tc_float=torch.float32 if precision == "32" else torch.float64,
        np_float=np_float,
    )
    if seed is not None:
        random.seed(seed)
        np.random.seed(seed % 2**32)
        torch.manual_seed(seed)
    log.info("Genesis Studio on %s, %s-bit, tensors on %s", chosen, precision, device)


def destroy() -> None:
    """Close every scene and forget the session; `init` may be called again. Harmless when nothing is initialized."""
    global _session
    for scene in list(_scenes):
        scene.destroy()
    _scenes.clear()
    _session = None
    _stop_logging()


atexit.register(destroy)


def _level(level: int | str | None, debug: bool) -> int:
    if level is None:
        return logging.DEBUG if debug else logging.INFO
    if isinstance(level, int) and not isinstance(level, bool):
        return level
    names = logging.getLevelNamesMapping()
    if isinstance(level, str) and level.upper() in names:
        return names[level.upper()]
    near = difflib.get_close_matches(str(level).upper(), names, n=1)
    raise OptionError(
        f"unknown logging level {level!r}",
        where="gs.init",
        hint=f'did you mean "{near[0].lower()}"?' if near else "debug, info, warning, error or critical",
    )


class _Format(logging.Formatter):
    """`[Genesis] [12:34:56] [INFO] text`, coloured on a terminal."""

    # 256-colour codes of debug, info, warning, error
    COLORS: ClassVar[dict[str, tuple[int, ...]]] = {"dark": (245, 117, 215, 203), "light": (243, 25, 130, 124)}
    LEVELS: ClassVar[tuple[int, ...]] = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)

    def __init__(self, theme: str, verbose_time: bool) -> None:
        super().__init__()
        self.colors = self.COLORS.get(theme)
        self.verbose_time = verbose_time

    def format(self, record: logging.LogRecord) -> str:
        when = time.strftime("%H:%M:%S", time.localtime(record.created))
        if self.verbose_time:
            when += f".{int(record.msecs):03d}"
        text = f"[Genesis] [{when}] [{record.levelname}] {record.getMessage()}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        if self.colors is None:
            return text
        rank = max(0, sum(record.levelno >= level for level in self.LEVELS) - 1)
        return f"\033[38;5;{self.colors[rank]}m{text}\033[0m"


class _Stdout(logging.StreamHandler):
    """Writes to whatever sys.stdout is at the moment, so that redirection after `init` works."""

    def __init__(self) -> None:
        super().__init__(sys.stdout)

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stdout
        super().emit(record)


def _start_logging(level: int, theme: str, verbose_time: bool) -> None:
    global _handler
    _stop_logging()
    terminal = bool(getattr(sys.stdout, "isatty", lambda: False)())
    _handler = _Stdout()
    _handler.setFormatter(_Format(theme if terminal else "raw", verbose_time))
    root = logging.getLogger(ROOT)
    root.addHandler(_handler)
    root.setLevel(level)


def _stop_logging() -> None:
    global _handler
    if _handler is not None:
        logging.getLogger(ROOT).removeHandler(_handler)
        _handler = None


_ABSENT = "Backend gs.{} not available on this machine"


def _choose(backend: Backend | None, debug: bool, precision: str) -> tuple[Backend, torch.device]:
    """The backend to use and where tensors live; DeviceError where one asked for by name is absent."""
    import torch

    if backend is not None and not isinstance(backend, Backend):
        names = ", ".join(str(b) for b in Backend)
        raise OptionError(f"unknown backend {backend!r}", where="gs.init", hint=f"one of {names}")
    if backend is Backend.cuda:
        raise DeviceError(
            f"Backend gs.cuda not available on this machine: {_why_not_cuda()}", hint="use gs.gpu or gs.cpu"
        )
    if backend is Backend.amdgpu:
        raise DeviceError(
            f"{_ABSENT.format('amdgpu')}: this version has no AMD backend and did not look for a GPU",
            hint="use gs.gpu or gs.cpu",
        )
    if backend is Backend.metal:
        missing = _why_not_metal(precision)
        if missing:
            raise DeviceError(f"{_ABSENT.format('metal')}: {missing}", hint="use gs.gpu or gs.cpu")
        return Backend.metal, torch.device("mps")
    if backend is Backend.cpu or (backend is None and debug):
        return Backend.cpu, torch.device("cpu")
    if not _why_not_metal(precision):
        log.info("gs.metal: tensors on the GPU, physics on the CPU cores of the same chip")
        return Backend.metal, torch.device("mps")
    if backend is Backend.gpu:
        log.warning(
            "no GPU to simulate on, running on the CPU. CUDA: %s. Metal: %s.",
            _why_not_cuda(),
            _why_not_metal(precision),
        )
    return Backend.cpu, torch.device("cpu")


def _why_not_cuda() -> str:
    """What was looked for and not found, or what is there and not used yet."""
    import torch

    from genesis_core.backend.devices import cuda_devices

    notes: list[str] = []
    names = [device.name for device in cuda_devices(notes)]
    if names:
        return f"found {', '.join(names)}, but physics on CUDA arrives with a later release of Genesis Studio"
    build = "" if torch.version.cuda else "; torch is a CPU build"
    return (notes[0] if notes else "no NVIDIA GPU found") + build


def _why_not_metal(precision: str) -> str:
    """Empty where Metal can be used."""
    import torch

    if sys.platform != "darwin":
        return f"it exists on macOS only, this is {sys.platform}"
    if not torch.backends.mps.is_available():
        return "torch finds no MPS device"
    if precision == "64":
        return "it has no 64-bit numbers"
    return ""

"""`gs.init` and `gs.destroy`: backend, precision and logging of this process, and the scenes that are alive."""

from __future__ import annotations

import atexit
import difflib
import logging
import os
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
    from genesis_core.backend.choice import Choice, Machine
    from genesis_core.runtime.status import Reporter

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
    use_deterministic_algorithms: bool
    pid: int

    @property
    def engine(self) -> str:
        """The Simulation's backend: Metal has tensors only, its physics runs on the CPU lanes."""
        return "cuda" if self.backend is Backend.cuda else "cpu"


_session: Session | None = None
_scenes: weakref.WeakSet[Scene] = weakref.WeakSet()
_handler: _Stdout | None = None
_reporter: Reporter | None = None
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
    if _session.backend is Backend.cuda and _session.pid != os.getpid():
        raise StateError(
            f"this process ({os.getpid()}) was forked from {_session.pid} after gs.init() on {_session.device}; CUDA "
            "does not work in it",
            hint='call gs.init() in the child and start it by multiprocessing.get_context("spawn") or gs.launch(...)',
        )
    return _session


def register(scene: Scene) -> None:
    """Remember a scene so that `destroy` can close it."""
    _scenes.add(scene)


def raise_exception(message: str = "Something went wrong.") -> NoReturn:
    """Raise a GenesisException (kept for scripts that call `gs.raise_exception`)."""
    raise GenesisError(message)


def init(
    *,
    backend: Backend | str | None = None,
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
        `gs.metal`, or their names as strings; None is `gs.gpu` without the warning (the CPU where `debug` is on). A
        backend that is asked for by name and absent raises DeviceError. Which of several GPUs: CUDA_VISIBLE_DEVICES,
        QD_VISIBLE_DEVICE, EGL_DEVICE_ID, under torchrun LOCAL_RANK (`genesis_core.backend.choice`).
    precision: "32" or "64", the kind of all real numbers.
    logging_level: a name ("warning") or a number of the logging module; default "info", "debug" with `debug`.
    seed: seeds `random`, numpy and torch, and stands as `gs.SEED`.
    eps: `gs.EPS` is this or the smallest step of the real type, whichever is larger.
    theme: "dark", "light", or "raw" (no colours; also what a file or a pipe gets).
    performance_mode: accepted for scripts written for Genesis; kernels are never specialised to a scene here.
    use_deterministic_algorithms: the physics is always reproducible; True asks torch for the same until `destroy`.

    Raises StateError on a second call without `gs.destroy()`, OptionError, DeviceError.
    """
    global _session
    if _session is not None:
        raise StateError(
            "Genesis already initialized.",
            hint=f"it runs on {_session.backend}; call gs.destroy() before a new gs.init()",
        )
    backend = _parsed(backend)
    if precision not in ("32", "64"):
        raise OptionError(f"Unsupported precision type: {precision}", where="gs.init", hint='it is "32" or "64"')
    if theme not in ("dark", "light", "raw"):
        raise OptionError(f"Unsupported theme: {theme!r}", where="gs.init", hint='it is "dark", "light" or "raw"')
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer))):
        raise OptionError(f"seed = {seed!r} is no integer", where="gs.init")
    level = _level(logging_level, debug)
    import torch

    _start_logging(level, theme, logger_verbose_time)
    try:
        chosen, device, label = _choose(backend, debug, precision)
    except BaseException:
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
        use_deterministic_algorithms=bool(use_deterministic_algorithms),
        pid=os.getpid(),
    )
    if use_deterministic_algorithms:
        torch.use_deterministic_algorithms(True)
    if seed is not None:
        random.seed(int(seed))
        np.random.seed(seed % 2**32)
        torch.manual_seed(int(seed) % 2**63)
    _report(label)
    log.info("Genesis Studio on %s, %s-bit, tensors on %s", chosen, precision, device)


def destroy() -> None:
    """Close every scene and forget the session; `init` may be called again. Harmless when nothing is initialized."""
    global _session, _reporter
    for scene in list(_scenes):
        scene.destroy()
    _scenes.clear()
    if _session is not None:
        import torch

        if _session.use_deterministic_algorithms:
            torch.use_deterministic_algorithms(False)
        if _session.backend is Backend.cuda and _session.pid == os.getpid():
            torch.cuda.empty_cache()
        elif _session.device.type == "mps":
            torch.mps.empty_cache()
    if _reporter is not None:
        _reporter.close()
        _reporter = None
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

    level_before = logging.NOTSET

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
    _handler.level_before = root.level
    root.setLevel(level)


def _stop_logging() -> None:
    global _handler
    if _handler is not None:
        root = logging.getLogger(ROOT)
        root.removeHandler(_handler)
        root.setLevel(_handler.level_before)
        _handler = None


def _parsed(backend: Backend | str | None) -> Backend | None:
    """gs.cuda, "cuda" and "gs.cuda" are the same."""
    if backend is None or isinstance(backend, Backend):
        return backend
    name = backend.removeprefix("gs.").lower() if isinstance(backend, str) else ""
    if name in Backend.__members__:
        return Backend[name]
    near = difflib.get_close_matches(name, Backend.__members__, n=1)
    names = ", ".join(str(b) for b in Backend)
    raise OptionError(
        f"unknown backend {backend!r}",
        where="gs.init",
        hint=f"did you mean gs.{near[0]}?" if near else f"one of {names}",
    )


def _choose(backend: Backend | None, debug: bool, precision: str) -> tuple[Backend, torch.device, str]:
    """The backend to use, where tensors live and its name among all devices of the machine.

    DeviceError where a backend asked for by name is absent.
    """
    import torch

    if backend is Backend.amdgpu:
        raise _absent(backend, "this version has no AMD backend and did not look for a GPU")
    if backend is Backend.cpu or (backend is None and debug):
        return Backend.cpu, torch.device("cpu"), _label(None)
    from genesis_core.backend.choice import AbsentError, choose

    machine = _machine(precision)
    if backend in (Backend.cuda, Backend.metal):
        try:
            choice = choose(os.environ, machine, backend.name)
            return backend, _started(choice), _label(choice)
        except AbsentError as error:
            raise _absent(backend, error.why) from None
    choice = choose(os.environ, machine)
    fallback = choice.fallback
    try:
        if choice.backend != "cpu":
            return Backend[choice.backend], _started(choice), _label(choice)
    except AbsentError as error:
        fallback = error.why
    if backend is Backend.gpu:
        log.warning("no GPU to simulate on, running on the CPU. %s.", fallback.rstrip("."))
    return Backend.cpu, torch.device("cpu"), _label(None)


def _label(choice: Choice | None) -> str:
    """The device's id in `genesis-studio devices`."""
    if choice is not None and choice.mig is not None:
        return choice.mig.uuid
    if choice is not None and choice.gpu is not None:
        return f"cuda:{choice.gpu.index}"
    if choice is not None and choice.backend == "metal":
        return "metal"
    share = os.environ.get("GENESIS_WORKER", "")
    return share if share.startswith("cpu") else "cpu"


def _report(label: str) -> None:
    """Lets `genesis-studio top` see this process."""
    global _reporter
    from genesis_core.runtime.status import Reporter

    _reporter = Reporter(os.path.basename(sys.argv[0]) or "python", label, _taken)


def _taken() -> tuple[int, int, int]:
    """Environments, environment-steps and steps of all scenes of this process; asked from another thread."""
    try:
        sims = [scene.engine_simulation for scene in list(_scenes)]
    except RuntimeError:  # a scene came or went meanwhile
        return 0, 0, 0
    alive = [sim for sim in sims if sim is not None]
    counts = [(sim.n_envs, sim.n_envs * sim.steps, sim.steps) for sim in alive]
    return sum(c[0] for c in counts), sum(c[1] for c in counts), max((c[2] for c in counts), default=0)


def _absent(backend: Backend, why: str) -> DeviceError:
    return DeviceError(f"Backend {backend} not available on this machine: {why}", hint="use gs.gpu or gs.cpu")


def _machine(precision: str) -> Machine:
    """What there is, with what torch and Genesis' switches QD_ENABLE_CUDA=0, QD_ENABLE_METAL=0 rule out."""
    import msgspec

    from genesis_core.backend.devices import read_machine

    machine, _ = read_machine()
    no_cuda, no_metal = machine.no_cuda, machine.no_metal or _no_mps(precision)
    if os.environ.get("QD_ENABLE_CUDA") == "0":
        no_cuda = "QD_ENABLE_CUDA=0 switches it off"
    if os.environ.get("QD_ENABLE_METAL") == "0":
        no_metal = "QD_ENABLE_METAL=0 switches it off"
    return msgspec.structs.replace(machine, no_cuda=no_cuda, no_metal=no_metal)


def _no_mps(precision: str) -> str:
    """What Metal lacks on an Apple chip; "" = nothing."""
    import torch

    if not torch.backends.mps.is_available():
        return "torch finds no MPS device"
    return "it has no 64-bit numbers" if precision == "64" else ""


def _started(choice: Choice) -> torch.device:
    """The torch device of a choice, tried once: a GPU that is listed may still not start."""
    import torch

    for note in choice.notes:
        log.warning("%s", note)
    if choice.backend == "metal":
        log.info("gs.metal: tensors on the GPU, physics on the CPU cores of the same chip")
        return torch.device("mps")
    device = torch.device("cuda", choice.ordinal)
    try:
        torch.zeros(1, device=device)
        torch.cuda.set_device(device)
    except (RuntimeError, AssertionError) as error:
        from genesis_core.backend.choice import AbsentError

        why = f"{choice.gpu} does not start: {str(error).splitlines()[0]} (`genesis-studio doctor` tries each part)"
        raise AbsentError("cuda", why) from None
    return device

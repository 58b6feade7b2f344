"""The decorators that turn functions into kernels.

`kernel` is for stages: compiled once per precision and width, kept on disk. `inline` is for small helpers (vector
algebra, polynomials): compiled into their callers, never stored by themselves.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numba
from numba import types
from numba.core import caching
from numba.core.runtime import rtsys

from genesis_core.backend.cache import PACKAGE, cache_folder
from genesis_core.log import get_logger

try:
    import fcntl
except ImportError:  # Windows: no lock, a lost race costs a compilation
    fcntl = None  # type: ignore[assignment]

log = get_logger(__name__)
# Typing tries many candidates; colouring the message of each one that does not fit takes longer than the attempt.
numba.config.DISABLE_ERROR_MESSAGE_HIGHLIGHTING = 1


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Only one process at a time writes a kernel's index: otherwise two could give one file name to two kernels."""
    if fcntl is None:
        yield
        return
    with open(folder / ".lock", "a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


class _BesideTheKey(caching.UserProvidedCacheLocator):
    """Keeps our kernels in folders named as in the package. Numba hashes the path of the source instead, so a second
    checkout or a moved one, with the same sources and therefore the same key, would compile everything again."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        path = Path(py_file).resolve()
        if path.is_relative_to(PACKAGE):
            return path.relative_to(PACKAGE).parent.as_posix()
        return str(super().get_suitable_cache_subpath(py_file))


class _Implementation(caching.CompileResultCacheImpl):
    _locator_classes = [_BesideTheKey]  # noqa: RUF012 (Numba's own name)


class KernelCache(caching.FunctionCache):
    """Numba's on-disk cache that treats a damaged file as a missing one and survives a full or read-only disk.

    alone: no other kernel links this one. Then its bitcode is not kept beside its machine code: parsing that would take
    as long as loading the code.
    """

    _impl_class = _Implementation
    alone = False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            # Not Numba's own method: that fills the typing tables first, which loads all of Numba's (and SciPy's)
            # array code and takes longer than everything else here. Finished code needs no types, only what it links
            # against; the compiler fills its tables itself.
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except Exception as error:  # unpickling garbage raises anything
            log.warning("compiled kernel of %s is damaged (%s); compiling it again", self._name, error)
            return None

    def _save_overload(self, sig: Any, data: Any) -> None:
        if self.alone:
            data = _CodeOnly(data)
        super()._save_overload(sig, data)

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            with _locked(Path(self.cache_path)):
                try:
                    super().save_overload(sig, data)
                except OSError:
                    raise
                except Exception:  # the index on disk is damaged: start a new one
                    self.flush()
                    super().save_overload(sig, data)
        except OSError as error:
            log.warning("cannot keep the compiled kernel of %s: %s", self._name, error)


class _CodeOnly:
    """A compilation result that is stored without its bitcode; only the names that it defines stay."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._result, name)

    def _reduce(self) -> Any:
        (name, kind, (code, _)), *rest = self._result._reduce()
        fndesc = self._result.fndesc
        functions = (fndesc.llvm_func_name, fndesc.llvm_cpython_wrapper_name)
        names = "\n".join(f'define void @"{function}"() {{ unreachable }}' for function in functions)
        return (name, kind, (code, llvm.parse_assembly(names).as_bitcode())), *rest


def _without_literals(dispatcher: Any) -> Any:
    """Makes calls with constants share one compiled version: Numba would compile f(m, 0) and f(m, i) apart."""
    resolve = dispatcher.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        plain = {name: types.unliteral(kind) for name, kind in kws.items()}
        return resolve(tuple(types.unliteral(kind) for kind in args), plain)

    dispatcher.get_call_template = get_call_template
    return dispatcher


def kernel(fn: Callable[..., Any], alone: bool = False) -> Any:
    """A stage of the simulation: `@kernel def stage(m, d): ...`. No GIL, IEEE division, kept on disk.

    alone: no other kernel calls it by name.
    """
    numba.config.CACHE_DIR = str(cache_folder())
    dispatcher = numba.njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(fn)
    dispatcher._cache = KernelCache(fn)
    dispatcher._cache.alone = alone
    return _without_literals(dispatcher)


def inline(fn: Callable[..., Any]) -> Any:
    """A small helper that kernels call; LLVM decides about inlining."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # never called from Python: a fifth of the time
    return _without_literals(numba.njit(nogil=True, error_model="numpy", **options)(fn))

"""Segments: stages that are compiled by themselves and called through a table of addresses.

Numba links the code of every callee into its caller and optimises the whole again, so a deep tree of stages is compiled
many times over. A segment ends that: its callers hold only an indirect call, which costs nothing next to a stage. The
table is the workspace's field `segments`; every workspace of one precision and width shares it.

A segment is declared with the kinds of its arguments: m model, d workspace, s state, l array of lanes, i integer. On
CUDA a segment is an ordinary device function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, builtin_registry, signature
from numba.extending import lower_builtin

from genesis_core.lanes.codegen import struct_field_code
from genesis_core.lanes.compile import kernel
from genesis_core.lanes.types import I64, Ptr, Struct
from genesis_core.layout.segments import NSEGMENT, SEGMENT_NAMES

SEGMENTS: dict[str, Segment] = {}
_TABLES: dict[tuple[int, int], np.ndarray] = {}
_LOADED: set[tuple[int, int]] = set()


def addresses(bits: int, width: int) -> np.ndarray:
    """The table of compiled segments of one precision and width, shared by all workspaces."""
    return _TABLES.setdefault((bits, width), np.zeros(NSEGMENT, np.int64))


def is_cached(dispatcher: Any, argument_types: tuple[Any, ...]) -> bool:
    """Whether compiled code lies on disk."""
    cache = dispatcher._cache
    try:
        index = cache._cache_file._load_index()
        return cache._index_key(argument_types, dispatcher.targetctx.codegen()) in index
    except Exception:  # a damaged index counts as an empty one
        return False


class Segment:
    """A stage with its own machine code. Called from Python like any kernel."""

    def __init__(self, fn: Callable[..., Any], kinds: str) -> None:
        self.__name__ = fn.__name__
        self.__doc__ = fn.__doc__
        self.__module__ = fn.__module__
        self.py_func = fn
        self.kinds = kinds
        self.slot = SEGMENT_NAMES.index(fn.__name__)
        self.dispatcher = kernel(fn, alone=True)
        if fn.__name__ in SEGMENTS:
            raise ValueError(f"segment {fn.__name__!r} is declared twice")
        SEGMENTS[fn.__name__] = self
        _register(self)

    def argument_types(self, bits: int, width: int) -> tuple[Any, ...]:
        """The types of the arguments for one precision and width."""
        from genesis_core.backend.tables import model_struct, state_struct, work_struct

        make = {
            "m": lambda: model_struct(bits, width),
            "d": lambda: work_struct(bits, width),
            "s": lambda: state_struct(bits, width),
            "l": lambda: Ptr("l", bits, width, False),
            "i": lambda: types.int64,
        }
        return tuple(make[kind]() for kind in self.kinds)

    def compile(self, bits: int, width: int) -> Any:
        """Compiles or loads the segment and puts its address into the table; returns the type of its result."""
        arguments = self.argument_types(bits, width)
        self.dispatcher.compile(arguments)
        result = self.dispatcher.overloads[arguments]
        table = addresses(bits, width)
        table[self.slot] = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
        return result.signature.return_type

    def __call__(self, *args: Any) -> Any:
        for a in args:
            kind = getattr(a, "_numba_type_", None)
            if isinstance(kind, Struct):
                load_cached(kind.bits, kind.width)
                self.compile(kind.bits, kind.width)
                break
        return self.dispatcher(*args)


def load_cached(bits: int, width: int) -> None:
    """Loads every segment that lies on disk: code from the cache calls segments without having typed them."""
    if (bits, width) in _LOADED:
        return
    for segment in SEGMENTS.values():
        if is_cached(segment.dispatcher, segment.argument_types(bits, width)):
            segment.compile(bits, width)
    _LOADED.add((bits, width))


def segment(kinds: str) -> Callable[[Callable[..., Any]], Segment]:
    """`@segment("md") def stage(m, d): ...`; the name must stand in `layout.segments`."""
    return lambda fn: Segment(fn, kinds)


def _register(segment_: Segment) -> None:
    """Typing and code of a call from another kernel."""

    def generic(self: Any, args: Any, kws: Any) -> Any:
        if kws or len(args) != len(segment_.kinds):
            return None
        work = next((a for a in args if isinstance(a, Struct) and a.title == "Work"), None)
        if work is None or work.width == 1:  # the lanes of CUDA, which calls segments in its own way
            return None
        result = segment_.compile(work.bits, work.width)
        return signature(result, *segment_.argument_types(work.bits, work.width))

    call = type(f"Call_{segment_.__name__}", (AbstractTemplate,), {"key": segment_, "generic": generic})
    builtin_registry.register(call)
    builtin_registry.globals.append((segment_, types.Function(call)))

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        k = next(k for k, a in enumerate(sig.args) if isinstance(a, Struct) and a.title == "Work")
        table = struct_field_code(context, builder, sig.args[k], args[k], "segments")
        address = builder.load(builder.gep(table, [ir.Constant(I64, segment_.slot)], inbounds=True))
        with builder.if_then(builder.icmp_unsigned("==", address, ir.Constant(I64, 0)), likely=False):
            context.call_conv.return_user_exc(builder, RuntimeError, (f"segment {segment_.__name__} is not compiled",))
        kind = context.call_conv.get_function_type(sig.return_type, sig.args)
        callee = builder.inttoptr(address, kind.as_pointer())
        status, result = context.call_conv.call_function(builder, callee, sig.return_type, sig.args, args)
        with cgutils.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return result

    lower_builtin(segment_, types.VarArg(types.Any))(code)

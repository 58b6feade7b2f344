"""The vocabulary on CUDA: a lane is a register of one thread, a mask a predicate, a block of 32 environments a warp.

The same typing rules and code generators as on the CPU (`ops`, with lanes of width 1) go into Numba-CUDA's tables; only
what knows about lanes differs: arrays are stored [item][32 lanes] and a thread reads its own lane, questions about all
lanes are votes of the warp, and the counters and lists of a block (integer arrays) are written by all threads with the
same value. Pointers of structs are generic; every access goes to global memory.

Importing this module needs numba-cuda; compiling needs its compiler wheels, but no GPU (`compile_ptx`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types

try:
    import numba.cuda.dispatcher as cuda_dispatcher
    from numba import cuda
    from numba.cuda.core.imputils import Registry
    from numba.cuda.cudadecl import registry as declared
    from numba.cuda.descriptor import cuda_target
    from numba.cuda.typing.templates import AbstractTemplate, AttributeTemplate, signature
except ImportError as error:
    from genesis_core.errors import DeviceError

    raise DeviceError(f"CUDA kernels need numba-cuda: {error}", hint="pip install 'genesis-studio[gpu]'") from error

from genesis_core.lanes import codegen, ops
from genesis_core.lanes.codegen import I32, to_i64
from genesis_core.lanes.segment import SEGMENTS, Segment
from genesis_core.lanes.types import I64, Lane, Struct, float_ir

WARP = 32
GLOBAL = 1  # address space
ALL = 0xFFFFFFFF  # every thread of the warp takes part in a vote
Code = Callable[..., Any]
_SEGMENTS: dict[Segment, Any] = {}  # their device functions, of which Numba itself holds weak references


# ------------------------------------------------------------------ memory
def _global(builder: Any, pointer: Any) -> Any:
    return builder.addrspacecast(pointer, ir.PointerType(pointer.type.pointee, GLOBAL))


def _intrinsic(builder: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    from numba.core import cgutils

    kind = ir.FunctionType(result, [a.type for a in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def lane_id(builder: Any) -> Any:
    """This thread's place in its warp, as a 64-bit integer."""
    return builder.zext(_intrinsic(builder, "llvm.nvvm.read.ptx.sreg.laneid", I32, []), I64)


def _lane_address(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Address of this thread's number of item args[1]."""
    item = to_i64(context, builder, args[1], sig.args[1])
    at = builder.add(builder.mul(item, ir.Constant(I64, WARP)), lane_id(builder))
    return builder.gep(_global(builder, args[0]), [at], inbounds=True)


def _item_address(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.gep(_global(builder, args[0]), [to_i64(context, builder, args[1], sig.args[1])], inbounds=True)


def load_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return codegen.invariant(builder, sig.args[0], builder.load(_lane_address(context, builder, sig, args)))


def store_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    value = codegen.coerce(builder, args[2], sig.args[2], sig.args[0].lane)
    builder.store(value, _lane_address(context, builder, sig, args))
    return context.get_dummy_value()


def get_lane_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.load(_lane_address(context, builder, sig, args))


def set_lane_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    value = codegen.coerce(builder, args[3], sig.args[3], sig.args[0].item)
    builder.store(value, _lane_address(context, builder, sig, args))
    return context.get_dummy_value()


def param_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return codegen.invariant(builder, sig.args[0], builder.load(_item_address(context, builder, sig, args)))


def set_item_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    value = context.cast(builder, args[2], sig.args[2], sig.args[0].item)
    builder.store(value, _item_address(context, builder, sig, args))
    return context.get_dummy_value()


def ticket_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """One ticket for the warp: its first thread draws it, the others are told."""
    at = _item_address(context, builder, sig, args)
    drawn = builder.alloca(I64)
    builder.store(ir.Constant(I64, 0), drawn)
    with builder.if_then(builder.icmp_unsigned("==", lane_id(builder), ir.Constant(I64, 0))):
        builder.store(builder.atomic_rmw("add", at, ir.Constant(I64, 1), "monotonic"), drawn)
    word = builder.load(drawn)
    low, high = (_from_first(builder, part) for part in (word, builder.lshr(word, ir.Constant(I64, 32))))
    return builder.or_(low, builder.shl(high, ir.Constant(I64, 32)))


def _from_first(builder: Any, word: Any) -> Any:
    """The lower half of the first thread's word, in all threads of the warp."""
    result = ir.LiteralStructType((I32, ir.IntType(1)))
    index, last = 0, WARP - 1
    arguments = [ir.Constant(I32, ALL), ir.Constant(I32, index), builder.trunc(word, I32)]
    arguments += [ir.Constant(I32, 0), ir.Constant(I32, last)]
    half = builder.extract_value(_intrinsic(builder, "llvm.nvvm.shfl.sync.i32", result, arguments), 0)
    return builder.zext(half, I64)


def struct_field_code(context: Any, builder: Any, typ: Struct, value: Any, attr: str) -> Any:
    k = typ.index[attr]
    kind = typ.fields[k][1]
    at = builder.gep(_global(builder, value), [ir.Constant(I64, k)], inbounds=True)
    if kind == "R":
        at = builder.bitcast(at, ir.PointerType(float_ir(typ.bits), GLOBAL))
    word = builder.load(at)
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    if kind in "IR":
        return word
    return builder.inttoptr(word, typ.field_type(attr).element_ir.as_pointer())


# ------------------------------------------------------------------ questions about all lanes
def _vote(builder: Any, how: str, predicate: Any) -> Any:
    """all, any: one truth value; ballot: one bit per thread."""
    mode = ("all", "any", "equal", "ballot").index(how)
    result = ir.LiteralStructType((I32, ir.IntType(1)))
    arguments = [ir.Constant(I32, ALL), ir.Constant(I32, mode), predicate]
    return builder.extract_value(_intrinsic(builder, "llvm.nvvm.vote.sync", result, arguments), int(how != "ballot"))


def any_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _vote(builder, "any", args[0])


def all_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _vote(builder, "all", args[0])


def count_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.zext(_intrinsic(builder, "llvm.ctpop.i32", I32, [_vote(builder, "ballot", args[0])]), I64)


def mask_lane_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return args[0]  # a thread works on its own lane alone


def lane_begin_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return lane_id(builder)


def lane_end_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.add(lane_id(builder), ir.Constant(I64, 1))


# ------------------------------------------------------------------ functions for which libNVVM has no intrinsic
def _library(name: str) -> Code:
    """A function of NVIDIA's libdevice; those used here are a single instruction or exact."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = sig.return_type
        bits = kind.bits if isinstance(kind, Lane) else kind.bitwidth
        values = [codegen.coerce(builder, a, t, kind) for a, t in zip(args, sig.args, strict=True)]
        return _intrinsic(builder, f"__nv_{name}" + ("f" if bits == 32 else ""), float_ir(bits), values)

    return code


def negate_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """libNVVM's LLVM has no fneg."""
    return builder.fsub(ir.Constant(args[0].type, -0.0), args[0])


REPLACED: dict[Any, Code] = {
    ops.load: load_code,
    ops.store: store_code,
    ops.get_lane: get_lane_code,
    ops.set_lane: set_lane_code,
    ops.param: param_code,
    ops.take_ticket: ticket_code,
    ops.any_: any_code,
    ops.all_: all_code,
    ops.count: count_code,
    ops.mask_lane: mask_lane_code,
    ops.lane_begin: lane_begin_code,
    ops.lane_end: lane_end_code,
    ops.rint: _library("rint"),
    ops.floor: _library("floor"),
    ops.fabs: _library("fabs"),
    ops.copysign: _library("copysign"),
    ops.sqrt: _library("sqrt"),
}


def _template(key: Any, typer: Any) -> type:
    def generic(self: Any, args: Any, kws: Any) -> Any:
        if kws:
            return None
        try:
            result = typer(*args)
        except TypeError:  # another number of arguments
            return None
        return signature(result, *args) if result is not None else None

    return type(f"Cuda_{getattr(key, '__name__', key)}", (AbstractTemplate,), {"key": key, "generic": generic})


def _register() -> None:
    """Puts the vocabulary into Numba-CUDA's tables.

    Those already hold what `ops` registered for all targets; of two codes for the same types the later one counts.
    """
    target = cuda_target.target_context
    target.refresh()
    implemented = Registry("genesis lanes")
    operator_codes = {operator.getitem: param_code, operator.setitem: set_item_code, operator.neg: negate_code}
    for fn, typer, code in ops.OPERATIONS:
        declared.register_global(fn)(_template(fn, typer))
        implemented.lower(fn, types.VarArg(types.Any))(REPLACED.get(fn, code))
    for op, typer, code, patterns in ops.OPERATORS:
        declared.register_global(op)(_template(op, typer))
        for pattern in patterns:
            implemented.lower(op, *pattern)(operator_codes.get(op, code))

    @declared.register_attr
    class StructAttribute(AttributeTemplate):
        key = Struct

        def generic_resolve(self, typ: Struct, attr: str) -> Any:
            return typ.field_type(attr)

    implemented.lower_getattr_generic(Struct)(struct_field_code)
    target.install_registry(implemented)


def register_segments() -> None:
    """Makes segments that have been declared so far callable: here they are ordinary functions of the device."""
    cuda_target.target_context.refresh()  # takes in their codes for all targets before ours: the later one counts
    implemented = Registry("genesis segments")
    for segment in SEGMENTS.values():
        if segment not in _SEGMENTS:
            _SEGMENTS[segment] = cuda.jit(device=True)(segment.py_func)
            _register_segment(segment, implemented)
    cuda_target.target_context.install_registry(implemented)


def _register_segment(segment: Segment, implemented: Any) -> None:
    kind = types.Dispatcher(_SEGMENTS[segment])

    def generic(self: Any, args: Any, kws: Any) -> Any:
        return kind.get_call_type(self.context, args, kws)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        function = context.get_function(kind, sig)
        return function(builder, args)

    template = type(f"Cuda_{segment.__name__}", (AbstractTemplate,), {"key": segment, "generic": generic})
    declared.register_global(segment)(template)
    implemented.lower(segment, types.VarArg(types.Any))(code)


_register()


@contextmanager
def _pretend_device(capability: tuple[int, int]) -> Any:
    """Numba-CUDA asks the current GPU for its capability while it compiles callees; here it need not exist."""

    class Device:
        compute_capability = capability

    asked = cuda_dispatcher.get_current_device
    cuda_dispatcher.get_current_device = lambda: Device
    try:
        yield
    finally:
        cuda_dispatcher.get_current_device = asked


def compile_ptx(fn: Callable[..., Any], argument_types: tuple[Any, ...], capability: tuple[int, int] = (8, 0)) -> str:
    """PTX of a kernel with these argument types, without a GPU. Raises DeviceError where the compiler is missing."""
    register_segments()
    with _pretend_device(capability):
        ptx, _ = cuda.compile(fn, (*argument_types,), device=False, abi="numba", cc=capability, output="ptx")
    return ptx.decode() if isinstance(ptx, bytes) else ptx

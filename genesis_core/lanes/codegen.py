"""Typing rules and code generators of the vocabulary (`ops`): what an operation takes, and its LLVM code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from genesis_core.lanes.types import I64, Lane, Mask, Ptr, Struct, float_ir

FLAGS = ("contract", "nsz")
I32 = ir.IntType(32)
Typer = Callable[..., Any]
Code = Callable[..., Any]


# ------------------------------------------------------------------ helpers of the code generators
def splat(builder: Any, value: Any, lane: Lane) -> Any:
    """One number copied to all lanes."""
    if lane.width == 1:
        return value
    empty = ir.Constant(lane.ir, ir.Undefined)
    first = builder.insert_element(empty, value, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, empty, ir.Constant(ir.VectorType(I32, lane.width), [0] * lane.width))


def coerce(builder: Any, value: Any, source: Any, target: Any) -> Any:
    """Casts a number (or a lane of the same type) to a lane or to a float type."""
    if isinstance(source, Lane):
        return value
    bits = target.bits if isinstance(target, Lane) else target.bitwidth
    if isinstance(source, types.Boolean):
        value = builder.uitofp(value, float_ir(bits))
    elif isinstance(source, types.Integer):
        value = (builder.sitofp if source.signed else builder.uitofp)(value, float_ir(bits))
    elif source.bitwidth > bits:
        value = builder.fptrunc(value, float_ir(bits))
    elif source.bitwidth < bits:
        value = builder.fpext(value, float_ir(bits))
    return splat(builder, value, target) if isinstance(target, Lane) else value


def value_type(*args: Any) -> Any:
    """The type that an operation on these numbers and lanes is done in; None when they do not mix."""
    lanes = {a for a in args if isinstance(a, Lane)}
    if any(not isinstance(a, Lane | types.Number | types.Boolean) for a in args) or len(lanes) > 1:
        return None
    if lanes:
        return lanes.pop()
    return types.float32 if all(a == types.float32 for a in args) else types.float64


def llvm_of(kind: Any) -> Any:
    return kind.ir if isinstance(kind, Lane) else float_ir(kind.bitwidth)


def intrinsic_name(name: str, kind: Any) -> str:
    if isinstance(kind, Lane) and kind.width > 1:
        return f"llvm.{name}.v{kind.width}f{kind.bits}"
    return f"llvm.{name}.f{kind.bits if isinstance(kind, Lane) else kind.bitwidth}"


def call_intrinsic(builder: Any, name: str, kind: Any, args: list[Any]) -> Any:
    t = llvm_of(kind)
    fn = cgutils.get_or_insert_function(builder.module, ir.FunctionType(t, [t] * len(args)), intrinsic_name(name, kind))
    return builder.call(fn, args)


# ------------------------------------------------------------------ typing rules
def same(*args: Any) -> Any:
    return value_type(*args)


def on_mask(result: Callable[[Mask], Any]) -> Typer:
    return lambda m: result(m) if isinstance(m, Mask) else None


def select_type(m: Any, a: Any, b: Any) -> Any:
    if isinstance(m, Mask):
        if isinstance(a, Mask) and a == m and b == m:
            return m
        kind = value_type(m.lane, a, b)
        return kind if kind == m.lane else None
    if isinstance(m, types.Boolean):
        return value_type(a, b)
    return None


def is_lane_ptr(p: Any) -> bool:
    return isinstance(p, Ptr) and p.kind == "l"


def load_type(p: Any, i: Any) -> Any:
    return p.lane if is_lane_ptr(p) and isinstance(i, types.Integer) else None


def store_type(p: Any, i: Any, x: Any) -> Any:
    if not is_lane_ptr(p) or p.const or not isinstance(i, types.Integer):
        return None
    return types.void if value_type(p.lane, x) == p.lane else None


def param_type(p: Any, i: Any) -> Any:
    return p.lane if isinstance(p, Ptr) and p.kind == "r" and isinstance(i, types.Integer) else None


def get_lane_type(p: Any, i: Any, k: Any) -> Any:
    return p.lane.scalar if is_lane_ptr(p) else None


def set_lane_type(p: Any, i: Any, k: Any, x: Any) -> Any:
    return types.void if is_lane_ptr(p) and not p.const and isinstance(x, types.Number) else None


def lane_source(s: Any) -> Any:
    """The lane type that a struct, pointer, lane or mask stands for."""
    return s if isinstance(s, Lane) else getattr(s, "lane", None)


def lane_type(s: Any, x: Any) -> Any:
    target = lane_source(s)
    return target if target is not None and value_type(target, x) == target else None


# ------------------------------------------------------------------ code generators
def unary_intrinsic(name: str) -> Code:
    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = sig.return_type
        values = [coerce(builder, v, t, kind) for v, t in zip(args, sig.args, strict=True)]
        return call_intrinsic(builder, name, kind, values)

    return code


def pick(order: str) -> Code:
    """min/max as compare and select: exactly one machine instruction, the second operand when either is NaN."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = sig.return_type
        a, b = (coerce(builder, v, t, kind) for v, t in zip(args, sig.args, strict=True))
        return builder.select(builder.fcmp_ordered(order, a, b), a, b)

    return code


def select_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind = sig.return_type
    if isinstance(kind, Mask):
        return builder.select(*args)
    return builder.select(args[0], *(coerce(builder, v, t, kind) for v, t in zip(args[1:], sig.args[1:], strict=True)))


def mask_bits(builder: Any, value: Any, mask: Mask) -> Any:
    return value if mask.width == 1 else builder.bitcast(value, ir.IntType(mask.width))


def any_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    bits = mask_bits(builder, args[0], sig.args[0])
    return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))


def all_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    bits = mask_bits(builder, args[0], sig.args[0])
    return builder.icmp_unsigned("==", bits, ir.Constant(bits.type, (1 << sig.args[0].width) - 1))


def count_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.zext(builder.ctpop(mask_bits(builder, args[0], sig.args[0])), I64)


def not_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.not_(args[0])


def mask_lane_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    if sig.args[0].width == 1:
        return args[0]
    return builder.extract_element(args[0], builder.trunc(args[1], I32))


def lane_align(p: Ptr) -> int:
    return min(64, p.width * p.bits // 8)


def to_i64(context: Any, builder: Any, value: Any, kind: Any) -> Any:
    return context.cast(builder, value, kind, types.int64)


def invariant(builder: Any, p: Ptr, value: Any) -> Any:
    if p.const:
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


def load_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    p = sig.args[0]
    at = builder.gep(args[0], [to_i64(context, builder, args[1], sig.args[1])], inbounds=True)
    return invariant(builder, p, builder.load(at, align=lane_align(p)))


def store_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    p = sig.args[0]
    at = builder.gep(args[0], [to_i64(context, builder, args[1], sig.args[1])], inbounds=True)
    builder.store(coerce(builder, args[2], sig.args[2], p.lane), at, align=lane_align(p))
    return context.get_dummy_value()


def lane_address(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Address of one number of one item of a lane array."""
    p = sig.args[0]
    base = builder.bitcast(args[0], float_ir(p.bits).as_pointer())
    item = to_i64(context, builder, args[1], sig.args[1])
    at = builder.add(builder.mul(item, ir.Constant(I64, p.width)), to_i64(context, builder, args[2], sig.args[2]))
    return builder.gep(base, [at], inbounds=True)


def get_lane_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.load(lane_address(context, builder, sig, args))


def set_lane_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    at = lane_address(context, builder, sig, args)
    builder.store(coerce(builder, args[3], sig.args[3], sig.args[0].lane.scalar), at)
    return context.get_dummy_value()


def param_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    at = builder.gep(args[0], [to_i64(context, builder, args[1], sig.args[1])], inbounds=True)
    return splat(builder, invariant(builder, sig.args[0], builder.load(at)), sig.args[0].lane)


def lane_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return coerce(builder, args[1], sig.args[1], sig.return_type)


def ticket_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.atomic_rmw("add", field_address(context, builder, sig, args), ir.Constant(I64, 1), "monotonic")


def truth_code(value: int) -> Code:
    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        m = sig.return_type
        return ir.Constant(m.ir, value if m.width == 1 else [value] * m.width)

    return code


def lane_begin_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return ir.Constant(I64, 0)


def lane_end_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return ir.Constant(I64, lane_source(sig.args[0]).width)


def tiny_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    t = sig.return_type
    return splat(builder, ir.Constant(float_ir(t.bits), 1e-280 if t.bits == 64 else 1.000000003171076851e-30), t)


def epsilon_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    t = sig.return_type
    return splat(builder, ir.Constant(float_ir(t.bits), 2.0**-52 if t.bits == 64 else 2.0**-23), t)


def widen_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fpext(args[0], sig.return_type.ir)


def narrow_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fptrunc(args[0], sig.return_type.ir)


def int_ir(lane: Lane) -> ir.Type:
    word = ir.IntType(lane.bits)
    return word if lane.width == 1 else ir.VectorType(word, lane.width)


def int_constant(lane: Lane, value: int) -> Any:
    t = int_ir(lane)
    return ir.Constant(t, value if lane.width == 1 else [value] * lane.width)


MANTISSA = {32: 23, 64: 52}
BIAS = {32: 127, 64: 1023}


def two_to_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    lane = sig.return_type
    n = builder.fptosi(args[0], int_ir(lane))
    word = builder.shl(builder.add(n, int_constant(lane, BIAS[lane.bits])), int_constant(lane, MANTISSA[lane.bits]))
    return builder.bitcast(word, lane.ir)


def exponent_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    lane = sig.return_type
    word = builder.lshr(builder.bitcast(args[0], int_ir(lane)), int_constant(lane, MANTISSA[lane.bits]))
    return builder.sitofp(builder.sub(word, int_constant(lane, BIAS[lane.bits])), lane.ir)


def mantissa_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    lane = sig.return_type
    low = (1 << MANTISSA[lane.bits]) - 1
    one = BIAS[lane.bits] << MANTISSA[lane.bits]
    word = builder.and_(builder.bitcast(args[0], int_ir(lane)), int_constant(lane, low))
    return builder.bitcast(builder.or_(word, int_constant(lane, one)), lane.ir)


def copysign_type(a: Any, b: Any) -> Any:
    return value_type(a, b)


def lane_only(x: Any) -> Any:
    return x if isinstance(x, Lane) else None


# ------------------------------------------------------------------ operators
def arithmetic(name: str) -> Code:
    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = sig.return_type
        a, b = (coerce(builder, v, t, kind) for v, t in zip(args, sig.args, strict=True))
        return getattr(builder, name)(a, b, flags=FLAGS)

    return code


def comparison(order: str) -> Code:
    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = sig.return_type.lane
        a, b = (coerce(builder, v, t, kind) for v, t in zip(args, sig.args, strict=True))
        compare = builder.fcmp_unordered if order == "!=" else builder.fcmp_ordered
        return compare(order, a, b)

    return code


def lanes_mixed(a: Any, b: Any) -> Any:
    return value_type(a, b) if isinstance(a, Lane) or isinstance(b, Lane) else None


def lanes_compared(a: Any, b: Any) -> Any:
    kind = lanes_mixed(a, b)
    return kind.mask if kind is not None else None


def masks_joined(a: Any, b: Any) -> Any:
    return a if isinstance(a, Mask) and a == b else None


def logic(name: str) -> Code:
    return lambda context, builder, sig, args: getattr(builder, name)(args[0], args[1])


def negate_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.fneg(args[0])


def field_address(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.gep(args[0], [to_i64(context, builder, args[1], sig.args[1])], inbounds=True)


def item_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return invariant(builder, sig.args[0], builder.load(field_address(context, builder, sig, args)))


def set_item_code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    value = context.cast(builder, args[2], sig.args[2], sig.args[0].item)
    builder.store(value, field_address(context, builder, sig, args))
    return context.get_dummy_value()


def item_type(p: Any, i: Any) -> Any:
    return p.item if isinstance(p, Ptr) and p.kind in "ir" and isinstance(i, types.Integer) else None


def set_item_type(p: Any, i: Any, x: Any) -> Any:
    fits = isinstance(p, Ptr) and p.kind in "ir" and not p.const and isinstance(i, types.Integer)
    return types.void if fits and isinstance(x, types.Number | types.Boolean) else None


def struct_field_code(context: Any, builder: Any, typ: Struct, value: Any, attr: str) -> Any:
    k = typ.index[attr]
    kind = typ.fields[k][1]
    at = builder.gep(value, [ir.Constant(I64, k)], inbounds=True)
    if kind == "R":
        at = builder.bitcast(at, float_ir(typ.bits).as_pointer())
    word = builder.load(at)
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    if kind in "IR":
        return word
    return builder.inttoptr(word, typ.field_type(attr).element_ir.as_pointer())

"""The vocabulary of kernels: plain stubs, with their typing and the code they turn into.

Every operation is a row of `OPERATIONS`: (stub, typing rule, code generator). The CPU target registers them here; the
CUDA target registers the same rows in Numba-CUDA's own tables (`cuda.py`), replacing the few that differ (lane index,
votes, library functions).

A lane mixes with plain numbers in any operator; numbers are cast to the lane's precision (so a literal never widens
f32 to f64). Fast-math is limited to `contract` (a*b+c may become one rounding) and `nsz`: no reassociation, so a
lane's value never depends on how the compiler grouped things.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import lower_builtin, lower_getattr_generic

from genesis_core.lanes.types import I64, Lane, Mask, Ptr, Struct, float_ir

FLAGS = ("contract", "nsz")
I32 = ir.IntType(32)
Typer = Callable[..., Any]
Code = Callable[..., Any]
OPERATIONS: list[tuple[Any, Typer, Code]] = []
OPERATORS: list[tuple[Any, Typer, Code, tuple[Any, ...]]] = []


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


def stub(typer: Typer, code: Code) -> Callable[[Any], Any]:
    """Registers a vocabulary function with its typing rule and code generator."""

    def register(fn: Any) -> Any:
        OPERATIONS.append((fn, typer, code))
        return fn

    return register


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


# ------------------------------------------------------------------ the vocabulary
@stub(same, unary_intrinsic("sqrt"))
def sqrt(x):
    """Square root (correctly rounded)."""
    raise NotImplementedError


@stub(same, unary_intrinsic("fabs"))
def fabs(x):
    """Absolute value."""
    raise NotImplementedError


@stub(same, unary_intrinsic("floor"))
def floor(x):
    """Largest whole number not above x."""
    raise NotImplementedError


@stub(same, unary_intrinsic("rint"))
def rint(x):
    """Nearest whole number, ties to even."""
    raise NotImplementedError


@stub(copysign_type, unary_intrinsic("copysign"))
def copysign(x, s):
    """|x| with the sign of s."""
    raise NotImplementedError


@stub(same, unary_intrinsic("fma"))
def fma(a, b, c):
    """a*b + c with one rounding."""
    raise NotImplementedError


@stub(same, pick("<"))
def minimum(a, b):
    """The smaller; b when either is NaN."""
    raise NotImplementedError


@stub(same, pick(">"))
def maximum(a, b):
    """The larger; b when either is NaN."""
    raise NotImplementedError


@stub(select_type, select_code)
def select(m, a, b):
    """a where the mask holds, b elsewhere. Values of the other lanes are not looked at, NaN included."""
    raise NotImplementedError


@stub(on_mask(lambda m: types.boolean), any_code)
def any_(m):
    """Whether the mask holds in any lane of the block."""
    raise NotImplementedError


@stub(on_mask(lambda m: types.boolean), all_code)
def all_(m):
    """Whether the mask holds in all lanes of the block."""
    raise NotImplementedError


@stub(on_mask(lambda m: types.int64), count_code)
def count(m):
    """Number of lanes of the block in which the mask holds."""
    raise NotImplementedError


@stub(on_mask(lambda m: m), not_code)
def not_(m):
    """The mask, inverted."""
    raise NotImplementedError


@stub(lambda m, k: types.boolean if isinstance(m, Mask) else None, mask_lane_code)
def mask_lane(m, k):
    """Whether the mask holds in lane k, with k from range(lane_begin(d), lane_end(d))."""
    raise NotImplementedError


@stub(load_type, load_code)
def load(p, i):
    """Item i of a lane array."""
    raise NotImplementedError


@stub(store_type, store_code)
def store(p, i, x):
    """Writes item i of a lane array."""
    raise NotImplementedError


@stub(get_lane_type, get_lane_code)
def get_lane(p, i, k):
    """Item i of a lane array in lane k: a plain number."""
    raise NotImplementedError


@stub(set_lane_type, set_lane_code)
def set_lane(p, i, k, x):
    """Writes a plain number to item i in lane k."""
    raise NotImplementedError


@stub(param_type, param_code)
def param(p, i):
    """Item i of a real model array, for every lane."""
    raise NotImplementedError


@stub(lane_type, lane_code)
def lane(s, x):
    """The number x in all lanes, in the precision of s (a struct, pointer, lane or mask)."""
    raise NotImplementedError


@stub(
    lambda p, i: types.int64 if isinstance(p, Ptr) and p.kind == "i" and isinstance(i, types.Integer) else None,
    ticket_code,
)
def take_ticket(p, i):
    """Item i of an integer array, which grows by one: every thread that asks gets another number."""
    raise NotImplementedError


@stub(lambda s: lane_source(s).mask if lane_source(s) else None, truth_code(1))
def true_(s):
    """The mask that holds in every lane."""
    raise NotImplementedError


@stub(lambda s: lane_source(s).mask if lane_source(s) else None, truth_code(0))
def false_(s):
    """The mask that holds in no lane."""
    raise NotImplementedError


@stub(lambda s: types.int64 if lane_source(s) else None, lane_begin_code)
def lane_begin(s):
    """First lane that this thread works on one by one."""
    raise NotImplementedError


@stub(lambda s: types.int64 if lane_source(s) else None, lane_end_code)
def lane_end(s):
    """One past the last lane that this thread works on one by one."""
    raise NotImplementedError


@stub(lane_source, tiny_code)
def tiny(s):
    """A floor for denominators: 1e-30 (f32) or 1e-280 (f64), whose reciprocal is finite."""
    raise NotImplementedError


@stub(lane_source, epsilon_code)
def epsilon(s):
    """Distance from 1 to the next number."""
    raise NotImplementedError


@stub(lambda x: Lane(64, x.width) if isinstance(x, Lane) and x.bits == 32 else None, widen_code)
def widen(x):
    """f32 lanes as f64 lanes."""
    raise NotImplementedError


@stub(lambda x: Lane(32, x.width) if isinstance(x, Lane) and x.bits == 64 else None, narrow_code)
def narrow(x):
    """f64 lanes rounded to f32 lanes."""
    raise NotImplementedError


def lane_only(x: Any) -> Any:
    return x if isinstance(x, Lane) else None


@stub(lane_only, two_to_code)
def two_to(n):
    """2**n for whole n within the exponent range of normal numbers."""
    raise NotImplementedError


@stub(lane_only, exponent_code)
def exponent(x):
    """The exponent e of a normal positive x = m * 2**e, 1 <= m < 2."""
    raise NotImplementedError


@stub(lane_only, mantissa_code)
def mantissa(x):
    """The mantissa m of a normal positive x = m * 2**e, 1 <= m < 2."""
    raise NotImplementedError


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


LANE_PAIRS = ((Lane, Lane), (Lane, types.Number), (types.Number, Lane))
for _ops, _name in (
    ((operator.add, operator.iadd), "fadd"),
    ((operator.sub, operator.isub), "fsub"),
    ((operator.mul, operator.imul), "fmul"),
    ((operator.truediv, operator.itruediv), "fdiv"),
):
    for _op in _ops:
        OPERATORS.append((_op, lanes_mixed, arithmetic(_name), LANE_PAIRS))
for _op, _order in (
    (operator.lt, "<"),
    (operator.gt, ">"),
    (operator.le, "<="),
    (operator.ge, ">="),
    (operator.eq, "=="),
    (operator.ne, "!="),
):
    OPERATORS.append((_op, lanes_compared, comparison(_order), LANE_PAIRS))
for _ops, _name in (
    ((operator.and_, operator.iand), "and_"),
    ((operator.or_, operator.ior), "or_"),
    ((operator.xor, operator.ixor), "xor"),
):
    for _op in _ops:
        OPERATORS.append((_op, masks_joined, logic(_name), ((Mask, Mask),)))
OPERATORS.append((operator.neg, lane_only, negate_code, ((Lane,),)))
OPERATORS.append((operator.getitem, item_type, item_code, ((Ptr, types.Integer),)))
OPERATORS.append((operator.setitem, set_item_type, set_item_code, ((Ptr, types.Integer, types.Any),)))


def template(key: Any, typer: Typer, base: type) -> type:
    """A typing template for Numba (or Numba-CUDA, whose AbstractTemplate is another class)."""

    def generic(self: Any, args: Any, kws: Any) -> Any:
        if kws:
            return None
        try:
            result = typer(*args)
        except TypeError:  # another number of arguments
            return None
        return signature(result, *args) if result is not None else None

    return type(f"Type_{getattr(key, '__name__', key)}", (base,), {"key": key, "generic": generic})


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


def register_cpu() -> None:
    """Puts the vocabulary into Numba's tables of the CPU target."""
    for fn, typer, code in OPERATIONS:
        infer_global(fn)(template(fn, typer, AbstractTemplate))
        lower_builtin(fn, types.VarArg(types.Any))(code)
    for op, typer, code, patterns in OPERATORS:
        infer_global(op)(template(op, typer, AbstractTemplate))
        for pattern in patterns:
            lower_builtin(op, *pattern)(code)

    @infer_getattr
    class StructAttribute(AttributeTemplate):
        key = Struct

        def generic_resolve(self, typ: Struct, attr: str) -> Any:
            return typ.field_type(attr)

    lower_getattr_generic(Struct)(struct_field_code)


register_cpu()

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

from numba import types
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_getattr, infer_global, signature
from numba.extending import lower_builtin, lower_getattr_generic

from genesis_core.lanes.codegen import (
    Code,
    Typer,
    all_code,
    any_code,
    arithmetic,
    comparison,
    copysign_type,
    count_code,
    epsilon_code,
    exponent_code,
    get_lane_code,
    get_lane_type,
    item_code,
    item_type,
    lane_begin_code,
    lane_code,
    lane_end_code,
    lane_only,
    lane_source,
    lane_type,
    lanes_compared,
    lanes_mixed,
    load_code,
    load_type,
    logic,
    mantissa_code,
    mask_lane_code,
    masks_joined,
    narrow_code,
    negate_code,
    not_code,
    on_mask,
    param_code,
    param_type,
    pick,
    same,
    select_code,
    select_type,
    set_item_code,
    set_item_type,
    set_lane_code,
    set_lane_type,
    store_code,
    store_type,
    struct_field_code,
    ticket_code,
    tiny_code,
    truth_code,
    two_to_code,
    unary_intrinsic,
    widen_code,
)
from genesis_core.lanes.types import Lane, Mask, Ptr, Struct

OPERATIONS: list[tuple[Any, Typer, Code]] = []
OPERATORS: list[tuple[Any, Typer, Code, tuple[Any, ...]]] = []


def stub(typer: Typer, code: Code) -> Callable[[Any], Any]:
    """Registers a vocabulary function with its typing rule and code generator."""

    def register(fn: Any) -> Any:
        OPERATIONS.append((fn, typer, code))
        return fn

    return register


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

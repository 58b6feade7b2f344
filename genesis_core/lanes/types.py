"""The types that kernels see: lanes, masks, pointers and structs.

A *lane* value holds one number for each of the W environments of a block. On the CPU it is an LLVM vector `<W x
float>`, on CUDA (W = 1 per thread) a plain register. A *mask* holds one truth value per lane. A *struct* is one
pointer to a table of pointers and scalars; a kernel takes two or three of them instead of hundreds of arrays. Bits
and width are part of every type's name, so that Numba's caches can never mix precisions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import NativeValue, models, register_model, unbox

I64 = ir.IntType(64)


def float_ir(bits: int) -> ir.Type:
    """LLVM type of one number."""
    return ir.DoubleType() if bits == 64 else ir.FloatType()


class Lane(types.Type):
    """One number per environment of the block; `width` 1 is a scalar register (CUDA)."""

    def __init__(self, bits: int, width: int) -> None:
        self.bits, self.width = bits, width
        super().__init__(name=f"lane<f{bits}x{width}>")

    @property
    def scalar(self) -> types.Float:
        return types.float64 if self.bits == 64 else types.float32

    @property
    def ir(self) -> ir.Type:
        return float_ir(self.bits) if self.width == 1 else ir.VectorType(float_ir(self.bits), self.width)

    @property
    def mask(self) -> Mask:
        return Mask(self.bits, self.width)


class Mask(types.Type):
    """One truth value per environment of the block."""

    def __init__(self, bits: int, width: int) -> None:
        self.bits, self.width = bits, width
        super().__init__(name=f"mask<f{bits}x{width}>")

    @property
    def lane(self) -> Lane:
        return Lane(self.bits, self.width)

    @property
    def ir(self) -> ir.Type:
        return ir.IntType(1) if self.width == 1 else ir.VectorType(ir.IntType(1), self.width)


class Ptr(types.Type):
    """Pointer to an array of a struct.

    kind 'l': lanes (item index -> one number per environment); 'r': plain reals; 'i': integers. `const` promises that
    no kernel writes the array, so loads may be hoisted out of loops.
    """

    def __init__(self, kind: str, bits: int, width: int, const: bool) -> None:
        self.kind, self.bits, self.width, self.const = kind, bits, width, const
        super().__init__(name=f"ptr<{kind}{bits}x{width}{',const' if const else ''}>")

    @property
    def lane(self) -> Lane:
        return Lane(self.bits, self.width)

    @property
    def item(self) -> types.Type:
        return types.int64 if self.kind == "i" else self.lane.scalar

    @property
    def element_ir(self) -> ir.Type:
        if self.kind == "i":
            return I64
        return self.lane.ir if self.kind == "l" else float_ir(self.bits)


class Struct(types.Type):
    """Pointer to a table with one 64-bit slot per field: a scalar's value or an array's address.

    fields: tuple of (name, kind): 'I'/'R' integer/real scalar, 'i'/'r'/'l' array of integers/reals/lanes. Scalars are
    read-only; `const` also makes every array read-only.
    """

    def __init__(self, title: str, fields: tuple[tuple[str, str], ...], bits: int, width: int, const: bool) -> None:
        self.title, self.fields, self.bits, self.width, self.const = title, fields, bits, width, const
        self.index = {name: k for k, (name, _) in enumerate(fields)}
        digest = hashlib.sha256(repr(fields).encode()).hexdigest()[:12]
        super().__init__(name=f"{title}<f{bits}x{width},{'const,' if const else ''}{digest}>")

    @property
    def lane(self) -> Lane:
        return Lane(self.bits, self.width)

    def field_type(self, name: str) -> types.Type | None:
        if name not in self.index:
            return None
        kind = self.fields[self.index[name]][1]
        if kind == "I":
            return types.int64
        if kind == "R":
            return self.lane.scalar
        return Ptr(kind, self.bits, self.width, self.const)


@register_model(Lane)
class LaneModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Lane) -> None:
        super().__init__(dmm, fe_type, fe_type.ir)


@register_model(Mask)
class MaskModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Mask) -> None:
        super().__init__(dmm, fe_type, fe_type.ir)


@register_model(Ptr)
class PtrModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Ptr) -> None:
        super().__init__(dmm, fe_type, fe_type.element_ir.as_pointer())


@register_model(Struct)
class StructModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Struct) -> None:
        super().__init__(dmm, fe_type, I64.as_pointer())


class Table:
    """The Python side of a struct: owns the slot table and keeps the arrays alive.

    Pass it to a kernel like any argument. `arrays` maps every field to a number or to a C-contiguous NumPy array (int64
    for 'i', the struct's precision for 'r' and 'l').
    """

    def __init__(self, type_: Struct, arrays: Mapping[str, Any]) -> None:
        self.type = type_
        self.arrays = dict(arrays)
        self.slots = np.zeros(max(len(type_.fields), 1), np.int64)
        self.addr = self.slots.ctypes.data
        for name, _ in type_.fields:
            self.put(name, arrays[name])

    @property
    def _numba_type_(self) -> Struct:
        return self.type

    def put(self, name: str, value: Any) -> None:
        """Point the slot of `name` at another array, or change a scalar."""
        k = self.type.index[name]
        kind = self.type.fields[k][1]
        real = np.float64 if self.type.bits == 64 else np.float32
        if kind == "I":
            self.slots[k] = int(value)
        elif kind == "R":
            self.slots[k : k + 1].view(real)[0] = value
        else:
            want = np.int64 if kind == "i" else real
            if not isinstance(value, np.ndarray) or value.dtype != want or not value.flags.c_contiguous:
                raise TypeError(
                    f"{self.type.title}.{name}: want a C-contiguous {np.dtype(want)} array, got {value!r:.80}"
                )
            self.slots[k] = value.ctypes.data
        self.arrays[name] = value


@unbox(Struct)
def unbox_struct(typ: Struct, obj: Any, c: Any) -> NativeValue:
    attribute = c.pyapi.object_getattr_string(obj, "addr")
    address = c.pyapi.long_as_longlong(attribute)
    c.pyapi.decref(attribute)
    pointer = c.builder.inttoptr(address, I64.as_pointer())
    return NativeValue(pointer, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))

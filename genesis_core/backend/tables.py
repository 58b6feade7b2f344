"""Model, workspace and state as tables of pointers that kernels take.

Lane arrays are laid out [block][item][lane], 64-byte aligned.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from genesis_core.lanes.segment import addresses
from genesis_core.lanes.types import Struct, Table
from genesis_core.layout.counters import CAPACITIES
from genesis_core.layout.field import Field
from genesis_core.layout.fields import MODEL_FIELDS, STATE_FIELDS, WORK_FIELDS, shape_size

if TYPE_CHECKING:
    from genesis_core.compiler.build import Model

ALIGN = 64


def real_type(bits: int) -> type:
    return np.float64 if bits == 64 else np.float32


def aligned(count: int, dtype: Any) -> np.ndarray:
    """Zeros that start at a multiple of 64 bytes."""
    size = max(int(count), 1) * np.dtype(dtype).itemsize
    raw = np.zeros(size + ALIGN, np.uint8)
    start = -raw.ctypes.data % ALIGN
    return raw[start : start + size].view(dtype)


def _kinds(fields: tuple[Field, ...], lanes: bool) -> tuple[tuple[str, str], ...]:
    return tuple((f.name, "l" if lanes and f.kind == "r" else f.kind) for f in fields)


@cache
def model_struct(bits: int, width: int) -> Struct:
    return Struct("Model", _kinds(MODEL_FIELDS, False), bits, width, True)


@cache
def work_struct(bits: int, width: int) -> Struct:
    return Struct("Work", _kinds(WORK_FIELDS, True), bits, width, False)


# Besides the stored lanes: which blocks there are and how far each has come.
BLOCK_FIELDS = (
    ("nblock", "I"),
    ("has_applied", "I"),
    ("has_xfrc", "I"),
    ("cursor", "i"),  # the next block to take
    ("done", "i"),  # steps of this call that each block has behind it
    ("need", "i"),  # capacities that a block lacked
    ("touched", "i"),  # [0] some environment went bad, [1] some capacity was too small
)


@cache
def state_struct(bits: int, width: int) -> Struct:
    return Struct("State", BLOCK_FIELDS + _kinds(STATE_FIELDS, True), bits, width, False)


# A row without inertia of its own (a contact of a lever hinged at its centre of mass) has R = mjMINVAL in MuJoCo, which
# is stiffer by ten powers than what 32-bit numbers can add to a mass matrix. Times 1/inertia, this is what they bear.
LEAST_R_32 = 1e-6


def model_table(model: Model, bits: int, width: int, **scalars: int) -> Table:
    """The model's arrays in the precision of the kernels."""
    arrays: dict[str, Any] = {}
    for f in MODEL_FIELDS:
        value = scalars.get(f.name, model.arrays.get(f.name))
        if f.name == "least_R" and bits == 32:
            value = max(value, LEAST_R_32 / max(model.arrays["meaninertia"], 1e-10))
        if value is None:
            raise KeyError(f"the compiler filled no {f.name}")
        if f.kind in "IR":
            arrays[f.name] = value
            continue
        dtype = np.int64 if f.kind == "i" else real_type(bits)
        flat: np.ndarray = np.ascontiguousarray(value, dtype).reshape(-1)
        if flat.size != shape_size(f.shape, model.sizes):
            raise ValueError(f"{f.name}: {flat.size} numbers, want {f.shape} = {shape_size(f.shape, model.sizes)}")
        home = aligned(flat.size, dtype)
        home[: flat.size] = flat
        arrays[f.name] = home
    return Table(model_struct(bits, width), arrays)


class Work(Table):
    """The workspace of one thread: everything that a block needs while it is simulated."""

    def __init__(self, model: Model, bits: int, width: int, capacities: Mapping[str, int]) -> None:
        self.width = width
        self.capacities = {name: int(capacities[name]) for name in CAPACITIES}
        sizes = {**model.sizes, **self.capacities}
        arrays: dict[str, Any] = {}
        total = 0
        for f in WORK_FIELDS:
            if f.kind == "r":
                total += -(-shape_size(f.shape, sizes) * width * (bits // 8) // ALIGN) * ALIGN + ALIGN
        # One slab, so that neighbours in the list are neighbours in memory; reals get odd-sized gaps of a cache line.
        slab = aligned(total // (bits // 8), real_type(bits))
        self.nbytes = slab.nbytes
        at = 0
        for f in WORK_FIELDS:
            if f.kind == "I":
                arrays[f.name] = sizes[f.name]
            elif f.name == "segments":
                arrays[f.name] = addresses(bits, width)
            elif f.kind == "i":
                arrays[f.name] = np.zeros(max(shape_size(f.shape, sizes), 1), np.int64)
                self.nbytes += arrays[f.name].nbytes
            else:
                n = shape_size(f.shape, sizes) * width
                arrays[f.name] = slab[at : at + n]
                step = ALIGN // (bits // 8)
                at += -(-n // step) * step + step
        super().__init__(work_struct(bits, width), arrays)

    def lanes(self, name: str) -> np.ndarray:
        """A real field as (lane, item), a copy."""
        return self.arrays[name].reshape(-1, self.width).T.copy()

    def set_lanes(self, name: str, value: Any) -> None:
        """Fills a real field from (lane, item), or from (item,) for all lanes."""
        target = self.arrays[name].reshape(-1, self.width)
        target[:] = np.broadcast_to(np.asarray(value, float), (self.width, target.shape[0])).T

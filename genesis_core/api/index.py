"""Indices and values as scripts give them, turned into plain arrays; errors name the argument and the sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from genesis_core.errors import GenesisError, OptionError


class IndexingError(OptionError, IndexError):
    """An index that is out of range or of the wrong kind."""


def to_numpy(value: Any) -> np.ndarray:
    """Lists, scalars, arrays and tensors of any device as a NumPy array (no copy where none is needed)."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    elif isinstance(value, (list, tuple)) and any(hasattr(v, "detach") for v in value):
        value = [to_numpy(v) for v in value]
    try:
        return np.asarray(value)
    except ValueError as error:
        raise OptionError(f"not an array: {error}") from None


def indices(index: Any, size: int, name: str) -> np.ndarray:
    """Positions in 0..size-1 from None (all), int, slice, range, list, array, tensor or a full-length boolean mask."""
    if index is None:
        return np.arange(size)
    if isinstance(index, slice):
        return np.arange(size)[index]
    if isinstance(index, range):
        index = list(index)
    array = to_numpy(index)
    if array.dtype == np.bool_:
        if array.shape != (size,):
            raise IndexingError(f"{name} is a mask of shape {array.shape}, expecting ({size},)")
        return np.flatnonzero(array)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if not np.issubdtype(array.dtype, np.integer):
        raise IndexingError(f"{name} must be integers or a boolean mask, got {array.dtype}")
    array = np.atleast_1d(array).astype(np.int64)
    if array.ndim != 1:
        raise IndexingError(f"{name} has {array.ndim} dimensions, expecting 1")
    bad = array[(array < -size) | (array >= size)]
    if bad.size:
        raise IndexingError(f"{name}: {int(bad[0])} is out of range for size {size}")
    return np.where(array < 0, array + size, array)


def values(value: Any, rows: int | None, columns: int, row_name: str, column_name: str) -> np.ndarray:
    """A value broadcast to (rows, columns), or to (1, columns) where rows is None (a scene without batch).

    Scalars, (columns,), (rows, columns), (rows, 1) are taken; (rows,) too where it cannot be mistaken for (columns,).
    """
    array = to_numpy(value)
    if not (np.issubdtype(array.dtype, np.number) or array.dtype == np.bool_):
        raise OptionError(f"expecting numbers, got {type(value).__name__} of {array.dtype}")
    array = array.astype(np.float64, copy=False)
    most = 1 if rows is None else 2
    if array.ndim > most:
        raise OptionError(f"Invalid input shape: {array.shape}. Expecting at most {most}D tensor.")
    if array.ndim == 1 and array.shape[0] not in (1, columns):
        if rows is not None and columns == 1 and array.shape[0] == rows:
            array = array[:, None]
        else:
            raise OptionError(_mismatch(array.shape, 0, column_name, columns))
    if array.ndim == 2:
        if array.shape[1] not in (1, columns):
            raise OptionError(_mismatch(array.shape, 1, column_name, columns))
        if array.shape[0] not in (1, rows):
            raise OptionError(_mismatch(array.shape, 0, row_name, rows or 0))
    return np.broadcast_to(array, (rows or 1, columns))


def _mismatch(shape: tuple[int, ...], axis: int, name: str, size: int) -> str:
    return f"Invalid input shape: {shape}. Dimension {axis} consistent with len({name})={size}."


def finite(array: np.ndarray, what: str) -> np.ndarray:
    """The array itself; GenesisError names the first place that is NaN or infinite."""
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise GenesisError(f"{what} is {array[place]} at index {place}", hint="check the values before setting them")
    return array

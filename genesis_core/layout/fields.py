"""What every array is: the fields of the model, of a block's workspace and of the stored state.

A shape is a product written out, such as "nbody*3" or "ncon_max*9 + 1", evaluated against the model's sizes and the
workspace's capacities. Quantities follow MuJoCo's names, frames and order; quaternions are w-x-y-z.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from genesis_core.layout import fields_collision, fields_constraint, fields_core
from genesis_core.layout.field import Field


def shape_size(shape: str, sizes: Mapping[str, int]) -> int:
    """The number of items that a symbolic shape stands for: sums, differences and products of sizes and numbers."""

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name):
            return int(sizes[node.id])
        if isinstance(node, ast.BinOp):
            a, b = value(node.left), value(node.right)
            if isinstance(node.op, ast.Mult):
                return a * b
            if isinstance(node.op, ast.Add):
                return a + b
            if isinstance(node.op, ast.Sub):
                return a - b
            if isinstance(node.op, ast.FloorDiv):
                return a // b
        raise ValueError(f"cannot read the shape {shape!r}")

    return value(ast.parse(shape, mode="eval").body)


def _checked(*lists: list[Field]) -> tuple[Field, ...]:
    fields = tuple(f for part in lists for f in part)
    seen: set[str] = set()
    for f in fields:
        if f.name in seen:
            raise ValueError(f"field {f.name!r} is declared twice")
        if f.kind not in "IRir":
            raise ValueError(f"field {f.name!r} has the unknown kind {f.kind!r}")
        seen.add(f.name)
    return fields


MODEL_FIELDS = _checked(fields_core.MODEL_FIELDS, fields_collision.MODEL_FIELDS, fields_constraint.MODEL_FIELDS)
WORK_FIELDS = _checked(fields_core.WORK_FIELDS, fields_collision.WORK_FIELDS, fields_constraint.WORK_FIELDS)
STATE_FIELDS = _checked(fields_core.STATE_FIELDS)

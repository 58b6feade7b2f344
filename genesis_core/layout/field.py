"""One entry in the lists of fields (`fields.py`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Field:
    """One field. kind: 'I'/'R' integer/real scalar, 'i' integer array, 'r' real array.

    In the model a real array holds plain numbers; in the workspace and the state it holds lanes (one number per
    environment of the block) and an integer array holds one value for the whole block.
    """

    name: str
    kind: str
    shape: str = "1"
    unit: str = ""
    doc: str = ""

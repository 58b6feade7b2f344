"""The stages that are compiled by themselves (see `lanes.segment`). A name's place is its slot in compiled code."""

from __future__ import annotations

NSEGMENT = 64
SEGMENT_NAMES = (
    "positions",
    "smooth_dynamics",
    "narrowphase",
    "box_box",
    "capsule_box",
    "plane_mesh",
    "make",
    "solve",
    "integrate",
    "pattern",
    "assemble",
    "factor",
    "backsolve",
    "line_search",
    "advance",
    "residual",
    "forward",
)

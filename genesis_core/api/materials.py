"""Materials of entities: mass and friction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from genesis_core.api.elsewhere import absent_class
from genesis_core.api.options import Number, Options

_SOFT = "it is for coupling with soft bodies, which this version does not have"
_SDF = "collision uses exact primitives and convex hulls"


class Rigid(Options):
    """A rigid body. rho [kg/m^3] is used where the file gives no mass; friction replaces that of all its geoms."""

    INERT: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("needs_coup", "coup_friction", "coup_softness", "coup_restitution", "coup_type"), _SOFT),
        **dict.fromkeys(("sdf_cell_size", "sdf_min_res", "sdf_max_res"), _SDF),
        "use_visual_raycasting": "there are no ray sensors in this version",
    }

    rho: Number | None = Field(None, gt=0)
    friction: Number | None = Field(None, ge=1e-2, le=5)
    friction_torsional: Number | None = Field(None, ge=0)
    friction_rolling: Number | None = Field(None, ge=0)
    needs_coup: bool = True
    coup_friction: Number = 0.1
    coup_softness: Number = 0.002
    coup_restitution: Number = 0.0
    coup_type: Any = None
    sdf_cell_size: Number = 0.005
    sdf_min_res: int = 32
    sdf_max_res: int = 128
    gravity_compensation: Number = 0.0
    use_visual_raycasting: bool = False


_RIGID_ONLY = "this version simulates gs.materials.Rigid"
Kinematic = absent_class("materials", "Kinematic", _RIGID_ONLY)
Tool = absent_class("materials", "Tool", _RIGID_ONLY)
Hybrid = absent_class("materials", "Hybrid", _RIGID_ONLY)


class _Family:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, member: str) -> Any:
        if member.startswith("__"):
            raise AttributeError(member)
        return absent_class("materials", f"{self._name}.{member}", _RIGID_ONLY)


MPM, FEM, PBD, SPH, SF = (_Family(name) for name in ("MPM", "FEM", "PBD", "SPH", "SF"))

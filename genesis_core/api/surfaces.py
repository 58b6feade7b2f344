"""How entities look. Colours reach the scene; what the renderer does not model is accepted and named in a warning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from genesis_core.api.options import Number, Options, _to_tuple

Color = Annotated[
    tuple[float, float, float] | tuple[float, float, float, float] | None,
    BeforeValidator(_to_tuple),
]
_NOT_MODELLED = "the renderer does not model it"


class Default(Options):
    """Colour (rgb or rgba, 0..1), opacity, roughness, metallic."""

    INERT: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("ior", "vis_mode", "smooth", "double_sided", "diffuse_texture", "emissive"), _NOT_MODELLED
    )

    color: Color = None
    opacity: Number | None = Field(None, ge=0, le=1)
    roughness: Number | None = Field(None, ge=0, le=1)
    metallic: Number | None = Field(None, ge=0, le=1)
    emissive: Any = None
    ior: Number | None = None
    vis_mode: str | None = None
    smooth: bool = True
    double_sided: bool | None = None
    diffuse_texture: Any = None

    def rgba(self) -> tuple[float, float, float, float] | None:
        """The colour with its opacity, None where none was given."""
        if self.color is None:
            return None
        alpha = self.opacity if self.opacity is not None else (self.color[3] if len(self.color) == 4 else 1.0)
        return (*self.color[:3], alpha)


BSDF = Default


class Plastic(Default):
    roughness: Number | None = 0.3


class Rough(Default):
    roughness: Number | None = 1.0


class Smooth(Default):
    roughness: Number | None = 0.1


class Reflective(Default):
    roughness: Number | None = 0.01


class Metal(Default):
    roughness: Number | None = 0.1
    metallic: Number | None = 1.0


class Iron(Metal):
    color: Color = (0.56, 0.57, 0.58)


class Aluminium(Metal):
    color: Color = (0.91, 0.92, 0.92)


class Copper(Metal):
    color: Color = (0.96, 0.64, 0.54)


class Gold(Metal):
    color: Color = (1.0, 0.77, 0.34)


class Glass(Default):
    color: Color = (0.9, 0.95, 1.0)
    opacity: Number | None = 0.35


class Water(Default):
    color: Color = (0.4, 0.6, 0.9)
    opacity: Number | None = 0.5


class Emission(Default):
    pass


class Collision(Default):
    color: Color = (0.5, 0.5, 0.5)

"""Renderers of a scene. There is one, the rasterizer of Genesis Studio."""

from __future__ import annotations

from genesis_core.api.elsewhere import absent_class
from genesis_core.api.options import Options


class Rasterizer(Options):
    """The instanced OpenGL renderer (the default)."""


RayTracer = absent_class("renderers", "RayTracer", "use gs.renderers.Rasterizer()")
BatchRenderer = absent_class("renderers", "BatchRenderer", "use gs.renderers.Rasterizer()")

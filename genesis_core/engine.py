"""The engine's own API: `from genesis_core.engine import Model, Simulation`."""

from genesis_core.compiler.build import Model
from genesis_core.simulation import Simulation

__all__ = ["Model", "Simulation"]

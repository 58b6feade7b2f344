# ruff: noqa: F401 (the imports at the end are for type checkers)
"""Genesis Studio as a library: `import genesis_core as gs`.

Names are loaded when first used, so that the import itself is fast and pulls in neither torch nor Numba nor MuJoCo.
`__all__` is the contract with users' scripts.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# name -> (module, attribute); an empty attribute means the module itself
_LAZY: dict[str, tuple[str, str]] = {
    "init": ("genesis_core.api.session", "init"),
    "destroy": ("genesis_core.api.session", "destroy"),
    "launch": ("genesis_core.api.launch", "launch"),
    "cpu": ("genesis_core.api.session", "cpu"),
    "gpu": ("genesis_core.api.session", "gpu"),
    "cuda": ("genesis_core.api.session", "cuda"),
    "amdgpu": ("genesis_core.api.session", "amdgpu"),
    "metal": ("genesis_core.api.session", "metal"),
    "Scene": ("genesis_core.api.scene", "Scene"),
    "morphs": ("genesis_core.api.morphs", ""),
    "materials": ("genesis_core.api.materials", ""),
    "surfaces": ("genesis_core.api.surfaces", ""),
    "options": ("genesis_core.api.options", ""),
    "renderers": ("genesis_core.api.renderers", ""),
    "sensors": ("genesis_core.api.elsewhere", "sensors"),
    "recorders": ("genesis_core.api.elsewhere", "recorders"),
    "integrator": ("genesis_core.api.constants", "integrator"),
    "constraint_solver": ("genesis_core.api.constants", "constraint_solver"),
    "friction_cone": ("genesis_core.api.constants", "friction_cone"),
    "GEOM_TYPE": ("genesis_core.api.constants", "GEOM_TYPE"),
    "JOINT_TYPE": ("genesis_core.api.constants", "JOINT_TYPE"),
    "CTRL_MODE": ("genesis_core.api.constants", "CTRL_MODE"),
    "GenesisException": ("genesis_core.errors", "GenesisError"),
    "GenesisError": ("genesis_core.errors", "GenesisError"),
    "SceneError": ("genesis_core.errors", "SceneError"),
    "UnsupportedFeatureError": ("genesis_core.errors", "UnsupportedFeatureError"),
    "DeviceError": ("genesis_core.errors", "DeviceError"),
    "OptionError": ("genesis_core.errors", "OptionError"),
    "StateError": ("genesis_core.errors", "StateError"),
    "WorkerError": ("genesis_core.errors", "WorkerError"),
    "raise_exception": ("genesis_core.api.session", "raise_exception"),
}
_GEOM = (
    "euler_to_quat",
    "xyz_to_quat",
    "quat_to_xyz",
    "quat_to_R",
    "R_to_quat",
    "inv_quat",
    "normalize",
    "transform_by_quat",
    "inv_transform_by_quat",
    "transform_quat_by_quat",
    "axis_angle_to_quat",
)
_LAZY |= {name: ("genesis_core.api.geom", name) for name in _GEOM}

# Values that `init` sets and `destroy` clears; read from the session at every access, never cached here.
_SESSION = (
    "device",
    "backend",
    "precision",
    "debug",
    "EPS",
    "SEED",
    "logger",
    "tc_float",
    "tc_int",
    "tc_bool",
    "np_float",
    "np_int",
    "np_bool",
    "use_deterministic_algorithms",
)

__all__ = sorted([*_LAZY, *_SESSION, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _SESSION:
        from genesis_core.api import session

        return session.value(name)
    try:
        module, attribute = _LAZY[name]
    except KeyError:
        raise AttributeError(_no_such_name(name)) from None
    loaded = importlib.import_module(module)
    found = getattr(loaded, attribute) if attribute else loaded
    globals()[name] = found
    return found


def _no_such_name(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, __all__, n=3)
    return f"genesis_core has no attribute '{name}'" + (f"; did you mean {', '.join(near)}?" if near else "")


class _Module(types.ModuleType):
    """`gs.backend` is the chosen backend, though a sub-package has the same name: the import system's attempt to put
    the sub-package there is ignored (it is reached by `from genesis_core.backend import ...`)."""

    @property
    def backend(self) -> Any:
        from genesis_core.api import session

        return session.value("backend")

    @backend.setter
    def backend(self, value: Any) -> None:
        if not isinstance(value, types.ModuleType):
            raise AttributeError("gs.backend is chosen by gs.init(backend=...)")


sys.modules[__name__].__class__ = _Module


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if TYPE_CHECKING:
    import logging

    import torch

    from genesis_core.api import materials, morphs, options, renderers, surfaces
    from genesis_core.api.constants import (
        CTRL_MODE,
        GEOM_TYPE,
        JOINT_TYPE,
        constraint_solver,
        friction_cone,
        integrator,
    )
    from genesis_core.api.elsewhere import recorders, sensors
    from genesis_core.api.geom import (
        R_to_quat,
        axis_angle_to_quat,
        euler_to_quat,
        inv_quat,
        inv_transform_by_quat,
        normalize,
        quat_to_R,
        quat_to_xyz,
        transform_by_quat,
        transform_quat_by_quat,
        xyz_to_quat,
    )
    from genesis_core.api.launch import launch
    from genesis_core.api.scene import Scene
    from genesis_core.api.session import Backend, amdgpu, cpu, cuda, destroy, gpu, init, metal, raise_exception
    from genesis_core.errors import (
        DeviceError,
        GenesisError,
        OptionError,
        SceneError,
        StateError,
        UnsupportedFeatureError,
        WorkerError,
    )

    GenesisException = GenesisError
    device: torch.device
    backend: Backend
    precision: str
    debug: bool
    EPS: float
    SEED: int | None
    logger: logging.Logger
    tc_float: torch.dtype
    tc_int: torch.dtype
    tc_bool: torch.dtype
    np_float: type
    np_int: type
    np_bool: type
    use_deterministic_algorithms: bool

"""Parts of the Genesis API that this version does not have: using them says so by name."""

from __future__ import annotations

from typing import Any

from genesis_core.errors import UnsupportedFeatureError


class _Absent:
    """A namespace whose every member raises UnsupportedFeatureError."""

    def __init__(self, name: str, hint: str) -> None:
        self._name = name
        self._hint = hint

    def __getattr__(self, member: str) -> Any:
        if member.startswith("__"):
            raise AttributeError(member)
        raise UnsupportedFeatureError(f"gs.{self._name}.{member} is not in this version", hint=self._hint)


sensors = _Absent("sensors", "read states with entity.get_* and scene.sim; MJCF sensors open with genesis-studio info")
recorders = _Absent("recorders", "`genesis-studio record SCENE --out DIR` writes videos and state recordings")


def absent_class(kind: str, name: str, hint: str) -> type:
    """A class that can be named but not made."""

    def refuse(self: object, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedFeatureError(f"gs.{kind}.{name} is not in this version", hint=hint)

    return type(name, (), {"__init__": refuse, "__doc__": f"Not in this version. {hint}"})

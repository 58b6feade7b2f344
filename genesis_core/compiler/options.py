"""Simulation options of several files in one scene: which one rules, and who is told."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from genesis_core.compiler.entities import OptionsSpec
from genesis_core.compiler.source import XmlSource

# XML attribute -> field of mjOption where the names differ
_FIELDS = {"actuatorgroupdisable": "disableactuator"}
ENUM_WORDS: dict[str, dict[str, int]] = {
    "integrator": {"euler": 0, "rk4": 1, "implicit": 2, "implicitfast": 3},
    "solver": {"pgs": 0, "cg": 1, "newton": 2},
    "cone": {"pyramidal": 0, "elliptic": 1},
}
DISABLE = {
    name.removeprefix("mjDSBL_").lower(): int(value)
    for name, value in mujoco.mjtDisableBit.__members__.items()
    if name.startswith("mjDSBL_")
}
ENABLE = {
    name.removeprefix("mjENBL_").lower(): int(value)
    for name, value in mujoco.mjtEnableBit.__members__.items()
    if name.startswith("mjENBL_")
}


class OptionMerger:
    """Collects what each file sets; the first file that sets an option rules over later ones, the scene over all."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[Any, str]] = {}
        self.conflicts: list[tuple[str, Any, str, Any, str]] = []
        self.warnings: list[str] = []

    def add(self, child: mujoco.MjSpec, source: XmlSource) -> None:
        """Takes the options that a file writes down."""
        label = source.path.name
        for node in source.nodes():
            if node.tag == "option":
                for attribute in node.attributes:
                    name = _FIELDS.get(attribute, attribute)
                    if hasattr(child.option, name):
                        self._take(name, _plain(getattr(child.option, name)), label)
            elif node.tag == "flag":
                for flag in node.attributes:
                    self._take(f"flag {flag}", flag_is_on(child.option, flag), label)

    def _take(self, name: str, value: Any, label: str) -> None:
        if name not in self.values:
            self.values[name] = (value, label)
        elif self.values[name][0] != value and self.values[name][1] != label:
            self.conflicts.append((name, *self.values[name], value, label))

    def apply(self, spec: mujoco.MjSpec, options: OptionsSpec) -> None:
        """Writes the options that rule into the model and words the warning about those that do not."""
        for name, (value, _) in self.values.items():
            if name.startswith("flag "):
                set_flag(spec.option, name[5:], value)
            else:
                setattr(spec.option, name, value)
        given = {k: v for k, v in options.model_dump(exclude={"flags"}).items() if v is not None}
        for name, value in given.items():
            setattr(spec.option, name, ENUM_WORDS[name][value] if name in ENUM_WORDS else value)
        flags = {k: v for k, v in options.flags.model_dump().items() if v is not None}
        for name, on in flags.items():
            set_flag(spec.option, name, on)
        if (
            any(name in given for name in ("o_margin", "o_solref", "o_solimp", "o_friction"))
            and "override" not in flags
        ):
            set_flag(spec.option, "override", True)
        ruled = set(given) | {f"flag {name}" for name in flags}
        open_conflicts = [c for c in self.conflicts if c[0] not in ruled]
        if open_conflicts:
            parts = [
                f"{n}: {_show(n, a)} of {fa} is used, {_show(n, b)} of {fb} is not"
                for n, a, fa, b, fb in open_conflicts
            ]
            self.warnings.append(
                "files of the scene set options differently (the first one rules; [options] of the scene rules over "
                "all): " + "; ".join(parts)
            )


def flag_is_on(option: mujoco.MjOption, flag: str) -> bool:
    """Whether a part of the simulation is switched on."""
    if flag in DISABLE:
        return not option.disableflags & DISABLE[flag]
    return bool(option.enableflags & ENABLE.get(flag, 0))


def set_flag(option: mujoco.MjOption, flag: str, on: bool) -> None:
    """Switches a part of the simulation on or off."""
    if flag in DISABLE:
        bit = DISABLE[flag]
        option.disableflags = option.disableflags & ~bit if on else option.disableflags | bit
    elif flag in ENABLE:
        bit = ENABLE[flag]
        option.enableflags = option.enableflags | bit if on else option.enableflags & ~bit


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return int(value) if hasattr(value, "__members__") else value


def _show(name: str, value: Any) -> str:
    if name in ENUM_WORDS:
        return next((word for word, number in ENUM_WORDS[name].items() if number == int(value)), str(value))
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)

"""What several verbs share: finding the scene, devices, sizes."""

from __future__ import annotations

import difflib
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from genesis_core.errors import OptionError, SceneError


class CommonOptions(msgspec.Struct, kw_only=True):
    """The flags that several verbs have. None = what the scene says."""

    envs: int | None = None
    devices: str | None = None
    backend: str = "auto"
    spacing: tuple[float, float] | None = None
    seed: int | None = None
    precision: str | None = None

    def worker_devices(self, scene: Path | None = None) -> tuple[str, ...]:
        """One device per worker process: from the flags, else from the scene file, else the CPU."""
        from genesis_core.backend.resolve import resolve_devices

        text = self.devices
        if text is None and scene is not None and self.backend == "auto":
            text = scene_devices(scene)
        return resolve_devices(text, self.backend)


def common_options(
    envs: int | None, devices: str | None, backend: str, spacing: str | None, seed: int | None, precision: str | None
) -> CommonOptions:
    """Checked flags; OptionError with the flag's name and the value."""
    from genesis_core.runtime.supervisor import MAX_ENVS

    if envs is not None and not 1 <= envs <= MAX_ENVS:
        raise OptionError(f"--envs {envs} is out of range", hint=f"give a number from 1 to {MAX_ENVS}")
    if seed is not None and not 0 <= seed < 2**63:
        raise OptionError(f"--seed {seed} is out of range", hint="give a number from 0 to 2^63 - 1")
    if precision not in (None, "32", "64"):
        raise OptionError(f"--precision {precision} is unknown", hint="choose 32 or 64")
    if devices is not None and not devices.strip():
        raise OptionError("--devices is empty", hint='for example "cpu" or "cpu:2"')
    return CommonOptions(
        envs=envs, devices=devices, backend=backend, spacing=_spacing(spacing), seed=seed, precision=precision
    )


def _spacing(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) == 1:
        numbers *= 2
    if len(numbers) != 2 or not all(0 <= x < 1e6 for x in numbers):
        raise OptionError(f"--spacing {text} is not two distances", hint="for example 1.5,1.5 [m]")
    return numbers[0], numbers[1]


def parse_size(text: str | None) -> tuple[int, int] | None:
    """ "1280x720" as numbers."""
    if text is None:
        return None
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(p.isdecimal() for p in parts):
        raise OptionError(f"--size {text} is not WIDTHxHEIGHT", hint="for example 1280x720")
    return int(parts[0]), int(parts[1])


def find_scene(text: str) -> Path:
    """The file of a scene: a path, or the name of a bundled scene or model. SceneError names what is near."""
    from resources import list_models, list_scenes, model_path, scene_path

    path = Path(text).expanduser()
    try:
        if path.exists():
            return path
    except OSError as error:  # a name too long, characters the system refuses
        raise SceneError(f"this is no file name: {error.strerror}", file=text[:80]) from None
    if "\0" in text:
        raise SceneError("this is no file name: it holds a zero byte")
    if not path.suffix and len(path.parts) <= 2:
        for known, find in ((list_scenes(), scene_path), (list_models(), model_path)):
            if text in known:
                return find(text)
        near = difflib.get_close_matches(text, list_scenes(), 1, cutoff=0.5)
        hint = f"did you mean the bundled scene '{near[0]}'?" if near else f"bundled scenes: {', '.join(list_scenes())}"
        raise SceneError("there is no such file or bundled scene", file=text, hint=hint)
    from genesis_core.compiler.source import near_file

    raise SceneError("the scene file does not exist", file=path, hint=near_file(path))


def scene_devices(path: Path) -> str | None:
    """The devices that a scene file asks for; None where it asks for none or cannot be read (its worker will tell)."""
    if path.suffix.lower() != ".toml":
        return None
    try:
        with path.open("rb") as file:
            devices: Any = tomllib.load(file).get("devices")
    except (OSError, ValueError):
        return None
    return ",".join(devices) if isinstance(devices, list) and all(isinstance(d, str) for d in devices) else None


def has_display() -> bool:
    """Whether a window can be opened here."""
    if not sys.platform.startswith("linux"):
        return True
    if os.environ.get("QT_QPA_PLATFORM", "") not in ("", "xcb", "wayland"):
        return True  # offscreen, vnc, eglfs ...: chosen on purpose
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))

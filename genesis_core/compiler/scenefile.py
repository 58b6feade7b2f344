"""Scene files: TOML on disk, SceneSpec in memory, and every mistake in one message with its line."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, PrivateAttr, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from genesis_core.compiler.entities import ALLOWED, EntitySpec, FlagsSpec, MaterialSpec, OptionsSpec, Quat, Strict, Vec3
from genesis_core.compiler.source import read_text
from genesis_core.drive import DriveSpec
from genesis_core.errors import OptionError, SceneError

MAX_ENVS = 1 << 20
MAX_TOML_BYTES = 8 * 2**20


class CameraSpec(Strict):
    """A camera on the world or on a body; the pose is in that body's frame."""

    name: str = Field(min_length=1)
    body: str = Field("", description='"" = world, else a body such as "arm/hand"')
    pos: Vec3 = Field(description="[m]")
    lookat: Vec3 | None = Field(None, description="[m] the point it looks at, z up")
    quat: Quat | None = Field(None, description="w, x, y, z; the camera looks along its own -z, +y is up")
    euler: Vec3 | None = Field(None, description="[degree], about the fixed x, then y, then z axis")
    fovy: float = Field(45.0, gt=0, lt=180, description="[degree]")

    @model_validator(mode="after")
    def _one_orientation(self) -> CameraSpec:
        given = [k for k in ("lookat", "quat", "euler") if getattr(self, k) is not None]
        if len(given) > 1:
            raise ValueError(f"give one of {' and '.join(given)}, not {len(given)}")
        if self.lookat is not None and max(abs(a - b) for a, b in zip(self.lookat, self.pos, strict=True)) < 1e-9:
            raise ValueError("lookat is where the camera stands")
        return self


class ViewSpec(Strict):
    """Where the window's free camera starts and which environments it shows."""

    azimuth: float | None = Field(None, description="[degree]")
    elevation: float | None = Field(None, ge=-90, le=90, description="[degree]")
    distance: float | None = Field(None, gt=0, description="[m]")
    lookat: Vec3 | None = Field(None, description="[m]")
    shown: str = Field("first:16", description='"all", "0,5", "first:4" or "random:4"')
    follow: str = Field("", description="body to follow")

    @field_validator("shown")
    @classmethod
    def _select(cls, value: str) -> str:
        return check_select(value)


class RecordingSpec(Strict):
    """Defaults of `genesis-studio record`."""

    camera: str = Field("", description='camera name, or "azimuth,elevation,distance"')
    size: tuple[int, int] = Field((1280, 720), description="[pixel] width, height")
    fps: int = Field(30, ge=1, le=240)
    seconds: float | None = Field(None, gt=0, description="[s] simulated")
    steps: int | None = Field(None, ge=1)
    select: str = "first:4"
    video: bool = True
    states: bool = True

    @field_validator("size")
    @classmethod
    def _size(cls, value: tuple[int, int]) -> tuple[int, int]:
        if not all(16 <= x <= 8192 for x in value):
            raise ValueError(f"{value[0]}x{value[1]} pixels are outside of 16 to 8192")
        return value

    @field_validator("select")
    @classmethod
    def _select(cls, value: str) -> str:
        return check_select(value)

    @model_validator(mode="after")
    def _one_length(self) -> RecordingSpec:
        if self.seconds is not None and self.steps is not None:
            raise ValueError("give seconds or steps, not both")
        return self


class NoiseSpec(Strict):
    """How far the environments' start states differ, for the joints that match a name pattern."""

    joints: str = Field("*", description='joint names, wildcards allowed: "arm/*"')
    qpos: float = Field(0.0, ge=0, description="uniform +- [rad or m] of hinges and slides, clipped to their range")
    qvel: float = Field(0.0, ge=0, description="uniform +- [rad/s or m/s] of every degree of freedom")
    pos: Vec3 = Field((0.0, 0.0, 0.0), description="uniform +- [m] of free joints")
    yaw: float = Field(0.0, ge=0, le=180, description="uniform +- [degree] about the world's z, free and ball joints")
    tilt: float = Field(0.0, ge=0, le=180, description="uniform 0..tilt [degree] about a random level axis")


class StartSpec(Strict):
    """The state in which every environment begins."""

    keyframe: str = Field("", description='of each entity ("home") or one full name ("arm/home")')
    qpos: dict[str, float | list[float]] = Field({}, description="by joint name, wildcards allowed [rad or m]")
    ctrl: dict[str, float] = Field({}, description="by actuator name, wildcards allowed")
    noise: list[NoiseSpec] = Field([])


class SceneSpec(Strict):
    """A scene and how to simulate, show and record it."""

    name: str = ""
    description: str = ""
    n_envs: int = Field(1, ge=1, le=MAX_ENVS, description="number of copies")
    env_spacing: tuple[float, float] = Field((2.0, 2.0), description="[m] between environments in the drawing")
    devices: list[str] = Field(["auto"], min_length=1, description='"auto", "cpu", "cpu:2", "cuda:0", "all"')
    seed: int = Field(0, ge=0, lt=2**63)
    precision: Literal["32", "64"] = "32"
    options: OptionsSpec = OptionsSpec()
    entities: list[EntitySpec] = Field([])
    cameras: list[CameraSpec] = Field([])
    view: ViewSpec = ViewSpec()
    recording: RecordingSpec = RecordingSpec()
    start: StartSpec = StartSpec()
    drive: list[DriveSpec] = Field([])
    _lines: dict[tuple[str | int, ...], int] = PrivateAttr({})

    @field_validator("env_spacing")
    @classmethod
    def _spacing(cls, value: tuple[float, float]) -> tuple[float, float]:
        if any(x < 0 for x in value):
            raise ValueError(f"{list(value)} must not be negative")
        return value

    @model_validator(mode="after")
    def _names_are_unique(self) -> SceneSpec:
        for kind, names in (("entity", [e.name for e in self.entities]), ("camera", [c.name for c in self.cameras])):
            twice = sorted({n for n in names if n and names.count(n) > 1})
            if twice:
                second = [i for i, name in enumerate(names) if name == twice[0]][1]
                table = "entities" if kind == "entity" else "cameras"
                context = {"kind": kind, "name": twice[0], "place": (table, second, "name")}
                raise PydanticCustomError("twice", "two {kind} tables have the name '{name}'", context)
        return self


_SELECT = re.compile(r"all|none|(first|random|last):\d+|\d+(-\d+)?(,\d+(-\d+)?)*")


def check_select(value: str) -> str:
    """A selection of environments as text, refused if it is none."""
    if not _SELECT.fullmatch(value.replace(" ", "")):
        raise ValueError(f'\'{value}\' is no selection; write "all", "0,5", "first:4" or "random:4"')
    return value


_MODELS: dict[str, type[BaseModel]] = {
    "": SceneSpec,
    "entities": EntitySpec,
    "entities.material": MaterialSpec,
    "options": OptionsSpec,
    "options.flags": FlagsSpec,
    "cameras": CameraSpec,
    "view": ViewSpec,
    "recording": RecordingSpec,
    "start": StartSpec,
    "start.noise": NoiseSpec,
    "drive": DriveSpec,
}


def read_scene_file(path: str | Path, overrides: dict[str, Any] | None = None) -> SceneSpec:
    """The scene of a TOML file; all mistakes come in one SceneError with their lines."""
    path = Path(path)
    text = read_text(path, MAX_TOML_BYTES, "scene file")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        line = int(match[1]) if match else text.count("\n") + 1
        what = re.sub(r" \(at .*\)$", "", str(error))
        raise SceneError(f"not valid TOML: {what}", file=path, line=line) from None
    except RecursionError:
        raise SceneError("not valid TOML: nested too deep", file=path) from None
    return spec_from_dict(merged(data, overrides), path, key_lines(text))


def spec_from_dict(
    data: dict[str, Any], path: Path | None = None, lines: dict[tuple[str | int, ...], int] | None = None
) -> SceneSpec:
    """A checked SceneSpec from plain data; without a path mistakes are OptionErrors."""
    try:
        spec = SceneSpec.model_validate(data)
    except ValidationError as error:
        raise _all_mistakes(error, data, path, lines or {}) from None
    if path is not None and not spec.name:
        spec.name = path.stem
    spec._lines = lines or {}
    return spec


def line_in_scene_file(spec: SceneSpec, element: str) -> int | None:
    """The line of what a later error calls `entity "NAME"`, `camera "NAME"`, or by its key ("start.keyframe")."""
    match = re.fullmatch(r'(entity|camera) "(.*)"(?: (\w+))?', element)
    if match:
        names = [item.name for item in (spec.entities if match[1] == "entity" else spec.cameras)]
        table = "entities" if match[1] == "entity" else "cameras"
        place: tuple[str | int, ...] = (table, names.index(match[2]), match[3] or "file") if match[2] in names else ()
    else:
        place = tuple(element.split("."))
    return _line_of(place, spec._lines) or None


def merged(data: dict[str, Any], overrides: dict[str, Any] | None) -> dict[str, Any]:
    """`data` with the values of `overrides` put over it, tables key by key."""
    out = dict(data)
    for key, value in (overrides or {}).items():
        if isinstance(value, dict) and isinstance(out.get(key), dict):
            out[key] = merged(out[key], value)
        elif value is not None:
            out[key] = value
    return out


def _all_mistakes(
    error: ValidationError, data: dict[str, Any], path: Path | None, lines: dict[tuple[str | int, ...], int]
) -> SceneError | OptionError:
    found: list[tuple[int, str]] = []
    seen: set[tuple[Any, ...]] = set()
    for item in error.errors(include_url=False):
        loc = tuple(part for part in item["loc"] if _is_place(part))
        kept = _real_loc(loc, data) or tuple(item.get("ctx", {}).get("place", ()))
        if (kept, item["type"]) in seen or (kept in {k for k, _ in seen} and len(kept) < len(loc)):
            continue
        seen.add((kept, item["type"]))
        message = _message(dict(item), kept, data)
        quoted = re.search(r"has no key '(\w+)'", message)
        place = (*kept, quoted[1]) if quoted else kept
        found.append((_line_of(place, lines), f"{_dotted(place)}: {message}" if place else message))
    found.sort(key=lambda pair: pair[0])
    if path is None:
        return OptionError("; ".join(text for _, text in found))
    if len(found) == 1:
        what, _, hint = found[0][1].partition("; did you mean ")
        return SceneError(what, file=path, line=found[0][0] or None, hint=f"did you mean {hint}" if hint else "")
    rows = "".join(f"\n  line {line}: {text}" if line else f"\n  {text}" for line, text in found)
    return SceneError(f"{len(found)} mistakes in the scene file:{rows}", file=path, line=found[0][0] or None)


def _is_place(part: Any) -> bool:
    """Keys and indices; not the names of union branches that pydantic adds to places."""
    return isinstance(part, int) or (isinstance(part, str) and re.fullmatch(r"[\w*/ .-]+", part) is not None)


def _real_loc(loc: tuple[Any, ...], data: Any) -> tuple[Any, ...]:
    """The longest part of a place that exists in the data (the last key may be missing there)."""
    out: list[Any] = []
    for i, part in enumerate(loc):
        in_list = isinstance(data, list) and isinstance(part, int) and part < len(data)
        if in_list or (isinstance(data, dict) and part in data):
            data = data[part]
        elif isinstance(data, dict) and i == len(loc) - 1:
            return (*out, part)
        else:
            break
        out.append(part)
    return tuple(out)


def _message(item: dict[str, Any], loc: tuple[Any, ...], data: dict[str, Any]) -> str:
    kind = item["type"]
    value = item.get("input")
    if kind == "extra_forbidden":
        return f"unknown key '{loc[-1]}'" + _near(loc, data)
    if kind == "missing":
        given = item["loc"][-1]
        return f"too few numbers: number {given + 1} is missing" if isinstance(given, int) else "this key is required"
    text = str(item["msg"]).removeprefix("Value error, ")
    match = re.search(r"has no key '(\w+)'", text)
    if match:
        near = difflib.get_close_matches(match[1], ALLOWED.get(str(_at(loc, data).get("type")), ()), n=1)
        return text + (f"; did you mean '{near[0]}'?" if near else "")
    text = text[0].lower() + text[1:]
    if isinstance(value, str | int | float | bool) and repr(value) not in text and kind != "value_error":
        near = difflib.get_close_matches(str(value).lower(), re.findall(r"'([^']+)'", text), n=1)
        return f"{value!r} is wrong: {text}" + (f"; did you mean '{near[0]}'?" if near else "")
    return text


def _near(loc: tuple[Any, ...], data: dict[str, Any]) -> str:
    section = ".".join(str(p) for p in loc[:-1] if isinstance(p, str))
    model = _MODELS.get(section)
    if model is None:
        return ""
    names = set(model.model_fields)
    if model is EntitySpec:
        names = set(ALLOWED.get(str(_at(loc[:-1], data).get("type")), names)) | {"type"}
    near = difflib.get_close_matches(str(loc[-1]), sorted(names), n=1, cutoff=0.5)
    if near:
        return f"; did you mean '{near[0]}'?"
    elsewhere = [key or "the top" for key, m in _MODELS.items() if str(loc[-1]) in m.model_fields]
    return f" (it belongs into {elsewhere[0]})" if elsewhere else f"; known keys: {', '.join(sorted(names))}"


def _at(loc: tuple[Any, ...], data: Any) -> dict[str, Any]:
    for part in loc:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return {}
    return data if isinstance(data, dict) else {}


def _dotted(loc: tuple[Any, ...]) -> str:
    out = ""
    for part in loc:
        out += f"[{part}]" if isinstance(part, int) else f".{part}" if out else str(part)
    return out


def _line_of(loc: tuple[Any, ...], lines: dict[tuple[str | int, ...], int]) -> int:
    for end in range(len(loc), 0, -1):
        if loc[:end] in lines:
            return lines[loc[:end]]
    return 0


_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")
_TABLE = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")


def key_lines(text: str) -> dict[tuple[str | int, ...], int]:
    """The line of every key and table of a TOML text, by its place: ("entities", 0, "pos") -> 12."""
    out: dict[tuple[str | int, ...], int] = {}
    counts: dict[tuple[str | int, ...], int] = {}
    place: tuple[str | int, ...] = ()
    for line, content in _logical_lines(text):
        table = _TABLE.match(content)
        if table:
            keys = _split_key(table[2])
            place = (*_through_arrays(keys[:-1], counts), keys[-1])
            if table[1] == "[[":
                counts[place] = counts.get(place, -1) + 1
                out.setdefault(place, line)
                place = (*place, counts[place])
            elif place in counts:
                place = (*place, counts[place])
            out[place] = line
            continue
        key = _KEY.match(content)
        if key:
            full = (*place, *_split_key(key[1]))
            out[full] = line
            for inner in re.finditer(r"[{,]\s*([A-Za-z0-9_-]+)\s*=", content[key.end() :]):
                out.setdefault((*full, inner[1]), line)
    return out


def _through_arrays(keys: list[str], counts: dict[tuple[str | int, ...], int]) -> tuple[str | int, ...]:
    """The place of a table below arrays of tables: each array stands for its latest table."""
    out: tuple[str | int, ...] = ()
    for key in keys:
        out = (*out, key)
        if out in counts:
            out = (*out, counts[out])
    return out


def _split_key(text: str) -> list[str]:
    return [part.strip().strip("\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.\s]+", text)]


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines outside of multi-line strings and arrays, with their numbers."""
    depth = 0
    quote = ""
    for number, content in enumerate(text.split("\n"), 1):
        if not quote and depth == 0:
            yield number, content
        bare = content
        if quote:
            if quote not in bare:
                continue
            bare = bare.split(quote, 1)[1]
            quote = ""
        for mark in ('"""', "'''"):
            if bare.count(mark) % 2 == 1:
                quote = mark
                bare = bare.split(mark, 1)[0]
        bare = re.sub(r"\"(?:\\.|[^\"\\])*\"|'[^']*'", "", bare).split("#", 1)[0]
        if _TABLE.match(content) and depth == 0:
            continue
        depth = max(0, depth + bare.count("[") - bare.count("]"))


def scene_schema() -> dict[str, Any]:
    """JSON schema of scene files, for editors."""
    schema = SceneSpec.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Genesis Studio scene"
    return schema

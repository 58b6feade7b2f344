"""Files of a scene, read with every fault named: what, file, line, element, and what to do."""

from __future__ import annotations

import difflib
import math
import os
import re
import stat as stat_module
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from genesis_core.compiler.xmltree import Node, parse_xml
from genesis_core.errors import SceneError

MAX_XML_BYTES = 64 * 2**20
MAX_ASSET_BYTES = 512 * 2**20
SCENE_SUFFIXES = (".xml", ".mjcf", ".urdf", ".toml", ".zip", ".mjz")
MESH_SUFFIXES = (".obj", ".stl", ".dae", ".glb", ".gltf", ".ply")
MAX_REPLICAS = 100_000
MAX_CELLS = 64_000_000  # of a height field or texture

# Attributes whose value is a word, so that "nan" or "inf" in it is no number.
_WORD_LIST = """
name class childclass file mesh material texture joint joint1 joint2 body body1 body2 geom geom1 geom2 site site1 site2
hfield tendon tendon1 tendon2 actuator objname refname target type plugin instance prefix key value data model
content_type link sidesite cranksite slidersite refsite jointinparent meshdir texturedir assetdir filename url camera
child parent
"""
_WORDS = frozenset(_WORD_LIST.split())
_INFINITE_ALLOWED = frozenset(("range", "ctrlrange", "forcerange", "actrange", "actuatorfrcrange", "lower", "upper"))
_NUMBER_WORD = re.compile(r"(?<![\w.])[+-]?(nan(?:\([^)]*\))?|inf(?:inity)?)(?![\w.])", re.IGNORECASE)


def check_file(path: str | os.PathLike[str], limit: int = MAX_ASSET_BYTES, what: str = "file") -> Path:
    """The path of a readable, non-empty regular file within the limit, or a SceneError that says what it is instead."""
    path = Path(os.path.expanduser(path))  # unlike Path.expanduser, this leaves unknown users alone
    try:
        info = path.stat()
    except FileNotFoundError:
        raise SceneError(f"no such {what}", file=path, hint=near_file(path)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SceneError(f"the {what} cannot be read: {reason}", file=path) from None
    if stat_module.S_ISDIR(info.st_mode):
        raise SceneError(f"this is a directory, not a {what}", file=path, hint=_inside(path))
    if not stat_module.S_ISREG(info.st_mode):
        raise SceneError(f"this is a device or pipe, not a {what}", file=path)
    if info.st_size == 0:
        raise SceneError(f"the {what} is empty", file=path)
    if info.st_size > limit:
        raise SceneError(
            f"the {what} has {info.st_size / 2**20:.0f} MiB, more than the {limit / 2**20:.0f} MiB that are read",
            file=path,
        )
    return path


def read_bytes(path: str | os.PathLike[str], limit: int = MAX_ASSET_BYTES, what: str = "file") -> bytes:
    """The content of a file after `check_file`."""
    path = check_file(path, limit, what)
    try:
        return path.read_bytes()
    except OSError as error:
        raise SceneError(f"the {what} cannot be read: {error.strerror}", file=path) from None


def read_text(path: str | os.PathLike[str], limit: int = MAX_XML_BYTES, what: str = "file") -> str:
    """UTF-8 text of a file; binary content and other encodings are SceneErrors."""
    return decode_text(read_bytes(path, limit, what), Path(path), what)


def decode_text(raw: bytes, path: Path, what: str = "file") -> str:
    """Text from bytes: UTF-8 with or without a byte-order mark."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SceneError("the text is UTF-16", file=path, hint="save it as UTF-8")
    if b"\0" in raw:
        line = raw.count(b"\n", 0, raw.index(b"\0")) + 1
        raise SceneError(f"this {what} is binary, not text", file=path, line=line, hint=_binary_kind(raw))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        if raw[0] > 127 and sum(byte > 127 for byte in raw[:512]) > 64:
            raise SceneError(f"this {what} is binary, not text", file=path, hint=_binary_kind(raw)) from None
        byte = raw[error.start]
        raise SceneError(
            f"byte 0x{byte:02x} is not UTF-8", file=path, line=line, hint="save the file as UTF-8"
        ) from None
    if not text.strip():
        raise SceneError(f"the {what} holds only white space", file=path)
    return text


def _binary_kind(raw: bytes) -> str:
    kinds = {
        b"PK": "zip archive",
        b"\x89PNG": "PNG picture",
        b"glTF": "glTF mesh",
        b"\x7fELF": "program",
        b"\x1f\x8b": "gzip file",
    }
    for head, kind in kinds.items():
        if raw.startswith(head):
            return f"it looks like a {kind}"
    return ""


def near_file(path: Path) -> str:
    """A hint: files with a similar name beside the missing one, or which folder does not exist."""
    folder = path.parent
    if not folder.is_dir():
        return f"the folder {folder} does not exist"
    try:
        names = [entry.name for entry in os.scandir(folder)][:10000]
    except OSError:
        return ""
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.75)
    return f"did you mean {folder / near[0]}?" if near else ""


def near_word(word: str, words: Iterable[str]) -> str:
    """A hint with the likeliest meant word."""
    near = difflib.get_close_matches(word, list(words), n=1, cutoff=0.5)
    return f"did you mean '{near[0]}'?" if near else ""


def _inside(path: Path) -> str:
    try:
        names = sorted(p.name for p in path.iterdir() if p.suffix.lower() in SCENE_SUFFIXES)
    except OSError:
        return ""
    return f"open a file in it: {', '.join(names[:5])}" if names else "it holds no scene file"


@dataclass
class XmlSource:
    """A parsed XML file with the files it includes: the elements by which faults are placed."""

    path: Path
    root: Node
    text: str
    files: list[Path] = field(default_factory=list)
    includes: list[Node] = field(default_factory=list)
    roots: list[Node] = field(default_factory=list)

    def nodes(self) -> Iterable[Node]:
        for root in self.roots:
            yield from root.walk()


def read_xml(path: str | os.PathLike[str]) -> XmlSource:
    """Parses an XML file and everything it includes, and checks what a parser of numbers would let through."""
    path = check_file(path, MAX_XML_BYTES)
    text = read_text(path)
    root = parse_xml(text, path)
    source = XmlSource(path, root, text, [path], [], [root])
    if root.tag == "mujoco":
        _read_includes(source)
    check_nodes(source.nodes())
    check_copies(source.roots)
    return source


def xml_from_text(text: str, label: str | Path = "<text>") -> XmlSource:
    """As `read_xml` for XML held in memory; includes are relative to the working directory."""
    path = Path(label)
    if not text.strip():
        raise SceneError("the text is empty", file=path)
    root = parse_xml(text, path)
    source = XmlSource(path, root, text, [], [], [root])
    if root.tag == "mujoco":
        _read_includes(source)
    check_nodes(source.nodes())
    check_copies(source.roots)
    return source


def _read_includes(source: XmlSource) -> None:
    """Parses included files (relative to the file that includes, or to the main one, as MuJoCo looks for them)."""
    main = source.path.parent
    seen = {source.path.resolve()}
    queue = [source.root]
    while queue:
        for node in queue.pop(0).walk():
            if node.tag != "include":
                continue
            source.includes.append(node)
            name = node.get("file")
            if not name:
                raise node.error("the include names no file", hint='write <include file="..."/>')
            tried = list(dict.fromkeys([node.file.parent / name, main / name]))
            found = next((p for p in tried if p.is_file()), None)
            if found is None:
                places = " and ".join(str(p) for p in tried)
                raise node.error(
                    f"the included file '{name}' does not exist", hint=near_file(tried[0]) or f"looked for {places}"
                )
            if found.resolve() in seen:
                raise node.error(
                    f"the file '{name}' is included twice", hint="MJCF allows each file once; remove one include"
                )
            seen.add(found.resolve())
            root = parse_xml(read_text(found, what="included file"), found)
            source.files.append(found)
            source.roots.append(root)
            queue.append(root)


def check_nodes(nodes: Iterable[Node]) -> None:
    """All checks of elements that MuJoCo's own parser leaves out."""
    nodes = list(nodes)
    check_text(nodes)
    check_numbers(nodes)
    check_sizes(nodes)


def check_text(nodes: Iterable[Node]) -> None:
    """Refuses per cent signs in names: MuJoCo 4.0 uses them as a print format in messages, which ends the process."""
    for node in nodes:
        if "%" in node.tag:
            raise node.error(f"the element <{node.tag}> is unknown")
        for name, value in node.attributes.items():
            free = node.tag in ("text", "custom") or name == "filename"
            if "%" in name or ("%" in value and not free):
                raise node.error(f'{name}="{value}" holds a per cent sign', hint="rename it without '%'")


def check_numbers(nodes: Iterable[Node]) -> None:
    """Refuses NaN and infinity in attributes that hold numbers (infinite limits of ranges are fine)."""
    for node in nodes:
        for name, value in node.attributes.items():
            if name in _WORDS or node.tag in ("text", "tuple", "element", "config", "plugin", "param"):
                continue
            found = _NUMBER_WORD.search(value)
            if found is None:
                continue
            infinite = found.group(1).lower().startswith("inf")
            if infinite and name in _INFINITE_ALLOWED:
                continue
            raise node.error(
                f'attribute {name}="{value}" holds {"an infinite number" if infinite else "NaN (not a number)"}',
                hint="write a finite number",
            )


def check_sizes(nodes: Iterable[Node]) -> None:
    """Refuses counts that would keep the compiler busy for hours or fill the memory."""
    for node in nodes:
        if node.tag == "replicate":
            _limit(node, ("count",), MAX_REPLICAS, "copies")
        elif node.tag == "hfield":
            _limit(node, ("nrow", "ncol"), MAX_CELLS, "cells")
        elif node.tag == "texture":
            _limit(node, ("width", "height"), MAX_CELLS, "pixels")
        elif node.tag in ("composite", "flexcomp"):
            _limit(node, ("count",), MAX_REPLICAS, "elements")
        elif node.tag == "option" and "timestep" in node.attributes:
            value = number(node.attributes["timestep"])
            if value is not None and value <= 0:
                raise node.error(
                    f'timestep="{node.attributes["timestep"]}" is not positive', hint="0.002 is MuJoCo's default [s]"
                )


def check_copies(roots: Iterable[Node]) -> None:
    """Refuses replicates inside of replicates that multiply to more than can be built."""
    stack = [(root, 1.0) for root in roots]
    while stack:
        node, factor = stack.pop()
        if node.tag == "replicate":
            factor *= max(number(node.get("count")) or 1.0, 1.0)
            if factor > MAX_REPLICAS:
                what = f"replicates inside of each other make {factor:.3g} copies, more than {MAX_REPLICAS:.3g}"
                raise node.error(what, hint="make the counts smaller")
        stack.extend((child, factor) for child in node.children)


def _limit(node: Node, names: tuple[str, ...], limit: int, what: str) -> None:
    total = 1.0
    for name in names:
        for word in node.get(name).split():
            value = number(word)
            total *= max(value, 1.0) if value is not None and math.isfinite(value) else 1.0
    if total > limit:
        values = " ".join(f'{name}="{node.get(name)}"' for name in names if node.get(name))
        raise node.error(
            f"{values} makes {total:.3g} {what}, more than the {limit:.3g} that are built", hint="make it smaller"
        )


def number(word: str) -> float | None:
    """A number from a word, None where it is none."""
    try:
        return float(word)
    except ValueError:
        return None

"""XML as small nodes that know their file and line, read by expat; no entities, no network, no recursion."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from genesis_core.errors import SceneError

MAX_DEPTH = 200  # MuJoCo's own parser stops at 500 and recurses on the way


@dataclass(eq=False)
class Node:
    """One element: tag, attributes in file order, children, text, and where its start tag begins."""

    tag: str
    attributes: dict[str, str]
    file: Path
    line: int
    end_line: int = 0
    children: list[Node] = field(default_factory=list)
    text: str = ""

    def walk(self) -> Iterator[Node]:
        """This element and all below it, in file order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def find(self, tag: str) -> Node | None:
        """The first child with a tag."""
        return next((c for c in self.children if c.tag == tag), None)

    def all(self, tag: str) -> list[Node]:
        """All children with a tag."""
        return [c for c in self.children if c.tag == tag]

    def get(self, name: str, default: str = "") -> str:
        return self.attributes.get(name, default)

    @property
    def label(self) -> str:
        """Tag and name as messages show them: `geom "foot"`."""
        name = self.get("name") or self.get("class")
        return f'{self.tag} "{name}"' if name else self.tag

    def error(self, what: str, hint: str = "") -> SceneError:
        """A SceneError at this element."""
        return SceneError(what, file=self.file, line=self.line, element=self.label, hint=hint)


class _Builder:
    """Makes nodes out of expat's events."""

    def __init__(self, file: Path, parser: expat.XMLParserType) -> None:
        self.file = file
        self.parser = parser
        self.root: Node | None = None
        self.open: list[Node] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        node = Node(tag, attributes, self.file, self.parser.CurrentLineNumber)
        if self.open:
            self.open[-1].children.append(node)
        else:
            self.root = node
        self.open.append(node)
        if len(self.open) > MAX_DEPTH:
            raise node.error(
                f"elements are nested more than {MAX_DEPTH} deep",
                hint="split the chain, or check for a missing end tag",
            )

    def end(self, tag: str) -> None:
        self.open.pop().end_line = self.parser.CurrentLineNumber

    def data(self, text: str) -> None:
        if self.open and not text.isspace():
            self.open[-1].text += text

    def entity(self, name: str, *rest: object) -> None:
        raise SceneError(
            f"the entity '&{name};' is declared; entities are not read",
            file=self.file,
            line=self.parser.CurrentLineNumber,
            hint="write the text itself in its place",
        )


def parse_xml(text: str, file: Path) -> Node:
    """The root element; a SceneError with line and column where the text is not well-formed.

    Dashes inside comments, which many robot files have and expat rejects, are let through.
    """
    text = re.sub(r"<!--.*?-->", _blank_comment, text, flags=re.DOTALL)
    text = re.sub(r"^\s*<\?xml.*?\?>", _blank, text, count=1, flags=re.DOTALL)  # the text is decoded already
    parser = expat.ParserCreate("utf-8")
    builder = _Builder(file, parser)
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = builder.entity
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        raise _syntax_error(error, builder, text, file) from None
    if builder.root is None:
        raise SceneError("the file holds no XML element", file=file, hint="is it a scene or robot file?")
    return builder.root


def _syntax_error(error: expat.ExpatError, builder: _Builder, text: str, file: Path) -> SceneError:
    message = expat.ErrorString(error.code)
    if builder.root is None and not text.lstrip().startswith("<"):
        first = text.strip().splitlines()[0][:40] if text.strip() else ""
        return SceneError(f"not XML: the text begins with {first!r}", file=file, line=1)
    hint = ""
    element = ""
    if builder.open:
        last = builder.open[-1]
        element = last.label
        if error.code in (3, 5) or message in ("no element found", "unclosed token"):
            hint = f"the file ends inside <{last.label}> of line {last.line}: it seems cut off"
        elif message == "mismatched tag":
            hint = f"<{last.label}> of line {last.line} is not closed"
        elif message == "duplicate attribute":
            hint = "an attribute is given twice in one element"
    return SceneError(
        f"{message} at column {error.offset + 1}", file=file, line=error.lineno, element=element, hint=hint
    )


def _blank(match: re.Match[str]) -> str:
    """Spaces in place of the text, line breaks kept, so that lines stay where they are."""
    return re.sub(r"[^\n]", " ", match.group())


def _blank_comment(match: re.Match[str]) -> str:
    inner = match.group()[4:-3]
    return "<!--" + re.sub(r"[^\n]", " ", inner) + "-->"

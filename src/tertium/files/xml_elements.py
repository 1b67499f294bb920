"""Read XML files of any size element by element, with the byte position of every tag and text.

The parser is Expat, without namespaces: names keep their prefix, so that files with prefixes that
nobody declared can be read. Declarations of entities are refused, because a few of them can expand
to gigabytes.

`InlineReader` replaces inline markup by placeholders that metrics and checks can read. A code that
stands alone becomes `{id}`, the two ends of a pair become `<gid>` and `</gid>`, so that checks of
placeholders and tags compare source and translation. Annotations (`mrk`) vanish.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO
from xml.parsers import expat

from tertium.core.errors import DataError
from tertium.files.units import InlineText, Range, join_surrogates

CHUNK = 1 << 16
MAX_DEPTH = 200
XML_LANGUAGE = "xml:lang"
_UTF16_STARTS = {
    b"\xff\xfe": "utf-16-le",
    b"\xfe\xff": "utf-16-be",
    b"<\0": "utf-16-le",  # without a mark
    b"\0<": "utf-16-be",
}


class Text(str):
    """Characters with their place in the file; an entity or a line end is a text of its own."""

    __slots__ = ("end", "start")
    start: int
    end: int


@dataclass(slots=True)
class Element:
    """An element; `start` and `end` are the bytes of its tags, `inner` those of its content.

    `inner_start == end` for an empty element, `<x/>`. `blanks` is the range of the blanks before
    it. Wanted elements have `children` and `parents`, the root first.
    """

    name: str
    local: str  # the name without its prefix
    attributes: dict[str, str]
    blanks: Range
    start: int
    line: int
    inner_start: int = -1
    inner_end: int = -1
    end: int = -1
    parents: tuple[Element, ...] = ()
    children: list[Element | Text] = field(default_factory=list)

    def elements(self, *names: str) -> list[Element]:
        """Return the direct children with one of some local names, or all."""
        children = [child for child in self.children if isinstance(child, Element)]
        return [child for child in children if child.local in names] if names else children

    def first(self, name: str) -> Element | None:
        """Return the first direct child with a local name."""
        return next(iter(self.elements(name)), None)

    def descendants(self) -> Iterator[Element]:
        """Yield all elements below this one in order."""
        for child in self.elements():
            yield child
            yield from child.descendants()

    def text(self) -> str:
        """Return all text below this element."""
        return "".join(c if isinstance(c, str) else c.text() for c in self.children)

    def get(self, name: str, default: str = "") -> str:
        """Return the attribute of a full name."""
        return self.attributes.get(name, default)

    def get_local(self, name: str) -> str:
        """Return the first attribute with a local name, whatever its prefix."""
        for key, value in self.attributes.items():
            if key.rpartition(":")[2] == name:
                return value
        return ""


class XmlFile:
    """An XML file that is read once: iterate over `elements` or `units`.

    `encoding` is known as soon as the first element was read. `data` is the content, if it was read
    from an archive; `path` names it in messages. Elements with the local names `wanted` are read
    with all they contain.
    """

    def __init__(self, path: str, wanted: Collection[str], data: bytes | None = None) -> None:
        self.path = path
        self.wanted = frozenset(wanted)
        self.data = data
        self.encoding = "utf-8"
        self._parser = self._create_parser()
        self._ready: list[Element] = []
        self._stack: list[Element] = []
        self._wanted_depth = 0
        # the last tag or text, whose end is known when something follows
        self._open: Element | Text | None = None
        self._end_name = ""
        self._blank_start = -1

    def units(self) -> Iterator[Element]:
        """Yield the wanted elements."""
        return islice(self.elements(), 1, None)

    def elements(self) -> Iterator[Element]:
        """Yield the root without its content, then the wanted elements with all they contain."""
        try:
            with io.BytesIO(self.data) if self.data else Path(self.path).open("rb") as stream:
                content = self._detect_encoding(stream)
                while chunk := content.read(CHUNK):
                    self._feed(chunk)
                    while self._ready and self._ready[0].end >= 0:
                        yield self._ready.pop(0)
            self._feed(b"", is_last=True)
            self._begin()
        except FileNotFoundError:
            raise DataError(f"{self.path}: no such file") from None
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{self.path}: cannot be read ({error})") from None
        yield from self._ready

    def _detect_encoding(self, stream: IO[bytes]) -> IO[bytes] | gzip.GzipFile:
        head = stream.read(4)
        stream.seek(0)
        for start, encoding in _UTF16_STARTS.items():
            if head.startswith(start):
                self.encoding = encoding
        return gzip.GzipFile(fileobj=stream) if head.startswith(b"\x1f\x8b") else stream

    def _create_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate()
        parser.buffer_text = False  # every text keeps its position
        parser.XmlDeclHandler = self._declare
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.EntityDeclHandler = lambda *_: self._refuse(
            "declares entities, which are refused: write the characters themselves"
        )
        parser.SkippedEntityHandler = lambda name, _: self._refuse(
            f"the entity &{name}; is not defined: write the character itself"
        )
        parser.CommentHandler = parser.ProcessingInstructionHandler = self._begin
        parser.StartCdataSectionHandler = parser.EndCdataSectionHandler = self._begin
        return parser

    def _feed(self, chunk: bytes, *, is_last: bool = False) -> None:
        try:
            self._parser.Parse(chunk, is_last)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise DataError(
                f"{self.path}, line {error.lineno}: not well-formed XML ({reason})"
            ) from None
        except (LookupError, ValueError) as error:  # an encoding that Python does not know
            raise DataError(f"{self.path}: cannot be decoded ({error})") from None

    def _refuse(self, reason: str) -> None:
        raise DataError(f"{self.path}, line {self._parser.CurrentLineNumber}: {reason}")

    def _declare(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding and not self.encoding.startswith("utf-16"):
            self.encoding = encoding.lower()

    def _begin(self, *_: object) -> Range:
        """Set the end of the last tag or text, since the next one begins.

        Returns where the blanks before it begin, and where they end.
        """
        index = self._parser.CurrentByteIndex
        if self._open:
            setattr(self._open, self._end_name, index)
        self._open = None
        blanks = (index if self._blank_start < 0 else self._blank_start), index
        self._blank_start = -1
        return blanks

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        blanks = self._begin()
        line = self._parser.CurrentLineNumber
        local = name.rpartition(":")[2]
        element = Element(name, local, attributes, blanks, blanks[1], line)
        if len(self._stack) >= MAX_DEPTH:
            self._refuse(f"more than {MAX_DEPTH} nested elements")
        if not self._stack:
            element.end = 0  # the root is yielded before its end
            self._ready.append(element)
        if self._wanted_depth:
            self._stack[-1].children.append(element)
        elif local in self.wanted:
            element.parents = (*self._stack,)
        self._wanted_depth += bool(self._wanted_depth) or local in self.wanted
        self._stack.append(element)
        self._open = element
        self._end_name = "inner_start"

    def _end(self, _name: str) -> None:
        _, index = self._begin()
        element = self._stack.pop()
        element.inner_end = index
        self._open = element
        self._end_name = "end"
        if self._wanted_depth:
            self._wanted_depth -= 1
            if not self._wanted_depth:
                self._ready.append(element)

    def _text(self, text: str) -> None:
        blank_start, index = self._begin()
        if text.isspace():
            self._blank_start = blank_start
        if self._wanted_depth:
            child = Text(text)
            child.start = index
            self._stack[-1].children.append(child)
            self._open = child
            self._end_name = "end"


def root_element(path: str) -> Element:
    """Return the root element of an XML file without its content."""
    return next(XmlFile(path, ()).elements())


_SINGLE = "{{{}}}"
_OPEN = "<g{}>"
_CLOSE = "</g{}>"
# placeholders of the inline elements of XLIFF 1, XLIFF 2 and TMX
_CODES = {
    **dict.fromkeys(("x", "ph", "it", "ut"), _SINGLE),
    **dict.fromkeys(("bx", "bpt", "sc"), _OPEN),
    **dict.fromkeys(("ex", "ept", "ec"), _CLOSE),
}
_PAIRS = ("g", "pc")
# attributes with the name of a code, the name of its pair first
_IDS = ("startRef", "rid", "i", "id", "x")
_WORD = re.compile(r"\w{1,40}", re.ASCII)


class InlineReader:
    """Converts the elements of one unit to texts with placeholders.

    An id that is missing or unusual is replaced by a number, the same one in source and
    translation.
    """

    def __init__(self, file: XmlFile) -> None:
        self.file = file
        self._numbers: dict[str, str] = {}

    def read(self, element: Element | None) -> InlineText | None:
        """Return the text of an element, if there is one."""
        if element is None:
            return None
        pieces = [*self._walk(element)]
        text = InlineText("".join(piece for piece, _, _ in pieces))
        text.pieces = tuple((len(piece), start, end) for piece, start, end in pieces)
        return text

    def _walk(self, element: Element) -> Iterator[tuple[str, int, int]]:
        """Yield texts and placeholders with their first byte and the byte after the last."""
        for child in element.children:
            if isinstance(child, Text):
                yield child, child.start, child.end
            elif child.local == "cp":
                yield self._character(child), child.start, child.end
            elif child.local in _CODES:
                placeholder = _CODES[child.local].format(self._name(child))
                yield placeholder, child.start, child.end
            elif child.local in _PAIRS:
                name = self._name(child)
                yield _OPEN.format(name), child.start, child.inner_start
                yield from self._walk(child)
                yield _CLOSE.format(name), child.inner_end, child.end
            else:  # an annotation: its text is part of the sentence
                yield from self._walk(child)

    def _name(self, element: Element) -> str:
        name = next(filter(None, map(element.get, _IDS)), "")
        if _WORD.fullmatch(name):
            return name
        return self._numbers.setdefault(name, f"n{len(self._numbers) + 1}")

    def _character(self, element: Element) -> str:
        """Return the character of a `cp`; a surrogate becomes U+FFFD."""
        try:
            return join_surrogates(chr(int(element.get("hex"), 16)))
        except (ValueError, OverflowError):
            raise DataError(
                f"{self.file.path}, line {element.line}: <cp> is not a code point such as 001A"
            ) from None

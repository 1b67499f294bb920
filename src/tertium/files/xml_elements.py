"""Read XML files of any size element by element, with the byte position of every tag and text.

The parser is Expat, without namespaces: names keep their prefix, so that files with prefixes that
nobody declared can be read. Declarations of entities are refused, because a few of them can expand
to gigabytes.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from xml.parsers import expat

from tertium.core.errors import DataError
from tertium.data.text_files import display_name

CHUNK = 1 << 16
MAX_DEPTH = 200
XML_LANGUAGE = "xml:lang"
_UTF16_STARTS = {
    b"\xff\xfe": "utf-16-le",
    b"\xfe\xff": "utf-16-be",
    b"<\0": "utf-16-le",  # without a mark
    b"\0<": "utf-16-be",
}


@dataclass(slots=True)
class Text:
    """Characters with their place in the file; an entity or a line end is a text of its own."""

    text: str
    start: int
    end: int = -1


@dataclass(slots=True)
class Element:
    """An element; `start` and `end` are the bytes of its tags, `inner` those of its content.

    `inner_start == end` for an empty element, `<x/>`. `children` are kept below wanted elements.
    """

    name: str
    local: str  # the name without its prefix
    attributes: dict[str, str]
    start: int
    line: int
    inner_start: int = -1
    inner_end: int = -1
    end: int = -1
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
        return "".join(c.text if isinstance(c, Text) else c.text() for c in self.children)

    def get(self, name: str, default: str = "") -> str:
        """Return the attribute of a full name."""
        return self.attributes.get(name, default)

    def get_local(self, name: str) -> str:
        """Return the first attribute with a local name, whatever its prefix."""
        for key, value in self.attributes.items():
            if key.rpartition(":")[2] == name:
                return value
        return ""

    def drop_texts(self, depth: int) -> None:
        """Forget the texts of an element, and elements that are deeper than `depth`."""
        self.children = [*self.elements()] if depth else []
        for child in self.elements():
            child.drop_texts(depth - 1)


class XmlFile:
    """An XML file that is read once: iterate over `events` or `units`.

    `encoding` is known as soon as the first element was read. `data` is the content, if it was read
    from an archive; `path` names it in messages. Elements with the local names `wanted` are read
    with all they contain. `text_depth` is 2 if they have no texts of their own, only below.
    """

    def __init__(
        self, path: str, wanted: Collection[str], data: bytes | None = None, text_depth: int = 1
    ) -> None:
        self.path, self.wanted, self.data = path, frozenset(wanted), data
        self.text_depth = text_depth
        self.encoding, self.is_compressed = "utf-8", False
        self._parser = self._create_parser()
        self._wanted_depth = 0
        self._ready: list[tuple[str, Element]] = []
        self._stack: list[Element] = []
        # the last tag or text, whose end is known when the next one begins
        self._open_tag: Element | None = None
        self._closed: Element | Text | None = None
        self._has_mark = False

    def units(self) -> Iterator[Element]:
        """Yield the wanted elements."""
        for event, element in self.events():
            if event == "unit":
                yield element

    def events(self) -> Iterator[tuple[str, Element]]:
        """Yield ("start", element) for elements outside of wanted ones, ("unit", element) for each
        wanted element with all it contains, and ("end", element) for the others.
        """
        in_memory = io.BytesIO(self.data) if self.data is not None else None
        try:
            with in_memory or Path(self.path).open("rb") as stream:
                content = self._detect_encoding(stream)
                while chunk := content.read(CHUNK):
                    self._feed(chunk, False)
                    # the end of the last element is not known yet
                    complete, self._ready = self._ready[:-1], self._ready[-1:]
                    yield from complete
            self._feed(b"", True)
            self._resolve()
        except FileNotFoundError:
            raise DataError(f"{self.path}: no such file") from None
        except (OSError, EOFError, zlib.error) as error:
            problem = "damaged gzip file" if self.is_compressed else "cannot be read"
            raise DataError(f"{self.path}: {problem} ({error})") from None
        yield from self._ready

    def _detect_encoding(self, stream: IO[bytes]) -> IO[bytes] | gzip.GzipFile:
        head = stream.read(4)
        stream.seek(0)
        for start, encoding in _UTF16_STARTS.items():
            if head.startswith(start):
                self.encoding, self._has_mark = encoding, True
        self.is_compressed = head.startswith(b"\x1f\x8b")
        return gzip.GzipFile(fileobj=stream) if self.is_compressed else stream

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
        parser.CommentHandler = parser.ProcessingInstructionHandler = self._resolve
        parser.StartCdataSectionHandler = parser.EndCdataSectionHandler = self._resolve
        return parser

    def _feed(self, chunk: bytes, is_last: bool) -> None:
        try:
            self._parser.Parse(chunk, is_last)
        except expat.ExpatError as error:
            name, reason = display_name(self.path), expat.ErrorString(error.code)
            raise DataError(
                f"{name}, line {error.lineno}: not well-formed XML ({reason})"
            ) from None
        except (LookupError, ValueError) as error:  # an encoding that Python does not know
            raise DataError(f"{self.path}: cannot be decoded ({error})") from None

    def _refuse(self, reason: str) -> None:
        line = self._parser.CurrentLineNumber
        raise DataError(f"{display_name(self.path)}, line {line}: {reason}")

    def _declare(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding and not self._has_mark:
            self.encoding = encoding.lower()

    def _resolve(self, *_: object) -> int:
        """Set the end of the last tag or text, since the next one begins; return this position."""
        index = self._parser.CurrentByteIndex
        if self._open_tag is not None:
            self._open_tag.inner_start, self._open_tag = index, None
        elif self._closed is not None:
            self._closed.end, self._closed = index, None
        return index

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        index, line = self._resolve(), self._parser.CurrentLineNumber
        local = name.rpartition(":")[2] if ":" in name else name
        element = Element(name, local, attributes, index, line)
        if len(self._stack) >= MAX_DEPTH:
            self._refuse(f"more than {MAX_DEPTH} nested elements")
        if self._wanted_depth:
            self._stack[-1].children.append(element)
        if self._wanted_depth or element.local in self.wanted:
            self._wanted_depth += 1
        else:
            self._ready.append(("start", element))
        self._stack.append(element)
        self._open_tag = element

    def _end(self, _name: str) -> None:
        index, element = self._resolve(), self._stack.pop()
        element.inner_end = index
        self._closed = element
        if self._wanted_depth:
            self._wanted_depth -= 1
            if not self._wanted_depth:
                self._ready.append(("unit", element))
        else:
            self._ready.append(("end", element))

    def _text(self, text: str) -> None:
        index = self._resolve()
        if self._wanted_depth >= self.text_depth:
            self._closed = Text(text, index)
            self._stack[-1].children.append(self._closed)


def root_element(path: str) -> Element:
    """Return the root element of an XML file without its content."""
    return next(XmlFile(path, ()).events())[1]

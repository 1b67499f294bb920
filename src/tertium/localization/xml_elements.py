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
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from xml.parsers import expat

from tertium.data.text_files import display_name
from tertium.errors import DataError

CHUNK = 1 << 16
MAX_DEPTH = 200
XML_LANGUAGE = "xml:lang"
_BYTE_ORDERS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


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

    @property
    def is_empty_tag(self) -> bool:
        """Whether the element is written as one tag, `<x/>`."""
        return self.inner_start == self.end

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
        return next((v for key, v in self.attributes.items() if key.rpartition(":")[2] == name), "")


class XmlFile:
    """An XML file that is read once: iterate over `elements`.

    `encoding` is known as soon as the first element was read. `data` is the content, if it was read
    from an archive; `path` names it in messages. `structure` are elements that have no text of
    their own: their blanks are skipped.
    """

    def __init__(
        self,
        path: str | Path,
        wanted: Collection[str],
        data: bytes | None = None,
        structure: Collection[str] = (),
    ) -> None:
        self.path, self.wanted, self.data = str(path), frozenset(wanted), data
        self.encoding, self.is_compressed = "utf-8", False
        self._wanted_depth = 0
        self._ready: list[tuple[str, Element]] = []
        self._stack: list[Element] = []
        self._structure: Collection[str] = structure
        # the last tag or text, whose end is known when the next one begins
        self._open_tag: Element | None = None
        self._closed: Element | Text | None = None
        self._has_mark = False

    def elements(self) -> Iterator[tuple[str, Element]]:
        """Yield ("start", element) for elements outside of wanted ones, ("unit", element) for each
        wanted element with all it contains, and ("end", element) for the others.
        """
        parser = self._create_parser()
        try:
            with self._open() as stream:
                while chunk := stream.read(CHUNK):
                    self._feed(parser, chunk, False)
                    yield from self._take_complete()
            self._feed(parser, b"", True)
        except FileNotFoundError:
            raise DataError(f"{self.path}: no such file") from None
        except (OSError, EOFError, zlib.error) as error:
            problem = "damaged gzip file" if self.is_compressed else "cannot be read"
            raise DataError(f"{self.path}: {problem} ({error})") from None
        yield from self._ready

    @contextmanager
    def _open(self) -> Iterator[IO[bytes] | gzip.GzipFile]:
        in_memory = io.BytesIO(self.data) if self.data is not None else None
        with in_memory or Path(self.path).open("rb") as stream:
            head = stream.read(4)
            stream.seek(0)
            for mark, encoding in _BYTE_ORDERS:
                if head.startswith(mark):
                    self.encoding, self._has_mark = encoding, True
            if not self._has_mark and b"\0" in head[:2]:  # UTF-16 without a mark
                self.encoding = "utf-16-le" if head[1] == 0 else "utf-16-be"
                self._has_mark = True
            self.is_compressed = head.startswith(b"\x1f\x8b")
            yield gzip.GzipFile(fileobj=stream) if self.is_compressed else stream

    def _create_parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate()
        parser.buffer_text = False  # every text keeps its position
        parser.XmlDeclHandler = self._declare
        parser.StartElementHandler = lambda name, attributes: self._start(parser, name, attributes)
        parser.EndElementHandler = lambda name: self._end(parser.CurrentByteIndex)
        parser.CharacterDataHandler = lambda text: self._text(parser.CurrentByteIndex, text)
        parser.EntityDeclHandler = lambda *_: self._refuse(
            parser, "declares entities, which are refused: write the characters themselves"
        )
        parser.SkippedEntityHandler = lambda name, _: self._refuse(
            parser, f"the entity &{name}; is not defined: write the character itself"
        )
        at = self._resolve
        parser.CommentHandler = lambda _: at(parser.CurrentByteIndex)
        parser.ProcessingInstructionHandler = lambda *_: at(parser.CurrentByteIndex)
        parser.StartCdataSectionHandler = lambda: at(parser.CurrentByteIndex)
        parser.EndCdataSectionHandler = lambda: at(parser.CurrentByteIndex)
        return parser

    def _feed(self, parser: expat.XMLParserType, chunk: bytes, is_last: bool) -> None:
        try:
            parser.Parse(chunk, is_last)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            name = display_name(self.path)
            raise DataError(
                f"{name}, line {error.lineno}: not well-formed XML ({reason})"
            ) from None
        except (LookupError, ValueError) as error:  # an encoding that Python does not know
            raise DataError(f"{self.path}: cannot be decoded ({error})") from None
        if is_last:
            self._resolve(parser.CurrentByteIndex)

    def _take_complete(self) -> list[tuple[str, Element]]:
        """Return all elements but the last, whose end is not known yet."""
        complete, self._ready = self._ready[:-1], self._ready[-1:]
        return complete

    def _refuse(self, parser: expat.XMLParserType, reason: str) -> None:
        raise DataError(f"{display_name(self.path)}, line {parser.CurrentLineNumber}: {reason}")

    def _declare(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding and not self._has_mark:
            self.encoding = encoding.lower()

    def _resolve(self, index: int) -> None:
        """Set the ends of tags and texts that are known only when the next one begins."""
        if self._open_tag is not None:
            self._open_tag.inner_start, self._open_tag = index, None
        elif self._closed is not None:
            self._closed.end, self._closed = index, None

    def _start(self, parser: Any, name: str, attributes: dict[str, str]) -> None:
        index = parser.CurrentByteIndex
        self._resolve(index)
        local = name.rpartition(":")[2] if ":" in name else name
        element = Element(name, local, attributes, index, parser.CurrentLineNumber)
        if len(self._stack) >= MAX_DEPTH:
            self._refuse(parser, f"more than {MAX_DEPTH} nested elements")
        if self._wanted_depth:
            self._stack[-1].children.append(element)
        if self._wanted_depth or element.local in self.wanted:
            self._wanted_depth += 1
        else:
            self._ready.append(("start", element))
        self._stack.append(element)
        self._open_tag = element

    def _end(self, index: int) -> None:
        self._resolve(index)
        element = self._stack.pop()
        element.inner_end = index
        self._closed = element
        if self._wanted_depth:
            self._wanted_depth -= 1
            if not self._wanted_depth:
                self._ready.append(("unit", element))
        else:
            self._ready.append(("end", element))

    def _text(self, index: int, text: str) -> None:
        self._resolve(index)
        if self._wanted_depth and self._stack[-1].local not in self._structure:
            self._closed = Text(text, index)
            self._stack[-1].children.append(self._closed)

"""Scores and findings of units as texts, and the edits of a file that insert them.

A reader keeps the `Place` of each unit: the byte positions of what is inserted and of what an
earlier run inserted, with the blanks before it. Writing twice therefore changes nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any
from xml.sax.saxutils import escape

from tertium.core.spans import Span
from tertium.files.units import InlineText, Range, Unit
from tertium.files.xml_elements import Element
from tertium.text.printable import FORBIDDEN_IN_XML

NO_BLANKS = (0, 0)
PRIORITIES = {"critical": 1, "major": 2, "minor": 3}
DEFAULT_PRIORITY = 5


@dataclass(frozen=True, slots=True)
class Annotation:
    """What to write about one unit: scores by metric, findings, and a confidence from 0 to 1."""

    scores: Mapping[str, float] = field(default_factory=dict)
    findings: Sequence[Span] = ()
    confidence: float = math.nan

    def format_scores(self) -> dict[str, str]:
        """Return the scores with six digits; missing ones are omitted.

        >>> Annotation({"chrf": 54.0, "comet": 0.123456789}).format_scores()
        {'chrf': '54', 'comet': '0.123457'}
        """
        scores = self.scores.items()
        return {name: f"{value:.6g}" for name, value in scores if value == value}


Annotated = Sequence[tuple[Unit, Annotation]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the annotations of a unit are put; `removed` are those of an earlier run.

    An annotation is a `template` with the fields text, kind, priority and side, after the same
    `blanks`. With `tags`, all are put into a new element, which has `outer_blanks` before its tags.
    If several units share the place, the name of the unit comes first, as a `label`. `scores` is
    where tools for translators look for scores; the notes have them too unless `has_scores` is
    False.
    """

    position: int
    template: str
    removed: tuple[Range, ...] = ()
    blanks: Range = NO_BLANKS
    tags: tuple[str, str] = ("", "")
    outer_blanks: Range = NO_BLANKS
    label: str = "[{}] "
    has_scores: bool = True
    scores: Place | None = None

    def format(self, annotated: Annotated, edits: FileEdits) -> Iterator[str]:
        """Yield a text with all scores, and one for each finding."""
        for unit, annotation in annotated:
            label = self.label.format(short_name(unit)) if len(annotated) > 1 else ""
            texts = []
            scores = annotation.format_scores()
            if scores and self.has_scores:
                text = "; ".join(f"{name}: {score}" for name, score in scores.items())
                texts.append(("scores", text, DEFAULT_PRIORITY, "general"))
            for span in annotation.findings:
                side = "source" if span.side == "source" else "target"
                description = edits.describe(span, getattr(unit, side) or "")
                priority = PRIORITIES.get(span.severity, DEFAULT_PRIORITY)
                texts.append(("finding", description, priority, side))
            for kind, text, priority, side in texts:
                text = edits.escape(label + text)
                yield self.template.format(kind=kind, text=text, priority=priority, side=side)


def short_name(unit: Unit) -> str:
    """Return the name of a segment or plural form without that of its unit."""
    return unit.plural or unit.id.rpartition(":")[2]


class FileEdits:
    """Edits of the bytes of a file, or of a memory map: what to remove, and what to put there."""

    def __init__(self, data: Any, encoding: str, *, is_xml: bool = True) -> None:
        self.data = data
        self.encoding = encoding
        self.is_xml = is_xml
        self.replaced: list[tuple[int, int, bytes]] = []  # first byte, byte after the last, new

    def annotate(self, place: Place, annotated: Annotated) -> None:
        """Replace the annotations of an earlier run."""
        if place.scores:
            self.annotate(place.scores, annotated)
        for start, end in place.removed:
            self.replace(start, end)
        blanks = self.text(*place.blanks)
        outer_blanks = self.text(*place.outer_blanks)
        if texts := [blanks + text for text in place.format(annotated, self)]:
            opening, closing = (outer_blanks + tag for tag in place.tags)
            self.replace(place.position, place.position, opening + "".join(texts) + closing)

    def replace(self, start: int, end: int, text: str = "") -> None:
        """Put a text in the place of bytes; references replace what the encoding of XML lacks."""
        new = text.encode(self.encoding, "xmlcharrefreplace" if self.is_xml else "replace")
        self.replaced.append((start, end, new))

    def text(self, start: int, end: int) -> str:
        """Return bytes as text."""
        return bytes(self.data[start:end]).decode(self.encoding)

    def escape(self, text: str) -> str:
        """Return a text as the file writes it."""
        return escape_xml(text) if self.is_xml else FORBIDDEN_IN_XML.sub("\ufffd", text)

    def describe(self, span: Span, text: str) -> str:
        """Describe a finding; the marked text is as the file writes it, with its markup."""
        if not isinstance(text, InlineText):
            return describe_finding(span, text)
        ranges: list[Range] = []
        offset = 0
        for length, low, high in text.pieces:
            after = offset + length
            if offset < span.end and span.start < after:
                if self._size(text[offset:after]) == high - low:  # as it is written
                    low += self._size(text[offset : span.start])
                    high -= self._size(text[span.end : after])
                ranges.append((low, high))
            offset = after
        marked = self.text(ranges[0][0], ranges[-1][1]) if ranges else ""
        return describe_finding(span, text, marked)

    def _size(self, text: str) -> int:
        return len(text.encode(self.encoding, "replace"))

    def write(self, stream: IO[bytes]) -> None:
        """Write the file with its edits."""
        position = 0
        with memoryview(self.data) as view:
            for start, end, added in sorted(self.replaced, key=lambda edit: edit[:2]):
                stream.write(view[position:start])
                stream.write(added)
                position = end
            stream.write(view[position:])


def escape_xml(text: str) -> str:
    """Return a text as XML writes it; characters that it does not allow become U+FFFD.

    >>> escape_xml('"a" < b\\x00')
    '"a" &lt; b�'
    """
    return escape(FORBIDDEN_IN_XML.sub("\ufffd", text))


def describe_finding(span: Span, text: str, marked: str = "") -> str:
    """Return category, severity, message and marked text of a finding in one line."""
    description = f"{span.category or 'error'} ({span.severity})"
    if span.message:
        description += f": {span.message}"
    if text and (span.start, span.end) != (0, len(text)):
        side = "source" if span.side == "source" else "translation"
        description += f" [{side}: {marked or span.of(text)}]"
    return " ".join(description.split())


def blanks_and_element(elements: Iterable[Element]) -> tuple[Range, ...]:
    """Return the ranges of elements with the blanks before them."""
    return tuple((element.blanks[0], element.end) for element in elements)

"""Scores and findings of units as texts, and the edits of a file that insert them.

Elements that an earlier run inserted are removed with the blanks before them, so that writing twice
changes nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from tertium.core.spans import Span
from tertium.files.units import InlineText, Unit
from tertium.files.xml_elements import Element

FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Annotation:
    """What to write about one unit: scores by metric, findings, and a confidence from 0 to 1."""

    scores: Mapping[str, float] = field(default_factory=dict)
    findings: Sequence[Span] = ()
    confidence: float | None = None

    def format_scores(self) -> dict[str, str]:
        """Return the scores with six digits; missing ones are omitted."""
        scores = self.scores.items()
        return {name: format_score(score) for name, score in scores if not math.isnan(score)}

    def describe_scores(self) -> list[str]:
        """Return one line with all scores, nothing if there are none."""
        scores = [f"{name}: {score}" for name, score in self.format_scores().items()]
        return ["; ".join(scores)] if scores else []


Annotated = Sequence[tuple[Unit, Annotation]]


def format_score(value: float) -> str:
    """Return a score with six digits.

    >>> format_score(0.123456789), format_score(54.0)
    ('0.123457', '54')
    """
    return f"{value:.6g}"


class FileEdits:
    """Edits of the bytes of a file: what to remove, and what to put there.

    `data` is a memory map or bytes.
    """

    def __init__(self, data: Any, encoding: str) -> None:
        self.data, self.encoding = data, encoding
        self.replaced: list[tuple[int, int, str]] = []  # first byte, byte after the last, new text

    def replace(self, start: int, end: int, text: str = "") -> None:
        """Put a text in the place of bytes."""
        self.replaced.append((start, end, text))

    def insert(self, position: int, text: str) -> None:
        """Put a text before a byte."""
        self.replaced.append((position, position, text))

    def remove(self, parent: Element, child: Element) -> None:
        """Remove an element with the blanks before it."""
        start = previous_end(parent, child)
        if self.text(start, child.start).strip():
            start = child.start
        self.replace(start, child.end)

    def text(self, start: int, end: int) -> str:
        """Return bytes as text."""
        return bytes(self.data[start:end]).decode(self.encoding)

    def blanks(self, start: int, end: int) -> str:
        """Return the text between two positions if it is blank, else nothing."""
        text = self.text(start, end)
        return "" if text.strip() else text

    def blanks_before(self, parent: Element, child: Element) -> str:
        """Return the blanks between a child and the element before it."""
        return self.blanks(previous_end(parent, child), child.start)

    def write(self, stream: IO[bytes], errors: str) -> None:
        """Write the file with its edits; `errors` is for characters that the encoding lacks."""
        position = 0
        with memoryview(self.data) as view:
            for start, end, text in sorted(self.replaced, key=lambda edit: edit[:2]):
                stream.write(view[position:start])
                stream.write(text.encode(self.encoding, errors))
                position = end
            stream.write(view[position:])

    def describe(self, span: Span, unit: Unit) -> str:
        """Return category, severity, message and marked text of a finding in one line."""
        text = f"{span.category or 'error'} ({span.severity})"
        if span.message:
            text += f": {span.message}"
        is_source = span.side == "source"
        marked = self._quote(unit.source if is_source else unit.target, span)
        if marked:
            text += f" [{'source' if is_source else 'translation'}: {marked}]"
        return " ".join(text.split())

    def _quote(self, text: InlineText | None, span: Span) -> str:
        """Return the marked text as the file writes it, with its markup; all of it is ""."""
        if text is None or (span.start, span.end) == (0, len(text.text)):
            return ""
        place = text.byte_range(span.start, span.end)
        return self.text(*place) if place else text.text[span.start : span.end]


def previous_end(parent: Element, child: Element) -> int:
    """Return where the element before a child ends, else where its parent's content begins."""
    earlier = [element.end for element in parent.elements() if element.start < child.start]
    return earlier[-1] if earlier else parent.inner_start


def format_element(name: str, text: str, attributes: Mapping[str, str]) -> str:
    """Return an XML element; characters that XML does not allow become U+FFFD."""
    return f"{format_tag(name, attributes)}{escape_xml(text)}</{name}>"


def format_tag(name: str, attributes: Mapping[str, str]) -> str:
    """Return the start tag of an XML element."""
    from xml.sax.saxutils import quoteattr  # imports much, which readers do not need

    values = [f" {key}={quoteattr(FORBIDDEN.sub('�', value))}" for key, value in attributes.items()]
    return f"<{name}{''.join(values)}>"


def escape_xml(text: str) -> str:
    """Return a text as XML writes it."""
    from xml.sax.saxutils import escape

    return escape(FORBIDDEN.sub("�", text))


def prefixed(parent: Element, name: str) -> str:
    """Return a name with the prefix of another element."""
    prefix, colon, _ = parent.name.rpartition(":")
    return prefix + colon + name

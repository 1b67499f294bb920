"""Scores and findings of units as texts, and the edits of a file that insert them.

A reader keeps the `Place` of each unit: the byte positions of what is inserted and of what an
earlier run inserted, with the blanks before it. Writing twice therefore changes nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from tertium.core.spans import Span
from tertium.files.units import InlineText, Range, Unit
from tertium.files.xml_elements import Element

FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
NO_BLANKS = (0, 0)
PRIORITIES = {"critical": 1, "major": 2, "minor": 3}
DEFAULT_PRIORITY = 5


@dataclass(frozen=True, slots=True)
class Annotation:
    """What to write about one unit: scores by metric, and findings."""

    scores: Mapping[str, float] = field(default_factory=dict)
    findings: Sequence[Span] = ()

    def describe_scores(self) -> str:
        """Return all scores with six digits; missing ones are omitted.

        >>> Annotation({"chrf": 54.0, "comet": 0.123456789}).describe_scores()
        'chrf: 54; comet: 0.123457'
        """
        scores = self.scores.items()
        return "; ".join(f"{name}: {value:.6g}" for name, value in scores if not math.isnan(value))


Annotated = Sequence[tuple[Unit, Annotation]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the annotations of a unit are put; `removed` are those of an earlier run.

    An annotation is a `template` with the fields text, kind, priority and side, after the same
    `blanks`. With `tags`, all are put into a new element, which has `outer_blanks` before its tags.
    """

    position: int
    template: str
    removed: tuple[Range, ...] = ()
    blanks: Range = NO_BLANKS
    tags: tuple[str, str] = ("", "")
    outer_blanks: Range = NO_BLANKS


class FileEdits:
    """Edits of the bytes of a file, a memory map: what to remove, and what to put there."""

    def __init__(self, data: Any, encoding: str, *, is_xml: bool) -> None:
        self.data, self.encoding, self.is_xml = data, encoding, is_xml
        self.replaced: list[tuple[int, int, bytes]] = []  # first byte, byte after the last, new

    def annotate(self, place: Place, annotated: Annotated) -> None:
        """Replace the annotations of an earlier run."""
        self.replaced += [(start, end, b"") for start, end in place.removed]
        texts: list[bytes] = []
        for unit, annotation in annotated:
            name = unit.plural or unit.id.rpartition(":")[2]
            label = f"[{name}] " if len(annotated) > 1 else ""
            if scores := annotation.describe_scores():
                texts.append(self._format(place, label + scores))
            for span in annotation.findings:
                texts.append(self._format(place, label + self._describe(span, unit), span))
        if texts:
            blanks, outer = (self.data[slice(*r)] for r in (place.blanks, place.outer_blanks))
            opening, closing = (outer + self._encode(tag) for tag in place.tags)
            content = opening + b"".join(blanks + text for text in texts) + closing
            self.replaced.append((place.position, place.position, content))

    def _format(self, place: Place, text: str, span: Span | None = None) -> bytes:
        text = FORBIDDEN.sub("\ufffd", text)
        if self.is_xml:
            text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        filled = place.template.format(
            text=text,
            kind="finding" if span else "scores",
            priority=PRIORITIES.get(span.severity if span else "", DEFAULT_PRIORITY),
            side="source" if span and span.side == "source" else "target",
        )
        return self._encode(filled)

    def _encode(self, text: str) -> bytes:
        """Return a text as the file has it; references replace what the encoding of XML lacks."""
        return text.encode(self.encoding, "xmlcharrefreplace" if self.is_xml else "replace")

    def _describe(self, span: Span, unit: Unit) -> str:
        """Describe a finding; the marked text is as the file writes it, with its markup."""
        text = (unit.source if span.side == "source" else unit.target) or InlineText("")
        place = text.byte_range(span.start, span.end)
        marked = bytes(self.data[slice(*place)]).decode(self.encoding) if place else ""
        return describe_finding(span, text.text, marked)

    def write(self, stream: IO[bytes]) -> None:
        """Write the file with its edits."""
        position = 0
        with memoryview(self.data) as view:
            for start, end, added in sorted(self.replaced, key=lambda edit: edit[:2]):
                stream.write(view[position:start])
                stream.write(added)
                position = end
            stream.write(view[position:])


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

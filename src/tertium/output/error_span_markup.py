"""Texts with marked error spans as HTML.

`<mark>` elements must nest. Where spans overlap, one is split into pieces with the same number.
"""

from __future__ import annotations

from collections.abc import Iterable

from tertium.core.result import MarkedLine
from tertium.core.spans import Side, Span, split_at_spans
from tertium.output.markup_builder import Markup, element, escape, join


def mark_error_spans(text: str, spans: Iterable[Span], side: Side = "hypothesis") -> Markup:
    """Return a text with `<mark>` elements around the spans of one side.

    >>> mark_error_spans("a <b> c", [Span(2, 5, severity="minor", category="Style")])
    'a <mark class="minor" title="minor: Style" data-span="0" data-severity="minor" \
data-category="Style">&lt;b&gt;</mark> c'
    """
    side_spans = sorted((s for s in spans if s.side == side), key=lambda s: (s.start, -s.end))
    number = {id(span): n for n, span in enumerate(side_spans)}
    pieces = []
    for piece, covering in split_at_spans(text, side_spans, side):
        inner = escape(piece)
        for span in sorted(covering, key=lambda s: -number[id(s)]):
            inner = _mark(inner, span, number[id(span)])
        pieces.append(inner)
    return join(pieces)


def _mark(inner: Markup, span: Span, number: int) -> Markup:
    kind = ": ".join(part for part in (span.severity, span.category) if part)
    probability = "" if span.chance is None else f", probability {span.chance:.2f}"
    return element(
        "mark",
        inner,
        class_=span.severity,
        title=kind + probability + (span.message and f": {span.message}"),
        data_span=number,
        data_side=None if span.side == "hypothesis" else span.side,
        data_severity=span.severity,
        data_category=span.category or None,
        data_rater=span.rater or None,
        data_chance=None if span.chance is None else repr(span.chance),
    )


def render_line(line: MarkedLine) -> Markup:
    """Return a paragraph with marked errors in the direction of its text."""
    if line.side == "note":
        return element("p", line.text, class_="note")
    if line.side == "reference":
        return element("p", f"reference: {line.text}", dir="auto", class_="muted")
    style = "source muted" if line.side == "source" else None
    return element(
        "p", mark_error_spans(line.text, line.spans, line.side), dir="auto", class_=style
    )

"""Marked errors for the eye: a text with marks that say how grave each is, and lists of the worst.

Marks nest, as HTML asks; where spans overlap, one of them is closed and opened again, and its
pieces have the same number. So the spans can be read back from the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html.parser import HTMLParser
from math import isfinite
from typing import Any

from tertium.evaluation.marking import MarkedTranslation, MarkedTranslations
from tertium.reporting.markup import Markup, element, escape, join
from tertium.spans import Side, Span, Unplaced, pieces_of

WORST = 50  # translations that a page lists
FIELDS = ("side", "severity", "category", "rater", "chance")


def mark_text(text: str, spans: Iterable[Span], side: Side = "hypothesis") -> Markup:
    """A text with `<mark>` around the spans of one side.

    >>> mark_text("a <b> c", [Span(2, 5, severity="minor", category="Style")])
    'a <mark class="minor" title="minor: Style" data-span="0" data-severity="minor" \
data-category="Style">&lt;b&gt;</mark> c'
    """
    own = sorted((s for s in spans if s.side == side), key=lambda s: (s.start, -s.end))
    number = {id(span): n for n, span in enumerate(own)}
    pieces = []
    for piece, covering in pieces_of(text, own, side):
        inner = escape(piece)
        for span in sorted(covering, key=lambda s: -number[id(s)]):
            inner = _mark(inner, span, number[id(span)])
        pieces.append(inner)
    return join(pieces)


def _mark(inner: Markup, span: Span, number: int) -> Markup:
    sure = "" if span.chance is None else f", chance {span.chance:.2f}"
    return element(
        "mark",
        inner,
        class_=span.severity,
        title=_kind(span) + sure,
        data_span=number,
        data_side=None if span.side == "hypothesis" else span.side,
        data_severity=span.severity,
        data_category=span.category or None,
        data_rater=span.rater or None,
        data_chance=None if span.chance is None else repr(span.chance),
    )


def _kind(error: Span | Unplaced) -> str:
    return ": ".join(part for part in (error.severity, error.category) if part)


def read_marks(markup: str) -> tuple[str, tuple[Span, ...]]:
    """The text and the spans of what `mark_text` made.

    >>> read_marks(mark_text("a cat", [Span(2, 5, severity="major")]))[1][0].of("a cat")
    'cat'
    """
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    return reader.finish()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.texts: list[str] = []
        self.length = 0
        self.open: list[tuple[str, Mapping[str, str | None], int]] = []
        self.found: dict[str, dict[str, Any]] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "mark":
            fields = dict(attrs)
            self.open.append((fields.get("data-span") or "", fields, self.length))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        self.length += len(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "mark" and self.open:
            number, fields, start = self.open.pop()
            values = {name: fields.get(f"data-{name}") for name in FIELDS}
            known = {name: value for name, value in values.items() if value is not None}
            span = self.found.setdefault(number, {**known, "start": start})
            span["end"] = self.length

    def finish(self) -> tuple[str, tuple[Span, ...]]:
        spans = []
        for fields in self.found.values():
            chance = fields.pop("chance", None)
            spans.append(Span(**fields, chance=None if chance is None else float(chance)))
        return "".join(self.texts), tuple(sorted(spans, key=lambda s: (s.start, -s.end)))


def marked_section(marked: Sequence[MarkedTranslations]) -> Markup:
    """A section of a page: of each metric the worst translations, their errors marked."""
    return join(map(_metric_list, marked))


def _metric_list(marked: MarkedTranslations) -> Markup:
    worst = marked.worst(WORST)
    counts = marked.counts()
    said = ", ".join(f"{count:,} {severity}" for severity, count in counts.items()) or "no errors"
    total = len(marked.translations)
    said += f" in {total:,} translation{'s' * (total != 1)}"
    if not worst:
        return element("div", element("h3", marked.label), element("p", f"{said}."))
    if any(span.chance is not None for entry in worst for span in entry.spans):
        said = f"suspected: {said}"  # people mark errors, a metric gives them a chance
    worst_ones = f"{len(worst)} worst" if worst[1:] else "worst"
    # around its box, with no id: a notebook may show several lists
    choice = element("label", element("input", type="checkbox"), " major errors only")
    return element(
        "div",
        element("h3", marked.label),
        element("p", f"{said}; the {worst_ones} of them:"),
        choice if any(map(_is_grave, worst)) else "",
        element("ol", *(_entry(entry, marked.decimals) for entry in worst), class_="marked"),
        class_="markings",
    )


def _is_grave(entry: MarkedTranslation) -> bool:
    return any(error.severity in ("major", "critical") for error in entry.errors)


def _entry(entry: MarkedTranslation, decimals: int | None) -> Markup:
    said = f"{entry.score:.4g}" if decimals is None else f"{entry.score:z.{decimals}f}"
    where = element(
        "p",
        element("bdi", entry.system),
        f", segment {entry.item}, score ",
        element("b", said if isfinite(entry.score) else "–"),
        class_="note",
    )
    texts = [marked_paragraph(entry.segment.hypothesis, entry.spans)]
    if entry.segment.source is not None:
        texts.append(marked_paragraph(entry.segment.source, entry.spans, "source"))
    if entry.missing:
        kinds = "; ".join(_kind(error) for error in entry.missing)
        texts.append(element("p", f"without a place in the text: {kinds}", class_="note"))
    return element("li", where, *texts, class_=None if _is_grave(entry) else "light")


def marked_paragraph(text: str, spans: Iterable[Span], side: Side = "hypothesis") -> Markup:
    """One text with its marks, which may run in either direction."""
    style = None if side == "hypothesis" else "source muted"
    return element("p", mark_text(text, spans, side), dir="auto", class_=style)

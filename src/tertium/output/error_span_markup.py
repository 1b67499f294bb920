"""Render error spans as HTML: marked texts and lists of the worst translations.

`<mark>` elements must nest. Where spans overlap, one is split into pieces with the same number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite

from tertium.evaluation.error_marking import MarkedTranslation, MarkedTranslations
from tertium.output.markup import Markup, element, escape, join
from tertium.spans import Side, Span, UnlocatedError, split_at_spans

MAX_LISTED_TRANSLATIONS = 50


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
    probability = "" if span.chance is None else f", probability {span.chance:.2f}"
    return element(
        "mark",
        inner,
        class_=span.severity,
        title=_error_type(span) + probability + (span.message and f": {span.message}"),
        data_span=number,
        data_side=None if span.side == "hypothesis" else span.side,
        data_severity=span.severity,
        data_category=span.category or None,
        data_rater=span.rater or None,
        data_chance=None if span.chance is None else repr(span.chance),
    )


def _error_type(error: Span | UnlocatedError) -> str:
    return ": ".join(part for part in (error.severity, error.category) if part)


def marked_errors_section(marked: Sequence[MarkedTranslations]) -> Markup:
    """Return the worst translations of each metric with marked errors."""
    return join(map(_metric_list, marked))


def _metric_list(marked: MarkedTranslations) -> Markup:
    worst = marked.worst(MAX_LISTED_TRANSLATIONS)
    counts = marked.counts()
    summary = (
        ", ".join(f"{count:,} {severity}" for severity, count in counts.items()) or "no errors"
    )
    total = len(marked.translations)
    summary += f" in {total:,} translation{'s' * (total != 1)}"
    note = element("p", f"{marked.note}.", class_="note") if marked.note else ""
    if not worst:
        summary = summary.replace("no errors", "none shown") if marked.note else summary
        return element("div", element("h3", marked.label), element("p", f"{summary}."), note)
    if any(span.chance is not None for entry in worst for span in entry.spans):
        summary = f"suspected: {summary}"  # only predicted errors have a probability
    count_text = f"{len(worst)} worst" if worst[1:] else "worst"
    # the label wraps its checkbox: ids could clash in a notebook
    filter_box = element("label", element("input", type="checkbox"), " major errors only")
    return element(
        "div",
        element("h3", marked.label),
        element("p", f"{summary}. The {count_text}:"),
        note,
        filter_box if any(map(_has_major_error, worst)) else "",
        element("ol", *(_entry(entry, marked.decimals) for entry in worst), class_="marked"),
        class_="markings",
    )


def _has_major_error(entry: MarkedTranslation) -> bool:
    return any(error.severity in ("major", "critical") for error in entry.errors)


def _entry(entry: MarkedTranslation, decimals: int | None) -> Markup:
    score = f"{entry.score:.4g}" if decimals is None else f"{entry.score:z.{decimals}f}"
    heading = element(
        "p",
        element("bdi", entry.system),
        f", segment {entry.item}, score ",
        element("b", score if isfinite(entry.score) else "–"),
        class_="note",
    )
    texts = [error_span_paragraph(entry.segment.hypothesis, entry.spans)]
    if entry.segment.source is not None:
        texts.append(error_span_paragraph(entry.segment.source, entry.spans, "source"))
    if entry.missing:
        kinds = "; ".join(_error_type(error) for error in entry.missing)
        texts.append(element("p", f"errors without a position: {kinds}", class_="note"))
    return element("li", heading, *texts, class_=None if _has_major_error(entry) else "light")


def error_span_paragraph(text: str, spans: Iterable[Span], side: Side = "hypothesis") -> Markup:
    """Return a paragraph with marked errors in the text's own direction."""
    style = None if side == "hypothesis" else "source muted"
    return element("p", mark_error_spans(text, spans, side), dir="auto", class_=style)

"""Explanations as HTML: heat maps, transport plans, feature contributions, win probabilities.

Heat maps are tables, so that screen readers and printers can use them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tertium.arrays import FloatArray
from tertium.metrics.base.explanation import (
    Explanation,
    FeatureAttribution,
    MarkedText,
    TextComparison,
    WinProbabilities,
)
from tertium.output.error_span_markup import error_span_paragraph
from tertium.output.html_table import render_table as render_html_table
from tertium.output.markup import Markup, collapsible, element, join, scrollable
from tertium.output.tables.explanations import (
    abbreviate,
    describe_baseline,
    feature_table,
    format_comparison_values,
    top_features,
    word_alignment_table,
)

MAX_TOKENS = 60  # of a text in a heat map
MAX_FEATURES = 12
SHADE_COUNT = 20  # of a heat map; `charts.css` has a class for each


@dataclass(frozen=True)
class SegmentExplanation:
    """An explanation of one translation."""

    item: int
    system: int
    title: str
    html: Markup


def explanation_html(explanation: Explanation) -> Markup:
    """Return all parts of an explanation as HTML."""
    parts = [_marked_text(explanation.marked_text)] if explanation.marked_text is not None else []
    parts += [
        element("p", element("b", f"{error.severity} error: {error.category}", class_="bad"))
        for error in explanation.errors
    ]
    if explanation.reasons:
        items = [element("li", reason) for reason in explanation.reasons]
        parts += [element("p", element("b", "Reasons of the judge")), element("ul", *items)]
    parts += [_comparison(part) for part in explanation.comparisons]
    if explanation.attribution is not None:
        parts.append(_attribution(explanation, explanation.attribution))
    if explanation.win_probabilities is not None:
        parts.append(win_probability_html(explanation.win_probabilities, explanation.metric))
    return join(parts)


def _marked_text(marked: MarkedText) -> Markup:
    texts = [error_span_paragraph(marked.hypothesis, marked.spans)]
    if any(span.side == "source" for span in marked.spans) and marked.source is not None:
        texts.append(error_span_paragraph(marked.source, marked.spans, "source"))
    count = f"{len(marked.spans)} marked" if marked.spans else "none marked"
    heading = element("p", element("b", f"Errors: {count}"))
    note = element("p", f"{marked.note}.", class_="muted") if marked.note else ""
    return element("div", heading, *texts, note, class_="explanation")


def _comparison(part: TextComparison) -> Markup:
    """Return the values and alignment of a translation with one reference or source."""
    heading = element(
        "p",
        element("b", f"Compared with the {part.side}: "),
        element("bdi", part.text),
        element("span", f" ({format_comparison_values(part)})", class_="muted"),
        dir="auto",
    )
    if not part.links:
        return element("div", heading, class_="explanation")
    return element(
        "div",
        heading,
        _transport_plan(part) if part.is_plan else _similarity_map(part),
        class_="explanation",
    )


def _similarity_map(part: TextComparison) -> Markup:
    """Return cosine similarities of tokens; frames mark the selected matches."""
    rows, columns = part.hypothesis_pieces, part.other_pieces
    shades = np.full((len(rows), len(columns)), np.nan)
    if part.cosines:
        shades = np.array(part.cosines, dtype=np.float64).reshape(shades.shape)
    for link in part.links:
        shades[link.hypothesis, link.other] = link.similarity
    framed = {(link.hypothesis, link.other) for link in part.links}
    caption = "Cosine similarity of tokens; frames mark the best match"
    return heat_map(rows, columns, shades, framed=framed, caption=caption)


def _transport_plan(part: TextComparison) -> Markup:
    """Return how the mass of each token is moved to the tokens of the other text."""
    rows, columns = part.hypothesis_pieces, part.other_pieces
    mass = np.full((len(rows), len(columns)), np.nan)
    distances = np.full(mass.shape, np.nan)
    for link in part.links:
        mass[link.hypothesis, link.other] = link.weight * len(rows)
        distances[link.hypothesis, link.other] = link.similarity
    caption = "Transport plan: share of each token that is moved to a token of the other text"
    return heat_map(rows, columns, mass, caption=caption, tooltip=("distance", distances))


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: FloatArray,
    *,
    caption: str,
    framed: set[tuple[int, int]] | frozenset[tuple[int, int]] = frozenset(),
    tooltip: tuple[str, FloatArray] | None = None,
) -> Markup:
    """Return values from 0 to 1 (rows, columns) as shades.

    Texts are truncated after `MAX_TOKENS` tokens, which the caption states.
    """
    is_truncated = len(rows) > MAX_TOKENS or len(columns) > MAX_TOKENS
    note = f" (first {MAX_TOKENS} tokens)" if is_truncated else ""
    head = [
        element("th", element("span", c, dir="auto"), scope="col") for c in columns[:MAX_TOKENS]
    ]
    lines = []
    for i, name in enumerate(rows[:MAX_TOKENS]):
        cells = [
            _shade(
                float(values[i, j]),
                (i, j) in framed,
                None if tooltip is None else f"{tooltip[0]} {tooltip[1][i, j]:.2f}",
            )
            for j in range(min(len(columns), MAX_TOKENS))
        ]
        lines.append(element("tr", element("th", element("bdi", name), scope="row"), *cells))
    table = element(
        "table",
        element("caption", caption + note),
        element("thead", element("tr", element("td"), *head)),
        element("tbody", *lines),
        class_="heat",
    )
    return scrollable(table, caption)


def _shade(value: float, framed: bool, tooltip: str | None) -> Markup:
    if value != value:
        return element("td")
    step = round(SHADE_COUNT * min(max(value, 0.0), 1.0))
    style = f"h{step} framed" if framed else f"h{step}"
    label = element("span", " best", class_="hidden") if framed else ""
    return element("td", f"{value:.2f}".replace("0.", "."), label, class_=style, title=tooltip)


def _attribution(explanation: Explanation, attribution: FeatureAttribution) -> Markup:
    """Return entailment, issues, strengths, and contributions of groups and features."""
    has_reference = bool(attribution.reference)
    parts = [
        element(
            "p",
            element("b", f"{explanation.metric}: {explanation.score:+z.3f}"),
            f" ({describe_baseline(attribution)}).",
            *([" Reference: ", element("bdi", abbreviate(attribution.reference))] * has_reference),
            dir="auto",
        )
    ]
    for direction, holds in attribution.follows.items():
        premise, conclusion = "reference", "translation"
        if direction == "backward":
            premise, conclusion = conclusion, premise
        answer = element("b", "yes" if holds else "no", class_="good" if holds else "bad")
        parts.append(element("p", f"The {premise} entails the {conclusion}: ", answer))
    lists = (("Issues", attribution.faults, "bad"), ("Strengths", attribution.merits, "good"))
    for title, sentences, style in lists:
        if sentences:
            parts.append(element("p", element("b", title, class_=style)))
            parts.append(element("ul", *(element("li", sentence) for sentence in sentences)))
    count = len(top_features(attribution, MAX_FEATURES))
    title = f"The {count} features with the largest contributions"
    features = render_html_table(feature_table(attribution, MAX_FEATURES, title))
    parts += [*([_groups(attribution)] if attribution.groups else []), features]
    if attribution.alignment:
        table = render_html_table(word_alignment_table(attribution))
        parts.append(collapsible("Word alignment", table))
    return element("div", *parts, class_="explanation")


def _groups(attribution: FeatureAttribution) -> Markup:
    """Return a bar per feature group, to the left if it lowers the score."""
    ordered = sorted(attribution.groups.items(), key=lambda entry: entry[1])
    largest = max((abs(value) for _, value in ordered), default=0.0) or 1.0
    rows = []
    for name, value in ordered:
        share = abs(value) / largest
        bar = element("span", class_="gain" if value >= 0 else "cost", style=f"--v:{share:.3f}")
        rows.append(
            element(
                "tr",
                element("th", name, scope="row"),
                element("td", f"{value:+z.3f}", class_="number"),
                element("td", bar, class_="bars"),
            )
        )
    head = element(
        "tr", *(element("th", name, scope="col") for name in ("group", "contribution", ""))
    )
    caption = element(
        "caption", "Contribution of feature groups, relative to the score of the reference itself"
    )
    return element("table", caption, element("thead", head), element("tbody", *rows))


def win_probability_html(probabilities: WinProbabilities, ranker: str) -> Markup:
    """Return the probability that each translation (row) beats each other one (column)."""
    values = np.array(probabilities.chances)
    np.fill_diagonal(values, np.nan)
    caption = f"{ranker}: probability that the row is better than the column"
    table = heat_map(probabilities.names, probabilities.names, values, caption=caption)
    return element("div", table, class_="explanation wins")

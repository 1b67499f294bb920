"""Why a translation has its score, for the eye: heat maps, transport plans, reasons, chances.

A heat map is a table: a screen reader can walk it, a printer prints it, and every cell says its
number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tertium.arrays import FloatArray
from tertium.metrics.base.explanation import Explanation, MarkedText, Reasons, TextComparison, Votes
from tertium.reporting.marks import marked_paragraph
from tertium.reporting.markup import Markup, element, folded, join, scrollable
from tertium.reporting.tables.explanations import (
    feature_table,
    features_that_matter,
    figures_of,
    shorten,
    word_table,
)
from tertium.reporting.tables.table import html_table

LONGEST = 60  # pieces of a text that a heat map shows
TOP = 12  # features that are listed
STEPS = 20  # of darkness in a heat map; `pictures.css` has a class for each


@dataclass(frozen=True, kw_only=True)
class Explained:
    """An explanation of a translation, or of a whole item where `system` is -1."""

    item: int
    system: int
    title: str
    html: Markup


def explanation(explained: Explanation) -> Markup:
    """Whatever a metric or ranker said, as HTML."""
    parts = [_marked_text(explained.marked)] if explained.marked is not None else []
    parts += [_comparison(part) for part in explained.comparisons]
    if explained.reasons is not None:
        parts.append(_reasons(explained, explained.reasons))
    if explained.votes is not None:
        parts.append(win_probabilities(explained.votes, explained.metric))
    return join(parts)


def _marked_text(marked: MarkedText) -> Markup:
    """The texts with the errors that the metric marks."""
    texts = [marked_paragraph(marked.hypothesis, marked.spans)]
    if any(span.side == "source" for span in marked.spans) and marked.source is not None:
        texts.append(marked_paragraph(marked.source, marked.spans, "source"))
    said = f"{len(marked.spans)} marked" if marked.spans else "none marked"
    return element("div", element("p", element("b", f"Errors: {said}")), *texts, class_="explained")


def _comparison(part: TextComparison) -> Markup:
    """A translation beside one text: its values, and what was aligned with what."""
    heading = element(
        "p",
        element("b", f"Against the {part.side}: "),
        element("bdi", part.text),
        element("span", f" ({figures_of(part)})", class_="muted"),
        dir="auto",
    )
    if not part.links:
        return element("div", heading, class_="explained")
    return element("div", heading, _plan(part) if part.is_plan else _heat(part), class_="explained")


def _heat(part: TextComparison) -> Markup:
    """Cosines of all pieces where known, the partners that were chosen framed."""
    rows, columns = part.hypothesis_pieces, part.other_pieces
    shades = np.full((len(rows), len(columns)), np.nan)
    if part.cosines:
        shades = np.array(part.cosines, dtype=np.float64).reshape(shades.shape)
    for link in part.links:
        shades[link.hypothesis, link.other] = link.similarity
    framed = {(link.hypothesis, link.other) for link in part.links}
    caption = "Cosine of every two pieces; frames mark the best partner"
    return heat_map(rows, columns, shades, framed=framed, caption=caption)


def _plan(part: TextComparison) -> Markup:
    """How the mass of each piece is spread over the other text's."""
    rows, columns = part.hypothesis_pieces, part.other_pieces
    mass = np.full((len(rows), len(columns)), np.nan)
    far = np.full(mass.shape, np.nan)
    for link in part.links:
        mass[link.hypothesis, link.other] = link.weight * len(rows)
        far[link.hypothesis, link.other] = link.similarity
    caption = "Transport plan: the share of each piece that moves to a piece of the other text"
    return heat_map(rows, columns, mass, caption=caption, beside=("distance", far))


def heat_map(
    rows: Sequence[str],
    columns: Sequence[str],
    values: FloatArray,
    *,
    caption: str,
    framed: set[tuple[int, int]] | frozenset[tuple[int, int]] = frozenset(),
    beside: tuple[str, FloatArray] | None = None,
) -> Markup:
    """Values from 0 to 1 (rows, columns) as shades; the translation's pieces stand in rows.

    A text of more than `LONGEST` pieces is cut there, and the caption says so.
    """
    cut = len(rows) > LONGEST or len(columns) > LONGEST
    note = f" (the first {LONGEST} pieces)" if cut else ""
    head = [element("th", element("span", c, dir="auto"), scope="col") for c in columns[:LONGEST]]
    lines = []
    for i, name in enumerate(rows[:LONGEST]):
        cells = [
            _shade(
                float(values[i, j]),
                (i, j) in framed,
                None if beside is None else f"{beside[0]} {beside[1][i, j]:.2f}",
            )
            for j in range(min(len(columns), LONGEST))
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


def _shade(value: float, framed: bool, more: str | None) -> Markup:
    if value != value:
        return element("td")
    step = round(STEPS * min(max(value, 0.0), 1.0))
    style = f"h{step} framed" if framed else f"h{step}"
    said = element("span", " best", class_="hidden") if framed else ""
    return element("td", f"{value:.2f}".replace("0.", "."), said, class_=style, title=more)


def _reasons(explained: Explanation, reasons: Reasons) -> Markup:
    """A score taken apart: verdicts, what was found, and what each group and feature added."""
    parts = [
        element(
            "p",
            element("b", f"{explained.metric}: {explained.score:+z.3f}"),
            f", of {reasons.perfect:+z.3f} for the reference itself, ",
            element("bdi", shorten(reasons.reference)),
            dir="auto",
        )
    ]
    for direction, holds in reasons.follows.items():
        first, second = "hypothesis", "reference"
        if direction == "backward":
            first, second = second, first
        sign = element("b", "yes" if holds else "no", class_="good" if holds else "bad")
        parts.append(element("p", f"the {first} follows from the {second}: ", sign))
    found = (("Faults", reasons.faults, "bad"), ("Merits", reasons.merits, "good"))
    for title, sentences, style in found:
        if sentences:
            parts.append(element("p", element("b", title, class_=style)))
            parts.append(element("ul", *(element("li", sentence) for sentence in sentences)))
    matter = f"The {len(features_that_matter(reasons, TOP))} features that matter most"
    parts += [_groups(reasons), html_table(feature_table(reasons, TOP, matter))]
    if reasons.alignment:
        parts.append(folded("Word alignment", html_table(word_table(reasons))))
    return element("div", *parts, class_="explained")


def _groups(reasons: Reasons) -> Markup:
    """A bar for each group of features, to the left of the middle where it costs."""
    ordered = sorted(reasons.groups.items(), key=lambda entry: entry[1])
    most = max((abs(value) for _, value in ordered), default=0.0) or 1.0
    rows = []
    for name, value in ordered:
        share = abs(value) / most
        bar = element("span", class_="gain" if value >= 0 else "cost", style=f"--v:{share:.3f}")
        rows.append(
            element(
                "tr",
                element("th", name, scope="row"),
                element("td", f"{value:+z.3f}", class_="number"),
                element("td", bar, class_="bars"),
            )
        )
    head = element("tr", *(element("th", name, scope="col") for name in ("group", "adds", "")))
    caption = element("caption", "What each group of features adds to the reference's own score")
    return element("table", caption, element("thead", head), element("tbody", *rows))


def win_probabilities(votes: Votes, ranker: str) -> Markup:
    """The chance of each translation (row) to beat each other one (column) of an item."""
    values = np.array(votes.chances)
    np.fill_diagonal(values, np.nan)
    caption = f"{ranker}: the chance that the row's translation is better than the column's"
    table = heat_map(votes.names, votes.names, values, caption=caption)
    return element("div", table, class_="explained wins")

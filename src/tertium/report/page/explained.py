"""Why a translation has its score, for the eye: heat maps, transport plans, reasons, chances.

An explanation comes as plain values (`as_dict`), so that this module knows no metric. A heat map is
a table: a screen reader can walk it, a printer prints it, and every cell says its number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tertium.arrays import FloatArray
from tertium.report.markup import Markup, element, join
from tertium.report.tables.html import html_table
from tertium.report.tables.table import Cell, Table, number

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


def explanation(values: Mapping[str, Any]) -> Markup:
    """Whatever a metric's `explain` said, as HTML."""
    return reasons(values) if "contributions" in values else alignment(values)


def alignment(values: Mapping[str, Any]) -> Markup:
    """Each comparison of a translation: its values, and what was aligned with what."""
    return join([_comparison(part) for part in values["comparisons"]])


def _comparison(part: Mapping[str, Any]) -> Markup:
    figures = ", ".join(f"{name} {value:.4f}" for name, value in part["values"].items())
    heading = element(
        "p", element("b", f"Against the {part['side']}: "),
        element("bdi", part["text"]), element("span", f" ({figures})", class_="muted"),
        dir="auto",
    )  # fmt: skip
    if not part["links"]:
        return element("div", heading, class_="explained")
    planned = part["links"][0]["direction"] == "transport"
    return element("div", heading, _plan(part) if planned else _heat(part), class_="explained")


def _heat(part: Mapping[str, Any]) -> Markup:
    """Cosines of all pieces where known, the partners that were chosen framed."""
    rows, columns = part["hypothesis_pieces"], part["other_pieces"]
    shades = np.full((len(rows), len(columns)), np.nan)
    if part.get("cosines"):
        shades = np.array(part["cosines"], dtype=np.float64).reshape(shades.shape)
    for link in part["links"]:
        shades[link["hypothesis"], link["other"]] = link["similarity"]
    framed = {(link["hypothesis"], link["other"]) for link in part["links"]}
    caption = "Cosine of every two pieces; frames mark the best partner"
    return heat_map(rows, columns, shades, framed=framed, caption=caption)


def _plan(part: Mapping[str, Any]) -> Markup:
    """How the mass of each piece is spread over the other text's."""
    rows, columns = part["hypothesis_pieces"], part["other_pieces"]
    mass = np.full((len(rows), len(columns)), np.nan)
    far = np.full(mass.shape, np.nan)
    for link in part["links"]:
        mass[link["hypothesis"], link["other"]] = link["weight"] * len(rows)
        far[link["hypothesis"], link["other"]] = link["similarity"]
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
            _shade(float(values[i, j]), (i, j) in framed,
                   None if beside is None else f"{beside[0]} {beside[1][i, j]:.2f}")
            for j in range(min(len(columns), LONGEST))
        ]  # fmt: skip
        lines.append(element("tr", element("th", element("bdi", name), scope="row"), *cells))
    table = element(
        "table", element("caption", caption + note),
        element("thead", element("tr", element("td"), *head)), element("tbody", *lines),
        class_="heat",
    )  # fmt: skip
    return element("div", table, class_="scroll", tabindex=0, role="region", aria_label=caption)


def _shade(value: float, framed: bool, more: str | None) -> Markup:
    if value != value:
        return element("td")
    step = round(STEPS * min(max(value, 0.0), 1.0))
    style = f"h{step} framed" if framed else f"h{step}"
    said = element("span", " best", class_="hidden") if framed else ""
    return element("td", f"{value:.2f}".replace("0.", "."), said, class_=style, title=more)


def reasons(values: Mapping[str, Any]) -> Markup:
    """A score taken apart: verdicts, what was found, and what each group and feature added."""
    score, perfect = values["score"], values["perfect"]
    parts = [element("p", element("b", f"{values['metric']}: {score:+.3f}"),
                     f", of {perfect:+.3f} for the reference itself")]  # fmt: skip
    for direction, holds in values["follows"].items():
        what = ("the hypothesis follows from the reference" if direction == "forward"
                else "the reference follows from the hypothesis")  # fmt: skip
        sign = element("b", "yes" if holds else "no", class_="good" if holds else "bad")
        parts.append(element("p", f"{what}: ", sign))
    for title, style in (("faults", "bad"), ("merits", "good")):
        if values[title]:
            sentences = [element("li", sentence) for sentence in values[title]]
            parts.append(element("p", element("b", title.capitalize(), class_=style)))
            parts.append(element("ul", *sentences))
    parts += [_groups(values), _features(values)]
    if values["alignment"]:
        parts.append(_word_matches(values["alignment"]))
    return element("div", *parts, class_="explained")


def _groups(values: Mapping[str, Any]) -> Markup:
    """A bar for each group of features, to the left of the middle where it costs."""
    ordered = sorted(values["groups"].items(), key=lambda entry: entry[1])
    most = max((abs(value) for _, value in ordered), default=0.0) or 1.0
    rows = []
    for name, value in ordered:
        share = abs(value) / most
        bar = element("span", class_="gain" if value >= 0 else "cost", style=f"--v:{share:.3f}")
        rows.append(
            element("tr", element("th", name, scope="row"),
                    element("td", f"{value:+.3f}", class_="number"),
                    element("td", bar, class_="bars"))
        )  # fmt: skip
    head = element("tr", *(element("th", name, scope="col") for name in ("group", "adds", "")))
    caption = element("caption", "What each group of features adds to the reference's own score")
    return element("table", caption, element("thead", head), element("tbody", *rows))


def _features(values: Mapping[str, Any]) -> Markup:
    listed = values["contributions"][:TOP]
    rows = [
        [c["feature"], number(c["value"], 3),
         Cell(f"{c['contribution']:+.3f}", c["contribution"],
              "good" if c["contribution"] > 0 else "bad" if c["contribution"] < 0 else "")]
        for c in listed
    ]  # fmt: skip
    title = f"The {len(listed)} features that matter most"
    return html_table(Table(("feature", "value", "contribution"), rows, title=title))


def _word_matches(matches: Sequence[Mapping[str, Any]]) -> Markup:
    rows = [
        [m["hypothesis"] or "–", m["reference"] or "–",
         "" if m["relation"] == "none" else m["relation"],
         number(m["similarity"], 2) if m["hypothesis"] and m["reference"] else ""]
        for m in matches
    ]  # fmt: skip
    header = ("translation", "reference", "relation", "similarity")
    table = html_table(Table(header, rows, left=frozenset({0, 1, 2})))
    return element("details", element("summary", "Word alignment"), table)


def win_probabilities(systems: Sequence[str], chances: FloatArray, ranker: str) -> Markup:
    """The chance of each system (row) to beat each other one (column) on an item."""
    values = chances.copy()
    np.fill_diagonal(values, np.nan)
    caption = f"{ranker}: the chance that the row's translation is better than the column's"
    return element(
        "div", heat_map(systems, systems, values, caption=caption), class_="explained wins"
    )

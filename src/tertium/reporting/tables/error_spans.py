"""Tables of marked errors beside people's: all figures, then by severity and by category."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertium.evaluation.error_spans import SpanResult, SpanStudy
from tertium.meta.error_spans import macro, micro
from tertium.reporting.tables.table import Cell, Table, number

MOST_CATEGORIES = 12


def span_table(study: SpanStudy, name: str, decimals: int = 3) -> Table:
    """One set: a row for each metric, best F1 first."""
    ordered = sorted(study.of_set(name), key=lambda r: -micro(r.rows["characters"]).f1)
    header = ["metric", "precision", "recall", "F1", "", "F1 macro", "F1 once", "spans", "macro"]
    best = ordered[0]
    rows: list[list[Cell | str]] = [[r.metric, *_figures(r, decimals)] for r in ordered]
    notes = [
        "characters as WMT25's span task counts them, 1/2 for the wrong severity; once: as WMT23's",
        "spans: one to one, overlap by union, 1/2 for the wrong severity; macro: mean over texts",
        *_contests(study, name, best, ordered),
    ]
    if left := study.left_out.get(name):
        notes.append(f"translations without what a metric reads, left out: {left:,}")
    title = f"Marked errors, {name}: {len(best.rows['characters']):,} markings by people"
    return Table(header, rows, title=title, notes=notes)


def detail_tables(study: SpanStudy, name: str, decimals: int = 3) -> list[Table]:
    """By severity and by category, as far as people said them."""
    first = study.of_set(name)[0]
    severities = [severity_table(study, name, decimals)] if first.severities else []
    return severities + ([category_table(study, name, decimals)] if first.categories else [])


def severity_table(study: SpanStudy, name: str, decimals: int = 3) -> Table:
    """Precision, recall and F1 of each severity alone."""
    results = study.of_set(name)
    severities = list(results[0].severities)
    header = ["metric", *(f"{s} {part}" for s in severities for part in ("P", "R", "F1"))]
    rows: list[list[Cell | str]] = []
    for result in results:
        figures = [micro(result.severities[s]) for s in severities]
        values = [v for f in figures for v in (f.precision, f.recall, f.f1)]
        rows.append([result.metric, *(number(v, decimals) for v in values)])
    return Table(header, rows, title=f"By severity, {name}", together=3)


def category_table(study: SpanStudy, name: str, decimals: int = 3) -> Table:
    """The share of each category's characters that metrics marked, the most frequent first."""
    results = study.of_set(name)
    weight = {c: float(rows[:, 1].sum()) for c, rows in results[0].categories.items()}
    frequent = sorted(weight, key=lambda c: -weight[c])
    rows: list[list[Cell | str]] = [
        [
            category,
            Cell(f"{weight[category]:,.0f}", weight[category]),
            *(number(micro(r.categories[category]).recall, decimals) for r in results),
        ]
        for category in frequent[:MOST_CATEGORIES]
    ]
    rest = len(frequent) - len(rows)
    notes = [f"{rest} categories of fewer characters are in JSON (-f json)"] if rest > 0 else []
    header = ["category", "characters", *(r.metric for r in results)]
    return Table(header, rows, title=f"Recall by category, {name}", notes=notes)


def _figures(result: SpanResult, decimals: int) -> list[Cell]:
    rows, bounds = result.rows, result.interval
    figures = micro(rows["characters"])
    shown = "" if bounds is None else f"[{bounds.low:z.{decimals}f}, {bounds.high:z.{decimals}f}]"
    more = {} if bounds is None else {"F1 low": bounds.low, "F1 high": bounds.high}
    return [
        number(figures.precision, decimals),
        number(figures.recall, decimals),
        number(figures.f1, decimals, "best"),
        Cell(shown, "", "dim", more),
        number(macro(rows["characters"]).f1, decimals),
        number(micro(rows["characters-once"]).f1, decimals),
        number(micro(rows["spans"]).f1, decimals),
        number(macro(rows["spans"]).f1, decimals),
    ]


def _contests(
    study: SpanStudy, name: str, best: SpanResult, ordered: Sequence[SpanResult]
) -> list[str]:
    """Who the best one is not clearly better than."""
    if name not in study.p_values or len(ordered) < 2:
        return []
    p_values = study.p_values[name]
    first = study.metrics.index(best.metric)
    against = [(r.metric, p_values[first, study.metrics.index(r.metric)]) for r in ordered[1:]]
    shown = ", ".join(f"{metric} {p:.3f}" for metric, p in against if np.isfinite(p))
    return [f"p of {best.metric} against: {shown} (paired randomization)"]

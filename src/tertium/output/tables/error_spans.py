"""Tables of predicted against human error spans: overall, by severity and by category."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertium.core.result import Table
from tertium.evaluation.error_spans import SpanResult, SpanStudy
from tertium.meta.error_spans import macro, micro
from tertium.output.tables.table import Cell, cell_table, number_cell

MAX_CATEGORIES = 12


def span_agreement_table(study: SpanStudy, name: str, decimals: int = 3) -> Table:
    """Return one row per metric on one dataset, best F1 first."""
    ordered = sorted(study.of_set(name), key=lambda r: -micro(r.rows["characters"]).f1)
    header = ["metric", "precision", "recall", "F1", ""]
    header += ["macro F1", "WMT23 F1", "span F1", "span macro F1"]
    best = ordered[0]
    rows: list[list[Cell | str]] = [[r.metric, *_figures(r, decimals)] for r in ordered]
    notes = [
        "character level as in WMT25, half credit for a wrong severity; WMT23 F1: as in WMT23",
        "span F1: one-to-one matches by overlap, half credit for a wrong severity; "
        "macro: mean over texts",
        *_significance_notes(study, name, best, ordered),
    ]
    if excluded := study.excluded_counts.get(name):
        notes.append(f"excluded: {excluded:,} translations without the texts that a metric needs")
    title = f"Error spans, {name}: {len(best.rows['characters']):,} human annotations"
    return cell_table(header, rows, title=title, notes=notes)


def span_detail_tables(study: SpanStudy, name: str, decimals: int = 3) -> list[Table]:
    """Return tables by severity and by category, as far as raters annotated them."""
    first = study.of_set(name)[0]
    severities = [severity_table(study, name, decimals)] if first.severities else []
    return severities + ([category_table(study, name, decimals)] if first.categories else [])


def severity_table(study: SpanStudy, name: str, decimals: int = 3) -> Table:
    """Return precision, recall and F1 of each severity."""
    results = study.of_set(name)
    severities = list(results[0].severities)
    header = ["metric", *(f"{s} {part}" for s in severities for part in ("P", "R", "F1"))]
    rows: list[list[Cell | str]] = []
    for result in results:
        figures = [micro(result.severities[s]) for s in severities]
        values = [v for f in figures for v in (f.precision, f.recall, f.f1)]
        rows.append([result.metric, *(number_cell(v, decimals) for v in values)])
    return cell_table(header, rows, title=f"By severity, {name}", columns_per_group=3)


def category_table(study: SpanStudy, name: str, decimals: int = 3) -> Table:
    """Return the recall of each category's characters, most frequent first."""
    results = study.of_set(name)
    weight = {c: float(rows[:, 1].sum()) for c, rows in results[0].categories.items()}
    frequent = sorted(weight, key=lambda c: -weight[c])
    rows: list[list[Cell | str]] = [
        [
            category,
            Cell(f"{weight[category]:,.0f}", weight[category]),
            *(number_cell(micro(r.categories[category]).recall, decimals) for r in results),
        ]
        for category in frequent[:MAX_CATEGORIES]
    ]
    hidden = len(frequent) - len(rows)
    notes = [f"{hidden} rarer categories are in the JSON output (-f json)"] if hidden > 0 else []
    header = ["category", "characters", *(r.metric for r in results)]
    return cell_table(header, rows, title=f"Recall by category, {name}", notes=notes)


def _figures(result: SpanResult, decimals: int) -> list[Cell]:
    rows, bounds = result.rows, result.interval
    figures = micro(rows["characters"])
    interval = (
        "" if bounds is None else f"[{bounds.low:z.{decimals}f}, {bounds.high:z.{decimals}f}]"
    )
    bound_columns = {} if bounds is None else {"F1 low": bounds.low, "F1 high": bounds.high}
    return [
        number_cell(figures.precision, decimals),
        number_cell(figures.recall, decimals),
        number_cell(figures.f1, decimals, "best"),
        Cell(interval, "", "dim", bound_columns),
        number_cell(macro(rows["characters"]).f1, decimals),
        number_cell(micro(rows["characters-once"]).f1, decimals),
        number_cell(micro(rows["spans"]).f1, decimals),
        number_cell(macro(rows["spans"]).f1, decimals),
    ]


def _significance_notes(
    study: SpanStudy, name: str, best: SpanResult, ordered: Sequence[SpanResult]
) -> list[str]:
    """Return the p-values of the best metric against the others."""
    if name not in study.p_values or len(ordered) < 2:
        return []
    p_values = study.p_values[name]
    first = study.metrics.index(best.metric)
    compared = [(r.metric, p_values[first, study.metrics.index(r.metric)]) for r in ordered[1:]]
    p_texts = ", ".join(f"{metric} {p:.3f}" for metric, p in compared if np.isfinite(p))
    return [f"p-values of {best.metric} against: {p_texts} (paired randomization)"]

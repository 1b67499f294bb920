"""A measured table as one to print, and as a record: published, measured, and the difference."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from papers.provenance import code_version
from papers.table import MeasuredRow, Outcome
from tertium.reporting.tables.table import Cell, Table, number

RECOMPUTED = "†"  # beside a published average that the paper does not print


def as_table(outcome: Outcome) -> Table:
    """Three lines for a measured row (published, measured, difference), one for a quoted one."""
    table = outcome.table
    averaged = table.averaged and len(table.experiment.columns) > 1
    header = ["", "", *table.experiment.columns, *(["average"] if averaged else [])]
    rows = [line for row in outcome.rows for line in _lines(row, outcome, averaged)]
    title = f"{table.paper}, table {table.number}: {table.title}"
    departs = [f"departs from the paper: {d.title}: {d.says}" for d in table.departures]
    return Table(
        header, rows, title=title, notes=[*notes(outcome), *departs], left=frozenset({0, 1})
    )


def notes(outcome: Outcome) -> list[str]:
    """What stands behind the figures: data, statistic, counts, signatures, code."""
    table = outcome.table
    lines = [f"data: {table.experiment.data}", f"statistic: {table.experiment.statistic}"]
    measured = next((row for row in outcome.rows if row.figures), None)
    if measured is not None:
        pairs = zip(table.experiment.columns, measured.figures, strict=True)
        lines.append("judged: " + ", ".join(f"{c} {figure.count:,}" for c, figure in pairs))
        if table.averaged:
            lines.append("average: mean of the columns")
    lines += _tested(outcome)
    if (
        table.averaged
        and len(table.experiment.columns) > 1
        and any(map(_is_recomputed, outcome.rows))
    ):
        lines.append(f"{RECOMPUTED}: our mean of the paper's figures; it prints no such average")
    for row in outcome.rows:
        lines += [f"{row.row.label}: {signature}" for signature in row.signatures]
        lines += _spread(row, outcome)
        left_out = sum((Counter(figure.left_out) for figure in row.figures), Counter[str]())
        lines += [f"{row.row.label}, left out: {k}: {n}" for k, n in left_out.items()]
        statistic = (row.row.experiment or table.experiment).statistic
        if row.figures and statistic != table.experiment.statistic:
            lines.append(f"{row.row.label}, statistic: {statistic}")
        lines += [f"{row.row.label}: {row.row.note}"] if row.row.note else []
        lines += [f"{row.row.label}: not available: {row.unavailable}"] if row.unavailable else []
    lines += [table.note] if table.note else []
    codes = dict.fromkeys(f.code for row in outcome.rows for f in row.figures if f.code)
    return [*lines, f"code: {'; '.join(codes) or code_version()}"]


def _tested(outcome: Outcome) -> list[str]:
    """What bold stands for, between which rows and, if not in all, in which columns."""
    rows = [r for r in outcome.rows if any(f.best is not None for f in r.figures)]
    if not rows:
        return []
    columns = outcome.table.experiment.columns
    found = {c for r in rows for c, f in zip(columns, r.figures, strict=True) if f.best is not None}
    where = (
        "" if len(found) == len(columns) else f" in {', '.join(c for c in columns if c in found)}"
    )
    seeded = any(f.seeds > 1 for r in rows for f in r.figures)
    first = "; of a row of several seeds the first was tested" if seeded else ""
    said = "not significantly outperformed (Williams' test, one-sided, p < .05) by any of"
    return [f"bold{where}: {said}: {'; '.join(r.row.label for r in rows)}{first}"]


def _spread(row: MeasuredRow, outcome: Outcome) -> list[str]:
    """How far the networks of several seeds lie apart in each column."""
    columns, digits = outcome.table.experiment.columns, outcome.table.digits
    seeded = [(c, f) for c, f in zip(columns, row.figures, strict=False) if f.seeds > 1]
    if not seeded:
        return []
    seeds = max(figure.seeds for _, figure in seeded)
    listed = ", ".join(f"{column} {figure.deviation:.{digits}f}" for column, figure in seeded)
    return [f"{row.row.label}: mean of {seeds} seeds, standard deviation {listed}"]


def as_record(outcome: Outcome) -> dict[str, Any]:
    """Everything with full numbers."""
    table = outcome.table
    columns = table.experiment.columns
    return {
        "paper": table.paper,
        "table": table.number,
        "title": table.title,
        "data": table.experiment.data,
        "statistic": table.experiment.statistic,
        "note": table.note,
        "departures": {departure.title: departure.says for departure in table.departures},
        "code": code_version(),
        "rows": [
            {
                "label": row.row.label,
                "statistic": (row.row.experiment or table.experiment).statistic,
                "published": dict(zip(columns, row.row.published, strict=False)),
                "published_average": row.published_average,
                "published_average_is_printed": row.average_is_printed,
                "measured": dict(zip(columns, row.measured, strict=False)),
                "measured_average": row.average,
                "judged": dict(zip(columns, (f.count for f in row.figures), strict=False)),
                "seeds": [figure.seeds for figure in row.figures],
                "deviation": [figure.deviation for figure in row.figures],
                "left_out": [dict(figure.left_out) for figure in row.figures],
                "signatures": list(row.signatures),
                "unavailable": row.unavailable,
                "note": row.row.note,
            }
            for row in outcome.rows
        ],
    }


def _lines(row: MeasuredRow, outcome: Outcome, averaged: bool) -> list[list[Cell | str]]:
    digits, width = outcome.table.digits, len(outcome.table.experiment.columns)
    nothing = (math.nan,) * width

    def line(label: str, kind: str, values: tuple[float, ...], average: float) -> list[Cell | str]:
        shown = [*values, average] if averaged else list(values)
        cells = [number(value, digits, "dim" if kind == "published" else "") for value in shown]
        return [label, kind, *cells]

    name = row.row.label
    published = line(name, "published", row.row.published or nothing, row.published_average)
    if averaged and _is_recomputed(row):
        shown = number(row.published_average, digits)
        published[-1] = Cell(f"{shown.text} {RECOMPUTED}", shown.value, "dim")
    if row.unavailable:
        return [published, ["", "not available", *[Cell("–")] * (width + averaged)]]
    if not row.figures:
        return [published]
    measured = line("", "measured", row.measured, row.average)
    for place, figure in enumerate(row.figures):
        if figure.best:
            measured[2 + place] = number(figure.value, digits, "best")
    difference = row.average - row.published_average
    signed = [
        Cell("–" if math.isnan(v) else f"{v:+.{digits}f}", v)
        for v in (*row.differences, difference)
    ]
    return [
        published,
        measured,
        ["", "difference", *signed[: width + averaged]],
    ]


def _is_recomputed(row: MeasuredRow) -> bool:
    """Whether its published average is known, but not from the paper."""
    return not math.isnan(row.published_average) and not row.average_is_printed

"""An HTML page of the worst translations with marked errors and filters."""

from __future__ import annotations

from tertium.core.result import Cell, Table, number_cell
from tertium.decisions.worst import WorstRow, WorstSegments
from tertium.output.error_span_markup import error_span_paragraph
from tertium.output.html_table import render_table as render_html_table
from tertium.output.markup import Markup, element
from tertium.output.page.findings_page import SCRIPTS, filter_fields, sortable_rows
from tertium.output.page.template import fill_template, render_page

FILTERS = ("reason", "system", "lp", "document")


def worst_page(result: WorstSegments) -> str:
    """Return a self-contained page that lists each translation with its texts and errors."""
    has_chance = any(row.chance is not None for row in result.rows)
    header = ["rank", "reason", *(["chance"] if has_chance else []), *result.labels.values()]
    rows = [_describe_row(row, result) for row in result.rows]
    counts = Table.from_cells(
        ["reason", "translations"],
        [[name, Cell(str(count), count)] for name, count in result.counts().items()],
    )
    values = {
        "counts_title": "Reasons",
        "counts": render_html_table(counts),
        "rows_title": "Translations",
        "unit": "translations",
        "filters": _make_filters(result),
        "findings": sortable_rows([*header, "translation"], rows, "translations"),
        "note": "",
    }
    return render_page(
        fill_template("findings.html", values),
        SCRIPTS,
        title="Translations to look at first",
        subtitle=f"{len(result):,} of {result.total:,} translations",
        unit="translations",
    )


def _labels(row: WorstRow) -> dict[str, str]:
    own = row.row
    return {
        "reason": row.reason, "system": own.system, "lp": own.lp, "document": own.document
    }  # fmt: skip


def _make_filters(result: WorstSegments) -> Markup:
    values = {
        name: dict.fromkeys(filter(None, (_labels(row)[name] for row in result.rows)))
        for name in FILTERS
    }
    return filter_fields({name: own for name, own in values.items() if len(own) > 1})


def _describe_row(row: WorstRow, result: WorstSegments) -> Markup:
    has_chance = any(other.chance is not None for other in result.rows)
    chance = float("nan") if row.chance is None else row.chance
    numbers = [number_cell(chance, 2)] if has_chance else []
    numbers += [number_cell(row.scores[s], result.decimals[s]) for s in result.labels]
    labels = _labels(row)
    return element(
        "tr",
        element("th", str(row.rank), scope="row", data_value=row.rank),
        element("td", row.reason),
        *(element("td", c.text, class_="number", data_value=repr(c.value)) for c in numbers),
        element("td", *_texts(row)),
        **{f"data_{name}": value for name, value in labels.items()},
    )


def _texts(row: WorstRow) -> list[Markup]:
    own, segment = row.row, row.row.segment
    place = [own.system, f"segment {own.item}", own.lp, own.document]
    texts = [element("p", element("bdi", " · ".join(filter(None, place))))]
    texts.append(error_span_paragraph(segment.hypothesis, row.spans))
    if segment.source is not None:
        texts.append(error_span_paragraph(segment.source, row.spans, "source"))
    texts += [
        element("p", f"reference: {text}", dir="auto", class_="muted")
        for text in segment.references
    ]
    messages = [span.message for span in row.spans if span.message]
    messages += [f"warning: {kind}" for kind in row.warnings]
    if messages:
        texts.append(element("p", "; ".join(dict.fromkeys(messages)), class_="note"))
    return texts

"""Tables of the worst translations: a short one for the terminal, a full one for spreadsheets."""

from __future__ import annotations

from collections.abc import Sequence

from tertium.core.result import Table, Value
from tertium.decisions.worst import WorstRow, WorstSegments
from tertium.output.tables.table import Cell, cell_table, number_cell
from tertium.spans import Span

MAX_SHOWN = 60  # characters of a text in the terminal
NO_CHANCE = "chance: not known without human scores (--human); rows are ordered by score"


def worst_table(result: WorstSegments, *, shorten: bool = True) -> Table:
    """Return one row per translation, without references and spans."""
    has_chance = any(row.chance is not None for row in result.rows)
    has = {name: _has(result, name) for name in ("lp", "document")}
    header = ["rank", "reason", *(["chance"] if has_chance else []), "system", "segment"]
    header += [name for name, present in has.items() if present]
    has_source = any(row.row.segment.source for row in result.rows)
    header += [*result.labels.values(), "translation", *(["source"] if has_source else [])]
    rows: list[list[Cell | str]] = []
    for rank, row in enumerate(result.rows, start=1):
        cells: list[Cell | str] = [Cell(str(rank), rank), row.reason]
        if has_chance:
            cells.append(number_cell(float("nan") if row.chance is None else row.chance, 2))
        cells += [row.row.system, str(row.row.item)]
        cells += [getattr(row.row, name) for name, present in has.items() if present]
        cells += [number_cell(row.scores[spec], result.decimals[spec]) for spec in result.labels]
        texts = [row.row.segment.hypothesis]
        texts += [row.row.segment.source or ""] if has_source else []
        cells += [_shorten(text) if shorten else text for text in texts]
        rows.append(cells)
    text_columns = {n for n, name in enumerate(header) if name not in ("rank", "chance")}
    numbers = {header.index(label) for label in result.labels.values()}
    notes = [] if has_chance or not rows else [NO_CHANCE]
    return cell_table(
        header,
        rows,
        notes=[f"{len(result):,} of {result.total:,} translations", *notes],
        text_columns=frozenset(text_columns - numbers),
    )


def spreadsheet_rows(result: WorstSegments) -> tuple[list[str], list[list[Value]]]:
    """Return column names and rows with all texts, scores, warnings and errors."""
    references = max((len(row.row.segment.references) for row in result.rows), default=0)
    columns = ["rank", "reason", "chance", "system", "segment", "lp", "document"]
    columns += ["source", "translation"]
    columns += [f"reference {n + 1}" if references > 1 else "reference" for n in range(references)]
    columns += [*result.labels.values(), "warnings", "errors"]
    return columns, [
        _full_row(rank, row, references, [*result.labels])
        for rank, row in enumerate(result.rows, start=1)
    ]


def _full_row(rank: int, row: WorstRow, references: int, specs: Sequence[str]) -> list[Value]:
    segment, own = row.row.segment, row.row
    texts: list[Value] = [*segment.references]
    texts += [None] * (references - len(texts))
    errors = "\n".join(
        describe_span(span, segment.hypothesis, segment.source) for span in row.spans
    )
    return [
        *(rank, row.reason, row.chance, own.system, own.item, own.lp, own.document),
        *(segment.source, segment.hypothesis),
        *texts,
        *(row.scores[spec] for spec in specs),
        "; ".join(row.warnings),
        errors,
    ]


def describe_span(span: Span, hypothesis: str, source: str | None) -> str:
    """Describe an error in one line: severity, kind, marked text and message.

    >>> describe_span(Span(0, 3, severity="major", category="numbers", message="lost"), "12 a", "")
    'major numbers: "12 " (lost)'
    """
    text = span.of(hypothesis if span.side == "hypothesis" else source or "")
    kind = " ".join(filter(None, (span.severity, span.category)))
    details = "; ".join(filter(None, (span.message, span.rater)))
    return f'{kind}: "{text}"' + (f" ({details})" if details else "")


def _has(result: WorstSegments, name: str) -> bool:
    return any(getattr(row.row, name) for row in result.rows)


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_SHOWN else f"{line[: MAX_SHOWN - 1]}…"

"""Appraise: CSV exports without a header and without texts, a row for each rating.

Columns: user, system, item, type, languages, score, document, complete, spans, times. Raters mark
errors in some campaigns only. Rows of quality control are excluded and counted.
"""

from __future__ import annotations

import ast
import csv
from collections.abc import Iterator, Sequence
from typing import Any

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, short_repr
from tertium.data.formats import Source
from tertium.data.human_data import QUALITY_CONTROL
from tertium.data.judgments import JudgmentSet, Row, collect_published
from tertium.data.tables import parse_rows
from tertium.data.text_files import read_text

# columns before the spans, which only some campaigns have
COLUMNS = ("annotator", "system", "item", "type", "from", "to", "score", "doc", "complete")
REQUIRED = 7  # campaigns without documents end after the score
TYPES = frozenset({"TGT", "BAD", "CHK", "REF", "SRC"})
CONTROL_SUFFIXES = ("#bad", "#dup", "#incomplete")


def matches(source: Source) -> bool:
    try:
        first = next(csv.reader(source.lines[:1]), [])
    except csv.Error:  # reading the file as a table explains it
        return False
    return _is_row(first)


def read(source: Source) -> Iterator[JudgmentSet]:
    source.refuse_gold()
    yield read_appraise(source.path)


def read_appraise(path: PathLike) -> JudgmentSet:
    """Read the scores and spans of an export."""
    rows = parse_rows(read_text(path), ",", str(path))
    return collect_published(
        path, ((f"{path}, line {line}", cells) for line, cells in rows), _convert
    )


def _is_row(cells: Sequence[str]) -> bool:
    return len(cells) >= REQUIRED and cells[3] in TYPES


def _convert(cells: Sequence[str], where: str) -> Iterator[Row]:
    if not _is_row(cells):
        columns = ", ".join(COLUMNS)
        raise DataError(f"{where}: expected {columns}, ...; got {short_repr(cells[:9], 80)}")
    record: dict[str, Any] = dict(zip(COLUMNS, cells, strict=False))
    document = record.get("doc", "")
    is_control = document.endswith(CONTROL_SUFFIXES) or "tutorial" in document
    if record["type"] != "TGT" or is_control:
        yield QUALITY_CONTROL
        return
    if cells[9:] and cells[9][:1] in ("[", "{"):
        record["errors"] = _parse_errors(cells[9])
    yield record | {"lp": f"{record['from']}-{record['to']}"}


def _parse_errors(cell: str) -> Any:
    """Return the errors in a cell: JSON, or a Python literal as some versions of Appraise write it.

    >>> _parse_errors("{'start_i': 0, 'end_i': 4, 'severity': 'major'}")
    [{'start_i': 0, 'end_i': 4, 'severity': 'major'}]
    """
    try:
        errors = ast.literal_eval(cell) if "'" in cell else cell
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return cell  # the error names JSON
    return [errors] if isinstance(errors, dict) else errors

"""Appraise: CSV exports without a header and without texts, a row for each rating.

Columns: user, system, item, type, languages, score, document, complete, spans, times. Raters mark
errors in some campaigns only. Rows of quality control are excluded and counted.
"""

from __future__ import annotations

import ast
import csv
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from tertium.core.errors import DataError, short_repr
from tertium.data.formats import Source
from tertium.data.judgments import QUALITY_CONTROL, JudgmentSet, Row, collect_published
from tertium.data.tables import parse_rows
from tertium.data.text_files import read_text

# columns before the spans, which only some campaigns have
COLUMNS = ("annotator", "system", "item", "type", "from", "to", "score", "doc", "complete")
REQUIRED = 7  # campaigns without documents end after the score
TYPES = frozenset({"TGT", "BAD", "CHK", "REF", "SRC"})
CONTROL_SUFFIXES = ("#bad", "#dup", "#incomplete")


def matches(source: Source) -> bool:
    return _is_row(next(csv.reader(source.lines[:1]), []))


def read(source: Source) -> Iterator[JudgmentSet]:
    rows = parse_rows(read_text(source.path), ",", str(source.path))
    records = ((f"{source.path}, line {line}", cells) for line, cells in rows)
    yield collect_published(source.path, records, _convert)


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
    if cells[9:] and cells[9][:1] in ("[", "{"):  # JSON, or in some versions Python literals
        record["errors"] = cells[9]
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            errors = ast.literal_eval(cells[9])
            record["errors"] = [errors] if isinstance(errors, dict) else errors
    yield record | {"lp": f"{record['from']}-{record['to']}"}

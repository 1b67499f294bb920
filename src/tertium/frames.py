"""Tables as pandas frames and as files; input tables are validated.

Scores are pandas frames; tables of texts may also come from polars or Arrow. pandas is optional and
imported only when a frame is created. Errors name the column and the row.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertium.atomic import open_atomic, write_text
from tertium.errors import DataError, UnknownNameError, UsageError
from tertium.extras import explain_missing, require_modules

if TYPE_CHECKING:
    from pandas import DataFrame


def make_frame(columns: Mapping[str, Any], **attributes: Any) -> DataFrame:
    """Create a pandas frame; non-empty `attributes` go into `frame.attrs`, which Parquet stores."""
    with explain_missing("a frame or Parquet file"):
        import pandas
    frame = pandas.DataFrame(dict(columns))
    frame.attrs.update({key: value for key, value in attributes.items() if value not in ("", None)})
    return frame


def is_frame(value: Any) -> bool:
    """Tell whether a value is a table of pandas, polars or Arrow."""
    return hasattr(value, "columns") and hasattr(value, "shape")


def unwrap_arrow_column(values: Any) -> Any:
    """Convert an Arrow column to a list; return any other value unchanged."""
    return values.to_pylist() if hasattr(values, "to_pylist") else values


def is_missing(value: Any) -> bool:
    """Tell whether a value is None, NaN, or a missing value of pandas.

    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")  # of pandas


def frame_to_records(frame: Any) -> list[dict[str, Any]]:
    """Convert a table to one dictionary per row; missing values become None."""
    names = [str(name) for name in getattr(frame, "column_names", frame.columns)]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(f"the table has two columns {repeated!r}: give them different names")
    if hasattr(frame, "to_pylist"):  # Arrow
        rows = frame.to_pylist()
    elif hasattr(frame, "to_dicts"):  # polars
        rows = frame.to_dicts()
    else:
        rows = frame.astype(object).where(frame.notna(), None).to_dict(orient="records")
    return [dict(zip(names, row.values(), strict=True)) for row in rows]


def check_columns(
    frame: DataFrame, required: Sequence[str], allowed: Sequence[str], where: str
) -> None:
    """Raise an error if a frame lacks a required column or has one that is not allowed."""
    if not hasattr(frame, "iloc"):
        kind = type(frame).__name__
        remedy = "; convert it with frame.to_pandas()" if is_frame(frame) else ""
        raise UsageError(f"{where}: expected a pandas frame, got {kind}{remedy}")
    names = [str(name) for name in frame.columns]
    missing = next((name for name in required if name not in names), None)
    if missing is not None:
        raise DataError(f"{where}: no column {missing!r}; found {', '.join(names) or 'none'}")
    for name in names:
        if name not in allowed:
            raise UnknownNameError(f"column of {where}", name, allowed)


def numeric_column(
    frame: DataFrame, column: str, where: str, *, allow_missing: bool = False
) -> Any:
    """Return a column as float64; raise `DataError` for text, infinity, and (by default) NaN."""
    values = frame[column]
    kind = getattr(values.dtype, "kind", "O")
    if kind not in "iuf" and not str(values.dtype).startswith(("Int", "Float", "int", "float")):
        raise DataError(f"{where}: column {column!r} has type {values.dtype}; expected numbers")
    array = values.to_numpy(dtype="float64", na_value=math.nan)
    for row, value in enumerate(array.tolist(), start=1):
        if math.isinf(value) or (math.isnan(value) and not allow_missing):
            raise DataError(f"{where}, row {row}: {column} is {value}; expected a number")
    return array


def format_name(value: str | int | float) -> str:
    """Format the name of a system or item as text, without surrounding whitespace.

    7.0 becomes 7, because tables with gaps store whole numbers as floats.

    >>> format_name(7.0), format_name(" 7.0"), format_name(7.5)
    ('7', '7.0', '7.5')
    """
    is_integral = isinstance(value, float) and value.is_integer()
    return str(int(value) if is_integral else value).strip()


def name_column(frame: DataFrame, column: str, where: str) -> list[str]:
    """Return a column of system or item names as text (`format_name`); no name may be missing."""
    names = []
    for row, value in enumerate(_python_values(frame[column].astype(object)), start=1):
        if isinstance(value, bool) or not isinstance(value, str | Integral | float):
            raise DataError(f"{where}, row {row}: {column} is {value}; expected a name or a number")
        names.append(format_name(int(value) if isinstance(value, Integral) else value))
    return names


def write_frame(
    table: DataFrame | Mapping[str, Sequence[Any]], path: str | os.PathLike[str]
) -> None:
    """Write a frame or a mapping of columns as .parquet, .tsv, .csv or .jsonl, by file suffix.

    Only Parquet needs pandas. Numbers are written in full precision. A missing value is null in
    JSON and an empty field elsewhere. TSV fields are not quoted: they must not contain tabs or line
    breaks.
    """
    suffix = Path(path).suffix
    if suffix == ".parquet":
        require_modules(
            "pandas", "pyarrow", purpose="a Parquet file", hint="or write .tsv or .jsonl"
        )
        with open_atomic(path) as stream:
            frame = make_frame(table) if isinstance(table, Mapping) else table
            frame.to_parquet(stream, index=False)
        return
    columns = {str(name): values for name, values in table.items()}
    rows = zip(*(_python_values(values) for values in columns.values()), strict=True)
    if suffix == ".tsv":
        cells = [[*columns], *(["" if v is None else str(v) for v in row] for row in rows)]
        if any(mark in cell for row in cells for cell in row for mark in "\t\n\r"):
            raise DataError(f"{path}: a field contains a tab or line break")
        write_text(path, ("\t".join(row) + "\n" for row in cells))
    elif suffix == ".csv":
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows([[*columns], *rows])
        write_text(path, text.getvalue())
    else:
        records = (dict(zip(columns, row, strict=True)) for row in rows)
        write_text(path, (json.dumps(record, ensure_ascii=False) + "\n" for record in records))


def _python_values(values: Any) -> list[Any]:
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    return [None if is_missing(value) else value for value in listed]

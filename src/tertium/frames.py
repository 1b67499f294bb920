"""Tables in memory and as Parquet files, checked on their way in.

Scores are frames of pandas; tables of texts may be of polars or Arrow, too.
pandas is optional: nothing imports it until a frame is asked for. A frame that cannot be what it
should be is refused with the column and the row that are wrong.
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

from tertium.atomic import replace_content, write_text
from tertium.errors import DataError, UnknownNameError, UsageError
from tertium.extras import explain_missing, require

if TYPE_CHECKING:
    from pandas import DataFrame


def make_frame(columns: Mapping[str, Any], **about: Any) -> DataFrame:
    """A frame of named columns; `about` becomes its `attrs`, which Parquet keeps."""
    with explain_missing("a frame or Parquet file"):
        import pandas
    frame = pandas.DataFrame(dict(columns))
    frame.attrs.update({key: value for key, value in about.items() if value not in ("", None)})
    return frame


def is_frame(value: Any) -> bool:
    """Whether a value is a table of pandas, polars or Arrow, by what they share."""
    return hasattr(value, "columns") and hasattr(value, "shape")


def plain_column(values: Any) -> Any:
    """A column of Arrow, whose values are objects of its own, as a list; others as they are."""
    return values.to_pylist() if hasattr(values, "to_pylist") else values


def is_missing(value: Any) -> bool:
    """Whether a value is one of those by which lists and frames say that there is none.

    >>> is_missing(None), is_missing(float("nan")), is_missing("")
    (True, True, False)
    """
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")  # of pandas


def frame_records(frame: Any) -> list[dict[str, Any]]:
    """The rows of such a table as dictionaries; what is missing is None."""
    names = [str(name) for name in getattr(frame, "column_names", frame.columns)]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(f"the table has two columns {repeated!r}: name them apart")
    if hasattr(frame, "to_pylist"):  # Arrow
        rows = frame.to_pylist()
    elif hasattr(frame, "to_dicts"):  # polars
        rows = frame.to_dicts()
    else:
        rows = frame.astype(object).where(frame.notna(), None).to_dict(orient="records")
    return [dict(zip(names, row.values(), strict=True)) for row in rows]


def check_columns(
    frame: DataFrame, needed: Sequence[str], known: Sequence[str], where: str
) -> None:
    """Refuse a frame that lacks a column, or has one that nobody reads."""
    if not hasattr(frame, "iloc"):
        kind = type(frame).__name__
        remedy = ": frame.to_pandas() makes one" if is_frame(frame) else ""
        raise UsageError(f"{where}: expected a frame of pandas, got {kind}{remedy}")
    names = [str(name) for name in frame.columns]
    missing = next((name for name in needed if name not in names), None)
    if missing is not None:
        raise DataError(f"{where}: no column {missing!r}; found {', '.join(names) or 'none'}")
    for name in names:
        if name not in known:
            raise UnknownNameError(f"column of {where}", name, known)


def numbers(frame: DataFrame, column: str, where: str, *, missing: bool = False) -> Any:
    """A column as float64; texts and infinities are refused, NaN too unless it may be `missing`."""
    values = frame[column]
    kind = getattr(values.dtype, "kind", "O")
    if kind not in "iuf" and not str(values.dtype).startswith(("Int", "Float", "int", "float")):
        raise DataError(f"{where}: column {column!r} holds {values.dtype}, not numbers")
    array = values.to_numpy(dtype="float64", na_value=math.nan)
    for row, value in enumerate(array.tolist(), start=1):
        if math.isinf(value) or (math.isnan(value) and not missing):
            raise DataError(f"{where}, row {row}: {column} is {value}; expected a number")
    return array


def printed(value: str | int | float) -> str:
    """A name or number as text; blanks around a name are none of it.

    7.0 is 7, as tables with gaps hold whole numbers as fractions.

    >>> printed(7.0), printed(" 7.0"), printed(7.5)
    ('7', '7.0', '7.5')
    """
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value).strip()


def names(frame: DataFrame, column: str, where: str) -> list[str]:
    """A column of systems or items as texts, as files name them (`printed`); each row has one."""
    found = []
    for row, value in enumerate(_plain(frame[column].astype(object)), start=1):
        if isinstance(value, bool) or not isinstance(value, str | Integral | float):
            raise DataError(f"{where}, row {row}: {column} is {value}; expected a name or a number")
        found.append(printed(int(value) if isinstance(value, Integral) else value))
    return found


def write_frame(
    table: DataFrame | Mapping[str, Sequence[Any]], path: str | os.PathLike[str]
) -> None:
    """Write a frame to .parquet, .tsv, .csv or .jsonl, whichever the suffix says.

    Named columns serve as well: only Parquet needs pandas.

    Numbers are written in full; what is missing is null in JSON and an empty field elsewhere. TSV
    takes fields literally, and none may hold a tab or line end.
    """
    suffix = Path(path).suffix
    if suffix == ".parquet":
        require("pandas", "pyarrow", purpose="a Parquet file", hint="or write .tsv or .jsonl")
        with replace_content(path) as stream:
            frame = make_frame(table) if isinstance(table, Mapping) else table
            frame.to_parquet(stream, index=False)
        return
    columns = {str(name): values for name, values in table.items()}
    rows = zip(*(_plain(values) for values in columns.values()), strict=True)
    if suffix == ".tsv":
        cells = [[*columns], *(["" if v is None else str(v) for v in row] for row in rows)]
        if any(mark in cell for row in cells for cell in row for mark in "\t\n\r"):
            raise DataError(f"{path}: a field contains a tab or line end")
        write_text(path, ("\t".join(row) + "\n" for row in cells))
    elif suffix == ".csv":
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows([[*columns], *rows])
        write_text(path, text.getvalue())
    else:
        records = (dict(zip(columns, row, strict=True)) for row in rows)
        write_text(path, (json.dumps(record, ensure_ascii=False) + "\n" for record in records))


def _plain(values: Any) -> list[Any]:
    """Values of a column as Python's own; what is missing is None."""
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    return [None if is_missing(value) else value for value in listed]

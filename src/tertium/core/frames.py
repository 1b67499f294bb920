"""Tables as pandas frames.

Scores are pandas frames; tables of texts may also come from polars or Arrow. pandas is optional and
imported only when a frame is created.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tertium.core.errors import DataError
from tertium.core.extras import explain_missing

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


def format_name(value: str | int | float) -> str:
    """Format the name of a system or item as text, without surrounding whitespace.

    7.0 becomes 7, because tables with gaps store whole numbers as floats.

    >>> format_name(7.0), format_name(" 7.0"), format_name(7.5)
    ('7', '7.0', '7.5')
    """
    is_integral = isinstance(value, float) and value.is_integer()
    return str(int(value) if is_integral else value).strip()

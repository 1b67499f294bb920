"""Read and write records: JSONL, TSV, CSV, Parquet, frames and lists; errors name the location.

`locate_lines` and `locate_records` find the texts of a test set in their files: line and column.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tertium.core.atomic import PathLike, write_text
from tertium.core.errors import DataError, UsageError, short_repr
from tertium.core.fields import reject_duplicate_keys
from tertium.core.findings import FileLocation, Locate
from tertium.core.result import frame_to_records, is_frame, is_missing
from tertium.core.spans import Side
from tertium.data import records
from tertium.data.records import (
    HYPOTHESIS_NAMES,
    REFERENCE_NAMES,
    SOURCE_NAMES,
    LocatedRecords,
    Record,
)
from tertium.data.tables import (
    missing_to_null,
    parse_table,
    read_parquet,
    read_table,
    read_workbook,
)
from tertium.data.text_files import (
    JSON_SUFFIXES,
    STDIN,
    XLSX,
    check_record,
    decode_path,
    display_name,
    is_stdin,
    read_text,
    split_lines,
)

logger = logging.getLogger(__name__)

Records = PathLike | Iterable[Record] | Any  # a file, records in memory, or a frame
Fields = Sequence[str] | Mapping[str, str]  # all columns, or the columns of some fields
TEXT_ALIASES = (HYPOTHESIS_NAMES, SOURCE_NAMES, REFERENCE_NAMES)
_JSONL_HINT = "; write one object per line without commas: jq -c '.[]' converts a list"
_DECODER = json.JSONDecoder(object_pairs_hook=reject_duplicate_keys)


def read_jsonl(path: PathLike) -> LocatedRecords:
    """Read the objects of a JSONL file, each with its location; blank lines are skipped."""
    return _parse_jsonl(read_text(path), display_name(path))


def _parse_jsonl(text: str, name: str) -> LocatedRecords:
    for number, line in enumerate(split_lines(text, name), start=1):
        if line.strip():
            where = f"{name}, line {number}"
            yield where, parse_json_object(line, where)


def parse_json_object(line: str, where: str) -> dict[str, Any]:
    """Parse one line of JSONL and check its texts."""
    record = parse_json(line, where, _JSONL_HINT)
    if not isinstance(record, dict):
        raise DataError(f"{where}: expected an object, got {line[:40]!r}{_JSONL_HINT}")
    if "\\u" in line or "\0" in line:  # the only ways to write a forbidden character
        check_record(record, where)
    return record


def to_json(value: Any) -> str:
    """Format JSON with full precision; NaN becomes null."""
    return json.dumps(missing_to_null(value), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def parse_json(text: str, where: str, hint: str = "") -> Any:
    """Parse JSON; `hint` is appended to the error if it is invalid."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        line = f", line {error.lineno}" if "\n" in text else ""
        raise DataError(f"{where}: not JSON ({error.msg}{line}){hint}") from None
    except RecursionError:
        raise DataError(f"{where}: the JSON is nested too deeply") from None
    except ValueError as error:
        raise DataError(f"{where}: the JSON cannot be read ({error})") from None


def read_records(path: Records, fields: Fields | None = None) -> LocatedRecords:
    """Read records with their locations from JSONL, TSV, CSV, Parquet, .xlsx, a list or a frame.

    The suffix decides the format of a file. Standard input is JSONL if it starts with `{`,
    otherwise TSV. `fields` is a list of the columns of a file without a header, or maps the names
    of fields to columns.
    """
    if isinstance(fields, Mapping):
        return _rename_columns(read_records(path), fields)
    if not isinstance(path, str | os.PathLike):
        return iterate_records(path)
    suffixes = Path(path).suffixes
    if not {".parquet", XLSX, *JSON_SUFFIXES} & {*suffixes}:
        return _read_piped_records(fields) if is_stdin(path) else read_table(path, fields)
    if fields:
        raise UsageError(f"{path}: --fields is for a .tsv or .csv file without a header")
    if XLSX in suffixes:
        return read_workbook(path)
    return read_parquet(path) if ".parquet" in suffixes else read_jsonl(path)


def parse_fields(values: Sequence[str]) -> Fields | None:
    """Parse the values of --fields: NAME=COLUMN for some columns, or all columns as A,B,...

    >>> parse_fields(["hypothesis=output", "source=input"]), parse_fields(["source,reference"])
    ({'hypothesis': 'output', 'source': 'input'}, ['source', 'reference'])
    """
    if not values:
        return None
    if len(values) == 1 and "=" not in values[0]:
        return values[0].split(",")
    columns: dict[str, str] = {}
    for value in values:
        name, _, column = value.partition("=")
        if not name or not column:
            raise UsageError(
                f"--fields {value}: expected NAME=COLUMN for each field, such as "
                "hypothesis=output, or A,B,... for a file without a header"
            )
        if name in columns:
            raise UsageError(f"--fields {name} is given twice: name it once")
        columns[name] = column
    return columns


def _rename_columns(rows: LocatedRecords, fields: Mapping[str, str]) -> LocatedRecords:
    """Read each field from its column only; columns that are no field keep their names."""
    aliases = [name for names in TEXT_ALIASES if {*names} & {*fields} for name in names]
    for where, record in rows:
        for column in fields.values():
            if column not in record:
                raise DataError(
                    f"{where}: no column {column!r} (--fields); columns are {', '.join(record)}"
                )
        used = {*fields, *fields.values(), *aliases}
        renamed = {name: value for name, value in record.items() if name not in used}
        yield where, {**{name: record[column] for name, column in fields.items()}, **renamed}


def _read_piped_records(fields: Sequence[str] | None) -> LocatedRecords:
    text = read_text(STDIN)
    name = display_name(STDIN)
    if not fields and text.lstrip().startswith("{"):
        return _parse_jsonl(text, name)
    return parse_table(text, name, fields, "\t")


def default_name(source: Records, otherwise: str = "") -> str:
    """Return the name of a file without suffixes, or `otherwise` if the source is not a file.

    >>> default_name("runs/ours.tsv.gz"), default_name([{"mt": "hello"}], "ours")
    ('ours', 'ours')
    """
    if not isinstance(source, str | os.PathLike) or is_stdin(source):
        return otherwise
    return decode_path(Path(source).name).split(".")[0]


def iterate_records(table: Any, each: str = "row") -> LocatedRecords:
    """Iterate over a frame (pandas, polars, Arrow) or a list of records, with row numbers.

    Missing values become None and arrays become lists.

    >>> [*iterate_records([{"mt": "hello", "ref": float("nan")}])]
    [('row 1', {'mt': 'hello', 'ref': None})]
    """
    rows = frame_to_records(table) if is_frame(table) else table
    if isinstance(rows, str | Mapping) or not isinstance(rows, Iterable):
        raise UsageError(
            f'expected records, [{{"mt": ..., "ref": ...}}, ...], or a frame with such columns, '
            f"not {short_repr(table)}"
        )
    for number, row in enumerate(rows, start=1):
        where = f"{each} {number}"
        if not isinstance(row, Mapping) and not hasattr(row, "to_dict"):  # a pandas row has it
            raise UsageError(
                f'{where}: expected a record, {{"mt": ..., "ref": ...}}, not {short_repr(row)}'
            )
        cells = row if isinstance(row, Mapping) else row.to_dict()
        record = {str(name): _to_plain_cell(value) for name, value in cells.items()}
        check_record(record, where)
        yield where, record


def _to_plain_cell(value: Any) -> Any:
    value = value.tolist() if hasattr(value, "tolist") else value  # numpy
    return None if is_missing(value) else value


def write_jsonl(path: PathLike, records: Iterable[Record]) -> None:
    """Write one JSON object per line, atomically; texts that no reader accepts are an error."""
    write_text(path, _format_records(path, records))


def _format_records(path: PathLike, records: Iterable[Record]) -> Iterator[str]:
    for number, record in enumerate(records, start=1):
        line = json.dumps(missing_to_null(record), ensure_ascii=False, allow_nan=False)
        if "\\u0000" in line.replace("\\\\", ""):  # without escaped backslashes
            raise DataError(
                f"{path}, record {number}: a text contains NUL, which no reader accepts: remove it"
            )
        yield line + "\n"


LINE_NUMBER = re.compile(r"line (\d+)$")


def locate_lines(systems: Mapping[str, str], sources: str | None = None) -> Locate:
    """Locate the texts of parallel files, by the file of each system and of the sources.

    >>> locate_lines({"ours": "ours.txt"})("ours", 2, "hypothesis")
    FileLocation(file='ours.txt', line=3, column=1)
    """

    def locate(system: str, segment: int, side: Side) -> FileLocation | None:
        file = sources if side == "source" else systems[system]
        return None if file is None or is_stdin(file) else FileLocation(file, segment + 1, 1)

    return locate


def locate_records(
    path: str,
    systems: Mapping[str, Sequence[str]],
    sources: Sequence[str] = (),
    fields: Fields | None = None,
) -> Locate:
    """Locate the texts of a file of records by their lines; standard input has no locations.

    The column is known if the text is written in its line exactly once.
    """

    @cache
    def read_lines() -> tuple[dict[str, list[int]], list[str]]:
        """Return the numbers of the lines of each system, and the lines."""
        lines: dict[str, list[int]] = {}
        if is_stdin(path) or {".parquet", ".xlsx"} & {*Path(path).suffixes}:
            return lines, []
        default = default_name(path) or "system"
        for where, record in read_records(path, fields):
            names = records.lowercase_known_columns(record)
            system = records.read_name(names, records.SYSTEM_NAMES, where) or default
            match = LINE_NUMBER.search(where)
            lines.setdefault(system, []).append(int(match[1]) if match else 1)
        return lines, split_lines(read_text(path), path)

    def locate(system: str, segment: int, side: Side) -> FileLocation | None:
        lines, raw = read_lines()
        if system not in lines:
            return None if is_stdin(path) else FileLocation(path)
        line = lines[system][segment]
        text = (sources if side == "source" else systems[system])[segment]
        is_clear = bool(text) and raw[line - 1].count(text) == 1
        return FileLocation(path, line, raw[line - 1].index(text) + 1 if is_clear else None)

    return locate

"""Read and write text lines, tables and records; errors name the file and the line.

Text is UTF-8 with or without a byte-order mark, plain or gzip. Lines end with LF or CRLF, as in
sacrebleu; a lone carriage return is text. An empty line is a segment like any other. Invalid bytes,
NUL bytes, ragged rows and missing fields are errors. The file name `-` is standard input, which can
be read once.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import logging
import math
import os
import re
import sys
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tertium.atomic import PathLike as PathLike
from tertium.atomic import write_text
from tertium.errors import DataError, UsageError, short_repr
from tertium.extras import explain_missing
from tertium.frames import frame_to_records, is_frame, is_missing
from tertium.schema import reject_duplicate_keys
from tertium.segment import check_surrogates
from tertium.text.language_codes import normalize_language_pair

logger = logging.getLogger(__name__)

STDIN = "-"  # the file name that means standard input
Records = PathLike | Iterable[Mapping[str, Any]] | Any  # a file, records in memory, or a frame
JSON_SUFFIXES = frozenset({".jsonl", ".json", ".ndjson"})
RECORD_SUFFIXES = JSON_SUFFIXES | {".tsv", ".csv", ".parquet"}
BYTE_ORDER_MARKS = (  # longest first: the UTF-32-LE mark starts with the UTF-16-LE mark
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
LANGUAGE_PAIR = re.compile(r"[a-z]{2,3}-[a-z]{2,3}")

_PANDAS_INDEX = "__index_level_"  # prefix of the column in which pandas saves the row index
_JSONL_HINT = "; write one object per line without commas: jq -c '.[]' converts a list"
_DECODER = json.JSONDecoder(object_pairs_hook=reject_duplicate_keys)
_stdin_reader: weakref.ref[Any] | None = None  # the stream that was read to its end

csv.field_size_limit(1 << 24)


def read_text(path: PathLike) -> str:
    """Read a file, plain or gzip, and check that it is valid UTF-8."""
    name = display_name(path)
    try:
        data = _read_stdin() if _is_stdin(path) else Path(path).read_bytes()
    except FileNotFoundError:
        raise DataError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{name} is a directory; expected a file") from None
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror})") from None
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{name}: damaged gzip file ({error})") from None
    return decode(data, name)


def _is_stdin(path: PathLike) -> bool:
    return os.fspath(path) == STDIN


def _read_stdin() -> bytes:
    """Read standard input to its end; a second call raises an error."""
    global _stdin_reader
    stream = sys.stdin
    if stream is None:
        raise UsageError("standard input is closed: give a file instead of -")
    if _stdin_reader is not None and _stdin_reader() is stream:
        raise UsageError("- (standard input) is given twice: it can be read only once; use files")
    _stdin_reader = weakref.ref(stream)
    data: bytes = stream.buffer.read() if hasattr(stream, "buffer") else stream.read().encode()
    return data


def display_name(path: PathLike) -> str:
    """Return the name of a file for messages.

    >>> display_name("-"), display_name("runs/ours.txt")
    ('standard input', 'runs/ours.txt')
    """
    return "standard input" if _is_stdin(path) else str(Path(path))


def decode(data: bytes, where: str) -> str:
    """Decode UTF-8 without a byte-order mark; errors name the line of the invalid byte."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = error.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
        line = data.count(b"\n", 0, start) + 1
        encoding = next((name for mark, name in BYTE_ORDER_MARKS if data.startswith(mark)), "")
        raise DataError(
            f"{where}, line {line}: not UTF-8 (byte 0x{data[start]:02x} at position {start}); "
            f"convert it first: iconv -f {encoding or 'LATIN1'} -t UTF-8 FILE > NEW"
            + ("" if encoding else " (replace LATIN1 by the encoding of the file)")
        ) from None
    nul = text.find("\0")
    if nul >= 0:
        line = text.count("\n", 0, nul) + 1
        check_text(text, f"{where}, line {line}")
    return text


def check_text(text: str, where: str) -> None:
    """Raise an error for NUL and for unpaired surrogates, which no text file can contain."""
    if "\0" in text:
        raise DataError(
            f"{where}: NUL byte; is this a text file? To convert UTF-16: "
            "iconv -f UTF-16LE -t UTF-8 FILE > NEW"
        )
    check_surrogates(text, where)


def check_record(record: Mapping[str, Any], where: str) -> None:
    """Apply `check_text` to every string in a record, including nested lists and objects."""
    stack: list[Any] = [record]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            check_text(value, where)
        elif isinstance(value, Mapping):
            stack += [*value, *value.values()]
        elif isinstance(value, list):
            stack += value


def decode_path(path: PathLike) -> str:
    """Return a path as text; bytes that are not UTF-8 become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def language_pair_in_path(path: PathLike) -> str:
    """Return the language pair in a file name or its folder's name, or an empty string.

    >>> language_pair_in_path("metric-scores/en-de/BLEU-refA.seg.score")
    'en-de'
    >>> language_pair_in_path("out/chrf.zho-eng.tsv")
    'zh-en'
    """
    file = Path(path)
    words = [*file.name.split("."), file.parent.name]
    return normalize_language_pair(next(filter(LANGUAGE_PAIR.fullmatch, words), ""))


def read_lines(path: PathLike) -> list[str]:
    r"""Read the lines of a file without their endings, `\n` or `\r\n`.

    A lone `\r` and the other separators of `str.splitlines` (form feed, U+2028, ...) stay in the
    text, as in sacrebleu and `wc`. A warning counts the lone `\r`.
    """
    lines = _split_lines(read_text(path), display_name(path))
    warn_about_carriage_returns(display_name(path), sum(line.count("\r") for line in lines))
    return lines


def read_first_lines(path: PathLike, count: int) -> list[str]:
    """Return at most `count` lines from the beginning of a file, to detect its format."""
    lines = read_text(path).split("\n", count)[:count]
    return [line.removesuffix("\r") for line in lines]


def warn_about_carriage_returns(name: str, count: int) -> None:
    """Warn if lines contain carriage returns, which other tools may read as line ends."""
    if count:
        logger.warning(
            "warning: %s: carriage returns (\\r) inside lines: %d; they are kept as text, because "
            "only \\n and \\r\\n end a line",
            name,
            count,
        )


def _split_lines(text: str, name: str) -> list[str]:
    if not text:
        raise DataError(f"{name} is empty; expected one segment per line")
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def read_jsonl(path: PathLike) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read the objects of a JSONL file, each with its location; blank lines are skipped."""
    return _parse_jsonl(read_text(path), display_name(path))


def _parse_jsonl(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(_split_lines(text, name), start=1):
        if line.strip():
            where = f"{name}, line {number}"
            yield where, parse_json_object(line, where)


def parse_json_object(line: str, where: str) -> dict[str, Any]:
    """Parse one line of JSONL and check its texts."""
    is_other_layout = is_json_list_line(line) or line.strip() == "{"
    record = parse_json(line, where, _JSONL_HINT if is_other_layout else "")
    if not isinstance(record, dict):
        raise DataError(f"{where}: expected an object, got {line[:40]!r}{_JSONL_HINT}")
    if "\\u" in line or "\0" in line:  # the only ways to write a forbidden character
        check_record(record, where)
    return record


def is_json_list_line(line: str) -> bool:
    """Return whether a line starts a JSON list of objects, or is an object with a comma.

    >>> [is_json_list_line(line) for line in ("[", '[{"mt": ""},', '{"mt": ""},', '{"mt": ""}')]
    [True, True, True, False]
    """
    text = line.strip()
    return text == "[" or text.startswith("[{") or (text[:1] == "{" and text.endswith("},"))


def missing_to_null(value: Any) -> Any:
    """Convert a value for JSON: NaN and infinity become None, tuples become lists.

    >>> missing_to_null({"dev": (float("nan"), 1.5)})
    {'dev': [None, 1.5]}
    """
    if isinstance(value, Mapping):
        return {key: missing_to_null(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [missing_to_null(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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


RowFallback = Callable[[list[str], DataError], dict[str, str] | None]


def read_table(
    path: PathLike,
    fields: Sequence[str] | None = None,
    *,
    delimiter: str | None = None,
    fallback: RowFallback | None = None,
) -> Iterator[tuple[str, dict[str, str]]]:
    """Read the rows of a TSV or CSV file as dictionaries, each with its location.

    The first row is the header unless `fields` names the columns. The delimiter follows the suffix:
    comma for `.csv`, otherwise tab. CSV fields may be quoted. TSV fields are literal; a warning
    reports those that look quoted, because the quotes would be scored as text. If the last column
    name starts with `#` and a row lacks that column, the name is a comment. `fallback` is called
    with a row that has another number of fields: it returns a record, or None to skip the row.
    """
    if delimiter is None:
        delimiter = "," if ".csv" in Path(path).suffixes else "\t"
    return _parse_table(read_text(path), display_name(path), fields, delimiter, fallback)


def _parse_table(
    text: str,
    name: str,
    fields: Sequence[str] | None,
    delimiter: str,
    fallback: RowFallback | None = None,
) -> Iterator[tuple[str, dict[str, str]]]:
    rows = parse_rows(text, delimiter, name)
    quoted = 0
    header = list(fields) if fields is not None else next(rows, (0, None))[1]
    if header is None:
        raise DataError(f"{name} is empty; expected a header and rows")
    header = [column.strip() for column in header]
    check_delimiter(header, delimiter, name)
    check_unique_columns(header, name)
    for line, row in rows:
        if not row:
            continue
        where = f"{name}, line {line}"
        if line == 1:
            reject_header_row(row, header, name)
        has_comment = header[-1].startswith("#") and len(row) == len(header) - 1
        if len(row) != len(header) and not has_comment:
            error = DataError(
                f"{where}: {len(row)} fields, but the header has {len(header)} "
                f"({', '.join(header)})"
            )
            if fallback is None:
                raise error
            if (record := fallback(row, error)) is not None:
                yield where, record
            continue
        quoted += sum(map(is_csv_quoted, row)) if delimiter == "\t" else 0
        yield where, dict(zip(header, row, strict=not has_comment))
    warn_about_csv_quotes(name, quoted)
    if delimiter == "\t":
        warn_about_carriage_returns(name, text.count("\r") - text.count("\r\n"))


def parse_rows(text: str, delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Split a table into rows with `csv_rows`, each with the number of its last line."""
    lines = io.StringIO(text, newline="\n")
    if delimiter == "\t":
        yield from enumerate(csv_rows(lines, delimiter), start=1)
        return
    reader = csv_rows(lines, delimiter)
    last_line = 0
    try:
        for row in reader:
            last_line = reader.line_num
            yield last_line, row
    except csv.Error as error:
        problem = describe_csv_error(error, last_line + 1, reader.line_num)
        raise DataError(f"{name}, {problem}") from None


def csv_rows(lines: Iterable[str], delimiter: str) -> Any:
    """Return an iterator of rows: literal fields for tabs, strict quoting for other delimiters.

    Strict quoting rejects an unclosed quote, which would swallow all later rows, and text after a
    closing quote. An empty line is an empty row.
    """
    if delimiter == "\t":
        texts = (line.removesuffix("\n").removesuffix("\r") for line in lines)
        return (text.split(delimiter) if text else [] for text in texts)
    return csv.reader(lines, delimiter=delimiter, strict=True)


def describe_csv_error(error: csv.Error, first: int, last: int) -> str:
    """Describe an error of `csv_rows` with its lines and how to fix it.

    >>> describe_csv_error(csv.Error("unexpected end of data"), 3, 9)
    'lines 3 to 9: a quote is not closed; double the quotes inside a quoted field'
    """
    where = f"line {last}" if first >= last else f"lines {first} to {last}"
    remedy = "; double the quotes inside a quoted field"
    if str(error) == "unexpected end of data":
        return f"{where}: a quote is not closed{remedy}"
    if str(error).startswith("new-line character"):
        return f"{where}: a carriage return outside quotes; end rows with \\n or \\r\\n"
    return f"{where}: {error}" + (remedy if "expected after" in str(error) else "")


def reject_header_row(row: Sequence[str], fields: Sequence[str], path: PathLike) -> None:
    """Raise an error if the first row repeats the column names given by `fields`."""
    if [cell.strip().lower() for cell in row] == [name.lower() for name in fields]:
        raise UsageError(
            f"{path}: the first line is a header ({', '.join(fields)}) and would be scored as a "
            "row: omit --fields"
        )


def check_unique_columns(names: Sequence[str], path: PathLike) -> None:
    """Raise an error if two columns have the same name."""
    if len(set(names)) < len(names):
        repeated = min(name for name in names if names.count(name) > 1)
        raise DataError(f"{path}: column {repeated!r} occurs more than once")


def check_delimiter(header: Sequence[str], delimiter: str, path: PathLike) -> None:
    """Raise an error if the only column name contains another common delimiter."""
    names = {",": "commas", ";": "semicolons", "\t": "tabs"}
    if len(header) != 1:
        return
    if other := next((mark for mark in "\t;," if mark in header[0]), ""):
        raise DataError(
            f"{path}: the columns are separated by {names[other]} ({header[0]}); expected "
            f"{names[delimiter]}: save the file with {names[delimiter]}, or rename it (.tsv for "
            "tabs, .csv for commas)"
        )


def warn_about_csv_quotes(path: PathLike, count: int) -> None:
    """Warn if fields of a TSV file are quoted as in CSV."""
    if count:
        logger.warning(
            "warning: %s: fields quoted as in CSV: %d; quotes are literal in TSV: write it without "
            "quoting, or as .csv",
            path,
            count,
        )


def is_csv_quoted(field: str) -> bool:
    """Return whether a field is in quotes and all quotes inside it are doubled.

    >>> is_csv_quoted('"She said ""no""."'), is_csv_quoted('"No."'), is_csv_quoted('""No""')
    (True, False, False)
    """
    inner = field[1:-1]
    is_enclosed = field[:1] == field[-1:] == '"'
    return is_enclosed and '""' in inner and '"' not in inner.replace('""', "")


def read_records(
    path: Records, fields: Sequence[str] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read records with their locations from JSONL, TSV, CSV, Parquet, a list or a frame.

    The suffix decides the format of a file. Standard input is JSONL if it starts with `{`,
    otherwise TSV.
    """
    if not isinstance(path, str | os.PathLike):
        return iterate_records(path)
    suffixes = Path(path).suffixes
    if not {".parquet", *JSON_SUFFIXES} & {*suffixes}:
        return _read_piped_records(fields) if _is_stdin(path) else read_table(path, fields)
    if fields:
        raise UsageError(f"{path}: --fields is for a .tsv or .csv file without a header")
    return _read_parquet(path) if ".parquet" in suffixes else read_jsonl(path)


def _read_piped_records(fields: Sequence[str] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    text, name = read_text(STDIN), display_name(STDIN)
    if not fields and text.lstrip().startswith("{"):
        return _parse_jsonl(text, name)
    return _parse_table(text, name, fields, "\t")


def default_name(source: Records, otherwise: str = "") -> str:
    """Return the name of a file without suffixes, or `otherwise` if the source is not a file.

    >>> default_name("runs/ours.tsv.gz"), default_name([{"mt": "hello"}], "ours")
    ('ours', 'ours')
    """
    if not isinstance(source, str | os.PathLike) or _is_stdin(source):
        return otherwise
    return decode_path(Path(source).name).split(".")[0]


def iterate_records(table: Any, each: str = "row") -> Iterator[tuple[str, dict[str, Any]]]:
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


def _read_parquet(path: PathLike) -> Iterator[tuple[str, dict[str, Any]]]:
    if not Path(path).is_file():
        raise DataError(f"{path}: no such file")
    with explain_missing("a Parquet file"):
        from pyarrow import ArrowException, parquet
    try:
        schema = parquet.read_schema(path)
        check_unique_columns(schema.names, path)
        columns = [field.name for field in schema if _is_text_or_number(field.type)]
        rows = parquet.read_table(path, columns=columns).to_pylist()
    except (ArrowException, OSError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: not a Parquet file ({reason})") from None
    for number, row in enumerate(rows, start=1):
        where = f"{path}, row {number}"
        record = {k: v for k, v in missing_to_null(row).items() if not k.startswith(_PANDAS_INDEX)}
        check_record(record, where)
        yield where, record


def _is_text_or_number(kind: Any) -> bool:
    """Return whether an Arrow type holds texts, numbers, or lists or objects of these.

    Dates, times and binary values are never texts, scores or labels.
    """
    from pyarrow import types

    if types.is_dictionary(kind):
        return _is_text_or_number(kind.value_type)
    if types.is_nested(kind):
        return all(_is_text_or_number(kind.field(n).type) for n in range(kind.num_fields))
    return not (types.is_temporal(kind) or types.is_binary(kind) or types.is_large_binary(kind))


def write_jsonl(path: PathLike, records: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object per line, atomically; texts that no reader accepts are an error."""
    write_text(path, _format_records(path, records))


def _format_records(path: PathLike, records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for number, record in enumerate(records, start=1):
        line = json.dumps(missing_to_null(record), ensure_ascii=False, allow_nan=False)
        if "\\u0000" in line.replace("\\\\", ""):  # without escaped backslashes
            raise DataError(
                f"{path}, record {number}: a text contains NUL, which no reader accepts: remove it"
            )
        yield line + "\n"

"""Lines, tables and records in and out of files, with errors that say where.

Text is UTF-8, with or without a byte-order mark, with any line end, plain or gzip; an empty line is
a segment like any other. Nothing is repaired in silence: bad bytes, NUL bytes, ragged rows and
missing fields are errors that name file and line.
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
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tertium.atomic import PathLike as PathLike
from tertium.atomic import write_text
from tertium.errors import DataError, UsageError, one_line
from tertium.extras import explain_missing
from tertium.frames import frame_records, is_frame, is_missing
from tertium.schema import distinct_keys
from tertium.segment import check_characters

logger = logging.getLogger(__name__)

Records = PathLike | Iterable[Mapping[str, Any]] | Any  # a file, records in memory, or a frame
JSON_SUFFIXES = frozenset({".jsonl", ".json", ".ndjson"})
RECORD_SUFFIXES = JSON_SUFFIXES | {".tsv", ".csv", ".parquet"}
BYTE_ORDER_MARKS = (  # the longer first: UTF-16's begins UTF-32's
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)

LANGUAGE_PAIR = re.compile(r"[a-z]{2,3}-[a-z]{2,3}")
_INDEX = "__index_level_"  # how pandas names what numbers the rows of a frame
_ONE_A_LINE = "; one object a line is read, no comma behind it, as `jq -c '.[]'` makes of a list"
_DECODER = json.JSONDecoder(object_pairs_hook=distinct_keys)  # once, not for each line

csv.field_size_limit(1 << 24)


def read_text(path: PathLike) -> str:
    """The whole text of a file, plain or gzip, checked to be clean UTF-8."""
    file = Path(path)
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{file}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{file} is a directory; a file was expected") from None
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror})") from None
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{file}: damaged gzip file ({error})") from None
    return decode(data, str(file))


def decode(data: bytes, where: str) -> str:
    """UTF-8 bytes to text without byte-order mark; bad or NUL bytes are named by line."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = error.start + (3 if data.startswith(b"\xef\xbb\xbf") else 0)
        line = data.count(b"\n", 0, start) + 1
        marked = next((name for mark, name in BYTE_ORDER_MARKS if data.startswith(mark)), "")
        raise DataError(
            f"{where}, line {line}: not UTF-8 (byte 0x{data[start]:02x} at position {start}); "
            f"convert it first: iconv -f {marked or 'LATIN1'} -t UTF-8 FILE > NEW"
            + ("" if marked else ", or whatever it was written in for LATIN1")
        ) from None
    nul = text.find("\0")
    if nul >= 0:
        line = text.count("\n", 0, nul) + 1
        check_text(text, f"{where}, line {line}")
    return text


def check_text(text: str, where: str) -> None:
    """Refuse what no text file could hold: NUL, and halves of surrogate pairs."""
    if "\0" in text:
        raise DataError(
            f"{where}: NUL byte; is this a text file? UTF-16 is converted by "
            "iconv -f UTF-16LE -t UTF-8 FILE > NEW"
        )
    check_characters(text, where)


def check_record(record: Mapping[str, Any], where: str) -> None:
    """The same for every text in a record, also inside lists and objects."""
    left: list[Any] = [record]
    while left:
        value = left.pop()
        if isinstance(value, str):
            check_text(value, where)
        elif isinstance(value, Mapping):
            left += [*value, *value.values()]
        elif isinstance(value, list):
            left += value


def printable(path: PathLike) -> str:
    """A path as text; a byte that is not UTF-8 becomes the replacement sign."""
    return os.fsencode(path).decode("utf-8", "replace")


def pair_in(path: PathLike) -> str:
    """The language pair that a path names, in its file name or its folder; empty where none.

    >>> pair_in("metric-scores/en-de/BLEU-refA.seg.score"), pair_in("out/chrf.zh-en.tsv")
    ('en-de', 'zh-en')
    """
    file = Path(path)
    words = [*file.name.split("."), file.parent.name]
    return next((word for word in words if LANGUAGE_PAIR.fullmatch(word)), "")


def read_lines(path: PathLike) -> list[str]:
    r"""The lines of a file, without their ends; `\n`, `\r\n` and lone `\r` end a line.

    Other separators that Python's `splitlines` knows (form feed, U+2028 ...) are part of the text,
    as they are for every other tool that counts lines.
    """
    text = read_text(path)
    if not text:
        raise DataError(f"{Path(path)} is empty; expected one segment a line")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def read_jsonl(path: PathLike) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a JSONL file, each with where it stands; blank lines are skipped."""
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        yield where, parse_object(line, where)


def parse_object(line: str, where: str) -> dict[str, Any]:
    """The object of a line of JSONL, of texts that can be scored."""
    is_other = is_line_of_list(line) or line.strip() == "{"
    record = parse_json(line, where, _ONE_A_LINE if is_other else "")
    if not isinstance(record, dict):
        raise DataError(f"{where}: expected an object, got {line[:40]!r}{_ONE_A_LINE}")
    if "\\u" in line or "\0" in line:  # else nothing brings in what a text cannot hold
        check_record(record, where)
    return record


def is_line_of_list(line: str) -> bool:
    """Whether a line begins a JSON list of objects, or is one of them with its comma.

    >>> [is_line_of_list(line) for line in ("[", '[{"mt": ""},', '{"mt": ""},', '{"mt": ""}')]
    [True, True, True, False]
    """
    bare = line.strip()
    return bare == "[" or bare.startswith("[{") or (bare[:1] == "{" and bare.endswith("},"))


def null_missing(value: Any) -> Any:
    """A value as JSON can hold it: a number that is missing or infinite is null, tuples are lists.

    >>> null_missing({"dev": (float("nan"), 1.5)})
    {'dev': [None, 1.5]}
    """
    if isinstance(value, Mapping):
        return {key: null_missing(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [null_missing(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def parse_json(text: str, where: str, hint: str = "") -> Any:
    """The value of a JSON text; `hint` ends the error where it is none."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        line = f", line {error.lineno}" if "\n" in text else ""
        raise DataError(f"{where}: not JSON ({error.msg}{line}){hint}") from None
    except RecursionError:
        raise DataError(f"{where}: JSON that is nested too deeply to be read") from None
    except ValueError as error:
        raise DataError(f"{where}: JSON that cannot be read ({error})") from None


def read_table(
    path: PathLike, fields: Sequence[str] | None = None, *, delimiter: str | None = None
) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a TSV or CSV file as dictionaries, each with where it ends: file and line.

    The first row is the header unless `fields` names the columns. The delimiter follows the suffix
    (`.csv` comma, else tab). CSV knows quotes and newlines inside them; TSV takes fields literally,
    and warns of those that a CSV writer put in quotes: these would be scored with them.
    """
    if delimiter is None:
        delimiter = "," if ".csv" in Path(path).suffixes else "\t"
    rows = read_rows(path, delimiter)
    quoted = 0
    header = list(fields) if fields is not None else next(rows, (0, None))[1]
    if header is None:
        raise DataError(f"{path} is empty; expected a header and rows")
    header = [name.strip() for name in header]
    check_delimiter(header, delimiter, path)
    check_names_differ(header, path)
    for line, row in rows:
        if not row:
            continue
        where = f"{path}, line {line}"
        if line == 1:
            check_no_header(row, header, path)
        if len(row) != len(header):
            raise DataError(
                f"{where}: {len(row)} fields where the header "
                f"has {len(header)} ({', '.join(header)})"
            )
        quoted += sum(map(is_quoted, row)) if delimiter == "\t" else 0
        yield where, dict(zip(header, row, strict=True))
    warn_of_quotes(path, quoted)


def read_rows(path: PathLike, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a table as `split_rows` parts them, each with the line in which it ends."""
    reader = split_rows(io.StringIO(read_text(path), newline=""), delimiter)
    begun = 0
    try:
        for row in reader:
            begun = reader.line_num
            yield begun, row
    except csv.Error as error:
        raise DataError(f"{path}, {explain_rows(error, begun + 1, reader.line_num)}") from None


def split_rows(lines: Iterable[str], delimiter: str) -> Any:
    """The rows of a table as lists of cells, a reader of Python's csv.

    A quote that nobody closes would take all rows behind it for one text, and a cell with more
    behind its closing quote would lose a quote: both are errors.
    """
    if delimiter == "\t":
        return csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    return csv.reader(lines, delimiter=delimiter, strict=True)


def explain_rows(error: csv.Error, first: int, last: int) -> str:
    """What is wrong with the rows of some lines.

    >>> explain_rows(csv.Error("unexpected end of data"), 3, 9)
    'lines 3 to 9: a quote is not closed; quotes inside of a field in quotes are doubled'
    """
    where = f"line {last}" if first >= last else f"lines {first} to {last}"
    said = {"unexpected end of data": "a quote is not closed"}.get(str(error), str(error))
    remedy = "; quotes inside of a field in quotes are doubled"
    return f"{where}: {said}" + (remedy if said != str(error) or "expected after" in said else "")


def check_no_header(row: Sequence[str], fields: Sequence[str], path: PathLike) -> None:
    """Refuse a first row that holds the names of columns which were given for a file without."""
    if [cell.strip().lower() for cell in row] == [name.lower() for name in fields]:
        raise UsageError(
            f"{path}: the first line is a header ({', '.join(fields)}), which would be scored as a "
            "row: leave out --fields"
        )


def check_names_differ(names: Sequence[str], path: PathLike) -> None:
    """Refuse a table of which two columns have one name."""
    if len(set(names)) < len(names):
        repeated = min(name for name in names if names.count(name) > 1)
        raise DataError(f"{path}: column {repeated!r} occurs more than once")


def check_delimiter(header: Sequence[str], delimiter: str, path: PathLike) -> None:
    """Refuse a lone column whose name holds what parts columns elsewhere."""
    names = {",": "commas", ";": "semicolons", "\t": "tabs"}
    if len(header) != 1:
        return
    if other := next((mark for mark in "\t;," if mark in header[0]), ""):
        raise DataError(
            f"{path}: columns are parted by {names[other]} ({header[0]}); expected "
            f"{names[delimiter]}: save it so, or with the suffix that it should have"
        )


def warn_of_quotes(path: PathLike, count: int) -> None:
    """Warn of fields of a TSV that a CSV writer put in quotes, if there are any."""
    if count:
        logger.warning(
            "warning: %s: fields quoted as in CSV: %d; TSV takes quotes for text: write it without "
            "quoting, or as .csv",
            path,
            count,
        )


def is_quoted(field: str) -> bool:
    """Whether a field is as a CSV writer quotes one: in quotes, and all quotes in it doubled.

    >>> is_quoted('"She said ""no""."'), is_quoted('"No."'), is_quoted('""No""')
    (True, False, False)
    """
    inner = field[1:-1]
    ends = field[:1] == field[-1:] == '"'
    return ends and '""' in inner and '"' not in inner.replace('""', "")


def read_records(
    path: Records, fields: Sequence[str] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Records of a JSONL, TSV, CSV or Parquet file, by its suffix, each with where it stands.

    A table in memory is read as its file would be.
    """
    if not isinstance(path, str | os.PathLike):
        return records_in_memory(path)
    suffixes = Path(path).suffixes
    if not {".parquet", *JSON_SUFFIXES} & {*suffixes}:
        return read_table(path, fields)
    if fields:
        raise UsageError(f"{path}: --fields goes with a .tsv or .csv file without a header")
    return _read_parquet(path) if ".parquet" in suffixes else read_jsonl(path)


def default_name(source: Records, otherwise: str = "") -> str:
    """What the contents of a file are called by its name; of a table in memory, as is said.

    >>> default_name("runs/ours.tsv.gz"), default_name([{"mt": "hello"}], "ours")
    ('ours', 'ours')
    """
    if not isinstance(source, str | os.PathLike):
        return otherwise
    return printable(Path(source).name).split(".")[0]


def records_in_memory(table: Any, each: str = "row") -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of a frame (pandas, polars, Arrow) or of a list of records, each with its number.

    What frames hold for a missing value is None, arrays are lists.

    >>> [*records_in_memory([{"mt": "hello", "ref": float("nan")}])]
    [('row 1', {'mt': 'hello', 'ref': None})]
    """
    rows = frame_records(table) if is_frame(table) else table
    if isinstance(rows, str | Mapping) or not isinstance(rows, Iterable):
        raise UsageError(
            f'expected records, [{{"mt": ..., "ref": ...}}, ...], or a frame with such columns, '
            f"not {one_line(table)}"
        )
    for number, row in enumerate(rows, start=1):
        where = f"{each} {number}"
        if not isinstance(row, Mapping) and not hasattr(row, "to_dict"):  # as a row of a frame has
            raise UsageError(
                f'{where}: expected a record, {{"mt": ..., "ref": ...}}, not {one_line(row)}'
            )
        cells = row if isinstance(row, Mapping) else row.to_dict()
        record = {str(name): _plain_cell(value) for name, value in cells.items()}
        check_record(record, where)
        yield where, record


def _plain_cell(value: Any) -> Any:
    value = value.tolist() if hasattr(value, "tolist") else value  # of numpy
    return None if is_missing(value) else value


def _read_parquet(path: PathLike) -> Iterator[tuple[str, dict[str, Any]]]:
    if not Path(path).is_file():
        raise DataError(f"{path}: no such file")
    with explain_missing("a Parquet file"):
        from pyarrow import ArrowException, parquet
    try:
        check_names_differ(parquet.read_schema(path).names, path)
        rows = parquet.read_table(path).to_pylist()
    except (ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: not a Parquet file ({error})") from None
    for number, row in enumerate(rows, start=1):
        where = f"{path}, row {number}"
        record = {k: v for k, v in null_missing(row).items() if not k.startswith(_INDEX)}
        check_record(record, where)
        yield where, record


def write_jsonl(path: PathLike, records: Iterable[Mapping[str, Any]]) -> None:
    """One object a line, atomically."""
    lines = (json.dumps(null_missing(r), ensure_ascii=False, allow_nan=False) for r in records)
    write_text(path, (line + "\n" for line in lines))

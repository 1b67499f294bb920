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
from functools import lru_cache
from pathlib import Path
from typing import Any

from tertium.atomic import PathLike as PathLike
from tertium.atomic import write_text
from tertium.errors import DataError, UsageError, one_line
from tertium.frames import frame_records, is_frame
from tertium.registry import explain_missing
from tertium.schema import distinct_keys
from tertium.segment import Segment, check_characters

logger = logging.getLogger(__name__)

Records = PathLike | Iterable[Mapping[str, Any]] | Any  # a file, records in memory, or a frame
SOURCE_NAMES = ("src", "source", "original")
HYPOTHESIS_NAMES = ("mt", "hyp", "hypothesis", "translation", "candidate", "prediction")
REFERENCE_NAMES = ("ref", "reference", "references")
SYSTEM_NAMES = ("system", "model")
ITEM_NAMES = ("item", "segment", "seg_id", "segment_id", "segmentid", "line_id", "sid", "id")
ANNOTATOR_NAMES = ("annotator", "rater", "judge", "user", "worker", "workerid", "judgeid")
LP_NAMES = ("lp", "langpair", "language_pair")
TEXT_NAMES = frozenset({*SOURCE_NAMES, *HYPOTHESIS_NAMES, *REFERENCE_NAMES})
DOCUMENT_NAMES = ("document", "doc", "docid", "doc_id")

LONG_NAME = 40  # characters of a field's name; what is longer is rather a text
RECORD_SUFFIXES = frozenset({".jsonl", ".json", ".ndjson", ".tsv", ".csv", ".parquet"})
BYTE_ORDER_MARKS = (  # the longer first: UTF-16's begins UTF-32's
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)

LANGUAGE_PAIR = re.compile(r"[a-z]{2,3}-[a-z]{2,3}")
_INDEX = "__index_level_"  # how pandas names what numbers the rows of a frame
_ONE_A_LINE = "; one object a line is read, which `jq -c '.[]'` makes of a list"
_DECODER = json.JSONDecoder(object_pairs_hook=distinct_keys)  # once, not for each line
_NUMBERED = re.compile(rf"(?:{'|'.join(REFERENCE_NAMES)})[_-]?(\d+)")

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
        record = parse_json(line, where, _ONE_A_LINE if line.strip() in ("[", "{") else "")
        if not isinstance(record, dict):
            raise DataError(f"{where}: expected an object, got {line[:40]!r}{_ONE_A_LINE}")
        if "\\u" in line:  # only an escape can bring in what the file itself cannot hold
            check_record(record, where)
        yield where, record


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
    text = read_text(path)
    if delimiter is None:
        delimiter = "," if ".csv" in Path(path).suffixes else "\t"
    lines = io.StringIO(text, newline="")
    if delimiter == "\t":
        reader = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(lines, delimiter=delimiter)
    quoted = 0
    try:
        header = list(fields) if fields is not None else next(reader, None)
        if header is None:
            raise DataError(f"{path} is empty; expected a header and rows")
        header = [name.strip() for name in header]
        check_delimiter(header, delimiter, path)
        repeated = {name for name in header if header.count(name) > 1}
        if repeated:
            raise DataError(f"{path}: column {sorted(repeated)[0]!r} occurs more than once")
        for row in reader:
            if not row:
                continue
            where = f"{path}, line {reader.line_num}"
            if len(row) != len(header):
                raise DataError(
                    f"{where}: {len(row)} fields where the header "
                    f"has {len(header)} ({', '.join(header)})"
                )
            quoted += sum(map(is_quoted, row)) if delimiter == "\t" else 0
            yield where, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: {error}") from None
    warn_of_quotes(path, quoted)


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
    if not {".parquet", ".jsonl", ".json", ".ndjson"} & {*suffixes}:
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
    return None if isinstance(value, float) and math.isnan(value) else value


def _read_parquet(path: PathLike) -> Iterator[tuple[str, dict[str, Any]]]:
    if not Path(path).is_file():
        raise DataError(f"{path}: no such file")
    with explain_missing("a Parquet file"):
        from pyarrow import ArrowException, parquet
    try:
        rows = parquet.read_table(path).to_pylist()
    except (ArrowException, OSError, ValueError) as error:
        raise DataError(f"{path}: not a Parquet file ({error})") from None
    for number, row in enumerate(rows, start=1):
        where = f"{path}, row {number}"
        record = {k: v for k, v in null_missing(row).items() if not k.startswith(_INDEX)}
        check_record(record, where)
        yield where, record


_KNOWN = TEXT_NAMES | {*SYSTEM_NAMES, *ITEM_NAMES, *DOCUMENT_NAMES}


def fold_names(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """A record whose names that we know are in lower case, as tables often capitalise them.

    >>> fold_names({"System": "A", "mt": "hello", "Ref2": "hi", "Domain": "news"})
    {'system': 'A', 'mt': 'hello', 'ref2': 'hi', 'Domain': 'news'}
    """
    if all(name == name.lower() or not _is_known(name.lower()) for name in record):
        return record
    folded: dict[str, Any] = {}
    for name, value in record.items():
        lowered = name.lower()
        known = _is_known(lowered) and (name == lowered or lowered not in record)
        folded[lowered if known else name] = value
    return folded


def _is_known(name: str) -> bool:
    return name in _KNOWN or is_numbered_reference(name)


def pick(record: Mapping[str, Any], names: Sequence[str], where: str) -> Any:
    """The value under one of several aliases, None where none is there; two at once are refused."""
    present = [name for name in names if record.get(name) is not None]
    if len(present) > 1:
        raise DataError(f"{where}: both {present[0]!r} and {present[1]!r} are given; keep one")
    return record[present[0]] if present else None


def name_from(record: Mapping[str, Any], names: Sequence[str], where: str) -> str:
    """The name of a system or document, empty where there is none; a number is a name.

    >>> name_from({"system": 0}, SYSTEM_NAMES, "line 1")
    '0'
    """
    value = pick(record, names, where)
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DataError(f"{where}: {names[0]} is {value!r}; expected a name or a number")
    return printed(value)


def printed(value: str | int | float) -> str:
    """A name or number as text; 7.0 is 7, as tables with gaps hold whole numbers as fractions.

    >>> printed(7.0), printed("7.0"), printed(7.5)
    ('7', '7.0', '7.5')
    """
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value)


WARNINGS = ".warnings"  # behind a metric's name where metrics are columns: that of its warnings
LARGEST = 1e100  # of a score: statistics square differences, which must stay finite
NOT_JUDGED = frozenset({"", "none", "nan", "na", "n/a", "null", "-"})


def read_score(value: Any, where: str) -> float:
    """A score as a number; NaN where it is absent or marked so (`None`, `nan`, `NA`, empty).

    >>> read_score("72.5", "line 2"), read_score("None", "line 3")
    (72.5, nan)
    """
    if value is None or (isinstance(value, str) and value.strip().lower() in NOT_JUDGED):
        return math.nan
    try:
        score = float(value)
    except (TypeError, ValueError):
        raise DataError(f"{where}: the score {value!r} is not a number") from None
    except OverflowError:  # a whole number of more than 308 digits
        score = math.inf
    if math.isinf(score):
        raise DataError(f"{where}: the score {str(value)[:40]!r} is not finite")
    if abs(score) > LARGEST:
        raise DataError(f"{where}: the score {value!r} is too large; expected at most {LARGEST:g}")
    return score


def first(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The value under the first of several aliases that has one."""
    return next((record[name] for name in names if record.get(name) is not None), None)


def text_of(record: Mapping[str, Any], names: Sequence[str]) -> str:
    """The same as text, empty where there is none.

    >>> text_of({"segment": 12}, ITEM_NAMES), text_of({}, ITEM_NAMES)
    ('12', '')
    """
    value = first(record, names)
    return "" if value is None else printed(value).strip()


def segment_from_record(record: Mapping[str, Any], where: str) -> Segment:
    """A segment from a record with any of the aliases people use.

    >>> segment_from_record({"mt": "hello", "ref": ["hi", "hello"]}, "line 1")
    Segment(hypothesis='hello', source=None, references=('hi', 'hello'))
    """
    hypothesis = pick(record, HYPOTHESIS_NAMES, where)
    if hypothesis is None:
        null = next((name for name in HYPOTHESIS_NAMES if name in record), "")
        shown = [name if len(name) <= LONG_NAME else f"{name[:LONG_NAME]}..." for name in record]
        why = f"looked for {', '.join(HYPOTHESIS_NAMES)}; found {', '.join(shown) or 'nothing'}"
        if shown != [*record]:
            why += "; where the first line is no header, name the columns with --fields"
        if null:
            why = f'{null} is null; an empty translation is ""'
        raise DataError(f"{where}: no translation ({why})")
    if not isinstance(hypothesis, str):
        raise DataError(f"{where}: expected text, got {hypothesis!r}")
    return Segment(hypothesis, source_from(record, where), references_from(record, where))


def source_from(record: Mapping[str, Any], where: str) -> str | None:
    """The source of a record, None where there is none."""
    source: Any = pick(record, SOURCE_NAMES, where)
    if source is not None and not isinstance(source, str):
        raise DataError(f"{where}: expected text, got {source!r}")
    return source


def references_from(record: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """References given as one text, a list, numbered columns (`ref1`, `ref2`, ...), or both.

    Numbered ones follow in their order; among several columns, one that is blank is absent.

    >>> references_from({"ref": "a", "ref10": "c", "ref2": "b", "ref3": ""}, "line 1")
    ('a', 'b', 'c')
    """
    value, columns = pick(record, REFERENCE_NAMES, where), _numbered_references(tuple(record))
    if value is not None and not isinstance(value, str | Sequence):
        raise DataError(f"{where}: references must be a text or a list of texts, got {value!r}")
    if isinstance(value, str) and is_listing(value):
        raise DataError(
            f"{where}: the reference is a list written as one text, {value[:30]}...; give each one "
            "a column (ref1, ref2, ...), or give JSONL or Parquet with lists"
        )
    found = [] if value is None else [value] if isinstance(value, str) else list(value)
    numbers: dict[tuple[int, str], str] = {}
    for number, column in columns:
        if record[column] is not None:
            if number in numbers:
                raise DataError(
                    f"{where}: both {numbers[number]!r} and {column!r} are given; keep one"
                )
            numbers[number] = column
            found.append(record[column])
    for text in found:
        if not isinstance(text, str):
            raise DataError(f"{where}: expected text, got {text!r}")
    return tuple(text for text in found if text.strip() or not columns)


def is_listing(text: str) -> bool:
    """Whether a text is a JSON list of texts, as tables of our own and of others hold it.

    >>> is_listing('["a", "b"]'), is_listing('["Go!", he said]')
    (True, False)
    """
    if not (text.startswith('["') and text.endswith('"]')):
        return False
    try:
        return all(isinstance(part, str) for part in json.loads(text))
    except (ValueError, RecursionError):
        return False


def is_numbered_reference(name: str) -> bool:
    """Whether a column is one of several references, such as `ref2`."""
    return _NUMBERED.fullmatch(name) is not None


@lru_cache(maxsize=256)
def _numbered_references(header: tuple[str, ...]) -> list[tuple[tuple[int, str], str]]:
    """The columns `ref1`, `ref_2`, ... of a header by number; found once a file, not once a row.

    A number is the count of its digits and the digits: Python reads no int of 5,000 of them.
    """
    matches = [(_NUMBERED.fullmatch(name), name) for name in header]
    numbers = [(match[1].lstrip("0"), name) for match, name in matches if match]
    return sorted(((len(digits), digits), name) for digits, name in numbers)


def labels_in(record: Mapping[str, Any], more: Sequence[str] = ()) -> dict[str, str]:
    """What a record says of a segment beside its texts, system and document; `more` are no labels.

    Blanks around a label are none of it: judgements name items without.

    >>> labels_in({"mt": "hello", "domain": "news", "year": 2024, "spans": [], "ref2": "hi"})
    {'domain': 'news', 'year': '2024'}
    """
    known = {*SOURCE_NAMES, *HYPOTHESIS_NAMES, *REFERENCE_NAMES, *SYSTEM_NAMES, *DOCUMENT_NAMES}
    return {
        name: printed(value).strip()
        for name, value in record.items()
        if isinstance(value, str | int | float)
        and name not in known
        and name not in more
        and not _NUMBERED.fullmatch(name)
    }


def record_from_segment(segment: Segment) -> dict[str, Any]:
    """The record that `segment_from_record` reads back."""
    record: dict[str, Any] = {"mt": segment.hypothesis}
    if segment.source is not None:
        record["src"] = segment.source
    if segment.references:
        record["ref"] = list(segment.references)
    return record


def write_jsonl(path: PathLike, records: Iterable[Mapping[str, Any]]) -> None:
    """One object a line, atomically."""
    lines = (json.dumps(null_missing(r), ensure_ascii=False, allow_nan=False) for r in records)
    write_text(path, (line + "\n" for line in lines))

"""Read text files: UTF-8 lines, plain or gzip, and standard input.

Text is UTF-8 with or without a byte-order mark. Lines end with LF or CRLF, as in sacrebleu; a lone
carriage return is text. An empty line is a segment like any other. Invalid bytes and NUL bytes are
errors, as are files and lines that are too large. The file name `-` is standard input, which can be
read once. Settings of commands are in a table of `tertium.toml`, or of `[tool.tertium]` in
`pyproject.toml`.
"""

from __future__ import annotations

import codecs
import gzip
import io
import itertools
import logging
import os
import re
import stat
import sys
import weakref
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TextIO

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, UsageError
from tertium.core.segment import check_surrogates
from tertium.text.language_codes import normalize_language_pair

logger = logging.getLogger(__name__)

XLSX = ".xlsx"
JSON_SUFFIXES = frozenset({".jsonl", ".json", ".ndjson"})
RECORD_SUFFIXES = JSON_SUFFIXES | {".tsv", ".csv", ".parquet", XLSX}
STDIN = "-"  # the file name that means standard input
BYTE_ORDER_MARKS = (  # longest first: the UTF-32-LE mark starts with the UTF-16-LE mark
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
OTHER_COMPRESSIONS = (
    (b"\xfd7zXZ\0", "xz"),
    (b"BZh91AY&SY", "bzip2"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "zip"),
)
MAX_LINE_BYTES = 1 << 24
MAX_FILE_BYTES = 1 << 31  # of a file that is read at once, after decompression
LANGUAGE_PAIR = re.compile(r"[a-z]{2,3}-[a-z]{2,3}")
_stdin_reader: weakref.ref[Any] | None = None  # the stream that was read to its end


def read_text(path: PathLike) -> str:
    """Read a file, plain or gzip, and check that it is valid UTF-8 and not too large."""
    return decode(read_data(path), display_name(path))


def read_data(path: PathLike) -> bytes:
    """Read the bytes of a file, plain or gzip, and check that it is not too large."""
    name = display_name(path)
    is_one_value = is_stdin(path) or ".json" in Path(path).suffixes  # JSON may be a single line
    limit = MAX_FILE_BYTES if is_one_value else MAX_LINE_BYTES
    try:
        data = _read_stdin() if is_stdin(path) else _read_file(Path(path))
    except FileNotFoundError:
        raise DataError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{name} is a directory; expected a file") from None
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror})") from None
    except ValueError as error:  # a NUL in the path
        raise DataError(f"{name!r}: not a path ({error})") from None
    if kind := next((kind for magic, kind in OTHER_COMPRESSIONS if data.startswith(magic)), ""):
        raise DataError(f"{name}: a {kind} file; expected plain text or gzip: unpack it first")
    if data[:2] == b"\x1f\x8b":
        try:
            data = _join_pieces(gzip.GzipFile(fileobj=io.BytesIO(data)), name, limit)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{name}: damaged gzip file ({error})") from None
    elif len(data) > limit:
        data = _join_pieces(io.BytesIO(data), name, limit)
    return data


def _read_file(path: Path) -> bytes:
    """Read a file; refuse one that changes meanwhile, since its lines may be cut or mixed."""
    with path.open("rb") as stream:
        before = os.fstat(stream.fileno())
        if before.st_size > MAX_FILE_BYTES:
            raise _too_large_error(display_name(path))
        data = stream.read()
        after = os.fstat(stream.fileno())
    has_changed = (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns)
    if has_changed and stat.S_ISREG(before.st_mode):  # pipes change with every read
        raise DataError(
            f"{display_name(path)} changed while it was read (from {before.st_size:,} bytes to "
            f"{after.st_size:,}): try again when the file is complete"
        )
    return data


def _too_large_error(name: str) -> DataError:
    return DataError(
        f"{name}: more than {MAX_FILE_BYTES >> 30} GiB of text; split the file, or score it with "
        "`tertium corpus`, which reads it in parts"
    )


def _join_pieces(stream: IO[bytes] | gzip.GzipFile, name: str, line_limit: int) -> bytes:
    """Read a stream piece by piece; stop if a line or all of it is too large."""
    data = bytearray()
    open_bytes = 0
    while piece := stream.read(1 << 20):
        end = piece.find(b"\n")
        if open_bytes + (len(piece) if end < 0 else end) > line_limit:
            raise long_line_error(name, data.count(b"\n") + 1)
        open_bytes = open_bytes + len(piece) if end < 0 else len(piece) - piece.rfind(b"\n") - 1
        data += piece
        if len(data) > MAX_FILE_BYTES:
            raise _too_large_error(name)
    return bytes(data)


def long_line_error(name: str, number: int) -> DataError:
    """Return the error for a line of more than `MAX_LINE_BYTES`."""
    return DataError(
        f"{name}, line {number}: more than {MAX_LINE_BYTES >> 20} MB in one line; is it damaged?"
    )


def limited_lines(stream: TextIO, name: str) -> Iterator[str]:
    """Yield the lines of a stream; a line that is too long is an error before it is read."""
    for number in itertools.count(1):
        line = stream.readline(MAX_LINE_BYTES + 1)
        if not line:
            return
        if len(line) > MAX_LINE_BYTES:
            raise long_line_error(name, number)
        yield line


def is_stdin(path: PathLike) -> bool:
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
    return stream.buffer.read() if hasattr(stream, "buffer") else stream.read().encode()


def display_name(path: PathLike) -> str:
    """Return the name of a file for messages.

    >>> display_name("-"), display_name("runs/ours.txt")
    ('standard input', 'runs/ours.txt')
    """
    return "standard input" if is_stdin(path) else str(Path(path))


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
    lines = split_lines(read_text(path), display_name(path))
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


def split_lines(text: str, name: str) -> list[str]:
    if not text:
        raise DataError(f"{name} is empty; expected one segment per line")
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


CONFIGURATION_FILE = "tertium.toml"
PROJECT_FILE = "pyproject.toml"


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read a TOML file; of `pyproject.toml`, only the table `[tool.tertium]`."""
    import tomllib

    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not a TOML file: {error}") from None
    if Path(path).name != PROJECT_FILE:
        return content
    table: dict[str, Any] = content.get("tool", {}).get("tertium", {})
    return table


def find_configuration(command: str) -> str | None:
    """Return the file in the current folder that configures a command, if there is one.

    `tertium.toml` takes precedence over `pyproject.toml`.
    """
    for name in (CONFIGURATION_FILE, PROJECT_FILE):
        if Path(name).is_file() and (name == CONFIGURATION_FILE or command in read_toml(name)):
            return name
    return None

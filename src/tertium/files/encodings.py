"""Decode text files of localization formats: UTF-8, or UTF-16 with a byte-order mark."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from tertium.core.errors import DataError
from tertium.data.text_files import check_text, decode, display_name

MAX_BYTES = 1 << 30  # of a file that is not read in parts
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_LINE_END = re.compile(r"\r*\n|\r")


def read_bytes(path: str) -> bytes:
    """Read a whole file; refuse one that is too large."""
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    if len(data) > MAX_BYTES:
        raise DataError(f"{path}: larger than {MAX_BYTES >> 30} GiB: split the file")
    return data


def read_unicode(path: str, fallback: str = "") -> str:
    """Read a text file; `fallback` is the encoding of a file that is not UTF-8.

    Line ends become `\\n`.
    """
    data, name = read_bytes(path), display_name(path)
    try:
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            text = data.decode("utf-16")
            check_text(text, name)
        else:
            text = decode(data, name)
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: not UTF-16 ({error.reason}, byte {error.start})") from None
    except DataError:
        if not fallback or b"\0" in data:
            raise
        text = data.decode(fallback)
    return _LINE_END.sub("\n", text)


def line_at(text: str, offset: int) -> int:
    """Return the line number of an offset, from 1."""
    return text.count("\n", 0, offset) + 1


def decode_escape(code: str) -> str:
    """Return the character of an escape without its backslash.

    >>> decode_escape("u00e9"), decode_escape("t"), decode_escape("'")
    ('é', '\\t', "'")
    """
    if len(code) == 5:
        return chr(int(code[1:], 16))
    return _ESCAPES.get(code, code)


def join_surrogates(text: str) -> str:
    """Join surrogate pairs that were written as two escapes; a lone one becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

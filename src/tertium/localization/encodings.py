"""Decode text files of localization formats: UTF-8, or UTF-16 with a byte-order mark."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from tertium.data.text_files import check_text, decode, display_name
from tertium.errors import DataError

MAX_BYTES = 1 << 30  # of a file that is not read in parts
_LINE_END = re.compile(r"\r*\n|\r")


def read_bytes(path: str | Path) -> bytes:
    """Read a whole file; refuse one that is too large."""
    try:
        if Path(path).stat().st_size > MAX_BYTES:
            raise DataError(f"{path}: larger than {MAX_BYTES >> 30} GiB: split the file")
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def read_unicode(path: str | Path, fallback: str = "") -> str:
    """Read a text file; `fallback` is the encoding of a file that is not UTF-8.

    Line ends become `\\n`.
    """
    data, name = read_bytes(path), display_name(path)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            text = data.decode("utf-16")
        except UnicodeDecodeError as error:
            raise DataError(f"{name}: not UTF-16 ({error.reason}, byte {error.start})") from None
        check_text(text, name)
    else:
        try:
            text = decode(data, name)
        except DataError:
            if not fallback or b"\0" in data:
                raise
            text = data.decode(fallback)
    return _LINE_END.sub("\n", text) if "\r" in text else text


def line_at(text: str, offset: int) -> int:
    """Return the line number of an offset, from 1."""
    return text.count("\n", 0, offset) + 1

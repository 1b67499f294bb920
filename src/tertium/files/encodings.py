"""Decode text files of localization formats: UTF-8, or UTF-16 with a byte-order mark."""

from __future__ import annotations

import codecs
import re

from tertium.core.errors import DataError
from tertium.data.text_files import check_text, decode, display_name, read_data

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_LINE_END = re.compile(r"\r*\n|\r")


def read_unicode(path: str, fallback: str = "") -> str:
    """Read a text file; `fallback` is the encoding of a file that is not UTF-8.

    Line ends become `\\n`.
    """
    data, name = read_data(path), display_name(path)
    try:
        text = decode(data, name)
    except DataError as error:
        is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        try:
            text = data.decode("utf-16" if is_utf16 else fallback or "utf-8")
        except UnicodeDecodeError:
            raise error from None
        check_text(text, name)
    return _LINE_END.sub("\n", text)


def line_at(text: str, offset: int) -> int:
    """Return the line number of an offset, from 1."""
    return text.count("\n", 0, offset) + 1


def decode_escape(code: str) -> str:
    """Return the character of an escape without its backslash.

    >>> decode_escape("u00e9"), decode_escape("t"), decode_escape("'")
    ('é', '\\t', "'")
    """
    if len(code) > 1:
        return chr(int(code[1:], 16))
    return _ESCAPES.get(code, code)


def join_surrogates(text: str) -> str:
    """Join surrogate pairs that were written as two escapes; a lone one becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

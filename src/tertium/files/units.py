"""A unit: one string of a localization file with its translation, state, notes and limits.

Text files are decoded in the same way for all formats: UTF-8, or UTF-16 with a byte-order mark.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tertium.core.errors import DataError
from tertium.data.text_files import check_text, decode, display_name, read_data

OWN = "tertium"  # marks the notes that we write
Range = tuple[int, int]  # first byte in a file, byte after the last


class InlineText(str):
    """A text whose inline markup is replaced by placeholders, `{1}` and `<g2>`.

    `pieces` are the lengths of its parts and their positions in the file, in bytes.
    """

    __slots__ = ("pieces",)
    pieces: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One string of a localization file; `target` is None if it is not translated.

    Texts of formats with inline markup are an `InlineText`. `plural` is a plural category
    (`one`, `other`, ...) or its number, and `max_length` is a limit in characters (0: none).
    `place` is where `write_back` adds notes, if the format has them; several units may share it.
    """

    id: str
    source: str | None = None
    target: str | None = None
    notes: tuple[str, ...] = ()
    state: str = ""
    context: str = ""
    document: str = ""
    file: str = ""
    plural: str = ""
    max_length: int = 0
    is_translatable: bool = True
    line: int = 0
    place: Any = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The id, with the plural category in brackets."""
        return f"{self.id}[{self.plural}]" if self.plural else self.id


Units = Iterator[Unit]


def translated_unit(key: str, text: str, plural: str = "", note: str = "", line: int = 0) -> Unit:
    """Return a unit of a file in one language; an empty text is no translation."""
    notes = (note,) if note else ()
    return Unit(id=key, target=text or None, plural=plural, notes=notes, line=line)


@dataclass(slots=True)
class Languages:
    """Languages that a file declares or that are wanted of it, empty if unknown."""

    source: str = ""
    target: str = ""

    def __iter__(self) -> Iterator[str]:
        return iter((self.source, self.target))


def is_same_language(language: str, wanted: str) -> bool:
    """Tell whether a language code is a wanted one, with or without region.

    >>> is_same_language("de-AT", "de"), is_same_language("fr", "de")
    (True, False)
    """
    a, b = (code.lower().replace("_", "-").split("-") for code in (language, wanted))
    return a[: len(b)] == b or b[: len(a)] == a


@dataclass(slots=True)
class Catalog:
    """A localization file: its units, and what it declares.

    `version` changes when the file is written.
    """

    path: str
    languages: Languages = field(default_factory=Languages)
    encoding: str = "utf-8"
    units: tuple[Unit, ...] = ()
    version: tuple[int, ...] = ()

    def __iter__(self) -> Iterator[Unit]:
        return iter(self.units)


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_LINE_END = re.compile(r"\r*\n|\r")


def read_unicode(path: str, fallback: str = "") -> str:
    """Read a text file; `fallback` is the encoding of a file that is not UTF-8.

    Line ends become `\\n`.
    """
    data = read_data(path)
    name = display_name(path)
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

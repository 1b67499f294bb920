"""A unit: one string of a localization file with its translation, state, notes and limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

OWN = "tertium"  # marks the notes that we write
Piece = tuple[int, int, int]  # offset in the text, first byte in the file, byte after the last


@dataclass(frozen=True, slots=True)
class InlineText:
    """A text whose inline markup is replaced by placeholders such as `{1}` and `<g2>`.

    `pieces` are the positions of its parts in the file, in bytes. They are empty for formats
    without inline markup.
    """

    text: str
    pieces: tuple[Piece, ...] = ()
    encoding: str = "utf-8"

    def byte_range(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the bytes of the file that `text[start:end]` was read from, None if unknown.

        A placeholder stands for all bytes of its tag, an entity for all bytes of its name.
        """
        first = last = None
        after = len(self.text)
        for offset, low, high in reversed(self.pieces):
            if offset < end and start < after:
                text = self.text[offset:after]
                if len(text.encode(self.encoding, "replace")) == high - low:  # written as it is
                    skipped = text[: max(start - offset, 0)]
                    low += len(skipped.encode(self.encoding))
                    rest = text[max(end - offset, 0) :]
                    high -= len(rest.encode(self.encoding))
                first = low
                last = last or high
            after = offset
        return None if first is None or last is None else (first, last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One string of a localization file; `target` is None if it is not translated.

    `plural` is a plural category (`one`, `other`, ...) or its number, `alternatives` are other
    translations that the file offers, and `max_length` is a limit in characters (0: none). `place`
    is the element or message of the file, if scores can be written to it.
    """

    id: str
    source: InlineText | None = None
    target: InlineText | None = None
    alternatives: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    state: str = ""
    context: str = ""
    document: str = ""
    plural: str = ""
    max_length: int = 0
    is_translatable: bool = True
    line: int = 0
    place: Any = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The id, with the plural category in brackets."""
        return f"{self.id}[{self.plural}]" if self.plural else self.id


def translated_unit(key: str, text: str, plural: str = "", note: str = "", line: int = 0) -> Unit:
    """Return a unit of a file in one language; an empty text is no translation."""
    target = InlineText(text) if text else None
    notes = (note,) if note else ()
    return Unit(id=key, target=target, plural=plural, notes=notes, line=line)


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

    `version` changes when the file is written. Without `has_places`, units have no `place`, which
    needs about 3 kB in an XML format.
    """

    path: str
    languages: Languages = field(default_factory=Languages)
    encoding: str = "utf-8"
    units: tuple[Unit, ...] = ()
    version: tuple[int, ...] = ()
    has_places: bool = False

    def keep(self, place: Any) -> Any:
        """Return the place of a unit if it is needed."""
        return place if self.has_places else None

    def __iter__(self) -> Iterator[Unit]:
        return iter(self.units)

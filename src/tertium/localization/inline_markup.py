"""Replace inline markup of XML formats by placeholders that metrics and checks can read.

A code that stands alone becomes `{id}`, the two ends of a pair become `<gid>` and `</gid>`, so that
checks of placeholders and tags compare source and translation. Annotations (`mrk`) vanish.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from tertium.errors import DataError
from tertium.localization.units import InlineText, Piece
from tertium.localization.xml_elements import Element, Text, XmlFile

Kind = Literal["single", "pair", "open", "close", "character", "nothing"]
_WORD = re.compile(r"\w{1,40}", re.ASCII)
_CODE_POINT = re.compile(r"[0-9A-Fa-f]{1,6}")


class PlaceholderNames:
    """Names of the codes in one unit: their ids, or numbers where an id is missing or unusual.

    Source and translation share one object, so that the same code gets the same name.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, str] = {}

    def name(self, code: str) -> str:
        """Return the name of a code.

        >>> names = PlaceholderNames()
        >>> names.name("1"), names.name("a b"), names.name("a b")
        ('1', 'n1', 'n1')
        """
        if _WORD.fullmatch(code):
            return code
        return self._numbers.setdefault(code, f"n{len(self._numbers) + 1}")


class InlineReader:
    """Converts the content of elements of one format to texts with placeholders."""

    def __init__(
        self, codes: Mapping[str, Kind], code_id: Callable[[Element], str], file: XmlFile
    ) -> None:
        self.codes, self.code_id, self.file = codes, code_id, file

    def read(self, element: Element, names: PlaceholderNames) -> InlineText:
        """Return the text of an element."""
        parts: list[str] = []
        pieces: list[Piece] = []
        length = 0
        for text, start, end in self._walk(element.children, names):
            if text:
                parts.append(text)
                pieces.append((length, start, end))
                length += len(text)
        return InlineText("".join(parts), tuple(pieces), self.file.encoding)

    def _walk(
        self, children: Iterable[Element | Text], names: PlaceholderNames
    ) -> Iterable[tuple[str, int, int]]:
        for child in children:
            if isinstance(child, Text):
                yield child.text, child.start, child.end
                continue
            kind = self.codes.get(child.local)
            if kind is None:  # an annotation: its text is part of the sentence
                yield from self._walk(child.children, names)
            elif kind == "character":
                yield self._character(child), child.start, child.end
            elif kind != "nothing":
                yield from self._code(kind, child, names)

    def _character(self, element: Element) -> str:
        digits = element.get("hex")
        if not _CODE_POINT.fullmatch(digits) or not 0 < int(digits, 16) < sys.maxunicode:
            where = f"{self.file.path}, line {element.line}"
            raise DataError(f'{where}: <cp hex="{digits}"> is not a code point such as 001A')
        character = chr(int(digits, 16))
        return "\ufffd" if character.encode("utf-8", "replace") == b"?" else character

    def _code(
        self, kind: Kind, element: Element, names: PlaceholderNames
    ) -> Iterable[tuple[str, int, int]]:
        name = names.name(self.code_id(element))
        if kind == "single":
            yield f"{{{name}}}", element.start, element.end
        elif kind == "close":
            yield f"</g{name}>", element.start, element.end
        elif kind == "open":
            yield f"<g{name}>", element.start, element.end
        else:
            yield f"<g{name}>", element.start, element.inner_start
            yield from self._walk(element.children, names)
            yield f"</g{name}>", element.inner_end, element.end

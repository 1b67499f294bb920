"""Replace inline markup of XML formats by placeholders that metrics and checks can read.

A code that stands alone becomes `{id}`, the two ends of a pair become `<gid>` and `</gid>`, so that
checks of placeholders and tags compare source and translation. Annotations (`mrk`) vanish.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from tertium.core.errors import DataError
from tertium.files.units import InlineText, Piece
from tertium.files.xml_elements import Element, Text, XmlFile

Kind = Literal["single", "pair", "open", "close", "character", "nothing"]
_WORD = re.compile(r"\w{1,40}", re.ASCII)
_CODE_POINT = re.compile(r"[0-9A-Fa-f]{1,6}")


class InlineReader:
    """Converts the elements of one unit to texts with placeholders.

    `codes` has the kind of each inline element, `code_id` returns the id of one. An id that is
    missing or unusual is replaced by a number, the same one in source and translation.
    """

    def __init__(
        self, codes: Mapping[str, Kind], code_id: Callable[[Element], str], file: XmlFile
    ) -> None:
        self.codes, self.code_id, self.file = codes, code_id, file
        self._numbers: dict[str, str] = {}

    def read(self, element: Element | None) -> InlineText | None:
        """Return the text of an element, if there is one."""
        if element is None:
            return None
        texts: list[str] = []
        pieces: list[Piece] = []
        length = 0
        for text, start, end in self._walk(element):
            if text:
                texts.append(text)
                pieces.append((length, start, end))
                length += len(text)
        return InlineText("".join(texts), tuple(pieces), self.file.encoding)

    def _walk(self, element: Element) -> Iterator[tuple[str, int, int]]:
        """Yield texts and placeholders with their first byte and the byte after the last."""
        for child in element.children:
            if isinstance(child, Text):
                yield child.text, child.start, child.end
                continue
            kind = self.codes.get(child.local)
            if kind is None:  # an annotation: its text is part of the sentence
                yield from self._walk(child)
            elif kind == "character":
                yield self._character(child), child.start, child.end
            elif kind != "nothing":
                yield from self._code(kind, child)

    def _character(self, element: Element) -> str:
        """Return the character of a `cp`; a surrogate becomes U+FFFD."""
        digits = element.get("hex")
        if not _CODE_POINT.fullmatch(digits) or not 0 < int(digits, 16) < sys.maxunicode:
            where = f"{self.file.path}, line {element.line}"
            raise DataError(f'{where}: <cp hex="{digits}"> is not a code point such as 001A')
        character = chr(int(digits, 16))
        is_surrogate = "\ud800" <= character <= "\udfff"
        return "\ufffd" if is_surrogate else character

    def _code(self, kind: Kind, element: Element) -> Iterator[tuple[str, int, int]]:
        """Yield the placeholders of a code, with what a pair contains."""
        name = self.code_id(element)
        if not _WORD.fullmatch(name):
            name = self._numbers.setdefault(name, f"n{len(self._numbers) + 1}")
        if kind == "pair":
            yield f"<g{name}>", element.start, element.inner_start
            yield from self._walk(element)
            yield f"</g{name}>", element.inner_end, element.end
        else:
            placeholder = {"single": f"{{{name}}}", "open": f"<g{name}>", "close": f"</g{name}>"}[
                kind
            ]
            yield placeholder, element.start, element.end

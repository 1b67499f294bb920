"""Replace inline markup of XML formats by placeholders that metrics and checks can read.

A code that stands alone becomes `{id}`, the two ends of a pair become `<gid>` and `</gid>`, so that
checks of placeholders and tags compare source and translation. Annotations (`mrk`) vanish.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tertium.core.errors import DataError
from tertium.files.encodings import join_surrogates
from tertium.files.units import InlineText, Piece
from tertium.files.xml_elements import Element, Text, XmlFile

_SINGLE = "{{{}}}"
_OPEN, _CLOSE = "<g{}>", "</g{}>"
# placeholders of the inline elements of XLIFF 1, XLIFF 2 and TMX
_CODES = {
    **dict.fromkeys(("x", "ph", "it", "ut"), _SINGLE),
    **dict.fromkeys(("bx", "bpt", "sc"), _OPEN),
    **dict.fromkeys(("ex", "ept", "ec"), _CLOSE),
}
_PAIRS = ("g", "pc")
# attributes with the name of a code, the name of its pair first
_IDS = ("startRef", "rid", "i", "id", "x")
_WORD = re.compile(r"\w{1,40}", re.ASCII)


class InlineReader:
    """Converts the elements of one unit to texts with placeholders.

    An id that is missing or unusual is replaced by a number, the same one in source and
    translation.
    """

    def __init__(self, file: XmlFile) -> None:
        self.file = file
        self._numbers: dict[str, str] = {}

    def read(self, element: Element | None) -> InlineText | None:
        """Return the text of an element, if there is one."""
        if element is None:
            return None
        texts: list[str] = []
        pieces: list[Piece] = []
        length = 0
        for text, start, end in self._walk(element):
            texts.append(text)
            pieces.append((length, start, end))
            length += len(text)
        return InlineText("".join(texts), tuple(pieces), self.file.encoding)

    def _walk(self, element: Element) -> Iterator[tuple[str, int, int]]:
        """Yield texts and placeholders with their first byte and the byte after the last."""
        for child in element.children:
            if isinstance(child, Text):
                yield child.text, child.start, child.end
            elif child.local == "cp":
                yield self._character(child), child.start, child.end
            elif child.local in _CODES:
                placeholder = _CODES[child.local].format(self._name(child))
                yield placeholder, child.start, child.end
            elif child.local in _PAIRS:
                name = self._name(child)
                yield _OPEN.format(name), child.start, child.inner_start
                yield from self._walk(child)
                yield _CLOSE.format(name), child.inner_end, child.end
            else:  # an annotation: its text is part of the sentence
                yield from self._walk(child)

    def _name(self, element: Element) -> str:
        name = next(filter(None, map(element.get, _IDS)), "")
        if _WORD.fullmatch(name):
            return name
        return self._numbers.setdefault(name, f"n{len(self._numbers) + 1}")

    def _character(self, element: Element) -> str:
        """Return the character of a `cp`; a surrogate becomes U+FFFD."""
        try:
            return join_surrogates(chr(int(element.get("hex"), 16)))
        except (ValueError, OverflowError):
            raise DataError(
                f"{self.file.path}, line {element.line}: <cp> is not a code point such as 001A"
            ) from None

"""Android string resources: strings, string arrays and plurals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tertium.core.errors import DataError
from tertium.files.encodings import decode_escape, join_surrogates
from tertium.files.units import Catalog, Unit, translated_unit
from tertium.files.xml_elements import Element, Text, XmlFile

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)|\"|(\s+)", re.DOTALL)


def read_android(catalog: Catalog) -> Iterator[Unit]:
    """Read the resources of one language; a reference to a string is not translatable."""
    for element in XmlFile(catalog.path, ("string", "string-array", "plurals")).units():
        name = element.get("name")
        if not name:
            where = f"{catalog.path}, line {element.line}"
            raise DataError(f"{where}: <{element.local}> without a name")
        items = [element] if element.local == "string" else element.elements("item")
        for number, item in enumerate(items):
            text = unescape("".join(_inner_text(item)))
            key = f"{name}[{number}]" if element.local == "string-array" else name
            is_fixed = element.get("translatable") == "false" or text.startswith("@string/")
            unit = translated_unit(key, text, item.get("quantity"), line=item.line)
            yield replace(unit, is_translatable=not is_fixed)


def _inner_text(element: Element) -> Iterator[str]:
    """Yield texts and tags; `xliff:g` marks what is not translated and is no tag."""
    for child in element.children:
        if isinstance(child, Text):
            yield child.text
        elif child.name == "xliff:g":
            yield from _inner_text(child)
        else:
            yield f"<{child.name}>"
            yield from _inner_text(child)
            yield f"</{child.name}>"


def unescape(text: str) -> str:
    r"""Apply the escapes of Android: blanks collapse outside of double quotes.

    >>> unescape(r'''It\'s  "a  b" \u00e9\n''')
    "It's a  b é\n"
    """
    is_quoted = False

    def replace_escape(match: re.Match[str]) -> str:
        nonlocal is_quoted
        code, blanks = match.groups()
        if blanks:
            return blanks if is_quoted else " "
        if code is None:  # a quotation mark
            is_quoted = not is_quoted
            return ""
        return decode_escape(code)

    return join_surrogates(_ESCAPE.sub(replace_escape, text.strip()))

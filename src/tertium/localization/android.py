"""Android string resources: strings, string arrays and plurals."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tertium.errors import DataError
from tertium.localization.units import InlineText, Languages, Unit
from tertium.localization.xml_elements import Element, Text, XmlFile

WANTED = ("string", "string-array", "plurals")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)|\"|(\s+)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t"}


def read_android(path: str, languages: Languages) -> Iterator[Unit]:
    """Read the resources of one language."""
    file = XmlFile(path, WANTED)
    for event, element in file.elements():
        if event != "unit":
            continue
        name = element.get("name")
        if not name:
            raise DataError(f"{path}, line {element.line}: <{element.local}> without a name")
        items = element.elements("item")
        if element.local == "string":
            yield _make_unit(name, element, element)
        for number, item in enumerate(items):
            if element.local == "plurals":
                yield _make_unit(name, item, element, item.get("quantity"))
            elif element.local == "string-array":
                yield _make_unit(f"{name}[{number}]", item, element)


def _make_unit(name: str, element: Element, resource: Element, plural: str = "") -> Unit:
    text = unescape("".join(_inner_text(element)))
    is_translatable = resource.get("translatable") != "false"
    return Unit(
        id=name,
        target=InlineText(text) if text else None,
        plural=plural,
        is_translatable=is_translatable and not text.startswith("@string/"),
        line=element.line,
    )


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
    parts: list[str] = []
    is_quoted, position = False, 0
    for match in _ESCAPE.finditer(text.strip()):
        parts.append(text.strip()[position : match.start()])
        position = match.end()
        if match[0] == '"':
            is_quoted = not is_quoted
        elif match[2]:
            parts.append(match[2] if is_quoted else " ")
        elif len(match[1]) == 5:
            parts.append(chr(int(match[1][1:], 16)))
        else:
            parts.append(_ESCAPES.get(match[1], match[1]))
    joined = "".join([*parts, text.strip()[position:]])
    return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

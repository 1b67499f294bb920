"""Key-value files with a syntax of their own: .properties, .strings and Fluent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tertium.core.errors import DataError
from tertium.core.extras import explain_missing
from tertium.files.encodings import (
    decode_escape,
    join_surrogates,
    line_at,
    read_unicode,
)
from tertium.files.units import Catalog, Unit, translated_unit

_PROPERTY = re.compile(r"((?:\\.|[^\\=:\s])*)\s*(?:[=:]\s*|(?<=\s)|$)(.*)", re.DOTALL)
_PROPERTY_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|u|\n[ \t\f]*|.)", re.DOTALL)
_STRING_TOKEN = re.compile(
    r'(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<pair>(?P<key>"(?:\\.|[^"\\])*"|[\w.-]+)\s*=\s*'
    r'"(?P<value>(?:\\.|[^"\\])*)"\s*;)|(?P<flag>("(?:\\.|[^"\\])*"|[\w.-]+)\s*;)|(?P<blank>\s+)',
    re.DOTALL,
)
_STRING_ESCAPE = re.compile(r"\\([Uu][0-9A-Fa-f]{4}|.)", re.DOTALL)


def read_properties(catalog: Catalog) -> Iterator[Unit]:
    """Read a .properties file of Java: UTF-8 or else Latin-1, as Java 9 and later read it."""
    path = catalog.path
    notes: list[str] = []
    entry, first = "", 0
    for number, line in enumerate([*read_unicode(path, "latin-1").split("\n"), ""], start=1):
        if not entry and not line.strip():
            notes = []
            continue
        if not entry and line.lstrip().startswith(("#", "!")):
            notes.append(line.lstrip(" \t#!").strip())
            continue
        first = first if entry else number
        entry += line.lstrip(" \t\f")
        if (len(entry) - len(entry.rstrip("\\"))) % 2:  # continued on the next line
            entry = entry[:-1]
            continue
        unit = _read_property(entry, f"{path}, line {first}")
        yield replace(unit, notes=tuple(filter(None, notes)), line=first)
        entry, notes = "", []


def _read_property(line: str, where: str) -> Unit:
    match = _PROPERTY.fullmatch(line)
    if match is None:
        raise DataError(f"{where}: not a property: {line[:40]!r}")

    def unescape(escape: re.Match[str]) -> str:
        if escape[1] == "u":
            raise DataError(f"{where}: \\u needs four hexadecimal digits")
        return decode_escape(escape[1])

    key, text = (join_surrogates(_PROPERTY_ESCAPE.sub(unescape, side)) for side in match.groups())
    return translated_unit(key, text)


def read_strings(catalog: Catalog) -> Iterator[Unit]:
    """Read a .strings file of iOS and macOS, in UTF-8 or UTF-16."""
    path = catalog.path
    text, position, note = read_unicode(path), 0, ""
    while position < len(text):
        match, line = _STRING_TOKEN.match(text, position), line_at(text, position)
        if match is None:
            excerpt = text[position : position + 40].splitlines()[0]
            raise DataError(
                f'{path}, line {line}: expected "key" = "text"; with a semicolon, found {excerpt!r}'
            )
        if match["comment"]:
            note = match["comment"].strip("/* \n")
        elif match["pair"]:
            key, value = match["key"].strip('"'), match["value"]
            yield translated_unit(_unescape_string(key), _unescape_string(value), "", note, line)
            note = ""
        position = match.end()


def _unescape_string(text: str) -> str:
    return join_surrogates(_STRING_ESCAPE.sub(lambda match: decode_escape(match[1]), text))


def read_fluent(catalog: Catalog) -> Iterator[Unit]:
    """Read a Fluent file: messages, terms and attributes; variants of plurals are units."""
    with explain_missing("a Fluent file"):
        from fluent.syntax import FluentParser, ast
    text = read_unicode(catalog.path)
    entries: list[Any] = FluentParser().parse(text).body
    for entry in entries:
        if isinstance(entry, ast.Junk):
            span: Any = entry.span
            line = line_at(text, span.start)
            reason = entry.annotations[0].message if entry.annotations else "cannot be read"
            raise DataError(f"{catalog.path}, line {line}: not Fluent ({reason})")
        if not isinstance(entry, ast.Message | ast.Term):
            continue
        name = f"-{entry.id.name}" if isinstance(entry, ast.Term) else entry.id.name
        note = (entry.comment and entry.comment.content) or ""
        patterns: dict[str, Any] = {name: entry.value}
        for attribute in entry.attributes:
            patterns[f"{name}.{attribute.id.name}"] = attribute.value
        for key, pattern in patterns.items():
            for category, value in _read_pattern(pattern, text):
                line = line_at(text, pattern.span.start)
                yield translated_unit(key, value, category, note, line)


def _read_pattern(pattern: Any, text: str) -> Iterator[tuple[str, str]]:
    """Yield (variant, text); the text of a placeable is that of the file without blanks inside."""
    elements = pattern.elements if pattern else []
    texts = [_element_text(element, text) for element in elements]
    choices = [n for n, element in enumerate(elements) if hasattr(_expression(element), "variants")]
    if len(choices) != 1:
        if pattern:
            yield "", "".join(texts)
        return
    [place] = choices
    for variant in _expression(elements[place]).variants:
        texts[place] = "".join(_element_text(element, text) for element in variant.value.elements)
        key = getattr(variant.key, "name", None) or variant.key.value
        yield "other" if variant.default else key, "".join(texts)


def _expression(element: Any) -> Any:
    return getattr(element, "expression", None)


def _element_text(element: Any, text: str) -> str:
    if _expression(element) is None:
        return str(element.value)
    inner = text[element.span.start : element.span.end].strip("{} \n")
    return f"{{{' '.join(inner.split())}}}"

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

_PROPERTY = re.compile(
    r"(?P<comment>[#!][^\n]*)|(?P<blank>\s+)|(?P<key>(?:\\.|[^\\=:\s])*)(?P<pair>[ \t\f]*[=:]?)"
    r"[ \t\f]*(?P<value>(?:\\.|[^\\\n])*)",
    re.DOTALL,
)
_STRING = re.compile(
    r'(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<blank>\s+)|"?(?P<key>(?<=")(?:\\.|[^"\\])*(?=")|[\w.-]+)"?\s*'
    r'(?P<pair>=\s*"(?P<value>(?:\\.|[^"\\])*)")?\s*;',
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\([Uu][0-9A-Fa-f]{4}|\n[ \t\f]*|.)", re.DOTALL)


def read_properties(catalog: Catalog) -> Iterator[Unit]:
    """Read a .properties file of Java: UTF-8 or else Latin-1, as Java 9 and later read it."""
    return _read_pairs(catalog.path, read_unicode(catalog.path, "latin-1"), _PROPERTY)


def read_strings(catalog: Catalog) -> Iterator[Unit]:
    """Read a .strings file of iOS and macOS, in UTF-8 or UTF-16."""
    return _read_pairs(catalog.path, read_unicode(catalog.path), _STRING)


def _read_pairs(path: str, text: str, syntax: re.Pattern[str]) -> Iterator[Unit]:
    """Read keys and values, with the comments before them that no blank line separates."""
    position, notes = 0, []
    while position < len(text):
        match, where = syntax.match(text, position), f"{path}, line {line_at(text, position)}"
        if match is None or match.end() == position:
            excerpt = text[position : position + 40].splitlines()[0]
            raise DataError(f"{where}: not a key with a text: {excerpt!r}")
        if match["comment"]:
            notes.append(match["comment"].strip("#!/* \t\n"))
        elif match["blank"]:
            notes = notes if match["blank"].count("\n") < 2 else []
        else:
            if match["pair"] is not None:
                key, value = (_unescape(side, where) for side in match.group("key", "value"))
                unit = translated_unit(key, value, line=line_at(text, position))
                yield replace(unit, notes=tuple(filter(None, notes)))
            notes = []
        position = match.end()


def _unescape(text: str, where: str) -> str:
    def decode(match: re.Match[str]) -> str:
        if match[1] == "u":
            raise DataError(f"{where}: \\u needs four hexadecimal digits")
        return "" if match[1][0] == "\n" else decode_escape(match[1])

    return join_surrogates(_ESCAPE.sub(decode, text))


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
            for category, value in _read_pattern(pattern, text) if pattern else ():
                line = line_at(text, pattern.span.start)
                yield translated_unit(key, value, category, note, line)


def _read_pattern(pattern: Any, text: str) -> Iterator[tuple[str, str]]:
    """Yield (variant, text); the text of a placeable is that of the file without blanks inside."""
    texts = [_element_text(element, text) for element in pattern.elements]
    variants = [getattr(getattr(e, "expression", None), "variants", ()) for e in pattern.elements]
    choices = [place for place, forms in enumerate(variants) if forms]
    if len(choices) != 1:
        yield "", "".join(texts)
        return
    [place] = choices
    for variant in variants[place]:
        texts[place] = "".join(_element_text(element, text) for element in variant.value.elements)
        key = getattr(variant.key, "name", None) or variant.key.value
        yield "other" if variant.default else key, "".join(texts)


def _element_text(element: Any, text: str) -> str:
    if not hasattr(element, "expression"):
        return str(element.value)
    inner = text[element.span.start : element.span.end].strip("{} \n")
    return f"{{{' '.join(inner.split())}}}"

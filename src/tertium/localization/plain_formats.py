"""Key-value files with a syntax of their own: .properties, .strings and Fluent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tertium.errors import DataError
from tertium.extras import explain_missing
from tertium.localization.encodings import line_at, read_unicode
from tertium.localization.units import InlineText, Languages, Unit

_PROPERTY = re.compile(r"((?:\\.|[^\\=:\s])*)\s*(?:[=:]\s*|(?<=\s)|$)(.*)", re.DOTALL)
_PROPERTY_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|u|\n[ \t\f]*|.)", re.DOTALL)
_STRING_TOKEN = re.compile(
    r'(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<pair>("(?:\\.|[^"\\])*"|[\w.-]+)\s*=\s*'
    r'"((?:\\.|[^"\\])*)"\s*;)|(?P<flag>("(?:\\.|[^"\\])*"|[\w.-]+)\s*;)|(?P<blank>\s+)',
    re.DOTALL,
)
_STRING_ESCAPE = re.compile(r"\\([Uu][0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def read_properties(path: str, languages: Languages) -> Iterator[Unit]:
    """Read a .properties file of Java: UTF-8 or else Latin-1, as Java 9 and later read it."""
    notes: list[str] = []
    pending, first = "", 0
    for number, line in enumerate(read_unicode(path, "latin-1").split("\n"), start=1):
        if not pending and (not line.strip() or line.lstrip()[0] in "#!"):
            notes = [*notes, line.lstrip(" \t#!").strip()] if line.strip() else []
            continue
        first = first if pending else number
        pending += line.lstrip(" \t\f")
        if (len(pending) - len(pending.rstrip("\\"))) % 2:  # continued on the next line
            pending = pending[:-1]
            continue
        yield _read_property(pending, path, first, tuple(filter(None, notes)))
        pending, notes = "", []
    if pending:
        yield _read_property(pending, path, first, tuple(filter(None, notes)))


def _read_property(line: str, path: str, number: int, notes: tuple[str, ...]) -> Unit:
    match = _PROPERTY.fullmatch(line)
    if match is None:
        raise DataError(f"{path}, line {number}: not a property: {line[:40]!r}")

    def unescape(part: re.Match[str]) -> str:
        if part[1] == "u":
            raise DataError(f"{path}, line {number}: \\u needs four hexadecimal digits")
        if part[1][0] == "u" and len(part[1]) == 5:
            return chr(int(part[1][1:], 16))
        return _ESCAPES.get(part[1], part[1])

    key, text = (_join_surrogates(_PROPERTY_ESCAPE.sub(unescape, part)) for part in match.groups())
    return Unit(id=key, target=InlineText(text) if text else None, notes=notes, line=number)


def _join_surrogates(text: str) -> str:
    """Join surrogate pairs that were written as two escapes; a lone one becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def read_strings(path: str, languages: Languages) -> Iterator[Unit]:
    """Read a .strings file of iOS and macOS, in UTF-8 or UTF-16."""
    text, position, note = read_unicode(path), 0, ""
    while position < len(text):
        match = _STRING_TOKEN.match(text, position)
        if match is None:
            line = line_at(text, position)
            raise DataError(
                f'{path}, line {line}: expected "key" = "text"; with a semicolon, found '
                f"{text[position : position + 40].splitlines()[0]!r}"
            )
        if match["comment"]:
            note = match["comment"].strip("/* \n")
        elif match["pair"]:
            value = _unescape_string(match[4])
            yield Unit(
                id=_unescape_string(match[3].strip('"')),
                target=InlineText(value) if value else None,
                notes=(note,) if note else (),
                line=line_at(text, position),
            )
            note = ""
        position = match.end()


def _unescape_string(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)

    return _join_surrogates(_STRING_ESCAPE.sub(replace, text)) if "\\" in text else text


def read_fluent(path: str, languages: Languages) -> Iterator[Unit]:
    """Read a Fluent file: messages, terms and attributes; variants of plurals are units."""
    with explain_missing("a Fluent file"):
        from fluent.syntax import FluentParser, ast
    text = read_unicode(path)
    entries: list[Any] = FluentParser().parse(text).body
    for entry in entries:
        if isinstance(entry, ast.Junk):
            span: Any = entry.span
            reason = entry.annotations[0].message if entry.annotations else "cannot be read"
            raise DataError(f"{path}, line {line_at(text, span.start)}: not Fluent ({reason})")
        if not isinstance(entry, ast.Message | ast.Term):
            continue
        name = f"-{entry.id.name}" if isinstance(entry, ast.Term) else entry.id.name
        notes = (entry.comment.content,) if entry.comment and entry.comment.content else ()
        patterns: list[tuple[str, Any]] = [(name, entry.value)]
        patterns += [(f"{name}.{part.id.name}", part.value) for part in entry.attributes]
        for key, pattern in patterns:
            for category, value in _read_pattern(pattern, text) if pattern else ():
                line = line_at(text, pattern.span.start)
                target = InlineText(value) if value else None
                yield Unit(id=key, target=target, plural=category, notes=notes, line=line)


def _read_pattern(pattern: Any, text: str) -> Iterator[tuple[str, str]]:
    """Yield (variant, text); the text of a placeable is that of the file without blanks inside."""
    from fluent.syntax import ast

    choices: list[Any] = [
        e
        for e in pattern.elements
        if isinstance(e, ast.Placeable) and isinstance(e.expression, ast.SelectExpression)
    ]
    if len(choices) != 1:
        yield "", "".join(_element_text(e, text) for e in pattern.elements)
        return
    for variant in choices[0].expression.variants:
        key = variant.key.name if isinstance(variant.key, ast.Identifier) else variant.key.value
        chosen = "".join(_element_text(part, text) for part in variant.value.elements)
        parts = (chosen if e is choices[0] else _element_text(e, text) for e in pattern.elements)
        yield "other" if variant.default else key, "".join(parts)


def _element_text(element: Any, text: str) -> str:
    from fluent.syntax import ast

    if isinstance(element, ast.TextElement):
        return str(element.value)
    inner = text[element.span.start : element.span.end].strip("{} \n")
    return f"{{{' '.join(inner.split())}}}"

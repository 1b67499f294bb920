"""Files in one language with a syntax of their own: strings of applications, and subtitles.

.properties, .strings (iOS, macOS), Fluent, string resources of Android, SubRip and WebVTT.
Subtitles are aligned by the start times of their cues.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tertium.core.errors import DataError
from tertium.core.extras import explain_missing
from tertium.files.units import (
    Catalog,
    Units,
    decode_escape,
    join_surrogates,
    line_at,
    read_unicode,
    translated_unit,
)
from tertium.files.xml_elements import Element, XmlFile

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


def read_properties(catalog: Catalog) -> Units:
    """Read a .properties file of Java: UTF-8 or else Latin-1, as Java 9 and later read it."""
    return _read_pairs(catalog.path, read_unicode(catalog.path, "latin-1"), _PROPERTY)


def read_strings(catalog: Catalog) -> Units:
    """Read a .strings file of iOS and macOS, in UTF-8 or UTF-16."""
    return _read_pairs(catalog.path, read_unicode(catalog.path), _STRING)


def _read_pairs(path: str, text: str, syntax: re.Pattern[str]) -> Units:
    """Read keys and values, with the comments before them that no blank line separates."""
    position = 0
    notes = []
    while position < len(text):
        match = syntax.match(text, position)
        where = f"{path}, line {line_at(text, position)}"
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


def read_fluent(catalog: Catalog) -> Units:
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


_BLOCK = re.compile(r"(?:^[^\n]*\S[^\n]*\n?)+", re.MULTILINE)
_TIME = r"(?:(\d+):)?(\d{2}:\d{2})[,.](\d{3})"
_CUE = re.compile(rf"(?:[^\n]*\n)?\s*{_TIME}\s*-->\s*{_TIME}[^\n]*\n?(.*)", re.DOTALL)


def read_subtitles(catalog: Catalog) -> Units:
    """Read the cues of a subtitle file; the id of a cue is its start time."""
    text = read_unicode(catalog.path)
    for block in _BLOCK.finditer(text):
        line = line_at(text, block.start())
        cue = _CUE.fullmatch(block[0])
        if cue is not None:
            start = f"{int(cue[1] or 0):02}:{cue[2]}.{cue[3]}"
            yield translated_unit(start, cue[7].rstrip("\n"), line=line)
        elif "-->" in block[0] or catalog.path.lower().endswith(".srt"):
            excerpt = block[0].split("\n")[0]
            raise DataError(f"{catalog.path}, line {line}: a cue without times: {excerpt[:40]!r}")


_ANDROID_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)|\"|(\s+)", re.DOTALL)


def read_android(catalog: Catalog) -> Units:
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
        if isinstance(child, str):
            yield child
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

    return join_surrogates(_ANDROID_ESCAPE.sub(replace_escape, text.strip()))

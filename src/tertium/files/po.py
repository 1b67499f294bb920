"""Gettext PO and POT: messages with contexts, plural forms, flags and comments.

The lines are read as bytes, because comments are inserted at exact positions and the charset is
declared in the file. Obsolete messages (`#~`) are skipped.
"""

from __future__ import annotations

import codecs
import gettext
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tertium.core.errors import DataError
from tertium.files.annotations import FORBIDDEN, Annotated, FileEdits
from tertium.files.encodings import read_bytes
from tertium.files.units import Catalog, InlineText, Unit

OWN_COMMENT = "# tertium: "
CONTEXT_SEPARATOR = "|"
_KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d+)\])?)\s*(\".*)")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_CHARSET = re.compile(rb"charset=\s*([\w.:-]+)", re.IGNORECASE)
_LANGUAGE = re.compile(r"^Language:[ \t]*(.*)$", re.MULTILINE)
_PLURALS = re.compile(r"nplurals\s*=\s*(\d+)\s*;\s*plural\s*=\s*([^;\n]+)")
_LIMIT = re.compile(r"max-length:\s*(\d+)")
IsSingular = Callable[[int], bool]  # whether a plural form translates the singular message


@dataclass(slots=True)
class Message:
    """One message; `start` is the byte of its first line, `own` are comments of tertium."""

    start: int
    line: int
    fields: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    own: list[tuple[int, int]] = field(default_factory=list)

    def get(self, name: str) -> str:
        """Return a text, empty if it is missing."""
        return self.fields.get(name, "")

    def add_comment(self, line: str, start: int, end: int) -> None:
        """Read a line that begins with `#`, and its position."""
        if line.startswith(OWN_COMMENT.strip()):
            self.own.append((start, end))
        elif line.startswith("#,"):
            self.flags += [flag.strip() for flag in line[2:].split(",")]
        elif not line.startswith(("#|", "#:")) and (note := line.lstrip("#.").strip()):
            self.notes.append(note)


def read_po(catalog: Catalog) -> Iterator[Unit]:
    """Read all messages, one unit for each plural form; the header has none."""
    is_singular: IsSingular = lambda form: form == 0  # noqa: E731
    for number, message in enumerate(_read_messages(catalog)):
        if number == 0 and not message.get("msgid"):
            header, languages = message.get("msgstr"), catalog.languages
            if declared := _LANGUAGE.search(header):
                languages.target = languages.target or declared[1].strip()
            if rule := _PLURALS.search(header):
                is_singular = _read_plural_rule(rule, catalog.path)
        else:
            yield from _read_units(message, catalog.keep(message), is_singular)


def _read_messages(catalog: Catalog) -> Iterator[Message]:
    """Yield all messages with their positions, the header included."""
    path = catalog.path
    message: Message | None = None
    name = ""  # of the text that is being read
    for start, end, number, line in _read_lines(catalog):
        is_complete = name.startswith("msgstr") and not line.startswith(('"', "msgstr"))
        if message and is_complete:
            yield message
            message, name = None, ""
        if not line or line.startswith("#~"):
            continue
        message = message or Message(start, number)
        where = f"{path}, line {number}"
        if line.startswith("#"):
            message.add_comment(line, start, end)
        elif match := _KEYWORD.fullmatch(line):
            name = match[1]
            if name in message.fields:
                raise DataError(f"{where}: a second {name}; the msgstr before it is missing")
            if name.startswith("msgstr") and "msgid" not in message.fields:
                raise DataError(f"{where}: {name} without msgid")
            message.fields[name] = _unquote(match[3], where)
            if name in ("msgctxt", "msgid"):
                message.line = number
        elif line.startswith('"') and name:
            message.fields[name] += _unquote(line, where)
        else:
            raise DataError(f"{where}: not a line of a PO file: {line[:40]!r}")
    if message and name.startswith("msgstr"):
        yield message
    elif message and name:
        raise DataError(f"{path}, line {message.line}: the last message has no msgstr")


def _read_lines(catalog: Catalog) -> Iterator[tuple[int, int, int, str]]:
    """Yield the first byte of all lines, the byte after their text, their number and text."""
    path, data = catalog.path, read_bytes(catalog.path)
    declared = _CHARSET.search(data[:20000])
    if declared and declared[1].lower() != b"charset":  # else a template that was not filled in
        catalog.encoding = declared[1].decode().lower()
    try:
        codecs.lookup(catalog.encoding)
    except LookupError:
        raise DataError(f"{path}: unknown charset {catalog.encoding}") from None
    start = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    for number, raw in enumerate(data[start:].split(b"\n"), start=1):
        try:
            text = raw.decode(catalog.encoding).strip()
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}, line {number}: not {catalog.encoding} (byte 0x{raw[error.start]:02x}); "
                "correct the charset of the header, or the text"
            ) from None
        yield start, start + len(raw), number, text
        start += len(raw) + 1


def _unquote(text: str, where: str) -> str:
    """Return the value of a quoted string.

    >>> _unquote(r'"a \\"b\\"\\n"', "line 1")
    'a "b"\\n'
    """
    match = _STRING.fullmatch(text)
    if match is None:
        raise DataError(f"{where}: the text {text[:40]!r} is not a string in double quotes")
    return _ESCAPE.sub(_unescape, match[1])


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "01234567":
        return chr(int(code, 8))
    if len(code) == 3:
        return chr(int(code[1:], 16))
    return _ESCAPES.get(code, code)


def _read_plural_rule(rule: re.Match[str], path: str) -> IsSingular:
    """Return whether a form is that of the number 1 and not the only form."""
    try:
        one = gettext.c2py(rule[2])(1)
    except (ValueError, ZeroDivisionError):
        raise DataError(f"{path}: Plural-Forms is not valid: {rule[0][:60]!r}") from None
    return lambda form: form == one and int(rule[1]) > 1


def _read_units(message: Message, place: Any, is_singular: IsSingular) -> Iterator[Unit]:
    """Yield a unit for each plural form of a message."""
    source, plural, context = map(message.get, ("msgid", "msgid_plural", "msgctxt"))
    limits = [int(m[1]) for flag in message.flags if (m := _LIMIT.fullmatch(flag))]
    state = "fuzzy" if "fuzzy" in message.flags else "translated"
    for name, text in message.fields.items():
        if not name.startswith("msgstr"):
            continue
        form = name[7:-1]
        yield Unit(
            id=f"{context}{CONTEXT_SEPARATOR}{source}" if context else source,
            source=InlineText(plural if form and not is_singular(int(form)) else source),
            target=InlineText(text) if text else None,
            notes=tuple(message.notes),
            state=state if text else "",
            context=context,
            plural=form,
            max_length=min(limits, default=0),
            line=message.line,
            place=place,
        )


def annotate(message: Message, annotated: Annotated, edits: FileEdits) -> None:
    """Add a comment for the scores and one for each finding before a message."""
    data = edits.data
    for start, end in message.own:
        edits.replace(start, end + 1)
    first_line = data[message.start : data.find(b"\n", message.start)]
    line_end = "\r\n" if first_line.endswith(b"\r") else "\n"
    for unit, annotation in annotated:
        label = f"[{unit.plural}] " if unit.plural else ""
        findings = [edits.describe(span, unit) for span in annotation.findings]
        for line in annotation.describe_scores() + findings:
            text = OWN_COMMENT + label + FORBIDDEN.sub("�", line)
            edits.insert(message.start, text + line_end)

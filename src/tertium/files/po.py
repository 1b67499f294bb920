"""Gettext PO and POT: messages with contexts, plural forms, flags and comments.

The lines are read as bytes, because comments are inserted at exact positions and the charset is
declared in the file. Obsolete messages (`#~`) are skipped.
"""

from __future__ import annotations

import gettext
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tertium.core.errors import DataError
from tertium.data.text_files import read_data
from tertium.files.annotations import Place
from tertium.files.units import Catalog, Range, Unit, Units, decode_escape

OWN_COMMENT = "# tertium: "
CONTEXT_SEPARATOR = "|"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LINE = re.compile(r"(?:(msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)\s*)?\"((?:[^\"\\]|\\.)*)\"")
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|(x[0-9A-Fa-f]{2}|.))", re.DOTALL)
_CONTROLS = {"a": "\a", "b": "\b", "v": "\v"}
_CHARSET = re.compile(rb"(?i)charset=\s*(?!charset\b)([\w.:-]+)")  # CHARSET: of an empty template
_LANGUAGE = re.compile(r"^Language:[ \t]*(.*)$", re.MULTILINE)
_PLURALS = re.compile(r"nplurals\s*=\s*(\d+)\s*;\s*plural\s*=\s*([^;\n]+)")
_LIMIT = re.compile(r"max-length:\s*(\d+)")
NO_FORM = -1


@dataclass(slots=True)
class Message:
    """One message; `start` is the byte of its first line, `own` are comments of tertium."""

    start: int
    line: int
    line_end: str
    fields: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    flags: str = ""
    own: list[Range] = field(default_factory=list)

    def get(self, name: str) -> str:
        """Return a text, empty if it is missing."""
        return self.fields.get(name, "")

    def add_comment(self, line: str, start: int, end: int) -> None:
        """Read a line that begins with `#`, and its position."""
        if line.startswith(OWN_COMMENT.strip()):
            self.own.append((start, end))
        elif line.startswith("#,"):
            self.flags += line
        elif not line.startswith(("#|", "#:")) and (note := line.lstrip("#.").strip()):
            self.notes.append(note)


def read_po(catalog: Catalog) -> Units:
    """Read all messages, one unit for each plural form; the header has none."""
    singular_form = 0  # the plural form that translates the singular message
    for number, message in enumerate(_read_messages(catalog)):
        if number or message.get("msgid"):
            yield from _read_units(message, singular_form)
            continue
        header = message.get("msgstr")
        languages = catalog.languages
        if declared := _LANGUAGE.search(header):
            languages.target = languages.target or declared[1].strip()
        if rule := _PLURALS.search(header):
            try:
                singular_form = gettext.c2py(rule[2])(1) if int(rule[1]) > 1 else NO_FORM
            except (ValueError, ZeroDivisionError):
                raise DataError(
                    f"{catalog.path}: Plural-Forms is not valid: {rule[0][:60]!r}"
                ) from None


def _read_messages(catalog: Catalog) -> Iterator[Message]:
    """Yield all messages with their positions, the header included."""
    message: Message | None = None
    name = where = ""  # of the text that is being read
    for start, end, number, line, line_end in _read_lines(catalog):
        is_complete = name.startswith("msgstr") and not line.startswith(('"', "msgstr"))
        if message and is_complete:
            yield message
            message = None
            name = ""
        if not line or line.startswith("#~"):
            continue
        where = f"{catalog.path}, line {number}"
        message = message or Message(start, number, line_end)
        if line.startswith("#"):
            message.add_comment(line, start, end)
            continue
        match = _LINE.fullmatch(line)
        if match is None or not (match[1] or name):
            raise DataError(f"{where}: not a line of a PO file: {line[:40]!r}")
        if match[1]:
            name = match[1]
            is_incomplete = name.startswith("msgstr") and "msgid" not in message.fields
            if is_incomplete or name in message.fields:
                raise DataError(f"{where}: {name} without the lines that are expected before it")
            if name in ("msgctxt", "msgid"):
                message.line = number
        message.fields[name] = message.get(name) + _ESCAPE.sub(_unescape, match[2])
    if name:
        raise DataError(f"{where}: the last message has no msgstr")


def _unescape(match: re.Match[str]) -> str:
    octal, code = match.groups()
    return chr(int(octal, 8)) if octal else _CONTROLS.get(code) or decode_escape(code)


def _read_lines(catalog: Catalog) -> Iterator[tuple[int, int, int, str, str]]:
    """Yield the range of each line in bytes, its number, text and end; then an empty line."""
    data = read_data(catalog.path)
    if declared := _CHARSET.search(data[:20000]):
        catalog.encoding = declared[1].decode().lower()
    start = len(BYTE_ORDER_MARK) if data.startswith(BYTE_ORDER_MARK) else 0
    for number, raw in enumerate([*data[start:].split(b"\n"), b""], start=1):
        end = start + len(raw) + 1
        try:
            text = raw.decode(catalog.encoding)
        except (LookupError, UnicodeDecodeError) as error:
            raise DataError(
                f"{catalog.path}, line {number}: {error}; correct the charset of the header, or "
                "the text"
            ) from None
        yield start, end, number, text.strip(), "\r\n" if text.endswith("\r") else "\n"
        start = end


def _read_units(message: Message, singular_form: int) -> Units:
    """Yield a unit for each plural form of a message."""
    source, plural, context = map(message.get, ("msgid", "msgid_plural", "msgctxt"))
    state = "fuzzy" if "fuzzy" in message.flags else "translated"
    place = Place(message.start, f"{OWN_COMMENT}{{text}}{message.line_end}", (*message.own,))
    for name, text in message.fields.items():
        if not name.startswith("msgstr"):
            continue
        form = name[7:-1]
        is_plural = form and int(form) != singular_form
        yield Unit(
            id=f"{context}{CONTEXT_SEPARATOR}{source}" if context else source,
            source=plural if is_plural else source,
            target=text or None,
            notes=tuple(message.notes),
            state=state if text else "",
            context=context,
            plural=form,
            max_length=min(map(int, _LIMIT.findall(message.flags)), default=0),
            line=message.line,
            place=place,
        )

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

from tertium.errors import DataError
from tertium.localization.encodings import read_bytes
from tertium.localization.units import InlineText, Languages, Unit

OWN_COMMENT = "# tertium: "
CONTEXT_SEPARATOR = "|"
_KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr(?:\[(\d+)\])?)\s*(\".*)")
_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_CHARSET = re.compile(rb"charset=\s*([\w.:-]+)", re.IGNORECASE)
_PLURALS = re.compile(r"nplurals\s*=\s*(\d+)\s*;\s*plural\s*=\s*([^;\n]+)")
_LIMIT = re.compile(r"max-length:\s*(\d+)")
MAX_TESTED_NUMBER = 200  # numbers that tell plural forms of all languages apart


@dataclass(slots=True)
class Message:
    """One message; `start` is the byte of its first line, `own` are comments of tertium."""

    start: int
    line: int
    fields: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    own: list[tuple[int, int]] = field(default_factory=list)

    def get(self, name: str) -> str:
        return "".join(self.fields.get(name, ()))

    @property
    def is_complete(self) -> bool:
        """Whether the message has a translation, even an empty one."""
        return any(name.startswith("msgstr") for name in self.fields)


class PoFile:
    """A PO file: its bytes, charset and messages."""

    def __init__(self, path: str) -> None:
        self.path, self.data = path, read_bytes(path)
        if self.data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise DataError(f"{path}: UTF-16; convert it first: msgconv -t UTF-8")
        declared = _CHARSET.search(self.data[:20000])
        self.encoding = declared[1].decode().lower() if declared else "utf-8"
        if self.encoding == "charset":  # a template that was not filled in
            self.encoding = "utf-8"
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise DataError(f"{path}: unknown charset {self.encoding}") from None

    def _lines(self) -> Iterator[tuple[int, int, str]]:
        """Yield start, line number and text of all lines."""
        start = 3 if self.data.startswith(codecs.BOM_UTF8) else 0
        for number, raw in enumerate(self.data[start:].split(b"\n"), start=1):
            try:
                text = raw.decode(self.encoding)
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{self.path}, line {number}: not {self.encoding} (byte "
                    f"0x{raw[error.start]:02x}); correct the charset of the header, or the text"
                ) from None
            yield start, number, text.strip()
            start += len(raw) + 1

    def messages(self) -> Iterator[Message]:
        """Yield all messages with their positions, the header included."""
        message: Message | None = None
        current: list[str] | None = None
        for start, number, line in self._lines():
            if message is not None and message.is_complete and not line.startswith(('"', "msgstr")):
                yield message
                message = current = None
            if not line or line.startswith("#~"):
                continue
            message = message or Message(start, number)
            where = f"{self.path}, line {number}"
            if line.startswith("#"):
                _read_comment(line, message, (start, start + len(line.encode(self.encoding))))
            elif match := _KEYWORD.fullmatch(line):
                if match[1] in message.fields:
                    raise DataError(
                        f"{where}: a second {match[1]}; the msgstr before it is missing"
                    )
                if match[1].startswith("msgstr") and "msgid" not in message.fields:
                    raise DataError(f"{where}: {match[1]} without msgid")
                current = message.fields.setdefault(match[1], [])
                current.append(_unquote(match[3], where))
                message.line = number if match[1] in ("msgctxt", "msgid") else message.line
            elif line.startswith('"') and current is not None:
                current.append(_unquote(line, where))
            else:
                raise DataError(f"{where}: not a line of a PO file: {line[:40]!r}")
        if message is not None and message.is_complete:
            yield message
        elif message is not None and message.fields:
            raise DataError(f"{self.path}, line {message.line}: the last message has no msgstr")


def _read_comment(line: str, message: Message, position: tuple[int, int]) -> None:
    if line.startswith(OWN_COMMENT.strip()):
        message.own.append(position)
    elif line.startswith("#,"):
        message.flags += [flag.strip() for flag in line[2:].split(",")]
    elif line.startswith("#:"):
        message.references += line[2:].split()
    elif not line.startswith("#|") and (note := line.lstrip("#.").strip()):
        message.notes.append(note)


def _unquote(text: str, where: str) -> str:
    """Return the value of a quoted string.

    >>> _unquote(r'"a \\"b\\"\\n"', "line 1")
    'a "b"\\n'
    """
    body = text[1:-1]
    if len(text) < 2 or text[-1] != '"' or re.search(r'(?<!\\)(?:\\\\)*"', body) or _odd(body):
        raise DataError(f"{where}: the text {text[:40]!r} is not a string in double quotes")
    return _ESCAPE.sub(_unescape, body) if "\\" in body else body


def _odd(body: str) -> bool:
    return (len(body) - len(body.rstrip("\\"))) % 2 == 1


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] in "01234567":
        return chr(int(code, 8))
    if len(code) == 3:
        return chr(int(code[1:], 16))
    return _ESCAPES.get(code, code)


def read_groups(file: PoFile, languages: Languages) -> Iterator[tuple[Message, list[Unit]]]:
    """Yield every message with its units, one for each plural form; the header has none."""
    singular: Callable[[int], bool] = lambda form: form == 0  # noqa: E731
    for number, message in enumerate(file.messages()):
        if number == 0 and not message.get("msgid"):
            header = message.get("msgstr")
            languages.target = languages.target or _header_field(header, "Language")
            singular = _read_plural_rule(header, file.path) or singular
            yield message, []
        else:
            yield message, [*_read_units(message, singular)]


def _header_field(header: str, name: str) -> str:
    match = re.search(rf"^{name}:[ \t]*(.*)$", header, re.MULTILINE)
    return match[1].strip() if match else ""


def _read_plural_rule(header: str, path: str) -> Callable[[int], bool] | None:
    """Return a function that tells whether a plural form translates the singular message.

    This is the form of the number 1, unless it is the only form.
    """
    match = _PLURALS.search(header)
    if match is None:
        return None
    try:
        form_of = gettext.c2py(match[2])
        forms = {form_of(n) for n in range(MAX_TESTED_NUMBER)}
        one = form_of(1)
    except (ValueError, ZeroDivisionError):
        raise DataError(f"{path}: Plural-Forms is not valid: {match[0][:60]!r}") from None
    return lambda form: form == one and len(forms) > 1


def _read_units(message: Message, singular: Callable[[int], bool]) -> Iterator[Unit]:
    source, plural = message.get("msgid"), message.get("msgid_plural")
    context = message.get("msgctxt")
    limits = [int(m[1]) for flag in message.flags if (m := _LIMIT.fullmatch(flag))]
    is_fuzzy = "fuzzy" in message.flags
    for name in message.fields:
        if not name.startswith("msgstr"):
            continue
        form = name[7:-1]
        text = message.get(name)
        yield Unit(
            id=f"{context}{CONTEXT_SEPARATOR}{source}" if context else source,
            source=InlineText(plural if form and not singular(int(form)) else source),
            target=InlineText(text) if text else None,
            notes=tuple(message.notes),
            state=("fuzzy" if is_fuzzy else "translated") if text else "",
            context=context,
            plural=form,
            max_length=min(limits, default=0),
            line=message.line,
        )

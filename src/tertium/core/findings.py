"""Findings: errors at places of files, as plain values that results yield and writers serialize."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tertium.spans import Severity, Side


@dataclass(frozen=True, slots=True)
class FileLocation:
    """A file and, if known, the line of a text and the column of its first character, from 1.

    Columns count code points. Without a column, the text is written differently in the line.
    """

    file: str
    line: int | None = None
    column: int | None = None


Locate = Callable[[str, int, Side], FileLocation | None]  # of a system, a segment from 0 and a side


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRule:
    """A kind of finding: what is expected, in which languages, and examples as `help`."""

    id: str
    sentence: str
    severity: Severity
    languages: str = "all"
    help: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding of a rule, by its id, at a place of a file.

    `start` and `end` are offsets in the text at `location`, in code points; without them the
    finding is about the whole line. `related` are further places with their offsets.
    `identity` are the texts that make the finding the same in a later run.
    """

    rule: str
    message: str
    severity: Severity = "major"
    location: FileLocation | None = None
    start: int | None = None
    end: int | None = None
    snippet: str = ""
    segment: str = ""
    related: tuple[tuple[FileLocation, int, int], ...] = ()
    identity: tuple[str, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)

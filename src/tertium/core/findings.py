"""Errors at places of files, and cases that pass or fail: plain values that writers serialize."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tertium.core.segment import Segment
from tertium.core.spans import Severity, Side, Span


@dataclass(frozen=True, slots=True)
class FileLocation:
    """A file and, if known, the line of a text and the column of its first character, from 1.

    Columns count code points. Without a column, the text is written differently in the line.
    """

    file: str
    line: int | None = None
    column: int | None = None


Locate = Callable[[str, int, Side], FileLocation | None]  # of a system, a segment from 0 and a side


def locate_nothing(system: str, segment: int, side: Side) -> None:
    """Return no location, for texts that are not in files."""


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
    """An error in a translation; what is missing in the translation is marked in the source.

    The category of the span is the id of a rule. `segment` is the name of the segment, `number` its
    place from 0, `texts` the segment itself. `locate` finds both texts in their files.
    """

    system: str
    segment: str | int
    number: int
    texts: Segment
    span: Span
    locate: Locate = locate_nothing

    @property
    def text(self) -> str:
        """The marked text."""
        return self.span.of(self.texts.text_of(self.span.side))

    def location(self, side: Side) -> FileLocation | None:
        """Return the place of the translation or the source."""
        return self.locate(self.system, self.number, side)


@dataclass(frozen=True, slots=True)
class Case:
    """A case; one that fails or is skipped has a message, and the kind of its failure."""

    name: str
    failure: str = ""
    message: str = ""
    is_skipped: bool = False


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases, and what is to be said about all of them: `output`, and cautions in `errors`."""

    name: str
    cases: Sequence[Case]
    output: str = ""
    errors: str = ""


@dataclass(frozen=True, slots=True)
class Suites:
    """All suites of a result."""

    name: str
    suites: Sequence[Suite]

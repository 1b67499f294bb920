"""Published formats of human data: one module each, found by a table of module names.

A module has `matches`, whether a file or folder has its format, and `read`, which yields its human
data. To add a format, write a module and add its name to `FOLDERS` or `FILES`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from tertium.core.errors import DataError, UsageError
from tertium.data.human_data import HumanData
from tertium.data.record_files import parse_json, read_records
from tertium.data.records import Record
from tertium.data.text_files import (
    JSON_SUFFIXES,
    language_pair_in_path,
    read_first_lines,
    read_text,
)

FOLDERS = ("metrics_task", "mt_metrics_eval", "wmt_quality_estimation")
# Formats of files with their suffixes, in the order in which they are tried; () is any suffix.
FILES: Mapping[str, Sequence[str]] = {
    "metrics_task": (".tar", ".tgz", ".txz"),
    "mt_metrics_eval": (".score",),
    "appraise": (".csv",),
    "quality_estimation_tables": (".tsv",),
    "pearmut_outputs": tuple(JSON_SUFFIXES),
    "label_studio": tuple(JSON_SUFFIXES),
    "factgenie": tuple(JSON_SUFFIXES),
    "preferences": (),
    "wmt_rankings": (),
    "esa": (),
    "mqm": (),
}


class Source:
    """A file or folder of human data, and what to read from it.

    `level` is "segment" or "system", `gold` the kind of human scores or the score column of a
    table. `lps` are the language pairs to read, all if it is empty.
    """

    def __init__(
        self, path: Path, *, level: str = "segment", gold: str = "", lps: Sequence[str] = ()
    ) -> None:
        self.path = path
        self.level, self.gold, self.lps = level, gold, lps

    @property
    def lp(self) -> str:
        """The language pair in the path, or an empty string."""
        return language_pair_in_path(self.path)

    @cached_property
    def lines(self) -> list[str]:
        """The first lines of a text file, at most four; an empty one of a Parquet file."""
        return [""] if ".parquet" in self.path.suffixes else read_first_lines(self.path, 4)

    @cached_property
    def columns(self) -> frozenset[str]:
        """The lowercase columns of a table; none if `gold` names one of them as the score."""
        if self.gold:
            return frozenset()
        names: Sequence[str] = [*self.first_object]
        if ".tsv" in self.path.suffixes and any(self.lines[1:2]):  # the first row may be unreadable
            names = [name.strip() for name in self.lines[0].split("\t")]
        if not names:
            first = next(iter(read_records(self.path)), None)
            if first is None:
                raise DataError(f"{self.path} contains no judgments")
            names = [*first[1]]
        return frozenset(name.lower() for name in names)

    @cached_property
    def first_object(self) -> Record:
        """The first object of a JSON file, in a list or a line; empty without one."""
        if JSON_SUFFIXES.isdisjoint(self.path.suffixes):
            return {}
        line = self.lines[0].strip()
        is_document = line[:1] in ("[", "") or line == "{"
        try:
            content = parse_json(read_text(self.path) if is_document else line, str(self.path))
        except DataError:  # explained by the reader of tables
            return {}
        first = content[0] if isinstance(content, list) and content else content
        return first if isinstance(first, dict) else {}

    def refuse_gold(self) -> None:
        """Raise an error if one of several scores was asked for."""
        if self.gold:
            raise UsageError(
                f"--gold {self.gold}: {self.path} has only one kind of scores; omit --gold"
            )


class Format(Protocol):
    """A module of this package."""

    def matches(self, source: Source) -> bool: ...
    def read(self, source: Source) -> Iterator[HumanData]: ...


def find_format(source: Source) -> Format | None:
    """Return the format of a file or folder, or None for other tables and folders."""
    suffixes = source.path.suffixes
    names = [name for name, endings in FILES.items() if not endings or {*endings} & {*suffixes}]
    for name in FOLDERS if source.path.is_dir() else names:
        entry = cast(Format, import_module(f"{__name__}.{name}"))
        if entry.matches(source):
            if source.path.is_file():
                source.refuse_gold()
            return entry
    return None

"""Published formats of human data, found by a table of names.

A format NAME has two functions: `is_NAME`, whether a file or folder has this format, and
`read_NAME`, which yields its human data. To add one, write both and add its name to `FOLDERS` or
`FILES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path

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

# The module of each format and its suffixes, in the order in which they are tried; () is any
FOLDERS = {
    "task": ("metrics_task", ()),
    "eval_set": ("mt_metrics_eval", ()),
    "parallel_tags": ("wmt_quality_estimation", ()),
}
FILES: Mapping[str, tuple[str, Sequence[str]]] = {
    "task": ("metrics_task", (".tar", ".tgz", ".txz")),
    "eval_set": ("mt_metrics_eval", (".score",)),
    "appraise": ("annotation_tools", (".csv",)),
    "quality_estimation": ("error_tables", (".tsv",)),
    "pearmut": ("annotation_tools", tuple(JSON_SUFFIXES)),
    "label_studio": ("annotation_tools", tuple(JSON_SUFFIXES)),
    "factgenie": ("annotation_tools", tuple(JSON_SUFFIXES)),
    "comparison": ("preferences", ()),
    "ranking": ("preferences", ()),
    "esa": ("error_tables", ()),
    "mqm": ("error_tables", ()),
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
        self.level = level
        self.gold = gold
        self.lps = lps

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


Reader = Callable[[Source], Iterator[HumanData]]


def find_reader(source: Source) -> Reader | None:
    """Return the reader of a file or folder, or None for other tables and folders."""
    suffixes = {*source.path.suffixes}
    formats = FOLDERS if source.path.is_dir() else FILES
    for name, (module_name, endings) in formats.items():
        if endings and suffixes.isdisjoint(endings):
            continue
        module = import_module(f"{__name__}.{module_name}")
        if getattr(module, f"is_{name}")(source):
            if formats is FILES:
                source.refuse_gold()
            reader: Reader = getattr(module, f"read_{name}")
            return reader
    return None

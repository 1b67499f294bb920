"""Where the texts of a test set are in their files: file, line and column."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from tertium.core.findings import FileLocation, Locate
from tertium.core.spans import Side
from tertium.data import record_files, records
from tertium.data.text_files import is_stdin, read_text, split_lines

LINE_NUMBER = re.compile(r"line (\d+)$")


def locate_lines(systems: Mapping[str, str], sources: str | None = None) -> Locate:
    """Locate the texts of parallel files, by the file of each system and of the sources.

    >>> locate_lines({"ours": "ours.txt"})("ours", 2, "hypothesis")
    FileLocation(file='ours.txt', line=3, column=1)
    """

    def locate(system: str, segment: int, side: Side) -> FileLocation | None:
        file = sources if side == "source" else systems[system]
        return None if file is None or is_stdin(file) else FileLocation(file, segment + 1, 1)

    return locate


def locate_records(
    path: str,
    systems: Mapping[str, Sequence[str]],
    sources: Sequence[str] = (),
    fields: record_files.Fields | None = None,
) -> Locate:
    """Locate the texts of a file of records by their lines; standard input has no locations.

    The column is known if the text is written in its line exactly once.
    """

    @cache
    def read_lines() -> tuple[dict[str, list[int]], list[str]]:
        """Return the numbers of the lines of each system, and the lines."""
        lines: dict[str, list[int]] = {}
        if is_stdin(path) or {".parquet", ".xlsx"} & {*Path(path).suffixes}:
            return lines, []
        default = record_files.default_name(path) or "system"
        for where, record in record_files.read_records(path, fields):
            names = records.lowercase_known_columns(record)
            system = records.read_name(names, records.SYSTEM_NAMES, where) or default
            match = LINE_NUMBER.search(where)
            lines.setdefault(system, []).append(int(match[1]) if match else 1)
        return lines, split_lines(read_text(path), path)

    def locate(system: str, segment: int, side: Side) -> FileLocation | None:
        lines, raw = read_lines()
        if system not in lines:
            return None if is_stdin(path) else FileLocation(path)
        line = lines[system][segment]
        text = (sources if side == "source" else systems[system])[segment]
        is_clear = bool(text) and raw[line - 1].count(text) == 1
        return FileLocation(path, line, raw[line - 1].index(text) + 1 if is_clear else None)

    return locate

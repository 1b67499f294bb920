"""Checks that files, systems and references of a test set are consistent with each other."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, LengthError, UsageError, short_repr
from tertium.core.frames import is_frame, unwrap_arrow_column
from tertium.core.segment import Segment, check_surrogates, check_texts
from tertium.data.records import ITEM_NAMES, TEXT_NAMES
from tertium.data.text_files import JSON_SUFFIXES, STDIN, decode_path, display_name

Row = tuple[Segment, str, Mapping[str, str]]  # with its document and labels


def check_system_name(name: Any) -> None:
    """Raise an error unless a system name is a printable text."""
    if not isinstance(name, str):
        raise DataError(f"the system name {name!r} is not a text")
    if not name.strip():
        raise DataError("a system has a blank name: give it a name")
    check_surrogates(name, f"the system name {name!r}")


def check_reference_lists(references: Any) -> None:
    """Raise an error unless there is a list of texts for each segment."""
    is_single = getattr(references, "ndim", 1) == 0
    if not hasattr(references, "__len__") or isinstance(references, Set) or is_single:
        kind = type(references).__name__  # printing a generator would consume it
        raise UsageError(
            f"references: expected a list of references for each segment, got a {kind}"
        )
    if is_frame(references):
        raise UsageError(
            "references: expected a list of references for each segment, got a table: convert its "
            "columns to [[text, ...], ...], or read the whole table with TestSet.from_frame"
        )
    for number, texts in enumerate(unwrap_arrow_column(references), start=1):
        if isinstance(texts, str):
            raise UsageError(
                f"references: segment {number} has the text {texts[:40]!r}; expected a list of "
                "references: wrap each in [...]"
            )
        check_texts(texts, f"references of segment {number}", "reference")


def check_plain_text(file: PathLike, lines: Sequence[str] | None = None) -> None:
    """Raise an error if a suffix, or the first of `lines`, shows records instead of plain text."""
    if Path(Path(file).name.removesuffix(".gz")).suffix in JSON_SUFFIXES:
        raise UsageError(
            f"{file} contains records; expected plain text, one segment per line. A records file "
            "has translations, sources and references together: give it alone"
        )
    if lines and _is_record(lines[0]):
        raise DataError(
            f"{display_name(file)}: line 1 is a JSON record and would be scored with its braces "
            "and keys: save records in a file whose name ends in .jsonl"
        )


def _is_record(line: str) -> bool:
    try:
        record = json.loads(line) if line.startswith("{") else None
    except ValueError:
        return False
    return isinstance(record, dict) and any(name.lower() in TEXT_NAMES for name in record)


def check_parallel(files: Sequence[PathLike], texts: Sequence[Sequence[str]]) -> None:
    """Raise an error if files differ in their number of lines."""
    for file, text in zip(files[1:], texts[1:], strict=True):
        if len(text) != len(texts[0]):
            raise LengthError(
                f"{display_name(files[0])} has {len(texts[0])} lines but {display_name(file)} has "
                f"{len(text)}; they must be parallel, one segment per line"
            )


def name_systems(translations: Sequence[PathLike], names: Sequence[str] | None) -> Sequence[str]:
    """Return the given names or, without them, `distinct_names` of the files; check them."""
    if isinstance(names, str):
        raise UsageError(f"names: {names!r} is a single name; give a list of names, [...]")
    if not translations:
        raise DataError("no translations given")
    if names is not None and len(names) != len(translations):
        raise LengthError(
            f"{len(names)} names for {len(translations)} translation files: give one name per file"
        )
    systems = names if names is not None else distinct_names(translations)
    for system in systems:
        check_surrogates(system, f"the name {system!r}")
    if len(set(systems)) != len(systems):
        repeated = next(system for system in systems if list(systems).count(system) > 1)
        raise DataError(f"two systems are named {repeated!r}; give distinct names with --names")
    return systems


def distinct_names(files: Sequence[PathLike]) -> list[str]:
    """Return the shortest path endings that distinguish the files; `-` is named `stdin`.

    >>> distinct_names(["a/out.txt", "b/out.txt"])
    ['a/out.txt', 'b/out.txt']
    >>> distinct_names(["runs/a.txt", "runs/b.txt"])
    ['a.txt', 'b.txt']
    """
    paths = ["stdin" if str(file) == STDIN else decode_path(file) for file in files]
    parts = [Path(path).parts for path in paths]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(p[-depth:]) for p in parts]
        if len(set(names)) == len(names):
            return names
    return paths


def check_same_rows(
    path: str, first: str, expected: Sequence[Row], system: str, rows: Sequence[Row]
) -> None:
    """Raise an error if two systems differ in sources, references, documents or item names."""
    if len(rows) != len(expected):
        raise LengthError(
            f"{path}: system {system!r} has {len(rows)} segments, {first!r} has "
            f"{len(expected)}; every system must have the same segments in the same order"
        )
    for number, ((a, document, _), (b, other_document, _)) in enumerate(
        zip(expected, rows, strict=True), start=1
    ):
        if (a.source, a.references) != (b.source, b.references):
            difference = "another source or other references than"
            remedy = "sort the rows of all systems alike"
            if a.source is not None and a.source == b.source:  # the same segment
                difference = "other references than" if b.references else "no reference, unlike"
                remedy = "give a segment the same references for all systems"
            raise DataError(
                f"{path}: segment {number} of system {system!r} has {difference} that of "
                f"{first!r}; {remedy}"
            )
        if document != other_document:
            raise DataError(
                f"{path}: segment {number} is in document {document!r} for system {first!r}, but "
                f"in {other_document!r} for {system!r}; every system must have the same segments "
                "in the same order"
            )
    for column in ITEM_NAMES:
        names, other_names = ([row[2].get(column, "") for row in own] for own in (expected, rows))
        shared = {*names} & {*other_names} - {""}
        if names != other_names and 2 * len(shared) > len({*names}):
            raise DataError(
                f"{path}: the rows of system {system!r} have another {column} than those of "
                f"{first!r}; sort the rows of all systems alike"
            )


def check_path_lists(**lists: object) -> None:
    """Raise an error if an argument, given by its name, is not a list of paths."""
    for label, paths in lists.items():
        if isinstance(paths, str | os.PathLike) or not isinstance(paths, Sequence):
            raise UsageError(f"{label}: expected a list of files, [...], got {short_repr(paths)}")
        for path in paths:
            if not isinstance(path, str | os.PathLike):
                raise UsageError(f"{label}: {short_repr(path)} is not a path; give str or Path")


def collect_sources(segments: Sequence[Segment], path: str) -> tuple[str, ...]:
    """Return the sources of all segments, or none; raise an error if only some have one."""
    sources = tuple(s.source for s in segments if s.source is not None)
    if sources and len(sources) != len(segments):
        raise DataError(f"{path}: some segments have a source and some have none")
    return sources

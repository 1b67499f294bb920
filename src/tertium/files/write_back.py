"""Write scores and findings into a copy of a localization file; all other bytes stay the same."""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from pathlib import Path

from tertium.core.atomic import check_writable, open_atomic
from tertium.core.errors import DataError, UsageError
from tertium.data.record_files import default_name, read_records
from tertium.data.records import SYSTEM_NAMES, lowercase_known_columns, read_name
from tertium.data.testset import TestSet
from tertium.files.annotations import Annotated, Annotation, FileEdits, describe_finding
from tertium.files.catalogs import (
    PO_SUFFIXES,
    XLIFF_SUFFIXES,
    file_version,
    suffix_of,
)
from tertium.files.projects import Project
from tertium.files.units import Catalog, Unit
from tertium.files.workbook_columns import add_columns

WRITABLE_SUFFIXES = XLIFF_SUFFIXES | PO_SUFFIXES | {".tmx", ".xlsx"}


def check_write_back(paths: Sequence[str], output: str) -> list[str]:
    """Raise an error if scores cannot be written to copies of these files; return their names.

    One folder takes the copies of several files.
    """
    for path in paths:
        if suffix_of(path) not in WRITABLE_SUFFIXES or Path(path).suffix == ".gz":
            suffixes = ", ".join(sorted(WRITABLE_SUFFIXES))
            raise UsageError(f"--write-back: {path}: scores can be written to {suffixes} only")
    copies = [output]
    if len(paths) > 1 and Path(output).is_file():
        raise UsageError(f"--write-back {output}: is a file; give a folder for several files")
    if len(paths) > 1 or Path(output).is_dir():
        copies = [str(Path(output) / Path(path).name) for path in paths]
        if len({*copies}) < len(copies):
            raise UsageError(
                f"--write-back {output}: two files have the same name: write one at a time"
            )
        Path(output).mkdir(parents=True, exist_ok=True)
    for copy in copies:
        if any(Path(copy).resolve() == Path(path).resolve() for path in paths):
            raise UsageError(f"--write-back {output}: {copy} is an input file: give another name")
        check_writable(copy)
    return copies


def annotate_files(
    project: Project, output: str, rows: Mapping[str, Sequence[Annotation]]
) -> list[str]:
    """Write copies of localization files with the annotations of each segment by system.

    `output` is the copy, or a folder for several. Returns the names of the copies.
    """
    copies = check_write_back(project.paths, output)
    if not project.catalogs:
        _annotate_workbook(project.paths[0], copies[0], project.testset, rows)
        return copies
    annotated: dict[int, list[tuple[Unit, Annotation]]] = {}
    for system, units in zip(project.testset.systems, zip(*project.rows, strict=True), strict=True):
        if len(rows[system]) != len(units):
            raise UsageError(
                f"the result has {len(rows[system])} segments, the project {len(units)}: give the "
                "result of its test set"
            )
        for unit, annotation in zip(units, rows[system], strict=True):
            annotated.setdefault(id(unit.places), []).append((unit, annotation))
    for catalog, copy in zip(project.catalogs, copies, strict=True):
        annotate_catalog(catalog, copy, annotated)
    return copies


def annotate_catalog(catalog: Catalog, output: str, annotated: Mapping[int, Annotated]) -> None:
    """Write a copy of a file with the annotations of its units, by the `id()` of their places."""
    with (
        Path(catalog.path).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        open_atomic(output) as stream,
    ):
        if file_version(catalog.path) != catalog.version:
            raise _changed_error(catalog.path)
        if data[:2] == b"\x1f\x8b":  # gzip
            raise DataError(f"{catalog.path}: compressed: unpack it before writing to it")
        is_xml = suffix_of(catalog.path) not in PO_SUFFIXES
        edits = FileEdits(data, catalog.encoding, is_xml=is_xml)
        all_places = {id(unit.places): unit.places for unit in catalog}
        for key, places in all_places.items():
            for place in places:
                edits.annotate(place, annotated.get(key, ()))
        edits.write(stream)


def _changed_error(path: str) -> DataError:
    return DataError(f"{path} changed while it was scored: run the command again")


def _annotate_workbook(
    path: str, output: str, testset: TestSet, rows: Mapping[str, Sequence[Annotation]]
) -> None:
    """Write a copy of a workbook with columns for scores and findings in its first sheet."""
    segments = {s: zip(testset.segments(s), rows[s], strict=True) for s in testset.systems}
    cells: dict[int, dict[str, str | float]] = {}
    for where, raw in read_records(path):
        system = read_name(lowercase_known_columns(raw), SYSTEM_NAMES, where) or default_name(path)
        try:
            segment, annotation = next(segments[system])
        except (KeyError, StopIteration):
            raise _changed_error(path) from None
        findings = [describe_finding(s, segment.text_of(s.side)) for s in annotation.findings]
        row = int(where.rpartition(" ")[2])
        cells[row] = {**annotation.scores, "findings": "\n".join(findings)}
    add_columns(path, output, cells)

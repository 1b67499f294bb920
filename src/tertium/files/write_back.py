"""Write scores and findings into a copy of a localization file; all other bytes stay the same."""

from __future__ import annotations

import math
import mmap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tertium.core.atomic import check_writable, open_atomic
from tertium.core.errors import DataError, UsageError
from tertium.data.record_files import default_name, read_records
from tertium.data.records import SYSTEM_NAMES, lowercase_known_columns, read_name
from tertium.data.testset import TestSet
from tertium.files.annotations import Annotated, Annotation, FileEdits
from tertium.files.catalogs import (
    PO_SUFFIXES,
    XLIFF_SUFFIXES,
    file_version,
    format_function,
    suffix_of,
)
from tertium.files.projects import Project
from tertium.files.units import Catalog, InlineText, Unit, translated_unit
from tertium.files.workbook_columns import OWN_PREFIX, Value, add_columns

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
            annotated.setdefault(id(unit.place), []).append((unit, annotation))
    for catalog, copy in zip(project.catalogs, copies, strict=True):
        annotate_catalog(catalog, copy, annotated)
    return copies


def annotate_catalog(catalog: Catalog, output: str, annotated: Mapping[int, Annotated]) -> None:
    """Write a copy of a file with the annotations of its units, by the `id()` of their place.

    Characters that the encoding of an XML file lacks become references.
    """
    if not catalog.has_places:
        raise UsageError(f"{catalog.path}: was read without places: use for_write_back=True")
    annotate = format_function(catalog.path, "annotate")
    with (
        Path(catalog.path).open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        open_atomic(output) as stream,
    ):
        if file_version(catalog.path) != catalog.version:
            raise _changed_error(catalog.path)
        if data[:2] == b"\x1f\x8b":  # gzip
            raise DataError(f"{catalog.path}: compressed: unpack it before writing to it")
        edits = FileEdits(data, catalog.encoding)
        places = {id(unit.place): unit.place for unit in catalog}
        for key, place in places.items():
            annotate(place, annotated.get(key, ()), edits)
        is_xml = suffix_of(catalog.path) not in PO_SUFFIXES
        edits.write(stream, "xmlcharrefreplace" if is_xml else "replace")


def _changed_error(path: str) -> DataError:
    return DataError(f"{path} changed while it was scored: run the command again")


def _annotate_workbook(
    path: str, output: str, testset: TestSet, rows: Mapping[str, Sequence[Annotation]]
) -> None:
    """Write a copy of a workbook with a column for each metric and one for findings."""
    metrics: dict[str, None] = {}
    for column in rows.values():
        for annotation in column:
            metrics.update(dict.fromkeys(annotation.scores))
    edits = FileEdits(b"", "utf-8")
    default = default_name(path)
    waiting = {system: enumerate(column) for system, column in rows.items()}
    cells: dict[int, Sequence[Value]] = {}
    for where, raw in read_records(path):
        record = lowercase_known_columns(raw)
        system = read_name(record, SYSTEM_NAMES, where) or default
        try:
            row, annotation = next(waiting[system])
        except (KeyError, StopIteration):
            raise _changed_error(path) from None
        unit = translated_unit("", testset.systems[system][row])
        if testset.sources:
            unit = replace(unit, source=InlineText(testset.sources[row]))
        findings = [edits.describe(span, unit) for span in annotation.findings]
        scores = [annotation.scores.get(name, math.nan) for name in metrics]
        values = [None if math.isnan(score) else score for score in scores]
        cells[int(where.rpartition(" ")[2])] = [*values, "\n".join(findings)]
    names = [OWN_PREFIX + name for name in (*metrics, "findings")]
    add_columns(path, output, names, cells)

"""Write scores and findings into a copy of a localization file; all other bytes stay the same.

An Excel workbook gets columns in its first sheet: cells are inserted into the XML of the sheet at
known positions, and other members of the archive are copied.
"""

from __future__ import annotations

import io
import math
import mmap
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from tertium.core.atomic import check_writable, open_atomic
from tertium.core.errors import DataError, UsageError
from tertium.data.record_files import default_name, read_records
from tertium.data.records import SYSTEM_NAMES, lowercase_known_columns, read_name
from tertium.data.tables import MAX_EXCEL_CELL_LENGTH
from tertium.data.testset import TestSet
from tertium.files.annotations import Annotated, Annotation, FileEdits, describe_finding, escape_xml
from tertium.files.catalogs import (
    PO_SUFFIXES,
    XLIFF_SUFFIXES,
    file_version,
    suffix_of,
)
from tertium.files.projects import Project
from tertium.files.units import Catalog, Unit
from tertium.files.xml_elements import XmlFile

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
    """Write a copy of a file with the annotations of its units, by the `id()` of their place."""
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
        places = {id(unit.place): unit.place for unit in catalog if unit.place}
        for key, place in places.items():
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


OWN_PREFIX = "tertium: "  # of the names of columns
_DIMENSION = re.compile(rb'(<(?:\w+:)?dimension\s+ref="[A-Z]+\d+)(?::[A-Z]+(\d+))?"')
Values = Mapping[str, str | float]


def add_columns(path: str, output: str, rows: Mapping[int, Values]) -> None:
    """Write a copy of a workbook with more columns; `rows` has values by row number and column.

    They replace the columns of an earlier run.
    """
    from openpyxl.reader.excel import ExcelReader

    try:
        reader = ExcelReader(path, read_only=True)
        reader.read()
        sheets = [part for _, part in reader.parser.find_sheets() if "worksheet" in part.Type]
        titles = next(reader.wb.worksheets[0].iter_rows(max_row=1, values_only=True))
        with (
            reader.archive as archive,
            open_atomic(output) as stream,
            zipfile.ZipFile(stream, "w") as copy,
        ):
            for member in archive.infolist():
                data = archive.read(member)
                if member.filename == sheets[0].target:
                    data = _edit_sheet(data, path, titles, rows)
                copy.writestr(member, data)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DataError(f"{path}: damaged Excel workbook ({error})") from None


def _edit_sheet(
    data: bytes, path: str, titles: Sequence[object], rows: Mapping[int, Values]
) -> bytes:
    """Return the XML of a sheet with our columns after all others."""
    from openpyxl.utils import column_index_from_string, get_column_letter

    ours = {
        get_column_letter(number)
        for number, title in enumerate(titles, start=1)
        if str(title).startswith(OWN_PREFIX)
    }
    file = XmlFile(path, ("row",), data)
    edits = FileEdits(data, "utf-8")
    elements = [*file.units()]
    last = 0
    for row in elements:
        for cell in row.elements("c"):
            column = cell.get("r").rstrip("0123456789")
            if not (column and row.get("r").isdecimal() and file.encoding == "utf-8"):
                raise DataError(
                    f"{path}: row {row.get('r')} or its cells have no names, or are not UTF-8: "
                    "save the workbook again with Excel"
                )
            if column in ours:
                edits.replace(cell.start, cell.end)
            else:
                last = max(last, column_index_from_string(column))
    names = dict.fromkeys(name for values in rows.values() for name in values)
    letters = {name: get_column_letter(last + n) for n, name in enumerate(names, start=1)}
    title_row = {name: OWN_PREFIX + name for name in names}
    for row in elements:
        number = int(row.get("r"))
        values = title_row if number == 1 else rows.get(number, {})
        prefix = row.name.removesuffix("row")
        cells = [
            _format_cell(prefix, f"{letters[name]}{number}", value)
            for name, value in values.items()
        ]
        edits.replace(row.inner_end, row.inner_end, "".join(cells))
    edited = io.BytesIO()
    edits.write(edited)
    end = letters[[*names][-1]].encode()
    return _DIMENSION.sub(rb"\1:" + end + rb'\2"', edited.getvalue(), count=1)


def _format_cell(prefix: str, place: str, value: str | float) -> str:
    """Return a cell; nothing for an empty text or a missing score."""
    if isinstance(value, float):
        content = f'<{prefix}c r="{place}"><{prefix}v>{value!r}</{prefix}v></{prefix}c>'
        return "" if math.isnan(value) else content
    text = escape_xml(value[:MAX_EXCEL_CELL_LENGTH])
    content = f'<{prefix}is><{prefix}t xml:space="preserve">{text}</{prefix}t></{prefix}is>'
    return f'<{prefix}c r="{place}" t="inlineStr">{content}</{prefix}c>' if value else ""

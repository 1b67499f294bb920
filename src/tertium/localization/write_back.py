"""Write scores and findings into a copy of a localization file; all other bytes stay the same."""

from __future__ import annotations

import codecs
import math
import mmap
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tertium.atomic import check_writable, open_atomic
from tertium.data.formats import default_name, read_records
from tertium.data.records import SYSTEM_NAMES, lowercase_known_columns, read_name
from tertium.data.testset import TestSet
from tertium.errors import DataError, UsageError
from tertium.localization.annotations import (
    Annotation,
    Edit,
    SourceBytes,
    annotate_po,
    annotate_tmx,
    annotate_xliff1,
    annotate_xliff2,
    describe_finding,
)
from tertium.localization.catalogs import (
    PO_SUFFIXES,
    XLIFF_SUFFIXES,
    open_groups,
    root_element,
    suffix_of,
)
from tertium.localization.po import Message
from tertium.localization.projects import Project, document_label, unit_name
from tertium.localization.units import InlineText, Languages, Unit
from tertium.localization.workbook_columns import OWN_PREFIX, Value, add_columns, is_workbook
from tertium.localization.xml_elements import XmlFile

WRITABLE_SUFFIXES = XLIFF_SUFFIXES | PO_SUFFIXES | {".tmx", ".xlsx"}
COPY_SIZE = 1 << 20
Annotate = Callable[[Any, Any, SourceBytes], Iterator[Edit]]
Lookup = Callable[[Unit], Annotation | None]


def check_write_back(paths: Sequence[str], output: str) -> None:
    """Raise an error if scores cannot be written to a copy of these files."""
    for path in paths:
        if suffix_of(path) not in WRITABLE_SUFFIXES or Path(path).suffix == ".gz":
            suffixes = ", ".join(sorted(WRITABLE_SUFFIXES))
            raise UsageError(f"--write-back: {path}: scores can be written to {suffixes} only")
    if len(paths) > 1 and Path(output).is_file():
        raise UsageError(f"--write-back {output}: is a file; give a folder for several files")
    copies = _copies(paths, output)
    if len(paths) > 1:
        Path(output).mkdir(parents=True, exist_ok=True)
    for copy in copies:
        if any(Path(copy).resolve() == Path(path).resolve() for path in paths):
            raise UsageError(f"--write-back {output}: {copy} is an input file: give another name")
        check_writable(copy)


def _copies(paths: Sequence[str], output: str) -> list[str]:
    """Return the names of the copies; one folder takes the copies of several files."""
    if len(paths) == 1 and not Path(output).is_dir():
        return [output]
    names = [Path(path).name for path in paths]
    if len({*names}) < len(names):
        raise UsageError(
            f"--write-back {output}: two files have the same name: write one at a time"
        )
    return [str(Path(output) / name) for name in names]


def annotate_files(
    project: Project, output: str, rows: Mapping[str, Sequence[Annotation]]
) -> list[str]:
    """Write copies of localization files with the annotations of each segment by system.

    `output` is the copy, or a folder for several. Returns the names of the copies.
    """
    paths, testset = project.paths, project.testset
    check_write_back(paths, output)
    is_project = len(paths) > 1 and len(testset.systems) == 1
    systems = [*testset.systems]
    copies = _copies(paths, output)
    for number, (path, target) in enumerate(zip(paths, copies, strict=True)):
        system = systems[0] if is_project else systems[number]
        if is_workbook(path):
            _annotate_workbook(path, target, testset, rows)
        else:
            find = _make_lookup(path, testset, system, rows[system], is_project)
            annotate_file(path, target, find, project.wanted)
    return copies


def _make_lookup(
    path: str, testset: TestSet, system: str, rows: Sequence[Annotation], is_project: bool
) -> Lookup:
    """Return a function that finds the annotation of a unit by document and name, in order."""
    places: dict[tuple[str, str], deque[int]] = {}
    ids = testset.columns["id"]
    for row, key in enumerate(zip(testset.documents, ids, strict=True)):
        places.setdefault(key, deque()).append(row)

    def find(unit: Unit) -> Annotation | None:
        waiting = places.get((document_label(unit, path, is_project), unit_name(unit)))
        if not waiting or not unit.is_translatable:
            return None
        text = unit.target.text if unit.target else ""
        if testset.systems[system][waiting[0]] != text:
            if not text.strip():
                return None  # a string without translation that was not scored
            raise _changed_error(path)
        return rows[waiting.popleft()]

    return find


def _changed_error(path: str) -> DataError:
    return DataError(f"{path} changed while it was scored: run the command again")


def _annotate_workbook(
    path: str, output: str, testset: TestSet, rows: Mapping[str, Sequence[Annotation]]
) -> None:
    """Write a copy of a workbook with a column for each metric and one for findings."""
    everything = [annotation for system in rows.values() for annotation in system]
    metrics = [*dict.fromkeys(name for own in everything for name in own.scores)]
    default = default_name(path)
    waiting = {system: iter(enumerate(own)) for system, own in rows.items()}
    values: dict[int, Sequence[Value]] = {}
    for where, raw in read_records(path):
        record = lowercase_known_columns(raw)
        system = read_name(record, SYSTEM_NAMES, where) or default
        row, annotation = next(waiting.get(system, iter(())), (0, None))
        if annotation is None:
            raise _changed_error(path)
        unit = Unit(
            id="",
            source=InlineText(testset.sources[row]) if testset.sources else None,
            target=InlineText(testset.systems[system][row]),
        )
        findings = [
            describe_finding(span, unit, SourceBytes(b"", "utf-8")) for span in annotation.findings
        ]
        scores = [annotation.scores.get(name) for name in metrics]
        cells = [None if score is None or math.isnan(score) else score for score in scores]
        values[int(where.rpartition(" ")[2])] = [*cells, "\n".join(findings)]
    names = [OWN_PREFIX + name for name in (*metrics, "findings")]
    add_columns(path, output, names, values)


def annotate_file(path: str, output: str, find: Lookup, languages: Languages | None = None) -> None:
    """Write a copy of a file with the annotations of its units."""
    suffix = suffix_of(path)
    file, groups = open_groups(path, languages or Languages())
    annotate = _annotator(path, suffix)
    with _map_file(path) as data:
        edits = _collect_edits(groups, annotate, find, file, data)
        _write_edited(data, edits, output, file)


def _annotator(path: str, suffix: str) -> Annotate:
    if suffix in PO_SUFFIXES:
        return annotate_po
    if suffix == ".tmx":
        return annotate_tmx
    version = root_element(path).get("version", "1.2")
    is_second = version.startswith("2")
    return annotate_xliff2 if is_second else annotate_xliff1


@contextmanager
def _map_file(path: str) -> Iterator[Any]:
    with (
        Path(path).open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        yield data


def _collect_edits(
    groups: Iterator[tuple[Any, list[Unit]]],
    annotate: Annotate,
    find: Lookup,
    file: Any,
    data: Any,
) -> Iterator[Edit]:
    for element, units in groups:
        if isinstance(file, XmlFile) and file.is_compressed:
            raise DataError(f"{file.path}: compressed: unpack it before writing to it")
        source = SourceBytes(data, file.encoding)
        _check_position(element, source, file.path)
        annotated = [(unit, own) for unit in units if (own := find(unit)) is not None]
        yield from sorted(annotate(element, annotated, source), key=lambda edit: edit[:2])


def _check_position(element: Any, source: SourceBytes, path: str) -> None:
    """Refuse a file whose bytes are not where the parser reports them."""
    try:
        codecs.lookup(source.encoding)
        width = len("<".encode(source.encoding))
        is_tag = source.text(element.start, element.start + width) == "<"
    except (LookupError, UnicodeDecodeError):
        is_tag = False
    if not is_tag and not isinstance(element, Message):
        raise DataError(
            f"{path}: the encoding {source.encoding} does not allow to keep all bytes: convert the "
            "file to UTF-8"
        )


def _write_edited(data: Any, edits: Iterator[Edit], output: str, file: Any) -> None:
    """Copy a file with edits in order; characters that the encoding lacks become references."""
    errors = "xmlcharrefreplace" if isinstance(file, XmlFile) else "replace"
    position = 0
    with open_atomic(output) as stream:
        for start, end, text in edits:
            if start < position:
                raise DataError(f"{file.path}: overlapping elements at byte {start}")
            while position < start:
                stop = min(start, position + COPY_SIZE)
                stream.write(data[position:stop])
                position = stop
            stream.write(text.encode(file.encoding, errors))
            position = end
        while position < len(data):
            stream.write(data[position : position + COPY_SIZE])
            position += COPY_SIZE

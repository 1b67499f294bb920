"""A test set: sources, references, documents, and what each system made of them.

References are kept per segment, so any number of them, also a different number for each segment,
means the same in every metric.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tertium.arrays import chosen_rows
from tertium.data.formats import (
    JSON_SUFFIXES,
    PathLike,
    Records,
    default_name,
    printable,
    read_lines,
    read_records,
    write_jsonl,
)
from tertium.data.items import begin_anew, check_counting, part_names
from tertium.data.records import (
    DOCUMENT_NAMES,
    ITEM_NAMES,
    SYSTEM_NAMES,
    TEXT_NAMES,
    fold_names,
    labels_in,
    name_from,
    record_from_segment,
    segment_from_record,
)
from tertium.errors import DataError, LengthError, UnknownNameError, UsageError, one_line
from tertium.frames import is_frame, plain_column
from tertium.segment import (
    Segment,
    check_characters,
    check_texts,
    place_segments,
)

NO_SEGMENT = "no matching segment"
UNKNOWN_SYSTEM = "unknown system"
FindSegment = Callable[[str, str, str], Segment | str]  # item, system, document


@dataclass(frozen=True, repr=False)
class TestSet:
    """Named system outputs over the same segments.

    `systems` maps a name to its outputs; `references` holds a tuple of references for each segment
    (all empty where there are none); `sources` and `documents` are empty where not known. `columns`
    hold whatever else is known of each segment, such as its domain.

    >>> small = TestSet(systems={"ours": ("hello",)}, references=(("hi", "hello there"),))
    >>> small.segments("ours")
    [Segment(hypothesis='hello', source=None, references=('hi', 'hello there'))]
    """

    __test__ = False  # the name looks like a test class to pytest

    systems: Mapping[str, Sequence[str]]
    references: Sequence[Sequence[str]] = ()
    sources: Sequence[str] = ()
    documents: Sequence[str] = ()
    name: str = field(default="", compare=False)
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.systems, Mapping):
            raise UsageError(
                'systems: expected {"a name": [its translations], ...}, not '
                f"{one_line(self.systems)}; TestSet.from_records reads a table"
            )
        if not self.systems:
            raise DataError("a test set needs at least one system output")
        self._check_types()
        self._keep()
        size, first = len(self), next(iter(self.systems))
        for label, values in self._parts():
            if len(values) != size:
                raise LengthError(
                    f"{label} has {len(values)} segments, but {first} has {size}; "
                    "they must be parallel"
                )
        if any(self.documents) and not all(self.documents):
            number = list(self.documents).index("") + 1
            raise DataError(f"segment {number} has no document, but others have; give each one")

    def _check_types(self) -> None:
        for name, outputs in self.systems.items():
            _check_name(name)
            check_texts(plain_column(outputs), f"system {name!r}")
        for part, kind in (("references", Iterable), ("columns", Mapping)):
            if not isinstance(getattr(self, part), kind) and not is_frame(getattr(self, part)):
                given = one_line(getattr(self, part))
                raise UsageError(f"{part}: got {given}; leave it out where there are none")
        check_texts(plain_column(self.sources), "sources")
        check_texts(plain_column(self.documents), "documents")
        for name, labels in self.columns.items():
            check_texts(plain_column(labels), f"column {name!r}")
        _check_references(self.references)

    def _keep(self) -> None:
        """Make tuples of all texts: a list may change later, and [0] of a column be another."""
        for part in ("systems", "columns"):
            given = getattr(self, part)
            object.__setattr__(self, part, {name: _own(texts) for name, texts in given.items()})
        for part in ("sources", "documents"):
            object.__setattr__(self, part, _own(getattr(self, part)))
        object.__setattr__(self, "references", tuple(map(_own, _own(self.references))))

    def _parts(self) -> Iterable[tuple[str, Sequence[Any]]]:
        yield from self.systems.items()
        for label in ("references", "sources", "documents"):
            values = getattr(self, label)
            if values:
                yield label, values
        yield from ((f"column {name!r}", labels) for name, labels in self.columns.items())

    def __len__(self) -> int:
        return len(next(iter(self.systems.values())))

    def __repr__(self) -> str:
        return f"<TestSet of {len(self)} segments: {', '.join(self.systems)}>"

    @property
    def items(self) -> tuple[str, ...]:
        """What each segment is called: as the file of records calls it, else its number from 1.

        Names that begin anew in each document are DOCUMENT:NAME, as those of judgments are. Where
        half the segments have a name of their own, those that share `x` are `x#1`, `x#2`, and one
        without is its number with a mark, `#7`: neither is found under a name or number of another.

        >>> TestSet(systems={"ours": ("a", "b")}, columns={"segment": ("0", "1")}).items
        ('0', '1')
        """
        numbers = tuple(str(n + 1) for n in range(len(self)))
        names = next((self.columns[name] for name in ITEM_NAMES if name in self.columns), numbers)
        if self.documents:
            homes = list(zip(names, self.documents, strict=True))
            if begin_anew((name, home) for name, home in homes if name):
                names = [f"{home}:{name}" if name else "" for name, home in homes]
        whole = all(names) and len(set(names)) == len(self)
        return tuple(names) if whole else part_names(names) or numbers

    def items_among(
        self, known: Iterable[str], documents: Mapping[str, str] | None = None
    ) -> tuple[str, ...]:
        """The items as others call them: numbers from 1, where none of the names is known.

        `documents` are those that others' items are of, where they say: who knows one document of
        several calls NAME what is DOCUMENT:NAME here, and the name of a segment of another document
        is not that of theirs.
        """
        items, others, homes = self.items, set(known), documents or {}
        within = {f"{home}:{name}": name for name, home in homes.items()}
        if not set(items) & others:
            if set(items) & set(within):
                return tuple(within.get(item, item) for item in items)
            items = tuple(str(n + 1) for n in range(len(self)))
        check_counting(items, others, "segments of the test set")
        own = {*self.documents}
        elsewhere = {name for name, home in homes.items() if home in own}
        return tuple(
            f"{home}:{item}" if item in elsewhere and homes[item] != home else item
            for item, home in zip(items, self.documents or [""] * len(items), strict=True)
        )

    def segments(self, system: str) -> list[Segment]:
        """What one system made of every segment, with what it may be compared to."""
        if system not in self.systems:
            raise UnknownNameError("system", system, self.systems)
        outputs = self.systems[system]
        sources: Sequence[str | None] = self.sources or [None] * len(outputs)
        references: Sequence[Sequence[str]] = self.references or [()] * len(outputs)
        segments = [
            Segment(hypothesis, source, tuple(refs))
            for hypothesis, source, refs in zip(outputs, sources, references, strict=True)
        ]
        return place_segments(segments, self.documents) if self.documents else segments

    def subset(self, rows: Any) -> TestSet:
        """The same systems on some of the segments (a slice, mask or list of places from 0)."""
        chosen = chosen_rows(rows, len(self)).tolist()

        def choose(values: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(values[n] for n in chosen) if values else ()

        return replace(
            self,
            systems={name: choose(outputs) for name, outputs in self.systems.items()},
            references=choose(self.references),
            sources=choose(self.sources),
            documents=choose(self.documents),
            columns={name: choose(labels) for name, labels in self.columns.items()},
        )

    @classmethod
    def read(
        cls,
        translations: Sequence[PathLike],
        references: Sequence[PathLike] = (),
        sources: PathLike | None = None,
        documents: PathLike | None = None,
        names: Sequence[str] | None = None,
    ) -> TestSet:
        """Read parallel text files, one segment a line; every file must have as many lines.

        Systems are named by their files unless `names` says otherwise.
        """
        for label, given in {"translations": translations, "references": references}.items():
            if isinstance(given, str | Path):
                raise UsageError(f"{label}: {given} is one file; give a list of files, [...]")
            if not isinstance(given, Sequence):
                raise UsageError(f"{label}: expected a list of files, got {one_line(given)}")
        for label, file in {"sources": sources, "documents": documents}.items():
            if not isinstance(file, str | os.PathLike | None):
                raise UsageError(f"{label}: expected one file, got {one_line(file)}")
        systems = _name_systems(translations, names)
        extra = [file for file in (sources, documents) if file is not None]
        files = [*translations, *references, *extra]
        for file in files:
            _check_plain(file)
        texts = [tuple(read_lines(file)) for file in files]
        for file, lines in zip(files, texts, strict=True):
            if lines and _is_record(lines[0]):
                raise DataError(
                    f"{file}: line 1 is a record, and would be scored with its braces and keys; "
                    "records are read from a file whose name ends in .jsonl"
                )
        check_parallel(files, texts)
        remaining = iter(texts)
        return cls(
            systems={system: next(remaining) for system in systems},
            references=tuple(zip(*[next(remaining) for _ in references], strict=True)),
            sources=next(remaining) if sources is not None else (),
            documents=next(remaining) if documents is not None else (),
        )

    @classmethod
    def from_records(cls, path: Records, fields: Sequence[str] | None = None) -> TestSet:
        """Read a JSONL, TSV, CSV or Parquet file: a row for each system and segment.

        Records in memory serve as well, and frames of pandas, polars or Arrow.

        Rows of one system keep their order; every system must translate the same segments. Without
        a system column all rows are one system, named by the file. Other fields are `columns` where
        all systems have the same values.

        >>> TestSet.from_records([{"mt": "hello", "ref": "hi", "system": "ours"}])
        <TestSet of 1 segments: ours>
        """
        where_from = str(path) if isinstance(path, str | os.PathLike) else "the table"
        default = default_name(path) or "system"
        rows: dict[str, list[Segment]] = {}
        documents: dict[str, list[str]] = {}
        labels: dict[str, list[dict[str, str]]] = {}
        for where, given in read_records(path, fields):
            record = fold_names(given)
            system = name_from(record, SYSTEM_NAMES, where) or default
            rows.setdefault(system, []).append(segment_from_record(record, where))
            documents.setdefault(system, []).append(name_from(record, DOCUMENT_NAMES, where))
            labels.setdefault(system, []).append(labels_in(record))
        if not rows:
            raise DataError(f"{where_from} holds no segments")
        first = next(iter(rows))
        for system, segments in rows.items():
            _check_same_items(where_from, first, rows[first], system, segments)
            _check_same_documents(where_from, first, documents[first], system, documents[system])
            _check_same_names(where_from, first, labels[first], system, labels[system])
        references = tuple(s.references for s in rows[first])
        return cls(
            systems={name: tuple(s.hypothesis for s in segs) for name, segs in rows.items()},
            references=references if any(references) else (),
            sources=_sources(rows[first], where_from),
            documents=tuple(documents[first]) if any(documents[first]) else (),
            columns=_shared_columns(list(labels.values())),
        )

    def write(self, path: PathLike) -> None:
        """Write the JSONL file that `from_records` reads back."""
        write_jsonl(
            path,
            (
                {**record_from_segment(segment), "system": system}
                | ({"document": self.documents[n]} if self.documents else {})
                | {name: labels[n] for name, labels in self.columns.items()}
                for system in self.systems
                for n, segment in enumerate(self.segments(system))
            ),
        )


def _own(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(plain_column(values))


def check_testset(given: Any) -> None:
    """Refuse what is no test set, such as the path of one."""
    if not isinstance(given, TestSet):
        raise UsageError(
            f"expected a TestSet, got {one_line(given, 60)}; "
            "TestSet.read and TestSet.from_records read one"
        )


def _check_name(name: Any) -> None:
    if not isinstance(name, str):
        raise DataError(f"the name of a system is {name!r}, not a text")
    if not name.strip():
        raise DataError("a system has a blank name, which no table shows: name it")
    check_characters(name, f"the name {name!r} of a system")


def _check_references(references: Any) -> None:
    """Refuse what is no list with a list of texts for each segment."""
    if not hasattr(references, "__len__") or isinstance(references, Set):
        kind = type(references).__name__  # a generator would be used up by a look at it
        raise UsageError(
            f"references: expected a list of references for each segment, got a {kind}"
        )
    if is_frame(references):
        raise UsageError(
            "references: expected a list of references for each segment, got a table: of its "
            "columns make [[a text, ...], ...]; TestSet.from_records reads a whole table"
        )
    for number, texts in enumerate(plain_column(references), start=1):
        if isinstance(texts, str):
            raise UsageError(
                f"references: segment {number} has the text {texts[:40]!r} where a list of "
                "references was expected; wrap each in [...]"
            )
        check_texts(texts, f"references of segment {number}", "reference")


def _check_plain(file: PathLike) -> None:
    """Refuse records where a text was expected: each would be scored with its braces and keys."""
    if Path(Path(file).name.removesuffix(".gz")).suffix in JSON_SUFFIXES:
        raise UsageError(
            f"{file} holds records, and plain text, one segment a line, is expected here; one file "
            "of records holds translations, sources and references, and is given alone"
        )


def _is_record(line: str) -> bool:
    """Whether a line is a record of ours in JSON: one that came through a pipe, for example."""
    try:
        record = json.loads(line) if line.startswith("{") else None
    except ValueError:
        return False
    return isinstance(record, dict) and any(name.lower() in TEXT_NAMES for name in record)


def check_parallel(files: Sequence[PathLike], texts: Sequence[Sequence[str]]) -> None:
    """Refuse files of different length, naming both files and both counts."""
    for file, text in zip(files[1:], texts[1:], strict=True):
        if len(text) != len(texts[0]):
            raise LengthError(
                f"{files[0]} has {len(texts[0])} lines but {file} has {len(text)}; "
                "they must be parallel, one segment a line"
            )


def _name_systems(translations: Sequence[PathLike], names: Sequence[str] | None) -> Sequence[str]:
    """What the systems of some files are called: as is said, or by their files."""
    if isinstance(names, str):
        raise UsageError(f"names: {names!r} is one name; give a list of names, [...]")
    if not translations:
        raise DataError("no translations given")
    if names is not None and len(names) != len(translations):
        raise LengthError(f"{len(names)} names for {len(translations)} translation files")
    systems = names if names is not None else distinct_names(translations)
    for system in systems:
        check_characters(system, f"the name {system!r}")
    if len(set(systems)) != len(systems):
        repeated = next(system for system in systems if list(systems).count(system) > 1)
        raise DataError(f"two systems are named {repeated!r}; name them apart with --names")
    return systems


def distinct_names(files: Sequence[PathLike]) -> list[str]:
    """Short names for files: the file name, or as much of the path as tells them apart.

    >>> distinct_names(["a/out.txt", "b/out.txt"])
    ['a/out.txt', 'b/out.txt']
    >>> distinct_names(["runs/a.txt", "runs/b.txt"])
    ['a.txt', 'b.txt']
    """
    parts = [Path(printable(file)).parts for file in files]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(p[-depth:]) for p in parts]
        if len(set(names)) == len(names):
            return names
    return [printable(file) for file in files]


def _check_same_items(
    path: str, first: str, expected: Sequence[Segment], system: str, found: Sequence[Segment]
) -> None:
    if len(found) != len(expected):
        raise LengthError(
            f"{path}: system {system!r} has {len(found)} segments, {first!r} has {len(expected)}; "
            "every system must have the same segments in the same order"
        )
    for number, (a, b) in enumerate(zip(expected, found, strict=True), start=1):
        if (a.source, a.references) == (b.source, b.references):
            continue
        has = "another source or other references than"
        remedy = "sort the rows of all systems alike"
        if a.source is not None and a.source == b.source:  # then they are rows of one segment
            has = "other references than" if b.references else "no reference, unlike"
            remedy = "give a segment the same references for all systems"
        raise DataError(
            f"{path}: segment {number} of system {system!r} has {has} that of {first!r}; {remedy}"
        )


def _check_same_documents(
    path: str, first: str, expected: Sequence[str], system: str, found: Sequence[str]
) -> None:
    for number, (a, b) in enumerate(zip(expected, found, strict=True), start=1):
        if a != b:
            raise DataError(
                f"{path}: segment {number} is of document {a!r} for system {first!r}, but of {b!r} "
                f"for {system!r}; every system must have the same segments in the same order"
            )


def _check_same_names(
    path: str,
    first: str,
    expected: Sequence[Mapping[str, str]],
    system: str,
    found: Sequence[Mapping[str, str]],
) -> None:
    """Refuse names that systems share in another order; what tells rows apart is shared by few."""
    for column in ITEM_NAMES:
        names, others = ([row.get(column, "") for row in rows] for rows in (expected, found))
        if 2 * len({*names} & {*others} - {""}) <= len({*names}):
            continue
        for number, (a, b) in enumerate(zip(names, others, strict=True), start=1):
            if a != b:
                raise DataError(
                    f"{path}: segment {number} of system {system!r} has the {column} {b!r}, that "
                    f"of {first!r} has {a!r}; sort the rows of all systems alike"
                )


def _shared_columns(systems: Sequence[Sequence[Mapping[str, str]]]) -> dict[str, tuple[str, ...]]:
    """The labels that all systems share, by column; what differs is no property of a segment."""
    names = dict.fromkeys(name for row in systems[0] for name in row)
    found = {}
    for name in names:
        first, *others = (tuple(row.get(name, "") for row in rows) for rows in systems)
        if all(other == first for other in others):
            found[name] = first
    return found


def _sources(segments: Sequence[Segment], path: str) -> tuple[str, ...]:
    sources = tuple(s.source for s in segments if s.source is not None)
    if sources and len(sources) != len(segments):
        raise DataError(f"{path}: some segments have a source and some have none")
    return sources


def find_in(testset: TestSet) -> FindSegment:
    """Look up segments of a test set by item, system and document (empty where it is not known).

    Where items are words, numbers are those of lines, from 1; where they begin anew in each
    document, a line is not taken for the item of another document, nor anywhere for one whose name
    several segments share. For `a+b` the text of a is taken: both gave the same. What cannot be
    found is named by reason.
    """
    segments = {system: testset.segments(system) for system in testset.systems}
    places = {item: n for n, item in enumerate(testset.items)}
    words = not any(map(str.isdecimal, places))
    lines = {str(n + 1): n for n in range(len(testset))} if words else {}
    shared = {item.rpartition("#")[0] for item in places} - {""}
    known = {*testset.documents}

    def place_of(item: str, document: str) -> int | None:
        names = (f"{document}:{item}", item, item.lstrip("0"))  # 007 is 7
        place = next((places[name] for name in names if name in places), None)
        if place is None and shared.isdisjoint(names):
            place = lines.get(names[-1])
        if place is None or document not in known or testset.documents[place] == document:
            return place
        return None

    def find(item: str, system: str, document: str) -> Segment | str:
        for part in (system, *system.split("+")):
            if part in segments:
                place = place_of(item, document)
                return NO_SEGMENT if place is None else segments[part][place]
        return UNKNOWN_SYSTEM

    return find

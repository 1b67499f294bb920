"""A test set: the outputs of systems with their sources, references and documents.

Below it are the checks that files, systems and references are consistent with each other.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tertium.core.arrays import resolve_row_indices
from tertium.core.atomic import PathLike
from tertium.core.errors import DataError, LengthError, UnknownNameError, UsageError, short_repr
from tertium.core.result import is_frame, unwrap_arrow_column
from tertium.core.segment import (
    Segment,
    check_surrogates,
    check_texts,
    checked_segment,
    set_context,
)
from tertium.data import records, text_files
from tertium.data.item_names import (
    check_numbering_base,
    disambiguate_names,
    has_duplicates_across_documents,
)
from tertium.data.records import ITEM_NAMES, TEXT_NAMES
from tertium.data.text_files import JSON_SUFFIXES, STDIN, decode_path, display_name

if TYPE_CHECKING:
    from tertium.data.record_files import Fields, Records


Texts = Sequence[str]


@dataclass(frozen=True, repr=False)
class TestSet:
    """Outputs of one or more systems for the same segments.

    Use `TestSet.from_lists` or `TestSet.from_frame` for data in memory, `TestSet.read` for parallel
    text files, and `TestSet.from_records` for a file of records.

    Parameters
    ----------
    systems
        Translations by system name. All systems must have the same number of segments.
    references
        A list of references for each segment. Segments may have different numbers of references.
        Empty without references.
    sources
        The source text of each segment. Empty if unknown.
    documents
        The document of each segment. Empty if unknown.
    name
        The name of the test set in messages and reports. It is ignored by `==`.
    columns
        Other labels of each segment by column name, such as its domain.

    Examples
    --------
    >>> testset = TestSet(systems={"ours": ["hello"]}, references=[["hi", "hello there"]])
    >>> testset
    <TestSet of 1 segments: ours>
    >>> testset.segments("ours")
    [Segment(hypothesis='hello', source=None, references=('hi', 'hello there'))]
    """

    __test__ = False  # tell pytest that this is not a test class

    systems: Mapping[str, Texts]
    references: Sequence[Texts] = ()
    sources: Texts = ()
    documents: Texts = ()
    name: str = field(default="", compare=False)
    columns: Mapping[str, Texts] = field(default_factory=dict)
    _segments: dict[str, list[Segment]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        if not isinstance(self.systems, Mapping):
            raise UsageError(
                'systems: expected {"a name": [its translations], ...}, not '
                f"{short_repr(self.systems)}; TestSet.from_records reads a table"
            )
        if not self.systems:
            raise DataError("a test set needs at least one system output")
        for name in self.systems:
            check_system_name(name)
        lists: dict[str, Any] = {"references": _copy_references(self.references)}
        lists["systems"] = {
            name: _copy_texts(texts, f"system {name!r}") for name, texts in self.systems.items()
        }
        lists["columns"] = _copy_columns(self.columns)
        for part in ("sources", "documents"):
            lists[part] = _copy_texts(getattr(self, part), part)
        self.__dict__.update(lists)
        self._check_lengths()
        self._check_documents()

    def _check_lengths(self) -> None:
        size = len(self)
        first = next(iter(self.systems))
        for label, values in self._parallel_lists():
            if len(values) != size:
                raise LengthError(
                    f"{label} has {len(values)} segments, but {first} has {size}; "
                    "they must be parallel"
                )

    def _check_documents(self) -> None:
        if any(self.documents) and not all(self.documents):
            number = list(self.documents).index("") + 1
            raise DataError(f"segment {number} has no document, but others have; name one for each")

    def _parallel_lists(self) -> Iterable[tuple[str, Sequence[Any]]]:
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

    @classmethod
    def _from_checked(cls, **values: Any) -> TestSet:
        """Create a test set of tuples of texts that were checked before."""
        testset = object.__new__(cls)
        testset.__dict__.update({"columns": {}, "_segments": {}, **values})
        return testset

    @classmethod
    def from_lists(
        cls,
        translations: Mapping[str, Texts] | Texts,
        sources: Texts | None = None,
        references: Texts | Sequence[Texts] | None = None,
    ) -> TestSet:
        """Create a test set from lists of texts.

        Parameters
        ----------
        translations
            The translations of one system, or of several systems by name. A single system without
            a name is called `system`.
        sources
            The source text of each segment.
        references
            One reference, or a list of references, for each segment.

        Examples
        --------
        >>> TestSet.from_lists(["hello", "bye"], references=["hi", "goodbye"])
        <TestSet of 2 segments: system>
        >>> testset = TestSet.from_lists({"a": ["hello"], "b": ["hey"]}, references=[["hi", "hey"]])
        >>> testset.references
        (('hi', 'hey'),)
        """
        systems = translations if isinstance(translations, Mapping) else {"system": translations}
        texts = () if references is None else unwrap_arrow_column(references)
        if isinstance(texts, str):
            raise UsageError(
                f"references: expected one reference per segment, got the text {texts[:40]!r}; "
                "wrap it in [...]"
            )
        has_rows = hasattr(texts, "__len__") and getattr(texts, "ndim", 1) > 0
        if isinstance(texts, Iterable) and has_rows and not is_frame(texts):
            texts = [(text,) if isinstance(text, str) else text for text in texts]
        return cls(systems=systems, references=texts, sources=() if sources is None else sources)

    @classmethod
    def from_frame(cls, frame: Any) -> TestSet:
        """Create a test set from a pandas, polars or Arrow table with a row for each translation.

        The columns have the same names as in `from_records`: the translation (`mt`, `hypothesis`,
        ...) and optionally `src`, `ref`, `system` and `document`.

        Examples
        --------
        >>> import pandas
        >>> frame = pandas.DataFrame({"mt": ["hello", "bye"], "ref": ["hi", "goodbye"]})
        >>> TestSet.from_frame(frame)
        <TestSet of 2 segments: system>
        """
        if not is_frame(frame):
            raise UsageError(
                f"expected a pandas, polars or Arrow table, got {short_repr(frame)}; "
                "TestSet.from_records reads lists of records"
            )
        return cls.from_records(frame)

    @classmethod
    def from_records(cls, path: Records, fields: Fields | None = None) -> TestSet:
        """Read a JSONL, TSV, CSV or Parquet file with a record for each system and segment.

        Every system must translate the same segments in the same order. Columns other than those
        below become `columns` if all systems have the same values.

        Parameters
        ----------
        path
            A file, a list of records, or a frame (pandas, polars, Arrow). Columns are found by any
            of their usual names, for example `mt` or `hypothesis`, `src` or `source`, `ref`
            (a text or a list) or `ref1`, `ref2`, ..., `system`, `document`. Without a system
            column all rows belong to one system, named after the file.
        fields
            Column names of a TSV or CSV file without a header, or the columns of some fields, such
            as `{"hypothesis": "output"}`.

        Examples
        --------
        >>> TestSet.from_records([{"mt": "hello", "ref": "hi", "system": "ours"}])
        <TestSet of 1 segments: ours>
        """
        origin = str(path) if isinstance(path, str | os.PathLike) else "the table"
        from tertium.data import record_files

        default = record_files.default_name(path) or "system"
        rows: dict[str, list[Row]] = {}
        for where, raw_record in record_files.read_records(path, fields):
            record = records.lowercase_known_columns(raw_record)
            system = records.read_name(record, records.SYSTEM_NAMES, where) or default
            segment = records.segment_from_record(record, where, is_checked=True)
            document = records.read_name(record, records.DOCUMENT_NAMES, where)
            rows.setdefault(system, []).append((segment, document, records.read_labels(record)))
        if not rows:
            raise DataError(f"{origin} contains no segments")
        first = next(iter(rows))
        for system, own in rows.items():
            check_same_rows(origin, first, rows[first], system, own)
            check_system_name(system)
        segments = {system: [segment for segment, _, _ in own] for system, own in rows.items()}
        references = tuple(s.references for s in segments[first])
        documents = tuple(document for _, document, _ in rows[first])
        testset = cls._from_checked(
            systems={name: tuple(s.hypothesis for s in own) for name, own in segments.items()},
            references=references if any(references) else (),
            sources=collect_sources(segments[first], origin),
            documents=documents if any(documents) else (),
            columns=records.shared_columns([[row[2] for row in own] for own in rows.values()]),
        )
        testset._check_documents()
        for system, own_segments in segments.items():
            testset._keep_segments(system, own_segments)
        return testset

    @classmethod
    def read(
        cls,
        translations: Sequence[PathLike],
        references: Sequence[PathLike] = (),
        sources: PathLike | None = None,
        documents: PathLike | None = None,
        names: Texts | None = None,
    ) -> TestSet:
        """Read parallel text files with one segment per line.

        Files may be gzipped. `-` is standard input, for one of the files.

        Parameters
        ----------
        translations
            A file for each system.
        references
            A file for each reference.
        sources
            The file of source texts.
        documents
            A file with the document name of each segment.
        names
            The names of the systems. By default they are named after their files.

        Examples
        --------
        >>> TestSet.read(["examples/system-good.en.txt"], ["examples/reference-a.en.txt"])
        <TestSet of 48 segments: system-good.en.txt>
        """
        optional = [file for file in (sources, documents) if file is not None]
        check_path_lists(translations=translations, references=references)
        systems = name_systems(translations, names)
        files = [*translations, *references, *optional]
        for file in files:
            check_plain_text(file)
        texts = [tuple(text_files.read_lines(file)) for file in files]
        for file, lines in zip(files, texts, strict=True):
            check_plain_text(file, lines)
        check_parallel(files, texts)
        remaining = iter(texts)
        return cls(
            systems={system: next(remaining) for system in systems},
            references=tuple(zip(*[next(remaining) for _ in references], strict=True)),
            sources=next(remaining) if sources is not None else (),
            documents=next(remaining) if documents is not None else (),
        )

    def write(self, path: PathLike) -> None:
        """Write a JSONL file that `from_records` can read."""
        from tertium.data import record_files

        record_files.write_jsonl(
            path,
            (
                {**records.record_from_segment(segment), "system": system}
                | ({"document": self.documents[n]} if self.documents else {})
                | {name: labels[n] for name, labels in self.columns.items()}
                for system in self.systems
                for n, segment in enumerate(self.segments(system))
            ),
        )

    @property
    def items(self) -> tuple[str, ...]:
        """The distinct name of each segment: from an item column, otherwise its number from 1.

        If names repeat across documents, they become `DOCUMENT:NAME`. If at least half of the names
        are unique, repeated names `x` become `x#1`, `x#2` and a missing name becomes its number,
        `#7`. Otherwise the segments are numbered.

        >>> TestSet(systems={"ours": ["a", "b"]}, columns={"segment": ["0", "1"]}).items
        ('0', '1')
        """
        numbers = tuple(str(n + 1) for n in range(len(self)))
        names = next(
            (self.columns[name] for name in records.ITEM_NAMES if name in self.columns), numbers
        )
        if self.documents:
            pairs = list(zip(names, self.documents, strict=True))
            if has_duplicates_across_documents((name, doc) for name, doc in pairs if name):
                names = [f"{doc}:{name}" if name else "" for name, doc in pairs]
        if all(names) and len(set(names)) == len(self):
            return tuple(names)
        return disambiguate_names(names) or numbers

    def match_item_names(
        self, other_names: Iterable[str], other_documents: Mapping[str, str] | None = None
    ) -> tuple[str, ...]:
        """Return the names by which other data, such as human judgments, refer to the segments.

        These are the `items`. If the other data know none of them, they are numbers from 1, or
        `NAME` without `DOCUMENT:` if the other data are about one document. `other_documents` maps
        the names of the other data to their documents, if known. A segment is never given the name
        of a segment in another document.
        """
        items = self.items
        names = set(other_names)
        documents = other_documents or {}
        names_by_item = {f"{document}:{name}": name for name, document in documents.items()}
        if not set(items) & names:
            if set(items) & set(names_by_item):
                return tuple(names_by_item.get(item, item) for item in items)
            items = tuple(str(n + 1) for n in range(len(self)))
        check_numbering_base(items, names, "segments of the test set")
        elsewhere = {name for name, document in documents.items() if document in {*self.documents}}
        return tuple(
            f"{document}:{item}" if item in elsewhere and documents[item] != document else item
            for item, document in zip(items, self.documents or [""] * len(items), strict=True)
        )

    def segments(self, system: str) -> list[Segment]:
        """Return the segments of one system, with source, references and document context.

        >>> TestSet.from_lists({"ours": ["hello"]}, sources=["hallo"]).segments("ours")
        [Segment(hypothesis='hello', source='hallo', references=())]
        """
        outputs = self._outputs_of(system)
        if system not in self._segments:
            sources: Sequence[str | None] = self.sources or [None] * len(outputs)
            references: Sequence[Texts] = self.references or [()] * len(outputs)
            segments = [
                checked_segment(hypothesis, source, tuple(texts))
                for hypothesis, source, texts in zip(outputs, sources, references, strict=True)
            ]
            self._keep_segments(system, segments)
        return list(self._segments[system])

    def _outputs_of(self, system: str) -> Texts:
        if system not in self.systems:
            raise UnknownNameError("system", system, self.systems)
        return self.systems[system]

    def _keep_segments(self, system: str, segments: list[Segment]) -> None:
        """Keep the segments of a system, which are built once."""
        if self.documents:
            set_context(segments, self.documents)
        self._segments[system] = segments

    def hash_inputs(self) -> str:
        """Return a hash of the sources and references, which compared systems must share."""
        texts = json.dumps([list(self.sources), [list(refs) for refs in self.references]])
        return hashlib.sha256(texts.encode()).hexdigest()

    def with_columns(self, columns: Mapping[str, Texts]) -> TestSet:
        """Return the test set with these labels of each segment instead of its columns.

        >>> testset = TestSet.from_lists({"ours": ["a", "b"]})
        >>> testset.with_columns({"domain": ["news", "talks"]}).columns
        {'domain': ('news', 'talks')}
        """
        testset = self._from_checked(**{**self.__dict__, "columns": _copy_columns(columns)})
        testset._check_lengths()
        return testset

    def with_systems(self, names: Iterable[str]) -> TestSet:
        """Return the test set with the outputs of some of its systems, in this order."""
        systems = {name: self._outputs_of(name) for name in names}
        return self._from_checked(**{**self.__dict__, "systems": systems})

    def subset(self, rows: Any) -> TestSet:
        """Return the test set with some of its segments: a slice, a mask or indices from 0.

        >>> TestSet.from_lists({"ours": ["a", "b", "c"]}).subset([0, 2]).systems
        {'ours': ('a', 'c')}
        """
        indices = resolve_row_indices(rows, len(self)).tolist()

        def select(values: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(values[n] for n in indices) if values else ()

        return self._from_checked(
            name=self.name,
            systems={name: select(outputs) for name, outputs in self.systems.items()},
            references=select(self.references),
            sources=select(self.sources),
            documents=select(self.documents),
            columns={name: select(labels) for name, labels in self.columns.items()},
        )


def check_testset(value: Any) -> None:
    """Raise an error if a value is not a test set."""
    if not isinstance(value, TestSet):
        raise UsageError(
            f"expected a TestSet, got {short_repr(value, 60)}; create one with TestSet.read, "
            "TestSet.from_records, TestSet.from_frame or TestSet.from_lists"
        )


def _copy_texts(texts: Any, label: str, element: str = "segment") -> tuple[str, ...]:
    """Check texts and copy them: lists may change, and `[0]` of a pandas column is a label."""
    values = unwrap_arrow_column(texts)
    check_texts(values, label, element)
    return tuple(values)


def _copy_columns(columns: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(columns, Mapping):
        raise UsageError(f"columns: got {short_repr(columns)}; omit it instead")
    return {name: _copy_texts(labels, f"column {name!r}") for name, labels in columns.items()}


def _copy_references(references: Any) -> tuple[tuple[str, ...], ...]:
    is_list = hasattr(references, "__len__") and getattr(references, "ndim", 1) > 0
    if not is_list or isinstance(references, Set) or is_frame(references):
        kind = type(references).__name__  # printing a generator would consume it
        raise UsageError(
            f"references: expected a list of references for each segment, got a {kind}"
        )
    lists = enumerate(unwrap_arrow_column(references), start=1)
    return tuple(
        _copy_texts(texts, f"references of segment {number}", "reference")
        for number, texts in lists
    )


Row = tuple[Segment, str, Mapping[str, str]]  # with its document and labels


def check_system_name(name: Any) -> None:
    """Raise an error unless a system name is a printable text."""
    if not isinstance(name, str):
        raise DataError(f"the system name {name!r} is not a text")
    if not name.strip():
        raise DataError("a system has a blank name: give it a name")
    check_surrogates(name, f"the system name {name!r}")


def check_plain_text(file: PathLike, lines: Texts | None = None) -> None:
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


def check_parallel(files: Sequence[PathLike], texts: Sequence[Texts]) -> None:
    """Raise an error if files differ in their number of lines."""
    for file, text in zip(files[1:], texts[1:], strict=True):
        if len(text) != len(texts[0]):
            raise LengthError(
                f"{display_name(files[0])} has {len(texts[0])} lines but {display_name(file)} has "
                f"{len(text)}; they must be parallel, one segment per line"
            )


def name_systems(translations: Sequence[PathLike], names: Texts | None) -> Texts:
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
    for number, (row, other) in enumerate(zip(expected, rows, strict=True), start=1):
        parts = {
            "source": (row[0].source, other[0].source),
            "list of references": (row[0].references, other[0].references),
            "document": (row[1], other[1]),
        }
        for part, (value, other_value) in parts.items():
            if value != other_value:
                raise DataError(
                    f"{path}: segment {number} of system {system!r} has another {part} than that "
                    f"of {first!r}; sort the rows of all systems alike, and give a segment the "
                    "same source, references and document for all systems"
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


def collect_sources(segments: Sequence[Segment], path: str) -> tuple[str, ...]:
    """Return the sources of all segments, or none; raise an error if only some have one."""
    sources = tuple(s.source for s in segments if s.source is not None)
    if sources and len(sources) != len(segments):
        raise DataError(f"{path}: some segments have a source and some have none")
    return sources

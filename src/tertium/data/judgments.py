"""Human scores of single translations, and the errors that raters marked in them.

Repeated ratings of one (system, item) are kept and averaged only in a score matrix. Marked errors
are read from the fields of a record, in our format and those of annotation campaigns:

spans, missing, raters                      our format: exclusive ends; `missing`: unlocated errors
esa_spans, errors                           ESA and Appraise: `start_i`, inclusive `end_i` or
                                            "missing", `error_type`; mt-metrics-eval: `start`,
                                            `end`, `is_source_error`
start_indices, end_indices, error_types     WMT span tasks: space-separated offsets and severities;
                                            -1 and `no-error` for no error

An error without a severity has the severity `bad`, which means unknown. An error that ends where
it starts has no position.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from tertium.core import spans
from tertium.core.arrays import FloatArray
from tertium.core.atomic import PathLike
from tertium.core.errors import (
    DataError,
    LengthError,
    TertiumError,
    UnknownNameError,
    UsageError,
    short_repr,
)
from tertium.core.scores import ScoreMatrix
from tertium.core.segment import Judgment, Segment, attach_context
from tertium.core.spans import (
    ESA_WEIGHTS,
    MQM_WEIGHTS,
    ErrorAnnotations,
    count_overlaps,
    merge_annotations,
)
from tertium.data import records
from tertium.data.human_data import (
    Cell,
    HumanData,
    Translation,
    reasons,
)
from tertium.data.item_names import assign_item_names
from tertium.data.record_files import Records, default_name, parse_json, read_records
from tertium.data.records import (
    Record,
    get_text,
    read_integer,
    read_object_list,
)

logger = logging.getLogger(__name__)

NO_REFERENCE = "no reference"
DUPLICATE = "duplicate row"
NO_SCORE = "no score"
UNREADABLE_ROW = "unreadable row"
QUALITY_CONTROL = "quality-control row"
SCORE_NAMES = ("score", "human", "rating", "raw", "z", "z_mean", "da")
NON_LABEL_NAMES = (*records.ITEM_NAMES, *SCORE_NAMES, *records.ANNOTATOR_NAMES, *records.LP_NAMES)
_WEIGHTS = {**ESA_WEIGHTS, **MQM_WEIGHTS}  # for files with spans and without scores

Source = TypeVar("Source")
# a record with lowercase keys, the reason to exclude it, or why it cannot be read
Row = Record | str | TertiumError
Annotations = Mapping[Cell, ErrorAnnotations]


@dataclass(frozen=True, kw_only=True, repr=False)
class JudgmentSet(HumanData):
    """Human scores of translations of one language pair, or of several if `lp` is empty.

    A score may be NaN if the set has a `testset`: that output was not judged. `columns` contains
    other labels of the items, such as their domain, by (language pair, item). `read_annotations`
    reads marked errors that are in other files than the scores.

    >>> good = Judgment(Segment("fine"), 80.0, item="1", system="A")
    >>> bad = Judgment(Segment("bad"), 20.0, item="1", system="B")
    >>> JudgmentSet(name="demo", judgments=(good, bad)).matrix().values
    array([[80.],
           [20.]])
    """

    judgments: tuple[Judgment, ...]
    columns: Mapping[str, Mapping[tuple[str, str], str]] = field(default_factory=dict)
    read_annotations: Callable[[], Annotations] | None = None

    def __post_init__(self) -> None:
        if not self.judgments:
            raise DataError(f"{self.name}: no usable judgment{reasons(self.excluded_counts)}")
        for judgment in self.judgments:
            if not isinstance(judgment, Judgment):
                raise UsageError(
                    f"{self.name}: expected judgments, got {short_repr(judgment, 60)}: create them "
                    'with Judgment(Segment("a translation"), 80.0, item="1", system="A"), or read '
                    "them from files and frames with read_judgments"
                )
            if not isinstance(judgment.score, Real):
                score = short_repr(judgment.score)
                raise UsageError(f"{self.name}: the score {score} is not a number")
        object.__setattr__(self, "judgments", tuple(self.judgments))

    def __len__(self) -> int:
        return len(self.judgments)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The judged segments, one for each judgment."""
        return tuple(j.segment for j in self.judgments)

    @cached_property
    def scores(self) -> FloatArray:
        """The human scores, (judgments,)."""
        return np.array([j.score for j in self.judgments], dtype=np.float64)

    @cached_property
    def items(self) -> tuple[str, ...]:
        """The distinct items, in order of first appearance."""
        return tuple(dict.fromkeys(j.item for j in self.judgments))

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """The distinct systems; `a+b` counts as a and b (see `split_system`)."""
        names = dict.fromkeys(j.system for j in self.judgments)
        return tuple(dict.fromkeys(part for name in names for part in self.split_system(name)))

    def rows(self, level: str = "segment") -> list[Translation]:
        if self.testset is not None:
            return super().rows(level)
        return [(j.system, item, j.segment) for item, j in self._named_judgments()]

    def error_annotations(self) -> Annotations:
        if self.read_annotations is not None:
            return self.read_annotations()
        marked: dict[Cell, list[Judgment]] = {}
        for item, judgment in self._named_judgments():
            if judgment.error_annotations is not None:
                marked.setdefault((judgment.system, item), []).append(judgment)
        return {key: merge_rater_annotations(group) for key, group in marked.items()}

    def labels(self) -> Mapping[str, Mapping[str, str]]:
        named_judgments = self._named_judgments()
        own = {
            name: {item: labels.get((j.lp, j.item), "") for item, j in named_judgments}
            for name, labels in self.columns.items()
        }
        return {**super().labels(), **own}

    def _named_judgments(self) -> list[tuple[str, Judgment]]:
        """Return each judgment with its item; without systems, the second `x` is `x#2`."""
        counts: Counter[str] = Counter()
        named_judgments = []
        for judgment in self.judgments:
            counts[judgment.item] += 1
            is_repeated = self.systems == ("",) and counts[judgment.item] > 1
            name = f"{judgment.item}#{counts[judgment.item]}" if is_repeated else judgment.item
            named_judgments.append((name, judgment))
        return named_judgments

    def metric_scores(self) -> dict[str, FloatArray]:
        names = dict.fromkeys(name for j in self.judgments for name in j.metric_scores)
        return {
            name: np.array([j.metric_scores.get(name, math.nan) for j in self.judgments])
            for name in names
        }

    def matrix(self, level: str = "segment") -> ScoreMatrix:
        """Return the human scores as systems x items, with NaN for missing scores."""
        without_texts = self if self.testset is None else replace(self, testset=None)
        return without_texts.to_score_matrix(self.scores, "human", level)

    def split_system(self, system: str) -> tuple[str, ...]:
        """Return a and b for `a+b`, as WMT17 names two systems with the same text.

        If a and b do not also occur alone, the plus sign is part of a name.
        """
        parts = tuple(system.split("+"))
        return parts if self._plain_systems.issuperset(parts) else (system,)

    @cached_property
    def _plain_systems(self) -> frozenset[str]:
        return frozenset(j.system for j in self.judgments)

    def exclude(self, reason: str, judgments: Iterable[Judgment]) -> JudgmentSet:
        """Return the set with only these judgments; the others are counted with a reason."""
        remaining = tuple(judgments)
        counts = Counter(self.excluded_counts)
        counts[reason] += len(self) - len(remaining)
        return replace(self, judgments=remaining, excluded_counts=dict(+counts))

    def drop_without_references(self) -> JudgmentSet:
        """Drop and count translations without a reference, if others have one."""
        judgments = [j for j in self.judgments if j.segment.references]
        dropped = len(self) - len(judgments)
        if not judgments or not dropped:
            return self
        logger.warning(
            "%s: %d of %d translations have no reference", self.title, dropped, len(self)
        )
        return self.exclude(NO_REFERENCE, judgments)

    def split_by_language_pair(self) -> dict[str, JudgmentSet]:
        """Return a set for each language pair; the first one has the `excluded_counts`."""
        groups: dict[str, list[Judgment]] = {}
        for judgment in self.judgments:
            groups.setdefault(judgment.lp, []).append(judgment)
        sets: dict[str, JudgmentSet] = {}
        for lp, group in groups.items():
            counts = {} if sets else self.excluded_counts
            sets[lp] = replace(self, lp=lp, judgments=tuple(group), excluded_counts=counts)
        return sets


def merge_rater_annotations(ratings: Sequence[Judgment]) -> ErrorAnnotations:
    """Merge the error annotations of one translation; unnamed raters are numbered."""
    annotations = []
    for number, rating in enumerate(ratings, start=1):
        errors = rating.error_annotations
        assert errors is not None
        name = rating.annotator or (str(number) if len(ratings) > 1 else "")
        spans = tuple(replace(s, rater=s.rater or name) for s in errors.spans)
        missing = tuple(replace(e, rater=e.rater or name) for e in errors.missing)
        annotations.append(replace(errors, spans=spans, missing=missing))
    return merge_annotations(annotations)


def attach_judgment_context(judgments: Sequence[Judgment]) -> list[Judgment]:
    """Add the other judged items of a document as context, unless a test set provided it."""
    rows: dict[tuple[str, str], dict[str, Judgment]] = {}  # (pair, system) -> item -> first row
    for j in judgments:
        if j.document and j.segment.hypothesis and j.segment.context is None:
            rows.setdefault((j.lp, j.system), {}).setdefault(j.item, j)
    contexts: dict[tuple[str, str, str, Segment], Segment] = {}
    for key, items in rows.items():
        segments = [j.segment for j in items.values()]
        documents = [j.document for j in items.values()]
        for item, segment in zip(items, attach_context(segments, documents), strict=True):
            contexts[*key, item, segment] = segment
    return [
        replace(j, segment=contexts.get((j.lp, j.system, j.item, j.segment), j.segment))
        for j in judgments
    ]


def read_judgments(
    path: Records,
    *,
    name: str = "",
    lp: str = "",
    score: str | None = None,
    repeats: bool = False,
) -> JudgmentSet:
    """Read human scores from a CSV, TSV, JSONL or Parquet file, or a frame, with a row for each.

    Columns are found by any of their usual names: score (or the column named by `score`), item,
    system, annotator, language pair and texts. Rows are excluded and counted if they have no score
    or repeat an earlier row (unless `repeats` is true). Error annotations are kept, and give the
    score if there is no other.
    """
    rows = ((where, records.lowercase_columns(record)) for where, record in read_records(path))
    return build_judgment_set(
        rows,
        name or default_name(path, "judgments"),
        lp,
        score_names=(score.lower(),) if score else SCORE_NAMES,
        repeats=repeats,
    )


def collect_published(
    path: PathLike,
    records: Iterable[tuple[str, Source]],
    convert: Callable[[Source, str], Iterable[Row]],
    lp: str = "",
    *,
    repeats: bool = False,
) -> JudgmentSet:
    """Build a set from the records of a published file, of which each becomes several rows.

    Published files contain a few records and rows that cannot be read, which are excluded and
    counted.
    """

    def convert_all() -> Iterator[tuple[str, Row]]:
        for where, record in records:
            try:
                rows = [*convert(record, where)]
            except TertiumError as error:
                rows = [error]
            for row in rows:
                yield where, row

    return build_judgment_set(
        convert_all(), default_name(path), lp, repeats=repeats, is_published=True
    )


def build_judgment_set(
    rows: Iterable[tuple[str, Row]],
    name: str,
    lp: str = "",
    *,
    score_names: Sequence[str] = SCORE_NAMES,
    repeats: bool = False,
    is_published: bool = False,
) -> JudgmentSet:
    """Build a set from rows with lowercase keys; their language pair is by default that of the set.

    If more than half of the rows of a published file cannot be read, the layout is not the
    expected one, and the first error is raised.
    """
    judgments: list[Judgment] = []
    labels: list[Mapping[str, str]] = []  # of each judgment
    counts: Counter[str] = Counter()
    distinct: set[Judgment] = set()
    errors: list[TertiumError] = []
    no_score_error = ""  # of the first row
    for where, row in rows:
        try:
            judgment = _read_judgment(row, where, score_names)
        except TertiumError as error:
            if not is_published:
                raise
            errors.append(error)
            judgment = UNREADABLE_ROW
        if isinstance(judgment, str):
            counts[judgment] += 1
            if isinstance(row, Mapping) and row.keys().isdisjoint(score_names):
                no_score_error = no_score_error or (
                    f"{where}: no score (looked for {', '.join(score_names)}; found "
                    f"{', '.join(row)})"
                )
        elif judgment in distinct and not repeats:
            counts[DUPLICATE] += 1
        else:
            assert isinstance(row, Mapping)
            distinct.add(judgment)
            judgments.append(judgment)
            document = {"document": judgment.document} if judgment.document else {}
            labels.append(records.read_labels(row, NON_LABEL_NAMES) | document)
    if no_score_error and not judgments and counts.keys() == {NO_SCORE}:
        raise DataError(no_score_error)
    row_count = len(judgments) + counts.total()
    if 2 * len(errors) > row_count:
        raise DataError(str(errors[0]))
    if errors:
        message = "warning: %s: unreadable rows left out: %d of %d; first: %s"
        logger.warning(message, name, len(errors), row_count, errors[0])
    pairs = {j.lp for j in judgments}
    lp = lp or (pairs.pop() if len(pairs) == 1 else "")
    overlaps = sum(
        count_overlaps(j.error_annotations.spans) for j in judgments if j.error_annotations
    )
    if overlaps:
        count = "1 span overlaps" if overlaps == 1 else f"{overlaps:,} spans overlap"
        where = f"{name} {lp}".rstrip()
        logger.warning("%s: %s another span of the same rater", where, count)
    judgments = assign_item_names(judgments)
    return JudgmentSet(
        name=name,
        lp=lp,
        judgments=tuple(attach_judgment_context(judgments)),
        excluded_counts=dict(counts),
        columns=_collect_columns(judgments, labels),
    )


def _read_judgment(row: Row, where: str, score_names: Sequence[str]) -> Judgment | str:
    """Return the judgment of a row, or the reason to exclude it."""
    if isinstance(row, TertiumError):
        raise row
    if isinstance(row, str):
        return row
    has_errors = is_annotated(row)
    score = records.read_score(records.get_first_alias(row, score_names), where)
    if math.isnan(score) and not (has_errors and score_names is SCORE_NAMES):
        return NO_SCORE
    item = records.get_text(row, records.ITEM_NAMES)
    system = records.get_text(row, records.SYSTEM_NAMES)
    document = records.get_text(row, records.DOCUMENT_NAMES)
    segment = Segment("")
    if records.get_first_alias(row, records.HYPOTHESIS_NAMES) is not None:
        segment = records.segment_from_record(row, where)
    elif not (item and system):
        raise DataError(
            f"{where}: expected a translation ({', '.join(records.HYPOTHESIS_NAMES)}), "
            f"or an item and a system; found {', '.join(row)}"
        )
    annotations = read_error_annotations(row, segment, where) if has_errors else None
    if annotations is not None and math.isnan(score):
        score = annotations.score(_WEIGHTS)
    return Judgment(
        segment,
        score,
        item=item,
        system=system,
        annotator=records.get_text(row, records.ANNOTATOR_NAMES),
        lp=records.read_language_pair(row),
        document=document,
        error_annotations=annotations,
        metric_scores=records.read_metric_scores(row, where),
    )


def _collect_columns(
    judgments: Sequence[Judgment], labels: Sequence[Mapping[str, str]]
) -> dict[str, dict[tuple[str, str], str]]:
    """Return the labels of each item, without columns that are ambiguous for an item."""
    columns: dict[str, dict[tuple[str, str], str]] = {}
    ambiguous = set()
    for judgment, own_labels in zip(judgments, labels, strict=True):
        for name, value in own_labels.items():
            column = columns.setdefault(name, {})
            if column.setdefault((judgment.lp, judgment.item), value) != value:
                ambiguous.add(name)
    return {name: values for name, values in columns.items() if name not in ambiguous}


SPAN_LIST_NAMES = ("spans", "esa_spans", "errors", "missing")
ANNOTATION_NAMES = (*SPAN_LIST_NAMES[:-1], "start_indices")  # one of them: the row was annotated
NO_ERROR = frozenset({"no-error", "no error", "none"})
# Names of other scales. The five grades of IndicMT-Eval have weights 1 to 5: each is mapped to the
# nearer of minor (1) and major (5), and the middle one to major.
SEVERITY_NAMES: Mapping[str, spans.Severity] = {
    "undecided": "bad",
    "default": "bad",
    "very low": "minor",
    "low": "minor",
    "medium": "major",
    "high": "major",
    "very high": "major",
}


def is_annotated(record: Record) -> bool:
    """Return whether somebody was asked to mark errors in the translation of a record."""
    return any(record.get(name) is not None for name in ANNOTATION_NAMES)


def read_error_annotations(record: Record, segment: Segment, where: str) -> spans.ErrorAnnotations:
    """Return the errors marked in a record's translation; `spans` may have been read before."""
    annotations = record.get("spans")
    if not isinstance(annotations, spans.ErrorAnnotations):
        annotations = _read_annotations(record, len(segment.hypothesis), where)
    for side in spans.SIDES:
        if text := segment.text_of(side):
            spans.check_span_bounds(annotations.spans, text, side, where)
    return annotations


def _read_annotations(record: Record, length: int, where: str) -> spans.ErrorAnnotations:
    entries = list(_from_columns(record, length, where))
    for name in SPAN_LIST_NAMES:
        value = record.get(name)
        if isinstance(value, str):  # a table contains the list as JSON text
            value = parse_json(value or "[]", f"{where}, {name}")
        entries += [] if value is None else read_object_list(value, name, where)
    errors = [_read_error(entry, where) for entry in entries if not is_no_error(entry)]
    raters = record.get("raters")
    count = 1 if raters in (None, "") else read_integer(raters, "raters", where)
    if count < 1:
        raise DataError(f"{where}: {count} raters; expected one or more")
    return spans.ErrorAnnotations.of(errors, count)


def is_severity(name: str) -> bool:
    """Return whether a name is a severity."""
    return name.strip().lower() in {*spans.SEVERITIES, *SEVERITY_NAMES}


def read_severity(value: Any, where: str) -> spans.Severity:
    """Return the severity that a name stands for; a missing one is unknown (`bad`).

    >>> read_severity("Major", "line 1"), read_severity("undecided", "line 2")
    ('major', 'bad')
    """
    name = str(value or "bad").strip().lower() or "bad"
    if name in spans.SEVERITIES:
        return name
    if name not in SEVERITY_NAMES:
        error = UnknownNameError("severity", name, [*spans.SEVERITIES, *SEVERITY_NAMES])
        raise DataError(f"{where}: {error}")
    return SEVERITY_NAMES[name]


def is_no_error(entry: Record) -> bool:
    """Return whether an entry says that there is no error."""
    return str(entry.get("severity") or "").strip().lower() in NO_ERROR


def _from_columns(record: Record, length: int, where: str) -> Iterator[Record]:
    """Yield the errors of a WMT span task; an empty span of WMT23 marks one character."""
    names = ("start_indices", "end_indices", "error_types")
    cells = [str(record.get(name) or "").split() for name in names]
    if len({len(cell) for cell in cells}) > 1:
        counts = ", ".join(f"{len(c)} {name}" for c, name in zip(cells, names, strict=True))
        raise LengthError(f"{where}: {counts}; expected the same number of each")
    for start, end, severity in zip(*cells, strict=True):
        if start == end != "missing" and start != "-1":
            position = read_integer(start, "start", where)
            start, end = ("missing", "") if length <= position else (start, position + 1)
        yield {"start": start, "end": end, "severity": "none" if start == "-1" else severity}


def _read_error(entry: Record, where: str) -> spans.Span | spans.UnlocatedError:
    severity = read_severity(entry.get("severity"), where)
    name = entry.get("category") or entry.get("error_type") or ""
    category = "/".join(map(str, name)) if isinstance(name, list) else str(name)
    rater, message = (get_text(entry, (key,)) for key in ("rater", "message"))
    start = entry.get("start", entry.get("start_i"))
    end = entry.get("end")
    if start is None and not category and entry.get("severity") is None:
        raise DataError(f"{where}: an error without start, severity and category: {entry}")
    if start in (None, "missing", end):
        return spans.UnlocatedError(severity, category, rater)
    first = read_integer(start, "start", where)
    if end is None:
        end = read_integer(entry.get("end_i"), "end_i", where) + 1
    last = read_integer(end, "end", where)
    number = records.read_score(entry.get("chance"), where)
    chance = None if math.isnan(number) else number
    side: Any = "source" if entry.get("is_source_error") else entry.get("side", "hypothesis")
    try:
        return spans.Span(first, last, side, severity, category, rater, chance, message)
    except TertiumError as error:
        raise DataError(f"{where}: {error}") from None

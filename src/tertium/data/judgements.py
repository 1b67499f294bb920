"""Human scores of single translations: sets of them, and the rows of files they are read from.

A set never forgets what it did not use: `left_out` counts every row that was read and dropped, by
reason. Rows of one (system, item) are kept apart here and averaged only where a matrix is made.
Columns go by any of their aliases. Marked errors stand under the names that campaigns publish:

spans, missing, raters                      our own: places exclusive, `missing` without a place
esa_spans, errors                           ESA and Appraise: `start_i`, `end_i` (the last code
                                            point itself) or "missing", `error_type`;
                                            mt-metrics-eval: `start`, `end`, `is_source_error`
start_indices, end_indices, error_types     WMT's span tasks: numbers and severities in one text
                                            each, separated by blanks; -1 and `no-error` for none
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tertium.arrays import FloatArray, divide
from tertium.data.formats import (
    DOCUMENT_NAMES,
    HYPOTHESIS_NAMES,
    SYSTEM_NAMES,
    PathLike,
    labels_in,
    parse_json,
    read_records,
    segment_from_record,
)
from tertium.data.testset import TestSet
from tertium.errors import DataError, LengthError, TertiumError, UnknownNameError
from tertium.scores import ScoreMatrix
from tertium.segment import Judgement, Segment, place_segments
from tertium.spans import (
    ESA_WEIGHTS,
    MQM_WEIGHTS,
    SEVERITIES,
    Markings,
    Severity,
    Span,
    Unplaced,
    check_places,
    count_overlaps,
)

logger = logging.getLogger(__name__)


NO_REFERENCE = "no reference"


@dataclass(frozen=True, kw_only=True)
class JudgementSet:
    """Judgements of one language pair (or of several, where `lp` is empty).

    `left_out` counts rows of the file that are not among `judgements`, by reason. `columns` hold
    what else the file says of an item, such as its domain, by language pair and item.

    >>> yes = Judgement(Segment("fine"), 80.0, item="1", system="A")
    >>> no = Judgement(Segment("bad"), 20.0, item="1", system="B")
    >>> JudgementSet(name="demo", judgements=(yes, no)).matrix().values
    array([[80.],
           [20.]])
    """

    name: str
    judgements: tuple[Judgement, ...]
    lp: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)
    columns: Mapping[str, Mapping[tuple[str, str], str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.judgements:
            raise DataError(f"{self.name}: no usable judgement{reasons(self.left_out)}")

    def __len__(self) -> int:
        return len(self.judgements)

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """What was judged, one for each judgement."""
        return tuple(j.segment for j in self.judgements)

    @cached_property
    def scores(self) -> FloatArray:
        """The human scores, (judgements,)."""
        return np.array([j.score for j in self.judgements], dtype=np.float64)

    @cached_property
    def items(self) -> tuple[str, ...]:
        """The distinct items, in order of first appearance."""
        return tuple(dict.fromkeys(j.item for j in self.judgements))

    @cached_property
    def systems(self) -> tuple[str, ...]:
        """The distinct systems; `a+b` counts as a and b (see `arrange`)."""
        names = dict.fromkeys(j.system for j in self.judgements)
        return tuple(dict.fromkeys(part for name in names for part in self._parts(name)))

    @property
    def has_texts(self) -> bool:
        """Whether the translations are known, so that a metric can score them."""
        return any(j.segment.hypothesis for j in self.judgements)

    def matrix(self, *, split_joint: bool = False) -> ScoreMatrix:
        """The human scores as systems x items, NaN where nobody judged."""
        return self.arrange(self.scores, "human", split_joint=split_joint)

    def arrange(self, values: FloatArray, name: str, *, split_joint: bool = False) -> ScoreMatrix:
        """One value a judgement to systems x items; several of one cell are averaged.

        A metric's scores of `segments` and the human `scores` so get the same shape. WMT17 names
        two systems that gave the same text `a+b`. At segment level that is one judgement, and
        keeps a row of its own; for the scores of systems say `split_joint=True`, and it counts for
        a and for b (only where each part is also a system by itself, so that a name with a plus
        sign stays whole). Where no system was published the matrix has one row and a column for
        each judgement.
        """
        if len(values) != len(self):
            raise LengthError(f"{self.name}: {len(values)} values for {len(self)} judgements")
        if self.systems == ("",):
            labels = _number_repeats([j.item for j in self.judgements])
            return ScoreMatrix(name, ("",), np.asarray(values, np.float64)[None, :], labels)
        split = self._parts if split_joint else lambda system: (system,)
        cells = [(s, j.item, n) for n, j in enumerate(self.judgements) for s in split(j.system)]
        systems = tuple(dict.fromkeys(s for s, _, _ in cells))
        row = {s: n for n, s in enumerate(systems)}
        column = {item: n for n, item in enumerate(self.items)}
        where = np.array([[row[s], column[i]] for s, i, _ in cells]).T  # (2, cells)
        totals, counts = np.zeros((2, len(systems), len(self.items)))
        np.add.at(totals, tuple(where), np.asarray(values, np.float64)[[n for _, _, n in cells]])
        np.add.at(counts, tuple(where), 1.0)
        return ScoreMatrix(name, systems, divide(totals, counts), self.items)

    def with_references(self) -> JudgementSet:
        """The same without translations that lack a reference where others have one, counted.

        Human translations among the systems are often the reference themselves, and have no other.
        """
        kept = tuple(j for j in self.judgements if j.segment.references)
        lacking = len(self) - len(kept)
        if not kept or not lacking:
            return self
        name = f"{self.name} {self.lp}".rstrip()
        logger.warning("%s: %d of %d translations have no reference", name, lacking, len(self))
        left_out = {**self.left_out, NO_REFERENCE: self.left_out.get(NO_REFERENCE, 0) + lacking}
        return replace(self, judgements=kept, left_out=left_out)

    def by_lp(self) -> dict[str, JudgementSet]:
        """One set for each language pair; what was left out stays counted with the whole."""
        groups: dict[str, list[Judgement]] = {}
        for judgement in self.judgements:
            groups.setdefault(judgement.lp, []).append(judgement)
        return {
            lp: replace(self, lp=lp, judgements=tuple(group), left_out={})
            for lp, group in groups.items()
        }

    @cached_property
    def _plain_systems(self) -> frozenset[str]:
        return frozenset(j.system for j in self.judgements)

    def _parts(self, system: str) -> tuple[str, ...]:
        parts = tuple(system.split("+"))
        joint = len(parts) > 1 and all(part in self._plain_systems for part in parts)
        return parts if joint else (system,)


@dataclass(frozen=True, kw_only=True)
class SystemScores:
    """What people make of whole systems: a score for each, higher is better.

    >>> SystemScores(name="demo", scores={"A": 1.0, "B": 0.5}).of(["B", "A", "C"])
    array([0.5, 1. , nan])
    """

    name: str
    scores: Mapping[str, float]
    lp: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.scores)

    def of(self, systems: Sequence[str]) -> FloatArray:
        """The scores of some systems, (systems,); NaN where people gave none."""
        return np.array([self.scores.get(system, math.nan) for system in systems])


def _number_repeats(items: Sequence[str]) -> tuple[str, ...]:
    """Distinct labels for items that may repeat: the second `x` becomes `x#2`."""
    seen: Counter[str] = Counter()
    labels = []
    for item in items:
        seen[item] += 1
        labels.append(item if seen[item] == 1 else f"{item}#{seen[item]}")
    return tuple(labels)


def reasons(left_out: Mapping[str, int]) -> str:
    """What was left out and why, for the end of an error.

    >>> reasons({"no score": 2})
    ' (2 left out; no score: 2)'
    """
    if not left_out:
        return ""
    counts = ", ".join(f"{reason}: {count}" for reason, count in left_out.items())
    return f" ({sum(left_out.values())} left out; {counts})"


def name_items(judgements: Sequence[Judgement]) -> list[Judgement]:
    """Judgements whose items are told apart: where numbers begin anew with each document.

    There an item is DOCUMENT:NUMBER, and a number that stands for two sources is #2 at its second.
    """
    homes: dict[tuple[str, str], set[str]] = {}
    for j in judgements:
        homes.setdefault((j.lp, j.item), set()).add(j.document)
    if all(len(documents) == 1 for documents in homes.values()):
        return list(judgements)
    sources: dict[tuple[str, str], dict[str | None, str]] = {}
    renamed = []
    for j in judgements:
        item = f"{j.document}:{j.item}"
        own = sources.setdefault((j.lp, item), {})
        suffix = own.setdefault(j.segment.source, f"#{len(own) + 1}" if own else "")
        renamed.append(replace(j, item=item + suffix))
    return renamed


def place_judgements(judgements: Sequence[Judgement]) -> list[Judgement]:
    """Judgements with the context of their segments, where documents are known.

    The context of a translation is what its system made of the other items that were judged.
    """
    rows: dict[tuple[str, str], dict[str, int]] = {}  # by language pair and system: item, first row
    for n, j in enumerate(judgements):
        if j.document and j.segment.hypothesis:
            rows.setdefault((j.lp, j.system), {}).setdefault(j.item, n)
    contexts: dict[tuple[str, str, str], Segment] = {}
    for (lp, system), items in rows.items():
        own = [judgements[n] for n in items.values()]
        placed = place_segments([j.segment for j in own], [j.document for j in own])
        contexts |= {(lp, system, j.item): s for j, s in zip(own, placed, strict=True)}
    return [
        replace(j, segment=placed) if placed == j.segment else j
        for j in judgements
        for placed in [contexts.get((j.lp, j.system, j.item))]
    ]


ITEM_NAMES = ("item", "segment", "seg_id", "segment_id", "segmentid", "line_id", "sid", "id")
SCORE_NAMES = ("score", "human", "rating", "raw", "z", "z_mean", "da")
ANNOTATOR_NAMES = ("annotator", "rater", "judge", "user", "worker", "workerid", "judgeid")
LP_NAMES = ("lp", "langpair", "language_pair")
NO_LABELS = (*ITEM_NAMES, *SCORE_NAMES, *ANNOTATOR_NAMES, *LP_NAMES)
LARGEST = 1e100  # of a score: statistics square differences, which must stay finite
NOT_JUDGED = frozenset({"", "none", "nan", "na", "n/a", "null", "-"})
DUPLICATE = "duplicate row"
NO_SCORE = "no score"
NO_SEGMENT = "no matching segment"
UNKNOWN_SYSTEM = "unknown system"
_WEIGHTS = {**ESA_WEIGHTS, **MQM_WEIGHTS}  # of files that have spans and no score
FindSegment = Callable[[str, str], Segment | str]

LISTS = ("spans", "esa_spans", "errors")
NO_ERROR = frozenset({"no-error", "no error", "none", ""})
# What other scales call theirs. Five grades, as of IndicMT-Eval, weigh 1 to 5 there: the nearer of
# minor (1) and major (5), and the graver of the two in the middle.
SEVERITY_NAMES: Mapping[str, Severity] = {
    "undecided": "bad",
    "default": "bad",
    "very low": "minor",
    "low": "minor",
    "medium": "major",
    "high": "major",
    "very high": "major",
}


def read_judgements(
    path: PathLike,
    *,
    testset: TestSet | None = None,
    name: str = "",
    lp: str = "",
    fields: Sequence[str] | None = None,
    score: str | None = None,
    repeats: bool = False,
) -> JudgementSet:
    """Read one's own judgements: a CSV, TSV or JSONL file with a row for each.

    Columns go by any of their aliases, the first that is there: the score (or the one `score`
    names); item, system, annotator, language pair; the texts, unless `testset` holds them, whose
    segments then are items 1, 2, ... Rows without a score, rows equal to an earlier one (unless
    `repeats` says that they are separate ratings), and rows that name no segment or system of the
    test set are left out and counted. A score that is not a number is an error. Marked errors
    (`spans` and the other names) are kept, and are the score where there is no other.
    """
    find = find_in(testset) if testset is not None else None
    names = (score,) if score else SCORE_NAMES
    collector = Collector(find=find, score_names=names, repeats=repeats)
    for number, record in read_records(path, fields):
        lowered = {str(key).lower(): value for key, value in record.items()}
        collector.add(lowered, f"{path}, line {number}")
    return collector.finish(name or Path(path).name.split(".")[0], lp)


class Collector:
    """Gathers judgements row by row and counts what it leaves out."""

    def __init__(
        self,
        *,
        find: FindSegment | None = None,
        score_names: Sequence[str] = SCORE_NAMES,
        repeats: bool = False,
    ) -> None:
        self.find, self.score_names, self.repeats = find, tuple(score_names), repeats
        self.kept: list[Judgement] = []
        self.left_out: Counter[str] = Counter()
        self.overlaps = 0
        self._seen: set[Judgement] = set()
        self._labels: list[tuple[Judgement, Mapping[str, str]]] = []

    def add(self, record: Mapping[str, Any], where: str) -> None:
        """Take one row whose keys are lower case."""
        marked = has_markings(record)
        if not marked and not any(name in record for name in self.score_names):
            wanted, found = ", ".join(self.score_names), ", ".join(record)
            raise DataError(f"{where}: no score (looked for {wanted}; found {found})")
        score = read_score(first(record, self.score_names), where)
        if math.isnan(score) and not marked:
            self.left_out[NO_SCORE] += 1
            return
        item, system = text_of(record, ITEM_NAMES), text_of(record, SYSTEM_NAMES)
        segment = self._segment(record, item, system, where)
        if isinstance(segment, str):
            self.left_out[segment] += 1
            return
        markings = markings_from(record, segment, where)
        if markings is not None:
            self.overlaps += count_overlaps(markings.spans)
            score = markings.score(_WEIGHTS) if math.isnan(score) else score
        annotator, lp = text_of(record, ANNOTATOR_NAMES), text_of(record, LP_NAMES)
        document = text_of(record, DOCUMENT_NAMES)
        judgement = Judgement(segment, score, item, system, annotator, lp, document, markings)
        self._label(record, judgement)
        self.keep(judgement)

    def _label(self, record: Mapping[str, Any], judgement: Judgement) -> None:
        labels = labels_in(record, NO_LABELS)
        if judgement.document:
            labels = labels | {"document": judgement.document}
        self._labels.append((judgement, labels))

    def _columns(self, renamed: Sequence[Judgement]) -> dict[str, dict[tuple[str, str], str]]:
        """What columns say of each item; one that says two things of one item is left out."""
        names = {_home(j): (r.lp, r.item) for j, r in zip(self.kept, renamed, strict=True)}
        columns: dict[str, dict[tuple[str, str], str]] = {}
        ambiguous = set()
        for judgement, labels in self._labels:
            item = names[_home(judgement)]
            for name, value in labels.items():
                if columns.setdefault(name, {}).setdefault(item, value) != value:
                    ambiguous.add(name)
        return {name: own for name, own in columns.items() if name not in ambiguous}

    def keep(self, judgement: Judgement) -> None:
        """Take one judgement; an equal one is counted, not taken again."""
        if judgement in self._seen and not self.repeats:
            self.left_out[DUPLICATE] += 1
            return
        self._seen.add(judgement)
        self.kept.append(judgement)

    def finish(self, name: str, lp: str = "") -> JudgementSet:
        """The set; a language pair that all rows share is its own."""
        pairs = {j.lp for j in self.kept}
        lp = lp or (pairs.pop() if len(pairs) == 1 else "")
        if self.overlaps:
            where = f"{name} {lp}".rstrip()
            logger.warning("%s: %d spans overlap another of their rater", where, self.overlaps)
        renamed = name_items(self.kept)
        return JudgementSet(
            name=name,
            lp=lp,
            judgements=tuple(place_judgements(renamed)),
            left_out=dict(self.left_out),
            columns=self._columns(renamed),
        )

    def _segment(
        self, record: Mapping[str, Any], item: str, system: str, where: str
    ) -> Segment | str:
        if self.find is not None:
            return self.find(item, system)
        if any(record.get(alias) is not None for alias in HYPOTHESIS_NAMES):
            return segment_from_record(record, where)
        if not (item and system):
            raise DataError(
                f"{where}: neither a translation ({', '.join(HYPOTHESIS_NAMES)}) nor both an item "
                f"and a system to look one up; found {', '.join(record)}"
            )
        return Segment("")


def _home(judgement: Judgement) -> tuple[str, str, str, str | None]:
    """What tells items apart before they are named anew."""
    return judgement.lp, judgement.item, judgement.document, judgement.segment.source


def find_in(testset: TestSet) -> FindSegment:
    """Look up segments of a test set by item (its line number, from 1) and system.

    For `a+b` the text of a is taken: both gave the same. What cannot be found is named by reason.
    """
    segments = {system: testset.segments(system) for system in testset.systems}

    def find(item: str, system: str) -> Segment | str:
        for part in (system, *system.split("+")):
            if part in segments:
                number = int(item) if item.isdecimal() else 0
                known = 1 <= number <= len(testset)
                return segments[part][number - 1] if known else NO_SEGMENT
        return UNKNOWN_SYSTEM

    return find


def read_score(value: Any, where: str) -> float:
    """A score as a number; NaN where it is absent or marked so (`None`, `nan`, `NA`, empty).

    >>> read_score("72.5", "line 2"), read_score("None", "line 3")
    (72.5, nan)
    """
    if value is None or (isinstance(value, str) and value.strip().lower() in NOT_JUDGED):
        return math.nan
    try:
        score = float(value)
    except (TypeError, ValueError):
        raise DataError(f"{where}: the score {value!r} is not a number") from None
    except OverflowError:  # a whole number of more than 308 digits
        score = math.inf
    if math.isinf(score):
        raise DataError(f"{where}: the score {str(value)[:40]!r} is not finite")
    if abs(score) > LARGEST:
        raise DataError(f"{where}: the score {value!r} is too large; expected at most {LARGEST:g}")
    return score


def first(record: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The value under the first of several aliases that has one."""
    return next((record[name] for name in names if record.get(name) is not None), None)


def text_of(record: Mapping[str, Any], names: Sequence[str]) -> str:
    """The same as text, empty where there is none.

    >>> text_of({"segment": 12}, ITEM_NAMES), text_of({}, ITEM_NAMES)
    ('12', '')
    """
    value = first(record, names)
    return "" if value is None else str(value).strip()


def read_severity(value: Any, where: str) -> Severity:
    """A severity under any of its names.

    >>> read_severity("Major", "line 1"), read_severity("undecided", "line 2")
    ('major', 'bad')
    """
    name = str(value).strip().lower()
    if name in SEVERITIES:
        return name
    if name not in SEVERITY_NAMES:
        known = UnknownNameError("severity", name, [*SEVERITIES, *SEVERITY_NAMES])
        raise DataError(f"{where}: {known}")
    return SEVERITY_NAMES[name]


def has_markings(record: Mapping[str, Any]) -> bool:
    """Whether someone looked for errors, be it in vain."""
    return any(record.get(name) is not None for name in (*LISTS, "start_indices"))


def markings_from(record: Mapping[str, Any], segment: Segment, where: str) -> Markings | None:
    """What was marked in a record's translation, None where nobody looked for errors.

    Places are checked against the texts, where these are known.
    """
    if not has_markings(record):
        return None
    name = next((name for name in LISTS if record.get(name) is not None), "")
    length = len(segment.hypothesis)
    errors = _entries(record, name, where) if name else [*_from_columns(record, length, where)]
    errors += _entries(record, "missing", where) if record.get("missing") is not None else []
    marked = [_error(entry, where) for entry in errors if not _is_none(entry)]
    spans = tuple(error for error in marked if isinstance(error, Span))
    if segment.hypothesis:
        check_places(spans, segment.hypothesis, "hypothesis", where)
    if segment.source is not None:
        check_places(spans, segment.source, "source", where)
    missing = tuple(error for error in marked if isinstance(error, Unplaced))
    return Markings(spans, missing, _raters(record.get("raters"), where))


def _entries(record: Mapping[str, Any], name: str, where: str) -> list[Mapping[str, Any]]:
    """A list of objects, or the JSON text of one, as cells of tables have it."""
    value = record[name]
    if isinstance(value, str):
        value = parse_json(value, f"{where}, {name}") if value.strip() else []
    if not isinstance(value, Sequence) or not all(isinstance(entry, Mapping) for entry in value):
        raise DataError(f"{where}: {name} is {str(value)[:40]!r}; expected a list of objects")
    return list(value)


def _from_columns(
    record: Mapping[str, Any], length: int, where: str
) -> Iterator[Mapping[str, Any]]:
    """Errors of one cell each; a span that ends where it starts marks a character, as WMT23 counts.

    Behind the last character there is none to mark: such an error has no place.
    """
    names = ("start_indices", "end_indices", "error_types")
    cells = [str(record.get(name) or "").split() for name in names]
    if len({len(cell) for cell in cells}) > 1:
        counts = ", ".join(f"{len(c)} {name}" for c, name in zip(cells, names, strict=True))
        raise LengthError(f"{where}: {counts}; expected as many of each")
    for start, end, severity in zip(*cells, strict=True):
        if severity.lower() in NO_ERROR or start == "-1":
            continue
        if start == end and start.isdecimal():
            start, end = ("missing", "") if length <= int(start) else (start, str(int(end) + 1))
        yield {"start": start, "end": end, "severity": severity}


def _is_none(entry: Mapping[str, Any]) -> bool:
    return str(entry.get("severity", "")).strip().lower() in NO_ERROR


def _error(entry: Mapping[str, Any], where: str) -> Span | Unplaced:
    severity = read_severity(entry["severity"], where)
    category = str(entry.get("category") or entry.get("error_type") or "")
    rater = "" if entry.get("rater") is None else str(entry["rater"])
    start = entry.get("start", entry.get("start_i"))
    if start is None or start == "missing":
        return Unplaced(severity, category, rater)
    last = entry.get("end")
    end = _whole(entry.get("end_i"), where) + 1 if last is None else _whole(last, where)
    try:
        side: Any = "source" if entry.get("is_source_error") else entry.get("side", "hypothesis")
        chance = entry.get("chance")
        return Span(_whole(start, where), end, side, severity, category, rater, chance)
    except TertiumError as error:
        raise DataError(f"{where}: {error}") from None


def _whole(value: Any, where: str) -> int:
    """A place as a number, also where a table has it as text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lstrip("-").isdecimal():
        return int(value)
    raise DataError(f"{where}: the place {value!r} of a span is not a whole number")


def _raters(value: Any, where: str) -> int:
    count = 1 if value is None or value == "" else _whole(value, where)
    if count < 1:
        raise DataError(f"{where}: {count} raters; expected one or more")
    return count

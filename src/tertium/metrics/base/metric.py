"""What a metric is: statistics that sum, one formula from sums to score, and what it requires.

A metric is a frozen keyword-only dataclass: its constructor is its configuration, and `repr`,
equality, the spec string and the command-line options all derive from its fields. Which texts a
hypothesis is compared with, and what of several references counts, is said here once for all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from tertium.arrays import FloatArray, IntArray
from tertium.data.testset import TestSet
from tertium.errors import DataError, NeedsError, PluginError, UsageError, one_line
from tertium.extras import explain_missing
from tertium.metrics.base.explanation import Explanation
from tertium.metrics.base.odd_texts import count_odd_texts
from tertium.metrics.base.peers import PeerCalls
from tertium.scores import Scores
from tertium.segment import Context, Segment
from tertium.spans import Span, check_places
from tertium.specs import check_ranges, check_types, print_spec
from tertium.version import __version__

if TYPE_CHECKING:
    from tertium.encoders import Encoder

REFERENCES = frozenset({"references"})
NOTHING: frozenset[str] = frozenset()
NO_SCORE = "score that is no number"  # a warning
Side = Literal["reference", "source"]
Over = Literal["best", "mean"]  # what counts of several references
WAYS = {  # `explain` takes texts where other commands take files
    "references": "give -r, a column ref in a file of records, or references= in Python",
    "source": "give -s, a column src in a file of records, or a source in Python",
    "context": "give --documents FILE, a column doc in a file of records, or documents in Python",
}


class Scorer(ABC):
    """What a metric and a ranker share: a name, settings that are values, what it asks of segments.

    A subclass is a frozen keyword-only dataclass; it sets `name` (as in specs) and `title` (as in
    tables).
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str] = ""

    def __new__(cls, *args: Any, **fields: Any) -> Self:
        made = super().__new__(cls)  # which refuses what is abstract
        _check_class(cls)
        check_ranges(cls, fields)
        check_types(cls, fields)
        return made

    @property
    def label(self) -> str:
        """The name in tables and signatures; settings with a name of their own override it."""
        return self.title

    @property
    def needs(self) -> frozenset[str]:
        """What every segment must have, of "references", "source" and "context"."""
        return REFERENCES

    def check(self, segments: Sequence[Segment]) -> None:
        """Refuse segments that lack what it needs, naming the first."""
        self.check_kind(segments)
        if not segments:
            raise DataError(f"{self.name}: there is nothing to score (no segments)")
        self.check_needs(segments)

    def check_kind(self, segments: Sequence[Segment]) -> None:
        """Refuse what is no list of segments."""
        if isinstance(segments, TestSet):
            raise UsageError(
                f"{self.name} scores segments, not a test set: give it testset.segments(system), "
                "or the test set to tertium.score"
            )
        if not isinstance(segments, Sequence):
            hint = "wrap it in [...]" if isinstance(segments, Segment) else ""
            raise UsageError(
                f"{self.name} scores a list of segments, not {one_line(segments)}; "
                f"{hint or 'predict takes a frame or records'}"
            )
        if not all(isinstance(segment, Segment) for segment in segments):
            stranger = next(s for s in segments if not isinstance(s, Segment))
            raise UsageError(
                f"{self.name} scores segments, not {one_line(stranger)}: give it "
                'Segment("a translation", references=["a reference"]), or texts to corpus_score'
            )

    def check_needs(self, segments: Sequence[Segment]) -> None:
        """Refuse the first segment that lacks what it needs."""
        needs = self.needs  # which what was trained reads from its settings
        if not {*needs} <= {*WAYS}:
            raise PluginError(
                f"{self.name} needs {one_line(needs)}: a metric or ranker needs a set of what "
                f"segments may lack, of {', '.join(WAYS)}"
            )
        for number, segment in enumerate(segments, start=1):
            if "references" in needs and not segment.references:
                raise NeedsError(
                    f"{self.spec} needs references, and segment {number} has none: "
                    f"{WAYS['references']}; or choose one that reads the source (tertium-multi)"
                )
            if "source" in needs and segment.source is None:
                raise NeedsError(
                    f"{self.spec} needs the source, and segment {number} has none: {WAYS['source']}"
                )
            if "context" in needs and segment.context is None:
                raise NeedsError(
                    f"{self.name} needs the document, and segment {number} is of none: "
                    f"{WAYS['context']}"
                )

    def warnings(self, segments: Sequence[Segment]) -> dict[str, int]:
        """Counts of what a reader of the score should know; only those above zero."""
        return count_odd_texts(segments)

    @property
    def spec(self) -> str:
        """The text that rebuilds it: `load_metric(metric.spec) == metric`, of a ranker likewise."""
        return print_spec(self.name, self)

    def signature(self, segments: Sequence[Segment]) -> str:
        """What to publish beside a score, e.g. `BLEU|nrefs:1|case:mixed|...|version:0.1.0`."""
        parts = {"nrefs": count_references(segments), **self.signature_fields(segments)}
        parts["version"] = __version__
        return "|".join([self.label, *(f"{key}:{value}" for key, value in parts.items())])

    def signature_fields(self, segments: Sequence[Segment]) -> Mapping[str, str]:
        """Its own part of its signature; no key or value contains a pipe or colon."""
        return {}


class Metric(PeerCalls, Scorer):
    """Scores segments.

    A subclass implements `statistics` and `reduce`. A segment's statistics never depend on its
    neighbors unless `reads_corpus` says so (NIST's information weights, idf from the references),
    in which case it is documented there.
    """

    higher_is_better: ClassVar[bool] = True
    decimals: ClassVar[int] = 4
    reads_context: ClassVar[bool] = False  # what stands around a segment in its document

    @property
    def reads_corpus(self) -> bool:
        """Whether a segment's statistics depend on the other segments' references."""
        return False

    @property
    def learned(self) -> tuple[str, ...]:
        """The models behind a score, each with a hash of its weights; none where it is a formula.

        What is learned anew has other names here, wherever it is kept.
        """
        return ()

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of the k statistics, for callers who use them as features."""

    @abstractmethod
    def statistics(self, segments: Sequence[Segment]) -> FloatArray:
        """One summable row for each segment, (n, k)."""

    @abstractmethod
    def reduce(self, totals: FloatArray) -> FloatArray:
        """Sums of statistics to scores, (..., k) -> (...)."""

    def reduce_segments(self, statistics: FloatArray) -> FloatArray:
        """Single rows to segment scores; the same formula unless the publication says otherwise."""
        return self.reduce(statistics)

    def score(self, segments: Sequence[Segment]) -> Scores:
        """Check what the metric needs, then score."""
        self.check(segments)
        with explain_missing(self.name):
            return self.wrap(segments, self.distinct_statistics(segments))

    def distinct_statistics(self, segments: Sequence[Segment]) -> FloatArray:
        """`statistics` of each distinct segment, computed once and dealt out to all equal ones.

        So equal segments have equal scores, however a metric computes. Where a metric reads the
        corpus, a segment that stands there twice counts twice, and all are given to it.
        """
        if self.reads_corpus:
            return self._checked_statistics(segments)
        distinct, rows = self.distinguish(segments)
        return self._checked_statistics(distinct)[rows]

    def _checked_statistics(self, segments: Sequence[Segment]) -> FloatArray:
        """`statistics`, a row of numbers for each segment: others would go to wrong segments."""
        rows = np.asarray(self.statistics(segments))
        wanted = (len(segments), len(self.columns))
        if rows.shape != wanted or rows.dtype.kind not in "fiu":
            raise PluginError(
                f"{self.name} gave {rows.dtype} of shape {rows.shape} for {len(segments)} segments"
                f": a metric gives numbers of shape {wanted}, a row for each segment in their order"
            )
        return rows

    def distinguish(self, segments: Sequence[Segment]) -> tuple[list[Segment], list[int]]:
        """The segments that differ in what the metric reads, and which of them each one equals."""
        places: dict[tuple[Segment, Context | None], int] = {}
        distinct: list[Segment] = []
        rows = []
        for segment in segments:
            key = (segment, segment.context if self.reads_context else None)
            rows.append(places.setdefault(key, len(places)))
            if rows[-1] == len(distinct):
                distinct.append(segment)
        return distinct, rows

    def wrap(self, segments: Sequence[Segment], statistics: FloatArray) -> Scores:
        """Scores around statistics that were computed for these segments."""
        lost = int((~np.isfinite(statistics)).any(axis=1).sum())
        return Scores(
            metric=self.spec,
            name=self.label,
            statistics=statistics,
            reduce=self.reduce,
            reduce_segments=self.reduce_segments,
            signature=self.signature(segments),
            columns=self.columns,
            warnings=self.warnings(segments) | ({NO_SCORE: lost} if lost else {}),
            higher_is_better=self.higher_is_better,
            decimals=self.decimals,
            verbose=self.verbose(statistics.sum(axis=0)),
        )

    def asks(self, segments: Sequence[Segment]) -> list[tuple[Encoder, str]]:
        """Which parts ("tokens", "sentences") of which encoders' vectors it will read, if any."""
        return []

    @property
    def explains(self) -> bool:
        """Whether the metric can say why a segment has its score."""
        return type(self).explain is not Metric.explain

    def explain(self, segment: Segment) -> Explanation:
        """Why a segment has its score, under a metric that can say."""
        raise UsageError(
            f"{self.name} cannot explain its scores: use rte-r, mt-rte-r or another regression "
            "on named features, or tertium-multi, tertium-small, bertscore, wmd or sentsim"
        )

    @property
    def gives_spans(self) -> bool:
        """Whether the metric can say where a translation is wrong."""
        return type(self).spans is not Metric.spans

    def spans(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
        """Where each translation is wrong, under a metric that can say; in order of place."""
        raise UsageError(f"{self.name} does not say where a translation is wrong: it gives scores")

    def mark(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
        """Check what the metric needs, then mark each distinct segment once, and check places."""
        self.check(segments)
        distinct, rows = self.distinguish(segments)
        with explain_missing(self.name):
            spans = self.spans(distinct)
        for segment, marked in zip(distinct, spans, strict=True):
            check_places(marked, segment.hypothesis, "hypothesis", self.name)
            check_places(marked, segment.source or "", "source", self.name)
        return [spans[row] for row in rows]

    def uncertainty(
        self, scores: FloatArray, segments: Sequence[Segment] = ()
    ) -> FloatArray | None:
        """The standard deviation of people's scores around these, under a metric that tells it."""
        return None

    def verbose(self, totals: FloatArray) -> str:
        """What stands behind a system score in words, such as BLEU's precisions; may be empty."""
        return ""


class SegmentMetric(Metric):
    """A metric whose system score is the mean of its segment scores: statistics [score, 1]."""

    @property
    def columns(self) -> tuple[str, ...]:
        return ("score", "segments")

    @abstractmethod
    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        """The score of each segment, (n,)."""

    def statistics(self, segments: Sequence[Segment]) -> FloatArray:
        scores = np.asarray(self.segment_scores(segments))
        if scores.shape != (len(segments),) or scores.dtype.kind not in "bfiu":
            raise PluginError(
                f"{self.name} gave {scores.dtype} of shape {scores.shape} for {len(segments)} "
                f"segments: segment_scores gives numbers of shape ({len(segments)},), one for each "
                "segment in their order"
            )
        return np.column_stack([scores, np.ones(len(scores))])

    def reduce(self, totals: FloatArray) -> FloatArray:
        result: FloatArray = totals[..., 0] / totals[..., 1]
        return result


def _check_class(cls: type[Scorer]) -> None:
    """Refuse a class of others that lacks what all that is told of it comes from."""
    if not is_dataclass(cls):
        raise PluginError(
            f"{cls.__name__} is no dataclass: write @dataclass(frozen=True, kw_only=True) above it"
        )
    for needed, says in {"name": "as specs name it", "title": "as tables do"}.items():
        if not hasattr(cls, needed):
            raise PluginError(
                f'{cls.__name__} has no {needed}, {says}: write {needed}: ClassVar[str] = "..."'
            )


def count_references(segments: Sequence[Segment]) -> str:
    """The number of references as signatures print it: a number, or `var` where it differs."""
    counts = {len(segment.references) for segment in segments}
    return str(counts.pop()) if len(counts) == 1 else "var"


def comparisons(segments: Sequence[Segment], side: Side) -> tuple[IntArray, list[str], list[str]]:
    """Which segment each comparison belongs to, its hypothesis and the text it is compared with.

    >>> comparisons([Segment("a", "A", ("x", "y"))], "reference")
    (array([0, 0]), ['a', 'a'], ['x', 'y'])
    """
    owners, (left, right) = compared_columns(segments, side)
    return owners, left, right


def compared_columns(segments: Sequence[Segment], against: str) -> tuple[IntArray, list[list[str]]]:
    """The same for any number of sides: a column of hypotheses, and one of texts for each side.

    >>> compared_columns([Segment("a", "A", ("x", "y"))], "both")
    (array([0, 0]), [['a', 'a'], ['x', 'y'], ['A', 'A']])
    """
    rows = [
        (number, (segment.hypothesis, *texts))
        for number, segment in enumerate(segments)
        for texts in segment.sides(against)
    ]
    width = 3 if against == "both" else 2  # also where there is no segment
    owners: IntArray = np.array([number for number, _ in rows], dtype=np.int64)
    return owners, [[texts[column] for _, texts in rows] for column in range(width)]


def distinct_texts(segments: Iterable[Segment], against: str) -> list[str]:
    """The distinct texts that comparisons of segments are made of.

    >>> distinct_texts([Segment("a", "A", ("x", "y")), Segment("b", "A", ("x",))], "reference")
    ['a', 'x', 'y', 'b']
    """
    pairs = ((s.hypothesis, *texts) for s in segments for texts in s.sides(against))
    return list(dict.fromkeys(text for pair in pairs for text in pair))


def over_references(
    values: FloatArray, owners: IntArray, how: Over, *, higher_is_better: bool = True
) -> FloatArray:
    """What each segment has, (n, ...), from what its comparisons have, (c, ...), `owners` rising.

    >>> over_references(np.array([1.0, 3, 2]), np.array([0, 0, 1]), "mean")
    array([2., 2.])
    """
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    if how == "best":
        choose = np.maximum if higher_is_better else np.minimum
        best: FloatArray = choose.reduceat(values.astype(np.float64), starts, axis=0)
        return best
    totals = np.zeros((len(starts), *values.shape[1:]))
    np.add.at(totals, owners, values)
    counts = np.bincount(owners).reshape(-1, *[1] * (values.ndim - 1))
    mean: FloatArray = totals / counts
    return mean


@contextmanager
def foresee(metrics: Sequence[Metric], *sets: Sequence[Segment]) -> Iterator[None]:
    """Let metrics over one encoder have their vectors, layers and all, from one pass.

    The segments of each set say what they will ask. One metric has nothing to share.
    """
    needs: list[tuple[Encoder, str]] = []
    for metric, segments in product(metrics if len(metrics) > 1 else (), sets):
        metric.check(segments)
        with explain_missing(metric.name):
            needs += metric.asks(segments)
    if not needs:
        yield
        return
    from tertium.encoders import foresee

    with foresee(needs):
        yield

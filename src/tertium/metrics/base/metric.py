"""Define metrics: summable statistics per segment and one formula from sums to scores.

This module also pairs hypotheses with references or sources and reduces over several references.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from tertium.core.arrays import MAX_ABS_SCORE, FloatArray, IntArray
from tertium.core.errors import PluginError, UsageError
from tertium.core.extras import explain_missing
from tertium.core.scores import Scores
from tertium.core.segment import Context, Segment
from tertium.core.spans import Span, check_span_bounds
from tertium.metrics.base.capabilities import (
    AdjustsScores,
    CountsUsage,
    DescribesScores,
    DescribesTotals,
    Explains,
    MarksErrors,
    ReadsEmbeddings,
    ScoresSentences,
    reads_context,
    worst_score,
)
from tertium.metrics.base.compatibility_calls import CompatibilityCalls
from tertium.metrics.base.scorer import (
    Scorer,
    flag_empty,
    format_signature,
    reads_source_only,
)
from tertium.metrics.base.text_warnings import merge_flags

if TYPE_CHECKING:
    from tertium.encoders import Encoder
    from tertium.metrics.base.explanation import Explanation

NOTHING: frozenset[str] = frozenset()
NO_SCORE = "score is not a number"  # key of a warning
Side = Literal["reference", "source"]
ReferenceReduction = Literal["best", "mean"]  # over several references


class Metric(CompatibilityCalls, Scorer):
    """A function from segments to scores. Load one with `load_metric` or build a subclass directly.

        metric = load_metric("chrf:word_order=2")
        scores = metric.score([Segment("the cat sat", references=("a cat sat",))])
        scores.system, scores.segments

    The main methods are `score` (segments to `Scores`), `explain` (why one segment has its score,
    if the metric `Explains`) and `mark_errors` (error spans, if it `MarksErrors`). The calls
    `corpus_score`, `sentence_score`, `predict` and `compute` accept plain texts.

    To write a metric, implement `columns`, `statistics` and `reduce`, or subclass `SegmentMetric`.
    The statistics of a segment must not depend on other segments unless `reads_corpus` is true.

    Class attributes: `higher_is_better` (default True), `decimals` (shown in tables, default 4) and
    `citation` (optional, a BibTeX entry). `metrics.base.capabilities` has the optional members.
    """

    higher_is_better: ClassVar[bool] = True
    decimals: ClassVar[int] = 4

    @property
    def reads_corpus(self) -> bool:
        """Whether the statistics of a segment depend on the references of other segments."""
        return False

    @property
    def model_ids(self) -> tuple[str, ...]:
        """Models used to compute scores, each with a hash of its weights; empty for a formula."""
        return ()

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Names of the k statistics."""

    @abstractmethod
    def statistics(self, segments: Sequence[Segment]) -> FloatArray:
        """Compute one summable row per segment, (n, k)."""

    @abstractmethod
    def reduce(self, totals: FloatArray) -> FloatArray:
        """Turn sums of statistics into scores, (..., k) -> (...)."""

    def score(self, segments: Sequence[Segment]) -> Scores:
        """Check the segments and score them; returns `Scores` with segment and system scores.

        >>> from tertium.metrics import load_metric
        >>> scores = load_metric("ter").score([Segment("a b", references=("a c",))])
        >>> scores.system, scores.segments
        (50.0, array([50.]))
        """
        self.check(segments)
        with explain_missing(self.name):
            return make_scores(self, segments, compute_statistics(self, segments))

    def explain(self, segment: Segment) -> Explanation:
        """Explain the score of one segment; raises `UsageError` unless the metric `Explains`."""
        if not isinstance(self, Explains):
            raise UsageError(
                f"{self.name} cannot explain its scores: choose a metric that can, such as "
                "bertscore"
            )
        self.check([segment])
        if not flag_empty(self, [segment])[0]:
            return self.explain_segment(segment)
        from tertium.metrics.base.explanation import explain_empty_translation

        values = {"score": float(self.score([segment]).segments[0])}
        if isinstance(self, DescribesScores):
            values = self.describe_score(values["score"], segment)
        is_source = reads_source_only(self) or not segment.references
        side: Side = "source" if is_source else "reference"
        texts = [texts[0] for texts in segment.comparison_texts(side)]
        return explain_empty_translation(self.spec, values, side, texts)

    def mark_errors(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
        """Predict and check error spans; raises `UsageError` unless the metric `MarksErrors`."""
        if not isinstance(self, MarksErrors):
            raise UsageError(
                f"{self.name} does not predict error spans: choose a metric that marks errors, "
                "such as tertium-multi"
            )
        self.check(segments)
        distinct, rows = distinct_segments(segments, with_context=reads_context(self))
        with explain_missing(self.name):
            spans = self.spans(distinct)
        for segment, marked in zip(distinct, spans, strict=True):
            check_span_bounds(marked, segment.hypothesis, "hypothesis", self.name)
            check_span_bounds(marked, segment.source or "", "source", self.name)
        return [spans[row] for row in rows]


def compute_statistics(metric: Metric, segments: Sequence[Segment]) -> FloatArray:
    """Compute `statistics` once per distinct segment, unless the metric reads the corpus."""
    if metric.reads_corpus:
        return _checked_statistics(metric, segments)
    distinct, rows = distinct_segments(segments, with_context=reads_context(metric))
    return _checked_statistics(metric, distinct)[rows]


def _checked_statistics(metric: Metric, segments: Sequence[Segment]) -> FloatArray:
    """Call `statistics` and check the shape and type of the result."""
    rows = np.asarray(metric.statistics(segments))
    check_numbers(rows, (len(segments), len(metric.columns)), f"{metric.name}: statistics")
    is_huge = np.isfinite(rows) & (np.abs(rows) > MAX_ABS_SCORE)
    if is_huge.any():
        raise PluginError(
            f"{metric.name}: a segment has the statistic {rows[is_huge][0]:g}: expected at most "
            f"{MAX_ABS_SCORE:g}, so that sums stay finite"
        )
    return _bound_scores(metric, rows, segments)


def check_numbers(values: FloatArray, shape: tuple[int, ...], source: str) -> None:
    """Raise `PluginError` unless values are numbers of a shape."""
    if values.shape != shape or values.dtype.kind not in "bfiu":
        raise PluginError(
            f"{source} returned {values.dtype} of shape {values.shape}: expected numbers of shape "
            f"{shape}, one per segment in order"
        )


def _bound_scores(metric: Metric, rows: FloatArray, segments: Sequence[Segment]) -> FloatArray:
    """Bound the scores in the first column by the worst score, which empty translations get."""
    worst = worst_score(metric)
    if worst is None:
        return rows
    bounded = rows.astype(np.float64)
    limit = np.maximum if metric.higher_is_better else np.minimum
    bounded[:, 0] = np.where(flag_empty(metric, segments), worst, limit(rows[:, 0], worst))
    return bounded


def distinct_segments(
    segments: Sequence[Segment], *, with_context: bool = False
) -> tuple[list[Segment], list[int]]:
    """Return the distinct segments and, for each input segment, its index among them."""
    places: dict[tuple[Segment, Context | None], int] = {}
    distinct: list[Segment] = []
    rows = []
    for segment in segments:
        key = (segment, segment.context if with_context else None)
        rows.append(places.setdefault(key, len(places)))
        if rows[-1] == len(distinct):
            distinct.append(segment)
    return distinct, rows


def make_scores(metric: Metric, segments: Sequence[Segment], statistics: FloatArray) -> Scores:
    """Wrap statistics computed for these segments in a `Scores` object."""
    is_undefined = np.asarray(~np.isfinite(statistics).all(axis=1), dtype=np.bool_)
    flags = merge_flags([metric.flags(segments), {NO_SCORE: is_undefined}])
    totals = statistics.sum(axis=0)
    scores = Scores(
        metric=metric.spec,
        name=metric.label,
        statistics=statistics,
        reduce=metric.reduce,
        reduce_segments=metric.reduce_segments if isinstance(metric, ScoresSentences) else None,
        signature=format_signature(metric, segments),
        columns=metric.columns,
        flags={kind: mask for kind, mask in flags.items() if mask.any()},
        higher_is_better=metric.higher_is_better,
        decimals=metric.decimals,
        verbose=metric.verbose(totals) if isinstance(metric, DescribesTotals) else "",
        usage=metric.usage(statistics) if isinstance(metric, CountsUsage) else {},
    )
    if isinstance(metric, AdjustsScores):
        return metric.adjust_scores(scores, segments)
    return scores


def reduce_rows(metric: Metric, statistics: FloatArray) -> FloatArray:
    """Turn single rows of statistics into segment scores, (n, k) -> (n,)."""
    if isinstance(metric, ScoresSentences):
        return metric.reduce_segments(statistics)
    return metric.reduce(statistics)


def score_segments(metric: Metric, segments: Sequence[Segment]) -> FloatArray:
    """Return the scores of checked segments, (n,), without warnings and signature."""
    return reduce_rows(metric, compute_statistics(metric, segments))


class SegmentMetric(Metric):
    """A metric whose system score is the mean of its segment scores.

    Subclasses implement only `segment_scores`. The statistics are [score, 1] per segment.

        @dataclass(frozen=True, kw_only=True)
        class LengthRatio(SegmentMetric):
            name, title = "length-ratio", "Length ratio"

            def segment_scores(self, segments):
                return np.array([len(s.hypothesis) / len(s.references[0]) for s in segments])
    """

    @property
    def columns(self) -> tuple[str, ...]:
        return ("score", "segments")

    @abstractmethod
    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        """Compute the score of each segment, (n,)."""

    def statistics(self, segments: Sequence[Segment]) -> FloatArray:
        scores = np.asarray(self.segment_scores(segments))
        check_numbers(scores, (len(segments),), f"{self.name}: segment_scores")
        return np.column_stack([scores, np.ones(len(scores))])

    def reduce(self, totals: FloatArray) -> FloatArray:
        return totals[..., 0] / totals[..., 1]


def pair_texts(segments: Sequence[Segment], side: Side) -> tuple[IntArray, list[str], list[str]]:
    """Pair each hypothesis with each of its references, or with its source.

    Returns the segment index, hypothesis and other text of each pair.

    >>> pair_texts([Segment("a", "A", ("x", "y"))], "reference")
    (array([0, 0]), ['a', 'a'], ['x', 'y'])
    """
    owners, (left, right) = text_columns(segments, side)
    return owners, left, right


def text_columns(segments: Sequence[Segment], against: str) -> tuple[IntArray, list[list[str]]]:
    """Pair hypotheses with references, source or both: segment indices and one column per text.

    >>> text_columns([Segment("a", "A", ("x", "y"))], "both")
    (array([0, 0]), [['a', 'a'], ['x', 'y'], ['A', 'A']])
    """
    rows = [
        (number, (segment.hypothesis, *texts))
        for number, segment in enumerate(segments)
        for texts in segment.comparison_texts(against)
    ]
    width = 3 if against == "both" else 2
    owners: IntArray = np.array([number for number, _ in rows], dtype=np.int64)
    return owners, [[texts[column] for _, texts in rows] for column in range(width)]


def distinct_texts(segments: Iterable[Segment], against: str) -> list[str]:
    """List the distinct texts that are compared, in order of first appearance.

    >>> distinct_texts([Segment("a", "A", ("x", "y")), Segment("b", "A", ("x",))], "reference")
    ['a', 'x', 'y', 'b']
    """
    pairs = ((s.hypothesis, *texts) for s in segments for texts in s.comparison_texts(against))
    return list(dict.fromkeys(text for pair in pairs for text in pair))


def reduce_references(
    values: FloatArray,
    owners: IntArray,
    reduction: ReferenceReduction,
    *,
    higher_is_better: bool = True,
) -> FloatArray:
    """Reduce values per pair, (c, ...), to values per segment, (n, ...), by best or mean.

    `owners` (c,) is the segment index of each pair, in ascending order.

    >>> reduce_references(np.array([1.0, 3, 2]), np.array([0, 0, 1]), "mean")
    array([2., 2.])
    """
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    if reduction == "best":
        choose = np.maximum if higher_is_better else np.minimum
        return choose.reduceat(values.astype(np.float64), starts, axis=0)
    totals = np.zeros((len(starts), *values.shape[1:]))
    np.add.at(totals, owners, values)
    counts = np.bincount(owners).reshape(-1, *[1] * (values.ndim - 1))
    return totals / counts


@contextmanager
def share_encoding(metrics: Sequence[Metric], *sets: Sequence[Segment]) -> Iterator[None]:
    """Let several metrics over the same encoder share one forward pass per text."""
    requests: list[tuple[Encoder, str]] = []
    for metric, segments in product(metrics if len(metrics) > 1 else (), sets):
        metric.check(segments)
        with explain_missing(metric.name):
            if isinstance(metric, ReadsEmbeddings):
                requests += metric.required_embeddings(segments)
    if not requests:
        yield
        return
    from tertium.encoders import share_encoding

    with share_encoding(requests):
        yield

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
from tertium.metrics.base.compatibility_calls import CompatibilityCalls
from tertium.metrics.base.explanation import Explanation, explain_empty_translation
from tertium.metrics.base.scorer import Scorer
from tertium.metrics.base.text_warnings import merge_flags

if TYPE_CHECKING:
    from tertium.encoders import Encoder

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
    if `can_explain`) and `mark_errors` (error spans, if `can_mark_errors`). The calls
    `corpus_score`, `sentence_score`, `predict` and `compute` accept plain texts.

    To write a metric, implement `columns`, `statistics` and `reduce`, or subclass `SegmentMetric`.
    The statistics of a segment must not depend on other segments unless `reads_corpus` is true.

    Class attributes: `higher_is_better` (default True), `decimals` (shown in tables, default 4) and
    `reads_context` (whether the metric reads the surrounding document, default False).
    """

    higher_is_better: ClassVar[bool] = True
    decimals: ClassVar[int] = 4
    reads_context: ClassVar[bool] = False

    @property
    def reads_corpus(self) -> bool:
        """Whether the statistics of a segment depend on the references of other segments."""
        return False

    @property
    def worst_score(self) -> float | None:
        """The bound of the scores, which empty translations get; None if the formula decides.

        The first statistic must then be the score. Published metrics keep their formula.
        """
        return None

    @property
    def scale_spec(self) -> str:
        """Spec of the metric with the same scores on which a difference scale may be fitted."""
        return self.spec

    def find_inputs(self, segments: Sequence[Segment]) -> str:
        """Return what the scores of segments depend on, besides the translations.

        This is "source", "reference" or "source+reference": the required inputs or, if the metric
        requires none, all that the segments have.
        """
        has_source = any(segment.source is not None for segment in segments)
        has_reference = any(segment.references for segment in segments)
        if required := self.required_inputs:
            has_source, has_reference = "source" in required, "references" in required
        return "+".join(["source"] * has_source + ["reference"] * has_reference)

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

    def reduce_segments(self, statistics: FloatArray) -> FloatArray:
        """Turn single rows into segment scores; by default the same formula as `reduce`."""
        return self.reduce(statistics)

    def score(self, segments: Sequence[Segment]) -> Scores:
        """Check the segments and score them; returns `Scores` with segment and system scores.

        >>> from tertium.metrics import load_metric
        >>> scores = load_metric("ter").score([Segment("a b", references=("a c",))])
        >>> scores.system, scores.segments
        (50.0, array([50.]))
        """
        self.check(segments)
        with explain_missing(self.name):
            return self.make_scores(segments, self.compute_statistics(segments))

    def compute_statistics(self, segments: Sequence[Segment]) -> FloatArray:
        """Compute `statistics` once per distinct segment, unless the metric reads the corpus."""
        if self.reads_corpus:
            return self._checked_statistics(segments)
        distinct, rows = self.deduplicate(segments)
        return self._checked_statistics(distinct)[rows]

    def _checked_statistics(self, segments: Sequence[Segment]) -> FloatArray:
        """Call `statistics` and check the shape and type of the result."""
        rows = np.asarray(self.statistics(segments))
        expected = (len(segments), len(self.columns))
        if rows.shape != expected or rows.dtype.kind not in "fiu":
            raise PluginError(
                f"{self.name}: statistics returned {rows.dtype} of shape {rows.shape}: expected "
                f"numbers of shape {expected}, one row per segment in order"
            )
        is_huge = np.isfinite(rows) & (np.abs(rows) > MAX_ABS_SCORE)
        if is_huge.any():
            raise PluginError(
                f"{self.name}: a segment has the statistic {rows[is_huge][0]:g}: expected at most "
                f"{MAX_ABS_SCORE:g}, so that sums stay finite"
            )
        return self._apply_worst_score(rows, segments)

    def _apply_worst_score(self, rows: FloatArray, segments: Sequence[Segment]) -> FloatArray:
        """Bound the scores in the first column by `worst_score`, which empty translations get."""
        worst = self.worst_score
        if worst is None:
            return rows
        bounded = rows.astype(np.float64)
        limit = np.maximum if self.higher_is_better else np.minimum
        bounded[:, 0] = np.where(self.flag_empty(segments), worst, limit(rows[:, 0], worst))
        return bounded

    def deduplicate(self, segments: Sequence[Segment]) -> tuple[list[Segment], list[int]]:
        """Return the distinct segments and, for each input segment, its index among them."""
        places: dict[tuple[Segment, Context | None], int] = {}
        distinct: list[Segment] = []
        rows = []
        for segment in segments:
            key = (segment, segment.context if self.reads_context else None)
            rows.append(places.setdefault(key, len(places)))
            if rows[-1] == len(distinct):
                distinct.append(segment)
        return distinct, rows

    def make_scores(self, segments: Sequence[Segment], statistics: FloatArray) -> Scores:
        """Wrap statistics computed for these segments in a `Scores` object."""
        is_undefined = np.asarray(~np.isfinite(statistics).all(axis=1), dtype=np.bool_)
        flags = merge_flags([self.flags(segments), {NO_SCORE: is_undefined}])
        return Scores(
            metric=self.spec,
            name=self.label,
            statistics=statistics,
            reduce=self.reduce,
            reduce_segments=self.reduce_segments,
            signature=self.signature(segments),
            columns=self.columns,
            flags={kind: mask for kind, mask in flags.items() if mask.any()},
            higher_is_better=self.higher_is_better,
            decimals=self.decimals,
            verbose=self.verbose(statistics.sum(axis=0)),
            usage=self.usage(statistics),
        )

    def usage(self, statistics: FloatArray) -> dict[str, float]:
        """Return tokens and cost of the answers behind these rows, if the metric buys answers."""
        return {}

    def required_embeddings(self, segments: Sequence[Segment]) -> list[tuple[Encoder, str]]:
        """List the embeddings it will read: pairs of an encoder and "tokens" or "sentences"."""
        return []

    @property
    def can_explain(self) -> bool:
        """Whether `explain_segment` is implemented, so that `explain` works."""
        return type(self).explain_segment is not Metric.explain_segment

    def explain_segment(self, segment: Segment) -> Explanation:
        """Explain the score of a valid segment that is not empty; implement this to explain."""
        raise UsageError(
            f"{self.name} cannot explain its scores: choose a metric whose `can_explain` is true, "
            "such as bertscore"
        )

    def explain(self, segment: Segment) -> Explanation:
        """Explain the score of one segment; raises `UsageError` unless `can_explain`."""
        if self.can_explain:
            self.check([segment])
        if not (self.can_explain and self.flag_empty([segment])[0]):
            return self.explain_segment(segment)
        score = float(self.score([segment]).segments[0])
        side: Side = "source" if self._reads_source_only or not segment.references else "reference"
        texts = [texts[0] for texts in segment.comparison_texts(side)]
        values = self.describe_score(score, segment)
        return explain_empty_translation(self.spec, values, side, texts)

    def describe_score(self, score: float, segment: Segment) -> dict[str, float]:
        """Return a score and the predictions that follow from it alone, such as a percentile."""
        return {"score": score}

    @property
    def can_mark_errors(self) -> bool:
        """Whether `spans` is implemented, so that `mark_errors` works."""
        return type(self).spans is not Metric.spans

    @property
    def span_note(self) -> str:
        """What `spans` leaves out, for readers of marked errors; empty if it leaves out nothing."""
        return ""

    def spans(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
        """Predict the error spans of each segment, in text order; implement this to mark errors."""
        raise UsageError(
            f"{self.name} does not predict error spans: choose a metric whose `can_mark_errors` "
            "is true"
        )

    def mark_errors(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
        """Predict and validate error spans, once per distinct segment; needs `can_mark_errors`."""
        self.check(segments)
        distinct, rows = self.deduplicate(segments)
        with explain_missing(self.name):
            spans = self.spans(distinct)
        for segment, marked in zip(distinct, spans, strict=True):
            check_span_bounds(marked, segment.hypothesis, "hypothesis", self.name)
            check_span_bounds(marked, segment.source or "", "source", self.name)
        return [spans[row] for row in rows]

    def uncertainty(
        self, scores: FloatArray, segments: Sequence[Segment] = ()
    ) -> FloatArray | None:
        """Return the standard deviation of human scores around these scores, or None if unknown."""
        return None

    def verbose(self, totals: FloatArray) -> str:
        """Describe the components of a system score, e.g. BLEU's precisions; may be empty."""
        return ""


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
        if scores.shape != (len(segments),) or scores.dtype.kind not in "bfiu":
            raise PluginError(
                f"{self.name}: segment_scores returned {scores.dtype} of shape {scores.shape}: "
                f"expected numbers of shape ({len(segments)},), one per segment in order"
            )
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
            requests += metric.required_embeddings(segments)
    if not requests:
        yield
        return
    from tertium.encoders import share_encoding

    with share_encoding(requests):
        yield

"""Optional abilities of metrics: protocols that a metric follows by having the member.

`Metric` has what every metric has. The functions return what a metric without the ability has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from tertium.core.arrays import FloatArray
from tertium.core.scores import Scores
from tertium.core.segment import Segment
from tertium.core.spans import Span

if TYPE_CHECKING:
    from tertium.encoders import Encoder
    from tertium.metrics.base.explanation import Explanation
    from tertium.metrics.base.metric import Metric


@runtime_checkable
class Explains(Protocol):
    """Explains its scores."""

    def explain_segment(self, segment: Segment) -> Explanation:
        """Explain the score of a valid segment that is not empty."""


@runtime_checkable
class DescribesScores(Protocol):
    """Predicts more than a score from the score alone, such as a percentile."""

    def describe_score(self, score: float, segment: Segment) -> dict[str, float]:
        """Return the score and these predictions by name."""


@runtime_checkable
class MarksErrors(Protocol):
    """Predicts error spans.

    It may have a property `can_mark_errors`, which is false for settings without spans, and a
    property `span_note`, which says what the spans leave out.
    """

    def spans(self, segments: Sequence[Segment]) -> list[tuple[Span, ...]]:
        """Predict the error spans of each segment, in text order."""


@runtime_checkable
class PredictsUncertainty(Protocol):
    """Estimates how far human scores are from its scores."""

    def uncertainty(self, scores: FloatArray, segments: Sequence[Segment] = ()) -> FloatArray:
        """Return the standard deviation of human scores around these scores."""


@runtime_checkable
class ReadsEmbeddings(Protocol):
    """Reads embeddings that several metrics can share."""

    def required_embeddings(self, segments: Sequence[Segment]) -> list[tuple[Encoder, str]]:
        """List the embeddings it will read: pairs of an encoder and "tokens" or "sentences"."""


@runtime_checkable
class ScoresSentences(Protocol):
    """Scores single segments with another formula than corpora, as its publication does."""

    def reduce_segments(self, statistics: FloatArray) -> FloatArray:
        """Turn single rows of statistics into segment scores."""


@runtime_checkable
class DescribesTotals(Protocol):
    """Describes the components of a system score, such as the precisions of BLEU."""

    def verbose(self, totals: FloatArray) -> str:
        """Describe sums of statistics in one line."""


@runtime_checkable
class CountsUsage(Protocol):
    """Buys answers, and counts their tokens and cost."""

    def usage(self, statistics: FloatArray) -> dict[str, float]:
        """Return the tokens and the cost of the answers behind these rows."""


@runtime_checkable
class AdjustsScores(Protocol):
    """Changes the `Scores` made of its statistics, for example withholds a system score."""

    def adjust_scores(self, scores: Scores, segments: Sequence[Segment]) -> Scores:
        """Return the scores that users see."""


@runtime_checkable
class HasSettings(Protocol):
    """Has settings that belong to the signature."""

    def signature_fields(self, segments: Sequence[Segment]) -> Any:
        """Return settings by name; names and values contain no pipe or colon."""


def can_mark_errors(metric: Metric) -> bool:
    """Whether a metric marks errors with its settings."""
    return isinstance(metric, MarksErrors) and getattr(metric, "can_mark_errors", True)


def span_note(metric: Metric) -> str:
    """Return what the spans of a metric leave out; empty if they leave out nothing."""
    note: str = getattr(metric, "span_note", "")
    return note


def reads_context(metric: Metric) -> bool:
    """Whether the scores of a metric depend on the surrounding document."""
    return bool(getattr(metric, "reads_context", False))


def worst_score(metric: Metric) -> float | None:
    """Return the bound of the scores, which empty translations get; None without a bound.

    The first statistic of a metric with a bound is the score. Published metrics keep their formula.
    """
    bound: float | None = getattr(metric, "worst_score", None)
    return bound


def predict_uncertainty(
    metric: Metric, scores: FloatArray, segments: Sequence[Segment]
) -> FloatArray | None:
    """Return the standard deviation of human scores around these scores; None if unknown."""
    return metric.uncertainty(scores, segments) if isinstance(metric, PredictsUncertainty) else None


def min_coverage(metric: Metric) -> float | None:
    """Return the share of segments that a judge must score; None for metrics that score all."""
    share: float | None = getattr(metric, "min_coverage", None)
    return share


def scale_spec(metric: Metric) -> str:
    """Return the spec with the same scores on which a difference scale may be fitted."""
    spec: str = getattr(metric, "scale_spec", metric.spec)
    return spec


def find_inputs(metric: Metric, segments: Sequence[Segment]) -> str:
    """Return what the scores of segments depend on, besides the translations.

    This is "source", "reference" or "source+reference": the required inputs or, if the metric
    requires none, all that the segments have.
    """
    has_source = any(segment.source is not None for segment in segments)
    has_reference = any(segment.references for segment in segments)
    if required := metric.required_inputs:
        has_source = "source" in required
        has_reference = "references" in required
    return "+".join(["source"] * has_source + ["reference"] * has_reference)

"""Explain the score of a translation, or which of several translations wins."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

from tertium.core.errors import UsageError, short_repr
from tertium.core.extras import explain_missing
from tertium.core.fields import split_spec
from tertium.core.registry import RANKERS
from tertium.core.segment import Segment
from tertium.evaluation.ranking import NOT_COMPARED, recommend_ranker
from tertium.metrics.base.capabilities import Explains, can_mark_errors, span_note
from tertium.metrics.base.explanation import Explanation, MarkedText
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import NO_SCORE, Metric
from tertium.metrics.base.ranker import Ranker, as_ranker
from tertium.metrics.base.text_warnings import count_flags
from tertium.models.checkpoint import has_bundled_models
from tertium.text.language_identification import seem_english


def explain(
    translation: Segment, *rivals: Segment, metric: str | Metric | Ranker | None = None
) -> Explanation:
    """Explain a score; with rivals, the probability of each translation to beat each other.

    Parameters
    ----------
    translation
        The translation, with its source and references.
    rivals
        Other translations of the same segment to compare with.
    metric
        A spec or a metric. By default rte-r for English references, otherwise tertium-multi
        (sentsim if its weights are not installed). With rivals, a ranker or a metric whose better
        score wins; by default that of `tertium.rank`.

    Returns
    -------
    Explanation
        The score with its reasons, or the win probabilities.

    >>> good, bad = (Segment(text, None, ("a cat sat",)) for text in ("a cat sits", "a dog"))
    >>> explain(good, bad, metric="chrf").win_probabilities.chances
    ((0.5, 1.0), (0.0, 0.5))
    """
    for segment in (translation, *rivals):
        if not isinstance(segment, Segment):
            raise UsageError(
                f"expected a Segment, got {short_repr(segment, 60)}: give "
                'Segment("a translation", references=["a reference"])'
            )
    if rivals:
        ranker = as_ranker(metric or recommend_ranker([translation]))
        segments = [translation, *rivals]
        explained = ranker.explain(segments)
        chances = explained.win_probabilities.chances if explained.win_probabilities else ()
        is_compared = all(isfinite(chance) for row in chances for chance in row)
        not_compared = () if is_compared else (NOT_COMPARED,)
        return replace(explained, warnings=(*count_flags(ranker.flags(segments)), *not_compared))
    if isinstance(metric, Ranker) or (isinstance(metric, str) and split_spec(metric)[0] in RANKERS):
        name = metric if isinstance(metric, str) else metric.name
        raise UsageError(f"{name} compares translations: give two or more (repeat -t)")
    choice = metric or _default_metric(translation)
    scorer = choice if isinstance(choice, Metric) else load_metric(choice)
    with explain_missing(scorer.name):
        explained = add_error_spans(_explain(scorer, translation), scorer, translation)
        no_score = () if isfinite(explained.score) else (NO_SCORE,)
        return replace(explained, warnings=(*count_flags(scorer.flags([translation])), *no_score))


def add_error_spans(explained: Explanation, scorer: Metric, translation: Segment) -> Explanation:
    """Add the error spans that the metric marks, if it marks any; none in an empty text."""
    if not can_mark_errors(scorer) or explained.errors:
        return explained
    spans = scorer.mark_errors([translation])[0]
    marked_text = MarkedText(
        hypothesis=translation.hypothesis,
        source=translation.source,
        spans=spans,
        note=span_note(scorer),
    )
    return replace(explained, marked_text=marked_text)


def _explain(scorer: Metric, translation: Segment) -> Explanation:
    if isinstance(scorer, Explains) or not can_mark_errors(scorer):
        return scorer.explain(translation)
    return Explanation(metric=scorer.spec, score=float(scorer.score([translation]).segments[0]))


def _default_metric(translation: Segment) -> str:
    if translation.references and seem_english(translation.references):
        return "rte-r"
    return "tertium-multi" if has_bundled_models() else "sentsim"

"""Explain a score, or which of several translations wins."""

from __future__ import annotations

from dataclasses import replace

from tertium.errors import UsageError
from tertium.extras import explain_missing
from tertium.metrics.base.explanation import Explanation, MarkedText
from tertium.metrics.base.metric import Metric, load_metric
from tertium.metrics.base.ranker import ByScore, Ranker, load_ranker
from tertium.segment import Segment


def explain(
    translation: Segment, *rivals: Segment, metric: str | Metric | Ranker | None = None
) -> Explanation:
    """Why a translation has its score; with rivals, the chance of each to beat each other one.

    `metric` is a spec or a metric: rte-r unless it is given, sentsim where there is no reference.
    Beside rivals it is a ranker, pairwise unless it is given, or a metric, whose better score wins.

    >>> good, bad = (Segment(text, None, ("a cat sat",)) for text in ("a cat sits", "a dog"))
    >>> explain(good, bad, metric="chrf").votes.chances
    ((0.5, 1.0), (0.0, 0.5))
    """
    if rivals:
        ranker = _ranker(metric or "pairwise")
        return ranker.explain([translation, *rivals])
    if isinstance(metric, Ranker):
        raise UsageError(f"{metric.name} compares translations: give it two or more to explain")
    chosen = metric or ("rte-r" if translation.references else "sentsim")
    judge = load_metric(chosen) if isinstance(chosen, str) else chosen
    with explain_missing(judge.name):
        return add_marks(_explain(judge, translation), judge, translation)


def add_marks(explained: Explanation, judge: Metric, translation: Segment) -> Explanation:
    """The same with the errors that the metric marks, where it marks any."""
    if not judge.gives_spans:
        return explained
    spans = judge.mark([translation])[0]
    text = MarkedText(hypothesis=translation.hypothesis, source=translation.source, spans=spans)
    return replace(explained, marked=text)


def _explain(judge: Metric, translation: Segment) -> Explanation:
    if judge.explains or not judge.gives_spans:
        return judge.explain(translation)
    return Explanation(metric=judge.spec, score=float(judge.score([translation]).segments[0]))


def _ranker(given: str | Metric | Ranker) -> Ranker:
    if isinstance(given, Metric):
        return ByScore(metric=given.spec)
    return load_ranker(given) if isinstance(given, str) else given

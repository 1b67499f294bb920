"""Explain a score, or which of several translations wins."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

from tertium.errors import UsageError, one_line
from tertium.evaluation.ranking import best_ranker
from tertium.extras import explain_missing
from tertium.metrics.base.explanation import Explanation, MarkedText
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import NO_SCORE, Metric
from tertium.metrics.base.ranker import Ranker, find_ranker
from tertium.models.checkpoint import are_installed
from tertium.registry import RANKERS
from tertium.segment import Segment
from tertium.specs import split_spec
from tertium.text.language_identification import seem_english


def explain(
    translation: Segment, *rivals: Segment, metric: str | Metric | Ranker | None = None
) -> Explanation:
    """Why a translation has its score; with rivals, the chance of each to beat each other one.

    `metric` is a spec or a metric: rte-r for English references unless it is given, tertium-multi
    for all others and where there is none (without its weights sentsim).
    Beside rivals it is a ranker, that of `tertium.rank` unless it is given, or a metric, whose
    better score wins.

    >>> good, bad = (Segment(text, None, ("a cat sat",)) for text in ("a cat sits", "a dog"))
    >>> explain(good, bad, metric="chrf").votes.chances
    ((0.5, 1.0), (0.0, 0.5))
    """
    for given in (translation, *rivals):
        if not isinstance(given, Segment):
            raise UsageError(
                f"expected a Segment, got {one_line(given, 60)}: "
                'Segment("a translation", references=["a reference"]) is one'
            )
    if rivals:
        ranker = find_ranker(metric or best_ranker([translation]))
        every = [translation, *rivals]
        return replace(ranker.explain(every), warnings=tuple(ranker.warnings(every)))
    if isinstance(metric, Ranker) or (isinstance(metric, str) and split_spec(metric)[0] in RANKERS):
        name = metric if isinstance(metric, str) else metric.name
        raise UsageError(f"{name} compares translations: give it two or more (-t again)")
    chosen = metric or _usual_metric(translation)
    judge = chosen if isinstance(chosen, Metric) else load_metric(chosen)
    with explain_missing(judge.name):
        explained = add_marks(_explain(judge, translation), judge, translation)
        lost = () if isfinite(explained.score) else (NO_SCORE,)
        return replace(explained, warnings=(*judge.warnings([translation]), *lost))


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


def _usual_metric(translation: Segment) -> str:
    if translation.references and seem_english(translation.references):
        return "rte-r"
    return "tertium-multi" if are_installed() else "sentsim"

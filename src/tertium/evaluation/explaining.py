"""Explain the score of a translation, or which of several translations wins."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import Annotated

from tertium.core.errors import UsageError, short_repr
from tertium.core.extras import explain_missing
from tertium.core.fields import split_spec
from tertium.core.options import Option
from tertium.core.registry import RANKERS
from tertium.core.result import View
from tertium.core.segment import Segment
from tertium.data.testset import TestSet
from tertium.evaluation.metric_choice import load_scorer
from tertium.evaluation.ranking import NOT_COMPARED, recommend_ranker
from tertium.files.text_inputs import InputFiles
from tertium.metrics.base.capabilities import Explains, can_mark_errors, span_note
from tertium.metrics.base.explanation import DEFAULT_TOP, Explanation, MarkedText
from tertium.metrics.base.judge_run import JudgeConnection
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
        problems = () if is_compared else (NOT_COMPARED,)
        return replace(explained, warnings=(*count_flags(ranker.flags(segments)), *problems))
    if isinstance(metric, Ranker) or (isinstance(metric, str) and split_spec(metric)[0] in RANKERS):
        name = metric if isinstance(metric, str) else metric.name
        raise UsageError(f"{name} compares translations: give two or more (repeat -t)")
    scorer = load_metric(metric or _default_metric(translation))
    with explain_missing(scorer.name):
        if isinstance(scorer, Explains) or not can_mark_errors(scorer):
            explained = scorer.explain(translation)
        else:
            score = float(scorer.score([translation]).segments[0])
            explained = Explanation(metric=scorer.spec, score=score)
        explained = add_error_spans(explained, scorer, translation)
        problems = () if isfinite(explained.score) else (NO_SCORE,)
        return replace(explained, warnings=(*count_flags(scorer.flags([translation])), *problems))


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


def _default_metric(translation: Segment) -> str:
    if translation.references and seem_english(translation.references):
        return "rte-r"
    return "tertium-multi" if has_bundled_models() else "sentsim"


MetricName = Annotated[
    str | None, Option("-m", "--metrics", "--model", metavar="METRIC", group="Metrics")
]


def explain_texts(
    inputs: InputFiles,
    judge: JudgeConnection,
    *,
    text: Annotated[bool, Option(group="Input")] = False,
    segment: Annotated[int | None, Option(group="Input")] = None,
    metric: MetricName = None,
    count: Annotated[int, Option("-n", "--count", group="Output")] = DEFAULT_TOP,
) -> Annotated[View, Explanation]:
    """Explain the score of a translation: its alignment, errors, and contributions of features.

    Parameters
    ----------
    text
        -t, -s and -r are sentences, not files.
    segment
        With files: the segment to explain, from 1.
    metric
        Metric or ranker (default: rte-r for English references, otherwise tertium-multi; pairwise
        for several translations with English references).
    count
        Features to list.

    Examples
    --------
    tertium explain --text -r "The blue car stopped." -t "The red car stopped."
    tertium explain -m tertium-small -t ours.txt -r reference.txt --segment 3
    tertium explain --text -s "Das blaue Auto hielt an." -t "The red car stopped."
    tertium explain -m pairwise -t ours.txt theirs.txt -r reference.txt --segment 3

    Notes
    -----
    Contributions are relative to the score of the reference itself, and add up to the score.
    Without a reference the translation is compared with its source. With two or more translations,
    a ranker (or any metric) shows which one wins.
    """
    testset = _make_testset(inputs) if text else inputs.read().testset
    number = segment or (1 if len(testset) == 1 else 0)
    if not 1 <= number <= len(testset):
        raise UsageError(f"{len(testset)} segments: choose one with --segment N")
    scorer: str | Metric | Ranker | None = metric
    if metric:
        scorer = load_scorer(metric, inputs.source_language or "", inputs.target_language or "")
    segments = [testset.segments(system)[number - 1] for system in testset.systems]
    explanation = explain(*segments, metric=scorer)
    return View(
        result=explanation,
        printed=explanation.top_sections(count),
        warnings=[f"warning: {kind}" for kind in explanation.warnings],
        warns_aside=True,
    )


def _make_testset(inputs: InputFiles) -> TestSet:
    """Return one segment with the sentences of -t, -s and -r."""
    if not inputs.translations:
        raise UsageError("no translation: give it with -t TEXT")
    systems = {f"-t {n}": [text] for n, text in enumerate(inputs.translations, start=1)}
    sources = None if inputs.sources is None else [inputs.sources]
    return TestSet.from_lists(systems, sources, [inputs.references] if inputs.references else None)

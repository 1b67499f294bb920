"""Score every system of a test set with every metric.

All systems go to a metric in one call, so work on references, sources and repeated outputs is
shared. `rows` scores them and splits the scores by system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.errors import (
    UsageError,
    short_repr,
)
from tertium.core.result import is_frame
from tertium.data.testset import TestSet, check_testset
from tertium.evaluation.metric_choice import load_metrics_for, recommend_metric, target_texts
from tertium.evaluation.rows import Row, score_rows
from tertium.evaluation.system_scores import Evaluation
from tertium.metrics.base.metric import Metric

if TYPE_CHECKING:
    from tertium.evaluation.paired_tests import Interval

Translations = Any  # a TestSet, a frame, a list of texts, or lists of texts by system
References = Sequence[str] | Sequence[Sequence[str]] | None


def as_testset(
    translations: Translations, sources: Sequence[str] | None = None, references: References = None
) -> TestSet:
    """Return a test set as it is, or make one of lists of texts or of a frame."""
    if isinstance(translations, Mapping | Sequence) and not isinstance(translations, str):
        return TestSet.from_lists(translations, sources, references)
    if not is_frame(translations):
        check_testset(translations)
    if sources is not None or references is not None:
        raise UsageError(
            "sources= and references= need lists of translations: a test set or frame has its own"
        )
    return TestSet.from_frame(translations) if is_frame(translations) else translations


def score(
    testset: Translations,
    metrics: str | Metric | Sequence[str | Metric] | None = None,
    *,
    sources: Sequence[str] | None = None,
    references: References = None,
    confidence: bool = False,
    resamples: int = 1000,
    seed: int = 12345,
) -> Evaluation:
    """Score every system of a test set with every metric.

    Parameters
    ----------
    testset
        A `TestSet`, a pandas or polars frame, a list of translations, or lists by system name.
    metrics
        Specs ("chrf:word_order=2") or metrics. By default, the recommended metric for the data.
        Specs of BLEU and NIST without `tokenize` get the tokenizer of the target language.
    sources, references
        Texts for each segment, if `testset` is a list or a dictionary of lists. A segment may have
        a list of references.
    confidence
        Whether to compute 95 % bootstrap confidence intervals.
    resamples
        Number of bootstrap resamples.
    seed
        Seed of the bootstrap.

    Returns
    -------
    Evaluation
        The scores by system and metric.

    >>> evaluation = score({"ours": ["hello world"]}, ["chrf"], references=["hello world"])
    >>> evaluation["ours"]["chrf"].system
    100.0
    """
    if not isinstance(confidence, bool):
        raise UsageError(
            f"confidence must be True or False, got {short_repr(confidence)}: use resamples= for "
            "the number of resamples"
        )
    if confidence:
        from tertium.core.resampling import check_resamples

        check_resamples(resamples)  # before the scoring, which may take long
    texts = as_testset(testset, sources, references)
    chosen = recommend_metric(texts) if metrics is None else metrics
    loaded = load_metrics_for(target_texts(texts), chosen)
    systems = tuple(texts.systems)
    specs = tuple(metric.spec for metric in loaded)
    rows = [
        Row(segment=segment, system=system)
        for system in systems
        for segment in texts.segments(system)
    ]
    for metric in loaded:  # score_rows leaves out segments without the inputs of a metric
        for system in systems:
            metric.check(texts.segments(system))
    scored = score_rows(rows, loaded)
    scores = {
        system: {own.metric.spec: own.parts["", system] for own in scored} for system in systems
    }
    evaluation = Evaluation(texts, systems, specs, scores)
    if confidence:
        _, intervals = bootstrap_systems(evaluation, resamples, seed)
        return replace(evaluation, intervals=intervals)
    return evaluation


def bootstrap_systems(
    evaluation: Evaluation, resamples: int, seed: int
) -> tuple[dict[str, FloatArray], dict[str, dict[str, Interval]]]:
    """Return scores of shared bootstrap samples by metric, and 95 % intervals of systems by metric.

    The scores are (systems, resamples).
    """
    from tertium.evaluation.paired_tests import bootstrap, interval

    metrics = evaluation.metrics
    all_scores = [scores for metric in metrics for scores in evaluation.metric_scores(metric)]
    drawn = bootstrap(all_scores, resamples=resamples, seed=seed)
    samples = dict(zip(metrics, np.split(drawn, len(metrics)), strict=True))
    intervals = {
        system: {metric: interval(samples[metric][n]) for metric in metrics}
        for n, system in enumerate(evaluation.systems)
    }
    return samples, intervals

"""Score every system of a test set with every metric.

All systems go to a metric in one call, so work on references, sources and repeated outputs is
shared. The rows of statistics are then split by system.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

from tertium.arrays import check_resamples
from tertium.data.testset import TestSet, check_testset
from tertium.errors import (
    DataError,
    MissingInputError,
    UsageError,
    short_repr,
)
from tertium.evaluation.evaluation import Evaluation
from tertium.evaluation.metric_choice import load_metrics_for, recommend_metric, target_texts
from tertium.evaluation.resampling import Interval, bootstrap, interval
from tertium.extras import explain_missing
from tertium.frames import is_frame
from tertium.metrics.base.metric import Metric, share_encoding
from tertium.scores import Scores
from tertium.segment import Segment

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
    check_resamples(resamples)
    texts = as_testset(testset, sources, references)
    chosen = recommend_metric(texts) if metrics is None else metrics
    loaded = load_metrics_for(target_texts(texts), chosen)
    with share_encoding(loaded, texts.segments(next(iter(texts.systems)))):
        by_metric = {metric.spec: score_systems(texts, metric) for metric in loaded}
    systems = tuple(texts.systems)
    scores = {
        system: {spec: by_metric[spec][n] for spec in by_metric} for n, system in enumerate(systems)
    }
    evaluation = Evaluation(texts, systems, tuple(by_metric), scores)
    return add_intervals(evaluation, resamples, seed) if confidence else evaluation


def score_systems(testset: TestSet, metric: Metric) -> list[Scores]:
    """Score each system under one metric, in the order of the test set."""
    parts = [testset.segments(system) for system in testset.systems]
    for part in parts:
        metric.check(part)
    if metric.reads_corpus:
        return [metric.score(part) for part in parts]
    all_segments: list[Segment] = [segment for part in parts for segment in part]
    size = len(testset)
    with explain_missing(metric.name):
        rows = metric.compute_statistics(all_segments)  # (systems * segments, k)
        return [
            metric.make_scores(part, rows[n * size : (n + 1) * size])
            for n, part in enumerate(parts)
        ]


def find_scorable(segments: Sequence[Segment], metric: Metric) -> list[bool]:
    """Return a mask of the translations that have the inputs of a metric.

    A metric with optional inputs rejects a mix of them. In that case, keep the translations with
    all inputs that any translation has: a human translation among the systems may be the reference
    itself and have no other.
    """
    available = [(bool(s.references), s.source is not None) for s in segments]
    needs = ("references" in metric.required_inputs, "source" in metric.required_inputs)
    mask = [all(h or not n for h, n in zip(has, needs, strict=True)) for has in available]
    try:
        metric.check(list(compress(segments, mask)))
    except MissingInputError:
        all_inputs = tuple(map(any, zip(*available, strict=True)))
        complete = [has == all_inputs for has in available]
        return complete if any(complete) else mask
    except DataError:  # no segment is left
        return mask
    return mask


def find_scorable_by_all(segments: Sequence[Segment], metrics: Sequence[Metric]) -> list[bool]:
    """Return a mask of the translations that have the inputs of every metric."""
    masks = [find_scorable(segments, metric) for metric in metrics]
    return [all(mask) for mask in zip(*masks, strict=True)] if masks else [True] * len(segments)


def add_intervals(evaluation: Evaluation, resamples: int, seed: int = 12345) -> Evaluation:
    """Add 95 % bootstrap intervals to an evaluation, all from the same resamples."""
    pairs = [(s, m) for s in evaluation.systems for m in evaluation.metrics]
    samples = bootstrap([evaluation.scores[s][m] for s, m in pairs], resamples=resamples, seed=seed)
    bounds: dict[str, dict[str, Interval]] = {system: {} for system in evaluation.systems}
    for (system, metric), row in zip(pairs, samples, strict=True):
        bounds[system][metric] = interval(row)
    return replace(evaluation, intervals=bounds)

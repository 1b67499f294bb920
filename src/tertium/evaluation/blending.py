"""Cross-validate a blend of metrics and compare it with each of its metrics on human scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from tertium.core.arrays import FloatArray, IntArray
from tertium.core.errors import DataError
from tertium.core.resampling import FOLDS, number_folds
from tertium.core.result import Column, Table
from tertium.data.judgments import JudgmentSet
from tertium.evaluation.judged import HumanInputs
from tertium.meta.agreement_results import Results
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.tasks import tasks_for
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.trainable import (
    collect_judgments,
    known_scores,
    number_documents,
    orientation,
)
from tertium.models.blend_model import BlendModel, fit_blend, normalize

BLEND = "blend"  # its row in tables
MIN_SYSTEMS = 3  # fewer are not held out
STATISTICS = ("pearson", "acc-eq*", "spa")


def weight_table(weights: Mapping[str, float]) -> Table:
    """Return the weight of each metric of a blend and its share."""
    total = sum(weights.values()) or 1.0
    columns = [
        Column("metric", str),
        Column("weight", weights.__getitem__, 4),
        Column("%", lambda metric: 100 * weights[metric] / total, 0),
    ]
    return Table(columns, [*weights], "Weights of normalized scores")


def attach_scores(
    sets: Sequence[JudgmentSet], metrics: Sequence[str | Metric]
) -> list[JudgmentSet]:
    """Return the sets with the scores of metrics in their judgments, so that they are scored once.

    Scores that the judgments already contain are kept. Judgments without a reference are dropped if
    a metric needs one.
    """
    parts = load_metrics(metrics)
    if any("references" in part.required_inputs for part in parts):
        sets = [one.drop_without_references() for one in sets]
    result = []
    for judgment_set in sets:
        rows = (known_scores(parts, [judgment_set]) * orientation(parts)).tolist()
        judgments = []
        for judgment, row in zip(judgment_set.judgments, rows, strict=True):
            scores = dict(judgment.metric_scores)
            for part, score in zip(parts, row, strict=True):
                if not math.isnan(score):
                    scores[part.spec] = score
            judgments.append(replace(judgment, metric_scores=scores))
        result.append(replace(judgment_set, judgments=tuple(judgments)))
    return result


def study_blend(metric: Any, sets: Sequence[JudgmentSet], **options: Any) -> list[Table | str]:
    """Return the weights of a trained blend, and how it compares with its metrics on its data."""
    weights = weight_table(metric.coefficients)
    try:
        study = cross_validate_blend(sets, **options)
    except DataError as error:
        return [weights, f"not cross-validated: {error}"]
    note = "The blend is cross-validated: trained on other documents, and if possible other systems"
    return [weights, *study.tables(intervals=True, p_values=True), note]


def cross_validate_blend(
    sets: Sequence[JudgmentSet],
    metrics: Sequence[str | Metric],
    *,
    resamples: int = 1000,
    seed: int = 12345,
    **options: Any,
) -> Results:
    """Compare a blend with each of its metrics on human scores.

    Each translation is scored by a blend that was trained on other documents and, if there are at
    least three systems, on other systems. `options` are those of `fit_blend`.
    """
    parts, data = load_metrics(metrics), collect_judgments(sets)
    values, targets = known_scores(parts, sets), np.array([one.score for one in data])
    systems = np.unique([f"{one.lp} {one.system}" for one in data], return_inverse=True)[1]
    names = [part.spec for part in parts]
    predicted = cross_validate(names, values, targets, number_documents(data), systems, **options)
    columns = dict(zip([*names, BLEND], [*values.T, predicted], strict=True))
    aligned, start = [], 0
    for name, judgment_set in HumanInputs(human=tuple(sets)).read().items():  # type: ignore[arg-type]
        assert isinstance(judgment_set, JudgmentSet)
        rows = slice(start, start := start + len(judgment_set))
        matrices = [judgment_set.to_score_matrix(v[rows], m) for m, v in columns.items()]
        aligned.append(AlignedScores.align(name, matrices, human=judgment_set.matrix()))
    has_systems = all(len(one.systems) > 1 for one in aligned)
    tasks = [
        task
        for statistic in STATISTICS
        if statistic == "pearson" or has_systems
        for task in tasks_for([one.name for one in aligned], statistic, resamples=resamples)
    ]
    return MetaEvaluation(aligned, seed=seed).run(tasks)


def cross_validate(
    names: Sequence[str],
    values: FloatArray,
    targets: FloatArray,
    documents: IntArray,
    systems: IntArray,
    **options: Any,
) -> FloatArray:
    """Predict each row, up to a constant, by a blend that saw neither its document nor its system.

    `documents` and `systems` (n,) are numbers. Fewer than three systems are not held out. `options`
    are those of `fit_blend`.
    """
    if len(np.unique(documents)) < 2:
        raise DataError("cross-validation needs at least two documents or segments")
    document_folds = number_folds(documents, FOLDS)
    system_folds = np.full(len(systems), -1)
    if len(np.unique(systems)) >= MIN_SYSTEMS:
        system_folds = number_folds(systems, FOLDS)
    predicted = np.full(len(targets), np.nan)
    for document, system in product(np.unique(document_folds), np.unique(system_folds)):
        test = (document_folds == document) & (system_folds == system)
        train = (document_folds != document) & ((system_folds != system) | (system < 0))
        if not test.any():
            continue
        blend = fit_blend(names, values[train], targets[train], documents[train], **options)
        predicted[test] = _keep_ratios(blend, values).predict(values[test])
    return predicted


def _keep_ratios(blend: BlendModel, values: FloatArray) -> BlendModel:
    """Keep only the ratios of the weights, so that blends of different folds are comparable.

    Means and deviations are those of all scores. Bias and size of the weights are dropped: with the
    human scores of a fold, they would tell how good the systems are that it leaves out.
    """
    rows = normalize(values, blend.quantiles)
    deviations = np.nanstd(rows, axis=0)
    size = blend.weights.sum() or 1.0
    return replace(
        blend,
        mean=np.nanmean(rows, axis=0),
        scale=np.where(deviations > 0, deviations, 1.0),
        weights=blend.weights / size,
        bias=0.0,
        missing_biases=blend.missing_biases / size,
    )

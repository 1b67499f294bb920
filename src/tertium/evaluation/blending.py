"""Cross-validate a blend of metrics and compare it with each of its metrics on human scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from tertium.arrays import FloatArray
from tertium.data.judgments import JudgmentSet
from tertium.evaluation.meta_inputs import read_sets
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.evaluation import MetaEvaluation
from tertium.meta.results import Results
from tertium.meta.tasks import Test, tasks_for
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric
from tertium.metrics.regression.blend_inputs import (
    collect_judgments,
    known_scores,
    number_documents,
)
from tertium.metrics.regression.blend_weights import (
    MIN_SYSTEMS,
    STRENGTHS,
    Normalization,
    cross_validate,
)

BLEND = "blend"  # its row in tables
# statistics of the comparison and the tests of differences; the first one with a second test
TESTS: tuple[tuple[str, Test], ...] = (
    ("pearson", "williams"),
    ("pearson", "perm-both"),
    ("acc-eq*", "pairs"),
    ("spa", "pairs"),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class BlendStudy:
    """Agreement of a cross-validated blend and of its metrics with human scores.

    `results` has one task for each set, statistic and test. `held_out_systems` says whether the
    blend that scored a translation had seen other systems only; documents are always held out.
    """

    results: Results = field(repr=False)
    held_out_systems: bool

    def p_values(self) -> list[dict[str, Any]]:
        """Return for each set, metric and test the p-value of "the blend is better"."""
        blend = self.results.metrics.index(BLEND)
        return [
            {
                "set": task.task.label,
                "metric": metric,
                "statistic": task.task.statistic,
                "test": task.task.test,
                "p": float(task.p_values[blend, n]),
            }
            for task in self.results.tasks
            for n, metric in enumerate(self.results.metrics)
            if n != blend
        ]


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
    values = known_scores(parts, sets) * [1 if part.higher_is_better else -1 for part in parts]
    starts = np.cumsum([0, *map(len, sets)]).tolist()
    result = []
    for judgment_set, (start, end) in zip(sets, pairwise(starts), strict=True):
        judgments = [
            replace(judgment, metric_scores={**judgment.metric_scores, **_present(parts, row)})
            for judgment, row in zip(judgment_set.judgments, values[start:end], strict=True)
        ]
        result.append(replace(judgment_set, judgments=tuple(judgments)))
    return result


def _present(parts: Sequence[Metric], row: FloatArray) -> dict[str, float]:
    values = zip(parts, row.tolist(), strict=True)
    return {part.spec: value for part, value in values if value == value}


def cross_validate_blend(
    sets: Sequence[JudgmentSet],
    metrics: Sequence[str | Metric],
    *,
    normalization: Normalization = "z",
    strengths: Sequence[float] = STRENGTHS,
    resamples: int = 1000,
    seed: int = 12345,
) -> BlendStudy:
    """Compare a blend with each of its metrics on human scores.

    Each translation is scored by a blend that was trained on other documents and, if there are at
    least three systems, on other systems.
    """
    parts, data = load_metrics(metrics), collect_judgments(sets)
    values, targets = known_scores(parts, sets), np.array([one.score for one in data])
    systems = np.unique([f"{one.lp} {one.system}" for one in data], return_inverse=True)[1]
    names = [part.spec for part in parts]
    predicted = cross_validate(
        names,
        values,
        targets,
        number_documents(data),
        systems,
        normalization=normalization,
        strengths=strengths,
    )
    columns = dict(zip([*names, BLEND], [*values.T, predicted], strict=True))
    aligned, start = [], 0
    for name, judgment_set in read_sets(sets, "segment").items():
        assert isinstance(judgment_set, JudgmentSet)
        rows = slice(start, start := start + len(judgment_set))
        matrices = [judgment_set.to_score_matrix(v[rows], m) for m, v in columns.items()]
        aligned.append(AlignedScores.align(name, matrices, human=judgment_set.matrix()))
    has_systems = all(len(one.systems) > 1 for one in aligned)
    tasks = [
        task
        for statistic, test in TESTS
        if statistic == "pearson" or has_systems
        for task in tasks_for([a.name for a in aligned], statistic, test=test, resamples=resamples)
    ]
    results = MetaEvaluation(aligned, seed=seed).run(tasks)
    return BlendStudy(results=results, held_out_systems=len(np.unique(systems)) >= MIN_SYSTEMS)

"""Compare systems: paired tests of all pairs under every metric, and clusters of equals.

The tests see statistics only (`resampling`), so they hold for any metric. The first system is the
baseline that tables compare the others to; the p-values of all other pairs are there as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from tertium.arrays import FloatArray
from tertium.data.testset import TestSet
from tertium.display import Displayed
from tertium.errors import UnknownNameError, UsageError
from tertium.evaluation.defaults import usual_metrics
from tertium.evaluation.differences import Meaning, find_meaning, find_scales
from tertium.evaluation.resampling import (
    Interval,
    bootstrap,
    clusters,
    interval,
    paired_bootstrap,
    paired_randomisation,
)
from tertium.evaluation.scoring import ByMetric, Evaluation, score, with_intervals
from tertium.meta.differences import DifferenceScale
from tertium.metrics.base.metric import Metric

Test = Literal["bootstrap", "randomisation"]

DEFAULT_RESAMPLES: Mapping[str, int] = {"bootstrap": 1000, "randomisation": 10_000}


@dataclass(frozen=True)
class Comparison(Displayed):
    """Systems compared pairwise under some metrics.

    For each metric: `p_values` (systems, systems), 1 on the diagonal; `clusters`, the
    group of each system, 1 being the best, within which no order is certain at level `alpha`.
    """

    evaluation: Evaluation
    test: Test
    resamples: int
    seed: int
    alpha: float
    p_values: Mapping[str, FloatArray]
    clusters: Mapping[str, Sequence[int]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "p_values", ByMetric(self.p_values))
        object.__setattr__(self, "clusters", ByMetric(self.clusters))

    @property
    def baseline(self) -> str:
        """The system the others are compared to."""
        return self.evaluation.systems[0]

    def difference(self, metric: str, system: str) -> float:
        """How much better than the baseline; positive is better, whatever the metric."""
        ours = self.evaluation.scores[system][metric]
        sign = 1.0 if ours.higher_is_better else -1.0
        return sign * (ours.system - self.evaluation.scores[self.baseline][metric].system)

    def p_value(self, metric: str, system: str) -> float:
        """The p-value of a system against the baseline."""
        if system not in self.evaluation.systems:
            raise UnknownNameError("system", system, self.evaluation.systems)
        return float(self.p_values[metric][0, self.evaluation.systems.index(system)])

    @cached_property
    def scales(self) -> Mapping[str, DifferenceScale]:
        """By metric, what differences mean to people, where that is known."""
        return find_scales(self.evaluation)

    def meaning(self, metric: str, system: str, other: str = "") -> Meaning | None:
        """How often people agree with a system's difference to another, or to the baseline."""
        return find_meaning(self.evaluation, self.scales, metric, system, other or self.baseline)

    def records(self, *, segments: bool = False) -> list[dict[str, Any]]:
        """One plain dictionary for each system and metric, with p-values and clusters."""
        records = self.evaluation.records(segments=segments)
        for record in records:
            metric, system = record["spec"], record["system"]
            place = self.evaluation.systems.index(system)
            row = self.p_values[metric][place]
            record |= {
                "test": self.test,
                "resamples": self.resamples,
                "seed": self.seed,
                "cluster": self.clusters[metric][place],
                "p_values": dict(zip(self.evaluation.systems, row.tolist(), strict=True)),
            }
            if place:
                meaning = self.meaning(metric, system)
                record["p_value"] = float(row[0])
                record["people_agree"] = meaning and meaning.record()
        return records


def compare(
    testset: TestSet,
    metrics: str | Metric | Sequence[str | Metric] | None = None,
    *,
    test: Test = "bootstrap",
    resamples: int | None = None,
    seed: int = 12345,
    alpha: float = 0.05,
) -> Comparison:
    """Score all systems and test every pair of them.

    `metrics` are specs or metrics: BLEU, chrF and the best that serves unless they are given.
    `test` is "bootstrap" (paired bootstrap, 1,000 samples unless said otherwise) or "randomisation"
    (paired approximate randomisation, 10,000 trials).
    """
    if len(testset.systems) < 2:
        raise UsageError("comparing needs at least two systems; the first is the baseline")
    if test not in DEFAULT_RESAMPLES:
        raise UsageError(f"unknown test {test!r}: bootstrap or randomisation")
    evaluation = score(testset, usual_metrics(testset) if metrics is None else metrics)
    return compare_evaluation(evaluation, test=test, resamples=resamples, seed=seed, alpha=alpha)


def compare_evaluation(
    evaluation: Evaluation,
    *,
    test: Test = "bootstrap",
    resamples: int | None = None,
    seed: int = 12345,
    alpha: float = 0.05,
) -> Comparison:
    """The same for systems that were scored before."""
    if not 0 < alpha < 1:
        raise UsageError(f"alpha, the level of significance, lies between 0 and 1, not at {alpha}")
    count = DEFAULT_RESAMPLES[test] if resamples is None else resamples
    draws = count if test == "bootstrap" else DEFAULT_RESAMPLES["bootstrap"]
    everything = [s for metric in evaluation.metrics for s in evaluation.of_metric(metric)]
    samples = bootstrap(everything, resamples=draws, seed=seed)
    by_metric = dict(
        zip(evaluation.metrics, np.split(samples, len(evaluation.metrics)), strict=True)
    )
    p_values = {
        metric: paired_bootstrap(evaluation.of_metric(metric), by_metric[metric])
        if test == "bootstrap"
        else paired_randomisation(evaluation.of_metric(metric), trials=count, seed=seed)
        for metric in evaluation.metrics
    }
    groups = {m: clusters(evaluation.of_metric(m), p_values[m], alpha=alpha) for m in p_values}
    scored = Evaluation(
        evaluation.testset,
        evaluation.systems,
        evaluation.metrics,
        evaluation.scores,
        _intervals(evaluation, by_metric),
    )
    return Comparison(scored, test, count, seed, alpha, p_values, groups)


def with_tests(
    evaluation: Evaluation, *, seed: int = 12345, **choices: Any
) -> Evaluation | Comparison:
    """Two systems or more compared, as `compare_evaluation` does; a lone one with its intervals."""
    if len(evaluation.systems) < 2:
        return with_intervals(evaluation, DEFAULT_RESAMPLES["bootstrap"], seed)
    return compare_evaluation(evaluation, seed=seed, **choices)


def _intervals(
    evaluation: Evaluation, samples: Mapping[str, FloatArray]
) -> dict[str, dict[str, Interval]]:
    return {
        system: {metric: interval(samples[metric][n]) for metric in evaluation.metrics}
        for n, system in enumerate(evaluation.systems)
    }

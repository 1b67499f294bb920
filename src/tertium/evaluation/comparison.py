"""Compare systems: paired tests of all pairs, clusters of equals, and what a difference means.

The tests see statistics only (`resampling`), so they hold for any metric. The first system is the
baseline that tables compare the others to; the p-values of all other pairs are there as well. What
a difference means to people comes from pairs of systems that people judged: the scales that ship
were fitted by `recipes/differences.py`; `tertium meta --thresholds` fits others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from tertium.arrays import FloatArray, is_inner_share
from tertium.data.testset import TestSet, check_testset
from tertium.errors import TertiumError, UnknownNameError, UsageError
from tertium.evaluation.resampling import (
    bootstrap,
    clusters,
    interval,
    paired_bootstrap,
    paired_randomization,
)
from tertium.evaluation.scoring import ByMetric, Evaluation, score, usual_metrics, with_intervals
from tertium.meta.differences import ALL, INTO_ENGLISH, OTHERS, DifferenceScale
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.text.language_identification import (
    STRANGERS,
    are_english,
    identify,
    is_not_english,
    is_short,
)

FILE = "differences.json"
FEW = 30  # segments below which resampling, and a difference, say little about others


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """How often people agree with such a difference of two systems, on how many pairs of them.

    >>> meaning = Meaning(difference=0.01, agree=0.78, pairs=245, direction="into English")
    >>> meaning.say("chrF", 3)
    '0.010 chrF better: people agree in 78 % of such pairs of systems (n = 245, into English)'
    """

    difference: float
    agree: float
    pairs: int
    direction: str

    def say(self, metric: str, decimals: int) -> str:
        """One sentence, in which better is better under metrics of errors, too."""
        share, better = f"{100 * self.agree:.0f} %", "better" if self.difference > 0 else "worse"
        return (
            f"{abs(self.difference):.{decimals}f} {metric} {better}: people agree in {share} of "
            f"such pairs of systems (n = {self.pairs:,}, {self.direction})"
        )

    def record(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"agree": self.agree, "pairs": self.pairs, "direction": self.direction}


@cache
def shipped_scales() -> tuple[DifferenceScale, ...]:
    """The scales that come with the package."""
    text = files("tertium.evaluation").joinpath(FILE).read_text(encoding="utf-8")
    return tuple(DifferenceScale.from_record(record) for record in json.loads(text)["scales"])


def find_scale(spec: str, direction: str) -> DifferenceScale | None:
    """The scale of a metric as it is now; none where it was not fitted, or learned anew since."""
    known = {s.direction: s for s in shipped_scales() if s.metric == spec}
    scale = known.get(direction) or known.get(ALL)
    if scale is None:
        return None
    try:
        learned = load_metric(spec).learned
    except TertiumError:
        return None
    return scale if tuple(learned) == scale.learned else None


def find_scales(evaluation: Evaluation) -> dict[str, DifferenceScale]:
    """By metric the scale for the language that the systems translate into, where there is one."""
    segments = evaluation.testset.segments(evaluation.systems[0])
    direction = find_direction([(*s.references, s.hypothesis)[0] for s in segments])
    found = {metric: find_scale(metric, direction) for metric in evaluation.metrics}
    return {metric: scale for metric, scale in found.items() if scale is not None}


def find_direction(texts: Sequence[str]) -> str:
    """Which pairs of systems are like those that translate into the language of these texts.

    All pairs, where some of the texts are English and others are clearly not.

    >>> find_direction(["The train to the coast leaves at seven in the morning, rain or shine."])
    'into English'
    """
    strangers = sum(map(is_not_english, texts))
    if are_english(texts):
        return INTO_ENGLISH if strangers <= STRANGERS * len(texts) else ALL
    told = [identify(text) for text in texts if not is_short(text)]
    return OTHERS if told.count("en") <= STRANGERS * len(told) else ALL


Test = Literal["bootstrap", "randomization"]

DEFAULT_RESAMPLES: Mapping[str, int] = {"bootstrap": 1000, "randomization": 10_000}


@dataclass(frozen=True, kw_only=True)
class Comparison(Evaluation):
    """An evaluation whose systems were compared pairwise.

    For each metric: `p_values` (systems, systems), 1 on the diagonal; `clusters`, the
    group of each system, 1 being the best, within which no order is certain at level `alpha`, and
    0 that of systems without a score.
    """

    test: Test
    resamples: int
    seed: int
    alpha: float
    p_values: Mapping[str, FloatArray] = field(repr=False)
    clusters: Mapping[str, Sequence[int]] = field(repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "p_values", ByMetric(self.p_values))
        object.__setattr__(self, "clusters", ByMetric(self.clusters))

    @property
    def baseline(self) -> str:
        """The system the others are compared to."""
        return self.systems[0]

    def difference(self, metric: str, system: str, other: str = "") -> float:
        """How much better than another, or the baseline; positive is better under any metric."""
        ours = self.scores[system][metric]
        theirs = self.scores[other or self.baseline][metric]
        return ours.sign * (ours.system - theirs.system)

    def p_value(self, metric: str, system: str) -> float:
        """The p-value of a system against the baseline."""
        if system not in self.systems:
            raise UnknownNameError("system", system, self.systems)
        return float(self.p_values[metric][0, self.systems.index(system)])

    @cached_property
    def scales(self) -> Mapping[str, DifferenceScale]:
        """By metric, what differences mean to people, where that is known."""
        return ByMetric(find_scales(self))

    def meaning(self, metric: str, system: str, other: str = "") -> Meaning | None:
        """How often people agree with a system's difference to another, or to the baseline.

        None where there is no difference, no scale of the metric, or fewer than `FEW` segments:
        scales are of systems that were judged on whole test sets.
        """
        if len(self.testset) < FEW:
            return None
        difference, scale = self.difference(metric, system, other), self.scales.get(metric)
        if scale is None or difference != difference or difference == 0:
            return None
        part = scale.find(difference)
        return Meaning(
            difference=difference, agree=part.agree, pairs=part.pairs, direction=scale.direction
        )

    def records(self, *, segments: bool = False) -> list[dict[str, Any]]:
        """One plain dictionary for each system and metric, with p-values and clusters."""
        records = super().records(segments=segments)
        for record in records:
            metric, system = record["spec"], record["system"]
            place = self.systems.index(system)
            row = self.p_values[metric][place]
            record |= {
                "test": self.test,
                "resamples": self.resamples,
                "seed": self.seed,
                "cluster": self.clusters[metric][place] or None,
                "p_values": dict(zip(self.systems, row.tolist(), strict=True)),
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
    `test` is "bootstrap" (paired bootstrap, 1,000 samples unless said otherwise) or "randomization"
    (paired approximate randomization, 10,000 trials).
    """
    check_testset(testset)
    if len(testset.systems) < 2:
        raise UsageError("comparing needs at least two systems; the first is the baseline")
    check_test(test, alpha)  # before texts are scored, which may take an hour
    evaluation = score(testset, usual_metrics(testset) if metrics is None else metrics)
    return compare_evaluation(evaluation, test=test, resamples=resamples, seed=seed, alpha=alpha)


def check_test(test: object, alpha: object) -> None:
    """Refuse a test that is none, and a level of significance that is no number between 0 and 1."""
    if test not in [*DEFAULT_RESAMPLES]:
        raise UsageError(f"unknown test {test!r}: bootstrap or randomization")
    if not is_inner_share(alpha):
        raise UsageError(
            f"alpha, the level of significance, is a number between 0 and 1, not {alpha!r}"
        )


def compare_evaluation(
    evaluation: Evaluation,
    *,
    test: Test = "bootstrap",
    resamples: int | None = None,
    seed: int = 12345,
    alpha: float = 0.05,
) -> Comparison:
    """The same for systems that were scored before."""
    check_test(test, alpha)
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
        else paired_randomization(evaluation.of_metric(metric), trials=count, seed=seed)
        for metric in evaluation.metrics
    }
    groups = {m: clusters(evaluation.of_metric(m), p_values[m], alpha=alpha) for m in p_values}
    intervals = {
        system: {metric: interval(by_metric[metric][n]) for metric in evaluation.metrics}
        for n, system in enumerate(evaluation.systems)
    }
    return Comparison(
        evaluation.testset,
        evaluation.systems,
        evaluation.metrics,
        evaluation.scores,
        intervals,
        test=test,
        resamples=count,
        seed=seed,
        alpha=alpha,
        p_values=p_values,
        clusters=groups,
    )


def with_tests(evaluation: Evaluation, *, seed: int = 12345, **choices: Any) -> Evaluation:
    """Two systems or more compared, as `compare_evaluation` does; a lone one with its intervals."""
    if len(evaluation.systems) < 2:
        return with_intervals(evaluation, DEFAULT_RESAMPLES["bootstrap"], seed)
    return compare_evaluation(evaluation, seed=seed, **choices)

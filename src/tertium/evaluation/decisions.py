"""How well metrics decide on judged translations: to accept, to choose, to ask a person.

And who decides between them: the rules of a shared task rank metrics, and pairs of systems that
people judged say what a difference of two systems means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tertium.arrays import FloatArray
from tertium.errors import UnknownNameError
from tertium.evaluation.gathering import Gathered, Sources, gather
from tertium.meta.decisions import (
    acceptance_curve,
    calibrate_errors,
    decide,
    rerank_outputs,
    residuals,
    risk_coverage,
)
from tertium.meta.differences import DifferenceScale, fit_scales
from tertium.meta.judged import JudgedSet
from tertium.meta.protocol import PROTOCOLS, ProtocolResults, follow_protocol
from tertium.metrics.base.metric import Metric


@dataclass(frozen=True, kw_only=True, eq=False)
class Decision:
    """What deciding by one metric came to on one judged set.

    `figures` are those of `tertium.meta.decisions.decide`; where the metric tells an uncertainty,
    also `risk` (what is won by asking people about the doubtful) and `calibration`, else none.
    `curve` holds threshold, precision and recall; thresholds are scores as the metric gives them:
    what lies above is accepted, or below where less is better.
    """

    set: str
    metric: str
    higher_is_better: bool
    figures: Mapping[str, float]
    curve: FloatArray  # (thresholds, 3)
    risk: Mapping[str, Any]

    def record(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        names = ("threshold", "precision", "recall")
        return {
            "set": self.set,
            "metric": self.metric,
            "higher_is_better": self.higher_is_better,
            **self.figures,
            "curve": [dict(zip(names, row, strict=True)) for row in self.curve.tolist()],
            "uncertainty": dict(self.risk),
        }


def decide_with(
    human: Sources,
    metrics: str | Metric | Sequence[str | Metric] = (),
    *,
    bar: float,
    **sources: Any,
) -> list[Decision]:
    """Decide by each metric on each set, a translation being good enough from `bar` on.

    Other arguments are those of `meta_evaluate`.
    """
    gathered = gather(human, metrics, **sources)
    scored = {metric.spec: metric for metric in gathered.metrics}
    decisions = []
    for judged in gathered.sets:
        segments = [segment for _, segment in gathered.people[judged.name].translations()[:1]]
        for number, name in enumerate(judged.metrics):
            metric = scored.get(name)
            scores = judged.scores[number]
            told = None if metric is None else metric.uncertainty(scores, segments)
            decisions.append(_decide(judged, number, told, bar, name in gathered.turned_over))
    return decisions


def _decide(
    judged: JudgedSet, number: int, deviation: FloatArray | None, bar: float, turned: bool
) -> Decision:
    scores = judged.scores[number]
    curve = acceptance_curve(judged.human, scores, bar)
    figures = dict(decide(curve, rerank_outputs(judged.human, scores)))
    sign = -1.0 if turned else 1.0  # in a judged set more is always better
    figures["threshold"] *= sign
    return Decision(
        set=judged.name,
        metric=judged.metrics[number],
        higher_is_better=not turned,
        figures=figures,
        curve=np.stack([sign * curve.thresholds, curve.precision, curve.recall], axis=1),
        risk={} if deviation is None else _risk(judged.human, scores, deviation),
    )


def _risk(human: FloatArray, scores: FloatArray, deviation: FloatArray) -> dict[str, Any]:
    """Risk and calibration of a metric that tells how far people's scores lie from its own."""
    errors, slope = residuals(human, scores)
    curve = risk_coverage(errors, deviation)
    calibration = calibrate_errors(errors, abs(slope) * deviation)
    tenths = np.linspace(0, len(curve.risk) - 1, 11).astype(int)[1:]
    return {
        "area": curve.area,
        "mean_error": curve.flat,
        "ideal_area": curve.ideal,
        "skill": curve.skill,
        "risk_at_coverage": dict(
            zip(curve.coverage[tenths].round(3).tolist(), curve.risk[tenths].tolist(), strict=True)
        ),
        "expected_error": calibration.expected.tolist(),
        "observed_error": calibration.observed.tolist(),
        "calibration_gap": calibration.gap,
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class MetricRanking(Gathered):
    """A protocol's results, and what they were made of."""

    results: ProtocolResults

    def records(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return {**self.results.records(), "judgements_left_out": self.left_out}


def rank_metrics(
    human: Sources,
    metrics: str | Metric | Sequence[str | Metric] = (),
    *,
    protocol: str = "wmt24",
    samples: int = 1000,
    alpha: float = 0.05,
    seed: int = 12345,
    **sources: Any,
) -> MetricRanking:
    """Rank metrics as a shared task did: soft pairwise accuracy and acc_eq*, averaged and tested.

    `human`, `metrics` and `sources` (scores, lps, exclude, gold, data, standardise, lower_better)
    are those of `meta_evaluate`; `protocol` is a name of `tertium.meta.protocol.PROTOCOLS`.
    """
    if protocol not in PROTOCOLS:
        raise UnknownNameError("protocol", protocol, PROTOCOLS)
    gathered = gather(human, metrics, **sources)
    results = follow_protocol(gathered.sets, protocol, samples=samples, alpha=alpha, seed=seed)
    return MetricRanking(**vars(gathered), results=results)


def fit_differences(
    human: Sources, metrics: str | Metric | Sequence[str | Metric] = (), **sources: Any
) -> list[DifferenceScale]:
    """Scales of metrics on judged systems; arguments as of `meta_evaluate`."""
    gathered = gather(human, metrics, level="system", **sources)
    learned = {metric.spec: metric.learned for metric in gathered.metrics}
    return fit_scales(gathered.sets, learned)

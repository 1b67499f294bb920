"""Evaluate metrics by decisions, rank metrics by a shared-task protocol, fit difference scales."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.errors import UnknownNameError
from tertium.core.result import (
    Column,
    Emphasis,
    Result,
    Table,
    count_column,
    format_number,
    percent_column,
)
from tertium.evaluation.judged_inputs import MetaInputs, Sources, load_meta_inputs
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.decisions import (
    acceptance_curve,
    calibrate_errors,
    rerank_outputs,
    residuals,
    risk_coverage,
    summarize_decisions,
)
from tertium.meta.difference_scales import DifferenceScale, fit_scales
from tertium.meta.protocol import PROTOCOLS, ProtocolResults, run_protocol
from tertium.metrics.base.capabilities import find_inputs, predict_uncertainty
from tertium.metrics.base.metric import Metric


@dataclass(frozen=True, kw_only=True, eq=False)
class Decision:
    """The quality of decisions by one metric on one judged set.

    `values` are those of `tertium.meta.decisions.summarize_decisions`. `risk` holds risk-coverage
    and calibration values if the metric predicts its uncertainty, else nothing. `curve` holds
    threshold, precision and recall. Thresholds are on the metric's own scale: scores above are
    accepted, or below if lower is better.
    """

    set: str
    metric: str
    higher_is_better: bool
    values: Mapping[str, float]
    curve: FloatArray  # (thresholds, 3)
    risk: Mapping[str, Any]

    def record(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        names = ("threshold", "precision", "recall")
        return {
            "set": self.set,
            "metric": self.metric,
            "higher_is_better": self.higher_is_better,
            **self.values,
            "curve": [dict(zip(names, row, strict=True)) for row in self.curve.tolist()],
            "uncertainty": dict(self.risk),
        }


CHANCE = "(chance)"  # the row of random decisions
COLUMNS = {
    "average_precision": "AP",
    "threshold": "threshold",
    "precision": "precision",
    "recall": "recall",
    "precision_at_90": "P at R .9",
    "reranking": "reranking",
    "gain": "gain",
    "skill": "uncertainty",
}


class Decisions(Result, list[Decision]):
    """Decisions by each metric on each set, where human scores of `min_good_score` are good."""

    def __init__(self, decisions: Iterable[Decision], min_good_score: float) -> None:
        super().__init__(decisions)
        self.min_good_score = min_good_score

    def records(self) -> dict[str, Any]:
        """Return all values, for JSON."""
        return {"bar": self.min_good_score, "decisions": [entry.record() for entry in self]}

    def tables(self) -> list[Table]:
        """Return one row per set and metric, and a chance row per set."""
        rows = []
        for n, own in enumerate(self):
            skill = own.risk.get("skill", np.nan)
            rows.append({"set": own.set, "metric": own.metric, **own.values, "skill": skill})
            rows[-1]["bound"] = "" if own.higher_is_better else "≤ "
            if n + 1 == len(self) or self[n + 1].set != own.set:
                chance: dict[str, Any] = {"set": own.set, "metric": CHANCE}
                chance["average_precision"] = own.values["good"]
                chance["reranking"] = own.values["reranking_chance"]
                rows.append(dict.fromkeys(COLUMNS) | chance)
        columns = [
            Column("set", itemgetter("set")),
            Column("metric", itemgetter("metric"), mark=_mark),
        ]
        for key, name in COLUMNS.items():
            text = _threshold_text if key == "threshold" else None
            columns.append(Column(name, itemgetter(key), 3, mark=_mark, text=text, adjustable=True))
        notes = [
            "AP: average precision of accepting good translations; threshold: maximizes F1, with "
            "its precision and recall; P at R .9: precision at a recall of 0.9",
            "reranking: share of segments whose best output is selected; gain: in human scores, "
            "1 is the best possible selection, 0 a random one",
            "uncertainty: 1 if the predicted uncertainty orders the errors, 0 if it does not",
        ]
        return [Table(columns, rows, "Decisions based on a metric", notes)]


def _mark(row: Mapping[str, Any]) -> Emphasis:
    return "dim" if row["metric"] == CHANCE else ""


def _threshold_text(row: Mapping[str, Any], decimals: int) -> str:
    value = row["threshold"]
    return "" if value is None else row["bound"] + format_number(value, decimals)


def evaluate_decisions(
    human: Sources,
    metrics: str | Metric | Sequence[str | Metric] = (),
    *,
    min_good_score: float,
    **sources: Any,
) -> Decisions:
    """Evaluate decisions by each metric on each set.

    A translation with a human score of at least `min_good_score` is good enough.
    """
    inputs = load_meta_inputs(human, metrics, **sources)
    scored = {metric.spec: metric for metric in inputs.metrics}
    decisions = []
    for aligned in inputs.sets:
        segments = [segment for _, segment in inputs.human_data[aligned.name].translations()[:1]]
        for index, name in enumerate(aligned.metrics):
            metric = scored.get(name)
            scores = aligned.scores[index]
            deviation = None if metric is None else predict_uncertainty(metric, scores, segments)
            decisions.append(
                _decide(aligned, index, deviation, min_good_score, name in inputs.negated_metrics)
            )
    return Decisions(decisions, min_good_score)


def _decide(
    aligned: AlignedScores,
    index: int,
    deviation: FloatArray | None,
    min_good_score: float,
    negated: bool,
) -> Decision:
    scores = aligned.scores[index]
    curve = acceptance_curve(aligned.human, scores, min_good_score)
    values = dict(summarize_decisions(curve, rerank_outputs(aligned.human, scores)))
    sign = -1.0 if negated else 1.0  # aligned scores are oriented: higher is better
    values["threshold"] *= sign
    return Decision(
        set=aligned.name,
        metric=aligned.metrics[index],
        higher_is_better=not negated,
        values=values,
        curve=np.stack([sign * curve.thresholds, curve.precision, curve.recall], axis=1),
        risk={} if deviation is None else _risk(aligned.human, scores, deviation),
    )


def _risk(human: FloatArray, scores: FloatArray, deviation: FloatArray) -> dict[str, Any]:
    """Return risk and calibration of a metric that predicts its uncertainty."""
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
class MetricRanking(MetaInputs, Result):
    """The results of a protocol, and the scores they are based on."""

    results: ProtocolResults

    def records(self) -> dict[str, Any]:
        """Return all results as plain values, for JSON."""
        return {**self.results.records(), "judgments_left_out": self.excluded_counts}

    def tables(self) -> list[Table]:
        """Return metrics by rank."""
        return [self.results.table()]


def rank_metrics(
    human: Sources,
    metrics: str | Metric | Sequence[str | Metric] = (),
    *,
    protocol: str = "wmt24",
    resamples: int = 1000,
    alpha: float = 0.05,
    seed: int = 12345,
    **sources: Any,
) -> MetricRanking:
    """Rank metrics by the rules of a shared task: the tested average of SPA and acc_eq*.

    `human`, `metrics` and `sources` (scores, lps, exclude, gold, data, standardize, lower_better)
    are those of `meta_evaluate`; `protocol` is a name in `tertium.meta.protocol.PROTOCOLS`.
    """
    if protocol not in PROTOCOLS:
        raise UnknownNameError("protocol", protocol, PROTOCOLS)
    inputs = load_meta_inputs(human, metrics, **sources)
    results = run_protocol(inputs.sets, protocol, resamples=resamples, alpha=alpha, seed=seed)
    return MetricRanking(**vars(inputs), results=results)


class DifferenceScales(Result, list[DifferenceScale]):
    """The scales of metrics, by language direction."""

    def records(self) -> dict[str, Any]:
        """Return all scales as plain values, for JSON."""
        return {"scales": [scale.record() for scale in self]}

    def tables(self) -> list[Table]:
        """Return one row per metric, language direction and range of differences."""
        columns = [
            Column("metric", lambda row: row[0].metric),
            Column("languages", lambda row: row[0].direction),
            Column("over", lambda row: row[1].low, 3, adjustable=True),
            Column("up to", lambda row: row[1].high, 3, adjustable=True),
            percent_column("human agreement", lambda row: row[1].agree),
            count_column("pairs", lambda row: row[1].pairs),
        ]
        rows = [(scale, part) for scale in self for part in scale.bins]
        note = (
            "human agreement: share of system pairs with such a difference in the metric that "
            "human scores order the same way"
        )
        return [Table(columns, rows, "Human agreement by size of the difference", [note])]


def fit_difference_scales(
    human: Sources, metrics: str | Metric | Sequence[str | Metric] = (), **sources: Any
) -> DifferenceScales:
    """Fit difference scales of metrics on judged systems; arguments as for `meta_evaluate`."""
    inputs = load_meta_inputs(human, metrics, level="system", **sources)
    learned = {metric.spec: metric.model_ids for metric in inputs.metrics}
    read_inputs: dict[str, str] = {}
    for metric in inputs.metrics:
        segments = [[s for _, s in own.translations()] for own in inputs.human_data.values()]
        input_kinds = {find_inputs(metric, own) for own in segments}
        read_inputs[metric.spec] = input_kinds.pop() if len(input_kinds) == 1 else ""
    scales = fit_scales(inputs.sets, learned)
    return DifferenceScales(
        replace(scale, inputs=read_inputs.get(scale.metric, "")) for scale in scales
    )

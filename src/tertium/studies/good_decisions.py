"""Evaluate metrics by decisions, and fit difference scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tertium.core.result import (
    Column,
    Emphasis,
    Result,
    Table,
    count_column,
    format_number,
    percent_column,
)
from tertium.evaluation.judged import JudgedSets
from tertium.meta.difference_scales import (
    DifferenceScale,
    accept_translations,
    fit_scales,
    rerank_outputs,
)
from tertium.metrics.base.capabilities import find_inputs

CHANCE = "(chance)"  # the row of random decisions
COLUMNS = {
    "average_precision": "AP",
    "threshold": "threshold",
    "precision": "precision",
    "recall": "recall",
    "precision_at_90": "P at R .9",
    "reranking": "reranking",
    "gain": "gain",
}
NOTES = (
    "AP: average precision of accepting good translations; threshold: maximizes F1, with "
    "its precision and recall; P at R .9: precision at a recall of 0.9",
    "reranking: share of segments whose best output is selected; gain: in human scores, "
    "1 is the best possible selection, 0 a random one",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Decisions(Result):
    """Decisions by each metric on each set, where human scores of `min_good_score` are good.

    A row has the values of `accept_translations` and `rerank_outputs`, and a `curve` of threshold,
    precision and recall. Thresholds are on the metric's own scale: scores above are accepted, or
    below if lower is better.
    """

    rows: Sequence[Mapping[str, Any]]
    min_good_score: float

    def records(self) -> dict[str, Any]:
        """Return all values, for JSON."""
        return {"bar": self.min_good_score, "decisions": list(self.rows)}

    def tables(self) -> list[Table]:
        """Return one row per set and metric, and a chance row per set."""
        rows: list[Mapping[str, Any]] = []
        for row in self.rows:
            if rows and rows[-1]["set"] != row["set"]:
                rows.append(_chance_row(rows[-1]))
            rows.append(row)
        rows.append(_chance_row(rows[-1]))
        columns = [
            Column("set"),
            Column("metric", mark=_mark),
        ]
        for key, name in COLUMNS.items():
            text = _threshold_text if key == "threshold" else None
            columns.append(Column(name, key, 3, mark=_mark, text=text, adjustable=True))
        return [Table(columns, rows, "Decisions based on a metric", NOTES)]


def _chance_row(row: Mapping[str, Any]) -> dict[str, Any]:
    chance = {"average_precision": row["good"], "reranking": row["reranking_chance"]}
    return {**dict.fromkeys(COLUMNS), "set": row["set"], "metric": CHANCE, **chance}


def _mark(row: Mapping[str, Any]) -> Emphasis:
    return "dim" if row["metric"] == CHANCE else ""


def _threshold_text(row: Mapping[str, Any], decimals: int) -> str:
    if row["threshold"] is None:
        return ""
    bound = "" if row["higher_is_better"] else "≤ "
    return bound + format_number(row["threshold"], decimals)


def evaluate_decisions(judged_sets: JudgedSets, *, min_good_score: float) -> Decisions:
    """Evaluate decisions by each metric on each set.

    A translation with a human score of at least `min_good_score` is good enough.
    """
    rows = []
    for aligned in judged_sets.sets:
        human = aligned.human
        for name, scores in zip(aligned.metrics, aligned.scores, strict=True):
            values, curve = accept_translations(human, scores, min_good_score)
            is_negated = name in judged_sets.negated_metrics
            if is_negated:  # aligned scores are oriented: higher is better
                values["threshold"] *= -1
                curve[:, 0] *= -1
            labels = ("threshold", "precision", "recall")
            row = {
                "set": aligned.name,
                "metric": name,
                "higher_is_better": not is_negated,
                **values,
                **rerank_outputs(human, scores),
                "curve": [dict(zip(labels, point, strict=True)) for point in curve.tolist()],
            }
            rows.append(row)
    return Decisions(rows=rows, min_good_score=min_good_score)


@dataclass(frozen=True, eq=False)
class DifferenceScales(Result):
    """The scales of metrics, by language direction."""

    scales: Sequence[DifferenceScale]

    def records(self) -> dict[str, Any]:
        """Return all scales as plain values, for JSON."""
        return {"scales": [asdict(scale) for scale in self.scales]}

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
        rows = [(scale, part) for scale in self.scales for part in scale.bins]
        note = (
            "human agreement: share of system pairs with such a difference in the metric that "
            "human scores order the same way"
        )
        return [Table(columns, rows, "Human agreement by size of the difference", [note])]


def fit_difference_scales(judged_sets: JudgedSets) -> DifferenceScales:
    """Fit difference scales of metrics on judged systems."""
    scales = fit_scales(judged_sets.sets)
    for metric in judged_sets.metrics:
        segments = [[s for _, _, s in own.rows()] for own in judged_sets.human_data.values()]
        input_kinds = {find_inputs(metric, own) for own in segments}
        inputs = input_kinds.pop() if len(input_kinds) == 1 else ""
        for n, scale in enumerate(scales):
            if scale.metric == metric.spec:
                scales[n] = replace(scale, inputs=inputs, learned=metric.model_ids)
    return DifferenceScales(scales)

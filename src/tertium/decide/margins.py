"""Margins suggested by two runs of one system, such as two random seeds of training or decoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter

from tertium.core.errors import UsageError
from tertium.core.result import Column, Result, Table, percent_column
from tertium.evaluation.human_agreement import find_scales
from tertium.evaluation.noninferiority import (
    MIN_SEGMENTS_TO_TEST,
    measure_difference,
    round_up,
)
from tertium.evaluation.system_scores import Evaluation


@dataclass(frozen=True, kw_only=True)
class SuggestedMargin:
    """The margin of a metric: how far apart two runs of one system can be.

    `caution` says why there is no human agreement, if it was measured with other inputs.
    """

    spec: str
    name: str
    segments: int
    difference: float
    margin: float
    human_agreement: float | None
    decimals: int
    caution: str = ""
    pair: str = ""


@dataclass(frozen=True, kw_only=True)
class SuggestedMargins(Result):
    """The margin of each metric, suggested by two runs."""

    margins: tuple[SuggestedMargin, ...]
    alpha: float

    def tables(self) -> list[Table]:
        """Return a table for each language pair, with one row per metric."""
        pairs = dict.fromkeys(margin.pair for margin in self.margins)
        return [self._pair_table(pair) for pair in pairs]

    def _pair_table(self, pair: str) -> Table:
        margins = [margin for margin in self.margins if margin.pair == pair]
        columns = [
            Column("metric", "name"),
            Column("segments", decimals=0),
            Column(
                "difference",
                decimals=attrgetter("decimals"),
                text=lambda margin, decimals: f"{margin.difference:+z.{decimals}f}",
            ),
            Column("margin", decimals=0, text=lambda margin, _: f"{margin.margin:g}"),
            percent_column("human agreement", "human_agreement"),
        ]
        notes = [
            "margin: the smallest one under which these two runs pass in either direction "
            f"(alpha = {self.alpha:g})",
            "human agreement: share of system pairs with such a difference that human scores order "
            "the same way",
            f"use: --margin {' '.join(f'{own.spec}={own.margin:g}' for own in margins)}",
        ]
        cautions = [margin.caution for margin in margins if margin.caution]
        return Table(columns, margins, pair, notes, cautions)

    def file_table(self, suffix: str = "") -> Table:
        """Return one row per language pair and metric."""
        names = SuggestedMargin.__dataclass_fields__
        return Table([Column(name) for name in names], self.margins)


def suggest_margins(
    evaluations: Mapping[str, Evaluation], *, alpha: float = 0.05
) -> SuggestedMargins:
    """Return the smallest margins under which two runs pass in either direction.

    A smaller margin would find changes in a system that did not change. p-values are adjusted for
    the number of metrics. Margins are rounded up to two significant digits. `evaluations` are named
    by language pair.
    """
    margins = [
        margin
        for pair, evaluation in evaluations.items()
        for margin in _suggest(evaluation, pair, alpha)
    ]
    return SuggestedMargins(margins=tuple(margins), alpha=alpha)


def _suggest(evaluation: Evaluation, pair: str, alpha: float) -> Iterator[SuggestedMargin]:
    if len(evaluation.systems) != 2:
        raise UsageError("margins are suggested from two runs of one system: give two systems")
    first, second = evaluation.systems
    scales, missing_scales = find_scales(evaluation)
    for metric in evaluation.metrics:
        scores = evaluation.scores[second][metric]
        difference = measure_difference(scores, evaluation.scores[first][metric])
        if not difference.is_testable:
            raise UsageError(
                f"{metric}: two runs need scores of at least {MIN_SEGMENTS_TO_TEST} segments"
            )
        margin = round_up(max(map(abs, difference.interval(alpha / len(evaluation.metrics)))))
        scale = scales.get(metric)
        yield SuggestedMargin(
            spec=metric,
            name=evaluation.names[metric],
            segments=len(scores),
            difference=difference.value,
            margin=margin,
            human_agreement=scale.find(margin).agree if scale and margin else None,
            decimals=scores.decimals,
            caution=missing_scales.get(metric, ""),
            pair=pair,
        )

"""Evaluations as tables: what `tertium score`, `tertium compare` and `tertium rank` print."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tertium.evaluation.comparison import FEW, Comparison
from tertium.evaluation.ranking import Ranking
from tertium.evaluation.scoring import Evaluation, as_numbers
from tertium.reporting.tables.table import (
    CHANCE_DECIMALS,
    Cell,
    Table,
    counted_lines,
    number,
    too_few_draws,
)
from tertium.scores import Scores


def system_table(
    evaluation: Evaluation, decimals: int | None = None, *, warnings: bool = True
) -> Table:
    """Systems x metrics, the best of each metric marked, intervals where there are some."""
    rows: list[list[Cell | str]] = [
        [system, *(_score_cell(evaluation, system, m, decimals) for m in evaluation.metrics)]
        for system in evaluation.systems
    ]
    said = warning_lines(evaluation) if warnings else []
    notes = [*_signatures(evaluation), *said]
    return Table(["system", *_column_names(evaluation)], rows, notes=notes)


def document_table(evaluation: Evaluation, decimals: int | None = None) -> Table:
    """Systems and documents x metrics."""
    rows: list[list[Cell | str]] = []
    for system in evaluation.systems:
        by_metric = {
            metric: evaluation.scores[system][metric].documents(evaluation.testset.documents)
            for metric in evaluation.metrics
        }
        for document in dict.fromkeys(evaluation.testset.documents):
            cells = [
                number(by_metric[m][document], _decimals(evaluation.scores[system][m], decimals))
                for m in evaluation.metrics
            ]
            rows.append([system, document, *cells])
    header = ["system", "document", *_column_names(evaluation)]
    return Table(header, rows, left=frozenset({0, 1}))


def segment_table(evaluation: Evaluation, decimals: int | None = None) -> Table:
    """Systems and segments x metrics; segments are named as in the test set."""
    rows: list[list[Cell | str]] = []
    items = as_numbers(evaluation.testset.items)
    for system in evaluation.systems:
        scores = [evaluation.scores[system][metric] for metric in evaluation.metrics]
        for n, item in enumerate(items):
            cells = [number(float(s.segments[n]), _decimals(s, decimals)) for s in scores]
            rows.append([system, Cell(str(item), item), *cells])
    return Table(["system", "segment", *_column_names(evaluation)], rows)


def comparison_table(
    comparison: Comparison, decimals: int | None = None, *, warnings: bool = True
) -> Table:
    """Systems x (score, p against the baseline, cluster) for each metric."""
    header = ["system"]
    for metric in comparison.metrics:
        header += [column_name(comparison, metric), "p", "rank"]
    rows: list[list[Cell | str]] = []
    for place, system in enumerate(comparison.systems):
        shown = system if place else f"{system} (baseline)"
        row: list[Cell | str] = [Cell(shown, system, more={"baseline": int(not place)})]
        for metric in comparison.metrics:
            row.append(_score_cell(comparison, system, metric, decimals))
            row.append(_p_cell(comparison, system, metric) if place else Cell("", ""))
            row.append(number(comparison.clusters[metric][place] or math.nan, 0))
        rows.append(row)
    how = (
        f"p: against {comparison.baseline}, {how_tested(comparison)}, seed {comparison.seed}; "
        f"* marks p < {comparison.alpha:g} (+ better, - worse)"
    )
    groups = "rank: every system of a rank is significantly better than all of later ranks"
    said = warning_lines(comparison) if warnings else []
    notes = [how, groups, *meaning_lines(comparison), *_signatures(comparison), *said]
    return Table(header, rows, notes=notes, together=3)


def meaning_lines(comparison: Comparison) -> list[str]:
    """How often people agree with such a difference, a line for each metric and system."""
    lines = []
    for metric in comparison.metrics:
        for system in comparison.systems[1:]:
            if meaning := comparison.meaning(metric, system):
                scores = comparison.scores[system][metric]
                lines.append(f"{system}: {meaning.say(scores.name, scores.decimals)}")
    return lines


def meaning_table(comparison: Comparison) -> Table:
    """The same as a table."""
    rows: list[list[Cell | str]] = []
    for metric in comparison.metrics:
        for system in comparison.systems[1:]:
            if meaning := comparison.meaning(metric, system):
                places = comparison.scores[system][metric].decimals
                shown = f"{meaning.difference:+z.{places}f}"
                rows.append(
                    [
                        system,
                        comparison.names[metric],
                        Cell(shown, meaning.difference),
                        Cell(f"{100 * meaning.agree:.0f} %", meaning.agree),
                        Cell(f"{meaning.pairs:,}", meaning.pairs),
                        meaning.direction,
                    ]
                )
    header = ["system", "metric", "difference", "people agree", "pairs", "direction"]
    note = (
        f"Difference to {comparison.baseline}, positive where the system is better; in how many of "
        "such pairs of judged systems people put the same one ahead."
    )
    return Table(header, rows, notes=[note], left=frozenset({0, 1, 5}))


def pair_table(comparison: Comparison, metric: str) -> Table:
    """The p-values of all pairs of systems under one metric, and who of two is the better one."""
    systems = comparison.systems
    rows: list[list[Cell | str]] = []
    for a, system in enumerate(systems):
        row: list[Cell | str] = [system]
        for b, other in enumerate(systems):
            p = float(comparison.p_values[metric][a, b])
            better = comparison.difference(metric, system, other) > 0
            row.append(marked_p(p, better, comparison.alpha) if a != b else Cell("", ""))
        rows.append(row)
    note = (
        f"{how_tested(comparison)}; * marks p < {comparison.alpha:g}: "
        "the row's system is better (+) or worse (-) than the column's"
    )
    title = f"p-values of all pairs, {comparison.names[metric]}"
    return Table(["", *systems], rows, title=title, notes=[note])


def long_pair_table(comparison: Comparison) -> Table:
    """The p-values of all pairs of systems, a row for each metric and ordered pair."""
    systems = comparison.systems
    rows: list[list[Cell | str]] = [
        [
            metric,
            system,
            other,
            number(float(comparison.p_values[metric][a, b]), 4),
            number(meaning.agree, 2) if meaning else "",
        ]
        for metric in comparison.metrics
        for a, system in enumerate(systems)
        for b, other in enumerate(systems)
        if a != b
        for meaning in [comparison.meaning(metric, system, other)]
    ]
    header = ["metric", "system", "other", "p", "people agree"]
    return Table(header, rows, left=frozenset({0, 1, 2}))


def how_tested(comparison: Comparison) -> str:
    if comparison.test == "bootstrap":
        return f"paired bootstrap, {comparison.resamples} samples"
    return f"paired randomization, two-sided, {comparison.resamples} trials"


def _column_names(evaluation: Evaluation) -> list[str]:
    return [column_name(evaluation, metric) for metric in evaluation.metrics]


def column_name(evaluation: Evaluation, metric: str) -> str:
    up = evaluation.of_metric(metric)[0].higher_is_better
    return f"{evaluation.names[metric]} {'↑' if up else '↓'}"


def _score_cell(evaluation: Evaluation, system: str, metric: str, decimals: int | None) -> Cell:
    scores = evaluation.scores[system][metric]
    places = _decimals(scores, decimals)
    best = is_best(scores, evaluation.of_metric(metric))
    text, more = number(scores.system, places).text, {}
    if system in evaluation.intervals:
        bounds = evaluation.intervals[system][metric]
        if scores.system == scores.system:
            text += f" (μ = {bounds.mean:z.{places}f} ± {bounds.half_width:z.{places}f})"
        column = column_name(evaluation, metric)
        more = {f"{column} low": bounds.low, f"{column} high": bounds.high}
    return Cell(text, scores.system, "best" if best else "", more)


def _p_cell(comparison: Comparison, system: str, metric: str) -> Cell:
    better = comparison.difference(metric, system) > 0
    cell = marked_p(comparison.p_value(metric, system), better, comparison.alpha)
    meaning = comparison.meaning(metric, system)
    if meaning is None:
        return cell
    column = column_name(comparison, metric)
    return replace(cell, more={f"{column} people agree": meaning.agree})


def marked_p(p: float, better: bool, alpha: float) -> Cell:
    if p != p:
        return number(p, 4)
    if p >= alpha:
        return Cell(f"{p:.4f}  ", p)
    return Cell(f"{p:.4f} *{'+' if better else '-'}"[:9], p, "good" if better else "bad")


def is_best(scores: Scores, every: Sequence[Scores]) -> bool:
    """Whether no other system has a better score, where there are others."""
    choose = max if scores.higher_is_better else min
    known = [other.system for other in every if other.system == other.system]
    return len(every) > 1 and scores.system == choose(known, default=math.nan)


def _decimals(scores: Scores, wanted: int | None) -> int:
    return scores.decimals if wanted is None else wanted


def _signatures(evaluation: Evaluation) -> list[str]:
    first = evaluation.scores[evaluation.systems[0]]
    return [first[metric].signature for metric in evaluation.metrics]


def too_few(evaluation: Evaluation) -> list[str]:
    """Lines where segments or draws are too few for tests, intervals and meanings to be trusted."""
    count, compared = len(evaluation.testset), isinstance(evaluation, Comparison)
    draws: list[str] = []
    if isinstance(evaluation, Comparison):
        draws = too_few_draws(1, evaluation.resamples, evaluation.alpha)
    if not (compared or evaluation.intervals) or count >= FEW:
        return draws
    what, none = (
        ("tests and ", "so p is undefined") if compared else ("", "so intervals are points")
    )
    line = f"{count} segments: {what}intervals on fewer than {FEW} mislead"
    lines = [f"one segment: there is nothing to resample, {none}" if count == 1 else line]
    if isinstance(evaluation, Comparison) and evaluation.scales:
        lines.append(f"fewer than {FEW} segments: what a difference means to people is not said")
    return [*(f"warning: {line}" for line in lines), *draws]


def warning_lines(results: Evaluation) -> list[str]:
    """One line for each kind of warning, with counts by system; then what tests cannot tell."""
    counts: dict[str, dict[str, int]] = {}
    for system in results.systems:
        for metric in results.metrics:
            for kind, count in results.scores[system][metric].warnings.items():
                by_system = counts.setdefault(kind, {})
                by_system[system] = max(count, by_system.get(system, 0))  # of the metrics that say
    return counted_lines(counts) + too_few(results)


def ranking_table(
    ranking: Ranking, decimals: int = CHANCE_DECIMALS, *, warnings: bool = True
) -> Table:
    """A row for each system, from best to worst."""
    places, scores, best = ranking.places, ranking.matrix.system_scores, ranking.best_on
    rows: list[list[Cell | str]] = [
        [
            ranking.matrix.systems[n],
            number(places[n], 0),
            number(float(scores[n]), decimals, "best" if places[n] == 1 else ""),
            number(int(best[n]), 0),
        ]
        for n in ranking.order
    ]
    count = len(ranking.testset)
    size = f"{count} segment{'s' * (count != 1)}, every pair of {len(places)} systems"
    said = counted_lines(ranking.warnings) if warnings else []
    notes = [size, ranking.signature, *said]
    return Table(["system", "rank", "wins", "best on"], rows, notes=notes)


def ranked_segment_table(ranking: Ranking, decimals: int = CHANCE_DECIMALS) -> Table:
    """A row for each segment, with the chance of each system."""
    rows: list[list[Cell | str]] = [
        [item, *(number(float(value), decimals) for value in column)]
        for item, column in zip(ranking.matrix.items, ranking.matrix.values.T, strict=True)
    ]
    return Table(["segment", *ranking.matrix.systems], rows)

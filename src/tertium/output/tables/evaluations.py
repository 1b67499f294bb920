"""Tables of scores, comparisons and rankings, as `score`, `compare` and `rank` print them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tertium.data.testset import TestSet
from tertium.decisions.verdicts import describe_verdict
from tertium.evaluation.comparison import MIN_SEGMENTS, Comparison, describe_missing_scales
from tertium.evaluation.evaluation import Evaluation, as_numbers
from tertium.evaluation.metric_choice import describe_tokenizers
from tertium.evaluation.ranking import Ranking
from tertium.metrics.lexical.sacrebleu_adapter import UNSEGMENTED
from tertium.output.tables.table import (
    WIN_PROBABILITY_DECIMALS,
    Cell,
    Table,
    format_warning_counts,
    number_cell,
    resampling_warnings,
)
from tertium.scores import Scores

NOTE = "note:"
MAX_LISTED = 10  # segments without a score


def system_table(
    evaluation: Evaluation, decimals: int | None = None, *, warnings: bool = True
) -> Table:
    """Return systems x metrics with intervals if computed; the best system is emphasized."""
    rows: list[list[Cell | str]] = [
        [system, *(_score_cell(evaluation, system, m, decimals) for m in evaluation.metrics)]
        for system in evaluation.systems
    ]
    notes = [*_signatures(evaluation), *(format_warnings(evaluation) if warnings else [])]
    return Table(["system", *_metric_headers(evaluation)], rows, notes=notes)


def document_table(evaluation: Evaluation, decimals: int | None = None) -> Table:
    """Return one row per system and document with a column per metric."""
    rows: list[list[Cell | str]] = []
    for system in evaluation.systems:
        by_metric = {
            metric: evaluation.scores[system][metric].documents(evaluation.testset.documents)
            for metric in evaluation.metrics
        }
        for document in dict.fromkeys(evaluation.testset.documents):
            cells = [
                number_cell(
                    by_metric[m][document], _decimals(evaluation.scores[system][m], decimals)
                )
                for m in evaluation.metrics
            ]
            rows.append([system, document, *cells])
    header = ["system", "document", *_metric_headers(evaluation)]
    return Table(header, rows, text_columns=frozenset({0, 1}))


def segment_table(
    evaluation: Evaluation, decimals: int | None = None, *, include_texts: bool = False
) -> Table:
    """Return one row per system and segment with a column per metric, and texts if requested."""
    testset = evaluation.testset
    text_header = _text_header(testset) if include_texts else []
    items = as_numbers(testset.items)
    rows: list[list[Cell | str]] = []
    for system in evaluation.systems:
        scores = [evaluation.scores[system][metric] for metric in evaluation.metrics]
        for n, item in enumerate(items):
            texts = _segment_texts(testset, system, n, len(text_header)) if include_texts else []
            cells = [number_cell(float(s.segments[n]), _decimals(s, decimals)) for s in scores]
            rows.append([system, Cell(str(item), item), *texts, *cells])
    text_columns = frozenset({0, *range(2, 2 + len(text_header))})
    header = ["system", "segment", *text_header, *_metric_headers(evaluation)]
    return Table(header, rows, text_columns=text_columns)


def _text_header(testset: TestSet) -> list[str]:
    """Return names of the text columns: only kinds of text that the test set has."""
    count = max(map(len, testset.references or ()), default=0)
    references = ["reference", *(f"reference {n}" for n in range(2, count + 1))][:count]
    return [*(["source"] if testset.sources else []), "translation", *references]


def _segment_texts(testset: TestSet, system: str, place: int, count: int) -> list[str]:
    texts = [testset.sources[place]] if testset.sources else []
    texts.append(testset.systems[system][place])
    texts += testset.references[place] if testset.references else ()
    return texts + [""] * (count - len(texts))


def comparison_table(
    comparison: Comparison, decimals: int | None = None, *, warnings: bool = True
) -> Table:
    """Return systems x (score, p-value against the baseline, rank cluster) for each metric."""
    header = ["system"]
    for metric in comparison.metrics:
        header += [metric_header(comparison, metric), "p", "rank"]
    rows: list[list[Cell | str]] = []
    for place, system in enumerate(comparison.systems):
        label = system if place else f"{system} (baseline)"
        row: list[Cell | str] = [Cell(label, system, extra_columns={"baseline": int(not place)})]
        for metric in comparison.metrics:
            row.append(_score_cell(comparison, system, metric, decimals))
            row.append(_p_cell(comparison, system, metric) if place else Cell("", ""))
            row.append(number_cell(comparison.clusters[metric][place] or math.nan, 0))
        rows.append(row)
    lines = format_warnings(comparison) if warnings else []
    notes = [
        f"p: difference to {comparison.baseline}, {describe_test(comparison)}, "
        f"seed {comparison.seed}; * p < {comparison.alpha:g} (+ better, - worse)",
        "rank: each system is significantly better than all systems of higher rank numbers",
        *human_agreement_lines(comparison),
        *_signatures(comparison),
        *(line for line in lines if not is_caution(line)),
    ]
    cautions = [line for line in lines if is_caution(line)]
    cautions += filter(None, [describe_verdict(comparison)])
    return Table(header, rows, notes=notes, columns_per_group=3, cautions=cautions)


def human_agreement_lines(comparison: Comparison) -> list[str]:
    """Return how often human scores confirm such a difference, by metric and system."""
    lines = []
    for metric in comparison.metrics:
        for system in comparison.systems[1:]:
            if agreement := comparison.human_agreement(metric, system):
                scores = comparison.scores[system][metric]
                lines.append(f"{system}: {agreement.describe(scores.name, scores.decimals)}")
    return lines


def human_agreement_table(comparison: Comparison) -> Table:
    """Return how often human scores confirm such a difference, as a table."""
    rows: list[list[Cell | str]] = []
    for metric in comparison.metrics:
        for system in comparison.systems[1:]:
            if agreement := comparison.human_agreement(metric, system):
                decimals = comparison.scores[system][metric].decimals
                rows.append(
                    [
                        system,
                        comparison.names[metric],
                        Cell(f"{agreement.difference:+z.{decimals}f}", agreement.difference),
                        Cell(f"{100 * agreement.agree:.0f} %", agreement.agree),
                        Cell(f"{agreement.pairs:,}", agreement.pairs),
                        agreement.direction,
                    ]
                )
    header = ["system", "metric", "difference", "human agreement", "pairs", "direction"]
    note = (
        f"Difference to {comparison.baseline}, positive if the system is better. Human agreement: "
        "share of system pairs with such a difference that human scores order the same way."
    )
    return Table(header, rows, notes=[note], text_columns=frozenset({0, 1, 5}))


def pairwise_p_value_table(comparison: Comparison, metric: str) -> Table:
    """Return the p-values of all pairs of systems under one metric."""
    systems = comparison.systems
    rows: list[list[Cell | str]] = []
    for a, system in enumerate(systems):
        row: list[Cell | str] = [system]
        for b, other in enumerate(systems):
            p = float(comparison.p_values[metric][a, b])
            better = comparison.difference(metric, system, other) > 0
            row.append(p_value_cell(p, better, comparison.alpha) if a != b else Cell("", ""))
        rows.append(row)
    note = (
        f"{describe_test(comparison)}; * p < {comparison.alpha:g}: "
        "the row is better (+) or worse (-) than the column"
    )
    title = f"p-values of all pairs, {comparison.names[metric]}"
    return Table(["", *systems], rows, title=title, notes=[note])


def pairwise_p_value_list(comparison: Comparison) -> Table:
    """Return the p-values of all pairs of systems, one row per metric and ordered pair."""
    systems = comparison.systems
    rows: list[list[Cell | str]] = [
        [
            metric,
            system,
            other,
            number_cell(float(comparison.p_values[metric][a, b]), 4),
            number_cell(agreement.agree, 2) if agreement else "",
        ]
        for metric in comparison.metrics
        for a, system in enumerate(systems)
        for b, other in enumerate(systems)
        if a != b
        for agreement in [comparison.human_agreement(metric, system, other)]
    ]
    header = ["metric", "system", "other", "p", "human agreement"]
    return Table(header, rows, text_columns=frozenset({0, 1, 2}))


def describe_test(comparison: Comparison) -> str:
    """Return the significance test and its number of resamples."""
    if comparison.test == "bootstrap":
        return f"paired bootstrap, {comparison.resamples} resamples"
    return f"paired randomization, two-sided, {comparison.resamples} trials"


def _metric_headers(evaluation: Evaluation) -> list[str]:
    return [metric_header(evaluation, metric) for metric in evaluation.metrics]


def metric_header(evaluation: Evaluation, metric: str) -> str:
    """Return a metric's name with an arrow: up if higher is better."""
    higher_is_better = evaluation.metric_scores(metric)[0].higher_is_better
    return f"{evaluation.names[metric]} {'↑' if higher_is_better else '↓'}"


def _score_cell(evaluation: Evaluation, system: str, metric: str, decimals: int | None) -> Cell:
    scores = evaluation.scores[system][metric]
    digits = _decimals(scores, decimals)
    best = is_best(scores, evaluation.metric_scores(metric))
    text, bound_columns = number_cell(scores.system, digits).text, {}
    if system in evaluation.intervals:
        bounds = evaluation.intervals[system][metric]
        if scores.system == scores.system:
            text += f" (μ = {bounds.mean:z.{digits}f} ± {bounds.half_width:z.{digits}f})"
        column = metric_header(evaluation, metric)
        bound_columns = {f"{column} low": bounds.low, f"{column} high": bounds.high}
    return Cell(text, scores.system, "best" if best else "", bound_columns)


def _p_cell(comparison: Comparison, system: str, metric: str) -> Cell:
    better = comparison.difference(metric, system) > 0
    cell = p_value_cell(comparison.p_value(metric, system), better, comparison.alpha)
    agreement = comparison.human_agreement(metric, system)
    if agreement is None:
        return cell
    column = metric_header(comparison, metric)
    return replace(cell, extra_columns={f"{column} human agreement": agreement.agree})


def p_value_cell(p: float, better: bool, alpha: float) -> Cell:
    """Return a p-value, marked with * and the sign of the difference if significant."""
    if p != p:
        return number_cell(p, 4)
    if p >= alpha:
        return Cell(f"{p:.4f}  ", p)
    return Cell(f"{p:.4f} *{'+' if better else '-'}"[:9], p, "good" if better else "bad")


def is_best(scores: Scores, system_scores: Sequence[Scores]) -> bool:
    """Return whether no other system has a better score; False for a single system."""
    choose = max if scores.higher_is_better else min
    defined = [other.system for other in system_scores if other.system == other.system]
    return len(system_scores) > 1 and scores.system == choose(defined, default=math.nan)


def _decimals(scores: Scores, requested: int | None) -> int:
    return scores.decimals if requested is None else requested


def _signatures(evaluation: Evaluation) -> list[str]:
    first = evaluation.scores[evaluation.systems[0]]
    return [first[metric].signature for metric in evaluation.metrics]


def small_sample_warnings(evaluation: Evaluation) -> list[str]:
    """Warn if segments or resamples are too few for tests, intervals and human agreement."""
    count = len(evaluation.testset)
    comparison = evaluation if isinstance(evaluation, Comparison) else None
    resampling: list[str] = []
    if comparison:
        resampling = resampling_warnings(1, comparison.resamples, comparison.alpha)
    if not (comparison or evaluation.intervals) or count >= MIN_SEGMENTS:
        return resampling
    if count == 1:
        effect = "p is undefined" if comparison else "intervals have no width"
        lines = [f"one segment: nothing to resample; {effect}"]
    else:
        statistics = "tests and intervals" if comparison else "intervals"
        lines = [f"{count} segments: {statistics} are unreliable below {MIN_SEGMENTS} segments"]
    if comparison and comparison.scales:
        lines.append(
            f"fewer than {MIN_SEGMENTS} segments: human agreement with the difference not shown"
        )
    return [*(f"warning: {line}" for line in lines), *resampling]


def is_caution(line: str) -> bool:
    """Tell whether a warning is about all scores of a metric, such as how texts are split."""
    return UNSEGMENTED in line or line.startswith(NOTE)


def tokenizer_notes(testset: TestSet, specs: Sequence[str]) -> list[str]:
    """Return a line for each metric that splits texts in a language with its own tokenizer."""
    return [f"{NOTE} {sentence}" for sentence in describe_tokenizers(testset, specs)]


def format_warnings(evaluation: Evaluation) -> list[str]:
    """Return lines on tokenizers, human agreement, warnings with counts, and small samples."""
    counts: dict[str, dict[str, int]] = {}
    for system in evaluation.systems:
        for metric in evaluation.metrics:
            for kind, count in evaluation.scores[system][metric].warnings.items():
                by_system = counts.setdefault(kind, {})
                by_system[system] = max(count, by_system.get(system, 0))  # metrics may differ
    notes = tokenizer_notes(evaluation.testset, evaluation.metrics)
    if isinstance(evaluation, Comparison):
        notes += [f"{NOTE} {text}" for text in describe_missing_scales(evaluation).values()]
    lines = [*notes, *format_warning_counts(counts), *_list_missing_scores(evaluation)]
    return [*lines, *small_sample_warnings(evaluation)]


def _list_missing_scores(evaluation: Evaluation) -> list[str]:
    """Return a line for each system and metric without a score for some segments."""
    lines = []
    for system in evaluation.systems:
        for metric in evaluation.metrics:
            is_missing = np.isnan(evaluation.scores[system][metric].segments)
            items = [evaluation.testset.items[n] for n in np.flatnonzero(is_missing)]
            if items and len(items) < len(is_missing):
                more = f" and {len(items) - MAX_LISTED} more" if len(items) > MAX_LISTED else ""
                names = ", ".join(items[:MAX_LISTED])
                lines.append(f"no score under {metric} for {system}: segment {names}{more}")
    return lines


def ranking_table(
    ranking: Ranking, decimals: int = WIN_PROBABILITY_DECIMALS, *, warnings: bool = True
) -> Table:
    """Return one row per system, best first."""
    ranks, scores, best = ranking.ranks, ranking.matrix.system_scores, ranking.best_on
    rows: list[list[Cell | str]] = [
        [
            ranking.matrix.systems[n],
            number_cell(ranks[n], 0),
            number_cell(float(scores[n]), decimals, "best" if ranks[n] == 1 else ""),
            number_cell(int(best[n]), 0),
        ]
        for n in ranking.order
    ]
    count = len(ranking.testset)
    lines = format_ranking_warnings(ranking) if warnings else []
    notes = [
        f"{count} segment{'s' * (count != 1)}, all pairs of {len(ranks)} systems",
        ranking.signature,
        *(line for line in lines if not is_caution(line)),
    ]
    header = ["system", "rank", "win probability", "best on"]
    return Table(header, rows, notes=notes, cautions=[line for line in lines if is_caution(line)])


def format_ranking_warnings(ranking: Ranking) -> list[str]:
    """Return lines on tokenizers and on warnings with counts by system."""
    notes = tokenizer_notes(ranking.testset, [ranking.ranker.spec])
    return [*notes, *format_warning_counts(ranking.warnings)]


def ranked_segment_table(ranking: Ranking, decimals: int = WIN_PROBABILITY_DECIMALS) -> Table:
    """Return one row per segment with the win probability of each system."""
    rows: list[list[Cell | str]] = [
        [item, *(number_cell(float(value), decimals) for value in column)]
        for item, column in zip(ranking.matrix.items, ranking.matrix.values.T, strict=True)
    ]
    return Table(["segment", *ranking.matrix.systems], rows)

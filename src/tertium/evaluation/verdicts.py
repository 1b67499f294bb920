"""A verdict in words: what a comparison of systems allows to conclude, in one sentence.

The paired bootstrap finds too many differences between equal systems, most on small test sets. The
verdict therefore also needs the test of the gate (`noninferiority`), on at least ten segments.

If metrics disagree, people decide. The number of segments that they should judge assumes that they
see a difference as large, relative to its spread over segments, as the metric that sees most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.evaluation.noninferiority import MIN_SEGMENTS_TO_TEST, measure_difference, round_up
from tertium.evaluation.paired_tests import assign_clusters
from tertium.evaluation.reference_copies import find_reference_copies
from tertium.evaluation.system_scores import MAX_UNSEGMENTED_SHARE, MIN_SEGMENTS, Evaluation
from tertium.metrics.lexical.sacrebleu_adapter import UNSEGMENTED

if TYPE_CHECKING:
    from tertium.evaluation.comparison import Comparison

MAX_SEGMENTS = 1_000_000  # larger numbers are not worth a suggestion


def find_unfit_metrics(evaluation: Evaluation) -> dict[str, str]:
    """Return metrics that cannot split the texts into words, with a sentence about each."""
    unfit: dict[str, str] = {}
    for metric in evaluation.metrics:
        for scores in evaluation.metric_scores(metric):
            if scores.warnings.get(UNSEGMENTED, 0) > MAX_UNSEGMENTED_SHARE * len(scores):
                unfit[metric] = (
                    f"{evaluation.names[metric]} is unfit for these texts: it splits words at "
                    "blanks, and the language has none; choose a tokenizer, or chrf"
                )
    return unfit


def describe_verdict(comparison: Comparison) -> str:
    """Return what to conclude from a comparison; empty with one segment or without a metric.

    Metrics that are unfit for the language do not count. They are named first, and so are systems
    that equal the reference too often.
    """
    unfit = find_unfit_metrics(comparison)
    metrics = [metric for metric in comparison.metrics if metric not in unfit]
    tested = [m for m in metrics if _is_tested(comparison, m)]
    copies = find_reference_copies(comparison.testset)
    warning = "".join(f"{sentence}. " for sentence in (*unfit.values(), *copies.values()))
    if not tested:
        return f"{warning}No metric of this comparison can decide." if unfit else warning.strip()
    count = len(comparison.testset)
    if count < MIN_SEGMENTS_TO_TEST:
        return f"{warning}{count} segments are too few for a verdict: use at least 10."
    describe = _describe_two if len(comparison.systems) == 2 else _describe_many
    return warning + describe(_test_strictly(comparison, tested), tested)


def _test_strictly(comparison: Comparison, metrics: Iterable[str]) -> Comparison:
    """Return a comparison with the larger p-value of two tests if its test is the bootstrap."""
    if comparison.test != "bootstrap":
        return comparison
    p_values = {metric: _strict_p_values(comparison, metric) for metric in metrics}
    clusters = {
        metric: assign_clusters(comparison.metric_scores(metric), own, alpha=comparison.alpha)
        for metric, own in p_values.items()
    }
    return replace(comparison, p_values=p_values, clusters=clusters)


def _strict_p_values(comparison: Comparison, metric: str) -> FloatArray:
    scores, matrix = comparison.metric_scores(metric), comparison.p_values[metric].copy()
    for first, second in combinations(range(len(scores)), 2):
        own = measure_difference(scores[first], scores[second])
        p = min(1.0, 2 * min(own.p_less(0.0), own.p_greater(0.0)))
        matrix[first, second] = matrix[second, first] = np.maximum(matrix[first, second], p)
    return matrix


def _is_tested(comparison: Comparison, metric: str) -> bool:
    matrix = comparison.p_values[metric]
    return bool((matrix[0, 1:] == matrix[0, 1:]).all())


def _describe_two(comparison: Comparison, metrics: Sequence[str]) -> str:
    first, second = comparison.systems
    preferred: dict[str, list[str]] = {}
    for metric in metrics:
        if comparison.p_value(metric, second) < comparison.alpha:
            better = second if comparison.difference(metric, second) > 0 else first
            preferred.setdefault(better, []).append(metric)
    if not preferred:
        return _describe_tie(comparison, metrics)
    if len(preferred) == 2:
        groups = [_list_preferences(comparison, own, s) for s, own in preferred.items()]
        return f"{', '.join(groups)}: no decision; {_ask_people(comparison, metrics)}."
    ((better, own),) = preferred.items()
    other = second if better == first else first
    rest = [metric for metric in metrics if metric not in own]
    open_metrics = f"; {_list_names(comparison, rest)} cannot tell" if rest else ""
    reasons = _list(_name_with_p(comparison, metric) for metric in own)
    return f"{better} is better than {other} under {reasons}{open_metrics}: choose {better}."


def _describe_tie(comparison: Comparison, metrics: Sequence[str]) -> str:
    first, second = comparison.systems
    if all(comparison.difference(metric, second) == 0 for metric in metrics):
        return f"{first} and {second} have the same scores: keep {first}."
    smallest = min(metrics, key=lambda metric: comparison.p_value(metric, second))
    p = _format_p(comparison.p_value(smallest, second))
    subject = "No metric separates" if len(metrics) > 1 else "The metric does not separate"
    count = _segments_for_people(comparison, metrics, first, second)
    more = math.ceil(round_up(max(1, count - len(comparison.testset))))
    advice = f"; about {more:,} more segments would show such a difference" if count else ""
    name = comparison.names[smallest]
    return f"{subject} {first} and {second} ({name}: {p}): keep {first}{advice}."


def _describe_many(comparison: Comparison, metrics: Sequence[str]) -> str:
    """Describe systems that are better than all others under some metric."""
    winners: dict[str, list[str]] = {}
    groups: list[set[str]] = []
    for metric in metrics:
        clusters = zip(comparison.systems, comparison.clusters[metric], strict=True)
        group = [system for system, cluster in clusters if cluster == 1]
        groups.append({*group})
        if len(group) == 1:
            winners.setdefault(group[0], []).append(metric)
    if len(winners) > 1:
        texts = [f"{_list_names(comparison, own)} {_prefer(own)} {s}" for s, own in winners.items()]
        people = _ask_people(comparison, metrics, [*winners][:2])
        return f"{', '.join(texts)}: no decision; {people}."
    common = [s for s in comparison.systems if all(s in group for group in groups)]
    if winners:
        ((best, own),) = winners.items()
        rest = [metric for metric in metrics if metric not in own]
        if best in common:
            open_metrics = f"; {_list_names(comparison, rest)} cannot tell" if rest else ""
            names = _list_names(comparison, own)
            return f"{best} is better than all others under {names}{open_metrics}: choose {best}."
    systems = common or [s for s in comparison.systems if any(s in group for group in groups)]
    return f"No system is better than all others: {_list(systems)} share the first rank."


def _list_preferences(comparison: Comparison, metrics: Sequence[str], system: str) -> str:
    p_values = [_name_with_p(comparison, metric) for metric in metrics]
    return f"{_list(p_values)} {_prefer(metrics)} {system}"


def _prefer(metrics: Sequence[str]) -> str:
    return "prefers" if len(metrics) == 1 else "prefer"


def _name_with_p(comparison: Comparison, metric: str) -> str:
    p = comparison.p_value(metric, comparison.systems[1])
    return f"{comparison.names[metric]} ({_format_p(p)})"


def _list_names(comparison: Comparison, metrics: Iterable[str]) -> str:
    return _list(comparison.names[metric] for metric in metrics)


def _list(texts: Iterable[str]) -> str:
    """Join texts as in a sentence.

    >>> _list(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last


def _format_p(p: float) -> str:
    return "p < 0.001" if p < 0.0005 else f"p = {p:.3f}"


def _ask_people(
    comparison: Comparison, metrics: Sequence[str], systems: Sequence[str] | None = None
) -> str:
    first, second = systems or comparison.systems
    count = _segments_for_people(comparison, metrics, first, second)
    segments = f"about {round_up(max(count, MIN_SEGMENTS)):,.0f} segments" if count else "segments"
    pair = f" of {first} and {second}" if len(comparison.systems) > 2 else ""
    return f"have people judge {segments}{pair}: `tertium plan`"


def _segments_for_people(
    comparison: Comparison, metrics: Sequence[str], first: str, second: str
) -> float:
    """Return how many segments a test needs for the clearest difference; 0 for too many."""
    counts = []
    for metric in metrics:
        scores = [comparison.scores[system][metric] for system in (second, first)]
        own = measure_difference(*scores)
        counts.append(own.segments_to_decide(0.0, comparison.alpha / 2))
    smallest = min(counts, default=math.inf)
    return smallest if smallest < MAX_SEGMENTS else 0.0

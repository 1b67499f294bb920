"""A verdict in words: what a comparison of systems allows to conclude, in one sentence.

The paired bootstrap finds too many differences between equal systems, most on small test sets. The
verdict therefore also needs the test of the gate (`noninferiority`), on at least ten segments.

If metrics disagree, people decide. The number of segments that they should judge assumes that they
see a difference as large, relative to its spread over segments, as the metric that sees most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.scores import Scores
from tertium.evaluation.noninferiority import MIN_SEGMENTS_TO_TEST, measure_difference, round_up
from tertium.evaluation.paired_tests import assign_clusters
from tertium.evaluation.reference_copies import find_reference_copies
from tertium.evaluation.significance_options import Test
from tertium.evaluation.system_scores import MIN_SEGMENTS, Evaluation, find_unfit_metrics

MAX_SEGMENTS = 1_000_000  # larger numbers are not worth a suggestion


def describe_verdict(
    evaluation: Evaluation, p_values: Mapping[str, FloatArray], *, test: Test, alpha: float
) -> str:
    """Return what to conclude from tests of systems; empty with one segment or without a metric.

    Metrics that are unfit for the language do not count. They are named first, and so are systems
    that equal the reference too often. If the test is the bootstrap, the larger p-value of two
    tests counts.
    """
    unfit, copies = find_unfit_metrics(evaluation), find_reference_copies(evaluation.testset)
    warning = "".join(f"{sentence}. " for sentence in (*unfit.values(), *copies.values()))
    tested = {
        metric: p_values[metric]
        for metric in evaluation.metrics
        if metric not in unfit and not np.isnan(p_values[metric][0]).any()
    }
    if not tested:
        return f"{warning}No metric of this comparison can decide." if unfit else warning.strip()
    count = len(evaluation.testset)
    if count < MIN_SEGMENTS_TO_TEST:
        return f"{warning}{count} segments are too few for a verdict: use at least 10."
    if test == "bootstrap":
        tested = {
            metric: _strict_p_values(evaluation.metric_scores(metric), p)
            for metric, p in tested.items()
        }
    verdict = _Verdict(evaluation, tested, alpha)
    return warning + verdict.describe()


def _strict_p_values(scores: Sequence[Scores], p_values: FloatArray) -> FloatArray:
    matrix = p_values.copy()
    for first, second in combinations(range(len(scores)), 2):
        own = measure_difference(scores[first], scores[second])
        p = min(1.0, 2 * min(own.p_less(0.0), own.p_greater(0.0)))
        matrix[first, second] = matrix[second, first] = np.maximum(matrix[first, second], p)
    return matrix


@dataclass(frozen=True, eq=False)
class _Verdict:
    """Sentences about an evaluation, given the p-values of metrics that can decide."""

    evaluation: Evaluation
    p_values: Mapping[str, FloatArray]
    alpha: float

    def describe(self) -> str:
        """Describe the system that is better than all others under some metric, if there is one."""
        winners: dict[str, list[str]] = {}
        groups: list[list[str]] = []
        systems = self.evaluation.systems
        for metric, p_values in self.p_values.items():
            scores = self.evaluation.metric_scores(metric)
            clusters = assign_clusters(scores, p_values, alpha=self.alpha)
            groups.append([s for s, cluster in zip(systems, clusters, strict=True) if cluster == 1])
            if len(groups[-1]) == 1:
                winners.setdefault(groups[-1][0], []).append(metric)
        if len(winners) > 1:
            return self._no_decision(winners)
        common = [s for s in systems if all(s in group for group in groups)]
        if winners and {*winners} & {*common}:
            ((best, metrics),) = winners.items()
            rivals = [system for system in systems if system != best]
            rival = rivals[0] if len(rivals) == 1 else "all others"
            rest = [metric for metric in self.p_values if metric not in metrics]
            names = _list(self.evaluation.names[metric] for metric in rest) if rest else ""
            undecided = f"; {names} cannot tell" if rest else ""
            reasons = f"under {self._describe(metrics)}{undecided}"
            return f"{best} is better than {rival} {reasons}: choose {best}."
        if len(systems) == 2:
            return self._of_tie(*systems)
        shared = common or [s for s in systems if any(s in group for group in groups)]
        return f"No system is better than all others: {_list(shared)} share the first rank."

    def _of_tie(self, first: str, second: str) -> str:
        if all(self.evaluation.difference(metric, second) == 0 for metric in self.p_values):
            return f"{first} and {second} have the same scores: keep {first}."
        smallest = min(self.p_values, key=lambda metric: float(self.p_values[metric][0, 1]))
        has_several = len(self.p_values) > 1
        subject = "No metric separates" if has_several else "The metric does not separate"
        reason = f"{self.evaluation.names[smallest]}: {self._format_p(smallest)}"
        count = self._segments_to_decide(first, second)
        more = math.ceil(round_up(max(1, count - len(self.evaluation.testset))))
        advice = f"; about {more:,} more segments would show such a difference" if count else ""
        return f"{subject} {first} and {second} ({reason}): keep {first}{advice}."

    def _no_decision(self, winners: Mapping[str, Sequence[str]]) -> str:
        texts = [
            f"{self._describe(metrics)} {'prefers' if len(metrics) == 1 else 'prefer'} {system}"
            for system, metrics in winners.items()
        ]
        first, second, *_ = winners
        count = self._segments_to_decide(first, second)
        number = f"about {round_up(max(count, MIN_SEGMENTS)):,.0f} " if count else ""
        of_pair = f" of {first} and {second}" if len(self.evaluation.systems) > 2 else ""
        people = f"have people judge {number}segments{of_pair}: `tertium plan`"
        return f"{', '.join(texts)}: no decision; {people}."

    def _describe(self, metrics: Iterable[str]) -> str:
        """Return the names of metrics; with two systems, also the p-values of the difference."""
        names = self.evaluation.names
        if len(self.evaluation.systems) > 2:
            return _list(names[metric] for metric in metrics)
        return _list(f"{names[metric]} ({self._format_p(metric)})" for metric in metrics)

    def _format_p(self, metric: str) -> str:
        p = float(self.p_values[metric][0, 1])
        return "p < 0.001" if p < 0.0005 else f"p = {p:.3f}"

    def _segments_to_decide(self, first: str, second: str) -> float:
        """Return how many segments a test needs for the clearest difference; 0 for too many."""
        scores = self.evaluation.scores
        counts = [
            measure_difference(scores[second][metric], scores[first][metric]).segments_to_decide(
                0.0, self.alpha / 2
            )
            for metric in self.p_values
        ]
        smallest = min(counts, default=math.inf)
        return smallest if smallest < MAX_SEGMENTS else 0.0


def _list(texts: Iterable[str]) -> str:
    """Join texts as in a sentence.

    >>> _list(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last

"""The ranking protocols of WMT metrics tasks: statistics, weights and tests.

Each language pair has two tasks: soft pairwise accuracy of systems and acc_eq* of segments. The
weighted mean ranks the metrics; metrics that do not differ significantly share a rank. See
docs/meta-evaluation for the definition of every step.

Permutation tests between metrics that keep every draw, so that tests can be averaged.

Draws of different tasks are independent, so their weighted sum is a draw of the average over tasks.
mt-metrics-eval tests its final ranking this way.

    soft pairwise accuracy    PERM-BOTH (Deutsch et al. 2021): both metrics are standardized, and
                              each judged translation swaps them with probability 1/2
    acc_eq                    each pair of translations that only one metric gets right goes to
                              either metric with probability 1/2
"""

from __future__ import annotations

import math
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import Float32Array, FloatArray, iterate_blocks
from tertium.core.errors import DataError, UnknownNameError, UsageError
from tertium.core.resampling import (
    check_resamples,
    draw_heads,
    draw_sign_block,
    make_rng,
)
from tertium.core.result import Cell, Column, Emphasis, Result, Table, format_number
from tertium.core.runtime import track_progress
from tertium.meta.accuracy import count_wins
from tertium.meta.agreement import Layout, make_layout, select_judged_columns, standardize
from tertium.meta.agreement_results import (
    MetricEstimates,
    TaskResult,
    dim_cells,
    nan_p_values,
    rank_column,
)
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.tasks import Task

WORKERS = 4  # tasks in parallel; each has its own random generator
SHORT_NAMES = {"spa": "SPA", "acc-eq*": "acc*"}  # of the statistics, in column headers
TESTS = {"spa": "perm-both", "acc-eq*": "pairs"}


class Protocol(NamedTuple):
    """The rules of one year; `caveats` list what is assumed rather than published."""

    name: str
    title: str
    lps: tuple[str, ...]
    caveats: tuple[str, ...] = ()


PROTOCOLS: Mapping[str, Protocol] = {
    "wmt24": Protocol(name="wmt24", title="WMT24 metrics task", lps=("en-de", "en-es", "ja-zh")),
    "wmt25": Protocol(
        name="wmt25",
        title="WMT25 evaluation task, quality scores",
        lps=tuple(
            "cs-de cs-uk en-ar en-bho en-cs en-et en-is en-it en-ja en-ko en-mas en-ru en-sr en-uk "
            "en-zh ja-zh".split()
        ),
        caveats=("assumed: statistics, tests and equal weights are those of WMT24",),
    ),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class ProtocolResults(Result):
    """The results of a protocol: estimates of each task and of their mean."""

    protocol: Protocol
    metrics: tuple[str, ...]
    tasks: tuple[TaskResult, ...]
    average: MetricEstimates
    resamples: int
    seed: int
    excluded_counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def missing(self) -> tuple[str, ...]:
        """The language pairs of the shared task that are not among the sets."""
        here = {task.task.label for task in self.tasks}
        return tuple(lp for lp in self.protocol.lps if lp not in here)

    def records(self) -> dict[str, Any]:
        """Return all results as plain values, for JSON."""
        tasks = [record for task in self.tasks for record in task.records()]
        for record in tasks:
            record |= {"test": TESTS[record["statistic"]], "weight": 1 / len(self.tasks)}
        average = []
        for n, own in enumerate(self.average.estimates):
            record = {"metric": own.metric, "value": own.value, "rank": own.rank}
            average.append({**record, "p_better_than": self.average.p_better_than(n)})
        return {
            "protocol": self.protocol.name,
            "missing": list(self.missing),
            "assumed": list(self.protocol.caveats),
            "samples": self.resamples,
            "seed": self.seed,
            "tasks": tasks,
            "average": average,
            "judgments_left_out": self.excluded_counts,
        }

    def tables(self) -> list[Table]:
        """Return metrics x (rank, average, `value (rank)` by task), best average first."""
        average = _rank_columns("average", self.average)[0]
        columns = [
            Column("metric", self.metrics.__getitem__),
            rank_column("rank", self.average.ranks),
            replace(average, text=None),
        ]
        for task in self.tasks:
            name = f"{task.task.label} {SHORT_NAMES[task.task.statistic]}"
            columns += _rank_columns(name, task)
        title, *counts = dim_cells("human scores", [t.agreement.judged_count for t in self.tasks])
        count = f"{len(self.tasks)} task{'s' * (len(self.tasks) != 1)}"
        table = Table(
            columns,
            self.average.order,
            title=f"{self.protocol.title}: {count} of equal weight",
            notes=self._notes(),
            footer=[[title, Cell(""), Cell(""), *counts]],
        )
        return [table]

    def _notes(self) -> list[str]:
        ranks = "no significance tests: metrics are ranked by value"
        if self.resamples:
            ranks = (
                "metrics with the same rank do not differ significantly (SPA: perm-both, acc*: "
                f"random pairs; p <= {self.average.alpha:.3g} one-sided, {self.resamples} "
                f"resamples, seed {self.seed})"
            )
        notes = [
            ranks,
            "SPA: soft pairwise accuracy of systems; acc*: acc_eq with tie calibration, by item",
        ]
        incomplete = [
            f"{task.task.label} {task.most_excluded:,}"
            for task in self.tasks
            if task.most_excluded and task.task.statistic == "acc-eq*"
        ]
        if incomplete:
            notes.append(f"pairs without a metric's score (at most): {', '.join(incomplete)}")
        if self.missing:
            notes.append(f"the shared task also had {', '.join(self.missing)}")
        return [*notes, *self.average.ceiling_notes(), *self.protocol.caveats]


def _rank_columns(name: str, own: MetricEstimates) -> list[Column]:
    """Return columns of the estimates of metrics: values, and ranks for files."""
    values = own.values.tolist()
    ranks = own.ranks

    def text(metric: int, decimals: int) -> str:
        value = format_number(values[metric], decimals)
        rank = ranks[metric]
        return value if rank is None else f"{value} ({rank})"

    def mark(metric: int) -> Emphasis:
        return "best" if ranks[metric] == 1 else ""

    return [
        Column(name, values.__getitem__, 3, text=text, mark=mark, adjustable=True),
        Column(f"{name} rank", ranks.__getitem__, 0, show=False),
    ]


def run_protocol(
    sets: Sequence[AlignedScores],
    name: str = "wmt24",
    *,
    resamples: int = 1000,
    alpha: float = 0.05,
    seed: int = 12345,
) -> ProtocolResults:
    """Rank metrics by the rules of a shared task; `resamples=0` ranks by value without tests."""
    check_resamples(resamples, least=0)
    if name not in PROTOCOLS:
        raise UnknownNameError("protocol", name, PROTOCOLS)
    protocol = PROTOCOLS[name]
    unscored = next((s.name for s in sets if np.isnan(s.human).all()), None)
    if unscored is not None:
        raise UsageError(f"{unscored}: {protocol.title} needs human segment scores")
    evaluation = MetaEvaluation(sets, seed=seed)
    tasks = [  # in the order of the shared task's table
        Task(sets=(name,), statistic=statistic, test="none", resamples=0, alpha=alpha)
        for name in sorted(evaluation.sets)
        for statistic in SHORT_NAMES
    ]

    def run(task: Task) -> tuple[TaskResult, PermutationTest | None]:
        result = evaluation.run_task(task)
        if not resamples:
            return result, None
        aligned = evaluation.sets[task.sets[0]]
        human, scores = select_judged_columns(aligned.name, aligned.human, aligned.scores)
        rng = make_rng(seed, zlib.crc32(task.name.encode()), 1)
        if task.statistic == "spa":
            return result, permute_soft_accuracy(human, scores, resamples=resamples, rng=rng)
        layout = make_layout(human, scores, "item")
        epsilon = np.nan_to_num(np.asarray(result.agreement.epsilon))
        return result, permute_accuracy(layout, epsilon, resamples=resamples, rng=rng)

    with ThreadPoolExecutor(min(WORKERS, os.cpu_count() or 1)) as pool:
        finished = pool.map(run, tasks)  # cancels the waiting tasks after Ctrl-C
        results = [next(finished) for _ in track_progress(tasks, "tasks")]
    alpha = math.nextafter(alpha, 1)  # mt-metrics-eval counts an equal p-value as significant
    weight = 1.0 / len(results)
    values: FloatArray = np.sum([weight * result.values for result, _ in results], axis=0)
    tests = [test for _, test in results if test is not None]
    average = MetricEstimates(
        metrics=evaluation.metrics,
        values=values,
        p_values=_p_values(values, average_tests(tests) if tests else None),
        replicates=np.zeros((0, len(values))),
        alpha=alpha,
    )
    return ProtocolResults(
        protocol=protocol,
        metrics=evaluation.metrics,
        tasks=tuple(
            replace(result, p_values=_p_values(result.values, test), alpha=alpha)
            for result, test in results
        ),
        average=average,
        resamples=resamples,
        seed=seed,
    )


def _p_values(values: FloatArray, test: PermutationTest | None) -> FloatArray:
    """Return the p-values of a test; NaN without a test, and for metrics without a value."""
    p = nan_p_values(len(values)) if test is None else test.p_values
    p[np.isnan(values)] = p[:, np.isnan(values)] = np.nan
    return p


BLOCK = 1 << 23  # array elements in memory at a time
CACHE_BLOCK = 1 << 16  # array elements that fit the processor cache
Gaps = Callable[[Float32Array, Float32Array], Float32Array]


class PermutationTest(NamedTuple):
    """Observed differences between metrics and their draws under the null hypothesis."""

    observed: FloatArray
    draws: Float32Array

    @property
    def p_values(self) -> FloatArray:
        """The share of draws with at least the observed difference, as in mt-metrics-eval."""
        slack = 1e-6 * (1.0 + np.abs(self.observed))  # draws have single precision
        share: FloatArray = np.mean(self.draws >= self.observed - slack, axis=0)
        return np.where(np.isnan(self.observed), np.nan, share)


def average_tests(tests: Sequence[PermutationTest]) -> PermutationTest:
    """Return the test of the mean over tasks."""
    weight = 1.0 / len(tests)
    observed: FloatArray = np.sum([weight * test.observed for test in tests], axis=0)
    draws: Float32Array = np.sum([np.float32(weight) * test.draws for test in tests], axis=0)
    return PermutationTest(observed, draws)


def permute_accuracy(
    layout: Layout, epsilon: ArrayLike, *, resamples: int, rng: np.random.Generator
) -> PermutationTest:
    """Test acc_eq with one epsilon per metric; like `accuracy_pair_test`, but keeps the draws."""
    wins, weights = count_wins(layout, epsilon)  # (weights, metrics, metrics), (weights,)
    size = (~np.isnan(layout.human)).sum(axis=-1)
    weights = weights / (size > 1).sum()
    metrics = wins.shape[1]
    left, right = np.triu_indices(metrics, k=1)
    decided = (wins + np.swapaxes(wins, 1, 2))[:, left, right].astype(np.int64)
    draws = np.zeros((resamples, metrics, metrics), dtype=np.float32)
    for n, weight in zip(decided, weights, strict=True):
        flips = weight * (2.0 * draw_heads(n, resamples, rng) - n)
        draws[:, left, right] += flips.astype(np.float32)
    draws -= np.swapaxes(draws, 1, 2)
    observed = np.tensordot(weights, wins - np.swapaxes(wins, 1, 2), axes=1)
    absent = np.isnan(layout.metrics).all(axis=(1, 2))
    observed[absent] = observed[:, absent] = np.nan
    return PermutationTest(observed, draws)


def permute_soft_accuracy(
    human: ArrayLike, metrics: ArrayLike, *, resamples: int, rng: np.random.Generator
) -> PermutationTest:
    """Run PERM-BOTH for soft pairwise accuracy on the translations that all metrics scored.

    A mixture of two metrics takes each translation's score from one or the other. Its soft accuracy
    needs a p-value for every pair of systems: the share of sign flips with at least the summed
    difference T. The flips have mean 0 and variance s^2, the sum of squared differences, so p is
    the normal tail at T / s. T and the squares in s^2 are exact for each mixture. The products of
    two systems' scores are replaced by their mean over mixtures, an error of p far below that of a
    thousand flips. All pairs of metrics then need only the products of swaps with scores and
    squares.
    """
    check_resamples(resamples)
    layout = make_layout(human, metrics, "system")
    count = len(layout.metrics)
    at = np.flatnonzero(~np.isnan(layout.metrics).all(axis=(1, 2)))
    errors = _mixture_errors(layout.human, layout.metrics[at], resamples, rng)
    observed = np.full((count, count), np.nan)
    draws = np.full((resamples, count, count), np.nan, dtype=np.float32)
    own = np.diagonal(errors[0])
    observed[np.ix_(at, at)] = own[None, :] - own[:, None]
    draws[np.ix_(np.arange(resamples), at, at)] = np.swapaxes(errors, 1, 2) - errors
    return PermutationTest(observed, draws)


def _compare_mixtures(human_difference: FloatArray, left: FloatArray, right: FloatArray) -> Gaps:
    """Compare two systems on their shared segments under mixtures of metrics.

    `left` and `right` are their standardized scores, (metrics, segments).
    """
    total = human_difference.sum()
    squares = human_difference @ human_difference
    # NaN if all segments tie
    human_p = _tail(np.array([total], np.float32), np.array([squares], np.float32))
    metrics = len(left)
    sums = left.sum(axis=1) - right.sum(axis=1)  # of the differences of each metric
    power = ((left - right) ** 2).sum(axis=1)  # exactly 0 for equal scores
    both_squares = (left * left).sum(axis=1) + (right * right).sum(axis=1)
    cross = left @ right.T
    own = np.diagonal(cross)
    product = 0.25 * (own[:, None] + own + cross + cross.T)  # mean over mixtures
    fixed_sums = 0.5 * (sums[:, None] + sums)
    fixed_variance = 0.5 * (both_squares[:, None] + both_squares) - 2.0 * product

    def gaps(x: Float32Array, y: Float32Array) -> Float32Array:
        """Return the mean |p_human - p| of all mixtures over directions, (metrics, metrics, draws).

        `x` and `y` are the swapped sums of both systems, (2 x metrics, draws). The directions
        differ only if there is nothing to flip: p is then 1 either way, and the mean gap to p and
        to 1 - p is 1/2.
        """
        difference = _spread(x[:metrics] - y[:metrics])
        difference += fixed_sums.astype(np.float32)[..., None]
        variance = _spread(x[metrics:] + y[metrics:])
        variance += fixed_variance.astype(np.float32)[..., None]
        # a metric mixed with itself is unchanged
        np.einsum("mmd->md", variance)[:] = power[:, None]
        p = _tail(difference, variance)  # of "the first is better"; NaN if they tie throughout
        gap: Float32Array = np.abs(p - human_p)
        if np.isnan(gap).any():
            gap[np.isnan(gap)] = 0.5
            gap[np.isnan(p) & np.isnan(human_p)] = 0.0
        return gap

    return gaps


def _mixture_errors(
    human: FloatArray, scores: FloatArray, resamples: int, rng: np.random.Generator
) -> Float32Array:
    """Return mean |p_human - p| of mixtures of metric i with scores from j, by draw."""
    present = ~np.isnan(human) & ~np.isnan(scores).any(axis=0)  # (systems, segments)
    metrics, systems, segments = scores.shape
    z = np.zeros(scores.shape, dtype=np.float32)
    z[:, present] = np.nan_to_num(standardize(scores[:, present]))  # a constant becomes 0
    # scores and squares by system and mask of segments; without missing scores, one for each system
    powers: dict[tuple[int, bytes], Float32Array] = {}
    pairs = []
    for i, j in combinations(range(systems), 2):
        both = present[i] & present[j]
        if not both.any():
            continue
        scores_of_both = []
        for system in (i, j):
            own = z[:, system, both]
            powers[system, both.tobytes()] = np.concatenate([own, own * own])
            scores_of_both.append(own.astype(np.float64))
        gaps = _compare_mixtures(human[i, both] - human[j, both], *scores_of_both)
        pairs.append((i, j, both.tobytes(), gaps))
    if not pairs:
        raise DataError("no two systems share a segment with human scores and all metric scores")
    step = max(1, min(BLOCK // (systems * segments), CACHE_BLOCK // metrics**2))
    blocks = []
    for rows in iterate_blocks(resamples, 1, step):
        signs = draw_sign_block((systems, rows.stop - rows.start, segments), rng)
        sums = {}
        for (system, mask), own in powers.items():
            sums[system, mask] = own @ signs[system][:, np.frombuffer(mask, dtype=bool)].T
        total = np.zeros((metrics, metrics, signs.shape[1]), dtype=np.float32)
        for i, j, mask, gaps in pairs:
            total += gaps(sums[i, mask], sums[j, mask])
        blocks.append(total / np.float32(len(pairs)))
    return np.moveaxis(np.concatenate(blocks, axis=-1), -1, 0)


def _spread(swapped: Float32Array) -> Float32Array:
    """Return what swaps add to sums of mixtures: (metrics, draws) -> (metrics, metrics, draws)."""
    half = np.float32(0.5) * swapped
    return half[:, None] - half


def _tail(total: Float32Array, variance: Float32Array) -> Float32Array:
    """Return P(flips sum to at least `total`), normal, by Abramowitz and Stegun 7.1.26."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = total / np.sqrt(np.float32(2) * np.maximum(variance, np.float32(0)))
    t = 1 / (1 + np.float32(0.3275911) * np.abs(z))
    p = np.zeros_like(t)
    for coefficient in _HALF_ERFC:
        p += np.float32(coefficient)
        p *= t
    p *= np.exp(-z * z)
    return np.where(z < 0, 1 - p, p)


_HALF_ERFC = (0.5307027145, -0.7265760135, 0.7107068705, -0.142248368, 0.127414796)

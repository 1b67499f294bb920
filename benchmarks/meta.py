"""Meta-evaluation compared with straightforward implementations in the same process.

    python -m benchmarks meta [--quick] [--segments 834 10000]

Prints CPU time of both, the ratio, the agreement of the results and the peak memory of tertium:

    acc_eq*     15 systems x 500 segments; the baseline keeps one object per pair and moves it
                between counts, as mt-metrics-eval's tau optimization does
    PERM-BOTH   7,500 points, 1,000 swaps; the baseline draws and correlates one swap at a time
    table       30 metrics x 14 language pairs of 560 judgments, intervals and tests of all pairs
    protocol    WMT24's: 30 metrics x 9 language pairs, 12 systems each, with all tests; the
                baselines follow mt-metrics-eval's `pce` and `tau_optimization` on some draws and
                segments: a permutation test of all systems for each of two mixtures of two metrics,
                without its early stop, and objects for pairs as above
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from tertium.core.arrays import FloatArray
from tertium.core.scores import ScoreMatrix
from tertium.meta import acc_eq_calibrated
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.protocol import run_protocol
from tertium.meta.replicates import perm_both
from tertium.meta.tasks import tasks_for


@dataclass
class Counts:
    """C, D, T_h, T_m, T_hm of one segment, updated in place."""

    con: int = 0
    dis: int = 0
    human: int = 0
    metric: int = 0
    both: int = 0

    def add(self, other: Counts, sign: int = 1) -> None:
        self.con += sign * other.con
        self.dis += sign * other.dis
        self.human += sign * other.human
        self.metric += sign * other.metric
        self.both += sign * other.both

    def accuracy(self) -> float:
        total = self.con + self.dis + self.human + self.metric + self.both
        return (self.con + self.both) / total


class Pair:
    """Two translations of one segment: their count, and their count once they tie."""

    def __init__(self, h1: float, h2: float, m1: float, m2: float, row: int) -> None:
        self.row, self.difference = row, abs(m1 - m2)
        self.tied = Counts(both=1) if h1 == h2 else Counts(metric=1)
        if m1 == m2:
            self.counts = self.tied
        elif h1 == h2:
            self.counts = Counts(human=1)
        elif (h1 > h2) == (m1 > m2):
            self.counts = Counts(con=1)
        else:
            self.counts = Counts(dis=1)


def calibrate_by_objects(human: FloatArray, metric: FloatArray) -> float:
    """Return acc_eq* over segments, one object per pair."""
    pairs = [
        Pair(h[i], h[j], m[i], m[j], row)
        for row, (h, m) in enumerate(zip(human.T, metric.T, strict=True))
        for i in range(len(h))
        for j in range(i + 1, len(h))
    ]
    rows = {pair.row: Counts() for pair in pairs}
    for pair in pairs:
        rows[pair.row].add(pair.counts)
    total = sum(counts.accuracy() for counts in rows.values())
    thresholds, values = [0.0], [total / len(rows)]
    for pair in sorted(pairs, key=lambda pair: pair.difference):
        total -= rows[pair.row].accuracy()
        rows[pair.row].add(pair.counts, -1)
        rows[pair.row].add(pair.tied)
        total += rows[pair.row].accuracy()
        if thresholds[-1] == pair.difference:
            values[-1] = total / len(rows)
        else:
            thresholds.append(pair.difference)
            values.append(total / len(rows))
    return max(values)


def perm_both_by_loop(
    human: FloatArray, x: FloatArray, y: FloatArray, samples: int, rng: np.random.Generator
) -> float:
    """Return the p-value of PERM-BOTH with a loop over swaps."""
    x, y = stats.zscore(x), stats.zscore(y)
    observed = stats.pearsonr(human, x)[0] - stats.pearsonr(human, y)[0]
    hits = 0
    for _ in range(samples):
        keep = rng.binomial(1, 0.5, len(human))
        first, second = keep * x + (1 - keep) * y, (1 - keep) * x + keep * y
        null = stats.pearsonr(human, first)[0] - stats.pearsonr(human, second)[0]
        hits += int(null >= observed)
    return hits / samples


def fastest(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the minimum CPU time of several runs, and the result of the call."""
    times, result = [], None
    for _ in range(repeats):
        start = time.process_time()
        result = call()
        times.append(time.process_time() - start)
    return min(times), result


def peak_memory(call: Callable[[], Any]) -> float:
    """Return the peak memory allocated during a call, in MB."""
    tracemalloc.start()
    call()
    most = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return most


def report(name: str, slow: float, fast: float, memory: float, note: str) -> None:
    print(
        f"{name:<10} baseline {slow * 1e3:9.1f} ms   tertium {fast * 1e3:8.1f} ms   "
        f"x {slow / fast:6.1f}   peak {memory:6.1f} MB   {note}"
    )


def bench_calibration(repeats: int) -> None:
    rng = np.random.default_rng(0)
    human = np.minimum(0.0, rng.integers(-8, 3, (15, 500))).astype(float)
    metric = human + rng.normal(0, 2, human.shape)
    slow, expected = fastest(lambda: calibrate_by_objects(human, metric), repeats)
    fast, result = fastest(lambda: float(acc_eq_calibrated(human, metric)), 3 * repeats)
    memory = peak_memory(lambda: acc_eq_calibrated(human, metric))
    report("acc_eq*", slow, fast, memory, f"values {expected:.6f} and {result:.6f}")


def bench_permutation(repeats: int, samples: int) -> None:
    rng = np.random.default_rng(1)
    human = rng.normal(size=7500)
    metrics = np.stack([human + rng.normal(0, s, 7500) for s in (1.0, 1.01)])
    slow, expected = fastest(
        lambda: perm_both_by_loop(human, metrics[0], metrics[1], samples, rng), repeats
    )

    def run() -> float:
        return float(perm_both(human, metrics, resamples=samples, rng=rng)[0, 1])

    fast, result = fastest(run, 3 * repeats)
    report("PERM-BOTH", slow, fast, peak_memory(run), f"p {expected:.3f} and {result:.3f}")


def bench_table(statistic: str, metrics: int = 30, pairs: int = 14) -> None:
    rng = np.random.default_rng(2)
    sets = []
    for number in range(pairs):
        human = rng.normal(size=(1, 560))
        scores = [
            ScoreMatrix(f"m{n}", ("system",), human + rng.normal(0, 1 + n / 20, human.shape))
            for n in range(metrics)
        ]
        sets.append(
            AlignedScores.align(f"lp{number}", scores, human=ScoreMatrix("da", ("system",), human))
        )
    evaluation = MetaEvaluation(sets)
    tasks = tasks_for([aligned.name for aligned in sets], statistic)
    elapsed, results = fastest(lambda: (r := evaluation.run(tasks), r.average)[0], 1)
    same = int(results.average.not_worse.sum())
    print(
        f"table      {statistic:<9} {metrics} metrics x {pairs} pairs: {elapsed:5.1f} s "
        f"(test {tasks[0].test}; {same} not worse than the best)"
    )


def spa_by_flips(human: FloatArray, metric: FloatArray, sign_flips: FloatArray) -> float:
    """Return soft pairwise accuracy by counting sign flips, as mt-metrics-eval's `pce` does."""
    gaps = []
    flipped_sums = [sign_flips @ scores.T.astype(np.float32) for scores in (human, metric)]
    for i in range(len(human)):
        for j in range(i + 1, len(human)):
            p = [
                np.mean(part[:, i] - part[:, j] >= np.float32(scores[i].sum() - scores[j].sum()))
                for part, scores in zip(flipped_sums, (human, metric), strict=True)
            ]
            gaps.append(abs(p[0] - p[1]))
    return 1.0 - float(np.mean(gaps))


def bench_protocol(segments: int, metrics: int = 30, pairs: int = 9, draws: int = 5) -> None:
    rng = np.random.default_rng(3)
    systems = tuple(f"s{n}" for n in range(12))
    sets = []
    for number in range(pairs):
        human = np.round(rng.normal(0, 0.3, (12, 1)) + rng.normal(size=(12, segments)), 1)
        tables = [
            ScoreMatrix(f"m{n}", systems, human + rng.normal(0, 0.8 + n / 25, human.shape))
            for n in range(metrics)
        ]
        sets.append(
            AlignedScores.align(f"lp{number}", tables, human=ScoreMatrix("mqm", systems, human))
        )
    start = time.perf_counter()
    used, _ = fastest(lambda: run_protocol(sets), 1)
    elapsed = time.perf_counter() - start
    sign_flips = rng.choice(np.array([-1, 1], np.float32), size=(1000, segments))
    x, y = (stats.zscore(m, axis=None) for m in sets[0].scores[:2])
    started = time.process_time()
    for _ in range(draws):
        keep = rng.random(x.shape) < 0.5
        spa_by_flips(sets[0].human, np.where(keep, x, y), sign_flips)
        spa_by_flips(sets[0].human, np.where(keep, y, x), sign_flips)
    seconds_per_draw = (time.process_time() - started) / draws
    baseline = seconds_per_draw * 1000 * metrics * (metrics - 1) / 2 * pairs
    subset = slice(0, 200)
    started = time.process_time()
    calibrate_by_objects(sets[0].human[:, subset], sets[0].scores[0][:, subset])
    objects = (time.process_time() - started) * segments / 200 * metrics * pairs
    print(
        f"protocol   {metrics} metrics x {pairs} pairs x 12 systems x {segments:,} segments: "
        f"{elapsed:5.1f} s, {used:5.1f} s CPU; SPA's tests by flips, from {draws} "
        f"draws: {baseline / 3600:.1f} CPU hours; acc_eq* by objects, from one metric "
        f"on 200 segments: {objects / 60:.1f} minutes"
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Meta-evaluation against plain loops.")
    parser.add_argument("--quick", action="store_true", help="one run each, fewer swaps")
    parser.add_argument(
        "--segments",
        nargs="+",
        type=int,
        default=[834, 10_000],
        help="segments of the protocol's language pairs",
    )
    args = parser.parse_args(arguments)
    quick = args.quick
    bench_calibration(1 if quick else 3)
    bench_permutation(1 if quick else 3, 200 if quick else 1000)
    for statistic in ("pearson",) if quick else ("pearson", "spearman", "kendall"):
        bench_table(statistic)
    for segments in args.segments[:1] if quick else args.segments:
        bench_protocol(segments)

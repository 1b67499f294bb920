"""Grid search of SVR over one distance matrix, compared with scikit-learn's GridSearchCV.

5,000 rows of 6,000 features, drawn like matched sentence vectors; 64 settings and ten folds.
GridSearchCV would take most of a day, so some of its 640 fits are timed (for each requested gamma,
with C = 1 and epsilon 0.1 and 1) and extrapolated; the number of timed fits is printed. Use --rows
and --features for a smaller run, --gammas for fewer timed fits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

from benchmarks.measure import measure
from tertium.core.runtime import runtime
from tertium.metrics.regression.svr import (
    DEFAULT_VALUES,
    build_features,
    search_grid,
    squared_distances,
)

SETTINGS = len(DEFAULT_VALUES) ** 3


def make_data(rows: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return matched unit vectors, and scores that depend on their similarity."""
    rng = np.random.default_rng(0)
    width = features // 4
    left = rng.normal(size=(rows, width))
    right = rng.uniform(0.0, 2.0, size=(rows, 1)) * left + rng.normal(size=(rows, width))
    left, right = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (left, right))
    scores = (left * right).sum(axis=1) + 0.2 * rng.normal(size=rows)
    return build_features(np.stack([left, right], axis=1)), (scores - scores.mean()) / scores.std()


def estimate_grid_search_seconds(
    features: np.ndarray, targets: np.ndarray, folds: int, gammas: Sequence[float]
) -> tuple[float, int]:
    """Return the estimated CPU seconds of GridSearchCV and the timed fits.

    Each timed fit and prediction stands for two values of epsilon (0.01 costs at least as much as
    0.1, 10 as much as 1), all C, all folds and its share of the gammas.
    """
    from sklearn.svm import SVR

    test_rows = len(targets) // folds
    total, timed = 0.0, 0
    for gamma in gammas:
        for epsilon in (0.1, 1.0):
            started = time.process_time()
            model = SVR(kernel="rbf", C=1.0, epsilon=epsilon, gamma=gamma)
            model.fit(features[test_rows:], targets[test_rows:]).predict(features[:test_rows])
            cpu_seconds = time.process_time() - started
            print(f"one grid fit, gamma {gamma:g}, epsilon {epsilon:g}: {cpu_seconds:.1f} s")
            total += 2 * len(DEFAULT_VALUES) * cpu_seconds
            timed += 1
    return total * folds * len(DEFAULT_VALUES) / len(gammas), timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--features", type=int, default=6000)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--gammas", type=float, nargs="+", default=list(DEFAULT_VALUES))
    args = parser.parse_args()
    features, targets = make_data(args.rows, args.features)

    def ours() -> float:
        distances = squared_distances(features, features)
        grid = dict.fromkeys(("c", "epsilon", "gamma"), DEFAULT_VALUES)
        with runtime(threads=args.threads):
            results = search_grid(distances, targets, np.arange(args.rows), grid, args.folds)
        return results[0][1]

    measurement = measure(ours)
    print(
        f"{args.rows:,} x {args.features:,} features, {SETTINGS} settings, {args.folds} folds: "
        f"{measurement.seconds:.0f} s on {args.threads} threads, "
        f"{measurement.cpu_seconds:.0f} s CPU, {measurement.megabytes:.0f} MB, "
        f"best R^2 {measurement.value:.3f}",
        flush=True,
    )
    seconds, timed = estimate_grid_search_seconds(features, targets, args.folds, args.gammas)
    print(
        f"GridSearchCV: {seconds:.0f} s CPU, extrapolated from {timed} of "
        f"{SETTINGS * args.folds} fits: "
        f"{seconds / measurement.cpu_seconds:.0f} times as long as tertium"
    )

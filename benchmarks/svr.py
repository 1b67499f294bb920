"""SVR's grid search over one distance matrix against scikit-learn's GridSearchCV.

5,000 rows of 6,000 features drawn as sentence vectors are matched; all 64 settings and ten folds on
our side. GridSearchCV would take most of a day, so a few of its 640 fits are timed (one for each
kernel width asked for, at C = 1 and a tube of 0.1 and of 1) and counted up; how many is printed.
Give --rows and --features for a smaller run, --gammas for fewer fits of the rival.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

from benchmarks.measure import measure
from tertium.metrics.regression.svr import (
    DEFAULT_VALUES,
    Grid,
    match_vectors,
    search_grid,
    squared_distances,
)


def data(rows: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Matched unit vectors, and scores that depend on their similarity."""
    rng = np.random.default_rng(0)
    width = features // 4
    left = rng.normal(size=(rows, width))
    right = rng.uniform(0.0, 2.0, size=(rows, 1)) * left + rng.normal(size=(rows, width))
    left, right = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (left, right))
    scores = (left * right).sum(axis=1) + 0.2 * rng.normal(size=rows)
    return match_vectors(left, right), (scores - scores.mean()) / scores.std()


def plain_seconds(
    features: np.ndarray, targets: np.ndarray, folds: int, gammas: Sequence[float]
) -> tuple[float, int]:
    """Processor seconds GridSearchCV would take, and of how many fits they are known.

    Each timed fit and prediction, on the rows of one fold, stands for two widths of the tube (0.01
    costs what 0.1 costs or more, 10 what 1 does), all C, all folds and its share of the gammas.
    """
    from sklearn.svm import SVR

    held = len(targets) // folds
    total, timed = 0.0, 0
    for gamma in gammas:
        for epsilon in (0.1, 1.0):
            started = time.process_time()
            machine = SVR(kernel="rbf", C=1.0, epsilon=epsilon, gamma=gamma)
            machine.fit(features[held:], targets[held:]).predict(features[:held])
            spent = time.process_time() - started
            print(f"one fit of GridSearchCV, gamma {gamma:g}, epsilon {epsilon:g}: {spent:.1f} s")
            total += 2 * len(DEFAULT_VALUES) * spent
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
    features, targets = data(args.rows, args.features)

    def ours() -> float:
        distances = squared_distances(features, features)
        found = search_grid(distances, targets, folds=args.folds, threads=args.threads)
        return found[0][1]

    done = measure(ours)
    print(
        f"{args.rows:,} x {args.features:,} features, {len(Grid())} settings, {args.folds} folds: "
        f"{done.seconds:.0f} s on {args.threads} threads, {done.processor:.0f} s of processors, "
        f"{done.megabytes:.0f} MB, best R^2 {done.value:.3f}",
        flush=True,
    )
    seconds, timed = plain_seconds(features, targets, args.folds, args.gammas)
    print(
        f"GridSearchCV: {seconds:.0f} s of processors, counted up from {timed} of "
        f"{len(Grid()) * args.folds} fits: {seconds / done.processor:.0f} times ours"
    )


if __name__ == "__main__":
    main()

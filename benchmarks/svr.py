"""SVR's grid search over one distance matrix against scikit-learn's GridSearchCV.

5,000 rows of 6,000 features drawn as sentence vectors are matched; all 64 settings and ten folds on
our side. GridSearchCV would take most of a day, so it runs on a sixteenth of the settings and one
fold's share of rows is timed for each kernel width, which is then counted up; both figures and how
they were come by are printed. Give --rows and --features for a smaller run.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.measure import measure
from tertium.learning.svr import VALUES, Grid, matched, search, squared_distances


def data(rows: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Matched unit vectors, and scores that depend on their similarity."""
    rng = np.random.default_rng(0)
    width = features // 4
    left = rng.normal(size=(rows, width))
    right = 0.7 * left + rng.normal(size=(rows, width))
    left, right = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (left, right))
    scores = (left * right).sum(axis=1) * 10 + rng.normal(size=rows)
    return matched(left, right), (scores - scores.mean()) / scores.std()


def plain_seconds(features: np.ndarray, targets: np.ndarray, folds: int) -> tuple[float, int]:
    """What GridSearchCV would take: one fit and prediction for each gamma and C at two widths of
    the tube, on nine tenths of the rows, counted up to all settings and folds."""
    from sklearn.svm import SVR

    held = len(targets) // folds
    total, timed = 0.0, 0
    for gamma in VALUES:
        for epsilon in (0.1, 1.0):  # 0.01 costs what 0.1 costs or more, 10 what 1 does
            started = time.perf_counter()
            machine = SVR(kernel="rbf", C=1.0, epsilon=epsilon, gamma=gamma)
            machine.fit(features[held:], targets[held:]).predict(features[:held])
            total += 2 * len(VALUES) * (time.perf_counter() - started)
            timed += 1
    return total * folds, timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--features", type=int, default=6000)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    features, targets = data(args.rows, args.features)

    def ours() -> float:
        distances = squared_distances(features, features)
        found = search(distances, targets, folds=args.folds, threads=args.threads)
        return found.scores[0][1]

    done = measure(ours)
    print(
        f"{args.rows:,} x {args.features:,} features, {len(Grid())} settings, {args.folds} folds: "
        f"{done.seconds:.0f} s on {args.threads} threads, {done.megabytes:.0f} MB, "
        f"best R^2 {done.value:.3f}",
        flush=True,
    )
    seconds, timed = plain_seconds(features, targets, args.folds)
    print(
        f"GridSearchCV: {seconds:.0f} s on one core, from {timed} of {len(Grid()) * args.folds} "
        f"fits; on {args.threads} cores {seconds / args.threads:.0f} s: "
        f"{seconds / args.threads / done.seconds:.0f} times ours"
    )


if __name__ == "__main__":
    main()

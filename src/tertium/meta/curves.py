"""How agreement grows with training data, and what each part of a metric contributes.

The runners know no metric: `train` makes a scorer, `evaluate` says how well it does on one or more
test sets. Every run is seeded, so that a curve can be drawn again, and the spread over seeds is
reported beside the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tertium.arrays import generator
from tertium.data.formats import PathLike, parse_json, read_text
from tertium.errors import DataError, UsageError
from tertium.runtime import track

T = TypeVar("T")
Learner = TypeVar("Learner")

ALL = "all"


@dataclass(frozen=True, kw_only=True)
class LearningRun:
    """One trained scorer on one test set: the tidy row of a result.

    `setting` names what was varied ("500", "without lexical"), `size` counts what it was trained
    on (examples, or parts).
    """

    setting: str
    size: int
    seed: int
    test: str
    value: float


@dataclass(frozen=True, kw_only=True)
class Point:
    """The runs of one setting on one test set: mean, standard deviation and range over seeds.

    Undefined values (NaN) are left out of them; `runs` counts all, `undefined` those left out.
    """

    setting: str
    size: int
    test: str
    mean: float
    deviation: float
    low: float
    high: float
    runs: int
    undefined: int


@dataclass(frozen=True, kw_only=True)
class Curve:
    """All runs of a learning curve or an ablation."""

    runs: tuple[LearningRun, ...]

    def points(self) -> list[Point]:
        """One point for each setting and test set, in the order of the runs."""
        groups: dict[tuple[str, int, str], list[float]] = {}
        for run in self.runs:
            groups.setdefault((run.setting, run.size, run.test), []).append(run.value)
        return [_point(*key, values) for key, values in groups.items()]

    def records(self) -> list[dict[str, Any]]:
        """The runs as plain dictionaries."""
        return [dict(vars(run)) for run in self.runs]


def learning_curve(
    train: Callable[[Sequence[T], int], Learner],
    evaluate: Callable[[Learner], Mapping[str, float]],
    data: Sequence[T],
    sizes: Sequence[int | float],
    *,
    seeds: Sequence[int] = (0, 1, 2),
) -> Curve:
    """Train on growing subsets of the data.

    `sizes` are numbers of examples, or shares of the data (floats up to 1.0). Under one seed the
    subsets are nested: a larger one holds every smaller one. `train(subset, seed)` gets the seed
    for its own randomness; `evaluate(scorer)` names its test sets.

    >>> mean = lambda subset, seed: sum(subset) / len(subset)
    >>> error = lambda scorer: {"test": -abs(scorer - 2.0)}
    >>> curve = learning_curve(mean, error, [1, 2, 3], [1, 1.0], seeds=[1, 2])
    >>> [(point.setting, point.size, point.runs) for point in curve.points()]
    [('1', 1, 2), ('3', 3, 2)]
    """
    counts = [_count(size, len(data)) for size in sizes]
    if not counts or not seeds:
        raise UsageError("a learning curve needs at least one size and one seed")
    runs: list[LearningRun] = []
    for seed, count in track([(s, c) for s in seeds for c in counts], "learning curve"):
        subset = [data[int(n)] for n in draw(len(data), count, seed)]
        runs += _runs(str(count), count, seed, evaluate(train(subset, seed)))
    order = {count: n for n, count in enumerate(counts)}
    return Curve(runs=tuple(sorted(runs, key=lambda run: order[run.size])))


def ablation(
    train: Callable[[Sequence[str], int], Learner],
    evaluate: Callable[[Learner], Mapping[str, float]],
    parts: Sequence[str],
    *,
    seeds: Sequence[int] = (0,),
    alone: bool = False,
) -> Curve:
    """Train with all parts (feature groups, losses, inputs), then without each in turn.

    With `alone` also on each part by itself. `train(parts, seed)` gets the parts that remain.

    >>> count = lambda parts, seed: len(parts)
    >>> curve = ablation(count, lambda scorer: {"test": float(scorer)}, ["lexical", "syntax"])
    >>> [(point.setting, point.mean) for point in curve.points()]
    [('all', 2.0), ('without lexical', 1.0), ('without syntax', 1.0)]
    """
    if len(parts) < 2 or len(set(parts)) != len(parts):
        raise UsageError(f"an ablation needs two or more distinct parts, got {', '.join(parts)}")
    if not seeds:
        raise UsageError("an ablation needs at least one seed")
    settings: list[tuple[str, list[str]]] = [(ALL, list(parts))]
    settings += [(f"without {part}", [p for p in parts if p != part]) for part in parts]
    if alone:
        settings += [(f"only {part}", [part]) for part in parts]
    runs: list[LearningRun] = []
    jobs = [(setting, kept, seed) for setting, kept in settings for seed in seeds]
    for setting, kept, seed in track(jobs, "ablation"):
        runs += _runs(setting, len(kept), seed, evaluate(train(kept, seed)))
    return Curve(runs=tuple(runs))


def draw(total: int, count: int, seed: int) -> Sequence[int]:
    """`count` of `total` numbers at random, in ascending order; nested under one seed.

    >>> draw(5, 3, seed=0)
    [2, 3, 4]
    """
    chosen = generator(seed).permutation(total)[:count]
    return sorted(chosen.tolist())


def _count(size: int | float, total: int) -> int:
    count = math.ceil(size * total) if isinstance(size, float) else size
    if not 1 <= count <= total:
        raise DataError(f"a subset of size {size} cannot be drawn from {total} examples")
    return count


def _runs(setting: str, size: int, seed: int, values: Mapping[str, float]) -> Iterable[LearningRun]:
    if not values:
        raise DataError("evaluate returned no value: name at least one test set")
    return [
        LearningRun(setting=setting, size=size, seed=seed, test=test, value=float(value))
        for test, value in values.items()
    ]


def _point(setting: str, size: int, test: str, values: Sequence[float]) -> Point:
    known = [value for value in values if not math.isnan(value)]
    spread = float(np.std(known, ddof=1)) if len(known) > 1 else math.nan
    return Point(
        setting=setting,
        size=size,
        test=test,
        runs=len(values),
        undefined=len(values) - len(known),
        mean=float(np.mean(known)) if known else math.nan,
        deviation=spread,
        low=min(known, default=math.nan),
        high=max(known, default=math.nan),
    )


def read_curves(files: Iterable[PathLike]) -> dict[str, Curve]:
    """Learning curves and ablations: JSON files of runs, named by their files."""
    return {Path(file).stem: _read_curve(Path(file)) for file in files}


def _read_curve(path: Path) -> Curve:
    expected = "expected a JSON list of runs with setting, size, seed, test and value"
    records = parse_json(read_text(path), str(path), f": {expected}")
    try:
        return Curve(runs=tuple(LearningRun(**record) for record in records))
    except (TypeError, ValueError):
        raise DataError(f"{path}: {expected}") from None

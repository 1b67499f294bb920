"""Learning curves and ablations: agreement by training size, and by parts of a metric.

The runners are independent of metrics: `train` makes a scorer, `evaluate` returns its value on one
or more test sets. Every run is seeded, and the spread over seeds is reported with the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tertium.arrays import make_rng
from tertium.data.formats import PathLike, parse_json
from tertium.data.records import read_integer, read_score
from tertium.data.text_files import check_text, read_text
from tertium.errors import DataError, UsageError, short_repr
from tertium.execution import track_progress
from tertium.specs import check_unique_names

T = TypeVar("T")
Learner = TypeVar("Learner")

ALL = "all"
MAX_SIZE = 10**15  # training examples of a run


@dataclass(frozen=True, kw_only=True)
class LearningRun:
    """One trained scorer on one test set; `size` counts training examples or parts."""

    setting: str
    size: int
    seed: int
    test: str
    value: float


@dataclass(frozen=True, kw_only=True)
class CurvePoint:
    """Mean, deviation and range over seeds of one setting; `undefined` runs (NaN) are left out."""

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
class LearningCurve:
    """All runs of a learning curve or an ablation."""

    runs: tuple[LearningRun, ...]

    def points(self) -> list[CurvePoint]:
        """Return one point for each setting and test set, in the order of the runs."""
        groups: dict[tuple[str, int, str], list[float]] = {}
        for run in self.runs:
            groups.setdefault((run.setting, run.size, run.test), []).append(run.value)
        return [_summarize_runs(*key, values) for key, values in groups.items()]

    def records(self) -> list[dict[str, Any]]:
        """Return the runs as dictionaries."""
        return [dict(vars(run)) for run in self.runs]


def learning_curve(
    train: Callable[[Sequence[T], int], Learner],
    evaluate: Callable[[Learner], Mapping[str, float]],
    data: Sequence[T],
    sizes: Sequence[int | float],
    *,
    seeds: Sequence[int] = (0, 1, 2),
) -> LearningCurve:
    """Train on growing subsets of the data.

    `sizes` are numbers of examples, or shares of the data (floats up to 1.0). Subsets of one seed
    are nested: a larger one contains every smaller one. `train(subset, seed)` returns a scorer,
    `evaluate(scorer)` its value by test set.

    >>> mean = lambda subset, seed: sum(subset) / len(subset)
    >>> error = lambda scorer: {"test": -abs(scorer - 2.0)}
    >>> curve = learning_curve(mean, error, [1, 2, 3], [1, 1.0], seeds=[1, 2])
    >>> [(point.setting, point.size, point.runs) for point in curve.points()]
    [('1', 1, 2), ('3', 3, 2)]
    """
    counts = [_subset_size(size, len(data)) for size in sizes]
    if not counts or not seeds:
        raise UsageError("a learning curve needs at least one size and one seed")
    runs: list[LearningRun] = []
    for seed, count in track_progress([(s, c) for s in seeds for c in counts], "learning curve"):
        subset = [data[int(n)] for n in draw_subset(len(data), count, seed)]
        runs += _make_runs(str(count), count, seed, evaluate(train(subset, seed)))
    order = {count: n for n, count in enumerate(counts)}
    return LearningCurve(runs=tuple(sorted(runs, key=lambda run: order[run.size])))


def ablation(
    train: Callable[[Sequence[str], int], Learner],
    evaluate: Callable[[Learner], Mapping[str, float]],
    parts: Sequence[str],
    *,
    seeds: Sequence[int] = (0,),
    alone: bool = False,
) -> LearningCurve:
    """Train with all parts (feature groups, losses, inputs), then without each in turn.

    With `alone`, also train on each part by itself. `train(parts, seed)` gets the remaining parts.

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
    jobs = [(setting, remaining, seed) for setting, remaining in settings for seed in seeds]
    for setting, remaining, seed in track_progress(jobs, "ablation"):
        runs += _make_runs(setting, len(remaining), seed, evaluate(train(remaining, seed)))
    return LearningCurve(runs=tuple(runs))


def draw_subset(total: int, count: int, seed: int) -> Sequence[int]:
    """Draw `count` of `total` indices, in ascending order; subsets of one seed are nested.

    >>> draw_subset(5, 3, seed=0)
    [2, 3, 4]
    """
    chosen = make_rng(seed).permutation(total)[:count]
    return sorted(chosen.tolist())


def _subset_size(size: int | float, total: int) -> int:
    count = math.ceil(size * total) if isinstance(size, float) else size
    if not 1 <= count <= total:
        raise DataError(f"a subset of size {size} cannot be drawn from {total} examples")
    return count


def _make_runs(
    setting: str, size: int, seed: int, values: Mapping[str, float]
) -> Iterable[LearningRun]:
    if not values:
        raise DataError("evaluate returned no value: expected one for each test set")
    return [
        LearningRun(setting=setting, size=size, seed=seed, test=test, value=float(value))
        for test, value in values.items()
    ]


def _summarize_runs(setting: str, size: int, test: str, values: Sequence[float]) -> CurvePoint:
    defined = [value for value in values if not math.isnan(value)]
    spread = float(np.std(defined, ddof=1)) if len(defined) > 1 else math.nan
    return CurvePoint(
        setting=setting,
        size=size,
        test=test,
        runs=len(values),
        undefined=len(values) - len(defined),
        mean=float(np.mean(defined)) if defined else math.nan,
        deviation=spread,
        low=min(defined, default=math.nan),
        high=max(defined, default=math.nan),
    )


def read_curves(files: Iterable[PathLike]) -> dict[str, LearningCurve]:
    """Read learning curves and ablations from JSON files of runs, by file name.

    Files of the same name are told apart by their folders; a file given twice is an error.
    """
    paths = [Path(file) for file in files]
    check_unique_names("--curves", [str(path.resolve()) for path in paths])
    return dict(zip(_distinct_names(paths), map(_read_curve, paths), strict=True))


def _distinct_names(paths: Sequence[Path]) -> list[str]:
    """Return file names without suffix, with as many folders as needed to tell them apart.

    >>> _distinct_names([Path("a/x.json"), Path("b/x.json"), Path("b/y.json")])
    ['a/x', 'b/x', 'b/y']
    """
    parts = [path.resolve().with_suffix("").parts for path in paths]
    for depth in range(1, max(map(len, parts), default=0)):
        names = ["/".join(part[-depth:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]  # some differ only in their suffix


def _read_curve(path: Path) -> LearningCurve:
    expected = "expected a JSON list of runs with setting, size, seed, test and value"
    records = parse_json(read_text(path), str(path), f": {expected}")
    if not isinstance(records, list) or not records:
        raise DataError(f"{path}: {expected}")
    runs = (_read_run(record, f"{path}, run {n}") for n, record in enumerate(records, start=1))
    return LearningCurve(runs=tuple(runs))


def _read_run(record: Any, where: str) -> LearningRun:
    names = [field.name for field in fields(LearningRun)]
    if not isinstance(record, dict) or set(record) != set(names):
        raise DataError(f"{where}: {short_repr(record)}; expected {', '.join(names)}")
    for name in ("setting", "test"):
        if not isinstance(record[name], str):
            raise DataError(f"{where}: {name} is {short_repr(record[name])}; expected a text")
        check_text(record[name], where)
    size, seed = (read_integer(record[name], name, where) for name in ("size", "seed"))
    if not 1 <= size <= MAX_SIZE:
        raise DataError(f"{where}: size is {short_repr(size)}; expected 1 to {MAX_SIZE:,}")
    value = read_score(record["value"], where)
    return LearningRun(
        setting=record["setting"], size=size, seed=seed, test=record["test"], value=value
    )

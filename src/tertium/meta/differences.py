"""What a difference means: how often people prefer the system that a metric puts ahead by so much.

Pairs of systems of one judged set are sorted by the size of the metric's difference into bins of
about equally many; in each, the share of pairs that people order as the metric does, made monotone
by pooling neighbors (Ayer et al. 1955). After Kocmi et al. 2024, "Navigating the metrics maze".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tertium.arrays import FloatArray
from tertium.errors import DataError
from tertium.meta.judged import JudgedSet

BINS = 8
FEWEST = 20  # pairs of a bin: fewer say too little
INTO_ENGLISH, OTHERS, ALL = "into English", "not into English", "all"


@dataclass(frozen=True)
class DifferenceBin:
    """Pairs of systems whose metric scores lie `low` to `high` apart, and where people agree."""

    low: float
    high: float
    pairs: int
    agree: float


@dataclass(frozen=True, kw_only=True)
class DifferenceScale:
    """Bins of one metric in one language direction, by growing difference.

    `learned` are the models behind the metric when it was fitted: others may differ otherwise.
    """

    metric: str
    direction: str
    bins: tuple[DifferenceBin, ...]
    learned: tuple[str, ...] = ()

    @property
    def pairs(self) -> int:
        """All pairs of systems that it was fitted on."""
        return sum(part.pairs for part in self.bins)

    def find(self, difference: float) -> DifferenceBin:
        """The bin of a difference; beyond the last, the last."""
        return next((b for b in self.bins if abs(difference) <= b.high), self.bins[-1])

    def record(self) -> dict[str, Any]:
        """Plain values, as `from_record` takes them."""
        return {**asdict(self), "bins": [asdict(b) for b in self.bins]}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> DifferenceScale:
        bins = tuple(DifferenceBin(**part) for part in record["bins"])
        return cls(**{**record, "bins": bins, "learned": tuple(record["learned"])})


def direction_of(lp: str) -> str:
    """The group of language pairs that a set belongs to; empty where its name tells none.

    >>> direction_of("de-en"), direction_of("en-is"), direction_of("test")
    ('into English', 'not into English', '')
    """
    source, dash, target = lp.rpartition("-")
    if not (source and dash and target):
        return ""
    return INTO_ENGLISH if target == "en" else OTHERS


def system_pairs(human: FloatArray, metric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Size of the metric's difference and whether people agree, of all pairs of systems.

    1 where they do, 0 where not, 0.5 where people tie; pairs that the metric ties are left out.

    >>> [part.tolist() for part in system_pairs(np.array([3.0, 2, 2]), np.array([0.5, 0.9, 0.9]))]
    [[0.4, 0.4], [0.0, 0.0]]
    """
    left, right = np.triu_indices(len(human), k=1)
    people, scores = human[left] - human[right], metric[left] - metric[right]
    used = ~np.isnan(people) & ~np.isnan(scores) & (scores != 0)
    agree = 0.5 + 0.5 * np.sign(people[used]) * np.sign(scores[used])
    return np.abs(scores[used]), agree


def fit_bins(
    sizes: FloatArray, agree: FloatArray, *, bins: int = BINS
) -> tuple[DifferenceBin, ...]:
    """Bins of about equally many pairs, their shares never falling as differences grow.

    >>> sizes, agree = np.arange(80) / 10, (np.arange(80) >= 40) * 1.0
    >>> [(b.high, b.pairs, b.agree) for b in fit_bins(sizes, agree, bins=2)]
    [(3.9, 40, 0.0), (7.9, 40, 1.0)]
    """
    if len(sizes) < FEWEST:
        raise DataError(f"{len(sizes)} pairs of systems are too few to say what a difference means")
    order = np.argsort(sizes, kind="stable")
    parts = np.array_split(order, max(1, min(bins, len(sizes) // FEWEST)))
    pooled: list[list[np.ndarray]] = []
    for part in parts:
        pooled.append([part])
        while len(pooled) > 1 and _share(pooled[-2], agree) >= _share(pooled[-1], agree):
            last = pooled.pop()
            pooled[-1] += last
    made, low = [], 0.0
    for group in pooled:
        rows = np.concatenate(group)
        high = float(sizes[rows].max())
        made.append(DifferenceBin(low, high, len(rows), float(agree[rows].mean())))
        low = high
    return tuple(made)


def _share(group: list[np.ndarray], agree: FloatArray) -> float:
    return float(agree[np.concatenate(group)].mean())


def fit_scales(
    sets: Sequence[JudgedSet], learned: Mapping[str, Sequence[str]] | None = None
) -> list[DifferenceScale]:
    """Scales of every metric, for each language direction that has pairs enough and for all.

    A judged set is named by its language pair; that of another name counts among all alone. Where
    all sets are of one direction, nothing is said of others.
    """
    if not sets:
        raise DataError("there is nothing to fit: no judged set was given")
    found: dict[tuple[str, str], list[tuple[FloatArray, FloatArray]]] = {}
    for judged in sets:
        for metric, scores in zip(judged.metrics, judged.system_scores, strict=True):
            pairs = system_pairs(judged.human_systems, scores)
            for direction in filter(None, (ALL, direction_of(judged.name.split()[-1]))):
                found.setdefault((metric, direction), []).append(pairs)
    scales = []
    for (metric, direction), parts in sorted(found.items()):
        own = [len(found.get((metric, d), ())) for d in (INTO_ENGLISH, OTHERS)]
        if direction == ALL and len(parts) in own:  # all sets are of one direction
            continue
        sizes, agree = (np.concatenate(column) for column in zip(*parts, strict=True))
        if len(sizes) < FEWEST:
            continue
        behind = tuple((learned or {}).get(metric, ()))
        bins = fit_bins(sizes, agree)
        scales.append(
            DifferenceScale(metric=metric, direction=direction, bins=bins, learned=behind)
        )
    if not scales:
        raise DataError(f"fewer than {FEWEST} pairs of systems: too few to say what they mean")
    return scales

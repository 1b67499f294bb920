"""What is learned from, as index arrays over distinct texts, and the batches.

A text, a pair of texts and a comparison are each numbered once: 500,000 comparisons of WMT rankings
are about 140,000 pairs over 160,000 texts. A batch of comparisons is a batch of items: each
pair of an item is scored once and takes part in all comparisons of that item. How well held-out
people are agreed with, by which an epoch is chosen, is Pearson's r averaged over language pairs for
scores, the strict tau for comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tertium.arrays import BoolArray, FloatArray, IntArray
from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import RankingSet
from tertium.encoders.encoder import rows_of
from tertium.errors import DataError
from tertium.models.judged import check_targets

WINDOW = 64  # batches that are sorted by length together
TextNumbers = dict[str, int]  # each distinct text with its number, in the order they are met


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs:
    """Hypotheses with what they are compared to: numbers of texts.

    `hypotheses` (pairs,), `others` (pairs, sides).
    """

    hypotheses: IntArray
    others: IntArray

    def __len__(self) -> int:
        return len(self.hypotheses)

    def take(self, rows: IntArray) -> Pairs:
        return Pairs(hypotheses=self.hypotheses[rows], others=self.others[rows])


@dataclass(frozen=True, kw_only=True, eq=False)
class Scored:
    """Pairs with the human score of each, (pairs,)."""

    pairs: Pairs
    targets: FloatArray

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def arrays(self) -> tuple[IntArray | FloatArray, ...]:
        """All that tells it from others."""
        return self.pairs.hypotheses, self.pairs.others, self.targets


@dataclass(frozen=True, kw_only=True, eq=False)
class Compared:
    """Pairs and what people preferred among them.

    `items` (pairs,) numbers the item of each pair; pair `better[k]` was preferred to pair
    `worse[k]` by `weights[k]` people, all (comparisons,), comparisons of one item standing together
    from `starts[item]` to `starts[item + 1]`. Where two systems said the same, `better[k]` is
    `worse[k]`: nothing can be learned from that, but a metric has to tie, which counts as an error.
    """

    pairs: Pairs
    items: IntArray
    better: IntArray
    worse: IntArray
    weights: FloatArray
    starts: IntArray

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def arrays(self) -> tuple[IntArray | FloatArray, ...]:
        """All that tells it from others."""
        verdicts = self.items, self.better, self.worse, self.weights
        return self.pairs.hypotheses, self.pairs.others, *verdicts


def scored_pairs(sets: Iterable[JudgmentSet], against: str, table: TextNumbers) -> Scored:
    """Every judged translation against each of its references, with its human score."""
    hypotheses, others, targets = [], [], []
    for judgment in (j for one in sets for j in one.judgments):
        for texts in judgment.segment.sides(against):
            hypotheses.append(table.setdefault(judgment.segment.hypothesis, len(table)))
            others.append([table.setdefault(text, len(table)) for text in texts])
            targets.append(judgment.score)
    values = np.array(targets, dtype=np.float64)
    return Scored(pairs=_pairs(hypotheses, others), targets=check_targets(values))


def compared_pairs(sets: Iterable[RankingSet], against: str, table: TextNumbers) -> Compared:
    """The comparisons without ties; equal ones are one with a weight."""
    places: dict[tuple[int, int, tuple[int, ...]], int] = {}
    better, worse, items = [], [], 0
    for one in (rankings.drop_ties() for rankings in sets):
        rows: list[list[int]] = [[] for _ in one.segments]
        for n in np.flatnonzero(one.is_compared):
            segment, item = one.segments[n], items + int(one.item_of[n])
            for texts in segment.sides(against):
                own, *others = (
                    table.setdefault(text, len(table)) for text in (segment.hypothesis, *texts)
                )
                key = item, own, tuple(others)
                rows[n].append(places.setdefault(key, len(places)))
        items += len(one.items)
        for left, right, verdict in zip(one.left, one.right, one.verdicts, strict=True):
            winner, loser = (left, right) if verdict > 0.5 else (right, left)
            better += rows[winner]
            worse += rows[loser]
    return _merge_comparisons(list(places), np.array(better, np.int64), np.array(worse, np.int64))


def _merge_comparisons(
    keys: Sequence[tuple[int, int, tuple[int, ...]]], better: IntArray, worse: IntArray
) -> Compared:
    """Number items anew in order, and merge comparisons that were made more than once."""
    if not (better != worse).any():
        raise DataError(
            "there is nothing to learn from: every comparison is a tie, or of a text with itself"
        )
    _, items = np.unique([key[0] for key in keys], return_inverse=True)
    code = (items[better] * len(keys) + better) * len(keys) + worse
    _, first, counts = np.unique(code, return_index=True, return_counts=True)
    starts = np.searchsorted(items[better[first]], np.arange(items.max() + 2))
    return Compared(
        pairs=_pairs([key[1] for key in keys], [list(key[2]) for key in keys]),
        items=items.astype(np.int64),
        better=better[first],
        worse=worse[first],
        weights=counts.astype(np.float64),
        starts=starts.astype(np.int64),
    )


def _pairs(hypotheses: Sequence[int], others: Sequence[Sequence[int]]) -> Pairs:
    return Pairs(
        hypotheses=np.array(hypotheses, dtype=np.int64),
        others=np.array(others, dtype=np.int64).reshape(len(hypotheses), -1),
    )


def plan(sizes: IntArray, batch: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """A random order of examples cut into batches of similar size, so that little is padding.

    The order is random; within a window of some batches examples are sorted by size, and the
    batches of the window are shuffled again.

    >>> rng = np.random.default_rng(1)
    >>> sorted(np.concatenate(list(plan(np.array([3, 1, 2, 5, 4]), 2, rng))).tolist())
    [0, 1, 2, 3, 4]
    """
    order = rng.permutation(len(sizes))
    for start in range(0, len(order), batch * WINDOW):
        window = order[start : start + batch * WINDOW]
        window = window[np.argsort(sizes[window], kind="stable")]
        batches = [window[n : n + batch] for n in range(0, len(window), batch)]
        for number in rng.permutation(len(batches)):
            yield batches[number]


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedBatch:
    """Some items' pairs and comparisons; `better` and `worse` are rows of `pairs`."""

    pairs: Pairs
    better: IntArray
    worse: IntArray
    weights: FloatArray


def comparisons_of(data: Compared, items: IntArray) -> ComparedBatch:
    """What can be learned from some items: comparisons of two texts, with each pair once."""
    rows = rows_of(data.starts[items], data.starts[items + 1])
    rows = rows[data.better[rows] != data.worse[rows]]
    ends = np.concatenate([data.better[rows], data.worse[rows]])
    used, where = np.unique(ends, return_inverse=True)
    return ComparedBatch(
        pairs=data.pairs.take(used),
        better=where[: len(rows)],
        worse=where[len(rows) :],
        weights=data.weights[rows],
    )


def item_sizes(data: Compared, lengths: IntArray) -> IntArray:
    """The longest text of each item, (items,)."""
    sizes = np.zeros(len(data), dtype=np.int64)
    np.maximum.at(sizes, data.items, pair_sizes(data.pairs, lengths))
    return sizes


def pair_sizes(pairs: Pairs, lengths: IntArray) -> IntArray:
    """The longest text of each pair, (pairs,)."""
    longest: IntArray = np.maximum(lengths[pairs.hypotheses], lengths[pairs.others].max(axis=1))
    return longest


def has_comparisons(data: Compared) -> BoolArray:
    """Which items have a comparison of two texts, (items,)."""
    learned = data.items[data.better[data.better != data.worse]]
    flags: BoolArray = np.bincount(learned, minlength=len(data)) > 0
    return flags


def pearson(x: FloatArray, y: FloatArray) -> float:
    """Pearson's r of two columns; 0 where one is constant."""
    x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size > 0 else 0.0


def average_pearson(scores: FloatArray, human: FloatArray, groups: Sequence[str]) -> float:
    """The mean of Pearson's r over groups; a group with constant scores counts as 0.

    >>> average_pearson(np.array([1.0, 2, 1, 2]), np.array([1.0, 2, 2, 1]), ["a", "a", "b", "b"])
    0.0
    """
    names = np.asarray(groups)
    values = [pearson(scores[names == g], human[names == g]) for g in dict.fromkeys(groups)]
    return float(np.mean(values))


def strict_tau(
    scores: FloatArray, better: IntArray, worse: IntArray, weights: FloatArray | None = None
) -> float:
    """(concordant - discordant - ties) / all, over comparisons without human ties.

    `weights` (comparisons,) says how often each was made.

    >>> strict_tau(np.array([1.0, 2.0, 2.0]), np.array([1, 1]), np.array([0, 2]))
    0.0
    """
    margins = scores[better] - scores[worse]
    return float(np.average(np.where(margins > 0, 1.0, -1.0), weights=weights))

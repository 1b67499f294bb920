"""Training examples as index arrays over distinct texts, and their batches.

Texts, pairs and comparisons are each numbered once: 500,000 comparisons of WMT rankings are about
140,000 pairs over 160,000 texts. A batch of comparisons consists of items; each pair of an item
is scored once and used in all its comparisons. The best epoch is selected on held-out data by
Pearson's r averaged over language pairs (scores) or strict tau (comparisons).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray, IntArray
from tertium.core.errors import DataError
from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import RankingSet
from tertium.encoders.encoder import expand_ranges
from tertium.models.training_data import check_targets

SORT_WINDOW = 64  # batches that are sorted by length together
TextIds = dict[str, int]  # distinct texts and their numbers, in order of first use


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredPairs:
    """Pairs of texts with a human score each, (pairs,).

    `pairs` (pairs, 1 + sides) has the numbers of the hypothesis and of what it is compared with.
    """

    pairs: IntArray
    targets: FloatArray

    def __len__(self) -> int:
        return len(self.targets)


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparisons:
    """Human preferences among pairs of texts (pairs, 1 + sides).

    Pair `better[k]` was preferred to `worse[k]` by `weights[k]` raters, all (comparisons,).
    """

    pairs: IntArray
    better: IntArray
    worse: IntArray
    weights: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedPairs(Comparisons):
    """Human preferences by item.

    `items` (pairs,) is the item of each pair. The comparisons of an item are contiguous, from
    `starts[item]` to `starts[item + 1]`. If both systems produced the same text, `better[k]` equals
    `worse[k]`: there is nothing to learn, but the tie counts as an error in strict tau.
    """

    items: IntArray
    starts: IntArray

    def __len__(self) -> int:
        return len(self.starts) - 1


def number_scored_pairs(sets: Iterable[JudgmentSet], against: str, table: TextIds) -> ScoredPairs:
    """Pair every judged translation with each of its references, with its human score."""
    pairs = []
    targets = []
    for judgment in (j for judgment_set in sets for j in judgment_set.judgments):
        for texts in judgment.segment.comparison_texts(against):
            pair = (judgment.segment.hypothesis, *texts)
            pairs.append([table.setdefault(text, len(table)) for text in pair])
            targets.append(judgment.score)
    values = check_targets(np.array(targets, dtype=np.float64))
    return ScoredPairs(pairs=np.array(pairs, dtype=np.int64), targets=values)


def number_compared_pairs(sets: Iterable[RankingSet], against: str, ids: TextIds) -> ComparedPairs:
    """Number the comparisons without ties; equal comparisons are merged and weighted."""
    places: dict[tuple[int, ...], int] = {}  # of each item and its pair
    better = []
    worse = []
    items = 0
    for one in (rankings.without_ties() for rankings in sets):
        rows: list[list[int]] = [[] for _ in one.segments]
        for n in np.flatnonzero(one.compared_mask):
            segment = one.segments[n]
            item = items + int(one.item_indices[n])
            for texts in segment.comparison_texts(against):
                pair = [ids.setdefault(text, len(ids)) for text in (segment.hypothesis, *texts)]
                rows[n].append(places.setdefault((item, *pair), len(places)))
        items += len(one.items)
        for left, right, verdict in zip(one.left, one.right, one.verdicts, strict=True):
            winner, loser = (left, right) if verdict > 0.5 else (right, left)
            better += rows[winner]
            worse += rows[loser]
    keys = np.array(list(places), dtype=np.int64)
    return _merge_comparisons(keys, np.array(better, np.int64), np.array(worse, np.int64))


def _merge_comparisons(keys: IntArray, better: IntArray, worse: IntArray) -> ComparedPairs:
    """Renumber items consecutively and merge repeated comparisons."""
    if not (better != worse).any():
        raise DataError(
            "no training data: every comparison is a tie or compares a text with itself"
        )
    _, items = np.unique(keys[:, 0], return_inverse=True)
    code = (items[better] * len(keys) + better) * len(keys) + worse
    _, first, counts = np.unique(code, return_index=True, return_counts=True)
    starts = np.searchsorted(items[better[first]], np.arange(items.max() + 2))
    return ComparedPairs(
        pairs=keys[:, 1:],
        items=items.astype(np.int64),
        better=better[first],
        worse=worse[first],
        weights=counts.astype(np.float64),
        starts=starts.astype(np.int64),
    )


def shuffle_into_batches(
    sizes: IntArray, batch: int, rng: np.random.Generator
) -> Iterator[IntArray]:
    """Yield random batches of examples of similar size, to reduce padding.

    Examples are shuffled, sorted by size within windows of several batches, and the batches of each
    window are shuffled again.

    >>> rng = np.random.default_rng(1)
    >>> batches = shuffle_into_batches(np.array([3, 1, 2, 5, 4]), 2, rng)
    >>> sorted(np.concatenate(list(batches)).tolist())
    [0, 1, 2, 3, 4]
    """
    order = rng.permutation(len(sizes))
    for start in range(0, len(order), batch * SORT_WINDOW):
        window = order[start : start + batch * SORT_WINDOW]
        window = window[np.argsort(sizes[window], kind="stable")]
        batches = [window[n : n + batch] for n in range(0, len(window), batch)]
        for number in rng.permutation(len(batches)):
            yield batches[number]


def select_comparisons(data: ComparedPairs, items: IntArray) -> Comparisons:
    """Select the comparisons of two different texts of some items, with each pair once."""
    rows = expand_ranges(data.starts[items], data.starts[items + 1])
    rows = rows[data.better[rows] != data.worse[rows]]
    ends = np.concatenate([data.better[rows], data.worse[rows]])
    used, where = np.unique(ends, return_inverse=True)
    return Comparisons(
        pairs=data.pairs[used],
        better=where[: len(rows)],
        worse=where[len(rows) :],
        weights=data.weights[rows],
    )


def longest_per_item(data: ComparedPairs, lengths: IntArray) -> IntArray:
    """Return the length of the longest text of each item, (items,)."""
    sizes = np.zeros(len(data), dtype=np.int64)
    np.maximum.at(sizes, data.items, longest_per_pair(data.pairs, lengths))
    return sizes


def longest_per_pair(pairs: IntArray, lengths: IntArray) -> IntArray:
    """Return the length of the longest text of each pair, (pairs,)."""
    longest: IntArray = lengths[pairs].max(axis=1)
    return longest


def has_decided_comparisons(data: ComparedPairs) -> BoolArray:
    """Return which items have a comparison of two different texts, (items,)."""
    learned = data.items[data.better[data.better != data.worse]]
    return np.bincount(learned, minlength=len(data)) > 0


def pearson(x: FloatArray, y: FloatArray) -> float:
    """Return Pearson's r of two columns; 0 if one is constant."""
    x = x - x.mean()
    y = y - y.mean()
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size > 0 else 0.0


def average_pearson(scores: FloatArray, human: FloatArray, groups: Sequence[str]) -> float:
    """Return the mean of Pearson's r over groups; a group with constant scores counts as 0.

    >>> average_pearson(np.array([1.0, 2, 1, 2]), np.array([1.0, 2, 2, 1]), ["a", "a", "b", "b"])
    0.0
    """
    names = np.asarray(groups)
    values = [pearson(scores[names == g], human[names == g]) for g in dict.fromkeys(groups)]
    return float(np.mean(values))


def strict_tau(
    scores: FloatArray, better: IntArray, worse: IntArray, weights: FloatArray | None = None
) -> float:
    """Return (concordant - discordant - ties) / all, over comparisons without human ties.

    `weights` (comparisons,) is how often each comparison was made.

    >>> strict_tau(np.array([1.0, 2.0, 2.0]), np.array([1, 1]), np.array([0, 2]))
    0.0
    """
    margins = scores[better] - scores[worse]
    return float(np.average(np.where(margins > 0, 1.0, -1.0), weights=weights))

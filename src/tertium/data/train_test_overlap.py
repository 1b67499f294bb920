"""Remove test segments from training data by comparing references.

Rankings of a year share segments with that year's direct assessments under other ids. References
are therefore compared without case, punctuation and spacing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from tertium.core.segment import Segment
from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import RankingSet

OVERLAP_REASON = "reference occurs in held-out data"


@lru_cache(maxsize=1 << 16)
def normalize_reference(text: str) -> str:
    """Normalize a text for comparison: NFKC, case folded, letters, digits and combining marks only.

    >>> normalize_reference("“It's  over,” she said .")
    'itsovershesaid'
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if unicodedata.category(c)[0] in "LMN")


@overload
def drop_overlap(
    train: JudgmentSet, held_out: Iterable[JudgmentSet | RankingSet]
) -> JudgmentSet: ...
@overload
def drop_overlap(train: RankingSet, held_out: Iterable[JudgmentSet | RankingSet]) -> RankingSet: ...
def drop_overlap(
    train: JudgmentSet | RankingSet, held_out: Iterable[JudgmentSet | RankingSet]
) -> JudgmentSet | RankingSet:
    """Return the training set without segments whose reference occurs in held-out data.

    Segments without a reference (quality estimation) are compared by their source.
    """
    shared = find_shared_segments(train.segments, held_out)
    if isinstance(train, RankingSet):
        rows = shared[train.left] | shared[train.right]
        return replace(train, excluded_counts=_add_count(train, int(rows.sum()))).select(~rows)
    judgments = tuple(train.judgments[n] for n in np.flatnonzero(~shared))
    return replace(train, judgments=judgments, excluded_counts=_add_count(train, int(shared.sum())))


def number_shared_texts(segments: Sequence[Segment]) -> NDArray[np.int64]:
    """Number segments; those that share a source or a reference get the same number.

    Segments are also connected through others. Cross-validation holds out all rows of a number
    together: the translations of one source are not independent.

    >>> number_shared_texts([Segment("a", "x", ("r",)), Segment("b", "y"), Segment("c", "X.")])
    array([0, 1, 0])
    """
    parents = list(range(len(segments)))

    def find_root(row: int) -> int:
        while parents[row] != row:
            parents[row] = row = parents[parents[row]]
        return row

    first_rows: dict[str, int] = {}
    for row, segment in enumerate(segments):
        for text in (segment.source or "", *segment.references):
            if key := normalize_reference(text):
                parents[find_root(row)] = find_root(first_rows.setdefault(key, row))
    roots = [find_root(row) for row in range(len(segments))]
    return np.unique(roots, return_inverse=True)[1].astype(np.int64)


def find_shared_segments(
    segments: Iterable[Segment], other_sets: Iterable[JudgmentSet | RankingSet]
) -> NDArray[np.bool_]:
    """Return a mask of the segments whose reference, or source, occurs in other sets."""
    shared_keys = {
        key for other in other_sets for segment in _judged_segments(other) for key in _keys(segment)
    }
    return np.array([bool(_keys(segment) & shared_keys) for segment in segments], dtype=np.bool_)


def _judged_segments(data: JudgmentSet | RankingSet) -> Iterable[Segment]:
    """Return the segments with a judgment; rankings also contain texts that nobody compared."""
    if isinstance(data, RankingSet):
        return (data.segments[n] for n in np.flatnonzero(data.compared_mask))
    return data.segments


def _keys(segment: Segment) -> frozenset[str]:
    texts = segment.references or ((segment.source,) if segment.source else ())
    return frozenset(key for key in map(normalize_reference, texts) if key)


def _add_count(train: JudgmentSet | RankingSet, count: int) -> dict[str, int]:
    total = train.excluded_counts.get(OVERLAP_REASON, 0) + count
    return (
        {**train.excluded_counts, OVERLAP_REASON: total} if total else dict(train.excluded_counts)
    )

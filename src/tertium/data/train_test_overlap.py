"""Remove test segments from training data by comparing references.

Rankings of a year share segments with that year's direct assessments under other ids. References
are therefore compared without case, punctuation and spacing.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import compress
from typing import TypeVar

import numpy as np

from tertium.core.arrays import BoolArray, IntArray
from tertium.core.segment import Segment
from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import RankingSet

AnySet = TypeVar("AnySet", JudgmentSet, RankingSet)
OVERLAP_REASON = "reference occurs in held-out data"


@lru_cache(maxsize=1 << 16)
def normalize_reference(text: str) -> str:
    """Normalize a text for comparison: NFKC, case folded, letters, digits and combining marks only.

    >>> normalize_reference("“It's  over,” she said .")
    'itsovershesaid'
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if unicodedata.category(c)[0] in "LMN")


def drop_overlap(train: AnySet, held_out: Iterable[JudgmentSet | RankingSet]) -> AnySet:
    """Return the training set without segments whose reference occurs in held-out data.

    Segments without a reference (quality estimation) are compared by their source.
    """
    shared = find_shared_segments(train.segments, held_out)
    if isinstance(train, RankingSet):
        return train.exclude(OVERLAP_REASON, shared[train.left] | shared[train.right])
    return train.exclude(OVERLAP_REASON, compress(train.judgments, (~shared).tolist()))


def number_shared_texts(segments: Sequence[Segment]) -> IntArray:
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
) -> BoolArray:
    """Return a mask of the segments whose reference, or source, occurs in other sets."""
    judged_segments = (segment for other in other_sets for _, _, segment in other.rows())
    shared_keys = {key for segment in judged_segments for key in _keys(segment)}
    return np.array([bool(_keys(segment) & shared_keys) for segment in segments], dtype=np.bool_)


def _keys(segment: Segment) -> frozenset[str]:
    texts = segment.references or ((segment.source,) if segment.source else ())
    return frozenset(key for key in map(normalize_reference, texts) if key)

"""Keeps what is tested out of what is trained on: segments are the same if their references are.

Rankings of a year share segments with that year's direct assessments under other names, so ids are
no guide; the reference, stripped of case, punctuation and spacing, is.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from tertium.data.judgments import JudgmentSet
from tertium.data.rankings import RankingSet
from tertium.segment import Segment

SHARED = "reference occurs in held-out data"


@lru_cache(maxsize=1 << 16)
def normalise(text: str) -> str:
    """A text as it is compared: NFKC, case folded, letters and digits only.

    Marks that carry meaning in some scripts (vowel signs, accents after composition) are kept.

    >>> normalise("“It's  over,” she said .") == normalise('"It\u2019s over", she said.')
    True
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if unicodedata.category(c)[0] in "LMN")


@overload
def drop_shared(
    train: JudgmentSet, held_out: Iterable[JudgmentSet | RankingSet]
) -> JudgmentSet: ...
@overload
def drop_shared(train: RankingSet, held_out: Iterable[JudgmentSet | RankingSet]) -> RankingSet: ...
def drop_shared(
    train: JudgmentSet | RankingSet, held_out: Iterable[JudgmentSet | RankingSet]
) -> JudgmentSet | RankingSet:
    """The training set without segments whose reference occurs in held-out data.

    Judgments of such segments (or comparisons on them) are counted in `left_out`. Segments without
    reference (quality estimation) are compared by their source.
    """
    shared = _find_shared(train.segments, held_out)
    if isinstance(train, RankingSet):
        rows = shared[train.left] | shared[train.right]
        return replace(train, left_out=_add_count(train, int(rows.sum()))).select(~rows)
    judgments = tuple(train.judgments[n] for n in np.flatnonzero(~shared))
    return replace(train, judgments=judgments, left_out=_add_count(train, int(shared.sum())))


def keep_shared(rankings: RankingSet, others: Iterable[JudgmentSet | RankingSet]) -> RankingSet:
    """The comparisons that `drop_shared` drops: their reference occurs in other data."""
    shared = _find_shared(rankings.segments, others)
    return rankings.select(shared[rankings.left] | shared[rankings.right])


def _find_shared(
    segments: Iterable[Segment], others: Iterable[JudgmentSet | RankingSet]
) -> NDArray[np.bool_]:
    judged = (segment for other in others for segment in _judged_segments(other))
    taken = {key for segment in judged for key in _keys(segment)}
    return np.array([bool(_keys(segment) & taken) for segment in segments], dtype=np.bool_)


def _judged_segments(data: JudgmentSet | RankingSet) -> Iterable[Segment]:
    """The segments somebody judged: rankings also hold texts that nobody compared."""
    if isinstance(data, RankingSet):
        return (data.segments[n] for n in np.flatnonzero(data.is_compared))
    return data.segments


def _keys(segment: Segment) -> frozenset[str]:
    texts = segment.references or ((segment.source,) if segment.source else ())
    return frozenset(key for key in map(normalise, texts) if key)


def _add_count(train: JudgmentSet | RankingSet, count: int) -> dict[str, int]:
    total = train.left_out.get(SHARED, 0) + count
    return {**train.left_out, SHARED: total} if total else dict(train.left_out)

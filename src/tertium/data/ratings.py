"""Standardize and average raw ratings, and measure how well human raters agree with each other.

In direct assessment (Graham et al. 2013), annotators give scores from 0 to 100 and use that scale
differently. WMT converts the ratings of each annotator to z-scores before it averages them.

A metric cannot agree with human raters better than they agree with each other. A held-out rater or
a second campaign is therefore added to result tables like a metric, in a row whose name starts with
`human`.

`drop_overlap` removes test segments from training data. Rankings of a year share segments with that
year's direct assessments under other ids. References are therefore compared without case,
punctuation and spacing.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import compress
from typing import TypeVar

import numpy as np

from tertium.core.arrays import BoolArray, IntArray
from tertium.core.errors import DataError, UsageError
from tertium.core.resampling import make_rng
from tertium.core.scores import ScoreMatrix
from tertium.core.segment import Judgment, Segment
from tertium.data.human_data import HumanData
from tertium.data.judgments import JudgmentSet, merge_rater_annotations
from tertium.data.rankings import RankingSet

NO_ANNOTATOR = "no annotator"
CONSTANT_ANNOTATOR = "annotator with fewer than two different ratings"
ONE_RATER = "translation of one rater, who cannot be held out"
HELD_OUT_RATER = "rater"  # the value of --human-baseline that holds out a rater
HUMAN_ROW_PREFIX = "human"


def standardize_ratings(ratings: HumanData) -> JudgmentSet:
    """Convert ratings to z-scores per annotator: (rating - mean) / sd.

    Mean and sample standard deviation (n - 1 in the denominator) are over all ratings of the
    annotator in the set, as in WMT. Ratings without an annotator, and those of annotators who gave
    only one value, are excluded and counted.
    """
    if not isinstance(ratings, JudgmentSet):
        raise UsageError(f"{ratings.name}: --standardize needs ratings with annotators")
    groups: dict[str, list[float]] = {}
    for rating in ratings.judgments:
        groups.setdefault(rating.annotator, []).append(rating.score)
    scales = {
        annotator: (float(np.mean(scores)), float(np.std(scores, ddof=1)))
        for annotator, scores in groups.items()
        if min(scores) < max(scores)
    }
    usable = ratings.exclude(NO_ANNOTATOR, (r for r in ratings.judgments if r.annotator))
    standardized = []
    for rating in usable.judgments:
        if rating.annotator in scales:
            mean, deviation = scales[rating.annotator]
            standardized.append(replace(rating, score=(rating.score - mean) / deviation))
    return usable.exclude(CONSTANT_ANNOTATOR, standardized)


def average_ratings(ratings: JudgmentSet) -> JudgmentSet:
    """Average the ratings of each translation and merge their error annotations.

    A translation is identified by language pair, item, system and text.
    """
    groups: dict[Judgment, list[Judgment]] = {}
    for rating in ratings.judgments:
        key = replace(rating, score=0.0, annotator="", error_annotations=None)
        groups.setdefault(key, []).append(rating)
    averages = []
    for key, group in groups.items():
        annotated = [rating for rating in group if rating.error_annotations is not None]
        annotations = merge_rater_annotations(annotated) if annotated else None
        score = float(np.mean([rating.score for rating in group]))
        averages.append(replace(key, score=score, error_annotations=annotations))
    return replace(ratings, judgments=tuple(averages))


def hold_out_rater(
    human_data: HumanData, level: str, *, seed: int = 12345
) -> tuple[HumanData, ScoreMatrix]:
    """Hold out a random rater of each translation; return other and held-out ratings."""
    if not isinstance(human_data, JudgmentSet):
        raise UsageError(f"{human_data.title}: holding out a rater needs scores of translations")
    groups: dict[tuple[str, str], list[Judgment]] = {}
    for judgment in human_data.judgments:
        groups.setdefault((judgment.system, judgment.item), []).append(judgment)
    rng = make_rng(seed)
    held_out: list[Judgment] = []
    remaining: list[Judgment] = []
    for ratings in groups.values():
        index = int(rng.integers(len(ratings)))
        if len({rating.annotator for rating in ratings}) > 1:
            held_out.append(ratings[index])
            remaining += ratings[:index] + ratings[index + 1 :]
    if not held_out:
        raise DataError(
            f"{human_data.title}: no translation has ratings of two annotators, so none can be "
            "held out; give a second campaign, --human-baseline FILE"
        )
    single = Counter({ONE_RATER: len(groups) - len(held_out)})
    counts = Counter(human_data.excluded_counts) + single
    reduced = replace(human_data, judgments=tuple(remaining), excluded_counts=dict(counts))
    matrix = replace(human_data, judgments=tuple(held_out)).matrix(level)
    return reduced, replace(matrix, name=f"{HUMAN_ROW_PREFIX}: held-out rater")


def align_second_campaign(
    sets: Mapping[str, HumanData], second_sets: Mapping[str, HumanData], level: str
) -> dict[str, ScoreMatrix]:
    """Return a second campaign's scores by set name, matched by name, else by language pair."""
    sets_by_lp = {entry.lp: entry for entry in second_sets.values()}
    rows = {}
    for name, entry in sets.items():
        match = second_sets.get(name) or sets_by_lp.get(entry.lp)
        if match is None and len(sets) == len(second_sets) == 1:
            match = next(iter(second_sets.values()))
        if match is None:
            raise DataError(f"{name}: --human-baseline has no judgments of this language pair")
        matrix = match.matrix(level)
        if matrix is None:
            raise UsageError(f"{match.title}: a ceiling needs human scores of segments")
        rows[name] = replace(matrix, name=f"{HUMAN_ROW_PREFIX}: {match.name}")
    return rows


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

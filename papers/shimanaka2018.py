"""The error analysis of Shimanaka, Kajiwara, Komachi 2018, section 4.4."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from papers.language_pairs import INTO_ENGLISH
from papers.table import Figure
from tertium.core.arrays import BoolArray, FloatArray
from tertium.core.segment import Segment
from tertium.data.dataset_folder import DatasetFolder
from tertium.encoders.encoder import load_encoder
from tertium.metrics import Metric
from tertium.studies.error_analysis import SHARE, split_best

COLUMNS = INTO_ENGLISH["da/wmt16"]
MAX_SHORT_WORDS = 15

MakeMetric = Callable[[DatasetFolder, str], Metric]


@dataclass(frozen=True, kw_only=True)
class ErrorAnalysis:
    """Of the fifth with the highest human scores: translations that one of two metrics rates high.

    `side` selects the metric. Columns: all; those that share fewer words with the reference than
    the median; those with a word unknown to GloVe; and the short ones among these.
    """

    first: MakeMetric
    second: MakeMetric
    side: str
    columns: tuple[str, ...] = ("all", "surface", "unknown", "short, unknown")
    data: str = "da/wmt16, the fifth with the highest human scores of each language pair"
    statistic: str = "number of translations that only this metric rates high"

    def measure(self, datasets: DatasetFolder, model: object, column: str) -> Figure:
        parts, traits = find_disagreements(datasets, self.first, self.second)
        translations = parts[self.side] & traits[column]
        best_count = sum(int(mask.sum()) for mask in parts.values())
        return Figure(value=float(translations.sum()), count=best_count)


@lru_cache(maxsize=2)
def find_disagreements(
    datasets: DatasetFolder, first: MakeMetric, second: MakeMetric
) -> tuple[dict[str, BoolArray], dict[str, BoolArray]]:
    """Return where two metrics disagree, and the traits of all translations."""
    segments: list[Segment] = []
    human, scores, groups = [], [], []
    for lp in COLUMNS:
        judgment_set = datasets.judgments("da/wmt16", lp)
        segments += judgment_set.segments
        groups += [lp] * len(judgment_set)
        human.append(judgment_set.scores)
        models = (first(datasets, lp), second(datasets, lp))
        scores.append([m.score(judgment_set.segments).oriented_segments for m in models])
    left, right = (np.concatenate([pair[n] for pair in scores]) for n in (0, 1))
    best, *high = (mark_fifth(own, groups) for own in (np.concatenate(human), left, right))
    return split_best(best, *high), describe_traits(segments, best)


def mark_fifth(scores: FloatArray, groups: list[str]) -> BoolArray:
    """Mark the highest fifth of each group; of equal scores, the earlier ones."""
    names = np.asarray(groups)
    result = np.zeros(len(scores), dtype=bool)
    for name in dict.fromkeys(groups):
        rows = np.flatnonzero(names == name)
        order = rows[np.argsort(-scores[rows], kind="stable")]
        result[order[: round(SHARE * len(rows))]] = True
    return result


def describe_traits(segments: list[Segment], best: BoolArray) -> dict[str, BoolArray]:
    """Return a mask of the translations in each column of the table."""
    words = [segment.hypothesis.lower().split() for segment in segments]
    seen = [set(segment.references[0].lower().split()) for segment in segments]
    share = np.array(
        [np.mean([float(w in s) for w in own] or [0.0]) for own, s in zip(words, seen, strict=True)]
    )
    glove: Any = load_encoder("glove")
    with_unknown_words = glove.find_unknown_words([s.hypothesis for s in segments])
    unknown = np.array([s.hypothesis in with_unknown_words for s in segments])
    short = np.array([len(own) <= MAX_SHORT_WORDS for own in words])
    return {
        "all": np.ones(len(segments), dtype=bool),
        "surface": share < np.median(share[best]),
        "unknown": unknown,
        "short, unknown": unknown & short,
    }

"""Where two metrics part on good translations (Shimanaka et al. 2018, section 4.4).

Of the translations people rate best, which does only one of two metrics rate high? A metric rates
high what stands in the same share of its own scores. Traits of the texts then tell what kind of
translation each of them misses.

Surface: the translation shares few words with its reference. Unknown words: it has a word that is
not in the vocabulary. Length: it has at most 15 words.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tertium.arrays import BoolArray, FloatArray, IntArray
from tertium.data.judgments import JudgmentSet
from tertium.errors import DataError, LengthError, UsageError
from tertium.evaluation.scoring import distinct_labels
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric
from tertium.segment import Segment

logger = logging.getLogger(__name__)

_WORD = re.compile(r"\w+(?:['’-]\w+)*")


def words(text: str) -> list[str]:
    """Lower-cased words, punctuation left out.

    >>> words("It's over, he said.")
    ["it's", 'over', 'he', 'said']
    """
    return _WORD.findall(text.lower())


def overlap(left: str, right: str) -> float:
    """The F1 of shared words, each counted as often as both have it; 0 where either is empty.

    >>> round(overlap("the cat sat", "the cat sat down"), 3)
    0.857
    """
    a, b = Counter(words(left)), Counter(words(right))
    total = sum(a.values()) + sum(b.values())
    return 2 * sum((a & b).values()) / total if total else 0.0


def unknown_words(text: str, vocabulary: Collection[str]) -> list[str]:
    """The words of a text, numbers aside, that are not in a vocabulary.

    >>> unknown_words("the Katze sat 12 times", {"the", "sat", "times"})
    ['katze']
    """
    return [w for w in words(text) if w not in vocabulary and not w[0].isdigit()]


LOW_OVERLAP, SHORT = 0.5, 15


@dataclass(frozen=True, kw_only=True, eq=False)
class Disagreement:
    """Masks over judgments, (n,): what people rate best, and what each metric rates high."""

    best: BoolArray
    first: BoolArray
    second: BoolArray

    def counts(self, trait: BoolArray | None = None) -> dict[str, int]:
        """How many of the best have a trait, by who rates them high."""
        best = self.best if trait is None else self.best & trait
        return {
            "only first": int((best & self.first & ~self.second).sum()),
            "only second": int((best & ~self.first & self.second).sum()),
            "both": int((best & self.first & self.second).sum()),
            "neither": int((best & ~self.first & ~self.second).sum()),
        }

    def table(self, traits: Mapping[str, BoolArray]) -> dict[str, dict[str, int]]:
        """The counts of all, and of those with each trait."""
        return {"all": self.counts()} | {name: self.counts(mask) for name, mask in traits.items()}


class Lots(NamedTuple):
    """What decides among equal scores, (translations,): of people, and of either metric.

    Were both the same, a metric that ties would choose as people do who tie.
    """

    people: IntArray | None
    metrics: IntArray | None


def disagreement(
    human: FloatArray,
    first: FloatArray,
    second: FloatArray,
    groups: Sequence[str],
    *,
    share: float = 0.2,
    lots: Lots | None = None,
) -> Disagreement:
    """Compare two metrics on the top `share` of each group (language pair) by human score.

    `lots` decide among equal scores at the edge, the lowest first; without any, the earlier is in.

    >>> human = np.array([5.0, 4, 3, 2, 1])
    >>> found = disagreement(human, human, -human, ["cs-en"] * 5, share=0.2)
    >>> found.counts()
    {'only first': 1, 'only second': 0, 'both': 0, 'neither': 0}
    """
    if not len(human) == len(first) == len(second) == len(groups):
        raise LengthError(
            f"{len(human)} human scores, {len(first)} and {len(second)} metric scores, "
            f"{len(groups)} groups: they must be as many"
        )
    if not 0 < share < 1:
        raise UsageError(f"a share of {share:g}: expected between 0 and 1")
    drawn = lots or Lots(None, None)
    best = mark_highest(human, groups, share, drawn.people)
    if not best.any():
        raise UsageError(f"a share of {share:g} of {len(human)} translations is none: take more")
    rated = list(zip(groups, human.tolist(), strict=True))
    among = {rating for rating, chosen in zip(rated, best, strict=True) if chosen}
    if equals := sum(rating in among for rating in rated) - int(best.sum()):
        logger.warning(
            "%d translations are rated as high as some of the best %g %% and left out%s: take a "
            "share that parts people's scores",
            equals,
            100 * share,
            ", for they stand later" if lots is None else " by a lot that their texts decide",
        )
    return Disagreement(
        best=best,
        first=mark_highest(first, groups, share, drawn.metrics),
        second=mark_highest(second, groups, share, drawn.metrics),
    )


def mark_highest(
    scores: FloatArray, groups: Sequence[str], share: float, lots: IntArray | None = None
) -> BoolArray:
    """The highest `share` of each group; of equal scores at the edge the lower lot, the earlier."""
    lots = np.zeros(len(scores), dtype=np.int64) if lots is None else lots
    names = np.asarray(groups)
    result = np.zeros(len(scores), dtype=bool)
    for name in dict.fromkeys(groups):
        rows = np.flatnonzero(names == name)
        order = rows[np.lexsort((lots[rows], -scores[rows]))]
        result[order[: round(share * len(rows))]] = True
    return result


def draw_lots(segments: Sequence[Segment]) -> Lots:
    """Numbers for each segment that its texts alone decide, and that favor no kind of text.

    The order of files must not say which of equally good translations are looked at.
    """
    texts = [ascii((s.hypothesis, s.source, s.references)).encode() for s in segments]

    def draw(whose: bytes) -> IntArray:
        digests = [hashlib.blake2b(t, digest_size=7, person=whose).digest() for t in texts]
        return np.array([int.from_bytes(digest, "big") for digest in digests], dtype=np.int64)

    return Lots(draw(b""), draw(b"metrics"))


@dataclass(frozen=True, kw_only=True, eq=False)
class ErrorAnalysis:
    """Two metrics on the translations people rate best, split by traits of the texts.

    `warnings` are what a reader of each metric's scores should know.
    """

    metrics: tuple[str, str]
    segments: tuple[Segment, ...]
    found: Disagreement
    traits: dict[str, BoolArray]
    warnings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def table(self) -> dict[str, dict[str, int]]:
        """Counts by trait and by which metric rates high."""
        return self.found.table(self.traits)

    def examples(self, *, first: bool, limit: int = 5) -> list[Segment]:
        """Good translations that only the first metric, or only the second, rates high."""
        mine, other = self.found.first, self.found.second
        mask = self.found.best & (mine & ~other if first else other & ~mine)
        return [self.segments[n] for n in np.flatnonzero(mask)[:limit]]


def analyse(
    sets: Sequence[JudgmentSet],
    first: Metric,
    second: Metric,
    *,
    share: float = 0.2,
    vocabulary: Collection[str] | None = None,
) -> ErrorAnalysis:
    """Score judged sets by two metrics and see where they part.

    Without a `vocabulary`, words are known that occur in a reference of any of the sets.
    """
    load_metrics([first, second])  # refuses one that is given twice
    names = distinct_labels({metric.spec: metric.label for metric in (first, second)})
    sets = [one.with_references() for one in sets]
    segments = tuple(segment for one in sets for segment in one.segments)
    if bare := [one.title for one in sets if not all(s.references for s in one.segments)]:
        raise DataError(
            f"{', '.join(bare)}: no references, with which the error analysis compares translations"
        )
    if vocabulary is None:
        vocabulary = {w for s in segments for r in s.references for w in words(r)}
    scores = [metric.score(segments) for metric in (first, second)]
    found = disagreement(
        np.concatenate([one.scores for one in sets]),
        scores[0].upward,
        scores[1].upward,
        [one.lp for one in sets for _ in one.judgments],
        share=share,
        lots=draw_lots(segments),
    )
    return ErrorAnalysis(
        metrics=(names[first.spec], names[second.spec]),
        segments=segments,
        found=found,
        traits=traits_of(segments, vocabulary),
        warnings={names[its.metric]: its.warnings for its in scores if its.warnings},
    )


def traits_of(segments: Sequence[Segment], vocabulary: Collection[str]) -> dict[str, BoolArray]:
    """Which translations share few words with all references, have unknown words, are short."""
    low = np.array(
        [max(overlap(s.hypothesis, r) for r in s.references) < LOW_OVERLAP for s in segments]
    )
    strange = np.array([bool(unknown_words(s.hypothesis, vocabulary)) for s in segments])
    short = np.array([len(words(s.hypothesis)) <= SHORT for s in segments])
    return {
        f"word overlap below {LOW_OVERLAP:g}": low,
        "unknown words": strange,
        f"unknown words, {SHORT} words or fewer": strange & short,
        f"{SHORT} words or fewer": short,
    }

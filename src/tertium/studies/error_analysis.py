"""Where two metrics disagree on good translations (Shimanaka et al. 2018, section 4.4).

Of the translations with the best human scores, which does only one of two metrics rate high? A
metric rates a translation high if it is in the same top share of its own scores. Traits of the
texts show what kind of translation each metric misses:

    low overlap      the translation shares few words with its reference
    unknown words    it has a word that is not in the vocabulary
    short            it has at most 15 words
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray, IntArray
from tertium.core.errors import DataError, LengthError, UsageError
from tertium.core.result import Column, Result, Table
from tertium.core.segment import Segment
from tertium.data.judgments import JudgmentSet
from tertium.data.records import record_from_segment
from tertium.evaluation.system_scores import distinct_labels
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric

logger = logging.getLogger(__name__)

_WORD = re.compile(r"\w+(?:['’-]\w+)*")


def words(text: str) -> list[str]:
    """Return the lower-cased words without punctuation.

    >>> words("It's over, he said.")
    ["it's", 'over', 'he', 'said']
    """
    return _WORD.findall(text.lower())


def overlap(left: str, right: str) -> float:
    """Return the F1 of shared words, with multiplicity; 0 if either text is empty.

    >>> round(overlap("the cat sat", "the cat sat down"), 3)
    0.857
    """
    a, b = Counter(words(left)), Counter(words(right))
    total = sum(a.values()) + sum(b.values())
    return 2 * sum((a & b).values()) / total if total else 0.0


def unknown_words(text: str, vocabulary: Collection[str]) -> list[str]:
    """Return the words that are not in a vocabulary, without numbers.

    >>> unknown_words("the Katze sat 12 times", {"the", "sat", "times"})
    ['katze']
    """
    return [w for w in words(text) if w not in vocabulary and not w[0].isdigit()]


LOW_OVERLAP, MAX_SHORT_WORDS = 0.5, 15


@dataclass(frozen=True, kw_only=True, eq=False)
class Disagreement:
    """Masks over judgments, (n,): best human scores, and what each metric rates high."""

    best: BoolArray
    first: BoolArray
    second: BoolArray

    @property
    def parts(self) -> dict[str, BoolArray]:
        """The best translations, by which metric rates them high."""
        return {
            "only first": self.best & self.first & ~self.second,
            "only second": self.best & ~self.first & self.second,
            "both": self.best & self.first & self.second,
            "neither": self.best & ~self.first & ~self.second,
        }

    def counts(self, traits: Mapping[str, BoolArray]) -> dict[str, dict[str, int]]:
        """Count all of the best translations, and those with each trait."""
        masks = {"all": self.best, **traits}
        return {
            trait: {part: int((own & mask).sum()) for part, own in self.parts.items()}
            for trait, mask in masks.items()
        }


class TieBreakers(NamedTuple):
    """Numbers that break ties of equal scores, (translations,): for human and for metric scores.

    They differ, so that a metric with ties does not choose like human scores with ties.
    """

    human: IntArray | None
    metrics: IntArray | None


def find_disagreement(
    human: FloatArray,
    first: FloatArray,
    second: FloatArray,
    groups: Sequence[str],
    *,
    share: float = 0.2,
    tie_breakers: TieBreakers | None = None,
) -> Disagreement:
    """Compare two metrics on the top `share` of each group (language pair) by human score.

    Equal scores at the edge are chosen by the lowest tie breaker, or by the earlier position.

    >>> human = np.array([5.0, 4, 3, 2, 1])
    >>> disagreement = find_disagreement(human, human, -human, ["cs-en"] * 5, share=0.2)
    >>> disagreement.counts({})
    {'all': {'only first': 1, 'only second': 0, 'both': 0, 'neither': 0}}
    """
    if not len(human) == len(first) == len(second) == len(groups):
        raise LengthError(
            f"{len(human)} human scores, {len(first)} and {len(second)} metric scores, "
            f"{len(groups)} groups: expected the same number of each"
        )
    if not 0 < share < 1:
        raise UsageError(f"share must be between 0 and 1, got {share:g}")
    breakers = tie_breakers or TieBreakers(None, None)
    best = mark_highest(human, groups, share, breakers.human)
    if not best.any():
        raise UsageError(f"share {share:g} of {len(human)} translations is empty: use a larger one")
    ratings = list(zip(groups, human.tolist(), strict=True))
    best_ratings = {rating for rating, chosen in zip(ratings, best, strict=True) if chosen}
    if ties := sum(rating in best_ratings for rating in ratings) - int(best.sum()):
        logger.warning(
            "%d translations tie with the best %g %% by human score and are left out%s: use a "
            "share that separates the human scores",
            ties,
            100 * share,
            " by position" if tie_breakers is None else " by a hash of their texts",
        )
    return Disagreement(
        best=best,
        first=mark_highest(first, groups, share, breakers.metrics),
        second=mark_highest(second, groups, share, breakers.metrics),
    )


def mark_highest(
    scores: FloatArray, groups: Sequence[str], share: float, tie_breakers: IntArray | None = None
) -> BoolArray:
    """Mark the highest `share` of each group; ties are broken by tie breaker, then position."""
    tie_breakers = np.zeros(len(scores), dtype=np.int64) if tie_breakers is None else tie_breakers
    names = np.asarray(groups)
    result = np.zeros(len(scores), dtype=bool)
    for name in dict.fromkeys(groups):
        rows = np.flatnonzero(names == name)
        order = rows[np.lexsort((tie_breakers[rows], -scores[rows]))]
        result[order[: round(share * len(rows))]] = True
    return result


def hash_tie_breakers(segments: Sequence[Segment]) -> TieBreakers:
    """Hash the texts of each segment into tie breakers, independent of the order of files."""
    texts = [ascii((s.hypothesis, s.source, s.references)).encode() for s in segments]

    def hash_texts(salt: bytes) -> IntArray:
        digests = [hashlib.blake2b(t, digest_size=7, person=salt).digest() for t in texts]
        return np.array([int.from_bytes(digest, "big") for digest in digests], dtype=np.int64)

    return TieBreakers(hash_texts(b""), hash_texts(b"metrics"))


@dataclass(frozen=True, kw_only=True, eq=False)
class ErrorAnalysis(Result):
    """Two metrics on the best `share` of translations, split by traits of the texts.

    Tables and records have up to `example_count` examples of each disagreement.
    """

    metrics: tuple[str, str]
    segments: tuple[Segment, ...]
    disagreement: Disagreement
    traits: dict[str, BoolArray]
    share: float
    example_count: int = 0
    warnings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Counts by trait and by which metric rates high."""
        return self.disagreement.counts(self.traits)

    @property
    def examples(self) -> dict[str, list[Segment]]:
        """Good translations that only the first metric, or only the second, rates high."""
        parts = self.disagreement.parts
        return {
            part: [self.segments[n] for n in np.flatnonzero(parts[part])[: self.example_count]]
            for part in ("only first", "only second")
        }

    def records(self) -> dict[str, Any]:
        """Return all counts and the examples, for JSON."""
        record = {"metrics": self.metrics, "counts": self.counts, "warnings": self.warnings}
        if self.example_count:
            record["examples"] = {
                column: [record_from_segment(segment) for segment in segments]
                for column, segments in self.examples.items()
            }
        return record

    def warning_lines(self) -> list[str]:
        """Return the warnings of both metrics."""
        return [
            f"warning: {metric}: {kind}: {count}"
            for metric, counts in self.warnings.items()
            for kind, count in counts.items()
        ]

    def tables(self) -> list[Table]:
        """Return one row of counts per trait of translations, and the examples below."""
        first, second = self.metrics
        headings = {"only first": f"only {first}", "only second": f"only {second}"}
        rows = [{"translations": trait, **counts} for trait, counts in self.counts.items()]
        first_name, *names = rows[0]
        columns = [Column(first_name, itemgetter(first_name))]
        columns += [Column(headings.get(name, name), itemgetter(name), 0) for name in names]
        notes = []
        for column, segments in self.examples.items():
            for segment in segments:
                references = [f"\n  reference: {text}" for text in segment.references]
                notes.append(f"\n{headings[column]}: {segment.hypothesis}{''.join(references)}")
        title = f"the best {100 * self.share:g} % by human score"
        return [Table(columns, rows, title, notes)]


def analyse(
    sets: Sequence[JudgmentSet],
    first: Metric,
    second: Metric,
    *,
    share: float = 0.2,
    vocabulary: Collection[str] | None = None,
    example_count: int = 0,
) -> ErrorAnalysis:
    """Find where two metrics disagree; `vocabulary` is by default the words of all references."""
    load_metrics([first, second])  # rejects a metric that is given twice
    names = distinct_labels({metric.spec: metric.label for metric in (first, second)})
    sets = [one.drop_without_references() for one in sets]
    segments = tuple(segment for one in sets for segment in one.segments)
    if incomplete := [one.title for one in sets if not all(s.references for s in one.segments)]:
        raise DataError(f"{', '.join(incomplete)}: no references, which the error analysis needs")
    if vocabulary is None:
        vocabulary = {w for s in segments for r in s.references for w in words(r)}
    scores = [metric.score(segments) for metric in (first, second)]
    disagreement = find_disagreement(
        np.concatenate([one.scores for one in sets]),
        scores[0].oriented_segments,
        scores[1].oriented_segments,
        [one.lp for one in sets for _ in one.judgments],
        share=share,
        tie_breakers=hash_tie_breakers(segments),
    )
    return ErrorAnalysis(
        metrics=(names[first.spec], names[second.spec]),
        segments=segments,
        disagreement=disagreement,
        traits=find_traits(segments, vocabulary),
        share=share,
        example_count=example_count,
        warnings={names[s.metric]: s.warnings for s in scores if s.warnings},
    )


def find_traits(segments: Sequence[Segment], vocabulary: Collection[str]) -> dict[str, BoolArray]:
    """Return which translations have low overlap, unknown words, or are short."""
    overlaps = [max(overlap(s.hypothesis, r) for r in s.references) for s in segments]
    low = np.array(overlaps) < LOW_OVERLAP
    has_unknown = np.array([bool(unknown_words(s.hypothesis, vocabulary)) for s in segments])
    short = np.array([len(words(s.hypothesis)) <= MAX_SHORT_WORDS for s in segments])
    return {
        f"word overlap below {LOW_OVERLAP:g}": low,
        "unknown words": has_unknown,
        f"unknown words, {MAX_SHORT_WORDS} words or fewer": has_unknown & short,
        f"{MAX_SHORT_WORDS} words or fewer": short,
    }

"""Where two metrics disagree on good translations (Shimanaka et al. 2018, section 4.4).

Of the translations with the best human scores, which does only one of two metrics rate high? A
metric rates a translation high if it is in the same top share of its own scores. Traits of the
texts show what kind of translation each metric misses:

    low overlap      the translation shares few words with its reference
    unknown words    it has a word that is not in any reference
    short            it has at most 15 words
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray
from tertium.core.errors import DataError
from tertium.core.result import Column, Result, Table
from tertium.core.segment import Segment
from tertium.data.judgments import JudgmentSet
from tertium.data.records import record_from_segment
from tertium.evaluation.system_scores import distinct_labels
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric

_WORD = re.compile(r"\w+(?:['’-]\w+)*")
LOW_OVERLAP = 0.5
MAX_SHORT_WORDS = 15
SHARE = 0.2  # of the translations of a language pair that count as the best


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
    a = Counter(words(left))
    b = Counter(words(right))
    return 2 * (a & b).total() / max(a.total() + b.total(), 1)


def mark_highest(scores: FloatArray, groups: Sequence[str]) -> BoolArray:
    """Mark the highest fifth of each group, and scores that are equal to its lowest one.

    >>> mark_highest(np.array([5.0, 4, 3, 2, 1]), ["cs-en"] * 5)
    array([ True, False, False, False, False])
    """
    filled = np.nan_to_num(scores, nan=-np.inf)
    names = np.asarray(groups)
    result = np.zeros(len(scores), dtype=bool)
    for name in set(groups):
        own = filled[names == name]
        result[names == name] = own >= np.sort(own)[-max(1, round(SHARE * len(own)))]
    return result


def split_best(best: BoolArray, first: BoolArray, second: BoolArray) -> dict[str, BoolArray]:
    """Split the best translations by which metric rates them high."""
    return {
        "only first": best & first & ~second,
        "only second": best & ~first & second,
        "both": best & first & second,
        "neither": best & ~first & ~second,
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class ErrorAnalysis(Result):
    """Two metrics on the best translations: masks of `split_best`, and of traits of the texts.

    Tables and records have up to `example_count` examples of each disagreement.
    """

    metrics: tuple[str, ...]
    segments: Sequence[Segment]
    parts: Mapping[str, BoolArray]
    traits: Mapping[str, BoolArray]
    example_count: int
    warnings: Mapping[str, Mapping[str, int]]

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Counts by trait and by which metric rates high."""
        return {
            trait: {part: int((own & mask).sum()) for part, own in self.parts.items()}
            for trait, mask in self.traits.items()
        }

    @property
    def examples(self) -> dict[str, list[Segment]]:
        """Good translations that only the first metric, or only the second, rates high."""
        examples = {}
        for part in ("only first", "only second"):
            rows = np.flatnonzero(self.parts[part])[: self.example_count]
            examples[part] = [self.segments[n] for n in rows]
        return examples

    def records(self) -> dict[str, Any]:
        """Return all counts and the examples, for JSON."""
        record = {"metrics": self.metrics, "counts": self.counts, "warnings": self.warnings}
        if self.example_count:
            examples = self.examples.items()
            record["examples"] = {part: [*map(record_from_segment, own)] for part, own in examples}
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
        names = {"only first": f"only {first}", "only second": f"only {second}"}
        columns = [Column("translations")]
        for part in self.parts:
            columns.append(Column(names.get(part, part), part, 0))
        rows = [{"translations": trait, **counts} for trait, counts in self.counts.items()]
        notes = []
        for part, segments in self.examples.items():
            for segment in segments:
                references = [f"\n  reference: {text}" for text in segment.references]
                notes.append(f"\n{names[part]}: {segment.hypothesis}{''.join(references)}")
        title = f"the best {100 * SHARE:g} % by human score"
        return [Table(columns, rows, title, notes, cautions=self.warning_lines())]


def analyse(
    sets: Sequence[JudgmentSet], first: Metric, second: Metric, *, example_count: int = 0
) -> ErrorAnalysis:
    """Find where two metrics disagree on the best translations of each language pair."""
    metrics = load_metrics([first, second])  # rejects a metric that is given twice
    names = distinct_labels({metric.spec: metric.label for metric in metrics})
    sets = [one.drop_without_references() for one in sets]
    if incomplete := [one.title for one in sets if not all(s.references for s in one.segments)]:
        raise DataError(f"{', '.join(incomplete)}: no references, which the error analysis needs")
    segments = [segment for one in sets for segment in one.segments]
    groups = [one.lp for one in sets for _ in one.judgments]
    best = mark_highest(np.concatenate([one.scores for one in sets]), groups)
    scores = [metric.score(segments) for metric in metrics]
    high = [mark_highest(own.oriented_segments, groups) for own in scores]
    return ErrorAnalysis(
        metrics=tuple(names.values()),
        segments=segments,
        parts=split_best(best, *high),
        traits=find_traits(segments),
        example_count=example_count,
        warnings={names[own.metric]: own.warnings for own in scores if own.warnings},
    )


def find_traits(segments: Sequence[Segment]) -> dict[str, BoolArray]:
    """Return which translations have low overlap, words that no reference has, or are short."""
    vocabulary = {word for s in segments for word in words(" ".join(s.references))}
    low, unknown, short = np.zeros((3, len(segments)), dtype=bool)
    for n, segment in enumerate(segments):
        own = words(segment.hypothesis)
        low[n] = max(overlap(segment.hypothesis, r) for r in segment.references) < LOW_OVERLAP
        unknown[n] = any(w not in vocabulary and not w[0].isdigit() for w in own)
        short[n] = len(own) <= MAX_SHORT_WORDS
    return {
        "all": np.ones(len(segments), dtype=bool),
        f"word overlap below {LOW_OVERLAP:g}": low,
        "unknown words": unknown,
        f"unknown words, {MAX_SHORT_WORDS} words or fewer": unknown & short,
        f"{MAX_SHORT_WORDS} words or fewer": short,
    }

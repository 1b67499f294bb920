"""Define rankers: models that predict which of two translations is better.

The pairwise probabilities of `prefer` give the mean win probability of each system on each
segment (`rank`) and of each candidate in a list (`win_rates`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tertium.core.arrays import BoolArray, FloatArray, IntArray, divide
from tertium.core.errors import (
    DataError,
    LengthError,
    PluginError,
    UnknownNameError,
    UsageError,
    short_repr,
)
from tertium.core.extras import explain_missing
from tertium.core.fields import build_dataclass, parse_fields, split_spec
from tertium.core.registry import ALIASES, METRICS, RANKERS, resolve
from tertium.core.scores import ScoreMatrix
from tertium.core.segment import Segment
from tertium.data.testset import TestSet
from tertium.metrics.base.explanation import Explanation, WinProbabilities
from tertium.metrics.base.loading import (
    find_comet_error,
    is_model_folder,
    load_metric,
    replace_fields,
)
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.scorer import (
    Scorer,
    check_segment_types,
    flag_empty,
    format_signature,
)
from tertium.metrics.base.text_warnings import Flags
from tertium.models.checkpoint import read_config


class Ranker(Scorer):
    """A model that predicts which of two translations of the same source is better.

        ranker = load_ranker("pairwise")
        ranker.prefer([better], [worse])     # array([0.93])
        ranker.rank(testset)                 # mean win probability per system and segment

    A subclass implements `prefer_pairs`. The probability of a pair must not depend on other pairs,
    and prefer(a, b) + prefer(b, a) = 1. Any metric can be used as a ranker: see `load_ranker`.
    """

    @abstractmethod
    def prefer_pairs(
        self, segments: Sequence[Segment], left: IntArray, right: IntArray
    ) -> FloatArray:
        """Predict the probability that segments[left[i]] is better than segments[right[i]]."""

    def prefer(self, left: Sequence[Segment], right: Sequence[Segment]) -> FloatArray:
        """Predict the probability that left[i] is better than right[i], (n,).

        Both translations of a pair must have the same source and references.
        """
        for side in (left, right):
            check_segment_types(self.name, side)
        if len(left) != len(right):
            raise LengthError(f"{len(left)} left translations, but {len(right)} right ones")
        for number, (a, b) in enumerate(zip(left, right, strict=True), start=1):
            if (a.source, a.references) != (b.source, b.references):
                raise DataError(
                    f"pair {number}: both translations must have the same source and references"
                )
        segments, (left_rows, right_rows) = _number_segments([left, right])
        return self._checked_probabilities(segments, left_rows, right_rows)

    def _checked_probabilities(
        self, segments: Sequence[Segment], left: IntArray, right: IntArray
    ) -> FloatArray:
        """Call `prefer_pairs` and check shape, type and range; empty translations always lose."""
        self.check(segments)
        with explain_missing(self.name):
            chances = np.asarray(self.prefer_pairs(segments, left, right))
        is_numeric = chances.shape == left.shape and chances.dtype.kind in "bfiu"
        if not is_numeric or (chances < 0).any() or (chances > 1).any():
            kind = "other numbers" if is_numeric else f"{chances.dtype} of shape {chances.shape}"
            raise PluginError(
                f"{self.name}: prefer_pairs returned {kind}: expected probabilities (0 to 1 or "
                f"NaN) of shape ({len(left)},), one per pair in order"
            )
        empty = self._flag_empty(segments)
        decided = (1.0 + empty[right] - empty[left]) / 2  # an empty translation always loses
        return np.where(empty[left] | empty[right], decided, chances.astype(np.float64, copy=False))

    def _flag_empty(self, segments: Sequence[Segment]) -> BoolArray:
        return flag_empty(self, segments)

    def signature(self, segments: Sequence[Segment]) -> str:
        """Return the string to publish with win rates."""
        return format_signature(self, segments)

    def win_rates(self, groups: Sequence[Sequence[Segment]]) -> list[FloatArray]:
        """Compute the mean win probability of each translation against the others of its group.

        A group holds translations of one source; the result is NaN without an opponent or score.
        """
        segments, rows = _number_segments(groups)
        pairs = [numbers[_pair_indices(len(numbers))] for numbers in rows]  # (2, pairs) each
        left, right = np.hstack([np.zeros((2, 0), dtype=np.int64), *pairs])
        chances = self._checked_probabilities(segments, left, right)
        ends = np.cumsum([pair.shape[1] for pair in pairs])
        parts = np.split(chances, ends[:-1])
        return [_mean_wins(part, len(group)) for part, group in zip(parts, groups, strict=True)]

    def rank(self, testset: TestSet) -> ScoreMatrix:
        """Compute the mean win probability of each system on each segment, (systems, segments)."""
        if len(testset.systems) < 2:
            raise DataError(f"ranking needs at least two systems, got {len(testset.systems)}")
        rates = self.system_rates([testset.segments(system) for system in testset.systems])
        return ScoreMatrix(self.spec, tuple(testset.systems), np.column_stack(rates), testset.items)

    def system_rates(self, outputs: Sequence[Sequence[Segment]]) -> list[FloatArray]:
        """Compute the mean win probability of each system, one array per segment."""
        return self.win_rates(list(zip(*outputs, strict=True)))

    def explain(self, translations: Sequence[Segment], names: Sequence[str] = ()) -> Explanation:
        """Compute win probabilities between translations of one source; `names` labels them."""
        if len(translations) < 2:
            raise UsageError(f"{self.name} compares translations: give two or more to explain")
        count = len(translations)
        first, second = _pair_indices(count)
        wins = self.prefer([translations[n] for n in first], [translations[n] for n in second])
        chances = np.full((count, count), 0.5)
        chances[first, second] = wins
        chances[second, first] = 1 - wins
        return Explanation(
            metric=self.spec,
            score=float(_mean_wins(wins, count)[0]),
            win_probabilities=WinProbabilities(
                names=tuple(names) or tuple(segment.hypothesis for segment in translations),
                chances=tuple(map(tuple, chances.tolist())),
            ),
        )


@dataclass(frozen=True, kw_only=True)
class ScoreRanker(Ranker):
    """A metric used as a ranker: the better score wins, equal scores give 1/2, missing scores NaN.

    >>> ranker = load_ranker("chrf")
    >>> reference = ("the cat sat on the mat",)
    >>> good, bad = Segment("the cat sat", None, reference), Segment("a dog", None, reference)
    >>> ranker.prefer([good, bad, good], [bad, good, good])
    array([1. , 0. , 0.5])
    """

    name: ClassVar[str] = "score"
    title: ClassVar[str] = "by score"

    metric: Metric

    @property
    def required_inputs(self) -> frozenset[str]:
        return self.metric.required_inputs

    @property
    def spec(self) -> str:
        return self.metric.spec

    def prefer_pairs(
        self, segments: Sequence[Segment], left: IntArray, right: IntArray
    ) -> FloatArray:
        values = self._values(segments)
        return _chance(values[left], values[right])

    def system_rates(self, outputs: Sequence[Sequence[Segment]]) -> list[FloatArray]:
        """Compute win rates; a metric that reads the corpus scores each system separately."""
        if not self.metric.reads_corpus:
            return super().system_rates(outputs)
        values = np.array([self._values(part) for part in outputs])  # (systems, segments)
        first, second = _pair_indices(len(outputs))
        chances = _chance(values[first], values[second])  # (pairs, segments)
        return [_mean_wins(column, len(outputs)) for column in chances.T]

    def _values(self, segments: Sequence[Segment]) -> FloatArray:
        """Return oriented scores (higher is better), NaN if not finite."""
        oriented_segments = self.metric.score(segments).oriented_segments
        return np.where(np.isfinite(oriented_segments), oriented_segments, np.nan)

    def check(self, segments: Sequence[Segment]) -> None:
        self.metric.check(segments)

    def _flag_empty(self, segments: Sequence[Segment]) -> BoolArray:
        return np.zeros(len(segments), dtype=np.bool_)  # their scores decide

    def flags(self, segments: Sequence[Segment]) -> Flags:
        return self.metric.flags(segments)

    def signature(self, segments: Sequence[Segment]) -> str:
        return f"{self.title}|metric:{format_signature(self.metric, segments)}"


def load_ranker(spec: str | Path, **fields: Any) -> Ranker:
    """Build a ranker from its spec, or turn a metric into a ranker from the metric's spec.

    `spec` may be the path of a folder with a trained ranker or metric. Registered names take
    precedence over folders: write `./chrf` for a folder of that name.

    >>> load_ranker("chrf").spec
    'chrf'
    """
    if not isinstance(spec, str | Path):
        raise UsageError(
            f"expected a spec such as 'pairwise', got {short_repr(spec)}; tertium.rank also "
            "accepts a metric"
        )
    spec = str(spec)
    name, texts = (spec, {}) if is_model_folder(spec) else split_spec(spec)
    if name in RANKERS:
        cls = resolve(RANKERS, name, "ranker")
        if set(texts) == {"model"} and not fields:
            loaded: Ranker = cls.load(texts["model"])
            return loaded
        built: Ranker = build_dataclass(cls, name, texts)
        return replace_fields(built, fields)
    if is_model_folder(name) and "ranker" in read_config(Path(name)):
        from tertium.models.trained_model import load_folder

        saved: Ranker = load_folder(Path(name), RANKERS, "ranker")
        return replace_fields(saved, {**parse_fields(type(saved), saved.name, texts), **fields})
    is_name = name in {*METRICS, *ALIASES} or "/" in name or is_model_folder(name)
    if not is_name and find_comet_error(name) is None:
        raise UnknownNameError("ranker", name, [*RANKERS, *METRICS, *ALIASES])
    return ScoreRanker(metric=load_metric(spec, **fields))


def as_ranker(scorer: str | Metric | Ranker) -> Ranker:
    """Return a ranker as it is, load one from a spec, or wrap a metric."""
    if isinstance(scorer, Metric):
        return ScoreRanker(metric=scorer)
    if isinstance(scorer, Ranker):
        return scorer
    return load_ranker(scorer)


def _chance(left: FloatArray, right: FloatArray) -> FloatArray:
    return (np.sign(left - right) + 1) / 2


def _number_segments(
    groups: Sequence[Sequence[Segment]],
) -> tuple[list[Segment], list[IntArray]]:
    """Return the distinct segments, and their numbers in each group."""
    numbers: dict[Segment, int] = {}
    rows = [np.array([numbers.setdefault(s, len(numbers)) for s in g], np.int64) for g in groups]
    return list(numbers), rows


@lru_cache(maxsize=64)
def _pair_indices(size: int) -> IntArray:
    """Return all pairs of a first and a later second index, (2, pairs)."""
    return np.stack(np.triu_indices(size, 1)).astype(np.int64)


def _mean_wins(chances: FloatArray, size: int) -> FloatArray:
    """Average win probabilities of i against j (i < j) to one mean per candidate.

    Missing probabilities are left out; the result is NaN for a candidate without any.

    >>> _mean_wins(np.array([1.0, np.nan, np.nan]), 3)
    array([ 1.,  0., nan])
    """
    valid = ~np.isnan(chances)
    pairs = _pair_indices(size)[:, valid]
    first, second = pairs
    wins = np.bincount(first, chances[valid], size) + np.bincount(second, 1 - chances[valid], size)
    return divide(wins, np.bincount(pairs.ravel(), minlength=size))

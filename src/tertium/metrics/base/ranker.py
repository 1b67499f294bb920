"""What a ranker is: which of two translations is better; and what follows for any number of them.

From `prefer`, the chance that one translation is better than another, come the mean win
probability of each system on each segment (`rank`) and of each candidate in a list (`rerank`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tertium.arrays import FloatArray, IntArray, divide
from tertium.data.testset import TestSet
from tertium.errors import (
    DataError,
    LengthError,
    ModelError,
    PluginError,
    UnknownNameError,
    UsageError,
    one_line,
)
from tertium.extras import explain_missing
from tertium.metrics.base.explanation import Explanation, Votes
from tertium.metrics.base.loading import change_fields, is_folder, load_metric
from tertium.metrics.base.metric import Metric, Scorer
from tertium.models.checkpoint import read_config
from tertium.registry import ALIASES, METRICS, RANKERS, resolve
from tertium.scores import ScoreMatrix
from tertium.segment import Segment
from tertium.specs import build, read_fields, split_spec


class Ranker(Scorer):
    """Says which of two translations of the same source is better.

    A subclass implements `prefer_rows`. What it says of a pair never depends on other pairs, and
    prefer(a, b) + prefer(b, a) = 1.
    """

    @abstractmethod
    def prefer_rows(
        self, segments: Sequence[Segment], left: IntArray, right: IntArray
    ) -> FloatArray:
        """The chance that segment left[i] is better than segment right[i], (pairs,)."""

    def prefer(self, left: Sequence[Segment], right: Sequence[Segment]) -> FloatArray:
        """The chance that left[i] is better than right[i], (n,)."""
        for side in (left, right):
            self.check_kind(side)
        if len(left) != len(right):
            raise LengthError(f"{len(left)} left translations for {len(right)} right ones")
        for number, (a, b) in enumerate(zip(left, right, strict=True), start=1):
            if (a.source, a.references) != (b.source, b.references):
                raise DataError(
                    f"pair {number}: two translations can be compared only where they have the "
                    "same source and references"
                )
        rows: dict[Segment, int] = {}
        places = [[rows.setdefault(s, len(rows)) for s in side] for side in (left, right)]
        segments = list(rows)
        self.check(segments)
        index = np.array(places, dtype=np.int64)
        return self._checked_chances(segments, index[0], index[1])

    def _checked_chances(
        self, segments: Sequence[Segment], left: IntArray, right: IntArray
    ) -> FloatArray:
        """`prefer_rows`, a chance for each pair: others would count for wrong translations."""
        with explain_missing(self.name):
            chances = np.asarray(self.prefer_rows(segments, left, right))
        numbers = chances.shape == left.shape and chances.dtype.kind in "bfiu"
        if not numbers or (chances < 0).any() or (chances > 1).any():
            what = "other numbers" if numbers else f"{chances.dtype} of shape {chances.shape}"
            raise PluginError(
                f"{self.name} gave {what} for {len(left)} pairs: prefer_rows gives chances, from 0 "
                f"to 1 or NaN, of shape ({len(left)},), one for each pair in their order"
            )
        return chances.astype(np.float64, copy=False)

    def win_rates(self, groups: Sequence[Sequence[Segment]]) -> list[FloatArray]:
        """The mean chance of each translation to beat the others of its group, where it is known.

        A group holds translations of one source. NaN for a lone one, or one that is not scored.
        """
        rows: dict[Segment, int] = {}
        places = [np.array([rows.setdefault(s, len(rows)) for s in g], np.int64) for g in groups]
        segments = list(rows)
        self.check(segments)
        firsts, seconds = _all_pairs(places)
        chances = self._checked_chances(segments, firsts, seconds)
        rates, start = [], 0
        for group in groups:
            size = len(group) * (len(group) - 1) // 2
            rates.append(_mean_wins(chances[start : start + size], len(group)))
            start += size
        return rates

    def rank(self, testset: TestSet) -> ScoreMatrix:
        """The mean win probability of each system on each segment, (systems, segments)."""
        if len(testset.systems) < 2:
            raise DataError("ranking takes at least two systems")
        rates = self.system_rates([testset.segments(system) for system in testset.systems])
        return ScoreMatrix(
            self.spec,
            tuple(testset.systems),
            np.column_stack(rates),
            testset.items,
        )

    def system_rates(self, outputs: Sequence[Sequence[Segment]]) -> list[FloatArray]:
        """The mean chance of each system to beat the others on each segment."""
        return self.win_rates(list(zip(*outputs, strict=True)))

    def explain(self, translations: Sequence[Segment], names: Sequence[str] = ()) -> Explanation:
        """The chance of each of several translations of one source to beat each other one.

        `names` are theirs, the translations themselves where none are given.
        """
        if len(translations) < 2:
            raise UsageError(f"{self.name} compares translations: give it two or more to explain")
        first, second = _pair_places(len(translations))
        wins = self.prefer([translations[n] for n in first], [translations[n] for n in second])
        chances = np.full((len(translations), len(translations)), 0.5)
        chances[first, second] = wins
        chances[second, first] = 1 - wins
        votes = Votes(
            names=tuple(names) or tuple(segment.hypothesis for segment in translations),
            chances=tuple(map(tuple, chances.tolist())),
        )
        score = float(_mean_wins(wins, len(translations))[0])
        return Explanation(metric=self.spec, score=score, votes=votes)


@dataclass(frozen=True, kw_only=True)
class ByScore(Ranker):
    """Any metric as a ranker: the translation with the better score wins, 1/2 for equal scores.

    Where a score is no number there is no chance, either: NaN.

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
    def needs(self) -> frozenset[str]:
        return self.metric.needs

    @property
    def spec(self) -> str:
        return self.metric.spec

    def prefer_rows(
        self, segments: Sequence[Segment], left: IntArray, right: IntArray
    ) -> FloatArray:
        values = self._values(segments)
        return _chance(values[left], values[right])

    def system_rates(self, outputs: Sequence[Sequence[Segment]]) -> list[FloatArray]:
        """Of a metric that reads the corpus, by the scores that each system has alone."""
        if not self.metric.reads_corpus:
            return super().system_rates(outputs)
        values = np.array([self._values(part) for part in outputs])  # (systems, segments)
        first, second = _pair_places(len(outputs))
        chances = _chance(values[first], values[second])  # (pairs, segments)
        return [_mean_wins(column, len(outputs)) for column in chances.T]

    def _values(self, segments: Sequence[Segment]) -> FloatArray:
        """Scores of which the higher is better, NaN where one is no number."""
        upward = self.metric.score(segments).upward
        return np.where(np.isfinite(upward), upward, np.nan)

    def check(self, segments: Sequence[Segment]) -> None:
        self.metric.check(segments)

    def warnings(self, segments: Sequence[Segment]) -> dict[str, int]:
        return self.metric.warnings(segments)

    def signature(self, segments: Sequence[Segment]) -> str:
        return f"{self.title}|metric:{self.metric.signature(segments)}"


def load_ranker(spec: str | Path, **fields: Any) -> Ranker:
    """Build a ranker from its spec, or one that goes by a metric's scores from the metric's spec.

    A trained model brings its settings along: `pairwise:model=FOLDER`, or the folder alone, which
    may hold a trained metric too. A registered name goes first, so write `./chrf` for a folder of
    that name.
    """
    if not isinstance(spec, str | Path):
        raise UsageError(
            f"a ranker is named by a text such as 'pairwise', not by {one_line(spec)}; "
            "tertium.rank takes a metric, too"
        )
    spec = str(spec)
    if spec not in RANKERS and is_folder(spec):
        return _load_folder(spec, **fields)
    name, texts = split_spec(spec)
    if name in METRICS or name in ALIASES:
        return ByScore(metric=load_metric(spec, **fields))
    if name not in RANKERS and is_folder(name):
        ranker = _load_folder(name)
        scorer = ranker.metric if isinstance(ranker, ByScore) else ranker
        given = read_fields(type(scorer), scorer.name, texts)
        return _load_folder(name, **{**given, **fields})
    if name not in RANKERS and ("/" in name or _is_directory(spec)):
        raise ModelError(f"{spec} has no config.json: neither a trained ranker nor a metric")
    if name not in RANKERS:
        raise UnknownNameError("ranker", name, [*RANKERS, *METRICS, *ALIASES])
    cls = resolve(RANKERS, name, "ranker")
    if set(texts) == {"model"} and not fields:
        loaded: Ranker = cls.load(texts["model"])
        return loaded
    built: Ranker = build(cls, name, texts)
    return change_fields(built, fields)


def find_ranker(given: str | Metric | Ranker) -> Ranker:
    """A ranker as it is, by its spec, or one that goes by a metric's scores."""
    if isinstance(given, Metric):
        return ByScore(metric=given)
    if isinstance(given, str | Path):
        return load_ranker(str(given))
    if not isinstance(given, Ranker):
        raise UsageError(
            f"a ranker or metric is named by a text such as 'pairwise', not by {one_line(given)}"
        )
    return given


def _is_directory(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except OSError:  # longer than the name of any file
        return False


def _load_folder(folder: str, **fields: Any) -> Ranker:
    """The ranker that was saved to a folder, or one that goes by the metric saved there."""
    from tertium.models.trained import load_folder

    if "ranker" not in read_config(Path(folder)):
        return ByScore(metric=load_metric(folder, **fields))
    ranker: Ranker = load_folder(Path(folder), RANKERS, "ranker")
    return change_fields(ranker, fields)


def _chance(left: FloatArray, right: FloatArray) -> FloatArray:
    """1 where the left score is higher, 0 where the right one is, 1/2 where they are equal."""
    chance: FloatArray = (np.sign(left - right) + 1) / 2
    return chance


@lru_cache(maxsize=64)
def _pair_places(size: int) -> tuple[IntArray, IntArray]:
    """The pairs i < j of so many places."""
    first, second = np.triu_indices(size, 1)
    return first.astype(np.int64), second.astype(np.int64)


def _all_pairs(places: Sequence[IntArray]) -> tuple[IntArray, IntArray]:
    """Every pair within every group, group by group."""
    pairs = [(p, *_pair_places(len(p))) for p in places]
    nothing = [np.zeros(0, dtype=np.int64)]
    return (
        np.concatenate([*nothing, *(p[first] for p, first, _ in pairs)]),
        np.concatenate([*nothing, *(p[second] for p, _, second in pairs)]),
    )


def _mean_wins(chances: FloatArray, size: int) -> FloatArray:
    """From the chance of i against j for each i < j to the mean of each against all others.

    A chance that is no number is left out; NaN for one that met no other.

    >>> _mean_wins(np.array([1.0, np.nan, np.nan]), 3)
    array([ 1.,  0., nan])
    """
    known = ~np.isnan(chances)
    first, second = (places[known] for places in _pair_places(size))
    wins = np.bincount(first, chances[known], size) + np.bincount(second, 1 - chances[known], size)
    return divide(wins, np.bincount(first, minlength=size) + np.bincount(second, minlength=size))

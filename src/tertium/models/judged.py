"""Judged sets to learn from: scores and comparisons apart, checked, without what is tested."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from tertium.arrays import FloatArray
from tertium.data.human import reasons
from tertium.data.judgments import NO_REFERENCE, JudgmentSet
from tertium.data.leaks import drop_shared
from tertium.data.rankings import ItemTexts, PairJudgment, RankingSet, gather
from tertium.errors import DataError, UsageError, one_line
from tertium.segment import Judgment, Preference, Segment

logger = logging.getLogger(__name__)

Judged = TypeVar("Judged", JudgmentSet, RankingSet)
TrainingData = Iterable[JudgmentSet | RankingSet | Judgment | Preference]


@dataclass(frozen=True, eq=False)
class JudgedSets:
    """Sets of scores and of comparisons."""

    scores: Sequence[JudgmentSet] = ()
    comparisons: Sequence[RankingSet] = ()

    @property
    def all(self) -> list[JudgmentSet | RankingSet]:
        return [*self.scores, *self.comparisons]

    @property
    def sizes(self) -> dict[str, int]:
        """How many judgments each set has, by name and language pair."""
        sizes: Counter[str] = Counter()
        for one in self.all:
            sizes[f"{one.name} {one.lp}".strip()] += len(one)
        return dict(sizes)


def judged_sets(
    metric: str, data: TrainingData, dev: TrainingData, needs: frozenset[str]
) -> tuple[JudgedSets, JudgedSets]:
    """What to train on and what to choose on, checked, and without what they share.

    What was left out, here or when it was read, is told.
    """
    held = _usable(*training_sets(dev), needs)
    sets = _usable(*without_leaks(*training_sets(data), held.all), needs)
    for one in (*sets.all, *held.all):
        if untold := {why: count for why, count in one.left_out.items() if why != NO_REFERENCE}:
            logger.warning("%s: %d judgments%s", one.title, len(one), reasons(untold))
    check_needs(metric, [*sets.all, *held.all], needs)
    return sets, held


def _usable(
    scores: list[JudgmentSet], rankings: list[RankingSet], needs: frozenset[str]
) -> JudgedSets:
    """Sets without single translations that lack the reference which others have."""
    if "references" in needs:
        scores = [one.with_references() for one in scores]
    return JudgedSets(scores, rankings)


def training_sets(data: TrainingData) -> tuple[list[JudgmentSet], list[RankingSet]]:
    """Sets and single verdicts, sorted into sets of scores and sets of comparisons."""
    entries = [data] if isinstance(data, JudgmentSet | RankingSet) else list(data)
    scores = [one for one in entries if isinstance(one, JudgmentSet)]
    rankings = [one for one in entries if isinstance(one, RankingSet)]
    single = [one for one in entries if not isinstance(one, JudgmentSet | RankingSet)]
    judgments = tuple(one for one in single if isinstance(one, Judgment))
    preferences = [one for one in single if not isinstance(one, Judgment)]
    if other := next((one for one in preferences if not isinstance(one, Preference)), None):
        raise UsageError(
            f"expected judgments and comparisons, got {one_line(other)}; a file, a set or a frame "
            "of them serves, too"
        )
    if judgments:
        scores.append(JudgmentSet(name="judgements", judgments=judgments))
    if preferences:
        rankings.append(_ranking_set(preferences))
    return scores, rankings


def _ranking_set(preferences: Sequence[Preference]) -> RankingSet:
    """Single comparisons as a set: an item for each distinct source and references."""
    texts: dict[str, ItemTexts] = {}
    comparisons = []
    for p in preferences:
        item = repr((p.item, p.left.source, p.left.references))
        names = (p.left_system or p.left.hypothesis, p.right_system or p.right.hypothesis)
        outputs = dict(zip(names, (p.left.hypothesis, p.right.hypothesis), strict=True))
        if (p.left.source, p.left.references) != (p.right.source, p.right.references):
            raise DataError(
                "a comparison is of two translations of one source with the same references, not "
                f"of {one_line(p.left)} and {one_line(p.right)}"
            )
        known = texts[item].outputs if item in texts else {}
        for name in names:
            if known.get(name, outputs[name]) != outputs[name]:
                raise DataError(
                    f"{name} translates one item as {one_line(known[name])} and as "
                    f"{one_line(outputs[name])}: name items, or systems, by what they are"
                )
        texts[item] = ItemTexts({**known, **outputs}, p.left.source, p.left.references)
        comparisons.append(PairJudgment(item, *names, p.verdict, p.judge))
    return gather(comparisons, texts, name="preferences")


def without_leaks(
    scores: Sequence[JudgmentSet],
    rankings: Sequence[RankingSet],
    held_out: Sequence[JudgmentSet | RankingSet],
) -> tuple[list[JudgmentSet], list[RankingSet]]:
    """Training sets without what shares a reference with held-out sets."""
    if not held_out:
        return list(scores), list(rankings)
    references = dict.fromkeys((s.references, s.source) for one in held_out for s in one.segments)
    rows = tuple(Judgment(Segment("", s, r), 0.0) for r, s in references)
    held = [JudgmentSet(name="held out", judgments=rows)]
    return (
        [_without_shared(one, held) for one in scores],
        [_without_shared(one, held) for one in rankings],
    )


def _without_shared(one: Judged, held: Sequence[JudgmentSet]) -> Judged:
    try:
        return drop_shared(one, held)
    except DataError:
        raise DataError(
            f"{one.name} {one.lp}".rstrip() + ": every reference of it occurs in the data held out "
            "for choosing or testing, so nothing is left to train on"
        ) from None


def check_needs(
    metric: str, sets: Sequence[JudgmentSet | RankingSet], needs: frozenset[str]
) -> None:
    """Refuse training data whose segments lack what the metric compares with."""
    for one in sets:
        used = one.is_compared if isinstance(one, RankingSet) else np.ones(len(one), dtype=bool)
        for number in np.flatnonzero(used):
            segment = one.segments[number]
            lacks = {"references": not segment.references, "source": segment.source is None}
            if missing := [name for name in sorted(needs) if lacks[name]]:
                raise DataError(
                    f"{metric} learns from {' and '.join(sorted(needs))}, and segment "
                    f"{number + 1} of {one.name} {one.lp}".rstrip()
                    + f" has no {' and no '.join(missing)}"
                )


def check_targets(targets: FloatArray, use: str = "learned from") -> FloatArray:
    """Refuse scores nothing can be learned from, or chosen by."""
    if not len(targets):
        raise DataError("there is nothing to learn from: no judgment with a text to compare to")
    if not np.isfinite(targets).all():
        raise DataError(f"{int((~np.isfinite(targets)).sum())} human scores are not numbers")
    if np.ptp(targets) == 0:
        raise DataError(
            f"all {len(targets)} human scores are {targets[0]:g}: nothing can be {use} them"
        )
    return targets

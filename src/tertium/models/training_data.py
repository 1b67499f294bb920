"""Prepare human data for training: split by kind, check inputs, remove leaked references.

A `TrainingJob` is the input of every `fit` method.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.errors import DataError, UsageError, short_repr
from tertium.core.segment import Judgment, Preference, Segment
from tertium.data.human_data import reasons
from tertium.data.judgments import NO_REFERENCE, JudgmentSet
from tertium.data.rankings import PairwiseJudgment, RankingSet, build_ranking_set
from tertium.data.ratings import drop_overlap
from tertium.models.training_options import Epoch

logger = logging.getLogger(__name__)

DATA_LABELS = {
    "scores": "human scores (--train, a JudgmentSet)",
    "comparisons": "comparisons (--train, a RankingSet)",
}
TrainingData = Iterable[JudgmentSet | RankingSet | Judgment | Preference]


@dataclass(frozen=True, eq=False)
class TrainingSets:
    """Sets of human scores and sets of comparisons."""

    scores: Sequence[JudgmentSet] = ()
    comparisons: Sequence[RankingSet] = ()

    @property
    def all(self) -> list[JudgmentSet | RankingSet]:
        return [*self.scores, *self.comparisons]

    @property
    def sizes(self) -> dict[str, int]:
        """Number of judgments in each set, by name and language pair."""
        sizes: Counter[str] = Counter()
        for judgment_set in self.all:
            sizes[f"{judgment_set.name} {judgment_set.lp}".strip()] += len(judgment_set)
        return dict(sizes)


def prepare_training_sets(
    metric: str,
    accepted: Sequence[str],
    data: TrainingData,
    dev: TrainingData,
    required_inputs: frozenset[str],
) -> tuple[TrainingSets, TrainingSets]:
    """Return training and dev sets without shared references; log what is left out.

    Raise an error if there is no training data, or data that the model cannot use: of a kind that
    is not accepted, or without a required input.
    """
    dev_sets = sort_training_sets(dev)
    sets = remove_leaks(sort_training_sets(data), dev_sets.all)
    if "references" in required_inputs:
        sets, dev_sets = (
            TrainingSets([one.drop_without_references() for one in part.scores], part.comparisons)
            for part in (sets, dev_sets)
        )
    for kind, label in DATA_LABELS.items():
        if kind not in accepted and (getattr(sets, kind) or getattr(dev_sets, kind)):
            usable = " and ".join(DATA_LABELS[name] for name in accepted)
            raise UsageError(f"{metric} learns from {usable}; it cannot use {label}")
    if not sets.all:
        raise DataError(f"{metric}: no training data: give judgments")
    for one in (*sets.all, *dev_sets.all):
        if left_out := {k: n for k, n in one.excluded_counts.items() if k != NO_REFERENCE}:
            logger.warning("%s: %d judgments%s", one.title, len(one), reasons(left_out))
        _check_inputs(metric, one, required_inputs)
    return sets, dev_sets


def sort_training_sets(data: TrainingData) -> TrainingSets:
    """Sort sets and single judgments into sets of scores and sets of comparisons."""
    entries = [data] if isinstance(data, JudgmentSet | RankingSet) else list(data)
    for entry in entries:
        if not isinstance(entry, JudgmentSet | RankingSet | Judgment | Preference):
            raise UsageError(
                f"expected judgments or comparisons, got {short_repr(entry)}: pass files, sets, "
                "a data frame, or single judgments"
            )
    scores = [entry for entry in entries if isinstance(entry, JudgmentSet)]
    rankings = [entry for entry in entries if isinstance(entry, RankingSet)]
    preferences = [entry for entry in entries if isinstance(entry, Preference)]
    if judgments := [entry for entry in entries if isinstance(entry, Judgment)]:
        scores.append(JudgmentSet(name="judgments", judgments=tuple(judgments)))
    if preferences:
        rankings.append(_ranking_set(preferences))
    return TrainingSets(scores, rankings)


def _ranking_set(preferences: Sequence[Preference]) -> RankingSet:
    """Collect single comparisons into a set with one item per source and references."""
    texts: dict[str, dict[str, Segment]] = {}
    comparisons = []
    for p in preferences:
        item = repr((p.item, p.left.source, p.left.references))
        names = (p.left_system or p.left.hypothesis, p.right_system or p.right.hypothesis)
        if (p.left.source, p.left.references) != (p.right.source, p.right.references):
            raise DataError(
                "the translations of a comparison must have the same source and references, got "
                f"{short_repr(p.left)} and {short_repr(p.right)}"
            )
        outputs = texts.setdefault(item, {})
        for name, segment in zip(names, (p.left, p.right), strict=True):
            if outputs.setdefault(name, segment) != segment:
                raise DataError(
                    f"system {name} has two translations of one item, "
                    f"{short_repr(outputs[name].hypothesis)} and {short_repr(segment.hypothesis)}: "
                    "use distinct item or system names"
                )
        comparisons.append(PairwiseJudgment(item, *names, p.verdict))
    return build_ranking_set(comparisons, texts, name="preferences")


def remove_leaks(sets: TrainingSets, held_out: Sequence[JudgmentSet | RankingSet]) -> TrainingSets:
    """Remove training data that shares a reference with held-out sets."""
    if not held_out:
        return sets
    try:
        return TrainingSets(
            [drop_overlap(one, held_out) for one in sets.scores],
            [drop_overlap(one, held_out) for one in sets.comparisons],
        )
    except DataError as error:
        raise DataError(
            f"{error}: every reference also occurs in the dev or held-out data, so nothing is left "
            "to train on"
        ) from None


def _check_inputs(
    metric: str, judgment_set: JudgmentSet | RankingSet, required_inputs: frozenset[str]
) -> None:
    """Raise if a segment lacks an input that the model needs."""
    is_used = np.ones(len(judgment_set.segments), dtype=np.bool_)
    if isinstance(judgment_set, RankingSet):
        is_used = judgment_set.compared_mask
    for number in np.flatnonzero(is_used):
        segment = judgment_set.segments[number]
        lacks = {"references": not segment.references, "source": segment.source is None}
        if missing := [name for name in sorted(required_inputs) if lacks[name]]:
            raise DataError(
                f"{metric} needs {' and '.join(sorted(required_inputs))}, and segment "
                f"{number + 1} of {judgment_set.name} {judgment_set.lp}".rstrip()
                + f" has no {' and no '.join(missing)}"
            )


def check_targets(targets: FloatArray, use: str = "learned from") -> FloatArray:
    """Raise unless the human scores are finite and not all equal."""
    if not len(targets):
        raise DataError("no training data: no judgment has a text to compare with")
    if not np.isfinite(targets).all():
        raise DataError(f"{int((~np.isfinite(targets)).sum())} human scores are not numbers")
    if np.ptp(targets) == 0:
        raise DataError(
            f"all {len(targets)} human scores are {targets[0]:g}: nothing can be {use} them"
        )
    return targets


LOG = "log.jsonl"  # epochs of a resumable run


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingJob:
    """One training run.

    `settings` define the model and `options` how to train it. `dev` selects the best epoch or
    setting and is never trained on. `folder` is where the result is saved, `note` is stored with
    the model, and `on_epoch` is called after each epoch.
    """

    settings: Any
    options: Any
    data: TrainingSets
    dev: TrainingSets = field(default_factory=TrainingSets)
    folder: Path | None = None
    note: str = ""
    on_epoch: Callable[[Epoch], None] | None = None

"""How often humans prefer the system that a metric puts ahead by a given difference.

Pairs of systems of one judged set are sorted by the metric's difference into bins of about equal
size. Each bin has the share of pairs that humans order like the metric, made monotone by pooling
neighbors (Ayer et al. 1955). After Kocmi et al. 2024, "Navigating the metrics maze".

How well metrics support decisions: accept a translation, choose an output.

accept    is this translation good enough? precision and recall over thresholds
choose    which output of a segment is best? reranking
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import BoolArray, FloatArray, IntArray, divide
from tertium.core.errors import DataError
from tertium.meta.agreement import to_float_array
from tertium.meta.aligned_scores import AlignedScores

BINS = 8
MIN_PAIRS = 20  # system pairs of a bin
INTO_ENGLISH = "into English"
NOT_INTO_ENGLISH = "not into English"
ALL_DIRECTIONS = "all"


@dataclass(frozen=True)
class DifferenceBin:
    """System pairs whose metric scores differ by `low` to `high`, and their human agreement."""

    low: float
    high: float
    pairs: int
    agree: float


@dataclass(frozen=True, kw_only=True)
class DifferenceScale:
    """The bins of one metric, its inputs and a direction by growing difference.

    `inputs` are what the metric read, as `Metric.find_inputs` names it (empty if unknown), and
    `learned` are its models.
    """

    metric: str
    direction: str
    inputs: str = ""
    bins: tuple[DifferenceBin, ...]
    learned: tuple[str, ...] = ()

    @property
    def pairs(self) -> int:
        """The number of system pairs that the scale was fitted on."""
        return sum(part.pairs for part in self.bins)

    def find(self, difference: float) -> DifferenceBin:
        """Return the bin of a difference; the last bin for larger ones."""
        return next((b for b in self.bins if abs(difference) <= b.high), self.bins[-1])

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> DifferenceScale:
        """Return a scale of the values of `asdict`."""
        bins = tuple(DifferenceBin(**part) for part in record["bins"])
        return cls(**{**record, "bins": bins, "learned": tuple(record["learned"])})


def language_direction(lp: str) -> str:
    """Return the language direction of a set; empty if its name is not a language pair.

    >>> [language_direction(name) for name in ("de-en", "en-is", "test")]
    ['into English', 'not into English', '']
    """
    source, dash, target = lp.rpartition("-")
    if not (source and dash and target):
        return ""
    return INTO_ENGLISH if target == "en" else NOT_INTO_ENGLISH


def compare_system_pairs(human: FloatArray, metric: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the metric difference and the human agreement of all pairs of systems.

    Agreement is 1 or 0, and 0.5 for a human tie; pairs that the metric ties are left out.

    >>> sizes, agree = compare_system_pairs(np.array([3.0, 2, 2]), np.array([0.5, 0.9, 0.9]))
    >>> sizes.tolist(), agree.tolist()
    ([0.4, 0.4], [0.0, 0.0])
    """
    left, right = np.triu_indices(len(human), k=1)
    human_difference = human[left] - human[right]
    scores = metric[left] - metric[right]
    used = ~np.isnan(human_difference) & ~np.isnan(scores) & (scores != 0)
    agree = 0.5 + 0.5 * np.sign(human_difference[used]) * np.sign(scores[used])
    return np.abs(scores[used]), agree


def fit_bins(
    sizes: FloatArray, agree: FloatArray, *, bins: int = BINS
) -> tuple[DifferenceBin, ...]:
    """Fit bins of about equal size whose agreement never falls as differences grow.

    >>> sizes, agree = np.arange(80) / 10, (np.arange(80) >= 40) * 1.0
    >>> [(b.high, b.pairs, b.agree) for b in fit_bins(sizes, agree, bins=2)]
    [(3.9, 40, 0.0), (7.9, 40, 1.0)]
    """
    order = np.argsort(sizes, kind="stable")
    groups: list[IntArray] = []
    for part in np.array_split(order, max(1, min(bins, len(sizes) // MIN_PAIRS))):
        while groups and agree[groups[-1]].mean() >= agree[part].mean():
            part = np.concatenate([groups.pop(), part])
        groups.append(part)
    fitted = []
    low = 0.0
    for rows in groups:
        high = float(sizes[rows].max())
        fitted.append(DifferenceBin(low, high, len(rows), float(agree[rows].mean())))
        low = high
    return tuple(fitted)


def fit_scales(sets: Sequence[AlignedScores]) -> list[DifferenceScale]:
    """Fit scales of every metric, for each language direction with enough pairs and for all.

    A set is named by its language pair; a set with another name counts only among all. If all sets
    have one direction, there is no scale for all.
    """
    if not sets:
        raise DataError("no human judgments to fit: give at least one judged set")
    metrics = {metric for aligned in sets for metric in aligned.metrics}
    scales = []
    for metric in sorted(metrics):
        pairs = []  # of systems, by the direction of their set
        for aligned in sets:
            if metric in aligned.metrics:
                scores = aligned.system_scores[aligned.metrics.index(metric)]
                own = compare_system_pairs(aligned.human_systems, scores)
                pairs.append((language_direction(aligned.name.split()[-1]), own))
        directions = {direction for direction, _ in pairs}
        for direction in (ALL_DIRECTIONS, INTO_ENGLISH, NOT_INTO_ENGLISH):
            if direction == ALL_DIRECTIONS and len(directions) == 1 and "" not in directions:
                continue
            chosen = [own for d, own in pairs if direction in (ALL_DIRECTIONS, d)]
            if sum(len(sizes) for sizes, _ in chosen) < MIN_PAIRS:
                continue
            sizes, agree = (np.concatenate(column) for column in zip(*chosen, strict=True))
            bins = fit_bins(sizes, agree)
            scales.append(DifferenceScale(metric=metric, direction=direction, bins=bins))
    if not scales:
        raise DataError(f"too few system pairs: expected at least {MIN_PAIRS} for some metric")
    return scales


def accept_translations(
    human: ArrayLike, metric: ArrayLike, min_good_score: float
) -> tuple[dict[str, float], FloatArray]:
    """Measure how well a metric finds translations with a human score of at least `min_good_score`.

    Return the values of a table, and rows of threshold, precision and recall, highest first. The
    threshold of the table has the highest F1. `average_precision` is averaged over steps of recall;
    random scores reach `good`, the share of good translations.

    >>> values, curve = accept_translations([90, 80, 40, 30], [0.9, 0.5, 0.6, 0.1], 70)
    >>> curve.round(2).tolist()
    [[0.9, 1.0, 0.5], [0.6, 0.5, 0.5], [0.5, 0.67, 1.0], [0.1, 0.5, 1.0]]
    >>> values["threshold"], values["good"]
    (0.5, 0.5)
    """
    human_scores = to_float_array(human, "human scores").ravel()
    scores = to_float_array(metric, "metric scores").ravel()
    is_known = ~np.isnan(human_scores) & ~np.isnan(scores)
    if not is_known.any():
        raise DataError("no translation has both a human and a metric score")
    human_scores = human_scores[is_known]
    scores = scores[is_known]
    good = human_scores >= min_good_score
    if not good.any() or good.all():
        share = "all" if good.all() else "none"
        raise DataError(
            f"{share} of {len(human_scores)} judged translations reach {min_good_score:g} (human "
            f"scores are {human_scores.min():g} to {human_scores.max():g}): choose another minimum"
        )
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    good_accepted = np.cumsum(good[order])[ends]
    precision = good_accepted / (ends + 1.0)
    recall = good_accepted / good.sum()
    curve = np.stack([scores[order][ends], precision, recall], axis=1)
    f1 = np.nan_to_num(divide(2 * precision * recall, precision + recall))
    best = curve[np.argmax(f1)].tolist()
    values = {
        "good": int(good.sum()) / len(good),
        "average_precision": float(np.diff(recall, prepend=0.0) @ precision),
        **dict(zip(("threshold", "precision", "recall"), best, strict=True)),
        "precision_at_90": float(precision[np.argmax(recall >= 0.9 - 1e-12)]),
    }
    return values, curve


def rerank_outputs(human: ArrayLike, metric: ArrayLike) -> dict[str, float]:
    """Choose the output of each segment that the metric scores best; ties count by expectation.

    Matrices are (systems, segments). Segments with fewer than two scored outputs are left out; if
    none remain, all values are NaN. `reranking` is the share of segments whose chosen output has
    the best human score, and `reranking_chance` that of a random choice. `gain` is the share of the
    possible improvement over a random choice: 1 if always best, 0 if random.

    >>> rerank_outputs([[3, 1, 5], [2, 4, 5]], [[0.9, 0.1, 0.1], [0.1, 0.2, 0.1]])["gain"]
    1.0
    """
    human_scores = to_float_array(human, "human scores")
    scores = to_float_array(metric, "metric scores")
    is_known = ~np.isnan(human_scores) & ~np.isnan(scores)
    used = is_known.sum(axis=0) > 1
    if not used.any():
        return dict.fromkeys(("reranking", "reranking_chance", "gain"), np.nan)
    is_known = is_known[:, used]
    values = np.where(is_known, human_scores[:, used], 0.0)
    best = np.where(is_known, values, -np.inf).max(axis=0)
    scores = np.where(is_known, scores[:, used], -np.inf)
    is_best = is_known & (values == best)
    is_chosen = scores == scores.max(axis=0)

    def mean(selected: FloatArray, choice: BoolArray) -> float:
        """Average what is selected over the outputs of a choice, and over segments."""
        return float(((selected * choice).sum(axis=0) / choice.sum(axis=0)).mean())

    random = mean(values, is_known)
    reach = float(best.mean()) - random
    return {
        "reranking": mean(is_best, is_chosen),
        "reranking_chance": mean(is_best, is_known),
        "gain": (mean(values, is_chosen) - random) / reach if reach > 0 else np.nan,
    }

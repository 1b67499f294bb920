"""Human scores of systems: means with intervals, clusters, and the MQM scorecard.

Intervals respect that judgments of one rater, and of one document, belong together: a bootstrap
sample draws raters and documents with replacement, and a judgment counts as often as its rater
times its document (the pigeonhole bootstrap of Owen 2007). All systems share the samples, so that
differences are paired.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tertium.core.arrays import FloatArray, IntArray, divide
from tertium.core.resampling import assign_clusters, draw_group_counts
from tertium.core.spans import MQM_WEIGHTS, Span, UnlocatedError, error_weight
from tertium.people.rating_tables import Ratings
from tertium.people.reliability import quantiles
from tertium.text.perturbations import units

BLOCK_NUMBERS = 1 << 22  # weights in memory at a time
PER_WORDS = 1000


@dataclass(frozen=True, kw_only=True)
class SystemScore:
    """The mean score of a system; `cluster` is 1 for the best."""

    system: str
    mean: float
    low: float
    high: float
    standardized: float
    judgments: int
    cluster: int


@dataclass(frozen=True, kw_only=True)
class Scorecard:
    """MQM points of a system per 1,000 words, with its counts of errors by severity."""

    system: str
    words: int
    points: float
    errors: Mapping[str, int]
    low: float = math.nan
    high: float = math.nan
    passed: bool | None = None


def score_systems(
    ratings: Ratings, *, resamples: int, rng: np.random.Generator, alpha: float = 0.05
) -> tuple[list[SystemScore], FloatArray]:
    """Return the systems from best to worst, and p-values of all pairs in that order."""
    once = np.ones((1, len(ratings)))
    count = len(ratings.systems)
    means = _system_means(ratings.scores, ratings.system, once, count)[0]
    standardized = _system_means(ratings.standardized, ratings.system, once, count)[0]
    samples = _resample_means(ratings, resamples, rng)
    samples[:, _count_clusters(ratings) < 2] = np.nan  # one document has no interval
    p_values = bootstrap_p_values(samples)
    order = sorted(range(count), key=lambda n: -np.nan_to_num(means[n], nan=-np.inf))
    p_values = p_values[np.ix_(order, order)]
    clusters = assign_clusters(p_values, alpha)
    bounds = [quantiles(samples[:, n]) for n in range(count)]
    counts = Counter(ratings.system.tolist())
    scores = [
        SystemScore(
            system=ratings.systems[n],
            mean=float(means[n]),
            low=bounds[n][0],
            high=bounds[n][1],
            standardized=float(standardized[n]),
            judgments=counts[n],
            cluster=clusters[place],
        )
        for place, n in enumerate(order)
        if counts[n]
    ]
    return scores, p_values[: len(scores), : len(scores)]


def _count_clusters(ratings: Ratings) -> IntArray:
    """Return the number of documents in which each system was judged."""
    pairs = np.unique(np.stack([ratings.system, ratings.cluster]), axis=1)
    return np.bincount(pairs[0], minlength=len(ratings.systems))


def _system_means(
    values: FloatArray, system: IntArray, weights: FloatArray, count: int
) -> FloatArray:
    """Return weighted means by system for rows of weights (samples, judgments)."""
    is_known = ~np.isnan(values)
    indicator = np.zeros((len(values), count))
    indicator[np.arange(len(values)), system] = is_known
    return divide((weights * np.nan_to_num(values)) @ indicator, weights @ indicator)


def _resample_means(ratings: Ratings, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return the means of bootstrap samples, (resamples, systems)."""
    rows = max(1, BLOCK_NUMBERS // max(1, len(ratings)))
    blocks = []
    for start in range(0, resamples, rows):
        size = min(rows, resamples - start)
        drawn = draw_group_counts(ratings.cluster, size, rng)
        if len(np.unique(ratings.rater)) > 1:
            drawn = drawn * draw_group_counts(ratings.rater, size, rng)
        blocks.append(_system_means(ratings.scores, ratings.system, drawn, len(ratings.systems)))
    return np.concatenate(blocks)


def bootstrap_p_values(samples: FloatArray) -> FloatArray:
    """Return two-sided p-values of differences between the columns of samples."""
    count = samples.shape[1]
    p_values = np.ones((count, count))
    for a in range(count):
        for b in range(a + 1, count):
            difference = samples[:, a] - samples[:, b]
            difference = difference[~np.isnan(difference)]
            total = 1 + len(difference)  # p is 1 without samples
            tail = 1 + min((difference <= 0).sum(), (difference >= 0).sum())
            p_values[a, b] = p_values[b, a] = min(1.0, 2 * tail / total)
    return p_values


def make_scorecards(
    ratings: Ratings,
    *,
    resamples: int,
    rng: np.random.Generator,
    weights: Mapping[str, float] = MQM_WEIGHTS,
    pass_mark: float | None = None,
) -> list[Scorecard]:
    """Return MQM points per 1,000 words of the source for each system, best first.

    Words are counted once per judgment, so several raters are averaged. A system passes if its
    points are at most `pass_mark`. Without annotations or texts the list is empty.
    """
    rows = [
        n
        for n, entry in enumerate(ratings.judgments)
        if entry.error_annotations is not None
        and (entry.segment.source or entry.segment.hypothesis)
    ]
    if not rows:
        return []
    annotated = ratings.select(np.isin(np.arange(len(ratings)), rows))
    points, words = np.zeros((2, len(annotated)))
    errors: dict[int, Counter[str]] = {}
    for n, entry in enumerate(annotated.judgments):
        marks = entry.error_annotations
        assert marks is not None
        own: list[Span | UnlocatedError] = [*marks.spans, *marks.missing]
        points[n] = sum(error_weight(e.severity, e.category, {"bad": 1.0, **weights}) for e in own)
        words[n] = len(units(entry.segment.source or entry.segment.hypothesis))
        errors.setdefault(int(annotated.system[n]), Counter()).update(e.severity for e in own)
    samples = _resample_rates(annotated, points, words, resamples, rng)
    cards = []
    for number in np.unique(annotated.system):
        own_rows = annotated.system == number
        total = float(words[own_rows].sum())
        rate = PER_WORDS * float(points[own_rows].sum()) / max(1.0, total)
        low, high = quantiles(samples[:, number])
        cards.append(
            Scorecard(
                system=annotated.systems[number],
                words=int(total),
                points=rate,
                errors=dict(errors[int(number)]),
                low=low,
                high=high,
                passed=None if pass_mark is None else rate <= pass_mark,
            )
        )
    return sorted(cards, key=lambda card: card.points)


def _resample_rates(
    ratings: Ratings,
    points: FloatArray,
    words: FloatArray,
    resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    drawn = draw_group_counts(ratings.cluster, resamples, rng)
    if len(np.unique(ratings.rater)) > 1:
        drawn = drawn * draw_group_counts(ratings.rater, resamples, rng)
    indicator = np.zeros((len(ratings), len(ratings.systems)))
    indicator[np.arange(len(ratings)), ratings.system] = 1.0
    return PER_WORDS * divide((drawn * points) @ indicator, (drawn * words) @ indicator)


def rank_agreement(first: Sequence[SystemScore], second: Sequence[SystemScore]) -> float:
    """Return Kendall's tau of two orders of the same systems, NaN for fewer than two."""
    places = {score.system: n for n, score in enumerate(second)}
    order = [places[score.system] for score in first if score.system in places]
    pairs = [(a, b) for n, a in enumerate(order) for b in order[n + 1 :]]
    if not pairs:
        return math.nan
    return float(np.mean([1.0 if a < b else -1.0 for a, b in pairs]))

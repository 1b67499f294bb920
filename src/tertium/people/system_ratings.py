"""Human scores of systems: means with intervals, clusters, and the MQM scorecard.

Intervals respect that judgments of one rater, and of one document, belong together: a bootstrap
sample draws raters and documents with replacement, and a judgment counts as often as its rater
times its document (the pigeonhole bootstrap of Owen 2007). All systems share the samples, so that
differences are paired.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tertium.core.arrays import FloatArray, divide, iterate_blocks
from tertium.core.resampling import (
    assign_clusters,
    draw_group_counts,
    percentile_interval,
)
from tertium.core.spans import MQM_WEIGHTS, score_spans
from tertium.meta.replicates import bootstrap_p_values
from tertium.people.reliability import Ratings
from tertium.text.perturbations import units

PER_WORDS = 1000
ERROR_WEIGHTS = {"bad": 1.0, **MQM_WEIGHTS}


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
    means = system_ratios(ratings, ratings.scores)
    standardized = system_ratios(ratings, ratings.standardized)
    samples = _resample_ratios(ratings, ratings.scores, 1.0, resamples, rng)
    documents = np.unique(np.stack([ratings.system, ratings.cluster]), axis=1)[0]
    samples[:, np.bincount(documents, minlength=len(means)) < 2] = np.nan  # no interval
    order = np.argsort(-means, kind="stable")  # systems without judgments go last
    order = order[~np.isnan(means[order])]
    one_sided = bootstrap_p_values(samples[:, order])
    p_values = np.minimum(1.0, 2 * np.minimum(one_sided, one_sided.T))
    p_values = np.nan_to_num(p_values, nan=1.0)  # without samples
    clusters = assign_clusters(p_values, alpha)
    lows, highs = percentile_interval(samples)
    scores = [
        SystemScore(
            system=ratings.systems[number],
            mean=float(means[number]),
            low=float(lows[number]),
            high=float(highs[number]),
            standardized=float(standardized[number]),
            judgments=int((ratings.system == number).sum()),
            cluster=cluster,
        )
        for number, cluster in zip(order, clusters, strict=True)
    ]
    return scores, p_values


def system_ratios(
    ratings: Ratings,
    values: FloatArray,
    sizes: FloatArray | float = 1.0,
    weights: FloatArray | float = 1.0,
) -> FloatArray:
    """Return sum of values / sum of sizes by system, for rows of weights (..., judgments)."""
    is_defined = ~np.isnan(values)
    indicator = ratings.system[:, None] == np.arange(len(ratings.systems))
    totals = (weights * np.nan_to_num(values)) @ indicator
    return divide(totals, (weights * (is_defined * sizes)) @ indicator)


def _resample_ratios(
    ratings: Ratings,
    values: FloatArray,
    sizes: FloatArray | float,
    resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the ratios of bootstrap samples, (resamples, systems)."""
    blocks = []
    for block in iterate_blocks(resamples, len(ratings)):
        count = block.stop - block.start
        drawn = draw_group_counts(ratings.cluster, count, rng)
        if len(np.unique(ratings.rater)) > 1:
            drawn = drawn * draw_group_counts(ratings.rater, count, rng)
        blocks.append(system_ratios(ratings, values, sizes, drawn))
    return np.concatenate(blocks)


def make_scorecards(
    ratings: Ratings,
    *,
    resamples: int,
    rng: np.random.Generator,
    pass_mark: float | None = None,
) -> list[Scorecard]:
    """Return MQM points per 1,000 words of the source for each system, best first.

    Words are counted once per judgment, so several raters are averaged. A system passes if its
    points are at most `pass_mark`. Without annotations or texts the list is empty.
    """
    points, words = np.zeros((2, len(ratings)))
    errors: dict[str, Counter[str]] = {}
    for n, entry in enumerate(ratings.judgments):
        text = entry.segment.source or entry.segment.hypothesis
        if entry.error_annotations is None or not text:
            continue
        marked = entry.error_annotations.errors
        points[n] = -score_spans(marked, weights=ERROR_WEIGHTS)
        words[n] = len(units(text))
        errors.setdefault(entry.system, Counter()).update(e.severity for e in marked)
    if not errors:
        return []
    points *= PER_WORDS
    rates = system_ratios(ratings, points, words)
    lows, highs = percentile_interval(_resample_ratios(ratings, points, words, resamples, rng))
    cards = []
    for system, counts in errors.items():
        number = ratings.systems.index(system)
        rate = float(rates[number])
        card = Scorecard(
            system=system,
            words=int(words[ratings.system == number].sum()),
            points=rate,
            errors=dict(counts),
            low=float(lows[number]),
            high=float(highs[number]),
            passed=None if pass_mark is None else rate <= pass_mark,
        )
        cards.append(card)
    return sorted(cards, key=lambda card: card.points)

"""Bootstrap intervals and paired significance tests of systems on summable statistics.

Every resample is a row of weights times the statistics, `reduce(W @ S)`. All systems and metrics
share one stream of weights (`core/resampling`), so every comparison is paired.

The bootstrap (Koehn 2004) draws the same indices as sacrebleu for the same seed. Approximate
randomization (Riezler & Maxwell 2005) swaps the outputs of two systems segment by segment. A
p-value is (1 + resamples at least as extreme) / (1 + resamples), so identical systems get p = 1.
With one segment, p is NaN.

The non-inferiority test of two systems works for any metric with additive statistics.
The difference of two system scores is studentized with the jackknife: the pseudo-value of segment i
is n D - (n - 1) D(-i), where D(-i) is the difference without that segment (Tukey 1958). For a mean
of segment scores, this is the paired t-test. If a few segments lose much and the others nothing,
the t-test finds too often that nothing is lost; the cubic transformation of Hall (1992, "On the
removal of skewness by transformation") corrects for that. A claim needs both: its p-value is the
larger of the two. There is no resampling: the same texts always get the same verdict, and p-values
have no smallest value, so that many can be adjusted. `benchmarks/gate.py` measures the level.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Annotated, ClassVar, Literal

import numpy as np

from tertium.core import resampling
from tertium.core.arrays import FloatArray, in_open_unit_interval, nan_mean
from tertium.core.errors import LengthError, UsageError
from tertium.core.options import Option
from tertium.core.resampling import check_resamples, p_value
from tertium.core.runtime import progress_task
from tertium.core.scores import Scores


@dataclass(frozen=True)
class Interval:
    """A 95 % bootstrap confidence interval and the mean of the resampled scores."""

    mean: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the width of the interval: what follows the ± in a table."""
        return (self.high - self.low) / 2


def bootstrap(scores: Sequence[Scores], *, resamples: int = 1000, seed: int = 12345) -> FloatArray:
    """Return scores of shared bootstrap samples, (len(scores), resamples)."""
    weights = resampling.draw_bootstrap(_check(scores, resamples), resamples, seed)
    blocks = [
        np.stack([s.scores_from_totals(rows) for s, rows in zip(scores, sums, strict=True)])
        for sums in _weighted_sums(scores, weights, resamples, "bootstrap")
    ]
    return np.concatenate(blocks, axis=1)


def interval(samples: FloatArray) -> Interval:
    """Compute the 95 % interval of resampled scores (resamples,), like sacrebleu.

    NaN samples are left out.

    >>> interval(np.arange(1000.0))
    Interval(mean=499.5, low=25.0, high=974.0)
    """
    ordered = np.sort(samples[~np.isnan(samples)])
    if not ordered.size:
        return Interval(np.nan, np.nan, np.nan)
    cut = len(ordered) // 40
    low = float(ordered[cut])
    high = float(ordered[len(ordered) - cut - 1])
    return Interval(float(ordered.mean()), low, high)


def paired_bootstrap(scores: Sequence[Scores], drawn: FloatArray) -> FloatArray:
    """Compute bootstrap p-values of all pairs of systems under one metric, (systems, systems).

    The absolute differences on bootstrap samples, centered at their mean, are compared with the
    observed difference, as in sacrebleu. For equal systems this test finds p < .05 about twice as
    often as it should (.10 for 200 segments, .14 for 50, for means); `paired_randomization` does
    not. `drawn` is the result of `bootstrap` for the same scores.
    """
    extreme = {}
    for a, b in combinations(range(len(scores)), 2):
        differences = np.abs(drawn[a] - drawn[b])
        margin = abs(scores[a].system - scores[b].system)
        is_below = differences - nan_mean(differences) < margin
        extreme[a, b] = int(np.sum(~is_below))  # NaN counts as extreme
    return _p_values(scores, extreme, drawn.shape[1])


def paired_randomization(
    scores: Sequence[Scores],
    *,
    resamples: int = 10_000,
    seed: int = 12345,
    baseline_only: bool = False,
) -> FloatArray:
    """Compute two-sided approximate randomization p-values of all pairs, (systems, systems).

    Each resample swaps the outputs of two systems on a random half of the segments. With a mask m,
    the pseudo-systems are reduce(m A + (1-m) B) and reduce((1-m) A + m B). All pairs share the
    masks. With `baseline_only`, only pairs with the first system are tested; others are NaN.
    """
    size = _check(scores, resamples)
    masks = resampling.draw_masks(size, resamples if size > 1 else 0, seed)
    totals = [s.statistics.sum(axis=0) for s in scores]
    pairs = [*combinations(range(len(scores)), 2)]
    extreme = dict.fromkeys(pairs[: len(scores) - 1] if baseline_only else pairs, 0)
    for sums in _weighted_sums(scores, masks, resamples, "randomization"):
        for a, b in extreme:
            first = scores[a].scores_from_totals(sums[a] + totals[b] - sums[b])
            second = scores[b].scores_from_totals(sums[b] + totals[a] - sums[a])
            # a swap that changes nothing may differ from the observed value by rounding
            margin = abs(scores[a].system - scores[b].system) * (1 - 1e-12)
            is_below = np.abs(first - second) < margin
            extreme[a, b] += int(np.sum(~is_below))  # NaN counts as extreme
    return _p_values(scores, extreme, resamples)


def assign_clusters(
    scores: Sequence[Scores], p_values: FloatArray, *, alpha: float = 0.05
) -> list[int]:
    """Assign each system to a cluster, 1 for the best: each beats all systems of later clusters.

    Systems without a score are in cluster 0.
    """
    has_score = [n for n, s in enumerate(scores) if np.isfinite(s.system)]
    order = sorted(has_score, key=lambda s: -scores[s].sign * scores[s].system)
    labels = [0] * len(scores)
    clusters = resampling.assign_clusters(p_values[np.ix_(order, order)], alpha)
    for system, cluster in zip(order, clusters, strict=True):
        labels[system] = cluster
    return labels


def _check(scores: Sequence[Scores], resamples: int) -> int:
    check_resamples(resamples)
    sizes = {len(s) for s in scores}
    if len(sizes) != 1:
        raise LengthError(f"systems to resample together differ in length: {sizes}")
    return sizes.pop()


def _weighted_sums(
    scores: Sequence[Scores], weights: Iterator[FloatArray], count: int, task_name: str
) -> Iterator[list[FloatArray]]:
    """Yield the statistics of each of the scores under a block of weightings, (block, k)."""
    all_statistics = np.concatenate([s.statistics for s in scores], axis=1)
    bounds = np.cumsum([s.statistics.shape[1] for s in scores])[:-1]
    # infinite scores give NaN sums; they are counted among the warnings
    with progress_task(task_name, total=count) as advance, np.errstate(invalid="ignore"):
        for block in weights:
            yield np.split(block @ all_statistics, bounds, axis=1)
            advance(len(block))


def _p_values(
    scores: Sequence[Scores], extreme: Mapping[tuple[int, int], int], resamples: int
) -> FloatArray:
    """Return p-values of pairs from their counts of extreme resamples; NaN for other pairs."""
    p_values = np.eye(len(scores))
    for a, b in combinations(range(len(scores)), 2):
        has_scores = np.isfinite([scores[a].system, scores[b].system]).all()
        is_tested = (a, b) in extreme and has_scores and len(scores[a]) > 1
        p = p_value(extreme[a, b], resamples) if is_tested else np.nan
        p_values[a, b] = p_values[b, a] = p
    return p_values


POWER = 0.8  # chance of a decision with the planned number of segments
MIN_SEGMENTS_TO_TEST = 10  # with fewer, variance and skewness cannot be estimated


@dataclass(frozen=True)
class Difference:
    """How much better a candidate is than a baseline (positive), with its sampling distribution.

    `value` is the observed difference, `center` is without the bias of small samples,
    `standard_error` and `skewness` (of the mean) are estimated from `segments` segments.
    """

    value: float
    center: float
    standard_error: float
    skewness: float
    segments: int

    @property
    def is_testable(self) -> bool:
        """Whether the difference and its standard error are known."""
        return self.segments >= MIN_SEGMENTS_TO_TEST and math.isfinite(self.standard_error)

    def p_greater(self, bound: float) -> float:
        """Return the p-value of the claim that the true difference is greater than `bound`.

        If no segment differs, the difference is certain: p is 0 or 1.
        """
        mirrored = replace(self, center=-self.center, skewness=-self.skewness)
        return mirrored.p_less(-bound)

    def p_less(self, bound: float) -> float:
        """Return the p-value of the claim that the true difference is less than `bound`."""
        if not self.is_testable:
            return math.nan
        if self.standard_error == 0:
            return 0.0 if self.center < bound else 1.0
        ratio = (self.center - bound) / self.standard_error
        corrected = remove_skewness(ratio, self.skewness)
        from scipy.special import stdtr

        return float(stdtr(self.segments - 1, max(ratio, corrected)))

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the bounds that the true difference exceeds, or stays below, at level `alpha`."""
        if not self.is_testable:
            return math.nan, math.nan
        from scipy.special import stdtrit

        quantile = float(stdtrit(self.segments - 1, 1 - alpha))
        low = max(quantile, add_skewness(quantile, self.skewness))
        high = min(-quantile, add_skewness(-quantile, self.skewness))
        return self.center - low * self.standard_error, self.center - high * self.standard_error

    def segments_to_decide(self, bound: float, alpha: float) -> float:
        """Return how many segments in all would show on which side of `bound` the difference is.

        The chance is `POWER`, if the true difference and the variance are the observed ones;
        infinite for a difference at the bound.
        """
        distance = abs(self.center - bound)
        if not self.is_testable or distance == 0:
            return math.inf
        from scipy.special import ndtri

        quantiles = float(ndtri(1 - alpha) + ndtri(POWER))
        return self.segments * (quantiles * self.standard_error / distance) ** 2


def measure_difference(candidate: Scores, baseline: Scores) -> Difference:
    """Return the difference of two systems on the same segments, positive if `candidate` is better.

    >>> mean = lambda totals: totals[..., 0] / totals[..., 1]
    >>> rows = np.column_stack([np.arange(12.0), np.ones(12)])
    >>> new, old = (Scores("demo", rows * [k, 1], mean) for k in (1.1, 1))
    >>> difference = measure_difference(new, old)
    >>> round(difference.value, 2), round(difference.standard_error, 3)
    (0.55, 0.104)
    """
    if len(candidate) != len(baseline):
        raise LengthError(f"{len(candidate)} and {len(baseline)} segments: expected the same")
    count = len(candidate)
    value = candidate.sign * (candidate.system - baseline.system)
    if count < 2:
        return Difference(value, value, math.nan, math.nan, count)
    with np.errstate(invalid="ignore", divide="ignore"):
        without = candidate.sign * (_leave_one_out(candidate) - _leave_one_out(baseline))
        pseudo_values = count * value - (count - 1) * without
        center = float(pseudo_values.mean())
        deviation = float(pseudo_values.std(ddof=1))
    if not deviation > 1e-9 * max(1.0, abs(value)) * math.sqrt(count):  # rounding, or NaN
        deviation = 0.0 if deviation == deviation else math.nan
        return Difference(value, value, deviation, 0.0, count)
    third_moment = float(np.mean(((pseudo_values - center) / deviation) ** 3))
    root = math.sqrt(count)
    return Difference(value, center, deviation / root, third_moment / root, count)


def _leave_one_out(scores: Scores) -> FloatArray:
    totals = scores.statistics.sum(axis=0) - scores.statistics
    return scores.scores_from_totals(totals)


def remove_skewness(ratio: float, skewness: float) -> float:
    """Transform a studentized mean with this skewness so that it is nearly normal; increasing.

    The formula is x + s (2 x^2 + 1) / 6 + s^2 x^3 / 27 for a mean of skewness s.
    """
    return ratio + skewness * (2 * ratio**2 + 1) / 6 + skewness**2 * ratio**3 / 27


def add_skewness(quantile: float, skewness: float) -> float:
    """Invert `remove_skewness`.

    >>> round(add_skewness(remove_skewness(1.5, -0.3), -0.3), 9)
    1.5
    """
    if abs(skewness) < 1e-6:
        return quantile
    cube = 1 + skewness * (quantile - skewness / 6)
    return 3 / skewness * (math.copysign(abs(cube) ** (1 / 3), cube) - 1)


def round_up(value: float) -> float:
    """Round up to two significant digits; 0 for negative values.

    >>> round_up(0.4123), round_up(12.01), round_up(1234), round_up(0.0)
    (0.42, 13.0, 1300.0, 0.0)
    """
    if not 0 < value < math.inf:
        return max(value, 0.0)
    places = 1 - math.floor(math.log10(value))
    return float(math.ceil(round(value * 10.0**places, 9)) / 10.0**places)


Test = Literal["bootstrap", "randomization"]
DEFAULT_RESAMPLES: Mapping[str, int] = {"bootstrap": 1000, "randomization": 10_000}


def check_test_options(test: object, alpha: object, resamples: int | None = None) -> None:
    """Raise an error for an unknown test, a significance level outside (0, 1), or bad resamples."""
    if resamples is not None:
        check_resamples(resamples)
    if test not in [*DEFAULT_RESAMPLES]:
        raise UsageError(f"unknown test {test!r}: choose bootstrap or randomization")
    if not in_open_unit_interval(alpha):
        raise UsageError(
            f"alpha, the significance level, must be a number between 0 and 1, got {alpha!r}"
        )


@dataclass(frozen=True, kw_only=True)
class SignificanceTests:
    """Significance tests of systems, also on slices of the segments.

    Attributes
    ----------
    by
        Also show results by document, length, language, domain or any field of the records;
        NAME=FILE reads one label per segment.
    paired_bs
        Test against the first system: paired bootstrap (default in compare).
    paired_ar
        Test against the first system: approximate randomization.
    resamples
        Resamples of tests and intervals (default: 1000 for the bootstrap, 10000 for randomization).
    seed
        Random seed.
    alpha
        Significance level of marks and ranks.
    """

    group: ClassVar[str] = "Statistics"
    by: Annotated[tuple[str, ...], Option(metavar="COLUMN", file="read")] = ()
    paired_bs: bool = False
    paired_ar: bool = False
    resamples: Annotated[
        int | None, Option("--resamples", "--confidence-n", "--paired-bs-n", "--paired-ar-n")
    ] = None
    seed: int = 12345
    alpha: float = 0.05

    def __post_init__(self) -> None:
        if self.paired_bs and self.paired_ar:
            raise UsageError("--paired-bs and --paired-ar: give only one of them")
        check_test_options(self.test, self.alpha, self.resamples)

    @property
    def test(self) -> Test:
        """The paired test; the bootstrap is the default."""
        return "randomization" if self.paired_ar else "bootstrap"

    @property
    def is_requested(self) -> bool:
        """Whether a paired test is requested."""
        return self.paired_bs or self.paired_ar

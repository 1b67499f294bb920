"""Agreement statistics, compared with published examples."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.core.arrays import FloatArray
from tertium.core.segment import Judgment, Segment
from tertium.core.spans import ErrorAnnotations, Span, UnlocatedError
from tertium.data.judgments import JudgmentSet
from tertium.people.reliability import (
    Ratings,
    Resampler,
    Statistic,
    alpha_from_sums,
    error_statistics,
    icc_from_sums,
    krippendorff_alpha,
    measure_kappa,
    measure_pearson,
    rating_sums,
    spearman_brown,
    worst_severity,
)

X = np.nan
# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability, section D: 4 observers, 12 units
KRIPPENDORFF = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, X, X, X],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, X, 3],
        [X, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, X],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, X],
    ]
)
# Shrout & Fleiss (1979), table 2: 4 judges, 6 targets
SHROUT_FLEISS = np.array(
    [[9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]], dtype=float
)


def resampler(units: int, resamples: int = 300) -> Resampler:
    return Resampler(clusters=np.arange(units), resamples=resamples, rng=np.random.default_rng(1))


def kappa_statistic(levels: FloatArray) -> Statistic:
    return resampler(levels.shape[1]).average_pairs("kappa", levels, measure_kappa)


def test_alpha_of_krippendorffs_example() -> None:
    assert krippendorff_alpha(KRIPPENDORFF) == pytest.approx(0.849, abs=0.0005)
    assert krippendorff_alpha(KRIPPENDORFF, ordinal=True) == pytest.approx(0.815, abs=0.0005)
    assert krippendorff_alpha(KRIPPENDORFF + 1000) == pytest.approx(0.849, abs=0.0005)


def test_icc_of_shrout_and_fleiss() -> None:
    one = float(icc_from_sums(rating_sums(SHROUT_FLEISS).sum(axis=0)))
    assert one == pytest.approx(0.17, abs=0.005)
    assert spearman_brown(one, 4) == pytest.approx(0.44, abs=0.005)


def test_kappa_is_that_of_pairs_of_raters_with_their_own_marginals() -> None:
    strict = [2, 2, 2, 3, 2, 2, 1, 3, 3, 2, X, 2, 2, X, 2, 3]
    levels = np.array(
        [
            [0, 0, 1, 2, 2, 1, 0, 3, 2, 1, 0, 2, 1, 0, 2, 3],
            [0, 1, 1, 2, 1, 1, 0, 2, 2, 2, 0, 2, 0, 0, 1, 3],
            strict,
        ]
    )
    # cohen_kappa_score of scikit-learn 1.9.1 for each pair of raters
    pairs = [0.4782608695652174, 0.09352517985611508, -0.08450704225352101]
    assert kappa_statistic(levels[[0, 1]]).value == pytest.approx(pairs[0])
    assert kappa_statistic(levels[[0, 2]]).value == pytest.approx(pairs[1])
    assert kappa_statistic(levels[[1, 2]]).value == pytest.approx(pairs[2])
    result = kappa_statistic(levels)
    assert result.value == pytest.approx(np.average(pairs, weights=[16, 14, 14]))
    assert result.low < result.value < result.high
    assert result.count == 16 + 14 + 14


def test_kappa_is_undefined_if_all_raters_use_one_level() -> None:
    assert np.isnan(kappa_statistic(np.zeros((2, 9))).value)
    assert np.isnan(kappa_statistic(np.array([[0.0, X, X], [X, 1, 2]])).value)


def test_perfect_and_random_raters() -> None:
    rng = np.random.default_rng(3)
    truth = rng.normal(70, 15, 300)
    same = np.stack([truth, truth])
    assert krippendorff_alpha(same) == pytest.approx(1.0)
    assert abs(krippendorff_alpha(rng.normal(70, 15, (2, 300)))) < 0.15
    assert np.isnan(krippendorff_alpha(np.full((2, 9), 5.0)))


def test_intervals_contain_the_value_and_shrink() -> None:
    rng = np.random.default_rng(4)
    widths = []
    for size in (60, 600):
        truth = rng.normal(0, 1, size)
        ratings = truth + rng.normal(0, 1, (3, size))
        sums = rating_sums(ratings)

        def measure(weights: FloatArray, sums: FloatArray = sums) -> FloatArray:
            return alpha_from_sums(weights @ sums)

        result = resampler(size).summarize("alpha", measure, size)
        assert result.low < result.value < result.high
        assert abs(result.value - 0.5) < 0.2
        widths.append(result.high - result.low)
    assert widths[1] < widths[0] / 2


def test_correlations_are_averaged_over_pairs_of_raters() -> None:
    rng = np.random.default_rng(5)
    truth = rng.normal(0, 1, 80)
    ratings = truth + rng.normal(0, 0.5, (3, 80))
    ratings[2, 40:] = np.nan
    expected = np.average(
        [
            np.corrcoef(ratings[0], ratings[1])[0, 1],
            np.corrcoef(ratings[0, :40], ratings[2, :40])[0, 1],
            np.corrcoef(ratings[1, :40], ratings[2, :40])[0, 1],
        ],
        weights=[80, 40, 40],
    )
    result = resampler(80).average_pairs("Pearson", ratings, measure_pearson)
    assert result.value == pytest.approx(expected)
    assert result.low < result.value < result.high


def test_spans_of_two_raters() -> None:
    left = ErrorAnnotations((Span(0, 4, severity="major"),))
    right = ErrorAnnotations((Span(2, 6, severity="minor"),), (UnlocatedError("critical"),))
    judgments = [
        Judgment(Segment("Ein Satz."), 50.0, "1", "a", name, error_annotations=marks)
        for name, marks in (("anna", left), ("ben", right))
    ]
    ratings = Ratings.from_judgments(JudgmentSet(name="x", judgments=tuple(judgments)))
    characters, spans, kappa = error_statistics(ratings, resampler(1))
    assert characters.value == pytest.approx(2 * 1 / 8)  # two characters with half credit
    assert spans.value == pytest.approx(2 * (2 / 6 / 2) / 2)
    assert np.isnan(kappa.value)
    assert [worst_severity(marks) for marks in (left, right, ErrorAnnotations())] == [2, 3, 0]
    assert np.isnan(worst_severity(None))

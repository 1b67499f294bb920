"""The non-inferiority test: agreement with the paired t-test, and its level."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_rel
from tests.mean_scores import complete_scores as mean_scores

from tertium.core.segment import Segment
from tertium.evaluation.paired_tests import Difference, measure_difference
from tertium.metrics.base.loading import load_metric


def test_mean_of_symmetric_differences_is_the_paired_t_test():
    base = np.linspace(0, 1, 40)
    new = base + np.tile([0.3, -0.2], 20)
    difference = measure_difference(mean_scores(new), mean_scores(base))
    expected = ttest_rel(new, base, alternative="greater")
    assert difference.p_greater(0) == pytest.approx(expected.pvalue, rel=1e-9)
    assert difference.p_less(0) == pytest.approx(1 - expected.pvalue, rel=1e-9)


def test_differences_have_a_direction():
    base, new = np.arange(20.0), np.arange(20.0) + np.tile([1.0, 1.5], 10)
    scores = [mean_scores(values, higher_is_better=False) for values in (new, base)]
    difference = measure_difference(*scores)
    assert difference.value == pytest.approx(-1.25)
    assert difference.p_less(0) < 0.001
    same = mean_scores(np.random.default_rng(0).random(30))
    difference = measure_difference(same, same)
    assert (difference.value, difference.standard_error) == (0.0, 0.0)
    assert difference.p_greater(-0.1) == 0
    assert difference.p_less(-0.1) == 1


def test_corpus_metrics_use_pseudo_values():
    metric = load_metric("bleu")
    reference = "the cat sat on the mat and looked at the bird"
    texts = [f"{reference} {n}" for n in range(12)]
    good = metric.score([Segment(text, references=(text,)) for text in texts])
    bad = metric.score([Segment(text[4:], references=(text,)) for text in texts])
    difference = measure_difference(bad, good)
    assert difference.value == pytest.approx(bad.system - good.system)
    assert difference.p_less(-1) < 0.001


def test_few_segments_and_missing_scores_have_no_p_value():
    few = mean_scores(np.arange(5.0))
    assert np.isnan(measure_difference(few, few).p_greater(-1))
    values = np.arange(20.0)
    missing = measure_difference(
        mean_scores(np.where(values == 3, np.nan, values)), mean_scores(values)
    )
    assert np.isnan(missing.p_less(0))


def test_bounds_and_numbers_of_segments():
    difference = Difference(0.2, 0.2, 0.15, -0.2, 80)
    low, high = difference.interval(0.05)
    assert difference.p_greater(low) == pytest.approx(0.05)
    assert difference.p_less(high) == pytest.approx(0.05)
    difference = Difference(-0.2, -0.2, 0.3, 0.0, 100)
    wide, narrow = (difference.segments_to_decide(-m, 0.05) for m in (1.0, 0.5))
    # n (z(.95) + z(.8))^2 (se / distance)^2 with 1.6449 + 0.8416 = 2.4865
    assert wide == pytest.approx(100 * (2.4865 * 0.3 / 0.8) ** 2, rel=1e-3)
    assert narrow > wide
    assert difference.segments_to_decide(-0.2, 0.05) == np.inf


@pytest.mark.parametrize("rate", [0.05, 0.5])
def test_level_holds_at_the_margin(rate):
    # few segments that lose much are the hard case: the t-test claims "pass" in 9 to 11 % of draws
    rng, draws, size = np.random.default_rng(7), 600, 150
    zeros = mean_scores(np.zeros(size))
    passed = worse = 0
    for _ in range(draws):
        losses = -60.0 * (rng.random(size) < rate) + rng.normal(0, 1, size)
        difference = measure_difference(mean_scores(losses), zeros)
        passed += difference.p_greater(-60 * rate) <= 0.05
        worse += difference.p_less(-60 * rate) <= 0.05
    assert passed / draws <= 0.07
    assert worse / draws <= 0.07

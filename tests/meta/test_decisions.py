"""Decisions with a metric: curves equal loops over their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from tertium.core.errors import DataError, LengthError
from tertium.meta.decisions import (
    acceptance_curve,
    rerank_outputs,
    residuals,
    risk_coverage,
    summarize_decisions,
)

values = st.sampled_from([np.nan, 0.0, 1.0, 2.0, 2.5, 7.0])


@settings(max_examples=60, deadline=None)
@given(arrays(float, (2, 12), elements=values))
def test_acceptance_equals_the_loop(stack):
    human, metric = stack
    is_known = ~np.isnan(human) & ~np.isnan(metric)
    good = human[is_known] >= 2
    if not is_known.any() or not good.any() or good.all():
        with pytest.raises(DataError):
            acceptance_curve(human, metric, 2)
        return
    curve = acceptance_curve(human, metric, 2)
    assert curve.thresholds.tolist() == sorted(set(metric[is_known].tolist()), reverse=True)
    for threshold, precision, recall in zip(
        curve.thresholds, curve.precision, curve.recall, strict=True
    ):
        accepted = metric[is_known] >= threshold
        assert precision == pytest.approx((accepted & good).sum() / accepted.sum())
        assert recall == pytest.approx((accepted & good).sum() / good.sum())
    assert curve.recall[-1] == 1
    assert 0 < curve.average_precision <= 1


def test_perfect_metric_accepts_correctly():
    human = np.array([90.0, 80, 60, 20])
    curve = acceptance_curve(human, human / 100, 70)
    assert (curve.average_precision, curve.thresholds[curve.best]) == (1.0, 0.8)
    assert curve.precision_at(0.9) == 1.0
    with pytest.raises(DataError, match=r"none of 4 .* reach 95"):
        acceptance_curve(human, human, 95)


@settings(max_examples=60, deadline=None)
@given(arrays(float, (2, 3, 5), elements=values))
def test_reranking_equals_the_loop(stack):
    human, metric = stack
    right, chosen, random, best = [], [], [], []
    for h, m in zip(human.T, metric.T, strict=True):
        pairs = [(a, b) for a, b in zip(h, m, strict=True) if a == a and b == b]
        if len(pairs) > 1:
            top = [a for a, b in pairs if b == max(b for _, b in pairs)]
            highest = max(a for a, _ in pairs)
            right.append(np.mean([a == highest for a in top]))
            chosen.append(np.mean(top))
            random.append(np.mean([a for a, _ in pairs]))
            best.append(highest)
    if not right:
        nothing = rerank_outputs(human, metric)
        assert nothing.segments == 0
        assert np.isnan([nothing.accuracy, nothing.chance, nothing.gain]).all()
        return
    calibration = rerank_outputs(human, metric)
    assert calibration.segments == len(right)
    expected = [np.mean(part) for part in (right, chosen, random, best)]
    assert_allclose(
        [calibration.accuracy, calibration.chosen, calibration.random, calibration.best], expected
    )


def test_reranking_by_human_scores_gains_all():
    human = np.random.default_rng(1).normal(size=(4, 30))
    assert rerank_outputs(human, human).gain == pytest.approx(1)
    assert rerank_outputs(human, np.zeros_like(human)).gain == pytest.approx(0)
    with pytest.raises(LengthError, match="one shape"):
        rerank_outputs(human, human[:2])


def test_risk_falls_if_uncertainty_predicts_errors():
    rng = np.random.default_rng(2)
    spread = rng.uniform(0.1, 3, 2000)
    errors = rng.normal(0, spread)
    is_known, nothing = risk_coverage(errors, spread), risk_coverage(errors, np.ones(2000))
    assert is_known.area < nothing.area == pytest.approx(nothing.flat)
    assert 0.3 < is_known.skill < 1
    assert nothing.skill == pytest.approx(0, abs=1e-9)
    assert risk_coverage(errors, -spread).skill < 0
    assert is_known.risk[-1] == pytest.approx(np.abs(errors).mean())
    # one by one, by the definition
    order = np.argsort(spread)
    assert is_known.risk[9] == pytest.approx(np.abs(errors[order[:10]]).mean())


def test_residuals_equal_the_linear_fit():
    human, metric = np.array([1.0, 2, np.nan, 6]), np.array([0.1, 0.2, 0.3, 0.5])
    errors = residuals(human, metric)
    assert np.isnan(errors[2])
    assert errors[[0, 1, 3]].sum() == pytest.approx(0)
    assert np.corrcoef(errors[[0, 1, 3]], metric[[0, 1, 3]])[0, 1] == pytest.approx(0, abs=1e-9)
    with pytest.raises(DataError, match="different metric scores"):
        residuals([1.0, 2], [3.0, 3])


def test_summary_values():
    human = np.array([[90.0, 80, 30], [40, 85, 60]])
    figures = summarize_decisions(
        acceptance_curve(human, human / 100, 70), rerank_outputs(human, human / 100)
    )
    assert (figures["good"], figures["average_precision"], figures["reranking"]) == (0.5, 1, 1)
    assert figures["gain"] == 1

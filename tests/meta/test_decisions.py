"""Decisions with a metric: curves equal loops over their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tertium.core.errors import DataError, LengthError
from tertium.meta.difference_scales import (
    accept_translations,
    rerank_outputs,
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
            accept_translations(human, metric, 2)
        return
    values, curve = accept_translations(human, metric, 2)
    assert curve[:, 0].tolist() == sorted(set(metric[is_known].tolist()), reverse=True)
    for threshold, precision, recall in curve:
        accepted = metric[is_known] >= threshold
        assert precision == pytest.approx((accepted & good).sum() / accepted.sum())
        assert recall == pytest.approx((accepted & good).sum() / good.sum())
    assert curve[-1, 2] == 1
    assert 0 < values["average_precision"] <= 1


def test_perfect_metrics():
    human = np.array([90.0, 80, 60, 20])
    values, _ = accept_translations(human, human / 100, 70)
    assert (values["average_precision"], values["threshold"]) == (1.0, 0.8)
    assert (values["precision_at_90"], values["good"]) == (1.0, 0.5)
    with pytest.raises(DataError, match=r"none of 4 .* reach 95"):
        accept_translations(human, human, 95)
    human = np.random.default_rng(1).normal(size=(4, 30))
    assert rerank_outputs(human, human)["gain"] == pytest.approx(1)
    assert rerank_outputs(human, np.zeros_like(human))["gain"] == pytest.approx(0)
    with pytest.raises(LengthError, match="one shape"):
        rerank_outputs(human, human[:2])


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
    values = rerank_outputs(human, metric)
    if not right:
        assert np.isnan([*values.values()]).all()
        return
    accuracy, best_choice, chance, reach = (np.mean(part) for part in (right, chosen, random, best))
    assert values["reranking"] == pytest.approx(accuracy)
    if reach > chance + 1e-9:
        assert values["gain"] == pytest.approx((best_choice - chance) / (reach - chance))

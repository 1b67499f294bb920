"""Difference scales equal counting by hand, and curves of decisions equal loops."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tertium.core.errors import DataError
from tertium.core.scores import ScoreMatrix
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.difference_scales import (
    DifferenceScale,
    accept_translations,
    compare_system_pairs,
    fit_bins,
    fit_scales,
    language_direction,
    rerank_outputs,
)


def test_system_pairs_by_hand():
    # human: a > b = c; metric: c > a > b; d has no metric score
    sizes, agree = compare_system_pairs(
        np.array([3.0, 2, 2, 1]), np.array([0.5, 0.1, 0.75, np.nan])
    )
    assert sizes == pytest.approx([0.4, 0.25, 0.65])
    assert agree.tolist() == [1.0, 0.0, 0.5]
    assert len(compare_system_pairs(np.array([1.0, 2]), np.array([0.5, 0.5]))[0]) == 0
    assert language_direction("zh-en") == "into English"
    assert language_direction("cs-uk") == "not into English"
    assert language_direction("news") == ""


def test_bins_cover_all_pairs_and_are_monotone():
    rng = np.random.default_rng(1)
    sizes = rng.exponential(size=500)
    agree = (rng.random(500) < 0.5 + 0.4 * (1 - np.exp(-sizes))) * 1.0
    bins = fit_bins(sizes, agree)
    assert sum(b.pairs for b in bins) == 500
    shares = [b.agree for b in bins]
    assert shares == sorted(shares)
    for part in bins:
        inside = (sizes > part.low) & (sizes <= part.high)
        assert inside.sum() == part.pairs
        assert agree[inside].mean() == pytest.approx(part.agree)


def test_falling_neighbors_are_pooled():
    sizes = np.arange(60.0)
    agree = np.repeat([1.0, 0.0, 1.0], 20)  # the middle third falls
    assert [(b.pairs, b.agree) for b in fit_bins(sizes, agree, bins=3)] == [(40, 0.5), (20, 1.0)]


def aligned(name, seed):
    rng = np.random.default_rng(seed)
    systems = tuple(f"s{n}" for n in range(9))
    human_systems = dict(zip(systems, rng.normal(size=9).tolist(), strict=True))
    scores = {s: v + rng.normal(0, 0.5) for s, v in human_systems.items()}
    table = ScoreMatrix("m", systems, np.zeros((9, 0)))
    return AlignedScores.align(
        name, [table], human_systems=human_systems, system_scores={"m": scores}
    )


def test_scales_by_language_direction():
    sets = [aligned("wmt de-en", 1), aligned("en-de", 2), aligned("test", 3)]
    scales = {s.direction: s for s in fit_scales(sets)}
    assert {d: s.pairs for d, s in scales.items()} == {
        "all": 3 * 36,
        "into English": 36,
        "not into English": 36,
    }
    scale = scales["all"]
    assert DifferenceScale.from_record(asdict(scale)) == scale
    assert scale.find(0.0) == scale.bins[0]
    assert scale.find(-99.0) == scale.bins[-1]
    assert scale.find(scale.bins[0].high) == scale.bins[0]


def test_too_few_pairs_error():
    metric, scores = ScoreMatrix("m", ("a", "b"), np.zeros((2, 0))), {"a": 1.0, "b": 2.0}
    two = AlignedScores.align("de-en", [metric], human_systems=scores, system_scores={"m": scores})
    with pytest.raises(DataError, match="expected at least 20"):
        fit_scales([two])


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

"""Intervals and paired tests: equal to sacrebleu on its metrics, to loops on small data."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU as SacreBLEU
from sacrebleu.metrics.chrf import CHRF as SacreChrF
from sacrebleu.significance import PairedTest
from tests.mean_scores import complete_scores as mean_scores
from tests.mean_scores import mean_scores as partial_scores

from tertium.core.errors import LengthError, UsageError
from tertium.core.scores import Scores
from tertium.data.testset import TestSet
from tertium.evaluation.comparison import compare
from tertium.evaluation.paired_tests import (
    assign_clusters,
    bootstrap,
    interval,
    paired_bootstrap,
    paired_randomization,
)
from tertium.evaluation.scoring import score


def test_bootstrap_equals_sacrebleu(example):
    references = [list(column) for column in zip(*example.references, strict=True)]
    systems = [(name, list(texts)) for name, texts in example.systems.items()]
    peers = {"bleu": SacreBLEU(references=references), "chrf": SacreChrF(references=references)}
    _, expected = PairedTest(systems, peers, references=None, test_type="bs", n_samples=300)()
    result = compare(example, ["bleu", "chrf"], resamples=300)
    for spec, title in (("bleu", "BLEU"), ("chrf", "chrF2")):
        for place, system in enumerate(example.systems):
            theirs = expected[title][place]
            bounds = result.intervals[system][spec]
            assert result.scores[system][spec].system == theirs.score
            # sacrebleu adds in single precision
            assert bounds.mean == pytest.approx(theirs.mean, abs=1e-4)
            assert bounds.half_width == pytest.approx(theirs.ci, abs=1e-4)
            if place:
                assert result.p_value(spec, system) == pytest.approx(theirs.p_value, abs=2 / 300)


def test_bootstrap_equals_the_loop_in_blocks_of_any_size(monkeypatch):
    rng = np.random.default_rng(3)
    values = rng.normal(size=17)
    drawn = bootstrap([mean_scores(values)], resamples=40, seed=7)[0]
    indices = np.random.default_rng(7).choice(17, size=(40, 17), replace=True)
    np.testing.assert_allclose(drawn, [values[row].mean() for row in indices])
    scores = mean_scores(np.random.default_rng(1).normal(size=101))
    unblocked = bootstrap([scores], resamples=37)
    monkeypatch.setattr("tertium.core.resampling.MASK_BLOCK_NUMBERS", 101 * 5)
    np.testing.assert_allclose(bootstrap([scores], resamples=37), unblocked, rtol=1e-13)


def test_randomization_agrees_with_all_permutations():
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=10), rng.normal(loc=0.6, size=10)
    signs = 2 * np.array([*itertools.product([0, 1], repeat=10)]) - 1
    observed = abs(a.mean() - b.mean())
    exact = np.mean(np.abs((signs * (a - b)).mean(axis=1)) >= observed - 1e-12)
    p = paired_randomization([mean_scores(a), mean_scores(b)], resamples=20_000)[0, 1]
    assert p == pytest.approx(exact, abs=0.015)


def bootstrap_pairs(scores: list[Scores]) -> np.ndarray:
    return paired_bootstrap(scores, bootstrap(scores))


@pytest.mark.parametrize("test", [bootstrap_pairs, paired_randomization])
def test_identical_and_clearly_different_systems(test):
    values = np.random.default_rng(1).normal(size=200)
    assert test([mean_scores(values)] * 2)[0, 1] == 1.0
    p = test([mean_scores(values), mean_scores(values + 1)])
    assert p[0, 1] < 0.01
    assert (p == p.T).all()
    assert (np.diag(p) == 1).all()


def test_memory_does_not_grow_with_segments_and_resamples():
    scores = mean_scores(np.random.default_rng(1).normal(size=50_000))
    tracemalloc.start()
    bootstrap([scores], resamples=1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120e6  # the product would take 400 MB
    rng = np.random.default_rng(1)
    systems = [mean_scores(rng.normal(size=200)) for _ in range(8)]
    peaks = []
    for resamples in (30_000, 90_000):
        tracemalloc.start()
        paired_randomization(systems, resamples=resamples)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_clusters_follow_the_p_values():
    scores = [mean_scores(np.full(3, value)) for value in (2.0, 3.0, 1.0)]
    p = np.ones((3, 3))
    assert assign_clusters(scores, p) == [1, 1, 1]
    p[2, :] = p[:, 2] = 0.01
    assert assign_clusters(scores, p) == [1, 1, 2]
    p[0, 1] = p[1, 0] = 0.01
    assert assign_clusters(scores, p) == [2, 1, 3]
    unscored = mean_scores(np.array([np.nan, 9.0, 9.0]))
    more = np.pad(p, (1, 0), constant_values=np.nan)  # with a system without a score
    assert assign_clusters([unscored, *scores], more) == [0, 2, 1, 3]


def test_undefined_samples_and_scores():
    values = np.arange(20.0)
    broken = mean_scores(np.where(values == 3, np.nan, values + 5), "broken")
    for test in (bootstrap_pairs, paired_randomization):
        p_values = test([mean_scores(values), broken])
        assert np.isnan(p_values[0, 1])
        assert assign_clusters([mean_scores(values), broken], p_values) == [1, 0]
    rng = np.random.default_rng(0)
    values = np.full((2, 60), np.nan)
    values[:, :6] = rng.normal([[5.0], [0.0]], 0.1, (2, 6))  # one sample in 550 draws none of these
    systems = [partial_scores("demo", own, "demo") for own in values]
    drawn = bootstrap(systems, resamples=1000, seed=1)
    undefined = int(np.isnan(drawn[0]).sum())
    assert undefined > 0
    assert paired_bootstrap(systems, drawn)[0, 1] == (1 + undefined) / 1001


def test_bounds_and_directions_of_intervals():
    bounds = interval(np.random.default_rng(2).permutation(np.arange(1000.0)))
    assert (bounds.low, bounds.high, bounds.half_width) == (25.0, 974.0, 474.5)
    scores = [mean_scores(np.array([value]), higher_is_better=False) for value in (2.0, 1.0)]
    assert assign_clusters(scores, np.zeros((2, 2))) == [2, 1]


def test_invalid_arguments():
    with pytest.raises(UsageError, match="seed=None: expected a whole number of at least 0"):
        bootstrap([mean_scores(np.ones(3))], seed=None)
    with pytest.raises(LengthError, match="differ in length"):
        bootstrap([mean_scores(np.ones(3)), mean_scores(np.ones(4))])
    with pytest.raises(UsageError, match="at least two systems"):
        compare(TestSet(systems={"a": ("x",)}, references=(("x",),)), "bleu")


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
def test_one_segment_has_no_p_value(test):
    lone = TestSet(systems={"a": ["the cat"], "b": ["a dog ran"]}, references=[["the cat"]])
    result = compare(lone, ["chrf"], test=test, resamples=50)
    assert np.isnan(result.p_value("chrf", "b"))
    assert result.clusters["chrf"] == [1, 1]
    assert result.records()[1]["p_value"] != result.records()[1]["p_value"]


@pytest.mark.parametrize("resamples", [10**18, 10**400, 1_000_001, 0, 2.0, True])
def test_the_number_of_resamples_is_limited_before_scoring(resamples, example, monkeypatch):
    monkeypatch.setattr("tertium.evaluation.metric_choice.load_metrics", None)
    message = "resamples must be an integer from 1 to 1,000,000, got"
    with pytest.raises(UsageError, match=message):
        compare(example, "chrf", resamples=resamples)
    with pytest.raises(UsageError, match=message):
        score(example, "chrf", confidence=True, resamples=resamples)
    with pytest.raises(UsageError, match="confidence must be True or False"):
        score(example, "chrf", confidence=10**5000)


def test_pairs_without_the_baseline_can_be_left_out():
    rng = np.random.default_rng(2)
    systems = [mean_scores(rng.normal(n / 3, size=40)) for n in range(4)]
    every = paired_randomization(systems, resamples=500)
    few = paired_randomization(systems, resamples=500, baseline_only=True)
    np.testing.assert_array_equal(few[0], every[0])
    np.testing.assert_array_equal(few[:, 0], every[:, 0])
    assert np.isnan(few[1:, 1:]).sum() == 6

"""The statistics that select epochs equal those of the meta-evaluation."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.meta import kendall_strict, pearson
from tertium.models.training_examples import average_pearson, strict_tau


def test_average_pearson_equals_the_meta_evaluations() -> None:
    rng = np.random.default_rng(0)
    human, scores = rng.normal(size=(2, 30))
    groups = ["a"] * 12 + ["b"] * 18
    parts = slice(0, 12), slice(12, 30)
    expected = np.mean([float(pearson(human[part], scores[part])) for part in parts])
    assert average_pearson(scores, human, groups) == pytest.approx(expected)
    assert average_pearson(np.ones(30), human, groups) == 0.0


def test_strict_tau_equals_the_meta_evaluations() -> None:
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 5, size=20).astype(float)  # with ties
    better, worse = rng.integers(0, 20, size=(2, 50))
    keep = better != worse
    better, worse = better[keep], worse[keep]
    expected = float(kendall_strict(np.ones(len(better)), scores[better], scores[worse]))
    assert strict_tau(scores, better, worse) == pytest.approx(expected)
    twice = strict_tau(scores, better, worse, np.full(len(better), 2.0))
    assert twice == pytest.approx(expected)

"""The statistics that select epochs equal those of the meta-evaluation."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.core.segment import Segment
from tertium.data.rankings import PairwiseJudgment, build_ranking_set
from tertium.meta import kendall_strict, pearson
from tertium.models.training_examples import average_pearson, number_compared_pairs, strict_tau


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


def test_strict_tau_counts_equal_outputs_as_the_meta_evaluation_does() -> None:
    """Equal outputs tie under any metric, which is an error if raters preferred one."""
    rng = np.random.default_rng(2)
    systems = "ABCD"
    texts = {
        str(n): {s: Segment(f"{rng.integers(3)} of {n}", None, (f"r{n}",)) for s in systems}
        for n in range(20)
    }
    comparisons = [
        PairwiseJudgment(str(n), left, right, verdict)
        for n in range(20)
        for verdict in (0.0, 1.0, 1.0, 0.5)
        for left, right in [rng.choice(list(systems), 2, replace=False)]
    ]
    demo = build_ranking_set(comparisons, texts, name="demo")
    scores = {s.hypothesis: float(rng.normal()) for s in demo.segments}
    rows = np.array([scores[s.hypothesis] for s in demo.segments])
    left, right = rows[demo.left], rows[demo.right]
    assert (left == right).sum() > 10
    table: dict[str, int] = {}
    data = number_compared_pairs([demo], "reference", table)
    pairs = np.array([scores[list(table)[n]] for n in data.pairs[:, 0]])
    tau = strict_tau(pairs, data.better, data.worse, data.weights)
    assert tau == pytest.approx(float(kendall_strict(demo.verdicts, left, right)))

"""The protocol of a shared task: values of mt-metrics-eval's tests, weights, ranks and table."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.builders import make_aligned_scores

from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.scores import ScoreMatrix
from tertium.meta import AlignedScores, acc_eq, acc_eq_calibrated, pearson
from tertium.meta.agreement_results import assign_ranks
from tertium.meta.protocol import PROTOCOLS, run_protocol
from tertium.meta.replicates import williams
from tertium.output.text import render_table

# The expected values below are those of google-research/mt-metrics-eval: tau_optimization_test.py,
# stats_test.py (KendallVariants 'acc23', KendallWithTiesOpt, Williams) and tasks_test.py.
NONE = np.nan


def test_thresholds_of_ties_as_in_its_tests():
    metric, human = [0, 2, 6, 8], [1, 2, 3, 4]
    accuracies = [float(acc_eq(human, metric, grouping="none", epsilon=e)) for e in (0, 2, 4, 6, 8)]
    assert accuracies == [6 / 6, 4 / 6, 3 / 6, 1 / 6, 0 / 6]
    tied = [1, 1, 1, 4]
    accuracies = [float(acc_eq(tied, metric, grouping="none", epsilon=e)) for e in (0, 2, 4, 6, 8)]
    assert accuracies == [3 / 6, 3 / 6, 4 / 6, 4 / 6, 3 / 6]
    best = acc_eq_calibrated(tied, metric, grouping="none")
    assert (float(best), float(best.epsilon)) == (4 / 6, 4)


def test_its_regression_example_with_missing_values():
    metric = [[0, 5, 2, 3, 2], [NONE, 2, 1, 5, 3], [9, 1, 5, 3, 8], [9, 3, 4, 4, 1], [NONE] * 5]
    human = [[1, 5, 2, 1, 1], [4, 2, 2, 1, 4], [5, 9, 2, 8, 7], [7, 6, NONE, 3, 2], [NONE] * 5]
    expected = [0.4666666666666667, 0.4916666666666668, 0.38333333333333347, 0.29166666666666674]
    expected += [0.2666666666666667, 0.2, 0.15833333333333335, 0.15833333333333335]
    expected += [0.1166666666666667]
    calibrated = [float(acc_eq(human, metric, grouping="system", epsilon=e)) for e in range(9)]
    assert_allclose(calibrated, expected, rtol=1e-12)
    best = acc_eq_calibrated(human, metric, grouping="system")
    assert float(best) == pytest.approx(0.4916666666666668, rel=1e-12)
    assert float(best.epsilon) == 1


def test_accuracies_and_correlations_as_in_its_tests():
    gold, metric = [1, 2, 2, 3, 4], [2, 1, 1.5, 5, 3]
    assert float(acc_eq(gold, metric, grouping="none")) == 0.6
    assert float(acc_eq(gold, metric, grouping="none", epsilon=2)) == 0.4
    assert float(acc_eq_calibrated(gold, metric, grouping="none")) == 0.7
    x, y = [1, 1, 1, 2, 2, 3, 4], [1, 1, 2, 2, 4, 3, 3]
    assert float(acc_eq(x, y, grouping="none")) == pytest.approx(14 / 21)
    human, scores = [[1, 2, 3], [4, 5, 6]], [[2, 1, 4], [3, 3, 7]]
    for grouping, expected in (("none", 0.776), ("system", 0.760), ("item", 1.0)):
        assert float(pearson(human, scores, grouping=grouping)) == pytest.approx(expected, abs=5e-4)
    p = williams([1, 2, 3, 4, 5], [[1.1, 2, 3.1, 4, 5.1], [1.5, 2, 3.1, 4, 5.5]])
    assert p[0, 1] == pytest.approx(0.019, abs=5e-4)


def test_ranks_equal_mt_metrics_eval():
    # a new rank begins where any member of the current one is significantly better
    p = np.ones((4, 4))
    p[0, 2] = p[2, 3] = 0.01
    p[1, 3] = 0.01
    assert assign_ranks(np.array([0.9, 0.8, 0.7, 0.6]), p) == [1, 1, 2, 3]
    p[2, 3] = 1.0  # the second could beat the fourth, but has another rank
    assert assign_ranks(np.array([0.9, 0.8, 0.7, 0.6]), p) == [1, 1, 2, 2]


NOISE = {"good": 0.3, "fair": 1.0, "poor": 6.0}


def make_set(name, seed=0, metrics=tuple(NOISE)):
    noise = {metric: NOISE[metric] for metric in metrics}
    return make_aligned_scores(name, seed, noise, "ABCDE", 80)


def test_six_tasks_of_equal_weight_make_the_ranking():
    sets = [make_set(lp, n) for n, lp in enumerate(("ja-zh", "en-de", "en-es"))]
    results = run_protocol(sets, "wmt24", resamples=100)
    names = [(t.task.label, t.task.statistic) for t in results.tasks]
    pairs = [(lp, s) for lp in ("en-de", "en-es", "ja-zh") for s in ("spa", "acc-eq*")]
    assert names == pairs
    assert {record["weight"] for record in results.records()["tasks"]} == {1 / 6}
    assert_allclose(results.average.values, np.mean([t.values for t in results.tasks], axis=0))
    assert results.average.ranks == (1, 2, 3)
    assert results.missing == ()
    text = render_table(results.tables()[0])
    assert "6 tasks of equal weight" in text
    assert text.index("good") < text.index("fair") < text.index("poor")


def test_sets_are_independent():
    alone = run_protocol([make_set("en-de")], resamples=50)
    with_another = run_protocol([make_set("en-es", 3), make_set("en-de")], resamples=50)
    for one, other in zip(alone.tasks, with_another.tasks[:2], strict=True):
        assert_allclose(one.values, other.values)
        assert_allclose(one.p_values, other.p_values)
    assert alone.missing == ("en-es", "ja-zh")


def test_metric_without_a_language_pair_has_no_rank():
    sets = [make_set("en-de"), make_set("en-es", 1, ("good", "poor"))]
    results = run_protocol(sets, resamples=50)
    assert np.isnan(results.average.values[1])
    assert results.average.ranks == (1, None, 2)
    record = next(r for r in results.records()["average"] if r["metric"] == "fair")
    assert record["value"] != record["value"]
    line = next(x for x in render_table(results.tables()[0]).splitlines() if x.startswith(" fair"))
    assert line.split()[1:3] == ["–", "–"]


def test_without_tests_metrics_are_ranked_by_value():
    results = run_protocol([make_set("en-de")], resamples=0)
    assert set(results.average.ranks) == {1, 2, 3}
    assert "metrics are ranked by value" in render_table(results.tables()[0])
    assert len(PROTOCOLS["wmt25"].lps) == 16
    results = run_protocol([make_set("en-ko")], "wmt25", resamples=0)
    assert "assumed: " in render_table(results.tables()[0])
    assert results.records()["assumed"]


def test_invalid_input():
    with pytest.raises(UnknownNameError, match="wmt24"):
        run_protocol([make_set("en-de")], "wmt42")
    metric, human = ScoreMatrix("m", ("A", "B"), np.ones((2, 3))), {"A": 1.0, "B": 2.0}
    systems = AlignedScores.align("en-de", [metric], human_systems=human)
    with pytest.raises(UsageError, match="needs human segment scores"):
        run_protocol([systems])

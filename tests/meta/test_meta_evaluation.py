"""Tasks end to end: values equal the statistics; ranks and averages follow from them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tertium.core.errors import DataError, UnknownNameError, UsageError
from tertium.core.scores import ScoreMatrix
from tertium.data.rankings import PairwiseJudgment, build_ranking_set
from tertium.meta import acc_eq_calibrated, kendall_strict, pearson, system_accuracy
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.tasks import STATISTIC_ALIASES, STATISTICS, Task, resolve_statistic, tasks_for

SYSTEMS = ("A", "B", "C", "D", "E")


def make_set(name, seed=0, systems=SYSTEMS, items=60, worth=(1.0, 0.95, -0.3)):
    """Human scores from 0 to 100, two good metrics and one misleading one."""
    rng = np.random.default_rng(seed)
    quality = np.linspace(1, 0, len(systems))[:, None]
    truth = quality + rng.normal(0, 0.6, (len(systems), items))
    human = ScoreMatrix("da", systems, (50 + 20 * truth).round())
    metrics = [
        ScoreMatrix(f"m{n}", systems, w * truth + rng.normal(0, 0.3, truth.shape))
        for n, w in enumerate(worth)
    ]
    return AlignedScores.align(name, metrics, human=human)


def make_ranking(name="r"):
    rng = np.random.default_rng(5)
    rows = []
    for item in range(40):
        for left, right in (("A", "B"), ("B", "C"), ("A", "C")):
            verdict = rng.choice([1.0, 0.5, 0.0], p=[0.6, 0.2, 0.2])
            rows.append(PairwiseJudgment(str(item), left, right, verdict))
    rankings = build_ranking_set(rows, name=name)
    good = np.array([[3.0], [2], [1]]) + rng.normal(0, 0.3, (3, 40))
    bad = rng.normal(size=(3, 40))
    metrics = [
        ScoreMatrix(n, rankings.systems, v, rankings.items)
        for n, v in (("good", good), ("bad", bad))
    ]
    return AlignedScores.align(name, metrics, comparisons=rankings)


@pytest.fixture(scope="module")
def results():
    return MetaEvaluation([make_set("de-en", 1), make_set("fi-en", 2)]).run(
        tasks_for(["de-en", "fi-en"], "pearson", resamples=200)
    )


def test_values_best_and_ranks(results):
    aligned, task = make_set("de-en", 1), results.tasks[0]
    assert_allclose(task.values, pearson(aligned.human, aligned.scores).value)
    assert (task.bounds[:, 0] < task.values).all()
    assert (task.values < task.bounds[:, 1]).all()
    assert task.best == 0
    assert task.not_worse.tolist() == [True, task.p_values[0, 1] >= 0.05, False]
    assert task.ranks[2] > task.ranks[0] == 1


def test_average_and_ranks(results):
    mean = np.mean([t.values for t in results.tasks], axis=0)
    assert_allclose(results.average.values, mean)
    assert (results.average.bounds[:, 0] < mean).all()
    # The interval of the average over two sets is narrower than that of either.
    widths = [np.diff(t.bounds) for t in results.tasks]
    assert (np.diff(results.average.bounds) < np.max(widths, axis=0)).all()
    assert_allclose(results.average_rank, np.mean([t.ranks for t in results.tasks], axis=0))


def test_average_is_tested_if_its_tasks_are():
    sets = [make_set("de-en", 1), make_set("fi-en", 2)]
    tasks = tasks_for(["de-en", "fi-en"], "kendall", test="none", resamples=200)
    average = MetaEvaluation(sets).run(tasks).average
    assert (average.bounds[:, 0] < average.values).all()
    assert np.isnan(average.p_values).all()
    assert average.not_worse.tolist() == [True, False, False]
    records = MetaEvaluation(sets).run(tasks).records()  # false would mean that they are worse
    for part in ("tasks", "average"):
        assert [r["not_significantly_worse"] for r in records[part]][:3] == [None] * 3
    assert average.ranks == (1, 2, 3)


def test_records_are_plain_and_complete(results):
    records = results.records()
    assert json.loads(json.dumps(records)) == records
    first = records["tasks"][0]
    assert (first["judged"], first["used"], first["left_out"]) == (300, 300, 0)
    assert first["p_better_than"]["m2"] < 0.05
    assert records["average_rank"]["m0"] == results.average_rank[0]


def test_averages_do_not_mix_statistics_and_levels():
    sets = ["de-en", "fi-en"]
    results = MetaEvaluation([make_set("de-en", 1), make_set("fi-en", 2)]).run(
        [
            *tasks_for(sets, "pearson", level="segment", resamples=0),
            *tasks_for(sets, "pearson", level="system", resamples=0),
            *tasks_for(sets, "spa", resamples=0),
        ]
    )
    parts = results.by_statistic()
    assert list(parts) == ["pearson segment", "pearson system", "spa"]
    averages = {(r["metric"], r["statistic"]): r["value"] for r in results.records()["average"]}
    for kind, part in parts.items():
        assert len(part.tasks) == 2
        assert averages["m0", kind] == np.mean([t.values[0] for t in part.tasks])


def test_undefined_values_do_not_affect_others():
    complete, part = make_set("de-en", 1), make_set("fi-en", 2, worth=(1.0, 0.95))
    sets = ("de-en", "fi-en")
    task = Task(sets=sets, statistic="accuracy", level="system", resamples=0, test="none")
    values = MetaEvaluation([complete, part]).run([task]).tasks[0].values
    assert np.isfinite(values[:2]).all()
    assert np.isnan(values[2])
    aligned = make_set("a", 1)
    aligned.scores[1] = 0.5
    result = MetaEvaluation([aligned]).run([Task(sets=("a",), resamples=50)]).tasks[0]
    assert np.isnan(result.values[1])
    assert np.isnan(result.p_values[0, 1])
    assert result.not_worse.tolist() == [True, False, False]


def test_value_does_not_depend_on_other_tasks(results):
    alone = MetaEvaluation([make_set("fi-en", 2)]).run([results.tasks[1].task])
    assert_allclose(alone.tasks[0].p_values, results.tasks[1].p_values)
    assert_allclose(alone.tasks[0].bounds[:, 0], results.tasks[1].bounds[:, 0])
    other = MetaEvaluation([make_set("fi-en", 2)], seed=1).run([results.tasks[1].task])
    assert not np.array_equal(other.tasks[0].bounds[:, 0], results.tasks[1].bounds[:, 0])


SCORE_TASKS = [
    ("pearson", {}),
    ("pearson", {"test": "williams"}),
    ("pearson", {"test": "bootstrap"}),
    ("pearson", {"grouping": "item"}),
    ("pearson", {"grouping": "system"}),
    ("pearson", {"level": "system"}),
    ("spearman", {}),
    ("spearman", {"grouping": "system"}),
    ("spearman", {"level": "system"}),
    ("kendall", {}),
    ("kendall", {"grouping": "item"}),
    ("kendall", {"grouping": "system"}),
    ("acc-eq", {}),
    ("acc-eq", {"grouping": "none"}),
    ("acc-eq", {"grouping": "system", "test": "bootstrap"}),
    ("acc-eq*", {}),
    ("acc-eq*", {"test": "bootstrap"}),
    ("darr", {}),
    ("darr17", {}),
    ("accuracy", {}),
    ("accuracy", {"test": "bootstrap"}),
    ("spa", {}),
]


@pytest.mark.parametrize(("statistic", "choices"), SCORE_TASKS)
def test_every_statistic_separates_a_good_from_a_bad_metric(statistic, choices):
    # Enough systems for tests over systems.
    aligned = make_set("x", 3, systems=tuple("ABCDEFGHIJKL"), items=40)
    task = Task(sets=("x",), statistic=statistic, **{"resamples": 100, **choices})
    result = MetaEvaluation([aligned]).run([task]).tasks[0]
    assert result.best in (0, 1)
    assert result.values[0] > result.values[2]
    assert result.p_values[0, 2] < 0.05
    assert not result.not_worse[2]
    assert (result.bounds[:, 0] <= result.values + 1e-9).all()
    assert (result.values <= result.bounds[:, 1] + 0.05).all()  # resampled systems are repeated
    assert result.agreement.judged_count > 0


@pytest.mark.parametrize("test", ["perm-both", "williams", "bootstrap"])
def test_rescaled_metric_is_not_better(test):
    aligned = make_set("x", 3, items=40)
    aligned.scores[1] = 100 * aligned.scores[0] + 7
    task = Task(sets=("x",), resamples=200, test=test)
    assert MetaEvaluation([aligned]).run_task(task).p_values[:2, :2].tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("statistic", ["tau-strict", "tau13", "tau14", "consistency"])
def test_every_statistic_of_comparisons(statistic):
    aligned = make_ranking()
    task = MetaEvaluation([aligned]).run_task(Task(sets=("r",), statistic=statistic))
    assert task.values[0] > task.values[1]
    assert task.p_values[0, 1] < 0.05
    assert (task.bounds[:, 0] < task.values).all()
    if statistic == "tau-strict":
        compared = aligned.comparisons
        sides = (aligned.scores[:, s, compared.item] for s in (compared.left, compared.right))
        expected = kendall_strict(compared.verdicts, *sides)
        assert_allclose(task.values, expected.value)
        assert task.agreement.judged_count == expected.judged_count < 120


def test_accuracy_pools_sets():
    sets = [make_set("a", 1), make_set("b", 2, systems=("A", "B", "C"))]
    tasks = tasks_for(["a", "b"], "accuracy", resamples=50)
    assert len(tasks) == 1
    result = MetaEvaluation(sets).run(tasks).tasks[0]
    expected = system_accuracy([s.human_systems for s in sets], [s.system_scores for s in sets])
    assert_allclose(result.values, expected.value)
    assert result.agreement.judged_count == 10 + 3
    task = Task(sets=("a",), statistic="acc-eq*", resamples=10)
    calibrated = MetaEvaluation(sets).run_task(task)
    expected = acc_eq_calibrated(sets[0].human, sets[0].scores)
    assert_allclose(calibrated.values, expected.value)
    assert calibrated.records()[0]["epsilon"] == expected.epsilon[0]


def test_missing_scores_are_counted():
    first, second = make_set("a", 1), make_set("b", 2, worth=(1.0,))
    first.scores[1, :, :10] = np.nan
    results = MetaEvaluation([first, second]).run(tasks_for(["a", "b"], "pearson", resamples=50))
    assert results.tasks[0].agreement.excluded_counts.tolist() == [0, 50, 0]
    assert np.isnan(results.tasks[1].values[1:]).all()
    assert results.tasks[1].not_worse.tolist() == [True, False, False]
    assert np.isnan(results.average.values[1:]).all()
    assert results.tasks[1].ranks == (1, None, None)


def test_one_system_only():
    evaluation = MetaEvaluation([make_set("a", 1, systems=("A",))])
    assert evaluation.run_task(Task(sets=("a",), resamples=20)).values[0] > 0.5
    grouped = evaluation.run_task(Task(sets=("a",), grouping="item", resamples=20))
    assert np.isnan(grouped.values).all()
    assert grouped.agreement.undefined.tolist() == [60] * 3
    assert grouped.best is None
    assert not grouped.not_worse.any()
    for statistic, message in (("spa", "two systems"), ("acc-eq", "no pair")):
        with pytest.raises(DataError, match=message):
            evaluation.run([Task(sets=("a",), statistic=statistic)])


def test_values_and_resamples_do_not_depend_on_levels_and_tests():
    evaluation = MetaEvaluation([make_set("a")])
    for statistic in ("pearson", "kendall", "acc-eq", "spa"):
        usual = evaluation.run_task(Task(sets=("a",), statistic=statistic, resamples=50))
        for alpha, confidence in ((0.01, 0.95), (0.05, 0.5)):
            task = replace(usual.task, alpha=alpha, confidence_level=confidence)
            assert_allclose(evaluation.run_task(task).p_values, usual.p_values)
        for test in ("bootstrap", "none"):
            other = evaluation.run_task(replace(usual.task, test=test))
            assert other.values.tolist() == usual.values.tolist()
            assert_allclose(other.bounds, usual.bounds)


def test_without_resamples_only_values():
    result = MetaEvaluation([make_set("a")]).run([Task(sets=("a",), resamples=0)])
    figures = result.tasks[0]
    assert np.isnan(figures.bounds).all()
    assert np.isnan(figures.p_values).all()
    assert figures.ranks == (2, 1, 3)
    assert figures.not_worse.tolist() == [False, True, False]
    records = result.records()
    assert {record["test"] for record in records["tasks"]} == {"none"}
    assert_allclose(result.average.values, figures.values)


@pytest.mark.parametrize(("sets", "tasks", "error", "message"), [
    ([], None, DataError, "at least one judged set"),
    (["a", "a"], None, DataError, "two judged sets are named 'a'"),
    (["a"], [], UsageError, "no task"),
    (["a"], [{"sets": ("b",)}], UnknownNameError, "unknown judged set 'b'"),
    (["a"], [{"statistic": "tau-strict"}], DataError, "needs human comparisons"),
    (["r"], [{"sets": ("r",)}], DataError, "no human scores that this statistic can use"),
    (["bare"], [], UsageError, "no metric"),
])  # fmt: skip
def test_invalid_evaluation(sets, tasks, error, message):
    known = {"r": make_ranking, "bare": lambda: make_set("bare", worth=())}
    aligned = [known[name]() if name in known else make_set(name) for name in sets]
    with pytest.raises(error, match=message):
        MetaEvaluation(aligned).run([Task(**{"sets": ("a",), **task}) for task in tasks])


@pytest.mark.parametrize(("choices", "message"), [
    ({"statistic": "spearmen"}, "did you mean 'spearman'"),
    ({"statistic": "darr", "level": "system"}, "does not support level=system"),
    ({"statistic": "darr", "grouping": "item"}, "does not support grouping=item: choose none"),
    ({"statistic": "spearman", "test": "williams"}, "does not support test=williams"),
    ({"grouping": "item", "test": "williams"}, "does not support test=williams"),
    ({"sets": ("a", "b")}, "one set at a time"),
    ({"sets": ()}, "at least one judged set"),
    ({"resamples": -1}, "from 0 to 1,000,000"),
    ({"alpha": 5}, "alpha must be a number between 0 and 1, got 5"),
    ({"confidence_level": "0.9"}, "confidence_level must be a number between 0 and 1, got '0.9'"),
    ({"statistic": "tie-aware"}, "unknown statistic 'tie-aware'"),
])  # fmt: skip
def test_incompatible_task_options(choices, message):
    with pytest.raises(UsageError, match=message):
        Task(**{"sets": ("a",), **choices})


def test_statistics_have_a_default_task_and_names_of_papers():
    for name in STATISTICS:
        task = Task(sets=("a",), statistic=name)
        assert task.test in task.kind.tests
        assert task.name.startswith(f"a {name}")
    with pytest.raises(UnknownNameError, match="unknown option 'sample'"):
        tasks_for(["a"], "pearson", sample=3)
    names = {"SPA": "spa", "acc_eq": "acc-eq", "acc_eq*": "acc-eq*", "Kendall tau-b": "kendall"}
    names |= {"tau-b": "kendall", "Pearson": "pearson", "kendall-tau-b": "kendall"}
    for name, statistic in names.items():
        assert resolve_statistic(name) == Task(sets=("a",), statistic=name).statistic == statistic
    assert set(STATISTIC_ALIASES.values()) < set(STATISTICS)
    assert not set(STATISTIC_ALIASES) & set(STATISTICS)
    assert resolve_statistic("tau14") == "tau14"


def test_resamples_keep_their_seed():
    """Published intervals depend on this text: it must not change with names in the code."""
    task = Task(sets=("de-en",), statistic="pearson", resamples=200, test="bootstrap", alpha=0.01)
    assert task.seed_key == (
        "Task(sets=('de-en',), statistic='pearson', level='segment', by='none', test='perm-both', "
        "over='segments', samples=200, confidence=0.95, alpha=0.05, threshold=25.0, tie_rate=None)"
    )

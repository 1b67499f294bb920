"""Tables of meta-evaluation: best metrics, significance, counts and notes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.builders import make_aligned_scores

from tertium.core.scores import ScoreMatrix
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.tasks import Task, tasks_for

NOISE = {"bad": 6.0, "good": 0.3, "fair_1": 1.0}


def make_set(name: str, seed: int) -> AlignedScores:
    return make_aligned_scores(name, seed, NOISE)


@pytest.fixture(scope="module")
def results():
    sets = [make_set("de-en", 1), make_set("fi-en", 2)]
    return MetaEvaluation(sets).run(tasks_for(["de-en", "fi-en"], "pearson", resamples=100))


def test_rows_are_ordered_by_the_average_and_marked(results):
    table = results.agreement_table()
    first, second, third = table.cells()
    assert [row[0].text for row in (first, second, third)] == ["good", "fair_1", "bad"]
    assert first[1].text.startswith("** 0.9")
    assert first[1].emphasis == "best"
    assert first[1].value == results.tasks[0].values[1]
    assert not second[1].text.startswith("*")
    assert [cell.text for cell in table.footer[0][1:3]] == ["200", "200"]
    assert table.title == "Pearson r, segment level"
    assert any("perm-both" in note for note in table.notes)


def test_one_column_and_rounded_zeros(results):
    one = replace(results, tasks=results.tasks[:1])
    table = one.agreement_table(intervals=True).with_decimals(2)
    assert table.header == ["metric", "de-en", "rank"]
    low, high = results.tasks[0].bounds[1]
    text = table.cells()[0][1].text
    assert text == f"** {results.tasks[0].values[1]:.2f} [{low:.2f}, {high:.2f}]"
    values = table.values()
    assert [values["de-en low"][0], values["de-en high"][0]] == [low, high]
    assert values["rank"][0] == 1
    [task] = results.tasks[:1]
    values = np.full_like(task.values, -0.001)
    tiny = replace(results, tasks=[replace(task, values=values, replicates=values[None])])
    rows = tiny.agreement_table(intervals=True).with_decimals(2).cells()
    assert {row[1].text.strip("* ") for row in rows} == {"0.00 [0.00, 0.00]"}
    assert {row[1].value for row in rows} == {-0.001}


def test_p_values_and_the_test_of_the_average(results):
    table = results.tasks[0].p_value_table()
    assert table.header == ["", "good", "fair_1", "bad"]
    first = table.cells()[0]
    assert first[3].value == results.tasks[0].p_values[1, 0] < 0.05
    assert first[1].text == ""
    assert "100 resamples; average: bootstrap, seed" in results.agreement_table().notes[0]
    drawn = [replace(task, task=replace(task.task, test="bootstrap")) for task in results.tasks]
    for part in (replace(results, tasks=tuple(drawn)), replace(results, tasks=results.tasks[:1])):
        assert "average" not in part.agreement_table().notes[0]


def test_undefined_groups_and_missing_scores_are_in_the_table():
    dataset = make_set("x", 3)
    dataset.scores[0, 0, :7] = np.nan
    dataset.scores[2] = 1.0
    result = MetaEvaluation([dataset]).run([Task(sets=("x",), grouping="item", resamples=20)])
    table = result.agreement_table()
    rows = {row[0].text: row for row in (*table.cells(), *table.footer)}
    assert rows["without metric score (at most)"][1].value == 7
    assert rows["fair_1"][1].text == "–"
    assert "x: undefined groups of 50: fair_1 50" in table.notes
    pooled = MetaEvaluation([dataset]).run([Task(sets=("x",), resamples=20)])
    assert result.agreement_table().notes[0].startswith("** best, * not significantly worse (")
    untested = MetaEvaluation([dataset]).run([Task(sets=("x",), resamples=0)])
    assert (
        untested.agreement_table().notes[0]
        == "** best; no significance tests: metrics are ranked by value"
    )
    note = "x: undefined for fair_1: needs two or more different scores"
    assert note in pooled.agreement_table().notes
    dataset.scores[:] = 1.0  # the human scores still differ
    undefined = MetaEvaluation([dataset]).run([Task(sets=("x",), resamples=20)])
    [*_, note] = undefined.agreement_table().notes
    assert note.endswith("segments with different human scores and different metric scores")


FEW = "p cannot fall below 0.05 with"


@pytest.mark.parametrize(
    ("systems", "level", "test", "resamples", "expected"),
    [
        ("ABCDE", "system", "perm-both", 100, "perm-both, p < 0.05 one-sided, all swaps)"),
        ("ABCDE", "segment", "williams", 10, "williams, p < 0.05 one-sided)"),
        ("ABCDE", "segment", "perm-both", 20, "one-sided, 20 resamples, seed 12345)"),
        ("ABCDE", "segment", "perm-both", 10, f"{FEW} perm-both and 10 resamples: use more"),
        ("ABCDE", "segment", "bootstrap", 10, f"{FEW} bootstrap and 10 resamples: use more"),
        ("ABCD", "system", "perm-both", 1000, "or more systems with human scores"),
    ],
)
def test_notes_name_the_test_and_what_limits_it(systems, level, test, resamples, expected):
    dataset = make_aligned_scores("x", 1, {"m": 1.0, "n": 1.0}, systems, 9)
    task = Task(sets=("x",), level=level, resamples=resamples, test=test)
    notes = MetaEvaluation([dataset]).run([task]).agreement_table().notes
    assert any(expected in note for note in notes)
    assert any("warning" in note for note in notes) == expected.startswith(("p ", "or "))


def test_metrics_are_not_marked_as_worse_without_test_power():
    dataset = make_aligned_scores("x", 1, {"m": 9.0, "n": 9.0}, "ABC", 9)
    task = Task(sets=("x",), level="system", test="williams")  # needs four points
    results = MetaEvaluation([dataset]).run([task])
    assert results.tasks[0].not_worse.all()
    assert results.tasks[0].ranks == (1, 1)
    [*_, warning] = results.agreement_table().notes
    assert warning.startswith("warning: x: p cannot fall below 0.05 with williams")


def test_exact_tests_of_slices_have_no_resampling_warning():
    first = Task(sets=("x",), statistic="acc-eq", resamples=10, test="pairs")
    results = MetaEvaluation([make_set("x", 3)]).run([first, replace(first, test="bootstrap")])
    exact, resampled = (replace(results, tasks=(task,)) for task in results.tasks)
    assert exact.tasks[0].p_values[1, 0] < 0.05 / 3
    assert not [note for note in exact.slice_tables("x")[0].notes if "warning" in note]
    [*_, note] = resampled.slice_tables("x")[0].notes
    assert note.startswith("warning: 3 tests: p cannot fall below 0.05 with bootstrap and 10 res")


def test_exclusions_are_listed_with_their_reasons():
    human = ScoreMatrix("da", ("A", "B"), np.eye(2))
    metrics = [ScoreMatrix(n, ("A", "Z"), np.eye(2)) for n in ("m", "n")]
    dataset = AlignedScores.align("x", metrics, human=human)
    result = MetaEvaluation([dataset]).run([Task(sets=("x",), resamples=0)])
    assert result.exclusion_lines() == [
        "x: scored system without human judgments: 1 (m, n)",
        "x: judged system without a metric score: 1 (m, n): B; to leave it out: --exclude B",
    ]
    excluded = MetaEvaluation([dataset.drop_systems(["B"])]).run([Task(sets=("x",), resamples=0)])
    assert excluded.exclusion_lines() == ["x: scored system without human judgments: 1 (m, n)"]

"""Pages have the tables and charts of results, and replace older pages completely."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from tests.partial_metric import Partial

from tertium.core.charts import HeatMap
from tertium.data.testset import TestSet
from tertium.evaluation.comparison import Comparison, compare
from tertium.evaluation.ranking import rank
from tertium.evaluation.scoring import score
from tertium.output.html import render_heat_map, render_page
from tertium.output.page.report import Report, report_results


@pytest.fixture(scope="module")
def comparison(example: TestSet) -> Comparison:
    return compare(example, ["chrf", "ter"], resamples=100)


def text_of(html: str) -> str:
    main = html[html.index("<main") : html.index("</main>")]
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", "", main))


def test_a_page_has_the_table_and_the_ranking(comparison):
    page = render_page(comparison)
    bounds = comparison.intervals["poor"]["chrf"]
    assert comparison.tables()[0].cells()[2][1].text in text_of(page)
    assert f"{bounds.high:.2f}), cluster {comparison.clusters['chrf'][2]}" in page
    assert "<summary>Document scores</summary>" in page
    assert "<summary>p-values of all pairs of systems</summary>" in page
    assert page.count("<figure>") == 2


def test_a_system_without_a_score_is_listed(example):
    metrics = ["ter", Partial(unscored=example.systems["good"][0])]
    tested = compare(example, metrics, resamples=50)
    _, partial = tested.metrics
    assert [*tested.clusters[partial]] == [0, 1, 2]
    page = render_page(tested)
    assert "nan" not in text_of(page)
    assert "good: no score" in page
    good, fair, _ = tested.comparison_table().cells()
    assert [cell.text for cell in good[4:]] == ["–", "", "–"]
    assert [cell.emphasis for cell in fair[4:5]] == ["best"]
    assert [r["cluster"] for r in tested.records() if r["spec"] == partial] == [None, 1, 2]


def test_resamples_without_a_score_are_ignored_in_intervals(example):
    few = example.subset(range(3))
    partial = Partial(unscored=few.systems["good"][0])
    tested = compare(few, partial, resamples=50)  # some resamples have no scored segment
    [spec] = tested.metrics
    assert np.isfinite(tested.intervals["fair"][spec].high)
    assert "nan" not in text_of(render_page(tested))
    nothing = rank(few.subset([0]), partial)
    assert "nan" not in text_of(render_page(nothing))


def test_the_page_warns_of_few_segments(example):
    for count, warning in ((5, "5 segments: tests and intervals"), (1, "one segment: nothing to")):
        few = compare(example.subset(range(count)), ["chrf"], resamples=20)
        displayed = text_of(render_page(few))
        assert f"warning: {warning}" in displayed
        assert "nan" not in displayed
    for resamples, expected in ((19, True), (20, False)):  # 1 / 20 is not below .05
        coarse = compare(example, ["chrf"], resamples=resamples)
        warning = "warning: 19 resamples: p cannot fall below 0.05; use 20 or more"
        assert (warning in text_of(render_page(coarse))) == expected
        assert (warning in coarse.warning_lines()) == expected
    alone = score(example.subset(range(5)), "chrf")
    assert "unreliable" not in text_of(render_page(alone))


def test_the_highest_warning_count_of_the_metrics_is_reported(example):
    evaluation = score(example, ["chrf", "ter"])
    rows = np.arange(len(example))
    cut = {"chrf": {"truncated text": rows < 5}, "ter": {"truncated text": rows < 2}}
    by_metric = evaluation.scores["good"]
    changed_scores = {m: replace(by_metric[m], flags=flags) for m, flags in cut.items()}
    changed = replace(evaluation, scores={**evaluation.scores, "good": changed_scores})
    assert "warning: truncated text: good 5" in changed.warning_lines()


def test_p_values_show_which_system_is_better(comparison):
    table = comparison.pair_table("ter")
    assert table.title == "p-values of all pairs, TER"
    good, _, poor = table.cells()
    assert good[3].text.endswith("*+")
    assert poor[1].text.endswith("*-")
    assert poor[1].value == comparison.p_values["ter"][2, 0]
    assert "the row is better (+) or worse (-) than the column" in table.notes[0]


def test_the_best_match_has_a_text_label():
    actual = render_heat_map(
        HeatMap(
            title="x",
            rows=["a"],
            columns=["b", "c"],
            values=np.array([[0.5, 0.25]]),
            tooltips={(0, 0): "similarity 0.50"},
            has_frames=True,
        )
    )
    assert '.50<span class="hidden"> best</span></td>' in actual
    assert actual.count("best") == 1


@pytest.fixture(scope="module")
def report() -> Report:
    testset = TestSet(systems={"a": ("x",)}, references=(("x",),))
    return report_results(score(testset, "chrf"), title="A lone \ud800 sign")

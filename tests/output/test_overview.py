"""The overview has a text for everything it shows with colors, boxes and lines."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from tests.partial_metric import Partial

from tertium.core.charts import HeatMap
from tertium.data.testset import TestSet
from tertium.evaluation.comparison import Comparison, add_significance, compare
from tertium.evaluation.ranking import rank
from tertium.evaluation.scoring import score
from tertium.output.page.explanations import heat_map_html
from tertium.output.page.figures import ranking_figures
from tertium.output.page.overview import (
    overview_contents,
    signature_list,
    summarize_evaluation,
)
from tertium.output.page.translation_grid import grid_from_evaluation


@pytest.fixture(scope="module")
def comparison(example: TestSet) -> Comparison:
    return compare(example, ["chrf", "ter"], resamples=100)


@pytest.fixture(scope="module")
def page(comparison: Comparison) -> str:
    return overview_contents(comparison, grid_from_evaluation(comparison))


def plain(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub("<[^>]+>", "", html))


def test_bounds_and_clusters_are_text(comparison: Comparison, page: str) -> None:
    bounds = comparison.intervals["poor"]["chrf"]
    text = plain(page)
    assert f" {bounds.low:.2f} to {bounds.high:.2f}" in text
    assert "±" not in text
    assert f" cluster {comparison.clusters['chrf'][2]}" in text
    figures = ranking_figures(comparison)
    assert f"{bounds.high:.2f}), cluster {comparison.clusters['chrf'][2]}" in figures


def test_documents_have_a_caption(page: str) -> None:
    assert "<caption>Document scores</caption>" in page


def test_two_metrics_are_both(comparison: Comparison, example: TestSet) -> None:
    assert (
        plain(summarize_evaluation(score(example, ["chrf", "ter"]))[0])
        == "good is best under both metrics."
    )
    three = score(example, ["chrf", "ter", "bleu"])
    assert plain(summarize_evaluation(three)[0]) == "good is best under all 3 metrics."


def test_a_system_without_a_score_is_listed(example: TestSet) -> None:
    metrics = ["ter", Partial(unscored=example.systems["good"][0])]
    tested = compare(example, metrics, resamples=50)
    _, partial = tested.metrics
    assert [*tested.clusters[partial]] == [0, 1, 2]
    displayed = overview_contents(tested, grid_from_evaluation(tested))
    assert "nan" not in plain(displayed)
    assert "nan" not in displayed.replace('data-value="nan"', "")
    figures = ranking_figures(tested)
    assert "good: no score" in figures
    assert "nan" not in figures
    assert [plain(finding) for finding in summarize_evaluation(tested)] == [
        "good is best under TER, significantly better than all others.",
        "fair is best under Partial, but not significantly better than all others.",
    ]
    good, fair, _ = tested.comparison_table().cells()
    assert [cell.text for cell in good[4:]] == ["–", "", "–"]
    assert [cell.emphasis for cell in fair[4:5]] == ["best"]
    assert [r["cluster"] for r in tested.records() if r["spec"] == partial] == [None, 1, 2]


def test_resamples_without_a_score_are_ignored_in_intervals(example: TestSet) -> None:
    few = example.subset(range(3))
    ranking = rank(few, Partial(unscored=few.systems["good"][0]))
    tested = add_significance(ranking.as_evaluation())  # some resamples have no scored segment
    [chances] = tested.metrics
    assert all(0 <= tested.intervals[system][chances].high <= 1 for system in tested.systems)
    displayed = overview_contents(tested, grid_from_evaluation(tested)) + ranking_figures(tested)
    assert "nan" not in displayed
    nothing = rank(few.subset([0]), Partial(unscored=few.systems["good"][0])).as_evaluation()
    displayed = overview_contents(nothing, grid_from_evaluation(nothing))
    assert "nan" not in plain(displayed + ranking_figures(nothing))


def test_the_page_warns_of_few_segments(example: TestSet) -> None:
    for count, warning in ((5, "5 segments: tests and intervals"), (1, "one segment: nothing to")):
        few = compare(example.subset(range(count)), ["chrf"], resamples=20)
        displayed = plain(overview_contents(few, grid_from_evaluation(few)))
        assert f"warning: {warning}" in displayed
        assert "nan" not in displayed
    for resamples, expected in ((19, True), (20, False)):  # 1 / 20 is not below .05
        coarse = compare(example, ["chrf"], resamples=resamples)
        warning = "warning: 19 resamples: p cannot fall below 0.05; use 20 or more"
        assert (
            warning in plain(overview_contents(coarse, grid_from_evaluation(coarse)))
        ) == expected
        assert (warning in coarse.warning_lines()) == expected
    alone = score(example.subset(range(5)), "chrf")
    assert "unreliable" not in plain(overview_contents(alone, grid_from_evaluation(alone)))


def test_the_highest_warning_count_of_the_metrics_is_reported(example: TestSet) -> None:
    evaluation = score(example, ["chrf", "ter"])
    rows = np.arange(len(example))
    cut = {"chrf": {"truncated text": rows < 5}, "ter": {"truncated text": rows < 2}}
    by_metric = evaluation.scores["good"]
    changed_scores = {m: replace(by_metric[m], flags=flags) for m, flags in cut.items()}
    changed = replace(evaluation, scores={**evaluation.scores, "good": changed_scores})
    assert "warning: truncated text: good 5" in changed.warning_lines()


def test_systems_that_share_the_first_place_share_a_sentence(example: TestSet) -> None:
    twice = {"a": example.systems["good"], "b": example.systems["good"], **example.systems}
    same = TestSet(systems=twice, references=example.references)
    first, order = summarize_evaluation(score(same, ["chrf", "ter"]))
    assert plain(first) == "a and b and good are best under both metrics."
    assert "same order" in plain(order)


def test_a_metric_under_which_systems_tie_has_one_sentence() -> None:
    """chrF distinguishes a and b, TER does not: both are best under TER."""
    texts = {"a": "the cat sits", "b": "the cat dog", "c": "no such thing"}
    tied = TestSet(
        systems={name: [text] * 10 for name, text in texts.items()},
        references=[["the cat sat"]] * 10,
    )
    assert [
        plain(finding) for finding in summarize_evaluation(score(tied, ["chrf", "ter"]))[:2]
    ] == [
        "a is best under chrF.",
        "a and b are best under TER.",
    ]
    tested = compare(tied, ["ter"], resamples=50)
    assert plain(summarize_evaluation(tested)[0]) == (
        "a and b are best under TER, significantly better than all others."
    )
    two = compare(TestSet(systems={"a": ["x"], "b": ["x"]}, references=[["y"]]), ["ter"])
    assert [*map(plain, summarize_evaluation(two))] == ["a and b are best under TER."]


def test_an_order_does_not_depend_on_that_of_the_systems() -> None:
    """chrF distinguishes the systems, TER does not: two orders, in any order of systems."""
    outputs = {"a": ("the cat sits",), "b": ("the cat dog",)}
    for systems in (outputs, dict(reversed(outputs.items()))):
        evaluation = score(
            TestSet(systems=systems, references=(("the cat sat",),)), ["chrf", "ter"]
        )
        assert plain(summarize_evaluation(evaluation)[-1]) == (
            "The metrics rank the systems in 2 different orders."
        )
    equal = TestSet(systems={"a": ("x",), "b": ("x",)}, references=(("y",),))
    assert [*map(plain, summarize_evaluation(score(equal, ["chrf", "ter"])))] == [
        "a and b are best under both metrics."
    ]


def test_one_system_has_no_ranking(example: TestSet) -> None:
    alone = TestSet(systems={"good": example.systems["good"]}, references=example.references)
    assert "Score of the system" in ranking_figures(score(alone, ["chrf"]))


def test_p_values_show_which_system_is_better(comparison: Comparison) -> None:
    table = comparison.pair_table("ter")
    assert table.title == "p-values of all pairs, TER"
    good, _, poor = table.cells()
    assert good[3].text.endswith("*+")
    assert poor[1].text.endswith("*-")
    assert poor[1].value == comparison.p_values["ter"][2, 0]
    assert "the row is better (+) or worse (-) than the column" in table.notes[0]


def test_several_signatures_have_a_copy_all_button() -> None:
    two = signature_list(["a|1", "b|2"])
    assert "<h3>Signatures</h3>" in two
    assert 'data-copy="a|1\nb|2"' in two
    assert "Copy all" not in signature_list(["a|1"])


def test_the_best_match_has_a_text_label() -> None:
    actual = heat_map_html(
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

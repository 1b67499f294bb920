"""Results are displayed as self-contained HTML in notebooks and as tables when printed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.mean_scores import mean_scores

from tertium.cli import main
from tertium.core.segment import Judgment, Segment
from tertium.data.judgments import JudgmentSet
from tertium.data.testset import TestSet
from tertium.evaluation.comparison import compare
from tertium.evaluation.explaining import explain
from tertium.evaluation.paired_tests import SignificanceTests
from tertium.evaluation.ranking import rank
from tertium.evaluation.scoring import score
from tertium.metrics.base.explanation import Explanation
from tertium.metrics.base.loading import load_metric
from tertium.output.page.report import report, report_meta_evaluation, report_results
from tertium.studies.challenge import challenge
from tertium.studies.meta_evaluation import meta_evaluate

TESTS = SignificanceTests(resamples=20)


def render(value: Any) -> str:
    html: str = value._repr_html_()
    assert html.startswith('<div class="tertium"><style>')
    assert html.endswith("</div>")
    assert "<script" not in html
    return html


def test_scores_show_their_spread_and_signature(example):
    scores = score(example, "chrf").scores["poor"]["chrf"]
    html = render(scores)
    assert f"{scores.system:.2f}" in html
    assert "chrF|nrefs:2" in html
    assert "warning: empty hypothesis: 1" in html


@pytest.mark.parametrize("values", [[np.nan], [1.0], [0.5, 0.5, np.nan]])
def test_scores_of_few_segments_are_displayed(values):
    html = render(mean_scores("mine", np.array(values), "<i>Mine</i>"))
    finite = [value for value in values if value == value]
    assert "&lt;i&gt;Mine" in html
    assert (f">{np.mean(finite):.4f}</td>" if finite else ">–</td>") in html
    explained = render(Explanation(metric="Mine", score=np.nan, warnings=("empty reference",)))
    assert "Mine: –" in explained
    assert "warning: empty reference" in explained


def test_evaluations_and_comparisons_show_tables_and_the_ranking(example):
    comparison = compare(example, ["chrf", "ter"], resamples=50)
    html = render(comparison)
    assert "good (baseline)" in html
    assert html.count("<svg") == 2
    assert render(score(example, ["chrf", "ter"])).count("<svg") == 2


def test_printed_results_are_the_tables_of_commands(example, tmp_path, capsys):
    path = str(tmp_path / "test.jsonl")
    example.write(path)
    choices: list[tuple[Any, list[str]]] = [
        (score(example, ["chrf", "ter"]), ["score", "-m", "chrf", "ter"]),
        (compare(example, "chrf", resamples=50), ["compare", "-m", "chrf", "--resamples", "50"]),
        (rank(example, "chrf"), ["rank", "-m", "chrf"]),
    ]
    for value, (command, *options) in choices:
        assert main([command, "-t", path, "-q", *options]) == 0
        assert str(value).splitlines()[:5] == capsys.readouterr().out.strip("\n").splitlines()[:5]
        assert repr(value).startswith(f"{type(value).__name__}(")
    assert str(challenge("damage", "chrf")).startswith("damage: how often")
    scores = load_metric("chrf").score([Segment("a", references=["a"])])
    assert str(scores) == repr(scores) == "<Scores of 1 segments under chrf: 100.00>"


@pytest.mark.parametrize(
    ("metric", "texts"),
    [
        ("bertscore:encoder=toy", ["a cat sat"]),
        ("bleu-r", ["a cat sat"]),
        ("chrf", ["a cat sat", "the cat"]),
        ("bertscore:encoder=toy", [""]),
    ],
)
def test_printed_explanations_equal_the_command_output(metric, texts, capsys):
    if "encoder" in metric:
        pytest.importorskip("torch")
    segments = [Segment(text, references=("the cat sat down",)) for text in texts]
    explained = explain(*segments, metric=metric)
    options = [option for text in texts for option in ("-t", text)]
    assert main(["explain", "--text", "-m", metric, "-r", "the cat sat down", *options]) == 0
    printed = capsys.readouterr()
    assert str(explained) == (printed.out + printed.err.replace("tertium: ", "")).rstrip("\n")
    assert repr(explained).startswith("Explanation(metric=")


def make_judgments(example: TestSet) -> JudgmentSet:
    rows = enumerate(example.segments("good"))
    judgments = tuple(Judgment(segment, float(n % 7), item=str(n)) for n, segment in rows)
    return JudgmentSet(name="da", judgments=judgments)


def test_reports_show_their_tables_and_charts_without_the_segments(example):
    agreement = meta_evaluate(make_judgments(example), "chrf", resamples=0)
    pages = {
        "good (baseline)": report(example, "chrf", tests=TESTS, explain=0, title="<b>Mine"),
        "chrF|nrefs:2": report_results(score(example, "chrf"), explain=0, title="<b>Mine"),
        "Pearson": report_meta_evaluation(agreement),
    }
    for expected, page in pages.items():
        html = render(page)
        assert expected in html
        assert "Distributions" in html
        assert "Loading segments" not in html


def test_reprs_are_short_and_contain_no_segment_text(example):
    page = report(example, "chrf", tests=TESTS, explain=0)
    pairs = challenge("damage", "chrf", phenomena=["number"])
    scored = score(example, "chrf")
    scores = scored.scores["good"]["chrf"]
    study = meta_evaluate(make_judgments(example), "chrf", resamples=5)
    values = [example, scored, scores, page, *page.results, rank(example, "chrf"), pairs, study]
    first = example.systems["good"][0]
    for value in values:
        assert first not in repr(value)
        assert "Berlin" not in repr(value)
        assert len(repr(value)) < 1000
        assert "\n" not in repr(value)
    assert repr(example) == "<TestSet of 48 segments: good, fair, poor>"
    assert repr(scores) == "<Scores of 48 segments under chrf: 70.80>"

"""The verdict in words of comparisons: agreement, ties, disagreement, unfit metrics."""

from __future__ import annotations

import numpy as np
import pytest
from tests.mean_scores import complete_scores

import tertium
from tertium.core.scores import Scores
from tertium.evaluation.comparison import Comparison, compare_evaluation
from tertium.evaluation.system_scores import Evaluation

SIZE = 100


def make_scores(metric: str, mean: float, rng: np.random.Generator, size: int = SIZE) -> Scores:
    return complete_scores(rng.normal(mean, 0.1, size), metric, name=metric)


def compare(**means: dict[str, float]) -> Comparison:
    """Compare systems whose segment scores have these means by metric."""
    rng = np.random.default_rng(5)
    metrics = tuple(next(iter(means.values())))
    scores = {
        system: {metric: make_scores(metric, own[metric], rng) for metric in metrics}
        for system, own in means.items()
    }
    testset = tertium.TestSet.from_lists({system: ["text"] * SIZE for system in means})
    evaluation = Evaluation(testset, tuple(means), metrics, scores)
    return compare_evaluation(evaluation, test="randomization", resamples=500)


def test_metrics_decide_only_if_they_agree():
    text = compare(a={"x": 0.5, "y": 0.5}, b={"x": 0.6, "y": 0.5}).verdict
    assert text == "b is better than a under x (p = 0.002); y cannot tell: choose b."
    text = compare(a={"x": 0.55, "y": 0.5}, b={"x": 0.5, "y": 0.55}).verdict
    assert text.startswith("x (p = 0.044) prefers a, y (p = 0.024) prefers b: ")
    assert text.endswith("no decision; have people judge segments (`tertium plan`).")


def test_ties_equal_systems_and_few_segments():
    text = compare(a={"x": 0.5}, b={"x": 0.49}).verdict
    assert text.startswith("The metric does not separate a and b (x: p = 0.")
    assert text.endswith("keep a.")
    scores = {"a": ["one two"] * 40, "b": ["one two"] * 40}
    comparison = tertium.compare(scores, "chrf", references=["one two three"] * 40, resamples=50)
    assert comparison.verdict == "a and b have the same scores: keep a."
    systems = {"a": ["one two"] * 9, "b": ["one two three"] * 9}
    comparison = tertium.compare(systems, "chrf", references=["one two three"] * 9, resamples=50)
    assert comparison.verdict == "9 segments are too few for a verdict: use at least 10."


def test_three_systems():
    clear = compare(a={"x": 0.1, "y": 0.1}, b={"x": 0.5, "y": 0.4}, c={"x": 0.2, "y": 0.2})
    assert clear.verdict == "b is better than all others under x and y: choose b."
    tie = compare(a={"x": 0.1}, b={"x": 0.5}, c={"x": 0.5})
    assert tie.verdict == "No system is better than all others: b and c share the first rank."
    split = compare(a={"x": 0.1, "y": 0.1}, b={"x": 0.5, "y": 0.2}, c={"x": 0.2, "y": 0.5})
    assert split.verdict == (
        "x prefers b, y prefers c: no decision; "
        "have people judge segments of b and c (`tertium plan`)."
    )


def test_the_bootstrap_alone_does_not_decide():
    """Of two equal systems, it calls one better far more often than in 5 % of all cases."""
    rng = np.random.default_rng(4)
    testset = tertium.TestSet.from_lists({"a": ["text"] * 15, "b": ["text"] * 15})
    starred = decided = 0
    for seed in range(120):
        scores = {system: {"x": make_scores("x", 0.5, rng, 15)} for system in "ab"}
        evaluation = Evaluation(testset, ("a", "b"), ("x",), scores)
        comparison = compare_evaluation(evaluation, resamples=200, seed=seed)
        starred += comparison.p_value("x", "b") < 0.05
        decided += "choose" in comparison.verdict
    assert starred > 12
    assert decided < 10


@pytest.fixture(scope="module")
def japanese() -> Comparison:
    references = ["私は昨日東京へ行きました。", "猫が好きです。", "天気がいいですね。"] * 12
    systems = {
        "a": ["私は昨日東京に行きました。", "猫が好きだ。", "天気がいい。"] * 12,
        "b": ["私は東京へ行きました。", "犬が好きです。", "天気がいいですね。"] * 12,
    }
    metrics = ["bleu:tokenize=13a", "chrf"]
    return tertium.compare(systems, metrics, references=references, resamples=200)


def test_unfit_metrics_are_named_first(japanese, tmp_path):
    text = japanese.verdict
    assert text.startswith("BLEU is unfit for these texts")
    assert text.endswith("b is better than a under chrF (p = 0.005): choose b.")
    from tertium.output.html import render_page
    from tertium.output.page.report import report_results

    printed = str(japanese)
    assert printed.index("choose b.") < printed.index("baseline")
    page = render_page(report_results(japanese))
    assert page.index("BLEU is unfit") < page.index("<table")

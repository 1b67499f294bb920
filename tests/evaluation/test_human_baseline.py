"""Human baselines as a row of the table, and decisions by metrics."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tertium.cli import main
from tertium.core.errors import DataError
from tertium.core.segment import Judgment, Segment
from tertium.data.judgments import JudgmentSet
from tertium.data.ratings import ONE_RATER, hold_out_rater, standardize_ratings
from tertium.evaluation.judged import read_judged
from tertium.meta.agreement_results import MetricEstimates, nan_p_values
from tertium.studies.good_decisions import evaluate_decisions


def make_judgments(*ratings):
    judgments = tuple(
        Judgment(Segment("text"), float(score), item=item, system=system, annotator=annotator)
        for system, item, annotator, score in ratings
    )
    return JudgmentSet(name="campaign", judgments=judgments)


def test_one_rater_of_each_translation_is_held_out():
    judgment_set = make_judgments(
        ("A", "1", "x", 10), ("A", "1", "y", 30), ("A", "1", "z", 50), ("B", "1", "x", 7),
        ("B", "1", "y", 9), ("A", "2", "x", 1),
    )  # fmt: skip
    remaining, row = hold_out_rater(judgment_set, "segment", seed=3)
    assert row.name == "human: held-out rater"
    human = remaining.matrix("segment")
    assert human.systems == row.systems == ("A", "B")
    assert human.items == row.items == ("1",)
    total = 2 * human.values[0, 0] + row.values[0, 0]  # the mean of two raters, and the third
    assert total == 90
    assert human.values[1, 0] + row.values[1, 0] == 16
    assert remaining.excluded_counts == {ONE_RATER: 1}


def test_rater_is_held_out_of_standardized_ratings():
    cells = list(enumerate(product("AB", "123")))
    judgment_set = make_judgments(
        *((system, item, "x", 10 * n + 7) for n, (system, item) in cells),
        *((system, item, "y", n) for n, (system, item) in cells),
    )
    standardized, row = hold_out_rater(standardize_ratings(judgment_set), "segment")
    assert_allclose(row.values, standardized.matrix("segment").values)  # they differ only in scale
    judgment_set = make_judgments(("A", "1", "x", 10), ("A", "1", "x", 30))
    with pytest.raises(DataError, match="no translation has ratings of two annotators"):
        hold_out_rater(judgment_set, "segment")


def test_share_of_the_human_ceiling():
    def notes(values):
        estimates = MetricEstimates(
            metrics=tuple(values),
            values=np.array([*values.values()]),
            p_values=nan_p_values(len(values)),
            replicates=np.zeros((0, len(values))),
        )
        return estimates.ceiling_notes()

    values = {"chrf": 0.4, "human: held-out rater": 0.8, "bleu": np.nan}
    assert notes(values) == ["share of the human ceiling: chrf 50 %"]
    assert notes({"chrf": 0.4}) == []


@pytest.fixture
def campaigns(tmp_path):
    rng = np.random.default_rng(2)
    truth = rng.normal(size=(4, 40)) + np.arange(4)[:, None] * 0.4
    paths = {}
    for name, noise in (("first", 0.3), ("second", 0.3), ("metric", 2.0)):
        scores = truth + rng.normal(0, noise, truth.shape)
        lines = ["lp\titem\tsystem\tscore"]
        lines += [f"de-en\t{i}\ts{s}\t{scores[s, i]}" for s in range(4) for i in range(40)]
        paths[name] = tmp_path / f"{name}.de-en.tsv"
        paths[name].write_text("\n".join(lines) + "\n")
    return paths


@pytest.fixture
def run(campaigns, capsys):
    """Return a function that compares a metric and a second campaign with the first."""

    def run_command(command, *options, expected=0):
        argv = [*command.split(), "--human", str(campaigns["first"])]
        argv += ["--scores", str(campaigns["metric"])]
        argv += ["--human-baseline", str(campaigns["second"]), *options]
        assert main(argv) == expected
        return capsys.readouterr()

    return run_command


@pytest.mark.parametrize("command", ["meta --statistic kendall", "meta protocol wmt24"])
def test_second_campaign_is_a_row_of_the_table(run, command):
    out = run(command, "--resamples", "50").out
    lines = [line for line in out.splitlines() if line.startswith((" human:", " metric "))]
    # the header, then the human baseline before the metric
    assert [line.split()[0] for line in lines] == ["metric", "human:", "metric"]
    assert "share of the human ceiling: metric " in out


def test_decisions_of_a_metric_and_the_human_baseline(run):
    printed = run("meta decisions", "--good-score", "0", "-f", "json").out
    metric, human = json.loads(printed)["decisions"]
    assert human["metric"].startswith("human")
    for name in ("average_precision", "reranking", "gain", "precision_at_90"):
        assert human[name] > metric[name]
    assert metric["curve"][-1]["recall"] == 1
    assert "(chance)" in run("meta decisions", "--good-score", "0").out
    printed = run("meta decisions", "--good-score", "99", expected=2)
    assert "choose another minimum" in printed.err


def test_a_missing_language_pair_is_refused():
    segment = Segment("x", None, ("r",))
    judgment_set = JudgmentSet(name="campaign", judgments=(Judgment(segment, 1.0, item="1"),))
    with pytest.raises(DataError, match=r"no judgments for de-en in .*campaign"):
        read_judged(judgment_set, "ter", lps=["de-en"])


def test_threshold_of_an_error_rate_is_an_upper_bound():
    segments = [Segment("a b c d e"[: 2 * n], None, ("a b c d e",)) for n in range(1, 6)]
    judgments = [Judgment(s, n, item="1", system=f"{n}") for n, s in enumerate(segments, 1)]
    judgment_set = JudgmentSet(name="campaign", judgments=tuple(judgments))
    decisions = evaluate_decisions(read_judged(judgment_set, "ter"), min_good_score=4)
    (values,) = decisions.rows
    assert not values["higher_is_better"]
    assert values["threshold"] == pytest.approx(20)  # one word of five is missing
    curve = [point["threshold"] for point in values["curve"]]
    assert curve == pytest.approx([0, 20, 40, 60, 80])
    row, chance = decisions.tables()[0].cells()
    assert row[3].text == "≤ 20.000"
    texts = ["campaign", "(chance)", "0.400", "", "", "", "", "0.200", ""]
    assert [cell.text for cell in chance] == texts
    assert decisions.records()["bar"] == 4


def test_thresholds_from_the_command_line(campaigns, capsys):
    argv = ["meta", "thresholds", "--human", str(campaigns["first"])]
    assert main([*argv, "--scores", str(campaigns["metric"])]) == 2  # six pairs of systems
    assert "too few" in capsys.readouterr().err

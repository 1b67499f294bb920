"""`tertium meta` on metric scores in the rows of the judgments, as in WMT25's ESA data."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tertium.cli import main
from tertium.data.judgments import read_judgments
from tertium.studies.meta_evaluation import meta_evaluate

SYSTEMS = ("Alpha", "Beta", "Gamma", "refA")
METRICS = ("gemba_gpt41", "cometkiwi_xl", "metricx24xl")
WORDS = "the cat sat on a red mat under some big old tree".split()


def make_row(lp, doc, segment, system, rng):
    """Return a row like those of modern/dev/esa/wmt25; human references have no metric scores."""
    quality = {"Alpha": 85.0, "Beta": 70.0, "Gamma": 55.0, "refA": 90.0}[system]
    score = float(np.clip(quality + rng.normal(0, 12), 0, 100).round())
    words = [w if rng.random() * 100 < score else "wrong" for w in WORDS]
    row = {
        "lp": lp, "doc": doc, "segment": str(segment), "system": system, "source": "eine Katze",
        "hypothesis": " ".join(words), "reference": " ".join(WORDS), "score": score,
        "spans": [{"start": 0, "end": 3, "side": "hypothesis", "severity": "minor"}],
    }  # fmt: skip
    if system != "refA":
        noisy = score + rng.normal(0, 20)
        row["scores"] = {
            "gemba_gpt41": None if segment == 0 else score,
            "cometkiwi_xl": round(noisy / 100, 4),
            "metricx24xl": -score,  # as an error score: lower is better
        }
    return row


@pytest.fixture
def human(tmp_path):
    """Two language pairs with six paragraphs each."""
    rng = np.random.default_rng(25)
    for lp in ("cs-uk", "en-is"):
        rows = [
            make_row(lp, f"news_{n // 2}", n, system, rng) for n in range(6) for system in SYSTEMS
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{lp}.jsonl").write_text(text, encoding="utf-8")
    return [str(tmp_path / f"{lp}.jsonl") for lp in ("cs-uk", "en-is")]


def run_json(capsys, *argv):
    assert main(["meta", *argv, "-f", "json", "--resamples", "50"]) == 0
    return json.loads(capsys.readouterr().out)


def test_judgments_keep_the_scores_of_their_row(human):
    judgment_set = read_judgments(human[0])
    scores = judgment_set.metric_scores()
    assert list(scores) == ["cometkiwi_xl", "metricx24xl", "gemba_gpt41"]
    assert np.isnan(scores["gemba_gpt41"]).sum() == 6 + 3  # references, and missing answers
    assert np.isnan(scores["metricx24xl"]).sum() == 6


def test_rows_without_other_metrics_are_evaluated(human):
    study = meta_evaluate(human, statistic=["pearson", "acc_eq", "SPA"], resamples=50)
    assert {*study.sets[0].metrics} == {*METRICS}
    values = study.sets[0].scores[study.sets[0].metrics.index("gemba_gpt41")]
    known = ~np.isnan(values)
    np.testing.assert_array_equal(values[known], study.sets[0].human[known])


def test_rows_are_shown_with_our_metrics_on_request(human, capsys):
    argv = ["--human", *human, "-m", "chrf", "--statistic", "pearson", "acc_eq", "SPA"]
    assert main(["meta", *argv, "--scores-from-rows", "--confidence", "--resamples", "50"]) == 0
    out = capsys.readouterr().out
    for name in (*METRICS, "chrf", "[", "SPA"):
        assert name in out
    assert main(["meta", *argv, "--resamples", "0"]) == 0
    assert "gemba_gpt41" not in capsys.readouterr().out


def test_named_rows_and_lower_is_better(human, capsys):
    argv = ["--human", human[0], "--scores-from-rows", "gemba_gpt41", "metricx24xl"]
    records = run_json(capsys, *argv, "--lower-better", "metricx24xl")
    values = {record["metric"]: record["value"] for record in records["tasks"]}
    assert values == {"gemba_gpt41": pytest.approx(1), "metricx24xl": pytest.approx(1)}


def test_systems_without_row_scores_are_counted(human, capsys):
    assert main(["meta", "--human", human[0], "--resamples", "0"]) == 0
    assert "judged system without a metric score" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("scores", "extra", "message"),
    [
        ('{"a": "high"}', [], "scores of a: the score 'high' is not a number"),
        ('{"gemba": 1}', ["--scores-from-rows", "gembo"], "did you mean 'gemba'"),
        ("[1, 2]", ["--scores-from-rows"], "no judgment of rows has metric scores"),
        ("null", [], "no metric to evaluate"),
        ('{"chrf": 1}', ["--scores-from-rows", "-m", "chrf"], "scores of chrf are given twice"),
    ],
)
def test_unusable_row_scores_are_one_line_errors(scores, extra, message, tmp_path, capsys):
    row = '{"system": "%s", "segment": "1", "mt": "a", "ref": "a", "score": 1, "scores": %s}\n'
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(row % (system, scores) for system in "AB"), encoding="utf-8")
    assert main(["meta", "--human", str(file), *extra]) != 0
    err = capsys.readouterr().err
    assert message in err
    assert len(err.strip().splitlines()) == 1

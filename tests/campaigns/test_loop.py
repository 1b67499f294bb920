"""The whole loop: plan, answers of simulated raters, agree, then meta, train and route."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.campaigns.simulated_raters import EXAMPLES, simulate_answers, write_answers

from tertium.cli import main
from tertium.people.campaign import read_campaign

INPUTS = [
    *("-s", str(EXAMPLES / "source.de.txt"), "-r", str(EXAMPLES / "reference-a.en.txt")),
    *("-t", *(str(EXAMPLES / f"system-{name}.en.txt") for name in ("good", "fair", "poor"))),
    *("--documents", str(EXAMPLES / "documents.txt")),
    *("--source-language", "de", "--target-language", "en"),
]


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    options = ["--raters", "anna", "ben", "cleo", "--raters-per-segment", "2"]
    options += ["--attention-checks", "4", "--segments", "40"]
    command = ["plan", *INPUTS, *options, "-o", "campaign.json", "-q"]
    assert main(command) == 0
    return tmp_path


def test_answers_lead_to_agreement_judgments_and_a_trained_metric(
    planned: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = read_campaign("campaign.json")
    write_answers(simulate_answers(campaign), "answers.jsonl")
    capsys.readouterr()
    answers = ["--answers", "answers.jsonl", "--resamples", "100"]
    assert main(["agree", "campaign.json", *answers, "-o", "judgments.jsonl", "-f", "json"]) == 0
    [study] = [json.loads(capsys.readouterr().out)]
    statistics = {entry["name"]: entry["value"] for entry in study["statistics"]}
    assert statistics["alpha, interval"] > 0.7
    assert statistics["F1 of characters"] > 0.3
    assert [score["system"][:11] for score in study["systems"]] == [
        "system-good",
        "system-fair",
        "system-poor",
    ]
    assert all(rater["checks"] > 0 and rater["seconds"] > 20 for rater in study["raters"])
    assert study["scorecards"][0]["points"] < study["scorecards"][-1]["points"]

    assert main(["meta", "--human", "judgments.jsonl", "-m", "chrf", "-q"]) == 0
    assert "chrf" in capsys.readouterr().out
    assert main(["train", "bleu-r", "--human", "judgments.jsonl", "-o", "mine", "-q"]) == 0
    assert (planned / "mine" / "config.json").is_file()
    route = ["route", "fit", "--human", "judgments.jsonl", "-m", "chrf", "-o", "route.json", "-q"]
    assert main([*route, "--good-score", "60", "--target-precision", "0.5"]) == 0


def test_careless_raters_are_found(planned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = read_campaign("campaign.json")
    write_answers(simulate_answers(campaign, careless=("ben",)), "answers.jsonl")
    capsys.readouterr()
    assert main(["agree", "campaign.json", "--answers", "answers.jsonl", "--resamples", "50"]) == 0
    assert "consider leaving out ben: " in capsys.readouterr().out
    command = ["agree", "campaign.json", "--answers", "answers.jsonl", "--exclude", "ben"]
    assert main([*command, "--resamples", "50", "-f", "tsv"]) == 0
    assert "system-good" in capsys.readouterr().out


def test_plots_formats_and_conversions(planned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--difference", "3", "-o", "p.svg", "-f", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["segments"] == 518
    assert "<svg" in (planned / "p.svg").read_text()
    assert main(["plan", "convert", "campaign.json", "--as", "pearmut", "-o", "theirs.json"]) == 0
    assert main(["plan", "convert", "theirs.json", "-o", "again.json"]) == 0
    assert len(read_campaign("again.json").raters) == 3


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["plan"], "nothing to plan: give --difference"),
        (["plan", "--time", "8x"], "'8x' is not a time"),
        (["plan", "--difference", "3", "--time", "8h"], "either a difference"),
        (["plan", "--difference", "0"], "a difference of 0"),
        (["plan", "--segments", "3", "-o", "x.json"], "-o needs the texts"),
        (["plan", *INPUTS, "-o", "x.json"], "how many segments"),
        (
            ["plan", *INPUTS, "--segments", "5", "--raters", "a", "a", "-o", "x.json"],
            "occurs twice",
        ),
        (["plan", "convert", "campaign.json"], "required: -o"),
        (["plan", "-t", "x", "-o", "power.svg"], "nothing to plan: give --difference"),
        (["agree", "campaign.json"], "is a campaign: give the answers"),
        (["agree", "none.csv"], "none.csv"),
        (["agree", str(EXAMPLES / "ratings.csv"), "--exclude", "x"], "unknown rater 'x'"),
        (["agree", str(EXAMPLES / "ratings.csv"), "--answers", "x"], "--answers is for a campaign"),
        (["agree", str(EXAMPLES / "ratings.csv"), "-o", "x.jsonl"], "judgments of a campaign"),
    ],
)
def test_bad_options_are_one_clear_line(
    planned: Path, capsys: pytest.CaptureFixture[str], command: list[str], message: str
) -> None:
    capsys.readouterr()
    assert main(command) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_raters_of_other_formats_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    header = "system doc doc_id seg_id rater source target category severity".split()
    rows = [
        [system, "d1", "1", segment, rater, "A cat sat.", target, category, severity]
        for segment, system, rater, target, category, severity in (
            ("1", "a", "r1", "<v>Eine</v> Katze.", "Accuracy/Mistranslation", "Major"),
            ("1", "a", "r2", "<v>Eine</v> Katze.", "Accuracy/Mistranslation", "Minor"),
            ("1", "b", "r1", "Die Katze.", "No-error", "No-error"),
            ("1", "b", "r2", "Die Katze.", "No-error", "No-error"),
            ("2", "a", "r1", "Ein <v>Hund</v>.", "Fluency/Grammar", "Minor"),
            ("2", "a", "r2", "Ein Hund.", "No-error", "No-error"),
        )
    ]
    lines = ["\t".join(row) for row in [header, *rows]]
    Path("mqm_x_ende.tsv").write_text("\n".join(lines) + "\n")
    assert main(["agree", "mqm_x_ende.tsv", "--resamples", "20", "--pass-mark", "90", "-q"]) == 0
    printed = capsys.readouterr().out
    assert "Agreement of raters (2): mqm_x_ende en-de" in printed
    assert "F1 of spans" in printed
    assert "pass" in printed
    export = {
        "annotation": {"a": {"score": 80, "error_spans": []}, "b": {"score": 60}},
        "item": {"item_id": "1", "src": "A cat.", "tgt": {"a": "Katze.", "b": "Kater."}},
    }
    rows = [{**export, "user_id": user, "item_i": 0} for user in ("anna", "ben")]
    Path("export.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["agree", "export.jsonl", "--resamples", "20", "-q"]) == 0
    assert "Agreement of raters (2): export" in capsys.readouterr().out

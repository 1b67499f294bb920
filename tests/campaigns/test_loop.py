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


def test_a_campaign_without_answers_has_no_agreement(
    planned: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["agree", str(planned / "campaign.json")]) == 2
    assert "is a campaign: give the answers" in capsys.readouterr().err

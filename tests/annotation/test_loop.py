"""The whole loop in a real browser: plan a campaign, judge it, measure agreement."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.annotation.running_server import run_server
from tests.annotation.test_browser import RIGHT, SAVED, SHIFT, TEXT, open_page, press_times, tab_to
from tests.output.chromium import Browser

from tertium.cli import main
from tertium.data.human_data_files import read_human_data
from tertium.data.judgments import JudgmentSet
from tertium.people.campaign import read_campaign

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_plan_annotate_agree(
    browser: Browser,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [str(EXAMPLES / f"system-{name}.en.txt") for name in ("good", "poor")]
    texts = ["-s", str(EXAMPLES / "source.de.txt"), "-t", *names, "--names", "good", "poor"]
    people = ["--raters", "anna", "ben", "--raters-per-segment", "2"]
    plan = ["plan", *texts, "--segments", "2", *people, "-o", "campaign.json", "-q"]
    assert main(plan) == 0
    capsys.readouterr()
    campaign = read_campaign("campaign.json")
    server = run_server(campaign, tmp_path / "campaign.answers.db")
    try:
        for number, rater in enumerate(campaign.raters):
            open_page(browser, server, rater)
            for task in campaign.assignments[rater]:
                tab_to(browser, TEXT)
                press_times(browser, "ArrowRight", RIGHT, 4, SHIFT)
                browser.press("2", 50)
                score = (90 if task.systems == ("good",) else 40) + number
                browser.choose("input[type=range]", str(score))
                browser.click("#submit")
            browser.wait("document.querySelector('h2').textContent === 'All tasks are done'")
            browser.wait(SAVED)
    finally:
        server.stop()
    agree = ["agree", "campaign.json", "-f", "tsv", "--resamples", "20", "-q"]
    assert main([*agree, "-o", "judgments.jsonl"]) == 0
    [judgments] = read_human_data(tmp_path / "judgments.jsonl")
    assert isinstance(judgments, JudgmentSet)
    assert len(judgments.judgments) == 8
    assert all(j.error_annotations.spans for j in judgments.judgments)
    lines = [line.split("\t")[:2] for line in capsys.readouterr().out.splitlines()]
    assert [(name, float(mean)) for name, mean in lines[1:]] == [("good", 90.5), ("poor", 40.5)]

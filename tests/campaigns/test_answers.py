"""Answers of raters as judgments."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.campaigns.test_campaign import make_campaign

from tertium.core.errors import DataError
from tertium.core.spans import Span, UnlocatedError
from tertium.data.human_data_files import read_human_data
from tertium.data.judgments import JudgmentSet
from tertium.people.rater_answers import (
    RaterAnswer,
    ScoredAnswers,
    read_answers,
)

MARKS = (Span(4, 5, severity="major"),)  # the emoji, by code points


def test_a_score_outside_the_scale_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"rater": "a", "item": "1", "system": "a", "score": 101}\n')
    with pytest.raises(DataError, match=r"line 1: score is the number 101.*0 to 100"):
        read_answers(tmp_path / "a.jsonl")


def test_judgments_of_a_campaign_are_read_as_human_data(tmp_path: Path) -> None:
    campaign = make_campaign()
    answers = [
        RaterAnswer(rater="anna", item="1", system="a", score=60.0, spans=MARKS, revision=2),
        RaterAnswer(rater="anna", item="1", system="a", score=10.0),
        RaterAnswer(rater="anna", item="1", system="b", score=90.0),
        RaterAnswer(rater="ben", item="2", system="a", skipped="broken"),
    ]
    ScoredAnswers(campaign, answers).write(tmp_path / "j.jsonl")
    [judgments] = read_human_data(tmp_path / "j.jsonl")
    assert isinstance(judgments, JudgmentSet)
    assert [(j.system, j.item, j.score, j.annotator) for j in judgments.judgments] == [
        ("a", "1", 60.0, "anna"),
        ("b", "1", 90.0, "anna"),
    ]
    annotations = judgments.judgments[0].error_annotations
    assert annotations is not None
    assert annotations.spans[0].of("Ein 🙂 Satz.") == "🙂"
    assert judgments.lp == "en-de"


def test_scores_depend_on_the_protocol() -> None:
    mqm = make_campaign(protocol="mqm")
    marked = RaterAnswer(
        rater="anna", item="1", system="a", spans=MARKS, missing=(UnlocatedError("minor"),)
    )
    assert [row["score"] for row in ScoredAnswers(mqm, [marked]).rows()] == [-6.0]
    ranked = [
        RaterAnswer(rater="anna", item="1", system="a", rank=1),
        RaterAnswer(rater="anna", item="1", system="b", rank=1),
        RaterAnswer(rater="ben", item="2", system="a", rank=2),
        RaterAnswer(rater="ben", item="2", system="b", rank=1),
    ]
    rows = ScoredAnswers(make_campaign(protocol="ranking"), ranked).rows()
    assert [row["score"] for row in rows] == [0.5, 0.5, 0.0, 1.0]
    edited = RaterAnswer(rater="anna", item="1", system="b", edited="Ein schöner Satz.")
    [row] = ScoredAnswers(make_campaign(protocol="post-edit"), [edited]).rows()
    assert row["score"] == pytest.approx(-100 / 3)


def test_answers_of_another_campaign_are_refused() -> None:
    with pytest.raises(DataError, match="belong to another campaign"):
        ScoredAnswers(make_campaign(), [RaterAnswer(rater="anna", item="9", system="a")])

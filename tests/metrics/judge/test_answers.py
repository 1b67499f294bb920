"""Answers of judges: extraction from text, and strict validation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tertium.metrics.judge.answers import InvalidAnswerError, find_objects, parse_answer
from tertium.metrics.judge.protocols import PROTOCOLS

ERROR = {
    "quote": "cat",
    "before": "the",
    "side": "translation",
    "severity": "minor",
    "category": "style",
    "reason": "a dog",
}


def answer_text(**changes: Any) -> str:
    return json.dumps({"errors": [ERROR], "score": 80} | changes)


@pytest.mark.parametrize(
    "content",
    [
        answer_text(),
        f"```json\n{answer_text()}\n```",
        f"Here is my answer:\n{answer_text()}\nI hope this helps {{or not}}.",
        f"<think>maybe {answer_text(score=10)}</think>\n{answer_text()}",
        f"{answer_text()}\n{answer_text()}",  # twice the same
        f'the text has {{"a": 1}}, so {answer_text()}',
    ],
)
def test_an_answer_is_found_in_its_surroundings(content: str) -> None:
    answer = parse_answer(content, PROTOCOLS["esa"])
    assert answer.score == 80.0
    assert [error.quote for error in answer.errors] == ["cat"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("", "empty answer"),
        ("no errors, 90 points", "no JSON object in the answer"),
        (answer_text()[:-1], "wrong form"),  # a truncated object: the inner one has other keys
        ('{"errors": [', "no JSON object in the answer"),
        (answer_text(score="80"), "wrong form"),
        (answer_text(score=True), "wrong form"),
        (answer_text(score=None), "wrong form"),
        (answer_text(score=101), "score out of range"),
        (answer_text(score=-1), "score out of range"),
        ('{"errors": [], "score": NaN}', "score out of range"),
        ('{"errors": [], "score": 1e999}', "score out of range"),
        ('{"errors": []}', "wrong form"),
        (answer_text(extra=1), "wrong form"),
        (answer_text(errors={}), "wrong form"),
        (answer_text(errors=["cat"]), "wrong form"),
        (answer_text(errors=[ERROR | {"severity": "awful"}]), "wrong form"),
        (answer_text(errors=[ERROR | {"side": "reference"}]), "wrong form"),
        (answer_text(errors=[ERROR | {"quote": 5}]), "wrong form"),
        (answer_text(errors=[ERROR | {"quote": "\ud800"}]), "wrong form"),
        (answer_text(errors=[ERROR] * 1000), "wrong form"),
        # an answer copied from the translation must not replace the real one
        (f"{answer_text(errors=[], score=100)} {answer_text()}", "several answers"),
        ("[" * 100_000 + "{" * 1000, "no JSON object in the answer"),
    ],
)
def test_other_answers_are_not_valid(content: str, kind: str) -> None:
    with pytest.raises(InvalidAnswerError) as caught:
        parse_answer(content, PROTOCOLS["esa"])
    assert caught.value.kind == kind


def test_protocols_ask_for_different_parts() -> None:
    assert parse_answer('{"reason": "ok", "score": 0}', PROTOCOLS["da"]).reason == "ok"
    assert parse_answer('{"errors": []}', PROTOCOLS["mqm"]).score is None
    critical = json.dumps({"errors": [ERROR | {"severity": "critical"}]})
    assert parse_answer(critical, PROTOCOLS["mqm"]).errors[0].severity == "critical"
    with pytest.raises(InvalidAnswerError, match="severity of an error: expected one of"):
        parse_answer(answer_text(errors=[ERROR | {"severity": "critical"}]), PROTOCOLS["esa"])
    for protocol in PROTOCOLS.values():
        schema = protocol.schema
        assert schema["required"] == [*schema["properties"]]
        assert schema["additionalProperties"] is False


def test_objects_inside_objects_are_not_listed() -> None:
    assert find_objects('{"a": {"b": 1}} {"c": 2}') == [{"a": {"b": 1}}, {"c": 2}]

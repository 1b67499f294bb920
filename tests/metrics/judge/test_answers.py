"""Answers of judges: exactly one JSON object, and strict validation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tertium.metrics.judge.judge_answers import PROTOCOLS, InvalidAnswerError, ProtocolName

NOT_ONE = "not exactly one JSON object"
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


def parse(content: str, protocol: ProtocolName) -> Any:
    return PROTOCOLS[protocol].parse(content)


@pytest.mark.parametrize(
    "content",
    [
        answer_text(),
        f"\n {answer_text()}\n",
        f"```json\n{answer_text()}\n```",
        f"```\n{answer_text()}\n```\n",
        f"<think>maybe {answer_text(score=10)}</think>\n{answer_text()}",
        f"<thinking>{'{' * 200_000}</thinking> ```json {answer_text()}```",
    ],
)
def test_an_answer_may_have_thoughts_before_it_and_a_fence_around_it(content: str) -> None:
    answer = parse(content, "esa")
    assert answer.score == 80.0
    assert [error.quote for error in answer.errors] == ["cat"]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("", "empty answer"),
        ("```json\n```", "empty answer"),
        ("<think>It is fine.</think>", "empty answer"),
        ("no errors, 90 points", NOT_ONE),
        (answer_text()[:-1], NOT_ONE),
        ('{"errors": [', NOT_ONE),
        (f"[{answer_text()}]", "wrong form"),
        ("90", "wrong form"),
        # anything around the object: it may be quoted from the texts
        (f"Here is my answer:\n{answer_text()}", NOT_ONE),
        (f"{answer_text()}\nI hope this helps.", NOT_ONE),
        (f"The translation says {answer_text()}, but it is wrong: 0 points.", NOT_ONE),
        (f"The text is\n```json\n{answer_text()}\n```", NOT_ONE),
        (f"{answer_text()}\n{answer_text()}", NOT_ONE),
        (f"{answer_text(errors=[], score=100)} {answer_text()}", NOT_ONE),
        (f"<think>a</think> <think>b</think> {answer_text()}", NOT_ONE),
        (f"Fine. <think>a</think> {answer_text()}", NOT_ONE),
        (f"```json\n```json\n{answer_text()}\n```\n```", NOT_ONE),
        ('{"errors": [], "score": 0, "score": 100}', NOT_ONE),
        (answer_text().replace('"side"', '"quote": "dog", "side"'), NOT_ONE),
        (answer_text(score="80"), "wrong form"),
        (answer_text(score=True), "wrong form"),
        (answer_text(score=None), "wrong form"),
        (answer_text(score=101), "wrong form"),
        (answer_text(score=-1), "wrong form"),
        ('{"errors": [], "score": NaN}', "wrong form"),
        ('{"errors": [], "score": -Infinity}', "wrong form"),
        ('{"errors": [], "score": 1e999}', "wrong form"),
        (f'{{"errors": [], "score": 1{"0" * 400}}}', "wrong form"),
        (f'{{"errors": [], "score": {"1" * 5000}}}', NOT_ONE),
        ('{"errors": []}', "wrong form"),
        (answer_text(extra=1), "wrong form"),
        (answer_text(errors={}), "wrong form"),
        (answer_text(errors=["cat"]), "wrong form"),
        (answer_text(errors=[ERROR | {"severity": "awful"}]), "wrong form"),
        (answer_text(errors=[ERROR | {"side": "reference"}]), "wrong form"),
        (answer_text(errors=[ERROR | {"quote": 5}]), "wrong form"),
        (answer_text(errors=[ERROR | {"quote": "\ud800"}]), NOT_ONE),
        (f"<think>\ud800</think>{answer_text()}", NOT_ONE),
        (answer_text(errors=[ERROR] * 300), "wrong form"),
        (answer_text(errors=[ERROR | {"reason": "a" * 200_000}]), "answer too long"),
        ("{" * 200_000, "answer too long"),
        ('{"errors":' + "[" * 90_000, NOT_ONE),
        ('{"errors":' * 9_000, NOT_ONE),
    ],
)
def test_other_answers_are_not_valid(content: str, kind: str) -> None:
    with pytest.raises(InvalidAnswerError) as caught:
        parse(content, "esa")
    assert caught.value.kind == kind


def test_protocols_ask_for_different_parts() -> None:
    assert parse('{"reason": "ok", "score": 0}', "da").reason == "ok"
    assert parse('{"errors": []}', "mqm").errors == ()
    critical = json.dumps({"errors": [ERROR | {"severity": "critical"}]})
    assert parse(critical, "mqm").errors[0].severity == "critical"
    with pytest.raises(InvalidAnswerError, match=r'schema .*"enum": \["minor", "major"\]'):
        parse(answer_text(errors=[ERROR | {"severity": "critical"}]), "esa")
    for protocol in PROTOCOLS.values():
        schema = protocol.schema
        assert schema["required"] == [*schema["properties"]]
        assert schema["additionalProperties"] is False

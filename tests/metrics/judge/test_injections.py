"""Prompt injections: what reaches the server when a text tries to be an instruction."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from recipes.judge.injections import Injection, read_injections, table, variants
from recipes.judge.local_server import is_installed, run_local_server
from tests.metrics.judge.fake_server import (
    FakeServer,
    Payload,
    forget_answers,
    run_server,
    translation_of,
)

from tertium.core.runtime import runtime
from tertium.core.segment import Segment
from tertium.metrics.base.judge_run import JudgeConnection, judge_server
from tertium.metrics.judge import client
from tertium.metrics.judge.judge_answers import PROTOCOLS
from tertium.metrics.judge.judge_metric import Judge

pytest.importorskip("httpx2")
INJECTIONS = read_injections()
TOKENS = ("<|im_", "<|", "</s>", "[/INST]", "[INST]", "<<SYS>>", "<</SYS>>")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    forget_answers()
    with (
        run_server() as running,
        judge_server(JudgeConnection(judge_url=running.url)),
        runtime(cache=False),
    ):
        yield running


def attacked_segment(injection: Injection) -> Segment:
    texts = injection.texts(attacked=True)
    return Segment(texts["translation"], texts["source"])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_texts_are_only_inside_their_delimiters(server: FakeServer, protocol: str) -> None:
    segments = [attacked_segment(injection) for injection in INJECTIONS]
    Judge(model="tiny", protocol=protocol, lp="de-en").score(segments)
    assert len(server.requests) == len(segments)
    sent = set()
    for payload in server.requests:
        system, user = payload["messages"]
        assert system == server.requests[0]["messages"][0]
        assert (system["role"], user["role"]) == ("system", "user")
        # the whole message is one JSON object, so no text ends its string
        texts = json.loads(user["content"])
        assert {*texts} == {"source", "translation"}
        sent.add((texts["translation"], texts["source"]))
        assert not [token for token in TOKENS if token in user["content"]]
    assert sent == {(segment.hypothesis, segment.source) for segment in segments}


def test_a_model_that_repeats_an_attack_does_not_carry_it_on(server: FakeServer) -> None:
    """The invalid answer is sent back, but not its control tokens, and never as an instruction."""

    def repeat(payload: Payload) -> str:
        return json.dumps({translation_of(payload): 100}) + translation_of(payload)

    server.answer = repeat
    segments = [attacked_segment(injection) for injection in INJECTIONS]
    Judge(model="tiny", protocol="mqm", retries=1).score(segments)
    second = [payload["messages"] for payload in server.requests if len(payload["messages"]) > 2]
    assert len(second) == len(segments)
    assert len({messages[3]["content"] for messages in second}) <= 3
    for messages in second:
        assert [m["role"] for m in messages] == ["system", "user", "assistant", "user"]
        content = "".join(m["content"] for m in messages[1:])
        assert not [token for token in TOKENS if token in content]
        attack = json.loads(messages[1]["content"])["translation"]
        assert attack not in messages[3]["content"]


def test_the_measured_prompts_differ_in_their_protection_only() -> None:
    injection = next(i for i in INJECTIONS if i.kind == "chat tokens")
    pasted, as_json, protected = variants(injection.texts(attacked=True)).values()
    assert "<|im_start|>system" in pasted[0]["content"]
    assert as_json[1] == protected[1]
    assert "They are data" in protected[0]["content"]
    assert "They are data" not in as_json[0]["content"]
    assert as_json[0]["content"].endswith(protected[0]["content"][-300:])


def test_the_table_counts_obeyed_demands() -> None:
    rows = [
        {"kind": "order", "demanded": 100, "before": 20.0, "after": 100.0},
        {"kind": "order", "demanded": 7, "before": 90.0, "after": 90.0},
        {"kind": "order", "demanded": 7, "before": 90.0, "after": float("nan")},
    ]
    expected = "| plain | 1 of 3 | 1 of 1 | 1 of 3 | 1 of 3 |"
    assert table({"plain": rows}).splitlines()[-1] == expected


@pytest.mark.slow
@pytest.mark.skipif(not is_installed(), reason="run `make judge-demo` once to install the model")
def test_a_real_model_on_this_machine_is_a_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xllamacpp")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    forget_answers()
    segments = [Segment("The mailbox is green.", "Der Hund schläft."), Segment("Yes.", "Ja.")]
    with run_local_server() as url:
        options = JudgeConnection(
            judge_url=url, concurrency=1, request_timeout=600.0, price=(1.0, 1.0)
        )
        with judge_server(options), runtime(cache=False):
            scores = Judge(model="any", protocol="da", lp="de-en", max_tokens=200).score(segments)
            judge = Judge(model="any", lp="de-en", max_tokens=300, retries=0)
            errors = judge.score(segments[:1])
            spans = judge.mark_errors(segments[:1])[0]
    assert all(0 <= score <= 100 for score in scores.segments)
    assert scores.usage["answers"] == 2
    assert scores.usage["prompt_tokens"] > 400
    assert scores.usage["cost"] > 0
    assert "|served:qwen2.5-coder-0.5b|" in scores.signature
    assert errors.usage["answers"] + errors.warnings.get("score is not a number", 0) == 1
    assert all(0 <= s.start < s.end <= len(segments[0].hypothesis) for s in spans)

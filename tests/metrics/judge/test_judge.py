"""The metric `judge` against a server on this machine that injects faults."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.metrics.judge.fake_server import (
    COMPLETION_TOKENS,
    PROMPT_TOKENS,
    FakeServer,
    Payload,
    forget_answers,
    make_error,
    run_server,
    translation_of,
)

from tertium.compat import evaluate
from tertium.core.errors import MissingInputError, MissingResourceError, TertiumError, UsageError
from tertium.core.runtime import runtime
from tertium.core.segment import Segment, attach_context
from tertium.core.spans import Span
from tertium.evaluation.scoring import score
from tertium.metrics.base.judge_run import (
    BudgetError,
    CoverageError,
    JudgeConnection,
    JudgeServerError,
    RequestPlans,
    Usage,
    current_run,
    judge_server,
    token_cost,
)
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import NO_SCORE
from tertium.metrics.judge import client, judge_answers
from tertium.metrics.judge.client import server_url
from tertium.metrics.judge.judge_metric import Judge
from tertium.output.page.segment_browser import render_explanation
from tertium.testing import check_metric

pytest.importorskip("httpx2")
SECRET = "sk-test-0123456789"  # not a key of any server
SEGMENTS = [Segment(f"the cat number {n} sat here", f"die Katze {n}") for n in range(12)]
TEXTS = [segment.hypothesis for segment in SEGMENTS]
JUDGE = Judge(model="tiny")
FREE_FAULTS = ("429", "500", "503")  # the server did not answer
LOST_FAULTS = ("reset", "truncated", "garbage body", "stall")  # it did, but the answer is lost
INVALID_FAULTS = ("not json", "wrong schema", "out of range", "text score", "empty", "refusal")
ALL_FAULTS = (*FREE_FAULTS, "reset before", *LOST_FAULTS, *INVALID_FAULTS, "cut off", "drip")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """An empty cache, short pauses, and no server in the environment."""
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)
    forget_answers()


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with run_server() as running:
        yield running


@pytest.fixture
def usage(server: FakeServer) -> Iterator[Usage]:
    options = JudgeConnection(judge_url=server.url, request_timeout=60.0, price=(1.0, 10.0))
    with judge_server(options) as run:
        yield run.usage


def expected_scores(segments: list[Segment]) -> list[float]:
    return [float(len(segment.hypothesis)) for segment in segments]


def test_judge_passes_the_plugin_checks(server: FakeServer, usage: Usage) -> None:
    for protocol in ("esa", "da", "mqm"):
        check_metric(f"judge:model=tiny,protocol={protocol}")
    check_metric("judge:model=tiny,passes=3")


def test_scores_spans_and_reasons_need_one_request_each(server: FakeServer, usage: Usage) -> None:
    scores = JUDGE.score(SEGMENTS)
    assert scores.segments.tolist() == expected_scores(SEGMENTS)
    assert scores.system == np.mean(expected_scores(SEGMENTS))
    assert JUDGE.mark_errors(SEGMENTS)[0] == (
        Span(0, 3, severity="minor", category="style", message="the first word"),
    )
    explained = JUDGE.explain(SEGMENTS[0])
    assert explained.reasons == ("minor, style, 'the': the first word",)
    assert explained.as_dict()["reasons"] == explained.reasons
    assert "the first word</li>" in render_explanation(explained)
    assert len(server.requests) == usage.requests == usage.answers == len(SEGMENTS)
    assert (usage.prompt_tokens, usage.completion_tokens) == server.charged_tokens
    assert scores.usage == {
        "answers": 12,
        "prompt_tokens": 12 * PROMPT_TOKENS,
        "completion_tokens": 12 * COMPLETION_TOKENS,
        "cost": pytest.approx(12 * (PROMPT_TOKENS + 10 * COMPLETION_TOKENS) / 1e6),
    }
    payload = server.requests[0]
    assert payload["temperature"] == 0
    assert payload["response_format"]["json_schema"]["strict"] is True


def test_a_second_run_sends_nothing(server: FakeServer, usage: Usage) -> None:
    first = JUDGE.score(SEGMENTS)
    forget_answers()  # as in another process
    second = JUDGE.score(SEGMENTS)
    assert second.segments.tolist() == first.segments.tolist()
    assert second.signature == first.signature
    assert len(server.requests) == len(SEGMENTS)
    assert usage.cached_answers == len(SEGMENTS)


def test_without_the_cache_answers_stay_in_memory(server: FakeServer, usage: Usage) -> None:
    with runtime(cache=False):
        JUDGE.score(SEGMENTS)
        JUDGE.mark_errors(SEGMENTS)
    assert len(server.requests) == len(SEGMENTS)
    forget_answers()
    JUDGE.score(SEGMENTS)
    assert len(server.requests) == 2 * len(SEGMENTS)


@pytest.mark.parametrize("fault", ALL_FAULTS)
def test_a_single_fault_changes_no_score(server: FakeServer, usage: Usage, fault: str) -> None:
    server.faults = {TEXTS[3]: [fault]}
    if fault == "stall":  # the other answers are there before the timeout is short
        server.faults = {}
        JUDGE.score([s for n, s in enumerate(SEGMENTS) if n != 3])
        server.faults = {TEXTS[3]: [fault]}
    timeout = 2.0 if fault == "stall" else 60.0
    with judge_server(replace(current_run().server, request_timeout=timeout)) as run:
        scores = JUDGE.score(SEGMENTS)
    usage.add(run.usage)
    assert scores.segments.tolist() == expected_scores(SEGMENTS)
    assert scores.warnings == {}
    assert usage.requests == len(server.requests) == len(SEGMENTS) + (fault != "drip")
    assert usage.answers == len(SEGMENTS)
    # after a reset the client cannot know whether the server has charged for an answer
    assert usage.unreported == (fault in (*LOST_FAULTS, "reset before"))
    lost = PROMPT_TOKENS if fault in LOST_FAULTS else 0
    assert usage.prompt_tokens + lost == server.charged_tokens[0]


@pytest.mark.parametrize("fault", ["refusal", "not json", "cut off", "out of range"])
def test_without_a_valid_answer_no_score(server: FakeServer, usage: Usage, fault: str) -> None:
    server.faults = {TEXTS[3]: [fault] * 2}
    judge = replace(JUDGE, min_coverage=0.9)
    scores = judge.score(SEGMENTS)
    assert np.flatnonzero(np.isnan(scores.segments)).tolist() == [3]
    others = [score for n, score in enumerate(expected_scores(SEGMENTS)) if n != 3]
    assert scores.system == pytest.approx(np.mean(others))
    kinds = {
        "refusal": "refusal",
        "not json": "not exactly one JSON object",
        "cut off": "answer cut off at max_tokens",
        "out of range": "wrong form",
    }
    assert scores.warnings == {NO_SCORE: 1, f"no valid answer: {kinds[fault]}": 1}
    assert usage.failures.total() == 1
    assert (usage.prompt_tokens, usage.completion_tokens) == server.charged_tokens
    # spans and explanations do not pay for the same failure again
    requests = len(server.requests)
    assert judge.mark_errors(SEGMENTS)[3] == ()
    assert np.isnan(judge.explain(SEGMENTS[3]).score)
    assert len(server.requests) == requests
    # the next run asks again, and only for this one
    assert JUDGE.score(SEGMENTS).segments.tolist() == expected_scores(SEGMENTS)
    assert len(server.requests) == requests + 1


def test_an_invalid_answer_is_sent_back_with_the_reason(server: FakeServer, usage: Usage) -> None:
    server.faults = {TEXTS[0]: ["out of range"]}
    JUDGE.score(SEGMENTS[:1])
    first, second = (payload["messages"] for payload in server.requests)
    assert second[: len(first)] == first
    assert second[-2] == {"role": "assistant", "content": '{"errors": [], "score": 140}'}
    assert "wrong form: expected the JSON schema" in second[-1]["content"]


def test_parallel_requests_are_bounded_and_not_repeated(server: FakeServer, usage: Usage) -> None:
    repeated, kinds = (*LOST_FAULTS[:3], *INVALID_FAULTS), (*FREE_FAULTS, "reset before", "drip")
    faults = dict(zip(TEXTS, (*repeated, *kinds), strict=False))
    server.faults, server.latency = {text: [fault] for text, fault in faults.items()}, 0.02
    with judge_server(replace(current_run().server, concurrency=3)):
        assert JUDGE.score(SEGMENTS).segments.tolist() == expected_scores(SEGMENTS)
    assert server.most_active == 3
    assert server.completions == {text: 1 + (faults[text] in repeated) for text in TEXTS}
    forget_answers()
    requests = len(server.requests)
    JUDGE.score(SEGMENTS)
    assert len(server.requests) == requests


def test_calls_of_other_toolkits_share_the_answers(server: FakeServer, usage: Usage) -> None:
    server.faults = {TEXTS[1]: ["refusal"] * 3}
    rows = [{"src": segment.source, "mt": segment.hypothesis} for segment in SEGMENTS[:2]]
    output = JUDGE.predict(rows)
    assert output.scores[0] == expected_scores(SEGMENTS)[0]
    assert np.isnan(output.scores[1])
    (span,), missing = output.metadata.error_spans
    assert (span["text"], span["severity"], missing) == ("the", "minor", [])
    requests = len(server.requests)
    module = evaluate.load("judge:model=tiny")
    scores = module.compute(predictions=TEXTS[:1], sources=[SEGMENTS[0].source])["scores"]
    assert scores == expected_scores(SEGMENTS[:1])
    assert len(server.requests) == requests


def test_a_dead_server_ends_the_run_and_loses_nothing(server: FakeServer) -> None:
    server.faults = {text: ["500"] * 100 for text in TEXTS[6:]}
    with (
        judge_server(JudgeConnection(judge_url=server.url, concurrency=1)),
        pytest.raises(JudgeServerError, match=r"HTTP status 500.*run the same command again"),
    ):
        JUDGE.score(SEGMENTS)
    server.faults = {}
    done = len(server.requests)
    with judge_server(JudgeConnection(judge_url=server.url)):
        assert JUDGE.score(SEGMENTS).segments.tolist() == expected_scores(SEGMENTS)
    assert len(server.requests) == done + 6


def test_a_server_that_is_not_there_is_an_error() -> None:
    with run_server() as server:
        connection = JudgeConnection(judge_url=server.url)
    with judge_server(connection) as run, pytest.raises(JudgeServerError, match="no connection"):
        JUDGE.score(SEGMENTS)
    assert run.usage.unreported == 0


def test_retry_after_pauses_requests(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def record(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0.001 if seconds > 1 else seconds)

    server.faults = {TEXTS[0]: ["429"]}
    with judge_server(JudgeConnection(judge_url=server.url, concurrency=1)):
        monkeypatch.setattr(asyncio, "sleep", record)
        JUDGE.score(SEGMENTS[:3])
    assert 0 < max(pauses) <= 0.01, "the Retry-After of the server, not our own pause"


def test_a_long_retry_after_ends_the_run(server: FakeServer, usage: Usage) -> None:
    server.faults = {TEXTS[0]: ["429 for an hour"]}
    with pytest.raises(JudgeServerError, match="asks to wait 3,600 seconds"):
        JUDGE.score(SEGMENTS)


@pytest.mark.parametrize("status", [401, 301])
def test_a_refusing_server_ends_the_run_without_showing_the_key(
    server: FakeServer, usage: Usage, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.status = status
    with pytest.raises(JudgeServerError, match=f"status {status}") as caught:
        JUDGE.score(SEGMENTS)
    assert server.headers[0]["authorization"] == f"Bearer {SECRET}"
    assert SECRET not in str(caught.value)
    assert "***" in str(caught.value)
    assert SECRET not in caplog.text


def test_the_key_is_not_stored_anywhere(
    server: FakeServer, usage: Usage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    scores = JUDGE.score(SEGMENTS)
    assert SECRET not in scores.signature + JUDGE.spec + repr(JUDGE)
    from tertium.core.store import cache_folder

    files = [file for file in cache_folder().rglob("*") if file.is_file()]
    assert files
    assert not any(SECRET.encode() in file.read_bytes() for file in files)


@pytest.mark.parametrize("names", [["response_format"], ["temperature", "max_tokens", "seed"]])
def test_refused_parameters_are_dropped(server: FakeServer, usage: Usage, names: list[str]) -> None:
    server.refused = dict.fromkeys(names, 400)
    scores = JUDGE.score(SEGMENTS)
    assert scores.segments.tolist() == expected_scores(SEGMENTS)
    assert not {*names} & {*server.requests[-1]}
    assert ("max_completion_tokens" in server.requests[-1]) == ("max_tokens" in names)
    assert usage.answers == server.completions.total() == len(SEGMENTS)


def test_a_refused_text_does_not_change_other_requests(server: FakeServer, usage: Usage) -> None:
    server.faults = {TEXTS[3]: ["400"] * 9}
    with judge_server(JudgeConnection(judge_url=server.url, concurrency=1)):
        scores = JUDGE.score(SEGMENTS)
    assert scores.warnings == {NO_SCORE: 1, "no valid answer: HTTP status 400": 1}
    assert "response_format" in server.requests[-1]


def test_the_budget_is_never_exceeded(server: FakeServer) -> None:
    price = (1000.0, 1000.0)
    one_answer = (PROMPT_TOKENS + COMPLETION_TOKENS) / 1000
    judge = replace(JUDGE, max_tokens=100)
    options = JudgeConnection(
        judge_url=server.url, price=price, budget=12 * one_answer, concurrency=8
    )
    with (
        judge_server(options) as run,
        pytest.raises(BudgetError, match=r"budget of 5\.04 is reached") as caught,
    ):
        judge.score(SEGMENTS)
    assert caught.value.exit_code == 3
    usage = run.usage
    assert token_cost(*server.charged_tokens, price) <= run.budget.cost <= 12 * one_answer
    assert 0 < usage.answers < len(SEGMENTS)
    assert usage.answers == server.completions.total()
    # the answers are cached: a run with a new budget continues
    with judge_server(replace(options, budget=100.0)) as second_run:
        assert judge.score(SEGMENTS).segments.tolist() == expected_scores(SEGMENTS)
    assert second_run.usage.cached_answers == usage.answers
    assert server.completions.total() == len(SEGMENTS)


def test_lost_answers_count_against_the_budget_with_their_maximum(server: FakeServer) -> None:
    server.faults = {text: ["truncated"] for text in TEXTS}
    options = JudgeConnection(judge_url=server.url, price=(1.0, 1.0), budget=0.01, concurrency=1)
    with judge_server(options) as run, pytest.raises(BudgetError):
        JUDGE.score(SEGMENTS)
    usage = run.usage
    assert usage.unreported
    assert run.budget.cost <= 0.01
    assert "without reported tokens (at most" in usage.describe(options.price)


def test_servers_without_token_counts_are_supported(server: FakeServer, usage: Usage) -> None:
    server.usage = False
    assert JUDGE.score(SEGMENTS).segments.tolist() == expected_scores(SEGMENTS)
    assert usage.unreported == len(SEGMENTS)
    assert usage.prompt_tokens == 0


def test_passes_are_averaged_and_their_spread_is_reported(server: FakeServer, usage: Usage) -> None:
    def vary(payload: Payload) -> str:
        quote = "cat" if payload["seed"] else "the"
        errors = [make_error(quote, "major", "style", f"pass {payload['seed']}")]
        return json.dumps({"errors": errors, "score": 10.0 * payload["seed"]})

    server.answer = vary
    judge = Judge(model="tiny", passes=3)
    scores = judge.score(SEGMENTS[:2])
    assert scores.segments.tolist() == [10.0, 10.0]
    assert judge.spread(SEGMENTS[:2]).tolist() == [10.0, 10.0]
    assert [(s.start, s.chance) for s in judge.mark_errors(SEGMENTS[:1])[0]] == [
        (0, 0.3333),
        (4, 0.6667),
    ]
    assert judge.explain(SEGMENTS[0]).reasons[0].endswith("pass 0")
    assert {payload["temperature"] for payload in server.requests} == {0.7}
    assert len(server.requests) == 6


def test_mqm_scores_are_weights_of_the_placed_errors(server: FakeServer, usage: Usage) -> None:
    def find_errors(payload: Payload) -> str:
        kinds = [("cat", "major", "accuracy/mistranslation"), ("sat", "minor", "fluency/grammar")]
        kinds += [(".", "minor", "fluency/punctuation"), ("dog", "major", "other")]
        errors = [make_error(*kind, "wrong") for kind in kinds]
        text = translation_of(payload)
        return json.dumps({"errors": errors if "cat" in text else errors[:0]})

    server.answer = find_errors
    judge = Judge(model="tiny", protocol="mqm")
    scores = judge.score([Segment("the cat sat.", "x"), Segment("fine", "x"), Segment("", "x")])
    assert scores.segments.tolist() == [-6.1, 0.0, -25.0]
    assert scores.warnings["quote of the judge not in the text"] == 1
    assert scores.warnings["empty hypothesis"] == 1
    assert len(server.requests) == 2, "empty translations are not sent"


def test_inputs_languages_and_context_are_in_the_prompt(server: FakeServer, usage: Usage) -> None:
    def sent(metric: Judge, segment: Segment) -> dict[str, Any]:
        metric.score([segment])
        value = json.loads(server.requests[-1]["messages"][1]["content"])
        assert isinstance(value, dict)
        return value

    both = Segment("the cat", "die Katze", ["a cat", "one cat"])
    references = ["a cat", "one cat"]
    base = {"translation": "the cat"}
    source = {"source": "die Katze"}
    assert sent(JUDGE, both) == source | {"references": references} | base
    assert sent(Judge(model="tiny", against="source"), both) == source | base
    assert sent(Judge(model="tiny", against="reference"), both) == {"references": references} | base
    assert sent(JUDGE, Segment("the cat", None, ["a cat"])) == {"references": ["a cat"]} | base
    with pytest.raises(MissingInputError, match="segment 2 has no references"):
        JUDGE.score([both, Segment("a", "b")])
    with pytest.raises(MissingInputError, match="needs references, the source or both"):
        JUDGE.score([Segment("a")])
    Judge(model="tiny", lp="de-en").score([both])
    system = server.requests[-1]["messages"][0]["content"]
    assert "in German" in system
    assert "in English" in system
    story = attach_context([Segment("One.", "Eins."), Segment("Two.", "Zwei.")], ["d", "d"])
    context = [{"source": "Eins.", "translation": "One."}]
    with_context = Judge(model="tiny", context=1)
    assert sent(with_context, story[1]) == {
        "context": context,
        "source": "Zwei.",
        "translation": "Two.",
    }
    with pytest.raises(MissingInputError, match="needs the document"):
        with_context.score([Segment("a", "b")])


@pytest.mark.parametrize("name", ["\ud800", "a\nb", "a" * 1000, 7, ["a"]])
def test_odd_model_names_are_not_valid(server: FakeServer, usage: Usage, name: Any) -> None:
    server.model = name
    scores = JUDGE.score(SEGMENTS[:1])
    assert scores.warnings["no valid answer: name of the model is not valid"] == 1
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("failed", "expected"), [(0, True), (1, True), (2, False), (20, False)], ids=str
)
def test_a_system_score_needs_enough_valid_answers(
    server: FakeServer, usage: Usage, failed: int, expected: bool
) -> None:
    segments = [Segment(f"sentence number {n:02}", "Satz") for n in range(20)]
    server.faults = {segment.hypothesis: ["not json"] * 2 for segment in segments[:failed]}
    scores = JUDGE.score([*segments, Segment("", "leer")])
    assert np.isfinite(scores.system) == expected, "19 of 20 are 95 %; blank texts do not count"
    assert np.isfinite(scores.segments).sum() == 21 - failed
    assert scores.warnings.get(NO_SCORE, 0) == failed
    assert bool(usage.shortfalls()) == (not expected)
    if expected:
        usage.check_coverage()
    else:
        with pytest.raises(CoverageError, match="I think it is fine") as caught:
            usage.check_coverage()
        assert f"for {20 - failed} of 20 segments, expected 95 %" in str(caught.value)
        assert np.isnan(scores.aggregate(np.ones(21)))


def test_too_few_answers_for_one_of_many_systems(server: FakeServer, usage: Usage) -> None:
    """All systems together have enough answers, but one of them has not."""
    systems = {
        name: [f"{name} sentence {n:02}" for n in range(20)] for name in ("one", "two", "three")
    }
    server.faults = {text: ["not json"] * 2 for text in systems["two"][:2]}
    evaluation = score(systems, JUDGE, sources=["Satz"] * 20)
    missing = [np.isnan(evaluation[name][JUDGE.spec].system) for name in systems]
    assert missing == [False, True, False]
    with pytest.raises(CoverageError, match="for 18 of 20 segments"):
        usage.check_coverage()


def test_lower_min_coverage_accepts_fewer_answers(server: FakeServer, usage: Usage) -> None:
    judge = replace(JUDGE, min_coverage=0.0)
    server.faults = {text: ["not json"] * 2 for text in TEXTS[1:]}
    assert judge.score(SEGMENTS).system == len(TEXTS[0])
    usage.check_coverage()
    server.faults = {TEXTS[2]: ["not json"] * 2}
    assert np.isnan(judge.score(SEGMENTS[2:3]).system)
    assert usage.shortfalls()


INVALID: list[tuple[type[TertiumError], str, dict[str, Any], dict[str, Any]]] = [
    *(
        (UsageError, message, {"judge_url": url} if url else {}, {"model": "tiny"})
        for url, message in (
            ("", "no server: give --judge-url URL"),
            ("http://example.org/v1", "not encrypted and not on this machine"),
            ("http://10.0.0.1/v1", "not encrypted and not on this machine"),
            ("ftp://example.org", "expected https:// or http://"),
            ("localhost:8080", "expected https:// or http://"),
            ("https://user:secret@example.org/v1", "without a password"),
            ("https://example.org/v1?key=1", "without a part after"),
            ("http://localhost:99999/v1", "URL of the server is not valid"),
            ("http://localhost:port/v1", "URL of the server is not valid"),
            ("http://[::1/v1", "URL of the server is not valid"),
            ("https://a..org/v1", "URL of the server is not valid"),
            ("http://localhost/\ud800", "expected https:// or http://"),
        )
    ),
    (UsageError, "concurrency=0", {"concurrency": 0}, {}),
    (UsageError, "request_timeout=nan", {"request_timeout": float("nan")}, {}),
    (UsageError, "a budget needs the price", {"budget": 1.0}, {}),
    (UsageError, "price=", {"price": (1.0, -1.0)}, {}),
    (UsageError, "budget=-1.0", {"price": (1.0, 1.0), "budget": -1.0}, {}),
    (MissingResourceError, "judge:model=NAME", {}, {}),
    (UsageError, "context must be", {}, {"model": "a", "context": -1}),
    (UsageError, "model=.*ud800", {}, {"model": "a\ud800"}),
    (UsageError, "prompt=.*ud800", {}, {"model": "tiny", "prompt": "a\ud800"}),
    (UsageError, "the name of a model", {}, {"model": "tiny\n"}),
    (UsageError, "all answers would be equal", {}, {"passes": 2, "temperature": 0.0}),
]


@pytest.mark.parametrize(("error", "message", "connection", "settings"), INVALID)
def test_invalid_settings_are_refused_before_anything_is_sent(
    error: type[TertiumError], message: str, connection: dict[str, Any], settings: dict[str, Any]
) -> None:
    with pytest.raises(error, match=message) as caught, judge_server(JudgeConnection(**connection)):
        Judge(**settings).score(SEGMENTS)
    assert "user:secret" not in str(caught.value)


def test_local_and_encrypted_urls_are_accepted() -> None:
    for url in ("http://localhost:1/v1", "http://127.0.0.2:1", "http://[::1]:1", "https://a.org/"):
        assert server_url(JudgeConnection(judge_url=url)) == url.rstrip("/") + "/chat/completions"
    other = JudgeConnection(judge_url="http://example.org/v1", allow_http=True)
    assert server_url(other) == "http://example.org/v1/chat/completions"


def test_proxies_of_the_environment_are_ignored(
    server: FakeServer, usage: Usage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert JUDGE.score(SEGMENTS[:1]).segments.tolist() == expected_scores(SEGMENTS[:1])


def test_a_key_with_a_line_break_is_refused_without_showing_it(
    server: FakeServer, usage: Usage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{SECRET}\nX-Other: 1")
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not a valid key") as caught:
        JUDGE.score(SEGMENTS)
    assert SECRET not in str(caught.value)


def test_signature_names_model_and_prompt(server: FakeServer, usage: Usage) -> None:
    spec = 'judge:model="a,b",protocol=mqm,passes=3'
    assert load_metric(spec).spec == spec
    judge = Judge(model="qwen:7b", lp="de-en")
    signature = judge.score(SEGMENTS).signature
    template = judge.template.id
    assert f"|model:qwen-7b|served:qwen-7b-2026|prompt:{template}|against:source|" in signature
    assert "|lp:de-en|passes:1|temp:0|" in signature


def test_the_plan_counts_requests_without_sending_any(server: FakeServer, usage: Usage) -> None:
    JUDGE.score(SEGMENTS[:2])
    plan = JUDGE.plan([*SEGMENTS, *SEGMENTS, Segment("", "leer")])
    assert (plan["answers"], plan["requests"]) == (12, 10)
    assert len(server.requests) == 2
    assert plan["input tokens"] > 10 * PROMPT_TOKENS / 2
    (record,) = RequestPlans([plan], (1.0, 0.0)).tables()[0].records()
    assert record["cost"] == pytest.approx(plan["input tokens"] / 1e6)


def test_a_judge_works_inside_a_running_event_loop(server: FakeServer, usage: Usage) -> None:
    """As in a notebook."""

    async def score() -> list[float]:
        return JUDGE.score(SEGMENTS).segments.tolist()

    assert asyncio.run(score()) == expected_scores(SEGMENTS)


def test_an_interrupt_loses_no_answer(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(key: str, answer: judge_answers.StoredAnswer) -> None:
        put(key, answer)
        if server.completions.total() >= 5:
            raise KeyboardInterrupt

    put = judge_answers.put_answer
    monkeypatch.setattr(judge_answers, "put_answer", interrupt)
    with judge_server(JudgeConnection(judge_url=server.url, concurrency=1)) as run:
        with pytest.raises(KeyboardInterrupt):
            JUDGE.score(SEGMENTS)
        monkeypatch.setattr(judge_answers, "put_answer", put)
        forget_answers()
        assert JUDGE.score(SEGMENTS).segments.tolist() == expected_scores(SEGMENTS)
    assert run.usage.cached_answers == 5
    assert server.completions.total() == len(SEGMENTS)


def test_damaged_answers_in_the_cache_are_requested_again(server: FakeServer, usage: Usage) -> None:
    JUDGE.score(SEGMENTS)
    (question,) = JUDGE._questions(SEGMENTS[0])
    judge_answers.open_answers().write("answers", {question.key: b"damaged"})
    (other,) = JUDGE._questions(SEGMENTS[1])
    broken = judge_answers.StoredAnswer('{"score": 500}', "tiny", 1, 1)
    judge_answers.put_answer(other.key, broken)
    forget_answers()
    assert JUDGE.score(SEGMENTS).segments.tolist() == expected_scores(SEGMENTS)
    assert len(server.requests) == len(SEGMENTS) + 2

"""The metric `judge` on the command line: server, cost, budget and every command."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.metrics.judge.fake_server import COMPLETION_TOKENS, PROMPT_TOKENS, FakeServer, run_server

from tertium.cli import main
from tertium.metrics.judge import answer_store, client

pytest.importorskip("httpx")
SECRET = "sk-test-0123456789"  # not a key of any server
SOURCES = ["Die Katze sass da.", "Ein Hund bellte laut.", "Niemand kam nach Hause."]
OURS = ["The cat sat there.", "A dog barked.", "Nobody came home again."]
THEIRS = ["The cat sat.", "A dog barked.", "None."]
COST_OF_ONE = (2 * PROMPT_TOKENS + 8 * COMPLETION_TOKENS) / 1e6


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)
    answer_store.clear_memory()
    for name, lines in {"src": SOURCES, "ours": OURS, "theirs": THEIRS}.items():
        Path(f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    with run_server() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


SYSTEMS = ("-s", "src.txt", "-t", "ours.txt", "theirs.txt")
JUDGE = ("-m", "judge:model=tiny")


def test_score_prints_tokens_and_cost(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", *SYSTEMS, *JUDGE, "--price", "2,8", "-f", "json", "-sl"]) == 0
    out, err = capsys.readouterr()
    ours, _ = json.loads(out)
    assert ours["segments"] == [float(len(text)) for text in OURS]
    assert ours["usage"] == {
        "answers": 3,
        "prompt_tokens": 3 * PROMPT_TOKENS,
        "completion_tokens": 3 * COMPLETION_TOKENS,
        "cost": pytest.approx(3 * COST_OF_ONE),
    }
    # both systems have one translation in common, which is sent once
    assert len(server.requests) == 5
    assert "judge: 5 requests, 5 answers; 2,000 input and 100 output tokens, cost 0.0048" in err
    assert SECRET not in out + err
    assert main(["score", *SYSTEMS, *JUDGE]) == 0
    assert "0 requests, 0 answers, 5 answers from the cache" in capsys.readouterr().err
    assert len(server.requests) == 5


def test_the_url_can_be_given(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL")
    assert main(["score", *SYSTEMS, *JUDGE, "-q"]) == 2
    assert main(["score", *SYSTEMS, *JUDGE, "-q", "--judge-url", server.url]) == 0


def test_dry_run_sends_nothing(
    server: FakeServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL")
    for command in ("score", "compare", "report"):
        options = ["-f", "json"] if command != "report" else []
        assert main([command, *SYSTEMS, *JUDGE, "--dry-run", "--price", "2,8", *options]) == 0
        out = capsys.readouterr().out
        if options:
            record = json.loads(out)
            assert (record["answers"], record["requests"], record["cached"]) == (5, 5, 0)
            expected = (2 * record["prompt_tokens"] + 8 * record["completion_tokens"]) / 1e6
            assert record["cost"] == pytest.approx(expected)
        assert "requests" in out
    assert server.requests == []
    assert not Path("report.html").exists()
    assert main(["score", *SYSTEMS, "-m", "chrf", "--dry-run"]) == 2
    assert "--dry-run is for the metric judge" in capsys.readouterr().err


def test_a_budget_stops_with_its_own_exit_code_and_can_be_continued(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = ("-m", "judge:model=tiny,max_tokens=100")
    options = ("--price", "2,8", "--concurrency", "1")
    assert main(["score", *SYSTEMS, *judge, *options, "--budget", "0.009"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    done = len(server.requests)
    assert 0 < done < 5
    assert "the budget of 0.009 is reached" in err
    assert f"judge: {done} requests" in err
    assert main(["score", *SYSTEMS, *judge, *options, "--budget", "1"]) == 0
    assert len(server.requests) == 5
    assert main(["score", *SYSTEMS, *judge, "--budget", "1"]) == 2
    assert "give --price IN,OUT" in capsys.readouterr().err


def test_segments_without_a_score_are_counted_and_listed(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.faults = {OURS[1]: ["refusal"] * 3}
    assert main(["score", *SYSTEMS, *JUDGE, "-f", "json", "-sl"]) == 0
    out, err = capsys.readouterr()
    ours, theirs = json.loads(out)
    assert ours["segments"] == [len(OURS[0]), None, len(OURS[2])]
    assert theirs["segments"][1] is None
    assert ours["warnings"] == {"score is not a number": 1, "no valid answer: refusal": 1}
    assert "warning: no valid answer: refusal: ours.txt 1, theirs.txt 1" in err
    assert "1 without a valid answer (refusal 1)" in err
    server.faults = {OURS[1]: ["refusal"] * 3}
    assert main(["score", *SYSTEMS, *JUDGE]) == 0
    out, _ = capsys.readouterr()
    assert "no score under judge:model=tiny for ours.txt: segment 2" in out


def test_every_command_uses_the_same_answers(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = len({*OURS, *THEIRS})
    assert main(["compare", *SYSTEMS, *JUDGE, "-q"]) == 0
    assert main(["report", *SYSTEMS, *JUDGE, "-q", "-o", "page.html"]) == 0
    assert "the first word" not in capsys.readouterr().out
    page = Path("page.html").read_text(encoding="utf-8")
    assert "Judge" in page
    assert "minor: style: the first word" in page, "the marked errors"
    assert main(["score", *SYSTEMS, *JUDGE, "-q", "--to-spans", "spans.jsonl"]) == 0
    spans = [json.loads(line)["spans"] for line in Path("spans.jsonl").read_text().splitlines()]
    place = {"start": 0, "end": 3, "side": "hypothesis"}
    kind = {"severity": "minor", "category": "style", "message": "the first word"}
    assert spans[0] == [place | kind]
    files = ("-s", "src.txt", "-t", "ours.txt", "--segment", "1")
    assert main(["explain", *files, *JUDGE]) == 0
    assert "'The': the first word" in capsys.readouterr().out
    assert main(["rank", *SYSTEMS, *JUDGE, "-q"]) == 0
    rows = [
        {"system": system, "segment": n + 1, "src": SOURCES[n], "mt": text, "score": 50 + n}
        for system, texts in (("ours", OURS), ("theirs", THEIRS))
        for n, text in enumerate(texts)
    ]
    for name in ("human.jsonl", "corpus.jsonl"):
        Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["meta", "--human", "human.jsonl", *JUDGE, "-q", "--test", "none"]) == 0
    assert len(server.requests) == answers
    assert SECRET not in page + capsys.readouterr().out


def test_corpus_uses_the_same_answers(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    rows = [{"src": source, "mt": text} for source, text in zip(SOURCES, OURS, strict=True)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["corpus", "rows.jsonl", *JUDGE, "-o", "scored", "--shards", "jsonl", "-q"]
    assert main([*command, "--workers", "1"]) == 0
    shard = next(Path("scored").rglob("*.jsonl"))
    scored = [json.loads(line) for line in shard.read_text().splitlines()]
    assert [row["judge:model=tiny"] for row in scored] == [float(len(text)) for text in OURS]
    assert len(server.requests) == 3
    assert main(["score", "-s", "src.txt", "-t", "ours.txt", *JUDGE, "-q"]) == 0
    answer_store.clear_memory()  # as in another process
    assert main([*command, "--workers", "1", "--resume"]) == 0
    answer_store.clear_memory()
    other = [word if word != "scored" else "other" for word in command]
    assert main([*other, "--workers", "2", "--part-rows", "1"]) == 0
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--price", "2"], "expected two numbers, such as 2,8"),
        (["--price", "2,x"], "expected two numbers, such as 2,8"),
        (["--price=-1,2"], "expected two numbers"),
        (["--concurrency", "0"], "expected 1 to 1000 requests"),
        (["--request-timeout", "0"], "expected a number above 0"),
        (["--judge-url", "http://example.org/v1"], "not encrypted and not on this machine"),
    ],
)
def test_invalid_options_are_one_line(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", *SYSTEMS, *JUDGE, *options]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_runtime_options_are_not_fields_of_the_judge(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", *SYSTEMS, "-m", "judge:model=tiny,concurrency=3"]) == 2
    assert "unknown field of judge 'concurrency'" in capsys.readouterr().err


def test_a_missing_httpx_names_the_extra(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    assert main(["score", *SYSTEMS, *JUDGE]) == 2
    assert 'judge needs httpx: pip install "tertium[judge]"' in capsys.readouterr().err

"""The metric `judge` on the command line: server, cost, budget and every command."""

from __future__ import annotations

import base64
import json
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.decisions import judged_files
from tests.metrics.judge.fake_server import (
    COMPLETION_TOKENS,
    PROMPT_TOKENS,
    FakeServer,
    Payload,
    forget_answers,
    run_server,
    translation_of,
)

from tertium.cli import main
from tertium.metrics.base.judge_run import format_cost
from tertium.metrics.judge import client

pytest.importorskip("httpx2")
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
    forget_answers()
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
    server: FakeServer, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
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
    assert (
        "judge: 5 requests, 5 answers; 2,000 input and 100 output tokens, cost 0.0048"
        in caplog.text
    )
    assert SECRET not in out + err + caplog.text
    assert main(["score", *SYSTEMS, *JUDGE]) == 0
    assert "0 requests, 0 answers, 5 answers from the cache" in caplog.text
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
    server: FakeServer, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    judge = ("-m", "judge:model=tiny,max_tokens=100")
    options = ("--price", "2,8", "--concurrency", "1")
    assert main(["score", *SYSTEMS, *judge, *options, "--budget", "0.009"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    done = len(server.requests)
    assert 0 < done < 5
    assert "the budget of 0.009 is reached" in err
    assert f"judge: {done} requests" in caplog.text
    assert main(["score", *SYSTEMS, *judge, *options, "--budget", "1"]) == 0
    assert len(server.requests) == 5
    assert main(["score", *SYSTEMS, *judge, "--budget", "1"]) == 2
    assert "give --price IN,OUT" in capsys.readouterr().err


def test_segments_without_a_score_are_counted_and_listed(
    server: FakeServer, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    server.faults = {OURS[1]: ["refusal"] * 2}
    judge = ("-m", "judge:model=tiny,min_coverage=0.6")
    assert main(["score", *SYSTEMS, *judge, "-f", "json", "-sl"]) == 0
    out, err = capsys.readouterr()
    ours, theirs = json.loads(out)
    assert ours["score"] == (len(OURS[0]) + len(OURS[2])) / 2
    assert ours["segments"] == [len(OURS[0]), None, len(OURS[2])]
    assert theirs["segments"][1] is None
    assert ours["warnings"] == {"score is not a number": 1, "no valid answer: refusal": 1}
    assert "warning: no valid answer: refusal: ours.txt 1, theirs.txt 1" in err
    assert "1 without a valid answer (refusal 1)" in caplog.text
    server.faults = {OURS[1]: ["refusal"] * 2}
    assert main(["score", *SYSTEMS, *judge]) == 0
    out, _ = capsys.readouterr()
    assert "no score under judge:model=tiny,min_coverage=0.6 for ours.txt: segment 2" in out


GATE = ("gate", "--baseline", "theirs.txt", "--candidate", "ours.txt", "-s", "src.txt")
MARGIN = ("--margin", "judge:model=tiny=5")
HUMAN = ("--human", "human.jsonl")
CORPUS_OUTPUT = ("-o", "scored", "--shards", "jsonl", "--workers", "1")
COMMANDS_WITH_A_JUDGE = {
    "score": ["score", *SYSTEMS, *JUDGE],
    "score quietly": ["score", *SYSTEMS, *JUDGE, "-q"],
    "score only": ["score", *SYSTEMS, *JUDGE, "-b"],
    "score with intervals": ["score", *SYSTEMS, *JUDGE, "--confidence", "-f", "json"],
    "score with spans": ["score", *SYSTEMS, *JUDGE, "-o", "spans:spans.jsonl"],
    "compare": ["compare", *SYSTEMS, *JUDGE],
    "compare by randomization": ["compare", *SYSTEMS, *JUDGE, "--paired-ar", "-f", "json"],
    "rank": ["rank", *SYSTEMS, *JUDGE],
    "gate": [*GATE, *JUDGE, *MARGIN],
    "gate that passes": [*GATE, *JUDGE, *MARGIN, "--undecided", "pass"],
    "gate with a floor": [*GATE, *JUDGE, *MARGIN, "--min", "judge:model=tiny=10"],
    "gate calibrate": ["gate", "calibrate", *GATE[1:], *JUDGE],
    "worst": ["worst", *SYSTEMS, *JUDGE],
    "explain": ["explain", "-s", "src.txt", "-t", "ours.txt", "--segment", "1", *JUDGE],
    "report": ["report", *SYSTEMS, *JUDGE, "-o", "page.html"],
    "report that explains": [
        *("report", *SYSTEMS, "-r", "theirs.txt", "-m", "chrf", "-o", "page.html"),
        *("--explain-with", "judge:model=tiny,against=source"),
    ],
    "meta": ["meta", *HUMAN, *JUDGE, "--test", "none"],
    "meta of systems": ["meta", *HUMAN, *JUDGE, "--test", "none", "--level", "system"],
    "corpus": ["corpus", "rows.jsonl", *JUDGE, *CORPUS_OUTPUT],
    "corpus in processes": ["corpus", "rows.jsonl", *JUDGE, *CORPUS_OUTPUT[:-1], "2"],
}


@pytest.mark.parametrize("command", COMMANDS_WITH_A_JUDGE)
def test_every_command_fails_without_valid_answers(
    server: FakeServer, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """It shows no score, and names one rejected answer with control characters escaped."""
    if command.startswith("corpus"):
        pytest.importorskip("pyarrow")
    server.answer = lambda payload: "\x1b[31mI like it.\n" + "a" * 5000
    write_human_rows()
    write_rows(OURS)
    assert main(COMMANDS_WITH_A_JUDGE[command]) == 3
    out, err = capsys.readouterr()
    error = err.splitlines()[-1]
    assert "too few valid answers: judge:model=tiny" in error
    assert "for 0 of " in error
    assert r"'\x1b[31mI like it.\naaa" in error
    assert "not exactly one JSON object" in error
    assert len(error) < 600
    assert "\x1b" not in out + err
    assert "nan" not in out
    assert "Traceback" not in err


@pytest.mark.parametrize("command", COMMANDS_WITH_A_JUDGE)
def test_an_odd_setting_is_an_error_before_the_work_starts(
    server: FakeServer, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    if command.startswith("corpus"):
        pytest.importorskip("pyarrow")
    write_human_rows()
    write_rows(OURS)
    arguments = COMMANDS_WITH_A_JUDGE[command]
    for odd, message in [("\udcff", "not UTF-8"), ("a" * 300, "at most 200")]:
        named = [part.replace("model=tiny", f"model={odd}") for part in arguments]
        assert main(named) == 2
        assert message in capsys.readouterr().err
    assert main([*arguments, "--judge-url", "http://localhost:99999/v1"]) == 2
    assert "URL of the server is not valid" in capsys.readouterr().err
    assert server.requests == []


def test_a_gate_without_enough_answers_writes_its_exit_code(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.faults = {OURS[0]: ["not json"] * 2}
    options = ("-f", "json", "--undecided", "pass")
    assert main([*GATE, *JUDGE, *MARGIN, *options]) == 3
    record = json.loads(capsys.readouterr().out)
    assert record["exit_code"] == 3
    assert record["tests"][0]["candidate"] is None
    assert record["tests"][0]["verdict"] == "undecided"
    assert record["cautions"] == ["no score under judge:model=tiny for ours.txt: segment 1"]


def test_a_corpus_has_no_mean_without_enough_answers(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    write_rows(OURS)
    server.faults = {OURS[1]: ["not json"] * 9}
    command = ["corpus", "rows.jsonl", *JUDGE, *CORPUS_OUTPUT, "-f", "json"]
    for arguments in (command, [*command, "--resume"]):
        assert main(arguments) == 3
        out, err = capsys.readouterr()
        (record,) = json.loads(out)["metrics"].values()
        assert record["mean"] is None
        assert record["scored"] == 2
        assert record["warnings"]["no valid answer: not exactly one JSON object"] == 1
        assert "for 2 of 3 segments" in err


def test_control_characters_in_reasons_are_not_printed(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answer = lambda payload: json.dumps({"reason": "bad \x1b[31m\u202e text", "score": 5})
    judge = ("-m", "judge:model=tiny,protocol=da")
    assert main(["explain", "-s", "src.txt", "-t", "ours.txt", "--segment", "1", *judge]) == 0
    out = capsys.readouterr().out
    assert "  - bad ␛[31m� text" in out


def write_human_rows() -> None:
    rows = [
        {"system": system, "segment": n + 1, "src": SOURCES[n], "mt": text, "score": 50 + n}
        for system, texts in (("ours", OURS), ("theirs", THEIRS))
        for n, text in enumerate(texts)
    ]
    Path("human.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


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
    assert main(["score", *SYSTEMS, *JUDGE, "-q", "-o", "spans:spans.jsonl"]) == 0
    spans = [json.loads(line)["spans"] for line in Path("spans.jsonl").read_text().splitlines()]
    place = {"start": 0, "end": 3, "side": "hypothesis"}
    kind = {"severity": "minor", "category": "style", "message": "the first word"}
    assert spans[0] == [place | kind]
    files = ("-s", "src.txt", "-t", "ours.txt", "--segment", "1")
    assert main(["explain", *files, *JUDGE]) == 0
    assert "'The': the first word" in capsys.readouterr().out
    assert main(["rank", *SYSTEMS, *JUDGE, "-q"]) == 0
    write_human_rows()
    assert main(["meta", "--human", "human.jsonl", *JUDGE, "-q", "--test", "none"]) == 0
    assert len(server.requests) == answers
    assert SECRET not in page + capsys.readouterr().out


def read_page_data(path: Path) -> str:
    """The data of the segment browser, which holds the explanations."""
    (data,) = re.findall(r'<script[^>]*id="data"[^>]*>([^<]*)<', path.read_text(encoding="utf-8"))
    return zlib.decompress(base64.b64decode(data)).decode()


def test_a_report_can_explain_with_a_judge_and_score_with_other_metrics(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    files = (*SYSTEMS, "-r", "theirs.txt", "-m", "chrf", "-q", "-o", "page.html")
    judge = ("--count", "1", "--explain-with", "judge:model=tiny,against=source")
    languages = ("--source-language", "de", "--target-language", "en")
    assert main(["report", *files, *judge, *languages]) == 0
    assert len(server.requests) == 2, "one segment of two systems"
    assert "in German" in server.requests[0]["messages"][0]["content"]
    explained = read_page_data(Path("page.html"))
    assert explained.count(">reasons of the judge<") == 2
    assert explained.count(": the first word</li>") == 2
    assert "suspected errors: 1" in explained
    assert main(["report", *files, "--explain-with", "chrf"]) == 2
    assert "it cannot explain its scores" in capsys.readouterr().err
    server.status = 401
    assert main(["report", *files, "--explain-with", "judge:model=other"]) == 2
    assert "refuses with status 401" in capsys.readouterr().err


def test_a_route_asks_the_judge_about_undecided_rows_only(
    server: FakeServer, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The judge knows the human scores, which TER predicts with much noise."""
    judged_rows = judged_files.make_rows(160, noise=12)
    new_rows = judged_files.make_rows(40, seed=9, noise=12)
    human_scores = {row["mt"]: row["score"] for row in judged_rows + new_rows}

    def answer_human_score(payload: Payload) -> str:
        return json.dumps({"reason": "", "score": human_scores[translation_of(payload)]})

    server.answer = answer_human_score
    judge = "judge:model=tiny,protocol=da,against=source"
    judged_files.write_rows(Path("judged.jsonl"), judged_rows)
    fit = ["route", "fit", "--human", "judged.jsonl", "-m", "ter", "--escalate", judge]
    options = ["--target-precision", "0.8", "--ignore", "wrong-language", "--price", "2,8"]
    assert main([*fit, *options, "-o", "route.json"]) == 0
    out, err = capsys.readouterr()
    fitted = len(server.requests)
    assert 0 < fitted < 160
    assert f"judge: {fitted} requests, {fitted} answers" in caplog.text
    assert f"Route by {judge}" in out
    _, second = json.loads(Path("route.json").read_text())["stages"]
    assert second["pairs"]["en-de"]["publish"]["low"] >= 0.8
    assert "served" not in second["signatures"][0]
    judged_files.write_rows(Path("new.jsonl"), new_rows, with_scores=False)
    server.faults = {row["mt"]: ["refusal"] * 2 for row in new_rows[:20]}
    apply = ["route", "apply", "route.json", "-t", "new.jsonl", "-f", "json", "-o", "labeled.jsonl"]
    assert main([*apply, "--price", "2,8"]) == 3, "half of the answers are not valid"
    out, err = capsys.readouterr()
    (saving,) = json.loads(out)["savings"]
    assert saving["scored"] + saving["avoided"] <= 40
    records = [json.loads(line) for line in Path("labeled.jsonl").read_text().splitlines()]
    judged_records = [record for record in records if judge in record["scores"]]
    assert len(judged_records) == saving["scored"]
    assert {record["mt"] for record in judged_records} == {
        *map(translation_of, server.requests[fitted:])
    }
    refused = [record for record in judged_records if record["scores"][judge] is None]
    assert refused
    assert {record["outcome"] for record in refused} == {"post-edit"}, "never published"
    assert (
        f"no score for {len(refused)} of {saving['scored']} rows" in json.loads(out)["warnings"][-1]
    )
    assert "too few valid answers" in err
    assert saving["cost"] == pytest.approx((len(judged_records) - len(refused)) * COST_OF_ONE)
    assert SECRET not in out + err + Path("route.json").read_text()
    server.answer = lambda payload: "no"
    other = [part.replace("tiny", "other") for part in fit]
    assert main([*other, *options, "-o", "other.json"]) == 3, "no answer at all"
    assert "One rejected answer: 'no' (not exactly one JSON object)" in capsys.readouterr().err


def write_rows(texts: list[str]) -> None:
    rows = [{"src": f"Satz {n}", "mt": text} for n, text in enumerate(texts)]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def read_shards(folder: str) -> list[float]:
    shards = sorted(Path(folder).glob("*.jsonl"))
    lines = [line for shard in shards for line in shard.read_text().splitlines()]
    return [json.loads(line)["judge:model=tiny,max_tokens=100"] for line in lines]


CORPUS = ("corpus", "rows.jsonl", "-m", "judge:model=tiny,max_tokens=100", "--shards", "jsonl")
PRICED = ("--price", "2,8", "--part-rows", "2", "-f", "json")


def test_corpus_uses_the_same_answers_and_counts_them(
    server: FakeServer, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("pyarrow")
    write_rows(OURS)
    assert main([*CORPUS, *PRICED, "-o", "scored", "--workers", "1"]) == 0
    assert read_shards("scored") == [float(len(text)) for text in OURS]
    assert len(server.requests) == 3
    out = capsys.readouterr().out
    usage = {
        "answers": 3,
        "prompt_tokens": 3 * PROMPT_TOKENS,
        "completion_tokens": 3 * COMPLETION_TOKENS,
        "cost": pytest.approx(3 * COST_OF_ONE),
    }
    (record,) = json.loads(out)["metrics"].values()
    assert record["usage"] == usage
    report = "judge: 3 requests, 3 answers, 1 answer from the cache"
    assert report in caplog.text, "the first row is tried"
    forget_answers()  # as in another process
    assert main([*CORPUS, *PRICED, "-o", "scored", "--workers", "1", "--resume"]) == 0
    (record,) = json.loads(capsys.readouterr().out)["metrics"].values()
    assert record["usage"] == usage, "read from the records of finished parts"
    assert len(server.requests) == 3


def test_workers_of_a_corpus_share_the_budget_and_report_what_they_used(
    server: FakeServer, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("pyarrow")
    texts = [f"sentence number {n:02}" for n in range(16)]
    write_rows(texts)
    server.latency = 0.02  # so that both workers get parts
    budget = ("--budget", str(7.5 * COST_OF_ONE + 0.006))  # a request may cost up to 0.006
    command = [*CORPUS, *PRICED, "-o", "scored"]
    assert main([*command, *budget, "--workers", "2", "--concurrency", "4"]) == 3
    err = capsys.readouterr().err
    done = len(server.requests)
    assert server.most_active <= 4, "both workers together"
    assert 5 <= done <= 13, "the budget holds for both workers together, and it is used"
    assert server.completions.total() == done
    assert f"judge: {done} requests, {done} answers" in caplog.text
    assert f"cost {format_cost(done * COST_OF_ONE)}" in caplog.text
    assert "answers so far are cached" in err
    assert "(with --resume)" in err
    forget_answers()
    assert main([*command, "--budget", "1", "--workers", "1", "--resume"]) == 0
    assert read_shards("scored") == [float(len(text)) for text in texts]
    assert server.completions == dict.fromkeys(texts, 1), "nothing lost, nothing paid twice"
    (record,) = json.loads(capsys.readouterr().out)["metrics"].values()
    assert record["usage"]["answers"] == len(texts)


def test_progress_bars_show_the_cost_so_far(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")  # for rich, a terminal
    server.latency = 0.3  # longer than the interval of the bars
    assert main(["score", *SYSTEMS, *JUDGE, "--price", "2,8", "--concurrency", "2"]) == 0
    err = capsys.readouterr().err
    shown = [float(amount) for amount in re.findall(r"cost (\d\.\d+)", err)]
    assert COST_OF_ONE <= min(shown) <= max(shown) <= 5 * COST_OF_ONE


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


def test_a_missing_httpx2_names_the_extra(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    assert main(["score", *SYSTEMS, *JUDGE]) == 2
    assert 'judge needs httpx2: pip install "tertium[judge]"' in capsys.readouterr().err

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
from tests.builders import read_cases, write_jsonl, write_lines
from tests.cli.conftest import Run
from tests.decisions.judged_files import make_rows
from tests.metrics.judge.fake_server import (
    COMPLETION_TOKENS,
    PROMPT_TOKENS,
    FakeServer,
    Payload,
    forget_answers,
    run_server,
    translation_of,
)

from tertium.data.record_files import read_records
from tertium.metrics.base.judge_run import format_cost
from tertium.metrics.judge import client

pytest.importorskip("httpx2")
SECRET = "sk-test-0123456789"  # not a key of any server
SOURCES = ["Die Katze sass da.", "Ein Hund bellte laut.", "Niemand kam nach Hause."]
OURS = ["The cat sat there.", "A dog barked.", "Nobody came home again."]
THEIRS = ["The cat sat.", "A dog barked.", "None."]
COST_OF_ONE = (2 * PROMPT_TOKENS + 8 * COMPLETION_TOKENS) / 1e6
INPUTS = "-s src.txt -t ours.txt theirs.txt"
SYSTEMS = f"{INPUTS} -m judge:model=tiny"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)
    forget_answers()
    for name, lines in {"src": SOURCES, "ours": OURS, "theirs": THEIRS}.items():
        write_lines(f"{name}.txt", lines)
    write_rows(OURS)
    rows = [
        {"system": system, "segment": n + 1, "src": SOURCES[n], "mt": text, "score": 50 + n}
        for system, texts in (("ours", OURS), ("theirs", THEIRS))
        for n, text in enumerate(texts)
    ]
    write_jsonl("human.jsonl", rows)


def write_rows(texts: list[str]) -> None:
    write_jsonl("rows.jsonl", ({"src": f"Satz {n}", "mt": text} for n, text in enumerate(texts)))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    with run_server() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


def test_score_prints_tokens_and_cost(
    server: FakeServer, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    printed = run(f"score {SYSTEMS} --price 2,8 -f json -sl")
    ours, _ = printed.json
    assert ours["segments"] == [float(len(text)) for text in OURS]
    assert ours["usage"] == {
        "answers": 3,
        "prompt_tokens": 3 * PROMPT_TOKENS,
        "completion_tokens": 3 * COMPLETION_TOKENS,
        "cost": pytest.approx(3 * COST_OF_ONE),
    }
    # both systems have one translation in common, which is sent once
    assert len(server.requests) == 5
    usage = "judge: 5 requests, 5 answers; 2,000 input and 100 output tokens, cost 0.0048"
    assert usage in caplog.text
    assert SECRET not in printed.out + printed.err + caplog.text
    run(f"score {SYSTEMS}")
    assert "0 requests, 0 answers, 5 answers from the cache" in caplog.text
    assert len(server.requests) == 5


def test_the_url_can_be_given(
    server: FakeServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL")
    run(f"score {SYSTEMS} -q", code=2)
    run(f"score {SYSTEMS} -q --judge-url {server.url}")


def test_dry_run_sends_nothing(
    server: FakeServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL")
    for command in ("score", "compare"):
        record = run(f"{command} {SYSTEMS} --dry-run --price 2,8 -f json").json
        assert (record["answers"], record["requests"], record["cached"]) == (5, 5, 0)
        expected = (2 * record["prompt_tokens"] + 8 * record["completion_tokens"]) / 1e6
        assert record["cost"] == pytest.approx(expected)
    assert "requests" in run(f"report {SYSTEMS} --dry-run --price 2,8").out
    assert server.requests == []
    assert not Path("report.html").exists()


def test_a_budget_stops_with_its_own_exit_code_and_can_be_continued(
    server: FakeServer, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    command = f"score {INPUTS} -m judge:model=tiny,max_tokens=100"
    priced = f"{command} --price 2,8 --concurrency 1"
    printed = run(f"{priced} --budget 0.009", code=3)
    assert printed.out == ""
    done = len(server.requests)
    assert 0 < done < 5
    assert "the budget of 0.009 is reached" in printed.err
    assert f"judge: {done} requests" in caplog.text
    run(f"{priced} --budget 1")
    assert len(server.requests) == 5
    assert "give --price IN,OUT" in run(f"{command} --budget 1", code=2).err


def test_segments_without_a_score_are_counted_and_listed(
    server: FakeServer, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    server.faults = {OURS[1]: ["refusal"] * 2}
    command = f"score {INPUTS} -m judge:model=tiny,min_coverage=0.6"
    printed = run(f"{command} -f json -sl")
    ours, theirs = printed.json
    assert ours["score"] == (len(OURS[0]) + len(OURS[2])) / 2
    assert ours["segments"] == [len(OURS[0]), None, len(OURS[2])]
    assert theirs["segments"][1] is None
    assert ours["warnings"] == {"score is not a number": 1, "no valid answer: refusal": 1}
    assert "warning: no valid answer: refusal: ours.txt 1, theirs.txt 1" in printed.err
    assert "1 without a valid answer (refusal 1)" in caplog.text
    server.faults = {OURS[1]: ["refusal"] * 2}
    missing = "no score under judge:model=tiny,min_coverage=0.6 for ours.txt: segment 2"
    assert missing in run(command).out


GATE = "--baseline theirs.txt --candidate ours.txt -s src.txt -m judge:model=tiny"
MARGIN = "--margin judge:model=tiny=5"
HUMAN = "--human human.jsonl -m judge:model=tiny --test none"
CORPUS = "corpus rows.jsonl -m judge:model=tiny -o scored --workers"
COMMANDS_WITH_A_JUDGE = [
    *(f"score {SYSTEMS}{options}" for options in ("", " -q", " -b", " --confidence -f json")),
    f"score {SYSTEMS} -o spans:spans.jsonl",
    f"compare {SYSTEMS}",
    f"compare {SYSTEMS} --paired-ar -f json",
    f"rank {SYSTEMS}",
    *(f"gate {GATE} {MARGIN}{options}" for options in ("", " --undecided pass")),
    f"gate {GATE} {MARGIN} --min judge:model=tiny=10",
    f"gate calibrate {GATE}",
    f"worst {SYSTEMS}",
    "explain -s src.txt -t ours.txt --segment 1 -m judge:model=tiny",
    f"report {SYSTEMS} -o page.html",
    f"report {INPUTS} -r theirs.txt -m chrf -o page.html "
    "--explain-with judge:model=tiny,against=source",
    f"meta {HUMAN}",
    f"meta {HUMAN} --level system",
    f"{CORPUS} 1",
    f"{CORPUS} 2",
]


@pytest.fixture(params=COMMANDS_WITH_A_JUDGE)
def command(request: pytest.FixtureRequest) -> str:
    if request.param.startswith("corpus"):
        pytest.importorskip("pyarrow")
    return str(request.param)


def test_every_command_fails_without_valid_answers(
    server: FakeServer, run: Run, command: str
) -> None:
    """It shows no score, and names one rejected answer with control characters escaped."""
    server.answer = lambda payload: "\x1b[31mI like it.\n" + "a" * 5000
    printed = run(command, code=3)
    error = printed.err.splitlines()[-1]
    for part in (
        "too few valid answers: judge:model=tiny",
        "for 0 of ",
        r"'\x1b[31mI like it.\naaa",
        "not exactly one JSON object",
    ):
        assert part in error
    assert len(error) < 600
    assert "\x1b" not in printed.out + printed.err
    assert "nan" not in printed.out
    assert "Traceback" not in printed.err


def test_an_odd_setting_is_an_error_before_the_work_starts(
    server: FakeServer, run: Run, command: str
) -> None:
    for odd, message in [("\udcff", "not UTF-8"), ("a" * 300, "at most 200")]:
        assert message in run(command.replace("model=tiny", f"model={odd}"), code=2).err
    error = run(f"{command} --judge-url http://localhost:99999/v1", code=2).err
    assert "URL of the server is not valid" in error
    assert server.requests == []


def test_a_gate_without_enough_answers_writes_its_exit_code(server: FakeServer, run: Run) -> None:
    server.faults = {OURS[0]: ["not json"] * 2}
    record = run(f"gate {GATE} {MARGIN} -f json --undecided pass", code=3).json
    assert record["exit_code"] == 3
    assert record["tests"][0]["candidate"] is None
    assert record["tests"][0]["verdict"] == "undecided"
    assert record["cautions"] == ["no score under judge:model=tiny for ours.txt: segment 1"]


def test_a_corpus_has_no_mean_without_enough_answers(server: FakeServer, run: Run) -> None:
    pytest.importorskip("pyarrow")
    server.faults = {OURS[1]: ["not json"] * 9}
    for resume in ("", "--resume"):
        printed = run(f"{CORPUS} 1 -f json {resume}", code=3)
        (record,) = printed.json["metrics"].values()
        assert (record["mean"], record["scored"]) == (None, 2)
        assert record["warnings"]["no valid answer: not exactly one JSON object"] == 1
        assert "for 2 of 3 segments" in printed.err


def test_control_characters_in_reasons_are_not_printed(server: FakeServer, run: Run) -> None:
    server.answer = lambda payload: json.dumps({"reason": "bad \x1b[31m\u202e text", "score": 5})
    judge = "-m judge:model=tiny,protocol=da"
    printed = run(f"explain -s src.txt -t ours.txt --segment 1 {judge}").out
    assert "  - bad ␛[31m� text" in printed


def test_every_command_uses_the_same_answers(server: FakeServer, run: Run) -> None:
    run(f"compare {SYSTEMS} -q")
    assert "the first word" not in run(f"report {SYSTEMS} -q -o page.html").out
    page = Path("page.html").read_text(encoding="utf-8")
    assert "Judge" in page
    assert "minor: style: the first word" in page, "the marked errors"
    run(f"score {SYSTEMS} -q -o spans:spans.jsonl")
    spans = [json.loads(line)["spans"] for line in Path("spans.jsonl").read_text().splitlines()]
    place = {"start": 0, "end": 3, "side": "hypothesis"}
    kind = {"severity": "minor", "category": "style", "message": "the first word"}
    assert spans[0] == [place | kind]
    explained = run("explain -s src.txt -t ours.txt --segment 1 -m judge:model=tiny").out
    assert "'The': the first word" in explained
    ranked = run(f"rank {SYSTEMS} -q").out
    agreement = run(f"meta {HUMAN} -q").out
    assert len(server.requests) == len({*OURS, *THEIRS})
    assert SECRET not in page + explained + ranked + agreement


def test_a_report_can_explain_with_a_judge_and_score_with_other_metrics(
    server: FakeServer, run: Run
) -> None:
    command = f"report {INPUTS} -r theirs.txt -m chrf -q -o page.html --explain-with"
    languages = "--source-language de --target-language en"
    run(f"{command} judge:model=tiny,against=source --count 1 {languages}")
    assert len(server.requests) == 2, "one segment of two systems"
    assert "in German" in server.requests[0]["messages"][0]["content"]
    page = Path("page.html").read_text(encoding="utf-8")
    (data,) = re.findall(r'<script[^>]*id="data"[^>]*>([^<]*)<', page)
    explained = zlib.decompress(base64.b64decode(data)).decode()  # of the segment browser
    assert explained.count(">reasons of the judge<") == 2
    assert explained.count(": the first word</li>") == 2
    assert "suspected errors: 1" in explained
    assert "it cannot explain its scores" in run(f"{command} chrf", code=2).err
    server.status = 401
    assert "refuses with status 401" in run(f"{command} judge:model=other", code=2).err


def test_a_route_asks_the_judge_about_undecided_rows_only(
    server: FakeServer, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    """The judge knows the human scores, which TER predicts with much noise."""
    judged_rows = make_rows(160, noise=12)
    new_rows = make_rows(40, seed=9, noise=12)
    human_scores = {row["mt"]: row["score"] for row in judged_rows + new_rows}

    def answer_human_score(payload: Payload) -> str:
        return json.dumps({"reason": "", "score": human_scores[translation_of(payload)]})

    server.answer = answer_human_score
    judge = "judge:model=tiny,protocol=da,against=source"
    write_jsonl("judged.jsonl", judged_rows)
    options = "--target-precision 0.8 --ignore wrong-language --price 2,8"
    fit = f"route fit --human judged.jsonl -m ter {options} --escalate"
    fitting = run(f"{fit} {judge} -o route.json")
    fitted = len(server.requests)
    assert 0 < fitted < 160
    assert f"judge: {fitted} requests, {fitted} answers" in caplog.text
    assert f"Route by {judge}" in fitting.out
    _, second = json.loads(Path("route.json").read_text())["stages"]
    assert second["pairs"]["en-de"]["publish"]["low"] >= 0.8
    assert "served" not in second["signatures"][0]
    unscored = ({key: value for key, value in row.items() if key != "score"} for row in new_rows)
    write_jsonl("new.jsonl", unscored)
    server.faults = {row["mt"]: ["refusal"] * 2 for row in new_rows[:20]}
    apply = "route apply route.json -t new.jsonl -f json -o labeled.jsonl --price 2,8"
    applying = run(apply, code=3)  # half of the answers are not valid
    (saving,) = applying.json["savings"]
    assert saving["scored"] + saving["avoided"] <= 40
    records = [json.loads(line) for line in Path("labeled.jsonl").read_text().splitlines()]
    judged_records = [record for record in records if judge in record["scores"]]
    assert len(judged_records) == saving["scored"]
    sent = {*map(translation_of, server.requests[fitted:])}
    assert {record["mt"] for record in judged_records} == sent
    refused = [record for record in judged_records if record["scores"][judge] is None]
    assert refused
    assert {record["outcome"] for record in refused} == {"post-edit"}, "never published"
    count = f"no score for {len(refused)} of {saving['scored']} rows"
    assert count in applying.json["warnings"][-1]
    assert "too few valid answers" in applying.err
    assert saving["cost"] == pytest.approx((len(judged_records) - len(refused)) * COST_OF_ONE)
    assert SECRET not in fitting.out + applying.out + applying.err + Path("route.json").read_text()
    server.answer = lambda payload: "no"
    error = run(f"{fit} {judge.replace('tiny', 'other')} -o other.json", code=3).err
    assert "One rejected answer: 'no' (not exactly one JSON object)" in error


def read_shards() -> list[float]:
    scores: list[float] = []
    for shard in sorted(Path("scored").glob("*.parquet")):
        records = read_records(shard)
        scores += [record["judge:model=tiny,max_tokens=100"] for _, record in records]
    return scores


PRICED = (
    "corpus rows.jsonl -m judge:model=tiny,max_tokens=100 -o scored "
    "--price 2,8 --part-rows 2 -f json --workers"
)


def test_corpus_uses_the_same_answers_and_counts_them(
    server: FakeServer, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("pyarrow")
    usage = {
        "answers": 3,
        "prompt_tokens": 3 * PROMPT_TOKENS,
        "completion_tokens": 3 * COMPLETION_TOKENS,
        "cost": pytest.approx(3 * COST_OF_ONE),
    }
    (record,) = run(f"{PRICED} 1").json["metrics"].values()
    assert read_shards() == [float(len(text)) for text in OURS]
    assert len(server.requests) == 3
    assert record["usage"] == usage
    report = "judge: 3 requests, 3 answers, 1 answer from the cache"
    assert report in caplog.text, "the first row is tried"
    forget_answers()  # as in another process
    (record,) = run(f"{PRICED} 1 --resume").json["metrics"].values()
    assert record["usage"] == usage, "read from the records of finished parts"
    assert len(server.requests) == 3


def test_workers_of_a_corpus_share_the_budget_and_report_what_they_used(
    server: FakeServer, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("pyarrow")
    texts = [f"sentence number {n:02}" for n in range(16)]
    write_rows(texts)
    server.latency = 0.02  # so that both workers get parts
    budget = f"--budget {7.5 * COST_OF_ONE + 0.006}"  # a request may cost up to 0.006
    error = run(f"{PRICED} 2 {budget} --concurrency 4", code=3).err
    done = len(server.requests)
    assert server.most_active <= 4, "both workers together"
    assert 5 <= done <= 13, "the budget holds for both workers together, and it is used"
    assert server.completions.total() == done
    assert f"judge: {done} requests, {done} answers" in caplog.text
    assert f"cost {format_cost(done * COST_OF_ONE)}" in caplog.text
    assert "answers so far are cached" in error
    assert "(with --resume)" in error
    forget_answers()
    (record,) = run(f"{PRICED} 1 --budget 1 --resume").json["metrics"].values()
    assert read_shards() == [float(len(text)) for text in texts]
    assert server.completions == dict.fromkeys(texts, 1), "nothing lost, nothing paid twice"
    assert record["usage"]["answers"] == len(texts)


ERRORS = """
--price 2 => expected two numbers, such as 2,8
--price 2,x => expected two numbers, such as 2,8
--price=-1,2 => expected two numbers
--concurrency 0 => expected 1 to 1000 requests
--request-timeout 0 => expected a number above 0
--judge-url http://example.org/v1 => not encrypted and not on this machine
"""


@pytest.mark.parametrize(("options", "message"), read_cases(ERRORS))
def test_invalid_options_are_one_line(options: str, message: str, run: Run) -> None:
    error = run(f"score {SYSTEMS} {options}", code=2).err
    assert message in error
    assert error.count("\n") == 1


def test_runtime_options_are_not_fields_of_the_judge(run: Run) -> None:
    error = run(f"score {INPUTS} -m judge:model=tiny,concurrency=3", code=2).err
    assert "unknown field of judge 'concurrency'" in error


@pytest.mark.usefixtures("server")
def test_a_missing_httpx2_names_the_extra(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    error = run(f"score {SYSTEMS}", code=2).err
    assert 'judge needs httpx2: pip install "tertium[judge]"' in error

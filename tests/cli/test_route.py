"""`tertium route`: fit and apply on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.decisions.judged_files import make_rows, write_rows

from tertium.cli import main

FIT = ["route", "fit", "--human", "judged.jsonl", "-m", "chrf", "--ignore", "wrong-language"]


@pytest.fixture
def judged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return write_rows(tmp_path / "judged.jsonl", make_rows(300))


@pytest.mark.usefixtures("judged_file")
def test_fit_and_apply(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FIT, "--target-precision", "0.8", "-o", "route.json"]) == 0
    table = capsys.readouterr().out
    assert "promise: at least 80 % of the published translations are good, with 95 %" in table
    assert "good: human score of at least 80; bad: below 50" in table
    write_rows(Path("new.jsonl"), make_rows(40, seed=5), with_scores=False)
    assert main(["route", "apply", "route.json", "-t", "new.jsonl", "-o", "labeled.jsonl"]) == 0
    assert "publish" in capsys.readouterr().out
    records = [json.loads(line) for line in Path("labeled.jsonl").read_text().splitlines()]
    assert {record["outcome"] for record in records} == {"publish", "post-edit", "retranslate"}
    published = next(record for record in records if record["outcome"] == "publish")
    assert published["reason"].startswith("chrf >= ")
    assert published["mt"]


@pytest.mark.usefixtures("judged_file")
def test_spreadsheets_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*FIT, "--target-precision", "0.8", "-o", "route.json", "-f", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(Path("route.json").read_text())
    write_rows(Path("new.jsonl"), make_rows(10, "en-fi"), with_scores=False)
    apply = ["route", "apply", "route.json", "-t", "new.jsonl"]
    assert main([*apply, "-o", "labeled.csv", "-f", "json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["outcomes"]["en-fi"]["publish"] == 0
    assert "its scores decide nothing" in printed.err
    header = Path("labeled.csv").read_text(encoding="utf-8-sig").splitlines()[0]
    assert header.endswith("outcome,reason,chrf")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "-m", "chrf", "-o", "r.json"], "arguments are required: --human"),
        (["fit", "--human", "judged.jsonl", "-o", "r.json"], "needs one metric"),
        (
            ["fit", "--human", "judged.jsonl", "-m", "chrf", "-o", "r.txt"],
            "r.txt: expected a name that ends in .json",
        ),
        (
            ["fit", "--human", "judged.jsonl", "-m", "chrf", "-t", "x"],
            "unrecognized arguments: -t x",
        ),
        (["apply"], "arguments are required: ROUTE"),
        (["apply", "judged.jsonl"], "judged.jsonl"),
        ([], "give `tertium route fit` or `tertium route apply`"),
        (["aply"], "unknown command 'route aply': did you mean 'route apply'"),
        (
            ["-t", "judged.jsonl", "apply", "r.json"],
            "give `tertium route fit` or `tertium route apply`",
        ),
        (
            ["apply", "r.json", "-t", "judged.jsonl", "-m", "chrf"],
            "unrecognized arguments: -m chrf",
        ),
        (["apply", "r.json", "-t", "judged.jsonl"], "r.json: no such file"),
        (
            ["apply", "r.json", "-t", "judged.jsonl", "-o", "x.txt"],
            "x.txt: expected a name that ends in",
        ),
    ],
)
@pytest.mark.usefixtures("judged_file")
def test_wrong_usage(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["route", *arguments]) == 2
    assert message in capsys.readouterr().err

"""`--fields`: names of columns in files of records."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tertium.cli import main

ROWS: list[dict[str, Any]] = [
    {"input": "ein Hund", "output": "a dog", "gold": "the dog", "topic": "pets"},
    {"input": "eine Katze", "output": "a cat", "gold": "a cat", "topic": "pets"},
    {"input": "ein Auto", "output": "a car", "gold": "one car", "topic": "cars"},
]
FIELDS = ["--fields", "hypothesis=output", "source=input", "reference=gold"]


def write_records(suffix: str, rows: list[dict[str, Any]]) -> str:
    path = Path(f"ours{suffix}")
    if suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif suffix == ".parquet":
        pytest.importorskip("pyarrow")
        pytest.importorskip("pandas").DataFrame(rows).to_parquet(path)
    elif suffix == ".xlsx":
        sheet = (workbook := pytest.importorskip("openpyxl").Workbook()).active
        for values in [[*rows[0]], *([*row.values()] for row in rows)]:
            sheet.append(values)
        workbook.save(path)
    else:
        with path.open("w", newline="") as file:
            writer = csv.writer(file, delimiter="," if suffix == ".csv" else "\t")
            writer.writerows([[*rows[0]], *([*row.values()] for row in rows)])
    return str(path)


@pytest.fixture(params=[".jsonl", ".tsv", ".csv", ".parquet", ".xlsx"])
def records(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return write_records(request.param, ROWS)


def test_fields_are_read_from_columns_of_any_name(
    records: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["score", "-t", records, *FIELDS, "-m", "chrf", "-sl", "--with-texts", "-f", "tsv"]
    assert main(command) == 0
    header, *lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert header[:5] == ["system", "segment", "source", "translation", "reference"]
    texts = [[row["input"], row["output"], row["gold"]] for row in ROWS]
    assert [line[2:5] for line in lines] == texts
    assert {line[0] for line in lines} == {"ours"}


def test_other_columns_keep_their_names(records: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "-t", records, *FIELDS, "-m", "chrf", "--by", "topic"]) == 0
    assert "cars" in capsys.readouterr().out
    assert main(["check", "-t", records, *FIELDS, "--select", "empty", "-q"]) == 0


def test_a_wrong_column_names_those_that_exist(
    records: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", "-t", records, "--fields", "hypothesis=outputs", "-m", "chrf"]) == 2
    error = capsys.readouterr().err
    assert "no column 'outputs' (--fields); columns are input, output, gold, topic" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (["hypothesis=output", "gold"], "--fields gold: expected NAME=COLUMN for each field"),
        (["hypothesis=output", "hypothesis=gold"], "--fields hypothesis is given twice"),
        (["hypothesis="], "--fields hypothesis=: expected NAME=COLUMN"),
        (["=output"], "--fields =output: expected NAME=COLUMN"),
        (["src,mt"], "--fields is for a .tsv or .csv file without a header"),
    ],
)
def test_wrong_fields_are_errors(
    fields: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_records(".jsonl", ROWS)
    assert main(["score", "-t", path, "--fields", *fields, "-m", "chrf"]) == 2
    assert message in capsys.readouterr().err


def test_a_field_is_read_from_its_column_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_records(".jsonl", [{**row, "mt": "nothing alike", "ref": "x"} for row in ROWS])
    both = ["--fields", "hypothesis=output", "reference=output"]
    assert main(["score", "-t", path, *both, "-m", "chrf", "-b"]) == 0
    assert capsys.readouterr().out == "100.00\n"


def test_one_column_may_be_two_fields(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_records(".tsv", ROWS)
    both = ["--fields", "hypothesis=output", "reference=output"]
    assert main(["score", "-t", path, *both, "-m", "chrf", "-b"]) == 0
    assert capsys.readouterr().out == "100.00\n"


def test_a_table_without_a_header_has_names_of_all_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bare.tsv").write_text("ein Hund\ta dog\ta dog\n")
    assert main(["score", "-t", "bare.tsv", "--fields", "src,mt,ref", "-m", "chrf", "-b"]) == 0
    assert capsys.readouterr().out == "100.00\n"

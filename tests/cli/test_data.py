"""`tertium list data` lists and describes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.builders import write_jsonl, write_lines
from tests.cli.conftest import Run

RECORD = {"system": "A", "segment": "1", "mt": "x", "ref": "y", "score": 0.25}


def test_sets_are_listed_and_described(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_jsonl(tmp_path / "da" / "mine" / "cs-en.jsonl", [RECORD, {**RECORD, "score": None}])
    printed = run(f"list data --data {tmp_path}").out
    assert printed.startswith("1 set in ")
    assert "da/mine" in printed
    assert "cs-en" in printed
    monkeypatch.setenv("TERTIUM_DATA", str(tmp_path))
    assert run("list data -f tsv").rows[0][0] == "name"
    (record,) = run("list data da/mine/ -f json").json
    assert [record[key] for key in ("lp", "rows", "mean", "left out")] == ["cs-en", 1, 0.25, 1]


def test_unknown_values_have_the_mark_of_each_format(tmp_path: Path, run: Run) -> None:
    of_no_system = {key: value for key, value in RECORD.items() if key != "system"}
    write_jsonl(tmp_path / "da" / "mine" / "cs-en.jsonl", [of_no_system])
    command = f"list data da/mine --data {tmp_path} -f"
    (record,) = run(f"{command} json").json
    assert (record["systems"], record["joint"]) == (None, 0)
    row = dict(zip(*run(f"{command} tsv").rows, strict=True))
    assert (row["systems"], row["joint"]) == ("nan", "0")
    text = run(f"{command} text").out
    assert "–" in text
    assert "0" in text.split()


def test_list_and_description_have_the_same_counts(tmp_path: Path, run: Run) -> None:
    rows = ["1\tA\t3\tx\ty", "1\tB\t2\tz\ty"]
    texts = {"segment": 1, "source": "s", "outputs": {"A": "x", "B": "z"}}
    comparisons = ["1\tA\tB\ta", "", "1\tA\tB\tb", ""]  # blank lines are no rows
    write_lines(tmp_path / "mine/de-en.tsv", ["segment\tsystem\tscore\tmt\tref", *rows])
    write_lines(tmp_path / "other/de-en.tsv", ["Segment\tModel\tScore\tmt\tref", *rows])
    write_jsonl(tmp_path / "ranked/de-en.texts.jsonl", [texts])
    header = "segment\tsystem_a\tsystem_b\tpreference"
    write_lines(tmp_path / "ranked/de-en.judgements.tsv", [header, *comparisons])
    listed = run(f"list data --data {tmp_path} -f json").json
    assert len(listed) == 3
    for entry in listed:
        (described,) = run(f"list data {entry['name']} --data {tmp_path} -f json").json
        assert (entry["rows"], described["rows"], described["systems"]) == (2, 2, 2)
    write_jsonl(tmp_path / "ranked/de-en.texts.jsonl", [{"segment": 1}])
    error = run(f"list data ranked --data {tmp_path}", code=2).err
    assert "line 1: expected segment and outputs (system -> text)" in error

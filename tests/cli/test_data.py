"""`tertium list data` lists and describes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tertium.cli import main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    file = tmp_path / "da" / "mine" / "cs-en.jsonl"
    file.parent.mkdir(parents=True)
    record = {"system": "A", "segment": "1", "mt": "x", "ref": "y", "score": 0.25}
    file.write_text(json.dumps(record) + "\n" + json.dumps({**record, "score": None}) + "\n")
    return tmp_path


def test_sets_are_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "data", "--data", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "da/mine" in out
    assert "cs-en" in out
    assert out.startswith("1 set in ")


def test_one_set_is_described_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "data", "da/mine/", "--data", str(folder), "-f", "json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert [record[key] for key in ("lp", "rows", "mean", "left out")] == ["cs-en", 1, 0.25, 1]


def test_environment_variable_sets_the_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERTIUM_DATA", str(folder))
    assert main(["list", "data", "-f", "tsv"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split("\t")[0] == "name"


def test_no_folder_and_unknown_sets_exit_2(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TERTIUM_DATA", raising=False)
    assert main(["list", "data"]) == 2
    assert "set TERTIUM_DATA" in capsys.readouterr().err
    assert main(["list", "data", "da/min", "--data", str(folder)]) == 2
    assert "did you mean 'da/mine'" in capsys.readouterr().err


def test_unknown_values_are_a_dash_in_every_format(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = {"segment": "1", "mt": "x", "ref": "y", "score": 0.25}  # of no system
    (folder / "da" / "mine" / "cs-en.jsonl").write_text(json.dumps(record) + "\n")
    printed = {}
    for style in ("text", "tsv", "json"):
        assert main(["list", "data", "da/mine", "--data", str(folder), "-f", style]) == 0
        printed[style] = capsys.readouterr().out
    (records,) = json.loads(printed["json"])
    assert records["systems"] is None
    header, row = (line.split("\t") for line in printed["tsv"].splitlines())
    assert row[header.index("systems")] == "nan"
    assert "–" in printed["text"]
    assert (records["joint"], row[header.index("joint")], "0" in printed["text"].split()) == (
        0,
        "0",
        True,
    )


def test_list_and_description_have_the_same_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "1\tA\t3\tx\ty\n1\tB\t2\tz\ty\n"
    texts = json.dumps({"segment": 1, "source": "s", "outputs": {"A": "x", "B": "z"}})
    files = {
        "mine/de-en.tsv": f"segment\tsystem\tscore\tmt\tref\n{rows}",  # was not read as JSONL
        "other/de-en.tsv": f"Segment\tModel\tScore\tmt\tref\n{rows}",  # of no known system
        "ranked/de-en.texts.jsonl": f"{texts}\n",
        "ranked/de-en.judgements.tsv": "segment\tsystem_a\tsystem_b\tpreference\n"
        "1\tA\tB\ta\n\n1\tA\tB\tb\n\n",  # blank lines are no rows
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert main(["list", "data", "--data", str(tmp_path), "-f", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    for entry in listed:
        assert main(["list", "data", entry["name"], "--data", str(tmp_path), "-f", "json"]) == 0
        (described,) = json.loads(capsys.readouterr().out)
        assert (entry["rows"], described["rows"], described["systems"]) == (2, 2, 2)
    (tmp_path / "ranked/de-en.texts.jsonl").write_text('{"segment": 1}\n')
    assert main(["list", "data", "ranked", "--data", str(tmp_path)]) == 2
    assert "line 1: expected segment and outputs (system -> text)" in capsys.readouterr().err

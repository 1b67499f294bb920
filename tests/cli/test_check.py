"""`tertium check`: formats, settings and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tertium.cli import main


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    Path("source.txt").write_text("You have {count} files.\nIn 1947\n")
    Path("ours.txt").write_text("Sie haben {n} Dateien.\nIm Jahr 1947\n")
    return ["-s", "source.txt", "-t", "ours.txt", "--target-language", "de"]


def test_findings_are_listed(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *files]) == 0
    output = capsys.readouterr()
    assert "placeholder {count} is missing in the translation" in output.out
    assert "ours.txt: 2 findings, 50.0 % of segments are clean" in output.err


def test_nothing_is_printed_if_nothing_is_found(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for style in ("text", "md"):
        assert main(["check", *files, "--select", "empty", "-f", style]) == 0
        output = capsys.readouterr()
        assert output.out == ""
    main(["check", *files, "--select", "empty", "-f", "tsv"])
    assert capsys.readouterr().out.startswith("system\tsegment")


def test_json_and_tsv_have_offsets(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", *files, "-f", "json"])
    record = json.loads(capsys.readouterr().out)
    assert record["systems"]["ours.txt"]["counts"] == {"placeholders": 1}
    assert [(f["side"], f["start"], f["end"]) for f in record["findings"]] == [
        ("source", 9, 16),
        ("hypothesis", 10, 13),
    ]
    main(["check", *files, "-f", "tsv"])
    header, first, _ = capsys.readouterr().out.splitlines()
    assert header.split("\t")[:3] == ["system", "segment", "check"]
    assert first.split("\t")[7] == "{count}"


def test_exit_code_and_selection(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *files, "--fail-on", "critical"]) == 1
    assert main(["check", *files, "--fail-on", "minor", "--ignore", "placeholders"]) == 0
    assert main(["check", *files, "--select", "placeholder"]) == 2
    assert "unknown check 'placeholder': did you mean 'placeholders'" in capsys.readouterr().err


def test_settings_file_of_the_folder_is_read(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("tertium.toml").write_text('[check.severity]\nplaceholders = "minor"\n')
    assert main(["check", *files, "--fail-on", "major"]) == 0
    Path("tertium.toml").write_text("[check.suppress]\nplaceholders = [1]\n")
    assert main(["check", *files, "--fail-on", "minor"]) == 0
    assert main(["check", *files, "--config", "missing.toml"]) == 2
    assert "missing.toml: no such file" in capsys.readouterr().err


def test_findings_are_written(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *files, "-o", "f.tsv", "f.xlsx", "f.html", "--summary"]) == 0
    assert "clean segments (%)" in capsys.readouterr().out
    assert len(Path("f.tsv").read_text().splitlines()) == 3
    assert Path("f.xlsx").stat().st_size > 0
    assert "{count}</mark>" in Path("f.html").read_text()
    assert main(["check", *files, "-o", "f.doc"]) == 2
    assert "f.doc: expected a name that ends in .json, .jsonl, .tsv" in capsys.readouterr().err
    assert main(["check", *files, "-o", "f.tsv", "f.tsv"]) == 2
    assert "-o and -o both write f.tsv" in capsys.readouterr().err


def test_glossary_and_names_and_length(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("terms.csv").write_text("source,target\nfiles,Akten\n")
    Path("names.txt").write_text("files\n")
    options = ["--terms", "terms.csv", "--do-not-translate", "names.txt", "--max-length", "9"]
    main(["check", *files, *options, "--summary", "-f", "tsv"])
    counts = dict(line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert counts["terms"] == "1"
    assert counts["do-not-translate"] == "1"
    assert counts["max-length"] == "2"


def test_checks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "checks", "-f", "tsv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("placeholders\tcritical\tall\tEvery placeholder")
    assert lines[-1].startswith("consistency")
    assert main(["check"]) == 2
    assert "-t is missing: give system outputs" in capsys.readouterr().err

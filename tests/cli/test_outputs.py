"""Output files: written where requested, by suffix and kind, never over an input file."""

from __future__ import annotations

import json
import shlex
import stat
import sys
from pathlib import Path

import pytest

from tertium.cli import main

ONLY_UNIX = pytest.mark.skipif(sys.platform == "win32", reason="links and devices of Unix")
STRINGS = Path(__file__).parents[2] / "examples" / "localization" / "app.de.xliff"


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("the cat sat\nit rains\n")
    Path("ref.txt").write_text("the cat sat\nit is raining\n")
    Path("b.txt").write_text("a cat sat\nit rained\n")
    Path("labels.txt").write_text("x\ny\n")
    Path("strings.xliff").write_bytes(STRINGS.read_bytes())
    return tmp_path


SCORE = ["score", "-t", "a.txt", "-r", "ref.txt", "-m", "chrf"]
WRITING = [
    [*SCORE, "-o"],
    ["compare", "-t", "a.txt", "ref.txt", "-r", "ref.txt", "-m", "chrf", "-o"],
    ["report", "-t", "a.txt", "-r", "ref.txt", "-m", "chrf", "-o"],
]
# The tables below hold the words after `-t a.txt -r ref.txt -m chrf` for `score`, a whole line for
# the others.
LINES = {
    "score": "score -t a.txt -r ref.txt -m chrf",
    "spans": "score -t a.txt -s ref.txt -m checks",
    "compare": "compare -t a.txt b.txt -r ref.txt -m chrf",
    "check": "check -t a.txt -s ref.txt",
    "gate": "gate --baseline a.txt --candidate b.txt -r ref.txt -m chrf --margin chrf=50",
    "worst": "worst -t a.txt -r ref.txt -m chrf",
    "report": "report -t a.txt -r ref.txt -m chrf",
    "fit": "route fit --human a.txt -m chrf",
}


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        # an output never replaces an input, whatever option names it
        ("score", "-o a.txt", "-o a.txt is also an input file: give another name"),
        ("score", "-o scores:ref.txt", "-o ref.txt is also an input file"),
        ("score", "--by topic=labels.txt -o ./labels.txt", "is also an input file"),
        ("check", "-o findings:a.txt", "-o a.txt is also an input file"),
        ("check", "--terms labels.txt -o labels.txt", "is also an input file"),
        ("gate", "-o b.txt", "-o b.txt is also an input file"),
        ("worst", "--human labels.txt -o labels.txt", "is also an input file"),
        ("report", "--human labels.txt -o labels.txt", "is also an input file"),
        ("report", "--challenge labels.txt -o labels.txt", "is also an input file"),
        ("fit", "-o a.txt", "is also an input file"),
        ("check", "-t strings.xliff --write-back strings.xliff", "is also an input file"),
        # two outputs, one file
        ("score", "-o new.json ./new.json", "-o and -o both write new.json: give two files"),
        ("score", "-o new.json -o scores:new.json", "both write new.json"),
        ("check", "-o new.xlsx --write-back new.xlsx", "both write new.xlsx"),
        # places
        ("score", "-o -", "-o -: expected a file name; use /dev/stdout for stdout"),
        ("score", "-o", "-o/--output: expected at least one argument"),
        ("score", "-o no/folder/x.json", "the folder no/folder does not exist"),
        ("score", "-o spans:no/folder/x.jsonl", "the folder no/folder does not exist"),
        ("check", "--write-back no/folder/x.xliff", "the folder no/folder does not exist"),
        # suffixes and kinds
        ("score", "-o x.doc", "x.doc: expected a name that ends in .tsv, .csv, .jsonl, .parquet"),
        ("score", "-o x", "x: expected a name that ends in .tsv"),
        ("score", "-o x.svg", "x.svg: expected a name that ends in .tsv"),
        ("score", "-o spans:x.jsonl", "chrf cannot mark error spans; add a metric that can"),
        ("spans", "-o x.jsonl", ".jsonl files hold scores or spans; give -o scores:x.jsonl or"),
        ("spans", "-o spans:x.xlsx", "x.xlsx: expected a name that ends in .jsonl, .tsv"),
        ("spans", "-o scores:x.html", "x.html: expected a name that ends in .tsv, .csv"),
        ("compare", "-o junit:x.xml", "this command writes no junit, but results:"),
        ("check", "-o x.xml", "x.xml: expected a name that ends in .json, .jsonl, .tsv"),
        ("gate", "-o findings:x.xml", "x.xml: expected a name that ends in .sarif"),
        ("gate", "-o junit:x.sarif", "x.sarif: expected a name that ends in .xml"),
        ("report", "-o x.json", "x.json: expected a name that ends in .html"),
    ],
)
def test_bad_outputs_fail_before_the_work(
    texts: Path, command: str, words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in texts.iterdir()}
    assert main(shlex.split(f"{LINES[command]} {words}")) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert {path.name: path.read_bytes() for path in texts.iterdir()} == before


@pytest.mark.parametrize(
    ("command", "words", "start"),
    [
        ("score", "-o scores:x.tsv", "system\tmetric\tsegment\tscore"),
        ("score", "-o results:x.json", '[\n {\n  "system": "a.txt"'),
        ("score", "--only-system -o x.md", "| system |"),
        ("spans", "-o spans:x.tsv", "metric\tsystem\tsegment"),
        ("spans", "-o scores:x.jsonl", '{"system": "a.txt", "metric": "checks", "segment": '),
        ("compare", "-o x.tsv", "system\tmetric\tscore\tlow\thigh"),
        ("check", "-o findings:x.sarif", '{\n "$schema"'),
        ("check", "-o findings:x.jsonl", '{"system": "a.txt", "segment": '),
        ("gate", "-o junit:x.xml", "<?xml"),
        ("gate", "-o results:x.json", '{\n "verdict"'),
        ("worst", "-o x.jsonl", '{"rank": 1'),
        ("report", "-o results:x.html", "<!doctype html>"),
    ],
)
def test_kinds_and_suffixes_choose_the_format(
    texts: Path, command: str, words: str, start: str
) -> None:
    Path("a.txt").write_text("the {cat}\nit  rains\n")
    assert main([*shlex.split(f"{LINES[command]} {words}"), "-q"]) in (0, 3)
    (path,) = (path for path in texts.iterdir() if path.stem == "x")
    assert path.read_text(encoding="utf-8").startswith(start)


def test_one_command_writes_several_kinds(texts: Path) -> None:
    files = "all.json all.html spans:spans.tsv scores:scores.tsv scores.xlsx".split()
    assert main([*shlex.split(LINES["spans"]), "-q", "-o", *files]) == 0
    names = {path.name for path in texts.iterdir()}
    assert {"all.json", "all.html", "spans.tsv", "scores.tsv", "scores.xlsx"} <= names


def test_a_checked_file_is_not_overwritten(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("-o", "--write-back"):
        before = Path("strings.xliff").read_bytes()
        assert main(["check", "strings.xliff", option, "strings.xliff"]) == 2
        assert f"{option} strings.xliff is also an input file" in capsys.readouterr().err
        assert Path("strings.xliff").read_bytes() == before


def test_control_characters_in_names_are_replaced(
    texts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Warnings and errors print system names without control characters."""
    row = {"system": "a\x1b[2J", "segment": 1, "mt": "", "ref": "x"}
    Path("set.jsonl").write_text(json.dumps(row) + "\n")
    command = ["score", "-t", "set.jsonl", "-m", "chrf", "-f", "json"]
    assert main(command) == 0
    assert capsys.readouterr().err == "tertium: warning: empty hypothesis: a␛[2J 1\n"
    other = {**row, "system": "b", "ref": "another\x1b"}
    Path("set.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(other) + "\n")
    assert main(command) == 2
    message = capsys.readouterr().err
    assert "other references" in message
    assert "\x1b" not in message


@ONLY_UNIX
@pytest.mark.parametrize("command", WRITING, ids=lambda c: f"{c[0]} {c[-1]}")
@pytest.mark.parametrize("name", ["a.txt", "ref.txt", "link", "./a.txt"])
def test_input_files_are_not_overwritten(
    texts: Path, capsys: pytest.CaptureFixture[str], command: list[str], name: str
) -> None:
    Path("link").symlink_to("a.txt")
    before = {file: Path(file).read_bytes() for file in ("a.txt", "ref.txt")}
    assert main([*command, name]) == 2
    error = capsys.readouterr().err
    assert f"{command[-1]} {name} is also an input file" in error
    assert error.count("\n") == 1
    assert {file: Path(file).read_bytes() for file in before} == before


@ONLY_UNIX
def test_a_challenge_set_is_not_overwritten(
    texts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("labels.svg").write_text("x\n")
    assert main(["meta", "challenge", "labels.svg", "-m", "chrf", "-o", "./labels.svg"]) == 2
    assert "./labels.svg is also an input file" in capsys.readouterr().err
    assert Path("labels.svg").read_text().startswith("x\n")


@ONLY_UNIX
def test_devices_and_links_are_preserved(texts: Path) -> None:
    Path("link.json").symlink_to("goal.json")
    Path("null.json").symlink_to("/dev/null")
    assert main([*SCORE, "-q", "-o", "link.json", "null.json"]) == 0
    assert Path("link.json").is_symlink()
    assert json.loads(Path("goal.json").read_text())
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize("command", WRITING, ids=lambda c: f"{c[0]} {c[-1]}")
def test_too_long_file_name_fails_early(
    texts: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert main([*command, "x" * 300 + ".tsv"]) == 2
    error = capsys.readouterr().err
    assert "the file name is too long (304 bytes" in error
    assert error.count("\n") == 1

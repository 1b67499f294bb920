"""Output files: written where requested, never over an input file."""

from __future__ import annotations

import argparse
import json
import stat
import sys
from pathlib import Path

import pytest

from tertium.cli import main, make_parser
from tertium.cli.output import INPUT_OPTIONS, OUTPUT_OPTIONS

ONLY_UNIX = pytest.mark.skipif(sys.platform == "win32", reason="links and devices of Unix")


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("the cat sat\nit rains\n")
    Path("ref.txt").write_text("the cat sat\nit is raining\n")
    return tmp_path


SCORE = ["score", "-t", "a.txt", "-r", "ref.txt", "-m", "chrf"]
WRITING = [
    [*SCORE, "--to-json"],
    [*SCORE, "--report"],
    [*SCORE, "-o"],
    ["compare", "-t", "a.txt", "ref.txt", "-r", "ref.txt", "-m", "chrf", "--to-json"],
    ["report", "-t", "a.txt", "-r", "ref.txt", "-m", "chrf", "-o"],
]


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
@pytest.mark.parametrize(
    "command",
    [
        [*SCORE, "--by", "topic=labels.svg", "--to-json"],
        ["report", "-t", "a.txt", "-r", "ref.txt", "-m", "chrf", "--by", "topic=labels.svg", "-o"],
        ["report", *SCORE[1:], "--challenge", "labels.svg", "-o"],
        ["meta", "challenge", "labels.svg", "-m", "chrf", "-o"],
    ],
)
def test_labels_and_challenge_sets_are_not_overwritten(
    texts: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    Path("labels.svg").write_text("x\n" * len(Path("a.txt").read_text().splitlines()))
    assert main([*command, "./labels.svg"]) == 2
    assert f"{command[-1]} ./labels.svg is also an input file" in capsys.readouterr().err
    assert Path("labels.svg").read_text().startswith("x\n")


@ONLY_UNIX
def test_two_outputs_need_two_files(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SCORE, "--to-json", "new", "--report", "./new"]) == 2
    assert "both write new" in capsys.readouterr().err
    assert main([*SCORE, "-q", "--to-json", "/dev/null", "--report", "/dev/null"]) == 0


@ONLY_UNIX
def test_devices_and_links_are_preserved(texts: Path) -> None:
    Path("link").symlink_to("goal.json")
    for name in ("link", "/dev/null"):
        assert main([*SCORE, "-q", "--to-json", name]) == 0
    assert Path("link").is_symlink()
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


def test_every_file_option_is_declared_as_input_or_output() -> None:
    """Only commands that write files need the declaration."""
    unknown = []
    for command, parser in _commands().items():
        files = {a.dest for a in parser._actions if a.metavar == "FILE"}
        if files & set(OUTPUT_OPTIONS):
            unknown += [
                f"{command} {name}" for name in files - set(OUTPUT_OPTIONS) - set(INPUT_OPTIONS)
            ]
    assert unknown == []


def _commands() -> dict[str, argparse.ArgumentParser]:
    actions = make_parser()._actions
    (commands,) = [a for a in actions if isinstance(a, argparse._SubParsersAction)]
    return dict(commands.choices)

"""The command line in general: repeated options, failing streams, interrupts, errors."""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.cli_reference import command_parsers

from tertium.cli import main
from tertium.version import __version__

EXAMPLES = Path(__file__).parents[2] / "examples"
TEXT = str(EXAMPLES / "system-good.en.txt")
SCORE = ["score", "-t", str(EXAMPLES / "examples.jsonl"), "-m", "chrf"]
DISAGREEMENT = ["meta", "disagreement", "--human", str(EXAMPLES / "ratings.csv")]


def test_unknown_commands_get_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scor"]) == 2
    message = capsys.readouterr().err
    assert all(name in message for name in ("did you mean 'score'", "compare"))


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"tertium {__version__}\n"


def test_list_options_can_be_repeated() -> None:
    for name, parser in command_parsers().items():
        for action in parser._actions:
            if action.nargs == "+" and action.option_strings:
                assert isinstance(action, argparse._ExtendAction), (name, action.option_strings)


def test_repeated_translations_option_adds_systems(capsys: pytest.CaptureFixture[str]) -> None:
    good, fair = (str(EXAMPLES / f"system-{name}.en.txt") for name in ("good", "fair"))
    reference = str(EXAMPLES / "reference-a.en.txt")
    assert main(["score", "-t", good, "-t", fair, "-r", reference, "-m", "chrf", "-b"]) == 0
    assert len(capsys.readouterr().out.split()) == 2


def test_output_is_utf8_in_any_locale() -> None:
    command = [sys.executable, "-m", "tertium", *SCORE]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    completed = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert completed.returncode == 0, completed.stderr.decode()
    assert "chrF ↑" in completed.stdout.decode("utf-8")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_full_disk_is_a_one_line_error() -> None:
    with Path("/dev/full").open("w") as full:
        completed = subprocess.run(
            [sys.executable, "-m", "tertium", *SCORE],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            text=True,
        )
    assert completed.returncode == 2
    assert completed.stderr.count("\n") == 1
    assert "No space left" in completed.stderr


def test_interrupt_has_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class InterruptedInput(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(InterruptedInput()))
    assert main(["score", "-t", "-", "-r", TEXT, "-m", "chrf"]) == 130
    assert capsys.readouterr().err == "tertium: interrupted\n"


def test_unwritable_output_fails_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # root may write everywhere, so os.access is replaced
    monkeypatch.setattr("os.access", lambda path, mode: str(path) != str(tmp_path))
    assert main(["score", "-t", "missing", "-m", "chrf", "-o", str(tmp_path / "a.json")]) == 2
    assert "no permission" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ([*SCORE[:3], "-m", "pairwise"], "pairwise is a ranker"),
        (
            ["explain", "--text", "-t", "a", "-r", "b", "-m", "pairwise"],
            "give two or more",
        ),
        ([*SCORE[:3], "-m", "bleu,chrf"], "separate metrics with spaces, not commas: bleu chrf"),
        ([*SCORE[:3], "-m", "chr++"], "'chrf++'"),
        (["score", "-t", "-", "-r", "-", "-m", "chrf"], "- (standard input) is given twice"),
        ([*DISAGREEMENT, "-m", "chrf", "chrf"], "metric 'chrf' is given twice"),
        ([*DISAGREEMENT, "-m", "chrf", "bleu", "ter"], "-m chrf bleu ter: expected two metrics"),
        ([*DISAGREEMENT, "-m", "chrf"], "-m chrf: expected two metrics"),
        (DISAGREEMENT, "no -m: expected two metrics"),
        ([*DISAGREEMENT[:2], "-m", "chrf", "bleu"], "required: --human"),
        (["analyse", "x.tsv", "-m", "chrf", "bleu"], "use `tertium meta disagreement --human"),
        (
            ["explain", "--text", "-t", "a", "-r", "b", "--count", "-3"],
            "--count -3",
        ),
        (["list", "models/nope"], "models/nope: not the folder of a saved metric"),
        (["list", "citations", "chrf", "bleu:nonsense=3"], "unknown field of bleu 'nonsense'"),
        (["list", "citations", "bleu:tokenize=13b"], "unknown tokenizer '13b'"),
        (["list", "chrf++:beta=-1"], "beta must be from 0 to 1000"),
        ([*SCORE[:3], "-m", "chrf", "--by", "length", "length"], "--by length is given twice"),
        (["compare", "-t", "a", "b", "--by", "d=x", "d=y"], "--by d is given twice"),
        (["report", "-t", "a", "b", "--by", "length", "--by", "length"], "length is given twice"),
        (["meta", "--human", "x.tsv", "--by", "length", "length"], "length is given twice"),
        (["score", "-t", TEXT, "-r", TEXT, "--names", " "], "a system has a blank name"),
        (["list", "data", "--data", "{empty}"], "no sets of human judgments"),
    ],
)
def test_errors_say_what_to_do(
    command: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.replace("{empty}", str(tmp_path)) for word in command]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("size", ["-4G", "nan", "inf", "much"])
def test_invalid_cache_size_is_an_error(
    size: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERTIUM_CACHE_SIZE", size)
    assert main(["setup", "cache"]) == 2
    assert f"TERTIUM_CACHE_SIZE={size} is not a size" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "replacement"),
    [
        ("score -t a --to-json x.json", "--to-json was removed: use -o FILE.json"),
        ("score -t a --to_json=x.json", "--to-json was removed: use -o FILE.json"),
        ("score -t a --to-xlsx x.xlsx", "--to-xlsx was removed: use -o FILE.xlsx"),
        ("score -t a --to-spans x.tsv", "--to-spans was removed: use -o spans:FILE"),
        ("score -t a --excel", "--excel was removed: use -o FILE.xlsx, or -f csv"),
        ("score -t a --statistics", "--statistics was removed: give `gate --baseline`"),
        ("check -t a -f sarif", "-f sarif was removed: use -o FILE.sarif"),
        ("check -t a --format=sarif", "-f sarif was removed: use -o FILE.sarif"),
        ("check --list-checks", "--list-checks was removed: use `tertium list checks`"),
        ("gate --junit x.xml", "--junit was removed: use -o FILE.xml"),
        ("gate --sarif x.sarif", "--sarif was removed: use -o FILE.sarif"),
        ("gate --markdown x.md", "--markdown was removed: use -f md >> FILE"),
        ("score -t a --report x.html", "--report was removed: use -o FILE.html"),
        ("compare -t a b --report x.html", "--report was removed: use -o FILE.html"),
        ("gate calibrate --report x.html", "--report was removed: use -o FILE.html"),
        ("meta --human a --plot x.svg", "--plot was removed: use -o FILE.svg"),
    ],
)
def test_removed_options_name_their_replacement(
    command: str, replacement: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command.split()) == 2
    error = capsys.readouterr().err
    assert replacement in error
    assert error.count("\n") == 1

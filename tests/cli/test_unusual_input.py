"""Unusual input: closed streams, odd folders, foreign files, extreme numbers."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tertium.cli import main
from tertium.core.cached_files import cached_file_hash, hash_file
from tertium.core.errors import DataError
from tertium.data.record_files import parse_json
from tertium.data.records import read_references, read_score
from tertium.encoders.vector_cache import FILE

EXAMPLES = Path(__file__).parents[2] / "examples"
SCORE = f"{sys.executable} -m tertium score -t {EXAMPLES / 'examples.jsonl'} -m chrf"
ONLY_UNIX = pytest.mark.skipif(sys.platform == "win32", reason="streams closed by a Unix shell")


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)


@ONLY_UNIX
def test_closed_streams_are_no_error() -> None:
    silent = shell(f"{SCORE} >&-")
    assert (silent.returncode, silent.stdout, silent.stderr) == (0, "", "")
    wrong = shell(f"{SCORE}:nothing=1 2>&-")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    short = shell(f"{SCORE} -sl -f tsv | head -1")
    assert short.stdout.count("\n") == 1
    assert "Error" not in short.stderr


@pytest.mark.parametrize("variable", ["TERTIUM_CACHE", "XDG_CACHE_HOME"])
def test_unknown_home_folder_is_a_one_line_error(
    variable: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("TERTIUM_CACHE", raising=False)
    monkeypatch.setenv(variable, "~nosuchuser")
    assert main(["setup", "cache"]) == 2
    error = capsys.readouterr().err
    assert f"{variable}=~nosuchuser: the home folder of this user is unknown" in error
    assert error.count("\n") == 1


def test_invalid_hash_file_is_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path))
    (tmp_path / "hashes.json").write_text("[" * 100_000)
    assert cached_file_hash(EXAMPLES / "examples.jsonl") == hash_file(EXAMPLES / "examples.jsonl")


def test_info_and_clear_report_a_foreign_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path))
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("CREATE TABLE theirs (x)")
    database.close()
    for action in ([], ["clear"]):
        assert main(["setup", "cache", *action]) == 2
        error = capsys.readouterr().err
        assert "made by another program" in error
        assert "move it away yourself" in error
        assert "cache clear" not in error


def test_references_are_numbered_by_any_number_of_digits() -> None:
    long = "9" * 5000
    record = {f"ref{long}": "c", "ref10": "b", "ref_02": "a"}
    assert read_references(record, "line 1") == ("a", "b", "c")
    with pytest.raises(DataError, match="both 'ref02' and 'ref2' are given"):
        read_references({"ref2": "a", "ref02": "b"}, "line 1")


@pytest.mark.parametrize("text", ['{"a": 1, "b": 2, "a": 3}', '[{"b": {"a": 1, "a": 1}}]'])
def test_repeated_key_is_an_error(text: str) -> None:
    with pytest.raises(DataError, match=r"x, line 1: .*the key 'a' occurs twice in one object"):
        parse_json(text, "x, line 1")
    assert parse_json('[{"a": 1}, {"a": 1}]', "x") == [{"a": 1}, {"a": 1}]


@pytest.mark.parametrize(
    ("score", "message"), [("1e308", "too large"), ("-1e101", "too large"), ("inf", "not finite")]
)
def test_huge_scores_are_one_line_errors(
    score: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    human, scores, page = tmp_path / "human.tsv", tmp_path / "scores.tsv", tmp_path / "page.html"
    rows = [(s, n) for s in "ab" for n in range(1, 5)]
    cells = "".join(f"{s}\t{n}\t{n % 3}\tx\ty\n" for s, n in rows)
    human.write_text("system\titem\tscore\tmt\tref\n" + cells)
    score_rows = "".join(f"{s}\t{n}\t{score if n == 3 else n}\n" for s, n in rows)
    scores.write_text("system\tsegment\tscore\n" + score_rows)
    command = ["meta", "--human", str(human), "--scores", str(scores), "-o", str(page)]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert f"scores.tsv, line 4: the score '{score}' is" in error
    assert message in error
    assert error.count("\n") == 1
    assert not page.exists()


def test_huge_integer_is_not_finite() -> None:
    with pytest.raises(DataError, match=r"line 1: the score '1000.*' is not finite"):
        read_score(10**400, "line 1")


ARGUMENTS = ["score", "-t", str(EXAMPLES / "system-good.en.txt"), "-r"]
ARGUMENTS += [str(EXAMPLES / "reference-a.en.txt"), "-m", "chrf", "-q"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score", "-t", "no\nsuch", "-m", "chrf"], "no\u240asuch: no such file"),
        (["score", "-t", "x" * 9000, "-m", "chrf"], "cannot be read (File name too long)"),
        (["score", "-t", "a/" * 9000, "-m", "chrf"], "(File name too long)"),
        (["score", "-t", "no\0such", "-m", "chrf"], "not a path (embedded null byte)"),
        ([*ARGUMENTS, "--bo\ngus"], "unrecognized argument: --bo\u240agus"),
        ([*ARGUMENTS, "-m", "y" * 9000], "unknown metric 'yyy"),
        ([*ARGUMENTS, "-m", "\udcffmodel"], "not UTF-8 (byte 0xff)"),
        ([*ARGUMENTS, "-m", "chrf:beta=1e200"], "beta must be from 0 to 1000"),
        ([*ARGUMENTS, "-m", "bleu:smooth_method=floor,smooth_value=1e308"], "from 0 to 1000"),
        ([*ARGUMENTS, "-o", "z" * 9000], "the file name is too long"),
    ],
)
def test_unusual_arguments_are_errors_of_one_short_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert len(error) < 2100


@pytest.mark.parametrize("style", ["text", "tsv", "md", "latex", "csv"])
def test_control_characters_of_names_are_not_printed(
    style: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*ARGUMENTS, "--names", "\x1b[31mred\x07\x9b", "-f", style]) == 0
    printed = capsys.readouterr().out
    assert "red" in printed
    assert not {"\x1b", "\x07", "\x9b"} & {*printed}


def test_a_models_folder_that_is_not_utf8_is_a_one_line_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERTIUM_MODELS", f"{tmp_path}/\udcff")
    assert main(["list", "models"]) == 2
    error = capsys.readouterr().err
    assert "TERTIUM_MODELS" in error
    assert "not UTF-8, which tokenizers cannot open; give another folder" in error
    assert error.count("\n") == 1


def test_an_interrupt_during_the_import_is_no_traceback() -> None:
    code = (
        "import sys; from tertium.__main__ import run\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'tertium.cli': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting()); sys.exit(run())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "tertium: interrupted\n")

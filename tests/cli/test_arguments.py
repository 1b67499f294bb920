"""Commands from functions: options from types, defaults and docstrings; files; results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest

from tertium.cli.runner import run_command
from tertium.core.errors import TertiumError, UsageError
from tertium.core.options import EarlyResult, FileKind, InFile, LateOptions, Option, Output
from tertium.core.result import Column, Result, Table, View


@dataclass(frozen=True)
class Counts(Result):
    """Words and how often they occur."""

    words: dict[str, int]

    def tables(self) -> list[Table]:
        rows = [*self.words.items()]
        columns = [Column("word", lambda row: row[0]), Column("count", lambda row: row[1], 0)]
        return [Table(columns, rows, notes=["a note"], cautions=["a caution"])]

    def warning_lines(self) -> list[str]:
        return ["a caution"]

    @property
    def exit_code(self) -> int:
        return 0 if self.words else 1


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which words to count.

    Attributes
    ----------
    shortest
        Length of the shortest word that counts, 100 % sure.
    case
        Whether case matters.
    only
        Count only these words.
    separate
        Treat hyphens as blanks.
    """

    group: ClassVar[str] = "Metrics"
    shortest: Annotated[int, Option("-s", "--shortest")] = 1
    case: Literal["keep", "lower"] = "keep"
    only: Annotated[tuple[str, ...], Option(metavar="WORD")] = ()
    separate: bool = True

    def __post_init__(self) -> None:
        if self.shortest < 1:
            raise UsageError(f"--shortest {self.shortest}: expected 1 or more")


def count_words(text: InFile, /, choice: Choice, *, dry: bool = False) -> Counts:
    """Count the words of a text.

    Parameters
    ----------
    text
        The text.
    dry
        Read nothing.

    Examples
    --------
    tertium count a.txt

    Notes
    -----
    Words are separated by blanks.
    """
    if dry:
        raise EarlyResult(Counts({}))
    content = Path(text).read_text()
    if choice.separate:
        content = content.replace("-", " ")
    words = content.lower().split() if choice.case == "lower" else content.split()
    chosen = [w for w in words if len(w) >= choice.shortest and w in (choice.only or words)]
    return Counts({word: chosen.count(word) for word in chosen})


def split_files(text: InFile, /, output: Output) -> View:
    """Count words and write them as two kinds of files."""
    kinds = {
        "scores": FileKind(Counts, (".tsv", ".csv")),
        "spans": FileKind(Counts, (".tsv", ".jsonl")),
    }
    files = output.split(kinds)
    result = Counts({"both": 1})
    return View(result=result, files=[(result, path) for paths in files.values() for path in paths])


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("One two two-three")
    return "a.txt"


def run(*words: str, command: object = count_words) -> int:
    return run_command("count", command, words)  # type: ignore[arg-type]


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    run(*words, "-f", "tsv", "-q")
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "table"),
    [
        ([], "One\t1\ntwo\t2\nthree\t1\n"),
        (["-s", "4"], "three\t1\n"),
        (["--shortest=4"], "three\t1\n"),
        (["--case", "lower", "--only", "one", "two"], "one\t1\ntwo\t2\n"),
        (["--only", "One", "--only", "two"], "One\t1\ntwo\t2\n"),
        (["--no-separate"], "One\t1\ntwo\t1\ntwo-three\t1\n"),
        (["--no_separate"], "One\t1\ntwo\t1\ntwo-three\t1\n"),
    ],
)
def test_types_and_defaults_become_options(
    text: str, words: list[str], table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(capsys, text, *words) == f"word\tcount\n{table}"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-s", "four"], "argument -s/--shortest: invalid int value: 'four'"),
        (["-s", "0"], "--shortest 0: expected 1 or more"),
        (["-s", "1", "-s", "2"], "given twice, 1 and 2; give it once"),
        (["--case", "upper"], "invalid choice: 'upper'"),
        (["--shortst", "1"], "did you mean --shortest"),
        (["-o", "a.txt"], "a.txt is also an input file: give another name"),
        (["-o", "-"], "-o -: expected a file name; use /dev/stdout for stdout"),
        (["-o", "b.tsv", "./b.tsv"], "both write"),
        (["-o", "b.doc"], "b.doc: expected a name that ends in"),
        (["-o", "findings:b.tsv"], "this command writes no findings, but results:"),
        (["-o", "no/folder/b.tsv"], "no/folder"),
        (["-w", "x"], "'x' is not a number of decimals, expected 0 to 17"),
    ],
)
def test_bad_options_are_errors_before_the_work(text: str, words: list[str], message: str) -> None:
    with pytest.raises(TertiumError) as error:
        run(text, *words)
    assert message in str(error.value)
    assert [path.name for path in Path().iterdir()] == ["a.txt"]


def test_help_is_read_from_docstrings(
    text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        run("-h")
    shown = capsys.readouterr().out
    assert shown.startswith("usage: tertium count FILE [OPTIONS]\n\nCount the words of a text.\n")
    assert "-s, --shortest N" in shown
    assert "100 % sure (default: 1)" in " ".join(shown.split())
    assert "--case keep,lower     whether case matters (default: keep)" in shown
    assert "--only WORD ..." in shown
    assert shown.endswith("examples:\n  tertium count a.txt\n\nWords are separated by blanks.\n")
    assert max(map(len, shown.splitlines())) <= 80


def test_results_are_printed_and_written(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(text, "-s", "5", "-o", "b.tsv", "b.json", "results:c.csv") == 0
    assert Path("b.tsv").read_text() == "word\tcount\nthree\t1\n"
    assert Path("b.json").read_text() == '[\n {\n  "word": "three",\n  "count": 1\n }\n]\n'
    assert Path("c.csv").exists()
    shown = capsys.readouterr()
    assert shown.out.startswith("a caution\n")
    assert shown.err == ""
    run(text, "-f", "json")
    assert capsys.readouterr().err == "tertium: a caution\n"
    run(text, "-q")
    assert "a caution" not in capsys.readouterr().out
    assert run(text, "-s", "50") == 1


def test_a_dry_run_writes_nothing(text: str) -> None:
    assert run(text, "--dry", "-o", "b.tsv") == 0
    assert not Path("b.tsv").exists()


def test_kinds_of_files_are_named_where_suffixes_do_not_tell(text: str) -> None:
    with pytest.raises(UsageError, match=r"give -o scores:b\.tsv or -o spans:b\.tsv"):
        run(text, "-o", "b.tsv", command=split_files)
    assert run(text, "-o", "spans:b.tsv", "c.csv", "d.jsonl", command=split_files) == 0
    assert {path.name for path in Path().iterdir()} == {"a.txt", "b.tsv", "c.csv", "d.jsonl"}


@dataclass(frozen=True, kw_only=True)
class WordOptions:
    """Options of one kind of words.

    Attributes
    ----------
    vowels
        Count vowels.

    Examples
    --------
    tertium count long --vowels

    Notes
    -----
    Long words only.
    """

    group: ClassVar[str] = "Training"
    vowels: bool = False


def choose_late(words: Sequence[str]) -> type[Any]:
    return WordOptions if "long" in words else Choice


def count_late(kind: str, /, late: Annotated[Any, LateOptions(choose_late)]) -> Counts:
    """Count words of a kind.

    Examples
    --------
    tertium count short
    """
    return Counts({type(late).__name__: late.vowels if kind == "long" else late.shortest})


def test_late_options_depend_on_the_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("short", "--shortest", "3", "-f", "tsv", command=count_late) == 0
    assert run("long", "--vowels", "-f", "tsv", command=count_late) == 0
    assert "Choice\t3\n" in (shown := capsys.readouterr().out)
    assert "WordOptions\tTrue\n" in shown
    with pytest.raises(UsageError, match="unrecognized argument: --vowels"):
        run("short", "--vowels", command=count_late)
    for kind in ("short", "long"):
        with pytest.raises(SystemExit):
            run(kind, "-h", command=count_late)
        assert f"examples:\n  tertium count {kind}" in (shown := capsys.readouterr().out)
    assert "--vowels" in shown
    assert shown.endswith("Long words only.\n")

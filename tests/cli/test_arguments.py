"""Commands from functions: options from types, defaults and docstrings; files; results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import pytest

from tertium.cli.runner import run_command
from tertium.core.errors import UsageError
from tertium.core.options import EarlyResult, InFile, Option
from tertium.core.result import Column, Result, Table


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


def test_a_dry_run_writes_nothing(text: str) -> None:
    run(text, "--dry", "-o", "b.tsv")
    assert not Path("b.tsv").exists()

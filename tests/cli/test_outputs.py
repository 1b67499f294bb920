"""Output files: a prefix or suffix chooses their format; `test_errors` has what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.builders import write_lines
from tests.cli.conftest import Run

SCORE = "score -t a.txt -r ref.txt -m chrf"
SPANS = "score -t a.txt -s ref.txt -m checks"


@pytest.fixture(autouse=True)
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines("a.txt", ["the {cat}", "it  rains"])
    write_lines("b.txt", ["a cat sat", "it rained"])
    write_lines("ref.txt", ["the cat sat", "it is raining"])


@pytest.mark.parametrize(
    ("command", "start", "code"),
    [
        (f"{SCORE} -o x.tsv", "system\tmetric\tsegment\tscore", 0),
        (f"{SCORE} -o scores:x.tsv", "system\tmetric\tsegment\tscore", 0),
        (f"{SCORE} -o results:x.json", '[\n {\n  "system": "a.txt"', 0),
        (f"{SCORE} --only-system -o x.md", "| system |", 0),
        (f"{SPANS} -o spans:x.tsv", "metric\tsystem\tsegment", 0),
        (f"{SPANS} -o scores:x.jsonl", '{"system": "a.txt", "metric": "checks", "segment": ', 0),
        ("compare -t a.txt b.txt -r ref.txt -m chrf -o x.tsv", "system\tmetric\tscore\tlow", 0),
        ("compare -t a.txt b.txt -r ref.txt -m chrf -o results:x.tsv", "system\tmetric\tscore", 0),
        ("check -t a.txt -s ref.txt -o findings:x.sarif", '{\n "$schema"', 0),
        ("check -t a.txt -s ref.txt -o x.jsonl", '{"system": "a.txt", "segment": ', 0),
        ("check -t a.txt -s ref.txt -o findings:x.jsonl", '{"system": "a.txt", "segment": ', 0),
        ("list -o results:x.tsv", "metric\tneeds\t", 0),
        ("plan --difference 3 -o results:x.tsv", "segments\t", 0),
        (
            "gate --baseline a.txt --candidate b.txt -r ref.txt -m chrf --margin chrf=50 "
            "-o junit:x.xml results:y.json",
            "<?xml",
            3,
        ),
        ("worst -t a.txt -r ref.txt -m chrf -o x.jsonl", '{"rank": 1', 0),
        ("report -t a.txt -r ref.txt -m chrf -o results:x.html", "<!doctype html>", 0),
    ],
)
def test_kinds_and_suffixes_choose_the_format(
    command: str, start: str, code: int, run: Run
) -> None:
    run(f"{command} -q", code)
    (path,) = Path().glob("x.*")
    assert path.read_text(encoding="utf-8").startswith(start)


def test_one_command_writes_several_kinds(run: Run) -> None:
    files = "all.json all.html spans:spans.tsv scores:scores.tsv scores:scores.xlsx"
    run(f"{SPANS} -q -o {files}")
    names = {path.name for path in Path().iterdir()}
    assert {name.rpartition(":")[2] for name in files.split()} <= names

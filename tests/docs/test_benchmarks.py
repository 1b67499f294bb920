"""Speed and memory figures on documentation pages come from recorded runs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from benchmarks.record import END, load_runs, write_page
from tests.docs.pages import DOCS

PAGE = DOCS / "benchmarks.md"
RUNS = load_runs(PAGE)
NUMBER = re.compile(r"(?<![\w@.,])(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?!\w)")
LINK = re.compile(r"\[([\w ]+)\]\(#([\w-]+)\)")
MARKED_TABLE = re.compile(r"<!-- kept: ([\w ,]+) -->\n\|[^\n]+\n\|[^\n]+\n((?:\|[^\n]+\n)+)")


def extract_numbers(text: str) -> list[str]:
    """Return the numbers of a text without thousands separators; code is ignored."""
    match = NUMBER.findall(re.sub(r"`[^`]*`", "", text))
    return [whole.replace(",", "") + fraction for whole, fraction in match]


def printed_numbers(*names: str) -> list[float]:
    """Return all numbers that runs printed."""
    lines = [line for name in names for line in RUNS[name]["output"]]
    return [float(number) for line in lines for number in extract_numbers(line)]


def is_rounded_from(number_text: str, figures: list[float]) -> bool:
    """Return whether a number is one of these figures, rounded to its decimals."""
    decimals = len(number_text.partition(".")[2])
    return any(f"{figure:.{decimals}f}" == number_text for figure in figures)


def table_rows() -> list[list[str]]:
    """Return the cells of the first table: what, baseline, tertium, ratio, runs."""
    by_hand = PAGE.read_text(encoding="utf-8").partition("\n## How to read")[0]
    lines = re.findall(r"^\| (.+) \|$", by_hand, re.MULTILINE)
    return [line.split(" | ") for line in lines[2:]]


@pytest.mark.parametrize("row", table_rows(), ids=lambda row: row[0][:60])
def test_table_row_matches_recorded_output(row: list[str]) -> None:
    _, rival, own, ratio, runs = row
    names = [name for name, _ in LINK.findall(runs)]
    assert names, "the row does not link to its run"
    figures = printed_numbers(*names)
    sides = [[float(number) for number in extract_numbers(cell)] for cell in (rival, own)]
    quotients = [a / b for left in sides for right in sides for a in left for b in right if b]
    for number in extract_numbers(f"{rival} {own}"):
        assert is_rounded_from(number, figures), number
    for number in extract_numbers(ratio):
        assert is_rounded_from(number, figures + quotients), number


def marked_tables() -> list[tuple[str, str, str]]:
    """Return page, runs and rows of the tables below a marker `kept: RUN`."""
    return [
        (page.relative_to(DOCS).as_posix(), names, lines)
        for page in sorted(DOCS.rglob("*.md"))
        for names, lines in MARKED_TABLE.findall(page.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize(("page", "names", "lines"), marked_tables(), ids=lambda part: part[:40])
def test_marked_tables_match_recorded_output(page: str, names: str, lines: str) -> None:
    figures = printed_numbers(*names.split(", "))
    for line in lines.splitlines():
        _, *cells = line.strip("| ").split(" | ")
        number_text = extract_numbers(" ".join(cells))
        assert number_text, (page, line)
        for number in number_text:
            assert is_rounded_from(number, figures), (page, line, number)


def test_encoders_and_ranking_pages_have_marked_tables() -> None:
    pages = {page.rpartition("/")[2] for page, _, _ in marked_tables()}
    assert pages >= {"encoders.md", "pairwise.md"}


def test_links_point_to_run_sections() -> None:
    for row in table_rows():
        for name, anchor in LINK.findall(row[-1]):
            assert anchor == name.replace(" ", "-"), name


def test_page_is_generated_from_recorded_runs(tmp_path: Path) -> None:
    for file in (PAGE, PAGE.with_suffix(".json")):
        shutil.copy(file, tmp_path)
    write_page(tmp_path / PAGE.name)
    assert (tmp_path / PAGE.name).read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")
    assert END in PAGE.read_text(encoding="utf-8")

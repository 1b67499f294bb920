"""Figures of speed and memory on the pages are those of runs that were kept."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from benchmarks.record import END, START, kept, write_page
from tests.docs.pages import DOCS

PAGE = DOCS / "benchmarks.md"
RUNS = kept(PAGE)
NUMBER = re.compile(r"(?<![\w@.,])(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?!\w)")
LINK = re.compile(r"\[([\w ]+)\]\(#([\w-]+)\)")
MARKED = re.compile(r"<!-- kept: ([\w ,]+) -->\n\|[^\n]+\n\|[^\n]+\n((?:\|[^\n]+\n)+)")


def numbers(text: str) -> list[str]:
    """The numbers of a text as printed, without what parts thousands; those of code are none."""
    found = NUMBER.findall(re.sub(r"`[^`]*`", "", text))
    return [whole.replace(",", "") + fraction for whole, fraction in found]


def measured(*names: str) -> list[float]:
    """All numbers that runs printed."""
    lines = [line for name in names for line in RUNS[name]["output"]]
    return [float(number) for line in lines for number in numbers(line)]


def is_of(shown: str, figures: list[float]) -> bool:
    """Whether a number is one of these, rounded to the decimals that it is shown with."""
    decimals = len(shown.partition(".")[2])
    return any(f"{figure:.{decimals}f}" == shown for figure in figures)


def rows() -> list[list[str]]:
    """The cells of the first table: what, rival, tertium, ratio, runs."""
    by_hand = PAGE.read_text(encoding="utf-8").partition(START)[0]
    lines = re.findall(r"^\| (.+) \|$", by_hand, re.MULTILINE)
    return [line.split(" | ") for line in lines[2:]]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:60])
def test_a_row_shows_what_its_run_printed(row: list[str]) -> None:
    _, rival, ours, ratio, runs = row
    names = [name for name, _ in LINK.findall(runs)]
    assert names, "a row names its run"
    figures = measured(*names)
    sides = [[float(number) for number in numbers(cell)] for cell in (rival, ours)]
    quotients = [a / b for left in sides for right in sides for a in left for b in right if b]
    for number in numbers(f"{rival} {ours}"):
        assert is_of(number, figures), number
    for number in numbers(ratio):
        assert is_of(number, figures + quotients), number


def marked_tables() -> list[tuple[str, str, str]]:
    """The tables below a mark `kept: RUN`: the page, the runs, and rows without the head."""
    return [
        (page.relative_to(DOCS).as_posix(), names, lines)
        for page in sorted(DOCS.rglob("*.md"))
        for names, lines in MARKED.findall(page.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize(("page", "names", "lines"), marked_tables(), ids=lambda part: part[:40])
def test_tables_of_other_pages_show_what_runs_printed(page: str, names: str, lines: str) -> None:
    figures = measured(*names.split(", "))
    for line in lines.splitlines():
        _, *cells = line.strip("| ").split(" | ")
        shown = numbers(" ".join(cells))
        assert shown, (page, line)
        for number in shown:
            assert is_of(number, figures), (page, line, number)


def test_the_pages_of_encoders_and_ranking_have_such_tables() -> None:
    pages = {page.rpartition("/")[2] for page, _, _ in marked_tables()}
    assert pages >= {"encoders.md", "pairwise-ranking.md"}


def test_links_to_runs_lead_to_their_sections() -> None:
    for row in rows():
        for name, anchor in LINK.findall(row[-1]):
            assert anchor == name.replace(" ", "-"), name


def test_the_page_shows_what_is_kept(tmp_path: Path) -> None:
    for file in (PAGE, PAGE.with_suffix(".json")):
        shutil.copy(file, tmp_path)
    write_page(tmp_path / PAGE.name)
    assert (tmp_path / PAGE.name).read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")
    assert END in PAGE.read_text(encoding="utf-8")

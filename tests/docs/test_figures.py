"""Figures on the pages are those that were kept: the README's table, and the page of results."""

from __future__ import annotations

import re

import pytest
from papers.ledger import Ledger
from papers.pictures import known_mean
from tests.docs.pages import DOCS, ROOT

from papers import PAPERS, tables_of

SETS = ("da/wmt17", "wmt17-metrics-task", "rankings/wmt12")


def kept(set_name: str) -> dict[str, str]:
    """The average of each metric on a set, as printed."""
    (table,) = (t for t in tables_of("overview") if t.number == set_name)
    rows = Ledger(DOCS / "results").outcome(table).rows
    return {
        row.row.label: f"{known_mean(row.measured):.{table.digits}f}" for row in rows if row.figures
    }


def test_the_readme_shows_kept_figures() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    figure = r" \**([^|*]+)\** \|"
    rows = re.findall(rf"^\| \[`([^`]+)`\]\([^)]+\)[^|]*\|{figure * 3}$", text, re.MULTILINE)
    assert len(rows) >= 5
    for name, *figures in rows:
        for set_name, figure in zip(SETS, figures, strict=True):
            assert figure.strip() == kept(set_name).get(name, "–"), (name, set_name)


@pytest.mark.parametrize("paper", [paper for paper in PAPERS if paper != "overview"])
def test_what_could_not_be_reproduced_is_said_for_every_paper(paper: str) -> None:
    text = (DOCS / "not-reproducible.md").read_text(encoding="utf-8")
    authors = PAPERS[paper].partition(":")[0]
    assert f"## {authors}" in text


@pytest.mark.parametrize("set_name", ["da/wmt17", "rankings/wmt12"])
def test_the_page_of_results_shows_kept_figures(set_name: str) -> None:
    text = (DOCS / "results.md").read_text(encoding="utf-8")
    head, _, after = text.partition("## Every metric on every set\n")
    columns = re.findall(r"^\| metric \| (.+) \|$", after, re.MULTILINE)[0].split(" | ")
    place = columns.index(set_name)
    shown = {
        name: cells.split(" | ")[place].strip("()")
        for name, cells in re.findall(r"^\| ([\w.+:=-]+) \| (.+) \|$", after, re.MULTILINE)
        if len(cells.split(" | ")) == len(columns)
    }
    assert head.startswith("# Results")
    for name, figure in kept(set_name).items():
        assert shown[name] == figure, name

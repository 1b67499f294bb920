"""Figures on the pages are those that were kept: the README's table, and the page of results."""

from __future__ import annotations

import json
import re

import pytest
from papers.ledger import Ledger, way_of
from papers.page import OVERVIEWS
from papers.pictures import known_mean
from papers.table import Departure, PaperTable
from tests.docs.pages import DOCS, ROOT

from papers import PAPERS, departures, tables_of
from tertium.reporting.tables.table import escape_markdown

SETS = ("da/wmt17", "wmt17-metrics-task", "rankings/wmt12")


MODERN = ("da22", "da22 SPA", "esa24", "esa24 SPA")


def kept(set_name: str, paper: str = "overview") -> dict[str, str]:
    """The average of each metric on a set, as printed."""
    (table,) = (t for t in tables_of(paper) if t.number == set_name)
    rows = Ledger(DOCS / "results").outcome(table).rows
    return {
        row.row.label: f"{known_mean(row.measured):.{table.digits}f}" for row in rows if row.figures
    }


def kept_tables(paper: str) -> list[PaperTable]:
    """The tables of a paper that the page shows: those with a figure."""
    ledger = Ledger(DOCS / "results")
    return [t for t in tables_of(paper) if any(row.figures for row in ledger.outcome(t).rows)]


@pytest.mark.parametrize("paper", list(PAPERS))
def test_kept_figures_are_of_the_rows_as_they_are_measured_now(paper: str) -> None:
    for table in kept_tables(paper):
        entries = json.loads(Ledger(DOCS / "results").path(table).read_text("utf-8"))["rows"]
        ways = {row.label: way_of(table, row) for row in table.rows}
        for label, entry in entries.items():
            assert entry["way"] == ways[label], (paper, table.number, label)


def test_every_departure_that_a_table_links_is_on_the_page_once() -> None:
    text = (DOCS / "results.md").read_text(encoding="utf-8")
    places = re.findall(r'<a id="([^"]+)"></a>', text)
    tables = [table for paper in PAPERS for table in kept_tables(paper)]
    named = {departure.key for table in tables for departure in table.departures}
    assert sorted(places) == sorted(named)
    for table in (t for t in tables if t.departures):
        title = f"{table.paper}, table {table.number}: "
        _, _, section = text.partition(
            f"### {title if table.paper != 'overview' else table.number}"
        )
        shown, _, listed = section.partition("<details>")[0].partition("\nDepartures: ")
        links = re.findall(r"\]\(#([^)]+)\)", listed)
        assert links == [departure.key for departure in table.departures], title
        for row in (r.row for r in Ledger(DOCS / "results").outcome(table).rows if r.figures):
            concerned = [d.key for d in table.departures if d.concerns(row)]
            name = re.escape(escape_markdown(row.label))
            found = re.search(rf"^\| {name}((?: ?\[.\]\(#[^)]+\))*) \|", shown, re.M)
            assert found, (title, row.label)
            assert re.findall(r"\(#([^)]+)\)", found[1]) == concerned, (title, row.label)


def test_a_table_names_no_departure_that_is_not_defined_once() -> None:
    known = [value for value in vars(departures).values() if isinstance(value, Departure)]
    assert len({departure.key for departure in known}) == len(known)
    named = {d.key for paper in PAPERS for table in tables_of(paper) for d in table.departures}
    assert named == {departure.key for departure in known}


def test_the_faithful_ranker_of_the_readme_has_the_figure_of_its_table() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(
        r"^\| `[^`]*pairwise-published`[^|]*\| – \| – \| ([\d.]+) \|$", text, re.M
    )
    (table,) = (t for t in tables_of("guzman2015") if t.number == "1")
    rows = Ledger(DOCS / "results").outcome(table).rows
    (row,) = (r for r in rows if r.row.label == "pairwise-published")
    assert shown == f"{row.average:.1f}"


def test_the_readme_shows_kept_figures() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    figure = r" \**([^|*]+)\** \|"
    rows = re.findall(rf"^\| \[`([^`]+)`\]\([^)]+\)[^|]*\|{figure * 3}$", text, re.MULTILINE)
    assert len(rows) >= 5
    for name, *figures in rows:
        for set_name, figure in zip(SETS, figures, strict=True):
            assert figure.strip() == kept(set_name).get(name, "–"), (name, set_name)


def test_the_readme_shows_kept_figures_of_modern_systems() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    figure = r" ([^|]+) \|"
    rows = re.findall(rf"^\| `([^`]+)`[^|]*\|{figure * 4}$", text, re.MULTILINE)
    assert len(rows) >= 3
    for name, *figures in rows:
        for set_name, figure in zip(MODERN, figures, strict=True):
            assert figure.strip() == kept(set_name, "modern").get(name, "–"), (name, set_name)


@pytest.mark.parametrize("paper", [paper for paper in PAPERS if paper not in OVERVIEWS])
def test_what_could_not_be_reproduced_is_said_for_every_paper(paper: str) -> None:
    text = (DOCS / "papers" / "not-reproducible.md").read_text(encoding="utf-8")
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

"""Figures in the README and on the pages of docs/papers are those of the ledger."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from papers.departures import DEPARTURES
from papers.ledger import Ledger, is_measured_by
from papers.pages import page_name
from papers.table import PaperTable
from tests.docs.pages import DOCS, ROOT

from papers import OVERVIEWS, PAPERS, find_table, load_page, tables_of
from tertium.output.text import escape_markdown

LEDGER = Ledger(DOCS / "results")
PAGES = DOCS / "papers"
README = ROOT / "README.md"
# Figures in the README's table of papers: table and row of the ledger, by year.
README_ROWS = {
    "2019": ("mathur2019", "1", "BERTR, mpnet"),
    "2015": ("guzman2015", "1", "4METRICS + SYNTAX25 + WIKI-GW25"),
    "2021": ("song2021", "4", "SSS + BERTScore"),
    "2018": ("shimanaka2018", "2", "SVR, mpnet + minilm + use"),
    "2009": ("pado2009", "4", "MT+RTER"),
}


def stored_averages(paper: str, number: str) -> dict[str, float]:
    """Return the measured average of each row of a table."""
    rows = LEDGER.load_table(find_table(paper, number)).rows
    return {row.label: row.partial_average for row in rows if row.figures}


def rounded_averages(paper: str, number: str) -> dict[str, str]:
    """Return the same, rounded as on the pages."""
    decimals = find_table(paper, number).decimals
    return {k: f"{v:.{decimals}f}" for k, v in stored_averages(paper, number).items()}


def measured_tables(paper: str) -> list[PaperTable]:
    """Return the tables of a paper that have a stored figure."""
    return [t for t in tables_of(paper) if any(row.figures for row in LEDGER.load_table(t).rows)]


def read_page(paper: str) -> str:
    return (PAGES / f"{page_name(paper)}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("paper", list(PAPERS))
def test_stored_figures_have_the_method_of_their_row(paper: str) -> None:
    for table in measured_tables(paper):
        entries = json.loads(LEDGER.path(table).read_text("utf-8"))["rows"]
        rows = {row.label: row for row in table.rows}
        for label, entry in entries.items():
            assert is_measured_by(entry, table, rows[label]), (paper, table.number, label)


def test_every_file_of_the_ledger_belongs_to_a_table() -> None:
    files = {LEDGER.path(table) for paper in PAPERS for table in tables_of(paper)}
    assert {*(DOCS / "results").glob("*.json")} <= files


@pytest.mark.parametrize("paper", list(PAPERS))
def test_a_page_has_each_departure_of_its_tables_once(paper: str) -> None:
    text, tables = read_page(paper), measured_tables(paper)
    anchors = re.findall(r'<a id="([^"]+)"></a>', text)
    assert sorted(anchors) == sorted({d.key for table in tables for d in table.departures})
    for table in (t for t in tables if t.departures):
        _, _, section = text.partition(f"{escape_markdown(table.title)}\n")
        body, _, links = section.partition("\n## ")[0].partition("\n- departures: ")
        keys = re.findall(r"\]\(#([^)]+)\)", links.partition("\n")[0])
        assert keys == [departure.key for departure in table.departures], table.number
        for row in (r.row for r in LEDGER.load_table(table).rows if r.figures):
            expected = [d.key for d in table.departures if d.applies_to(row)]
            name = re.escape(escape_markdown(row.label))
            match = re.search(rf"^\| {name}((?: ?\[.\]\(#[^)]+\))*) \|", body, re.M)
            assert match, (table.number, row.label)
            assert re.findall(r"\(#([^)]+)\)", match[1]) == expected, (table.number, row.label)


def test_departures_are_used() -> None:
    used = {d.key for paper in PAPERS for table in tables_of(paper) for d in table.departures}
    assert used == set(DEPARTURES)


def test_the_readme_shows_stored_figures_of_wmt17() -> None:
    rows = re.findall(
        r"^\| \[`([^`]+)`\]\(docs/metrics/[^)]+\) \|.* ([\d.]+) \|$",
        README.read_text("utf-8"),
        re.M,
    )
    assert len(rows) >= 5
    expected = rounded_averages("overview", "da/wmt17")
    assert dict(rows) == {name: expected[name] for name, _ in rows}


def test_the_readme_shows_stored_figures_of_the_papers() -> None:
    rows = re.findall(
        r"^\| [^|]+ et al\. (\d{4}) \|.*\| ([\d.]+) \|$", README.read_text("utf-8"), re.M
    )
    assert {year for year, _ in rows} == set(README_ROWS)
    for year, figure in rows:
        paper, number, label = README_ROWS[year]
        decimals = len(figure.partition(".")[2])
        value = stored_averages(paper, number)[label]
        assert figure == f"{value:.{decimals}f}".removeprefix("0"), (paper, label)


@pytest.mark.parametrize("paper", [paper for paper in PAPERS if paper not in OVERVIEWS])
@pytest.mark.parametrize("page", ["claims.md", "not-reproducible.md"])
def test_claims_and_limits_cover_every_paper(paper: str, page: str) -> None:
    authors = PAPERS[paper].partition(":")[0]
    assert f"## {authors} {paper[-4:]}\n" in (PAGES / page).read_text(encoding="utf-8")


def read_table(path: Path, header: str) -> dict[str, list[str]]:
    """Return the cells of the first table whose header starts like this, by first cell."""
    _, _, rest = path.read_text(encoding="utf-8").partition(f"| {header} |")
    lines = f"| {header} |{rest}".partition("\n\n")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in cells}


@pytest.mark.parametrize("set_name", ["da/wmt17", "rankings/wmt12"])
def test_the_page_of_all_metrics_shows_stored_averages(set_name: str) -> None:
    rows = read_table(PAGES / "all-metrics.md", "metric")
    column = rows["metric"].index(set_name)
    for name, figure in rounded_averages("overview", set_name).items():
        assert rows[name][column].strip("()") == figure, name


def test_the_modern_page_shows_stored_averages() -> None:
    rows = read_table(PAGES / "modern.md", "metric")
    for number in ("da22", "da22 SPA", "esa24", "esa24 SPA"):
        column = rows["metric"].index(number)
        for name, figure in rounded_averages("modern", number).items():
            assert rows[escape_markdown(name)][column].strip("()") == figure, (number, name)


@pytest.mark.parametrize("paper", [paper for paper in PAPERS if paper not in OVERVIEWS])
def test_the_index_shows_stored_headline_figures(paper: str) -> None:
    text = (PAGES / "index.md").read_text(encoding="utf-8")
    for number, label in load_page(paper).headlines:
        figure = rounded_averages(paper, number)[label]
        name = f"{PAPERS[paper].partition(',')[0]} {paper[-4:]}"
        title = f"{name}, {number}: {find_table(paper, number).title}"
        row = f"| {escape_markdown(title)} | {escape_markdown(label)} | "
        (line,) = (line for line in text.splitlines() if line.startswith(row))
        assert line.endswith(f"| {figure} |")
    assert len(text.splitlines()) <= 150

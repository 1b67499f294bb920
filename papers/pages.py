"""Write the result pages from stored figures: one page per paper, and an overview.

`python -m papers all -o docs/papers` writes the pages to `docs/papers/`, reads the figures from
`docs/results/` and draws the charts in `docs/pictures/`. Pages in `docs/metrics/` that contain

    <!-- agreement: chrf chrf++ -->
    <!-- end -->

get a table with the figures of these metrics between the two lines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from papers import OVERVIEWS, PAPERS, find_table, load_page, tables_of
from papers.charts import write_agreement_chart, write_chart
from papers.ledger import Ledger, file_stem
from papers.number_cells import cell_table, number_cell
from papers.table import RowResult, TableResult
from papers.table_rendering import RECOMPUTED, make_table, table_notes
from tertium.core.atomic import write_text
from tertium.core.result import Cell, Table
from tertium.output.text import escape_markdown, render_table

AGREEMENT = re.compile(r"(<!-- agreement: ([^>]*?) -->\n).*?(<!-- end -->)", re.DOTALL)
INCOMPLETE_NOTE = "In parentheses: some language pairs are not measured yet."
PAGE_NAMES = {"overview": "all-metrics"}  # other pages have the name of their paper
AGREEMENT_CHART = "results.svg"
DEPARTURE_LETTERS = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡ"
MIN_COMMON_ROWS, MAX_COLUMNS = 0.6, 24  # of tables side by side
SHORT_SET_NAMES = {"wmt17-metrics-task": "systems 17", "wmt18-metrics-task": "systems 18"}

INDEX = """\
# Reproducing the papers

tertium implements the metrics of five papers. These pages compare the published figures with
figures measured here.

- One page per paper has all its tables, with our departures from the paper: {papers}.
- [All metrics](all-metrics.md) has every metric on every test set, by language pair.
  [Modern systems](modern.md) has judgments of WMT21 to WMT24.
- [Claims](claims.md) lists each claim of the papers and whether it holds here.
  [Not reproducible](not-reproducible.md) lists what could not be measured, and why.

## How to read the tables
- `da`, `mqm` and `qe`: Pearson correlation with human scores of segments.
- `systems` and `metrics-task`: Pearson correlation with human scores of systems.
- `rankings`: Kendall's tau x 100 on human comparisons; a tie of the metric counts as an error.
- "Average" is the mean over language pairs. {recomputed} marks a published average that is our mean
  of the published figures, because the paper prints none.
- Small letters link to the departures that apply to a row.
- Cells show "measured / published", or one figure where the paper prints none. The last column is
  the difference of the averages.
- Notes below a table have data, counts and standard deviations. The files in
  [results/](../results/) have the metric signature and the commit of each figure.

The pages are generated from these files. Do not edit them.

```bash
python -m papers all -o docs/papers                   # takes hours: measures what is missing
python -m papers mathur2019 --table 1 -o docs/papers  # takes hours: one table
```

With `--kept`, the same commands write the pages without measuring anything.

## Limitations
- Encoders differ from those of the papers, because theirs cannot be downloaded as packages.
- Some training data were never published. A substitute is named below each table.
- The test sets into English are from 2008 to 2018. Systems have improved since then.
"""
HEADLINES_TITLE = """\
## Headline figures
Averages over language pairs. Differences have three causes: other encoders, other training data,
and our departures.
"""


@dataclass(frozen=True)
class ResultPages:
    """The pages in a folder; figures, charts and metric pages are in folders next to it."""

    folder: Path

    @property
    def results_folder(self) -> Path:
        return self.folder.parent / "results"

    @property
    def charts_folder(self) -> Path:
        return self.folder.parent / "pictures"

    def write(self) -> list[Path]:
        """Write pages, charts and the agreement tables of metric pages; return their paths."""
        ledger = Ledger(self.results_folder)
        results = {
            paper: [ledger.load_table(table) for table in tables_of(paper)] for paper in PAPERS
        }
        measured = [r for paper in results.values() for r in paper if has_figures(r)]
        charts = self._draw_charts(measured)
        written = [self._write_page("index", _index(results, charts))]
        for paper, paper_results in results.items():
            if any(map(has_figures, paper_results)):
                text = _paper_page(paper, paper_results, charts)
                written.append(self._write_page(page_name(paper), text))
        metric_pages = self._fill_metric_pages(measured)
        return [*written, *(self.charts_folder / name for name in charts.values()), *metric_pages]

    def _write_page(self, name: str, text: str) -> Path:
        path = self.folder / f"{name}.md"
        write_text(path, text, make_folder=True)
        return path

    def _draw_charts(self, results: Sequence[TableResult]) -> dict[str, str]:
        """Return chart file names by table; the chart of all papers has an empty name."""
        charts: dict[str, str] = {}
        for result in results:
            name = f"results-{file_stem(result.table)}.svg"
            if write_chart(result, self.charts_folder / name):
                charts[file_stem(result.table)] = name
        if write_agreement_chart(results, self.charts_folder / AGREEMENT_CHART):
            charts[""] = AGREEMENT_CHART
        return charts

    def _fill_metric_pages(self, results: Sequence[TableResult]) -> Iterator[Path]:
        for page in sorted((self.folder.parent / "metrics").glob("*.md")):
            text = page.read_text(encoding="utf-8")
            filled = fill_agreement_tables(text, results)
            if filled != text:
                write_text(page, filled)
                yield page


def has_figures(result: TableResult) -> bool:
    """Return whether any row of a table is measured."""
    return any(row.figures for row in result.rows)


def page_name(paper: str) -> str:
    """Return the file name of a paper's page, without its suffix."""
    return PAGE_NAMES.get(paper, paper)


def _authors(paper: str) -> str:
    """Return the authors and the year: "Song, Zhao, Specia 2021"."""
    return f"{PAPERS[paper].partition(':')[0]} {paper[-4:]}"


def _index(results: Mapping[str, Sequence[TableResult]], charts: Mapping[str, str]) -> str:
    papers = [paper for paper in results if paper not in OVERVIEWS]
    links = ", ".join(f"[{_authors(paper)}]({page_name(paper)}.md)" for paper in papers)
    parts = [INDEX.format(papers=links, recomputed=RECOMPUTED), HEADLINES_TITLE]
    rows: list[list[Cell | str]] = []
    for paper in papers:
        rows += _headline_rows(paper, results[paper])
    header = ["table", "row", "published", "measured"]
    parts.append(render_table(cell_table(header, rows, text_columns=(0, 1)), "md"))
    if "" in charts:
        parts.append(f"![Published and measured figures](../pictures/{charts['']})\n")
    return "\n".join(parts)


def _headline_rows(paper: str, results: Sequence[TableResult]) -> list[list[Cell | str]]:
    by_number = {result.table.number: result for result in results}
    rows: list[list[Cell | str]] = []
    for number, label in load_page(paper).headlines:
        result = by_number[find_table(paper, number).number]
        (row,) = (row for row in result.rows if row.label == label)
        if row.figures:
            decimals = result.table.decimals
            values = (row.published_average, row.average)
            cells = [number_cell(value, decimals) for value in values]
            title = (
                f"{PAPERS[paper].partition(',')[0]} {paper[-4:]}, {number}: {result.table.title}"
            )
            rows.append([title, label, *cells])
    return rows


def _paper_page(paper: str, results: Sequence[TableResult], charts: Mapping[str, str]) -> str:
    introduction = load_page(paper).introduction
    title = PAPERS[paper].replace(":", f" {paper[-4:]}:", 1)
    parts = [f"# {escape_markdown(title)}\n", introduction]
    measured = [result for result in results if has_figures(result)]
    if paper in OVERVIEWS:
        parts += ["## Averages\n", render_table(summary_table(measured), "md")]
    for group in _group_by_rows(measured) if paper in OVERVIEWS else [[r] for r in measured]:
        names = [charts.get(file_stem(result.table), "") for result in group]
        parts.append(render_section(group, names))
    return "\n".join([*parts, *_departures(measured), *_missing_rows(results)])


def _group_by_rows(results: Sequence[TableResult]) -> list[list[TableResult]]:
    """Return groups of tables that stand side by side: most of their rows are the same."""
    groups: list[list[TableResult]] = []
    for result in results:
        group = next((group for group in groups if _fits(result, group)), None)
        if group is None:
            groups.append([result])
        else:
            group.append(result)
    return groups


def _fits(result: TableResult, group: Sequence[TableResult]) -> bool:
    """Return whether a table has the departures and most rows of a group, and is not too wide."""
    labels, joined = {*_measured_labels(result)}, {*_joined_labels(group)}
    columns = sum(len(r.table.experiment.columns) + 1 for r in (*group, result))
    return (
        result.table.departures == group[0].table.departures
        and columns <= MAX_COLUMNS
        and len(labels & joined) >= MIN_COMMON_ROWS * len(labels | joined)
    )


def _measured_labels(result: TableResult) -> list[str]:
    return [row.label for row in result.rows if row.figures]


def _joined_labels(group: Sequence[TableResult]) -> list[str]:
    """Return the rows of several tables, each once."""
    return [*dict.fromkeys(label for result in group for label in _measured_labels(result))]


def render_section(group: Sequence[TableResult], charts: Sequence[str]) -> str:
    """Return the section of tables with the same rows, side by side, with charts and notes."""
    first = group[0]
    is_paper = first.table.paper not in OVERVIEWS
    name = f"{_table_name(first.table.number)}: " if is_paper else ""
    titles = "; ".join(result.table.title for result in group)
    lines = [f"## {escape_markdown(name + titles)}\n"]
    pictures = [
        f"![{escape_markdown(result.table.title)}](../pictures/{chart})"
        for result, chart in zip(group, charts, strict=True)
        if chart
    ]
    lines += [*pictures, ""] if pictures else []
    table, departures = _link_departures(_join_tables(group), first)
    lines += [table, *departures]
    for result in group:
        prefix = f"{result.table.number}: " if len(group) > 1 else ""
        notes = [f"- {escape_markdown(prefix + note)}" for note in table_notes(result)]
        file = f"{file_stem(result.table)}.json"
        notes[0] += f"; signature of each figure: [{file}](../results/{file})"  # after the code
        lines += notes
    return "\n".join([*lines, ""])


def _join_tables(group: Sequence[TableResult]) -> Table:
    """Return one table; of several, each column is named by its table."""
    tables = [make_table(result) for result in group]
    if len(group) == 1:
        return replace(tables[0], title="", notes=())
    header = [tables[0].header[0]]
    rows: dict[str, list[Cell]] = {label: [] for label in _joined_labels(group)}
    for result, table in zip(group, tables, strict=True):
        header += [f"{result.table.number}: {name}" for name in table.header[1:]]
        measured = {cells[0].text: cells[1:] for cells in table.rows}
        missing = [Cell("–")] * (len(table.header) - 1)
        for label, cells in rows.items():
            cells += measured.get(label, missing)
    return cell_table(header, [[label, *cells] for label, cells in rows.items()])


def _table_name(number: str) -> str:
    return f"Table {number}" if number[0].isdigit() else number[0].upper() + number[1:]


def _link_departures(table: Table, result: TableResult) -> tuple[str, list[str]]:
    """Render a table whose rows link to their departures, and the note that lists them."""
    departures = dict(zip(DEPARTURE_LETTERS, result.table.departures, strict=False))
    letters = {
        row.label: "".join(k for k, d in departures.items() if d.applies_to(row.row))
        for row in result.rows
    }
    rows = []
    for name, *cells in table.rows:
        label = f"{name.text} {letters.get(name.text, '')}".strip()
        rows.append([Cell(label, label), *cells])
    text = render_table(replace(table, rows=rows), "md")
    links = []
    for letter, departure in departures.items():
        text = text.replace(letter, f"[{letter}](#{departure.key})")
        links.append(f"{letter} [{escape_markdown(departure.title)}](#{departure.key})")
    return text, [f"- departures: {', '.join(links)}"] if links else []


def summary_table(results: Sequence[TableResult], specs: Sequence[str] = ()) -> Table:
    """Return averages by metric and test set, for all metrics or those in `specs`."""
    cells: dict[str, dict[str, Cell]] = {}
    for result in results:
        for row in result.rows:
            if row.figures and (not specs or row.label in specs):
                cells.setdefault(row.label, {})[result.table.number] = _average_cell(row, result)
    numbers = [result.table.number for result in results]
    sets = [number for number in numbers if any(number in row for row in cells.values())]
    rows: list[list[Cell | str]] = [
        [spec, *(cells[spec].get(number, Cell("–")) for number in sets)]
        for spec in specs or sorted(cells)
        if spec in cells
    ]
    is_incomplete = any(c.text.startswith("(") for row in cells.values() for c in row.values())
    header = ["metric", *(SHORT_SET_NAMES.get(number, number) for number in sets)]
    return cell_table(header, rows, notes=[INCOMPLETE_NOTE] * is_incomplete)


def _average_cell(row: RowResult, result: TableResult) -> Cell:
    """Return the mean of the measured columns, in parentheses if columns are missing."""
    cell = number_cell(row.partial_average, result.table.decimals)
    return Cell(f"({cell.text})", cell.value) if _missing_columns(row, result) else cell


def _missing_columns(row: RowResult, result: TableResult) -> list[str]:
    columns = result.table.experiment.columns
    values = row.measured_values or (math.nan,) * len(columns)
    return [column for column, value in zip(columns, values, strict=True) if math.isnan(value)]


def _departures(results: Sequence[TableResult]) -> list[str]:
    """Return the section with each departure of a page once."""
    departures = {d.key: d for result in results for d in result.table.departures}
    if not departures:
        return []
    lines = [
        f'- <a id="{d.key}"></a>**{escape_markdown(d.title)}**: {escape_markdown(d.description)}'
        for d in departures.values()
    ]
    return ["## Departures from the paper\n", *lines, ""]


def _missing_rows(results: Sequence[TableResult]) -> list[str]:
    """Return the section with the rows and columns that are not measured."""
    lines = []
    for result in results:
        missing = [
            f"{row.label}{_missing_reason(row, columns)}"
            for row in result.rows
            if row.row.model is not None and (columns := _missing_columns(row, result))
        ]
        if missing:
            names = "; ".join(missing)
            lines.append(f"- {escape_markdown(f'{_table_name(result.table.number)}: {names}')}")
    return ["## Not measured\n", *lines, ""] if lines else []


def _missing_reason(row: RowResult, columns: Sequence[str]) -> str:
    reason = ", ".join(columns) if row.figures else row.unavailable
    return f" ({reason})" if reason else ""


def fill_agreement_tables(text: str, results: Sequence[TableResult]) -> str:
    """Return the text of a metric page with its agreement tables filled in.

    The text of a metric without figures stays.
    """
    overview = [result for result in results if result.table.paper == "overview"]

    def fill(match: re.Match[str]) -> str:
        table = summary_table(overview, match[2].split())
        return f"{match[1]}{render_table(table, 'md')}{match[3]}" if table.rows else match[0]

    return AGREEMENT.sub(fill, text)

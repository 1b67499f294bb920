"""The page of results: every measured table beside what was published, from kept figures alone.

`tertium reproduce all -o docs/results.md` writes the page, keeps the figures in `docs/results/` and
draws `docs/pictures/`. Pages in `docs/metrics/` that hold

    <!-- agreement: chrf chrf++ -->
    <!-- end -->

get the figures of these metrics between the two lines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from papers import PAPERS, tables_of
from papers.ledger import Ledger
from papers.pictures import known_mean, write_agreement, write_picture
from papers.render import RECOMPUTED, as_table
from papers.render import notes as notes_of
from papers.table import MeasuredRow, Outcome
from tertium.atomic import write_text
from tertium.reporting.tables.table import Cell, Table, escape_markdown, number, render

AGREEMENT = re.compile(r"(<!-- agreement: ([^>]*?) -->\n).*?(<!-- end -->)", re.DOTALL)
PARTLY = "In brackets: not all language pairs are measured yet."
OVERVIEWS = ("overview", "modern")
MODERN = """\
## Modern systems

What holds where translations are good. Segments: acc_eq with calibrated ties, by segment. Systems:
soft pairwise accuracy (SPA). Both on samples of about a thousand judged translations a language
pair. `qe`: Pearson's r, without reference. These sets may choose between models and never train
one; they chose tertium-multi. A dash is where a metric learned from the set or does not know its
languages. Networks that learned, and all over e5, were measured on a GPU.
`tertium reproduce modern --rows METRIC --again -o docs/results.md` measures one metric anew.
"""
LETTERS = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡ"  # of departures within a table
SHORT = {"wmt17-metrics-task": "systems 17", "wmt18-metrics-task": "systems 18"}

INTRODUCTION = f"""\
# Results

How well metrics agree with people, measured here, beside what papers printed. This page is written
by `tertium reproduce all -o docs/results.md` from the figures in [results/](results/); the same
command goes on where it stopped; `tertium reproduce PAPER --table N -o docs/results.md` measures
one table. Nothing on it is typed by hand. What became of every claim of the papers is told
[one by one](claims.md), and [what could not be reproduced](not-reproducible.md) on a page of its
own.

Pearson's r is with human scores of segments (`da`, `mqm`, `qe`) or of systems; on `rankings` it is
strict Kendall's tau x 100. "What stands behind it" names a table's data, the signatures of its
metrics with encoder and hash of the weights, and the commits that made its figures. A model that
was trained for its row alone has no signature; its row says how it was trained. Where a table
departs from what its paper describes, it links the [departures](#departures) that concern it. A
published average with {RECOMPUTED} is our mean of the paper's figures: it prints none over them.
"""


def write_results(path: Path) -> list[Path]:
    """Write the page, its pictures and the tables of metric pages; all that was written."""
    folder = path.parent
    ledger = Ledger(folder / path.stem)
    outcomes = [ledger.outcome(table) for paper in PAPERS for table in tables_of(paper)]
    known = [outcome for outcome in outcomes if any(row.figures for row in outcome.rows)]
    drawn = _draw(known, folder / "pictures")
    write_text(path, _page(known, outcomes, drawn))
    pages = _fill_metric_pages(folder / "metrics", known)
    return [path, *(folder / "pictures" / name for name in drawn.values()), *pages]


def _page(known: Sequence[Outcome], all_: Sequence[Outcome], drawn: dict[str, str]) -> str:
    parts = [INTRODUCTION, "## Every metric on every set\n"]
    parts += [
        "An average over language pairs; a dash where the metric learned from the set or "
        "does not go with it. Details are below.\n"
    ]
    parts += [render(summary(known), "md")]
    if any(outcome.table.paper == "modern" for outcome in known):
        parts += [MODERN, render(summary(known, paper="modern"), "md")]
    if "" in drawn:
        parts += [
            f"## Published against measured\n\n![published against measured]"
            f"(pictures/{drawn['']})\n"
        ]
    for paper, title in _papers():
        mine = [outcome for outcome in known if outcome.table.paper == paper]
        if mine:
            parts.append(f"## {escape_markdown(title)}{', set by set' * (paper in OVERVIEWS)}\n")
            parts += [section(outcome, drawn.get(key_of(outcome), "")) for outcome in mine]
    return "\n".join([*parts, _departures(known), _gaps(all_)])


def _papers() -> list[tuple[str, str]]:
    """Names and titles in the order of the page: what is no paper goes last."""
    return sorted(PAPERS.items(), key=lambda entry: entry[0] in OVERVIEWS)


def section(outcome: Outcome, picture: str) -> str:
    """One table with its picture; notes fold away."""
    table = as_table(outcome)
    if not any(row.row.published or row.row.average == row.row.average for row in outcome.rows):
        table = drop_published(table)
    title = outcome.table.title if outcome.table.paper in OVERVIEWS else table.title
    lines = [f"### {escape_markdown(title)}\n"]
    if picture:
        lines.append(f"![{escape_markdown(outcome.table.title)}](pictures/{picture})\n")
    lines += _with_departures(Table(table.header, table.rows, left=table.left), outcome)
    notes = [f"- {escape_markdown(note)}" for note in notes_of(outcome)]
    lines += ["<details><summary>what stands behind it</summary>\n", *notes, "\n</details>\n"]
    return "\n".join(lines)


def _with_departures(table: Table, outcome: Outcome) -> list[str]:
    """A table whose rows link the departures that concern them, and what the letters stand for."""
    departures = dict(zip(LETTERS, outcome.table.departures, strict=False))
    letters = {
        row.row.label: "".join(k for k, d in departures.items() if d.concerns(row.row))
        for row in outcome.rows
    }
    rows = [[f"{row[0]} {letters.get(str(row[0]), '')}".strip(), *row[1:]] for row in table.rows]
    shown = render(replace(table, rows=rows), "md")
    listed = []
    for letter, departure in departures.items():
        shown = shown.replace(letter, f"[{letter}](#{departure.key})")
        listed.append(f"{letter} [{escape_markdown(departure.title)}](#{departure.key})")
    return [shown, f"Departures: {', '.join(listed)}.\n"] if listed else [shown]


def drop_published(table: Table) -> Table:
    """A line for each row, where there is nothing published to stand beside it."""
    rows: list[list[Cell | str]] = []
    for first, second in zip(table.rows, table.rows[1:], strict=False):
        if second[1] == "measured":
            rows.append([first[0], *second[2:]])
    header = ["", *table.header[2:]]
    return Table(header, rows, title=table.title, notes=table.notes, left=frozenset({0}))


def summary(
    outcomes: Sequence[Outcome], specs: Sequence[str] = (), paper: str = "overview"
) -> Table:
    """Metrics x sets, each an average over language pairs; of some metrics, or of all."""
    tables = [outcome for outcome in outcomes if outcome.table.paper == paper]
    found: dict[str, dict[str, Cell]] = {}
    for outcome in tables:
        for row in outcome.rows:
            if row.figures and (not specs or row.row.label in specs):
                found.setdefault(row.row.label, {})[outcome.table.number] = _average(row, outcome)
    sets = [o.table.number for o in tables if any(o.table.number in row for row in found.values())]
    order = [*specs] if specs else sorted(found)
    rows: list[list[Cell | str]] = [
        [s, *(found[s].get(name, Cell("–")) for name in sets)] for s in order if s in found
    ]
    partly = any(cell.text.startswith("(") for row in found.values() for cell in row.values())
    return Table(
        ["metric", *(SHORT.get(name, name) for name in sets)], rows, notes=[PARTLY] * partly
    )


def _average(row: MeasuredRow, outcome: Outcome) -> Cell:
    """The mean of what is known; marked where columns are missing."""
    value = known_mean(row.measured)
    shown = number(value, outcome.table.digits)
    return Cell(f"({shown.text})", value) if _lacking(row, outcome) else shown


def _lacking(row: MeasuredRow, outcome: Outcome) -> list[str]:
    """The columns of a row that are not measured yet, all of them where it has no figure."""
    columns = (row.row.experiment or outcome.table.experiment).columns
    measured = row.measured or (math.nan,) * len(columns)
    return [column for column, value in zip(columns, measured, strict=True) if value != value]


def _departures(outcomes: Sequence[Outcome]) -> str:
    """Every departure once, under the first paper whose tables name it."""
    lines, listed = ["## Departures\n"], set[str]()
    for paper, title in _papers():
        mine = [d for o in outcomes if o.table.paper == paper for d in o.table.departures]
        new = [d for d in {d.key: d for d in mine}.values() if d.key not in listed]
        listed.update(d.key for d in new)
        if new:
            lines += [f"### Departures from {escape_markdown(title.partition(':')[0])}\n"]
            lines += [
                f'- <a id="{d.key}"></a>**{escape_markdown(d.title)}**: {escape_markdown(d.says)}.'
                for d in new
            ]
            lines.append("")
    return "\n".join(lines) if listed else ""


def _gaps(outcomes: Sequence[Outcome]) -> str:
    """What was not measured, and why, table by table."""
    lines = ["## Not measured\n"]
    for outcome in outcomes:
        table = outcome.table
        wanted = [row for row in outcome.rows if row.row.model is not None]
        missing = [(row, columns) for row in wanted if (columns := _lacking(row, outcome))]
        if missing:
            names = "; ".join(f"{row.row.label}{_reason(row, lps)}" for row, lps in missing)
            lines.append(f"- {escape_markdown(f'{table.paper}, table {table.number}: {names}')}")
    if len(lines) == 1:
        lines.append("Nothing: every row has its figures.")
    return "\n".join(lines) + "\n"


def _reason(row: MeasuredRow, lacking: Sequence[str]) -> str:
    """Why a row has no figures, or which of them it lacks."""
    reason = ", ".join(lacking) if row.figures else row.unavailable
    return f" ({reason})" if reason else ""


def _draw(outcomes: Sequence[Outcome], folder: Path) -> dict[str, str]:
    """The names of the pictures by table; the one of all papers under an empty name."""
    drawn: dict[str, str] = {}
    for outcome in outcomes:
        name = f"results-{key_of(outcome)}.svg"
        if write_picture(outcome, folder / name):
            drawn[key_of(outcome)] = name
    if write_agreement(outcomes, folder / "results.svg"):
        drawn[""] = "results.svg"
    return drawn


def key_of(outcome: Outcome) -> str:
    """A table's name as part of a file name."""
    return Ledger(Path()).path(outcome.table).stem


def _fill_metric_pages(folder: Path, outcomes: Sequence[Outcome]) -> Iterator[Path]:
    for page in sorted(folder.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        filled = fill(text, outcomes)
        if filled != text:
            write_text(page, filled)
            yield page


def fill(text: str, outcomes: Sequence[Outcome]) -> str:
    """A page with the agreement tables of the metrics it names."""

    def table(match: re.Match[str]) -> str:
        found = summary(outcomes, match[2].split())
        shown = render(found, "md") if found.rows else "Not measured yet.\n"
        return f"{match[1]}{shown}{match[3]}"

    return AGREEMENT.sub(table, text)

"""One module per paper: which data, which metrics and which statistic make which table.

A paper's module exports `TABLES`, a list of `PaperTable`s. They are data: nothing is read or scored
until `reproduce` measures one. A new paper is one file and one line in `PAPERS`; a new row is one
`Row` in its table.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

from papers.table import Keep, Outcome, PaperTable, measure, measure_now
from tertium.data.collection import Collection
from tertium.errors import UnknownNameError

PAPERS: Mapping[str, str] = {
    "overview": "Every metric on every set of judgments",
    "modern": "Every metric on judgments of modern systems",
    "mathur2019": "Mathur, Baldwin, Cohn: Putting Evaluation in Context",
    "guzman2015": "Guzmán, Joty, Màrquez, Nakov: Pairwise Neural Machine Translation Evaluation",
    "pado2009": "Padó, Galley, Jurafsky, Manning: Robust Machine Translation Evaluation with "
    "Entailment Features",
    "shimanaka2018": "Shimanaka, Kajiwara, Komachi: Metric for Automatic Machine Translation "
    "Evaluation based on Universal Sentence Representations",
    "song2021": "Song, Zhao, Specia: SentSim: Crosslingual Semantic Evaluation of Machine "
    "Translation",
}


def tables_of(paper: str) -> list[PaperTable]:
    """The tables of a paper, unmeasured."""
    if paper not in PAPERS:
        raise UnknownNameError("paper", paper, PAPERS)
    tables: list[PaperTable] = importlib.import_module(f"papers.{paper}").TABLES
    return tables


def reproduce(
    paper: str, collection: Collection, *, table: str | None = None, keep: Keep = measure_now
) -> Iterator[Outcome]:
    """Measure a paper's tables, or the one of a number, on a collection of judgments."""
    for entry in chosen_tables(paper, table):
        yield measure(entry, collection, keep)


def chosen_tables(paper: str, table: str | None = None) -> list[PaperTable]:
    """The tables of a paper, or the one of a number."""
    tables = tables_of(paper)
    if table is not None:
        numbered = {t.number: t for t in tables}
        if table not in numbered:
            raise UnknownNameError(f"table of {paper}", table, numbered)
        tables = [numbered[table]]
    return tables

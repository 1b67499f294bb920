"""Reproduction of published tables: one module per paper, with its tables as data.

Each paper module defines

- `TABLES`: a list of `PaperTable`; nothing is read or scored until a table is measured;
- `INTRODUCTION`: the first paragraphs of its page;
- `HEADLINES`: (table number, row label) of the figures on the overview page.

To add a paper, add a module and one line in `PAPERS`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType

from papers.table import PaperTable
from tertium.core.errors import UnknownNameError

PAPERS: Mapping[str, str] = {
    "overview": "All metrics on all test sets",
    "modern": "All metrics on modern systems",
    "mathur2019": "Mathur, Baldwin, Cohn: Putting Evaluation in Context",
    "guzman2015": "Guzmán, Joty, Màrquez, Nakov: Pairwise Neural Machine Translation Evaluation",
    "pado2009": "Padó, Galley, Jurafsky, Manning: Robust Machine Translation Evaluation with "
    "Entailment Features",
    "shimanaka2018": "Shimanaka, Kajiwara, Komachi: Metric for Automatic Machine Translation "
    "Evaluation based on Universal Sentence Representations",
    "song2021": "Song, Zhao, Specia: SentSim: Crosslingual Semantic Evaluation of Machine "
    "Translation",
}


def paper_module(paper: str) -> ModuleType:
    """Import the module of a paper."""
    if paper not in PAPERS:
        raise UnknownNameError("paper", paper, PAPERS)
    return importlib.import_module(f"papers.{paper}")


def tables_of(paper: str) -> list[PaperTable]:
    """Return the tables of a paper, without measuring them."""
    tables: list[PaperTable] = paper_module(paper).TABLES
    return tables


def find_table(paper: str, number: str) -> PaperTable:
    """Return the table of a paper with this number."""
    tables = {table.number: table for table in tables_of(paper)}
    if number not in tables:
        raise UnknownNameError(f"table of {paper}", number, tables)
    return tables[number]

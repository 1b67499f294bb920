"""Reproduction of published tables: one file per paper in `tables/`, read by `paper_files`.

To add a paper, add its file and one line in `PAPERS`. Experiments and models of single
papers are Python modules here. Overviews are tables of ours, made by the modules of their names.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from papers.table import PaperTable
from tertium.core.errors import UnknownNameError

if TYPE_CHECKING:
    from papers.paper_files import PaperPage

OVERVIEWS = ("overview", "modern")
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


def load_page(paper: str) -> PaperPage:
    """Return the text and the tables of a page, without measuring anything."""
    from papers.paper_files import PaperPage, read_page

    if paper not in PAPERS:
        raise UnknownNameError("paper", paper, PAPERS)
    if paper in OVERVIEWS:
        module = importlib.import_module(f"papers.{paper}")
        return PaperPage(introduction=module.INTRODUCTION, tables=module.TABLES)
    return read_page(paper)


def tables_of(paper: str) -> list[PaperTable]:
    """Return the tables of a paper, without measuring them."""
    return load_page(paper).tables


def find_table(paper: str, number: str) -> PaperTable:
    """Return the table of a paper with this number."""
    tables = {table.number: table for table in tables_of(paper)}
    if number not in tables:
        raise UnknownNameError(f"table of {paper}", number, tables)
    return tables[number]

"""A sample of the stored figures is measured again: the tables must not drift from the code.

Figures of embedding metrics and of networks take minutes to measure; `python -m papers` measures
all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from papers.ledger import Ledger
from papers.table import build_model

from papers import find_table
from tertium.data.dataset_folder import DatasetFolder

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "results"
CLAIMS, NOT_REPRODUCIBLE = "papers/claims.md", "papers/not-reproducible.md"
RANKING = "metrics/pairwise.md"
ENTAILMENT = "metrics/rte-r.md"
# (paper, table, row, column); each takes seconds, features of METEOR the longest.
SAMPLE = (
    ("guzman2015", "1", "BLEU", "fr-en"),
    ("guzman2015", "1", "NIST", "es-en"),
    ("pado2009", "1", "BLEUR", "tr-en"),
    ("pado2009", "1", "BLEUR, plain ridge", "tr-en"),
    pytest.param("pado2009", "1", "METEORR, plain ridge", "cs-en", marks=pytest.mark.slow),
    pytest.param("pado2009", "1", "METEORR, parameters of 2008", "cs-en", marks=pytest.mark.slow),
    ("pado2009", "1", "NIST-4 (footnote 2)", "ru-en"),
    ("pado2009", "1-held-out", "BLEUR", "lv-en"),
    pytest.param("pado2009", "1-systems", "METEORR", "cs-en", marks=pytest.mark.slow),
    ("pado2009", "2", "RTER", "face (gold 6)"),
    ("pado2009", "4", "METEORR", "cs-en"),
)
# (paper, table, row, pages that quote its average)
QUOTED = (
    ("guzman2015", "1", "BLEU", (CLAIMS,)),
    ("guzman2015", "1", "METEOR", (CLAIMS, RANKING)),
    ("guzman2015", "1", "4METRICS, logistic regression", (CLAIMS, NOT_REPRODUCIBLE, RANKING)),
    (
        "guzman2015",
        "1",
        "4METRICS, logistic regression, one order",
        (CLAIMS, NOT_REPRODUCIBLE, RANKING),
    ),
    ("guzman2015", "1", "4METRICS + SYNTAX25 + WIKI-GW25", (CLAIMS, NOT_REPRODUCIBLE, RANKING)),
    (
        "guzman2015",
        "1",
        "4METRICS + SYNTAX25 + WIKI-GW25, one order",
        (CLAIMS, NOT_REPRODUCIBLE, RANKING),
    ),
    ("guzman2015", "3", "WIKI-GW100, alone", (CLAIMS,)),
    ("guzman2015", "3", "WIKI-GW100, combined", (CLAIMS,)),
    ("guzman2015", "scores", "multi-layer, mean win probability", (CLAIMS,)),
    ("pado2009", "1", "RTER, plain ridge", (ENTAILMENT,)),
    ("mathur2019", "1", "TrainS BiLSTM + attention, minilm, as published", (CLAIMS,)),
)


@pytest.mark.parametrize(("paper", "number", "label", "column"), SAMPLE)
def test_a_stored_figure_is_measured_again(
    paper: str, number: str, label: str, column: str, human_data: Path
) -> None:
    table, datasets = find_table(paper, number), DatasetFolder(human_data)
    (row,) = (row for row in table.rows if row.label == label)
    experiment = table.experiment_of(row)
    (stored,) = (r for r in Ledger(RESULTS).load_table(table).rows if r.label == label)
    expected = stored.figures[experiment.columns.index(column)]
    measured = experiment.measure(datasets, build_model(row, datasets, column, {}), column)
    assert measured.value == pytest.approx(expected.value, abs=10**-table.decimals / 2)
    assert measured.count == expected.count


@pytest.mark.parametrize(("paper", "number", "label", "pages"), QUOTED)
def test_pages_quote_the_stored_average(
    paper: str, number: str, label: str, pages: tuple[str, ...]
) -> None:
    table = find_table(paper, number)
    (row,) = (r for r in Ledger(RESULTS).load_table(table).rows if r.label == label)
    average = f"{row.average:.{table.decimals}f}".removeprefix("0")
    for page in pages:
        assert average in (DOCS / page).read_text(encoding="utf-8"), page


def test_every_stored_figure_has_a_count() -> None:
    for path in sorted(RESULTS.glob("guzman2015-*.json")):
        assert '"count": 0' not in path.read_text(encoding="utf-8"), path.name

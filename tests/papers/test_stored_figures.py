"""Stored figures are what the same code measures now, come from a commit, and are quoted on pages.

Figures of embedding metrics and of networks take minutes to measure; `python -m papers` measures
all of them. A fresh run may differ in the last bits (other processors): scores of printed examples
by 1e-4, correlations by 1e-3. A change of a metric moves some of these figures by more.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from papers.ledger import Ledger
from papers.table import RowResult, build_model

from papers import find_table
from tertium.core.errors import MissingResourceError
from tertium.data.dataset_folder import DatasetFolder

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "results"
CLAIMS, NOT_REPRODUCIBLE = "papers/claims.md", "papers/not-reproducible.md"
RANKING = "metrics/pairwise.md"
ENTAILMENT = "metrics/rte-r.md"
RANKERS = (CLAIMS, NOT_REPRODUCIBLE, RANKING)
SOURCE_TABLES = ("2-source", "3", "5", "6-source", "8", "10")
# paper, table, row, column, tolerance (None: half of the last printed decimal); each takes seconds,
# features of METEOR the longest
FAST = (
    ("guzman2015", "1", "BLEU", "fr-en", None),
    ("guzman2015", "1", "NIST", "es-en", None),
    ("pado2009", "1", "BLEUR", "tr-en", None),
    ("pado2009", "1", "BLEUR, plain ridge", "tr-en", None),
    ("pado2009", "1", "NIST-4 (footnote 2)", "ru-en", None),
    ("pado2009", "1-held-out", "BLEUR", "lv-en", None),
    ("pado2009", "2", "RTER", "face (gold 6)", None),
    ("pado2009", "4", "METEORR", "cs-en", None),
    ("mathur2019", "1", "chrF", "cs-en", 1e-3),
    ("mathur2019", "2", "BLEU", "en-zh", 1e-3),
    ("song2021", "4", "BLEU", "tr-en", 1e-3),
    ("song2021", "2-reference", "BLEU", "en-fr", 1e-3),
)
SLOW = (
    ("pado2009", "1", "METEORR, plain ridge", "cs-en", None),
    ("pado2009", "1", "METEORR, parameters of 2008", "cs-en", None),
    ("pado2009", "1-systems", "METEORR", "cs-en", None),
    ("mathur2019", "2", "BERTR, e5@8", "en-ru", 1e-3),
    ("song2021", "3", "BERTScore, not centered", "ru-en", 1e-3),
    ("song2021", "3", "BERTScore", "ru-en", 1e-3),
    ("song2021", "3", "SSS", "ru-en", 1e-3),
    ("song2021", "7", "SSS + BERTScore", "ru-en", 1e-3),
)
# (paper, table, row, pages that quote its average)
QUOTED = (
    ("guzman2015", "1", "BLEU", (CLAIMS,)),
    ("guzman2015", "1", "METEOR", (CLAIMS, RANKING)),
    ("guzman2015", "1", "4METRICS, logistic regression", RANKERS),
    ("guzman2015", "1", "4METRICS, logistic regression, one order", RANKERS),
    ("guzman2015", "1", "4METRICS + SYNTAX25 + WIKI-GW25", RANKERS),
    ("guzman2015", "1", "4METRICS + SYNTAX25 + WIKI-GW25, one order", RANKERS),
    ("guzman2015", "3", "WIKI-GW100, alone", (CLAIMS,)),
    ("guzman2015", "3", "WIKI-GW100, combined", (CLAIMS,)),
    ("guzman2015", "scores", "multi-layer, mean win probability", (CLAIMS,)),
    ("pado2009", "1", "RTER, plain ridge", (ENTAILMENT,)),
    ("mathur2019", "1", "TrainS BiLSTM + attention, minilm, as published", (CLAIMS,)),
)


def stored_row(paper: str, number: str, label: str) -> RowResult:
    rows = Ledger(RESULTS).load_table(find_table(paper, number)).rows
    (row,) = (row for row in rows if row.label == label)
    return row


def check_figure(
    datasets: DatasetFolder, paper: str, number: str, label: str, column: str, by: float | None
) -> None:
    """Measure a figure again and compare it with the stored one."""
    stored, table = stored_row(paper, number, label), find_table(paper, number)
    experiment = table.experiment_of(stored.row)
    expected = stored.figures[experiment.columns.index(column)]
    try:
        model = build_model(stored.row, datasets, column, {})
        measured = experiment.measure(datasets, model, column)
    except MissingResourceError as error:
        pytest.skip(str(error))
    tolerance = 10**-table.decimals / 2 if by is None else by
    assert measured.value == pytest.approx(expected.value, abs=tolerance), (label, column)
    assert measured.count == expected.count


@pytest.mark.parametrize(
    ("paper", "number", "label", "column", "by"),
    [*FAST, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)],
)
def test_a_stored_figure_is_measured_again(
    paper: str, number: str, label: str, column: str, by: float | None, human_data: Path
) -> None:
    check_figure(DatasetFolder(human_data), paper, number, label, column, by)


@pytest.mark.parametrize(
    ("number", "label"),
    [
        ("1", "BERTScore, minilm"),
        ("1", "SSS + BERTScore, minilm"),
        ("6-source", "BERTScore, e5, not centered"),
        ("6-source", "BERTScore, e5"),
        ("6-source", "SSS + BERTScore, e5"),
    ],
)
def test_stored_scores_of_printed_examples(tmp_path: Path, number: str, label: str) -> None:
    for column in find_table("song2021", number).experiment.columns:
        check_figure(DatasetFolder(tmp_path), "song2021", number, label, column, by=1e-4)


@pytest.mark.parametrize(("paper", "number", "label", "pages"), QUOTED)
def test_pages_quote_the_stored_average(
    paper: str, number: str, label: str, pages: tuple[str, ...]
) -> None:
    decimals = find_table(paper, number).decimals
    average = f"{stored_row(paper, number, label).average:.{decimals}f}".removeprefix("0")
    for page in pages:
        assert average in (DOCS / page).read_text(encoding="utf-8"), page


@pytest.mark.parametrize(
    ("number", "label", "tolerance"),
    [
        ("1", "chrF", 0.0035),
        ("1", "BLEU", 0.02),  # the published figures have another tokenizer
        ("2", "BLEU", 0.01),
        ("2", "chrF", 0.01),
        ("3", "BLEU", 0.0025),
        ("3", "chrF", 0.0006),
        ("4", "BLEU", 0.0025),
        ("4", "chrF", 0.0006),
    ],
)
def test_stored_figures_of_published_metrics_are_close_to_the_paper(
    number: str, label: str, tolerance: float
) -> None:
    row = stored_row("mathur2019", number, label)
    assert row.measured_values == pytest.approx(row.row.published, abs=tolerance)


@pytest.mark.parametrize(
    ("label", "average", "tolerance"),
    [("BLEU", 18.46, 0.5), ("NIST", 21.34, 0.5), ("TER, ties as zero", 21.75, 0.5)],
)
def test_stored_averages_of_wmt12_are_close_to_the_paper(
    label: str, average: float, tolerance: float
) -> None:
    assert stored_row("guzman2015", "1", label).average == pytest.approx(average, abs=tolerance)


def test_every_stored_figure_has_a_count() -> None:
    for path in sorted(RESULTS.glob("guzman2015-*.json")):
        assert '"count": 0' not in path.read_text(encoding="utf-8"), path.name


@pytest.mark.parametrize("number", SOURCE_TABLES)
def test_source_only_figures_come_from_a_commit(number: str) -> None:
    for row in Ledger(RESULTS).load_table(find_table("song2021", number)).rows:
        for figure in row.figures:
            assert "commit" in figure.code, (row.label, figure)
            assert "with changes" not in figure.code, (row.label, figure)

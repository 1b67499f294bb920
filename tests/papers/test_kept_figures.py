"""Stored figures are what the same code measures now, and come from a commit.

A fresh run may differ in the last bits (other processors): scores of printed examples by 1e-4,
correlations by 1e-3. A change of a metric moves some of these figures by more.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from papers.ledger import Ledger
from papers.table import RowResult, build_model

from papers import find_table
from tertium.core.errors import MissingResourceError
from tertium.data.dataset_folder import DatasetFolder

RESULTS = Path(__file__).parents[2] / "docs" / "results"
SOURCE_TABLES = ("2-source", "3", "5", "6-source", "8", "10")


def stored_row(paper: str, number: str, label: str) -> RowResult:
    (row,) = (
        row
        for row in Ledger(RESULTS).load_table(find_table(paper, number)).rows
        if row.label == label
    )
    return row


def check_stored_figures(
    datasets: DatasetFolder,
    paper: str,
    number: str,
    label: str,
    columns: tuple[str, ...],
    by: float,
) -> None:
    """Measure single figures of a row again and compare them with the stored ones."""
    row, table = stored_row(paper, number, label), find_table(paper, number)
    stored = dict(zip(table.experiment.columns, row.measured_values, strict=True))
    for column in columns:
        try:
            model = build_model(row.row, datasets, column, {})
            figure = table.experiment_of(row.row).measure(datasets, model, column)
        except MissingResourceError as error:
            pytest.skip(str(error))
        assert figure.value == pytest.approx(stored[column], abs=by), (label, column)


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
    columns = find_table("song2021", number).experiment.columns
    check_stored_figures(DatasetFolder(tmp_path), "song2021", number, label, columns, by=1e-4)


@pytest.mark.parametrize(
    ("paper", "number", "label", "column"),
    [
        ("mathur2019", "1", "chrF", "cs-en"),
        ("mathur2019", "2", "BLEU", "en-zh"),
        ("song2021", "4", "BLEU", "tr-en"),
        ("song2021", "2-reference", "BLEU", "en-fr"),
        pytest.param("mathur2019", "2", "BERTR, e5@8", "en-ru", marks=pytest.mark.slow),
        pytest.param("song2021", "3", "BERTScore, not centered", "ru-en", marks=pytest.mark.slow),
        pytest.param("song2021", "3", "BERTScore", "ru-en", marks=pytest.mark.slow),
        pytest.param("song2021", "3", "SSS", "ru-en", marks=pytest.mark.slow),
        pytest.param("song2021", "7", "SSS + BERTScore", "ru-en", marks=pytest.mark.slow),
    ],
)
def test_stored_correlations(
    human_data: Path, paper: str, number: str, label: str, column: str
) -> None:
    check_stored_figures(DatasetFolder(human_data), paper, number, label, (column,), by=1e-3)


@pytest.mark.parametrize("number", SOURCE_TABLES)
def test_source_only_figures_come_from_a_commit(number: str) -> None:
    for row in Ledger(RESULTS).load_table(find_table("song2021", number)).rows:
        for figure in row.figures:
            assert "commit" in figure.code, (row.label, figure)
            assert "with changes" not in figure.code, (row.label, figure)

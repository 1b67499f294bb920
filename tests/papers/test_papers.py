"""Measured figures agree with the published ones; expected values are from the papers."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from papers.table import PaperTable, RowResult, measure

from papers import PAPERS, find_table, tables_of
from tertium.core.errors import MissingResourceError, UnknownNameError
from tertium.data.dataset_folder import DatasetFolder
from tertium.metrics import load_metric


@pytest.fixture(scope="module")
def datasets(human_data: Path) -> DatasetFolder:
    return DatasetFolder(human_data)


def measure_rows(datasets: DatasetFolder, paper: str, number: str, *labels: str) -> list[RowResult]:
    """Measure some rows of a table."""
    table = find_table(paper, number)
    rows = [row for row in table.rows if row.label in labels]
    return list(measure(replace(table, rows=rows), datasets).rows)


@pytest.mark.parametrize("paper", PAPERS)
def test_tables_are_consistent(paper: str) -> None:
    tables = tables_of(paper)
    assert tables
    assert len({table.number for table in tables}) == len(tables)
    for table in tables:
        assert table.paper == paper
        assert table.experiment.columns
        assert len({row.label for row in table.rows}) == len(table.rows)
        for row in table.rows:
            _check_published(table, row.published, row.average)


def _check_published(table: PaperTable, published: tuple[float, ...], average: float) -> None:
    """Check that a printed average is the mean of its row, up to the last digit.

    Averages of Guzmán et al. are off by up to 0.135 (the Kendall cost in table 5).
    """
    if published and not any(map(math.isnan, (*published, average))):
        tolerance = 0.14 if table.decimals == 2 else 0.0016
        assert np.mean(published) == pytest.approx(average, abs=tolerance)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_spec_is_a_metric(paper: str) -> None:
    for table in tables_of(paper):
        for row in table.rows:
            for spec in {row.model, *row.column_specs.values()}:
                if isinstance(spec, str):
                    try:
                        load_metric(spec)
                    except MissingResourceError:
                        continue


def test_unknown_papers_and_tables_are_errors() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'mathur2019'"):
        tables_of("mathur2018")
    with pytest.raises(UnknownNameError, match=r"table of mathur2019 '9' .*known: 1, 2, 3"):
        find_table("mathur2019", "9")


def test_chrf_on_wmt17_segments(datasets: DatasetFolder) -> None:
    (chrf,) = measure_rows(datasets, "mathur2019", "1", "chrF")
    assert chrf.average == pytest.approx(0.577, abs=0.005)
    np.testing.assert_allclose(chrf.measured_values, chrf.row.published, atol=0.0035)
    assert [figure.count for figure in chrf.figures] == [560] * 7


def test_sentence_bleu_on_wmt17_segments(datasets: DatasetFolder) -> None:
    """Within .02 per language pair: the published figures have another tokenizer."""
    (bleu,) = measure_rows(datasets, "mathur2019", "1", "BLEU")
    assert bleu.average == pytest.approx(0.481, abs=0.005)
    np.testing.assert_allclose(bleu.measured_values, bleu.row.published, atol=0.02)


def test_bleu_and_chrf_from_english_segments(datasets: DatasetFolder) -> None:
    for row in measure_rows(datasets, "mathur2019", "2", "BLEU", "chrF"):
        np.testing.assert_allclose(row.measured_values, row.row.published, atol=0.01)


def test_sentence_bleu_on_wmt16_segments(datasets: DatasetFolder) -> None:
    """Expected values are from the description of the data; the paper swaps de-en and fi-en."""
    (bleu,) = measure_rows(datasets, "shimanaka2018", "2", "SentBLEU")
    expected = (0.558, 0.476, 0.440, 0.489, 0.499, 0.533)
    np.testing.assert_allclose(bleu.measured_values, expected, atol=0.0006)
    swapped = [bleu.row.published[n] for n in (0, 2, 1, 3, 4, 5)]
    np.testing.assert_allclose(bleu.measured_values, swapped, atol=0.0105)


@pytest.mark.slow
def test_bleu_on_wmt12_comparisons(datasets: DatasetFolder) -> None:
    (bleu,) = measure_rows(datasets, "guzman2015", "1", "BLEU")
    assert bleu.average == pytest.approx(18.46, abs=0.5)
    # Sentence BLEU of sacrebleu with effective order, from the description of the data.
    np.testing.assert_allclose(bleu.measured_values, (15.7, 18.3, 19.2, 19.9), atol=0.06)


@pytest.mark.slow
def test_nist_on_wmt12_comparisons(datasets: DatasetFolder) -> None:
    (nist,) = measure_rows(datasets, "guzman2015", "1", "NIST")
    assert nist.average == pytest.approx(21.34, abs=0.5)


@pytest.mark.slow
def test_meteor_and_ter_on_wmt12_comparisons(datasets: DatasetFolder) -> None:
    """TER ties too often for strict tau; with ties as zero it is close to the published average.

    METEOR with paraphrases has the figure of WMT12 (24.7), not that of the paper (23.59).
    """
    labels = ("TER", "TER, ties as zero", "METEOR")
    ter, ties_as_zero, meteor = measure_rows(datasets, "guzman2015", "1", *labels)
    assert meteor.unavailable or meteor.average == pytest.approx(24.67, abs=0.1)
    assert ties_as_zero.average == pytest.approx(21.75, abs=0.5)
    assert ter.average < 10


def test_system_level_on_the_it_task(datasets: DatasetFolder) -> None:
    """There are few systems, and fewer segments than at WMT: only en-pt is close."""
    (bleu,) = measure_rows(datasets, "mathur2019", "5", "BLEU")
    assert bleu.measured_values[-1] == pytest.approx(0.997, abs=0.005)
    assert [figure.count for figure in bleu.figures] == [5, 10, 4, 4, 4]


@pytest.mark.slow
@pytest.mark.parametrize("number", ["3", "4"])
@pytest.mark.parametrize(("label", "tolerance"), [("BLEU", 0.0025), ("chrF", 0.0006)])
def test_systems_of_wmt17(
    datasets: DatasetFolder, number: str, label: str, tolerance: float
) -> None:
    (row,) = measure_rows(datasets, "mathur2019", number, label)
    np.testing.assert_allclose(row.measured_values, row.row.published, atol=tolerance)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_departure_applies_to_a_row(paper: str) -> None:
    for table in tables_of(paper):
        for departure in table.departures:
            where = (table.number, departure.key)
            assert any(departure.applies_to(row) for row in table.rows), where

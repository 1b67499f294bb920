"""Measuring and rendering of tables: averages, unavailable rows, notes."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from papers.experiments import average_over_seeds
from papers.table import Figure, PaperTable, Row, measure
from papers.table_rendering import make_table, table_notes

from tertium.core.errors import MissingResourceError, UsageError
from tertium.data.dataset_folder import DatasetFolder
from tertium.output.text import render_table


@dataclass(frozen=True)
class Product:
    """An experiment whose figures are the model times the number of the column."""

    columns: tuple[str, ...] = ("one", "two")
    data: str = "synthetic"
    statistic: str = "a product"

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        value = float(model) * (1 + self.columns.index(column))
        return Figure(
            value=value, count=10, signature=f"S|{model}", excluded_counts={"no score": 1}
        )


def three(datasets: DatasetFolder, column: str) -> float:
    return 3.0


def missing(datasets: DatasetFolder, column: str) -> float:
    raise MissingResourceError("no weights: pip install them")


def make_paper_table(*rows: Row) -> PaperTable:
    return PaperTable(paper="demo", number="1", title="Demo", experiment=Product(), rows=rows)


@pytest.fixture
def datasets(tmp_path: Path) -> DatasetFolder:
    """An empty folder."""
    return DatasetFolder(tmp_path)


def test_measured_published_and_difference(datasets: DatasetFolder) -> None:
    (row,) = measure(make_paper_table(Row("x", (2.5, 7.0), model=three)), datasets).rows
    assert row.measured_values == (3.0, 6.0)
    assert row.differences == (0.5, -1.0)
    assert (row.average, row.published_average) == (4.5, 4.75)


def test_an_average_that_is_not_printed_is_marked(datasets: DatasetFolder) -> None:
    printed = Row("x", (2.5, 7.0), 4.8)  # without a model, it is quoted
    computed = Row("y", (2.5, 7.0))
    recomputed = Row("z", average=4.8, is_average_recomputed=True)
    result = measure(make_paper_table(printed, computed, recomputed), datasets)
    assert [row.is_average_printed for row in result.rows] == [True, False, False]
    table = make_table(result)
    averages = [str(line[-2].text) for line in table.rows]  # type: ignore[union-attr]
    assert averages == ["– / 4.800", "– / 4.750 †", "– / 4.800 †"]
    assert any(note.startswith("†: ") for note in table.notes)
    notes = table_notes(measure(make_paper_table(printed), datasets))
    assert not any(note.startswith("†") for note in notes)
    assert result.rows[0].figures == ()
    assert isnan(result.rows[0].average)
    values = [row.published_average for row in result.rows]
    assert values == [4.8, 4.75, 4.8]


def test_an_unavailable_row_does_not_stop_the_others(datasets: DatasetFolder) -> None:
    rows = (Row("x", model=missing), Row("y", model=three))
    result = measure(make_paper_table(*rows), datasets)
    assert result.rows[0].unavailable == "no weights: pip install them"
    assert result.rows[1].measured_values == (3.0, 6.0)
    text = render_table(make_table(result))
    assert "x: not available: no weights: pip install them" in text


def test_a_row_may_have_its_own_experiment(datasets: DatasetFolder) -> None:
    other = Product(statistic="another")
    result = measure(make_paper_table(Row("x", model=three, experiment=other)), datasets)
    assert "x: statistic: another" in render_table(make_table(result))
    notes = table_notes(
        measure(make_paper_table(Row("x", model=three, experiment=Product())), datasets)
    )
    assert not [note for note in notes if note.startswith("x: statistic") or "seeds" in note]
    with pytest.raises(UsageError, match="other columns"):
        make_paper_table(Row("x", model=three, experiment=Product(columns=("one",))))


@pytest.mark.parametrize("style", ["text", "md", "latex", "tsv"])
def test_a_table_has_figures_and_their_provenance(datasets: DatasetFolder, style: Any) -> None:
    result = measure(make_paper_table(Row("x", (2.5, nan), model=three)), datasets)
    text = render_table(make_table(result), style)
    assert "measured / published" in text
    assert "/ 2.5" in text
    if style != "tsv":
        for note in (
            "data: synthetic",
            "statistic: a product",
            "tertium",
            "10 judgments each",
            "no score: 2",
        ):
            assert note in text


@dataclass(frozen=True)
class SeededProduct(Product):
    """The mean of two seeds that differ by 1."""

    statistic: str = "a mean"

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        return average_over_seeds(np.array([float(model), float(model) + 1]), count=10)


def test_the_deviation_over_seeds_is_one_note_per_row(datasets: DatasetFolder) -> None:
    row = Row("x", model=three, experiment=SeededProduct())
    result = measure(make_paper_table(row), datasets)
    assert result.rows[0].measured_values == (3.5, 3.5)
    notes = table_notes(result)
    assert "means of 2 seeds, with standard deviations: x: one 0.707, two 0.707" in notes
    assert "x: statistic: a mean" in notes

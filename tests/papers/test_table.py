"""Tables as data: measuring, averages, what cannot be measured, how it prints."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from math import isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from papers.experiments import over_seeds
from papers.render import as_record, as_table, notes
from papers.table import Departure, Figure, PaperTable, Row, measure

from tertium.data.collection import Collection
from tertium.errors import DataError, LengthError, MissingResourceError, UsageError
from tertium.reporting.tables.table import render


@dataclass(frozen=True)
class Fixed:
    """An experiment whose figures are the model times the number of the column."""

    columns: tuple[str, ...] = ("one", "two")
    data: str = "made up"
    statistic: str = "a product"

    def measure(self, collection: Collection, model: Any, column: str) -> Figure:
        value = float(model) * (1 + self.columns.index(column))
        return Figure(value=value, count=10, signature=f"S|{model}", left_out={"no score": 1})


def three(collection: Collection, column: str) -> float:
    return 3.0


def missing(collection: Collection, column: str) -> float:
    raise MissingResourceError("no weights: pip install them")


def table(*rows: Row) -> PaperTable:
    return PaperTable(paper="demo", number="1", title="Demo", experiment=Fixed(), rows=rows)


@pytest.fixture
def nowhere(tmp_path: Path) -> Collection:
    return Collection(tmp_path)


def test_measured_published_and_difference(nowhere: Collection) -> None:
    (row,) = measure(table(Row(label="x", published=(2.5, 7.0), model=three)), nowhere).rows
    assert row.measured == (3.0, 6.0)
    assert row.differences == (0.5, -1.0)
    assert (row.average, row.published_average) == (4.5, 4.75)


def test_the_papers_own_average_goes_first(nowhere: Collection) -> None:
    (row,) = measure(table(Row(label="x", published=(2.5, 7.0), average=4.8)), nowhere).rows
    assert row.published_average == 4.8
    assert isnan(row.average)


def test_an_average_that_the_paper_does_not_print_is_marked(nowhere: Collection) -> None:
    printed = Row(label="x", published=(2.5, 7.0), average=4.8)
    ours = Row(label="y", published=(2.5, 7.0))
    elsewhere = Row(label="z", average=4.8, recomputed=True)
    outcome = measure(table(printed, ours, elsewhere), nowhere)
    assert [row.average_is_printed for row in outcome.rows] == [True, False, False]
    shown = as_table(outcome)
    assert [str(line[-1].text) for line in shown.rows] == ["4.800", "4.750 †", "4.800 †"]  # type: ignore[union-attr]
    assert any(note.startswith("†: ") for note in shown.notes)
    assert not any(note.startswith("†") for note in notes(measure(table(printed), nowhere)))
    values = [row["published_average"] for row in as_record(outcome)["rows"]]
    assert values == [4.8, 4.75, 4.8]


def test_a_departure_is_said_below_the_table_and_in_its_record(nowhere: Collection) -> None:
    departure = Departure(key="k", title="a title", says="the paper does x; ours y")
    outcome = measure(replace(table(Row(label="x", model=three)), departures=(departure,)), nowhere)
    assert "departs from the paper: a title: the paper does x; ours y" in render(
        as_table(outcome), "md"
    )
    assert as_record(outcome)["departures"] == {"a title": "the paper does x; ours y"}


def test_a_row_without_model_is_only_quoted(nowhere: Collection) -> None:
    outcome = measure(table(Row(label="x", published=(2.5, 7.0))), nowhere)
    assert outcome.rows[0].figures == ()
    assert len(as_table(outcome).rows) == 1


def test_what_is_not_installed_is_said_and_does_not_stop_the_others(nowhere: Collection) -> None:
    rows = (Row(label="x", model=missing), Row(label="y", model=three))
    outcome = measure(table(*rows), nowhere)
    assert outcome.rows[0].unavailable == "no weights: pip install them"
    assert outcome.rows[1].measured == (3.0, 6.0)
    text = render(as_table(outcome))
    assert "x: not available: no weights: pip install them" in text


def test_other_errors_are_not_hidden(nowhere: Collection) -> None:
    def broken(collection: Collection, column: str) -> float:
        raise DataError("file is damaged")

    with pytest.raises(DataError, match="damaged"):
        measure(table(Row(label="x", model=broken)), nowhere)


def test_a_row_may_be_measured_in_another_way(nowhere: Collection) -> None:
    other = Fixed(statistic="another")
    outcome = measure(table(Row(label="x", model=three, experiment=other)), nowhere)
    assert "x, statistic: another" in render(as_table(outcome))
    with pytest.raises(UsageError, match="columns of its own"):
        table(Row(label="x", model=three, experiment=Fixed(columns=("one",))))


def test_a_row_of_another_width_is_refused() -> None:
    with pytest.raises(LengthError, match="1 figures of 'x' for 2 columns"):
        table(Row(label="x", published=(1.0,)))


@pytest.mark.parametrize("style", ["text", "md", "latex", "tsv"])
def test_a_table_states_figures_and_where_they_come_from(nowhere: Collection, style: Any) -> None:
    outcome = measure(table(Row(label="x", published=(2.5, nan), model=three)), nowhere)
    text = render(as_table(outcome), style)
    assert "measured" in text
    assert "6.0" in text
    if style != "tsv":
        for stated in ("data: made up", "statistic: a product", "tertium", "one 10", "no score: 2"):
            assert stated in text
        assert "S|3.0" in text.replace("\\", "")


def test_a_record_keeps_full_numbers(nowhere: Collection) -> None:
    outcome = measure(table(Row(label="x", published=(2.5, 7.0), model=three)), nowhere)
    record = json.loads(json.dumps(as_record(outcome)))
    assert record["rows"][0]["measured"] == {"one": 3.0, "two": 6.0}
    assert record["rows"][0]["judged"] == {"one": 10, "two": 10}
    assert record["code"].startswith("tertium ")


@dataclass(frozen=True)
class Seeded(Fixed):
    """The mean of two seeds that lie one apart."""

    statistic: str = "a mean"

    def measure(self, collection: Collection, model: Any, column: str) -> Figure:
        return over_seeds(np.array([float(model), float(model) + 1]), count=10)


def test_the_spread_over_seeds_is_one_line_a_row(nowhere: Collection) -> None:
    outcome = measure(table(Row(label="x", model=three, experiment=Seeded())), nowhere)
    assert outcome.rows[0].measured == (3.5, 3.5)
    found = notes(outcome)
    assert "x: mean of 2 seeds, standard deviation one 0.707, two 0.707" in found
    assert "x, statistic: a mean" in found


def test_a_rows_own_experiment_with_the_tables_statistic_says_nothing(nowhere: Collection) -> None:
    outcome = measure(table(Row(label="x", model=three, experiment=Fixed())), nowhere)
    assert not [line for line in notes(outcome) if line.startswith("x, statistic")]
    assert not [line for line in notes(outcome) if "seeds" in line]

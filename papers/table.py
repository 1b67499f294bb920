"""A published table as data, and what becomes of it when its rows are measured.

A `Row` holds the published figures and, where we can make it, the model that should match them. An
`Experiment` knows the data and the statistic. Measuring a table asks the experiment for one figure
for each row and column; a model that cannot be built or run leaves its reason instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol

from tertium.data.collection import Collection
from tertium.errors import LengthError, MissingResourceError, UnknownNameError, UsageError
from tertium.metrics import load_metric
from tertium.runtime import task

MakeModel = Callable[[Collection, str], Any]
Model = str | MakeModel


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured number, over how many judgments, and by what.

    Where networks of several `seeds` were measured, it is their mean, and `deviation` their
    standard deviation. `best` says whether no other row of its column outperforms it significantly;
    None where that was not tested.
    """

    value: float
    count: int
    signature: str = ""
    seeds: int = 1
    deviation: float = 0.0
    left_out: Mapping[str, int] = field(default_factory=dict)
    best: bool | None = None
    code: str = ""  # what made it, where it was measured by an earlier run


class Experiment(Protocol):
    """Data and statistic of a table; `columns` are usually language pairs."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def data(self) -> str: ...

    @property
    def statistic(self) -> str: ...

    def measure(self, collection: Collection, model: Any, column: str) -> Figure:
        """The statistic of one model on one column."""


@dataclass(frozen=True, kw_only=True)
class Departure:
    """One thing that is done otherwise than a paper describes it; `key` is what links point to.

    `rows` is a pattern of the labels it concerns; empty are all that are measured.
    """

    key: str
    title: str
    says: str
    rows: str = ""

    def concerns(self, row: Row) -> bool:
        """Whether a row is measured, and is one of those."""
        return row.model is not None and bool(re.search(self.rows, row.label))


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of a published table.

    `published` follows the experiment's columns, NaN where the paper has none; `average` is the
    paper's own, unless it is `recomputed` from figures that do not stand here. `model` is a spec,
    or a function of collection and column for what must be trained; None where the row is only
    quoted. `specs` gives columns a spec of their own (a tokenizer for Chinese); `experiment`
    measures this row in another way than the table's. `note` says what a reader should know.
    """

    label: str
    published: tuple[float, ...] = ()
    average: float = math.nan
    recomputed: bool = False
    model: Model | None = None
    specs: Mapping[str, str] = field(default_factory=dict)
    experiment: Experiment | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A published table: its number, what it shows, how it is measured, its rows.

    `picture` says how it is drawn: a line for each row over the `columns` (a learning curve), a bar
    for each of the `rows` (an ablation), a line over rows that are the `layers` of encoders, or not
    at all. `departures` are where we do otherwise than the paper. Nothing is `averaged` over
    columns that are single examples.
    """

    paper: str
    number: str
    title: str
    experiment: Experiment
    rows: Sequence[Row]
    digits: int = 3
    note: str = ""
    picture: Literal["", "columns", "rows", "layers"] = ""
    departures: tuple[Departure, ...] = ()
    averaged: bool = True

    def __post_init__(self) -> None:
        for row in self.rows:
            if row.experiment and row.experiment.columns != self.experiment.columns:
                where = f"{self.paper} table {self.number}"
                raise UsageError(f"{where}: {row.label!r} has columns of its own")
            if row.published and len(row.published) != len(self.experiment.columns):
                raise LengthError(
                    f"{self.paper} table {self.number}: {len(row.published)} figures of "
                    f"{row.label!r} for {len(self.experiment.columns)} columns"
                )


@dataclass(frozen=True, kw_only=True)
class MeasuredRow:
    """A row with a figure for each column, or the reason why there is none."""

    row: Row
    figures: tuple[Figure, ...] = ()
    unavailable: str = ""

    @property
    def measured(self) -> tuple[float, ...]:
        """The measured values, one a column."""
        return tuple(figure.value for figure in self.figures)

    @property
    def average(self) -> float:
        """The mean over all columns; NaN where one is missing."""
        return sum(self.measured) / len(self.figures) if self.figures else math.nan

    @property
    def published_average(self) -> float:
        """The paper's average, or the mean of its row where it prints none."""
        if not math.isnan(self.row.average) or not self.row.published:
            return self.row.average
        return sum(self.row.published) / len(self.row.published)

    @property
    def average_is_printed(self) -> bool:
        """Whether the published average is the paper's own, not ours of its figures."""
        return not (math.isnan(self.row.average) or self.row.recomputed)

    @property
    def differences(self) -> tuple[float, ...]:
        """Measured less published, one a column; NaN where either is missing."""
        published = self.row.published or (math.nan,) * len(self.figures)
        return tuple(m - p for m, p in zip(self.measured, published, strict=True))

    @property
    def signatures(self) -> tuple[str, ...]:
        """The distinct signatures behind the row."""
        return tuple(dict.fromkeys(f.signature for f in self.figures if f.signature))


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A measured table."""

    table: PaperTable
    rows: tuple[MeasuredRow, ...]


Keep = Callable[[PaperTable, Row, str, Callable[[], Figure]], Figure]


def measure_now(table: PaperTable, row: Row, column: str, compute: Callable[[], Figure]) -> Figure:
    """The figure of a row and a column, kept nowhere."""
    return compute()


def measure(table: PaperTable, collection: Collection, keep: Keep = measure_now) -> Outcome:
    """Measure every row of a table that has a model; `keep` may know a figure already."""
    wanted = sum(row.model is not None for row in table.rows)
    total = wanted * len(table.experiment.columns)
    with task(f"{table.paper} table {table.number}", total=total) as advance:
        rows = tuple(_measure_row(table, row, collection, advance, keep) for row in table.rows)
    return Outcome(table=table, rows=rows)


def _measure_row(
    table: PaperTable,
    row: Row,
    collection: Collection,
    advance: Callable[[int], None],
    keep: Keep,
) -> MeasuredRow:
    if row.model is None:
        return MeasuredRow(row=row)
    experiment = row.experiment or table.experiment
    figures: list[Figure] = []
    built: dict[str, Any] = {}

    def compute(column: str) -> Figure:
        return experiment.measure(collection, model_of(row, collection, column, built), column)

    for column in experiment.columns:
        try:
            figures.append(keep(table, row, column, partial(compute, column)))
        except MissingResourceError as error:
            return MeasuredRow(row=row, unavailable=str(error))
        advance(1)
    return MeasuredRow(row=row, figures=tuple(figures))


def model_of(row: Row, collection: Collection, column: str, built: dict[str, Any]) -> Any:
    """The model of a row on a column; a spec is built once, so its caches serve all columns."""
    if row.model is not None and not isinstance(row.model, str):
        try:
            return row.model(collection, column)
        except UnknownNameError as error:
            raise MissingResourceError(f"what it is trained on is not here: {error}") from None
    spec = row.specs.get(column, row.model or "")
    if spec not in built:
        built[spec] = load_metric(spec)
    return built[spec]

"""Published tables as data, and the measurement of their rows.

A `Row` holds the published figures and the model that should match them. An `Experiment` holds the
data and the statistic. `measure` computes one figure for each row and column. A row whose model or
data are missing gets the reason instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any, Literal, Protocol

from tertium.core.errors import LengthError, MissingResourceError, UnknownNameError, UsageError
from tertium.core.runtime import progress_task
from tertium.data.dataset_folder import DatasetFolder
from tertium.metrics import load_metric

MakeModel = Callable[[DatasetFolder, str], Any]
Model = str | MakeModel


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured number, the number of judgments behind it, and its signature.

    With several `seeds`, `value` is the mean and `deviation` the standard deviation. `best` is True
    if no other row of the column is significantly better, and None if that was not tested.
    """

    value: float
    count: int
    signature: str = ""
    seeds: int = 1
    deviation: float = 0.0
    excluded_counts: Mapping[str, int] = field(default_factory=dict)
    best: bool | None = None
    code: str = ""  # version of the code that measured it


class Experiment(Protocol):
    """Data and statistic of a table; `columns` are usually language pairs."""

    @property
    def columns(self) -> tuple[str, ...]: ...

    @property
    def data(self) -> str: ...

    @property
    def statistic(self) -> str: ...

    def measure(self, datasets: DatasetFolder, model: Any, column: str) -> Figure:
        """Compute the statistic of one model on one column."""


@dataclass(frozen=True, kw_only=True)
class Departure:
    """A difference between our experiment and the paper; `key` is its anchor on the page.

    `row_pattern` is a regular expression for the labels of the rows it applies to (default: all).
    """

    key: str
    title: str
    description: str
    row_pattern: str = ""

    def applies_to(self, row: Row) -> bool:
        """Return whether the row is measured and its label matches `row_pattern`."""
        return row.model is not None and bool(re.search(self.row_pattern, row.label))


@dataclass(frozen=True)
class Row:
    """One row of a published table.

    `published` has one value per column, NaN where the paper prints none. `average` is the average
    that the paper prints, unless `is_average_recomputed`. `model` is a metric spec, or a function
    of datasets and column that trains one; None if the row is only quoted. `column_specs` replaces
    the spec in single columns. `experiment` replaces that of the table.
    """

    label: str
    published: tuple[float, ...] = ()
    average: float = math.nan
    model: Model | None = None
    _: KW_ONLY
    column_specs: Mapping[str, str] = field(default_factory=dict)
    experiment: Experiment | None = None
    note: str = ""
    is_average_recomputed: bool = False


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A published table: its number, title, experiment and rows.

    `chart` selects the chart: a line per row over the `columns`, a bar for each of the `rows`, a
    line per encoder over rows that are `layers`, or none. `has_average` is False where columns are
    single examples.
    """

    paper: str
    number: str
    title: str
    experiment: Experiment
    rows: Sequence[Row]
    decimals: int = 3
    note: str = ""
    chart: Literal["", "columns", "rows", "layers"] = ""
    departures: tuple[Departure, ...] = ()
    has_average: bool = True

    def __post_init__(self) -> None:
        where, columns = f"{self.paper} table {self.number}", self.experiment.columns
        for row in self.rows:
            if row.experiment and row.experiment.columns != columns:
                raise UsageError(f"{where}: {row.label!r} has other columns than its table")
            if row.published and len(row.published) != len(columns):
                raise LengthError(
                    f"{where}: {len(row.published)} figures of {row.label!r} for "
                    f"{len(columns)} columns"
                )

    def experiment_of(self, row: Row) -> Experiment:
        """Return the experiment that measures a row."""
        return row.experiment or self.experiment


@dataclass(frozen=True, kw_only=True)
class RowResult:
    """A row with one figure per column, or the reason why it has none."""

    row: Row
    figures: tuple[Figure, ...] = ()
    unavailable: str = ""

    @property
    def label(self) -> str:
        return self.row.label

    @property
    def measured_values(self) -> tuple[float, ...]:
        """The measured values, one per column."""
        return tuple(figure.value for figure in self.figures)

    @property
    def average(self) -> float:
        """The mean over all columns; NaN if one is missing."""
        return sum(self.measured_values) / len(self.figures) if self.figures else math.nan

    @property
    def partial_average(self) -> float:
        """The mean over the measured columns; NaN if there are none."""
        return mean_without_nan(self.measured_values)

    @property
    def published_average(self) -> float:
        """The average that the paper prints, or the mean of its row."""
        if not math.isnan(self.row.average) or not self.row.published:
            return self.row.average
        return sum(self.row.published) / len(self.row.published)

    @property
    def is_average_printed(self) -> bool:
        """Whether the published average is printed in the paper."""
        return not (math.isnan(self.row.average) or self.row.is_average_recomputed)

    @property
    def differences(self) -> tuple[float, ...]:
        """Measured minus published, one per column; NaN where either is missing."""
        published = self.row.published or (math.nan,) * len(self.figures)
        return tuple(m - p for m, p in zip(self.measured_values, published, strict=True))

    @property
    def signatures(self) -> tuple[str, ...]:
        """The distinct signatures of the figures."""
        return tuple(dict.fromkeys(f.signature for f in self.figures if f.signature))


@dataclass(frozen=True, kw_only=True)
class TableResult:
    """A table with the results of its rows."""

    table: PaperTable
    rows: tuple[RowResult, ...]


def mean_without_nan(values: Sequence[float]) -> float:
    """Return the mean of the values that are not NaN; NaN if there are none.

    >>> mean_without_nan([1.0, float("nan"), 3.0])
    2.0
    """
    numbers = [value for value in values if not math.isnan(value)]
    return sum(numbers) / len(numbers) if numbers else math.nan


GetFigure = Callable[[PaperTable, Row, str, Callable[[], Figure]], Figure]


def compute_figure(
    table: PaperTable, row: Row, column: str, compute: Callable[[], Figure]
) -> Figure:
    """Compute a figure without storing it."""
    return compute()


def measure(
    table: PaperTable, datasets: DatasetFolder, get_figure: GetFigure = compute_figure
) -> TableResult:
    """Measure every row that has a model; `get_figure` may return a stored figure."""
    row_count = sum(row.model is not None for row in table.rows)
    total = row_count * len(table.experiment.columns)
    with progress_task(f"{table.paper} table {table.number}", total=total) as advance:
        rows = tuple(_measure_row(table, row, datasets, advance, get_figure) for row in table.rows)
    return TableResult(table=table, rows=rows)


def _measure_row(
    table: PaperTable,
    row: Row,
    datasets: DatasetFolder,
    advance: Callable[[int], None],
    get_figure: GetFigure,
) -> RowResult:
    if row.model is None:
        return RowResult(row=row)
    experiment = table.experiment_of(row)
    figures: list[Figure] = []
    metrics: dict[str, Any] = {}

    def compute(column: str) -> Figure:
        return experiment.measure(datasets, build_model(row, datasets, column, metrics), column)

    for column in experiment.columns:
        try:
            figures.append(get_figure(table, row, column, partial(compute, column)))
        except MissingResourceError as error:
            return RowResult(row=row, unavailable=str(error))
        advance(1)
    return RowResult(row=row, figures=tuple(figures))


def build_model(row: Row, datasets: DatasetFolder, column: str, metrics: dict[str, Any]) -> Any:
    """Build the model of a row for a column; `metrics` caches metrics by spec."""
    if row.model is not None and not isinstance(row.model, str):
        try:
            return row.model(datasets, column)
        except UnknownNameError as error:
            raise MissingResourceError(f"its training data are missing: {error}") from None
    spec = row.column_specs.get(column, row.model or "")
    if spec not in metrics:
        metrics[spec] = load_metric(spec)
    return metrics[spec]

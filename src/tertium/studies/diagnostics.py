"""Diagnostics: known failure modes, checked on any metric and judged set.

study = tertium.meta_evaluate("judgments.jsonl", ["chrf", "tertium-small"])
for diagnostic in run_diagnostics(study).diagnostics:
    print(diagnostic.question, diagnostic.summary)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.charts import DotChart
from tertium.core.errors import DataError, UsageError
from tertium.core.resampling import percentile_interval
from tertium.core.result import Column, Result, Section, Table, interval_columns
from tertium.core.runtime import track_progress
from tertium.evaluation.judged import JudgedSets
from tertium.studies import diagnostic_checks as checks
from tertium.studies.diagnostic_checks import DiagnosticData, DiagnosticRow, average


@dataclass(frozen=True, kw_only=True, eq=False)
class DiagnosticCheck:
    """A question about metrics: how it is measured, and how the result is read.

    `measure` returns rows of values. The sentence about a series is `reading`, a format of its
    `name`, and of its `first`, `last` and `high`est value and their rows.
    Charts mark the `reference_value`.
    """

    name: str
    question: str
    label: str
    measure: Callable[[DiagnosticData], dict[str, DiagnosticRow]]
    reading: str
    note: str = ""
    reference_value: float = 0.0


CHECKS = (
    DiagnosticCheck(
        name="sentinels",
        question="Can human agreement be reached without comparing texts?",
        label="Pearson r with human scores",
        measure=checks.check_sentinels,
        reading="{name}: {last_row} reaches r = {last:.3f}, {first_row} {first:.3f}",
        note="sentinels: ridge regressions on surface features, cross-fitted in "
        f"{checks.FOLDS} folds",
    ),
    DiagnosticCheck(
        name="bad outputs",
        question="Are outputs that are not translations scored low?",
        label="share of real translations that score lower",
        measure=checks.check_bad_outputs,
        reading="{name} rates {high_row} above {high:.0%} of outputs",
    ),
    DiagnosticCheck(
        name="references",
        question="How does it depend on the reference?",
        label="Pearson r with human scores",
        measure=checks.check_references,
        reading="{name} reaches r = {last:.3f} with another segment's reference instead of "
        "{first:.3f}",
        note="the same translations in every row",
    ),
    DiagnosticCheck(
        name="length",
        question="Does the score depend on text length?",
        label="change of the mean score, in standard deviations",
        measure=checks.check_length,
        reading="{name} changes by {last:+.2f} standard deviations with the longest texts",
        note=f"joined texts are among the best {checks.GOOD_SHARE:.0%} by human score",
    ),
    DiagnosticCheck(
        name="best systems",
        question="Are the best systems ordered correctly?",
        label="share of system pairs in human order",
        measure=checks.check_best_systems,
        reading="{name} orders {first:.0%} of all pairs, {last:.0%} among the best",
        reference_value=0.5,
    ),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnostic(DiagnosticCheck):
    """The result of a check on all sets: its rows, and notes below the table."""

    rows: Mapping[str, DiagnosticRow]
    notes: Sequence[str]

    @property
    def series(self) -> tuple[str, ...]:
        return next(iter(self.rows.values())).series

    @property
    def values(self) -> FloatArray:
        """The values of all rows, (rows, series)."""
        return np.stack([row.values for row in self.rows.values()])

    @cached_property
    def intervals(self) -> FloatArray:
        """The 95 % intervals of the values, (rows, series, 2); NaN without sampling variation."""
        bounds = [percentile_interval(row.draws) for row in self.rows.values()]
        return np.moveaxis(np.array(bounds), 1, -1)

    @property
    def summary(self) -> str:
        """What the result says about each series, in one sentence."""
        names = [*self.rows]
        sentences = []
        for name, values in zip(self.series, self.values.T, strict=True):
            if np.isnan(values).all():
                sentences.append(f"{name} is undefined")
                continue
            places = {"first": 0, "last": -1, "high": int(np.nanargmax(values))}
            figures = {place: values[n] for place, n in places.items()}
            rows = {f"{place}_row": names[n] for place, n in places.items()}
            sentences.append(self.reading.format(name=name, **figures, **rows))
        return "; ".join(sentences) + "."

    def table(self) -> Table:
        """Return rows x series."""
        names = [*self.rows]
        columns = [Column("", names.__getitem__)]
        for n, series in enumerate(self.series):
            figures = np.column_stack([self.values[:, n], self.intervals[:, n]]).tolist()
            columns += interval_columns(series, figures.__getitem__, 2)
        between = ""
        if not np.isnan(self.intervals).all():
            between = "; in brackets 95 % bootstrap intervals over items"
        notes = [self.summary, f"values: {self.label}{between}", *self.notes]
        return Table(columns, range(len(names)), f"{self.name}: {self.question}", notes)

    def chart(self) -> DotChart:
        """Return rows x series with their intervals; a line marks the reference value."""
        return DotChart(
            title=self.question,
            caption=self.name,
            label=self.label,
            rows=[*self.rows],
            series=self.series,
            values=self.values,
            intervals=self.intervals,
            reference_value=self.reference_value,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class DiagnosticReport(Result):
    """The diagnostics that could be run, and the reasons why others were skipped."""

    diagnostics: tuple[Diagnostic, ...]
    skipped: Mapping[str, str]

    def tables(self) -> list[Table]:
        """Return one table per diagnostic."""
        return [diagnostic.table() for diagnostic in self.diagnostics]

    def contents(self) -> list[Any]:
        """Return the tables, and which diagnostics were skipped."""
        return [*self.tables(), *self.warning_lines()]

    def sections(self) -> list[Section]:
        """Return each diagnostic with its chart, then those that were skipped."""
        contents: list[Any] = []
        for diagnostic in self.diagnostics:
            contents += [diagnostic.table(), diagnostic.chart()]
        return [Section("Diagnostics", [*contents, self.warning_lines()])]

    def file_table(self, suffix: str = "") -> Table:
        """Return one row per value."""
        rows = []
        for own in self.diagnostics:
            for name, values, bounds in zip(own.rows, own.values, own.intervals, strict=True):
                for series, value, interval in zip(own.series, values, bounds, strict=True):
                    rows.append((own.name, name, series, float(value), *interval.tolist()))
        names = "diagnostic row series value low high".split()
        return Table([Column(name, itemgetter(n)) for n, name in enumerate(names)], rows)

    def warning_lines(self) -> list[str]:
        """Return one line per diagnostic that the data did not allow."""
        return [f"{name}: skipped: {reason}" for name, reason in self.skipped.items()]


def run_diagnostics(judged_sets: JudgedSets, *, seed: int = 12345) -> DiagnosticReport:
    """Run every diagnostic on every judged set; results of several sets are merged if possible."""
    if judged_sets.level != "segment":
        raise UsageError(
            "diagnostics need the segment level: leave out --level and system-level statistics"
        )
    sets = []
    for aligned in judged_sets.sets:
        human_data = judged_sets.human_data[aligned.name]
        data = DiagnosticData(
            aligned=aligned, human_data=human_data, metrics=judged_sets.metrics, seed=seed
        )
        sets.append(data)
    diagnostics = []
    skipped = {}
    for check in track_progress(CHECKS, "diagnostics"):
        try:
            diagnostics.append(run_check(check, sets))
        except DataError as reason:
            skipped[check.name] = str(reason)
    return DiagnosticReport(diagnostics=tuple(diagnostics), skipped=skipped)


def run_check(check: DiagnosticCheck, sets: Sequence[DiagnosticData]) -> Diagnostic:
    """Run one check on the sets that allow it, or raise the error of the first set.

    A row is the mean over the sets that have it.
    """
    results: dict[str, dict[str, DiagnosticRow]] = {}
    errors: list[DataError] = []
    for data in sets:
        try:
            if np.isnan(data.human).all():
                raise DataError("there are only system scores")
            results[data.aligned.name] = check.measure(data)
        except DataError as error:
            errors.append(error)
    if not results:
        raise errors[0]
    notes = [check.note] if check.note else []
    if len(results) > 1:
        notes.append(f"mean over {len(results)} sets: {', '.join(results)}")
    parts: dict[str, list[DiagnosticRow]] = {}
    for rows in results.values():
        for name, row in rows.items():
            parts.setdefault(name, []).append(row)
    merged = {name: average(own) for name, own in parts.items()}
    return Diagnostic(**vars(check), rows=merged, notes=notes)

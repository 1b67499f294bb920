"""Meta-evaluation: agreement of metrics with human judgments, overall and by slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

from tertium.core.atomic import PathLike
from tertium.core.charts import ScatterChart
from tertium.core.errors import UnknownNameError
from tertium.core.fields import check_unique_names, choices
from tertium.core.result import Column, Result, Section, Table, make_page
from tertium.evaluation.judged import (
    JudgedSets,
    Metrics,
    ScoredInputs,
    Sources,
    as_inputs,
    as_list,
    read_judged,
)
from tertium.evaluation.slice_scores import slice_agreement
from tertium.meta.agreement_results import Results
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.tasks import STATISTICS, Level, resolve_statistic, tasks_for
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.scorer import format_signature
from tertium.studies.scatter_charts import make_scatter_charts


@dataclass(frozen=True, kw_only=True, eq=False)
class AgreementStudy(JudgedSets, Result):
    """Agreement of metrics with human judgments, as returned by `tertium.meta_evaluate`.

    Attributes
    ----------
    results
        The value, interval, p-values and rank of each metric in each task.
    statistics
        The statistics that were computed.
    slices
        Results by slice, for each column that was sliced by.
    intervals, p_values
        Whether tables show confidence intervals, and p-values of all pairs of metrics.
    """

    results: Results = field(repr=False)
    statistics: tuple[str, ...]
    slices: Mapping[str, Results] = field(default_factory=dict, repr=False)
    intervals: bool = False
    p_values: bool = False

    def records(self) -> dict[str, Any]:
        """Return all results as plain values, for JSON."""
        sliced = {by: results.records() for by, results in self.slices.items()}
        return {
            **self.results.records(),
            "judgments_left_out": self.excluded_counts,
            **({"slices": sliced} if sliced else {}),
        }

    def tables(self) -> list[Table]:
        """Return tables of statistics and slices."""
        tables = self.results.tables(intervals=self.intervals, p_values=self.p_values)
        for by, results in self.slices.items():
            tables += results.slice_tables(by, intervals=self.intervals)
        return tables

    def contents(self) -> list[Any]:
        """Return the tables, and what was not used."""
        return [*self.tables(), *self.warning_lines()]

    def write(self, *paths: PathLike) -> None:
        """Write the study to files; pages have a browser of all segments."""
        for path in paths:
            if Path(path).suffix == ".html":
                make_page("agreement", self).write(path)
            else:
                super().write(path)

    @property
    def page_title(self) -> str:
        """What is compared."""
        return "Metrics and human scores"

    def sections(self) -> list[Section]:
        """Return the agreement overall and by slice, and signatures of metrics."""
        sections = replace(self.results, negated=self.negated_metrics).sections()
        for by, results in self.slices.items():
            contents = [*results.slice_tables(by), *results.slice_charts(by)]
            sections.append(Section(f"By {by}", contents))
        segments = [[*data.texts().values()] for data in self.human_data.values()]
        signatures = [format_signature(m, own) for m in self.metrics for own in segments if own]
        if signatures:
            sections.append(Section("Signatures", [[*dict.fromkeys(signatures)]]))
        return sections

    def file_table(self, suffix: str = "") -> Table:
        """Return the table of one statistic, or a row for each value of several.

        p-values and slices have a row for each value, too; `by` names the slices.
        """
        if len(self.results.by_statistic()) == 1 and not self.p_values and not self.slices:
            return self.results.agreement_table(intervals=self.intervals)
        rows = []
        for by, results in {"": self.results, **self.slices}.items():
            for task in results.tasks:
                for record in task.records():
                    low, high = record["interval"]
                    row = {**record, "set": task.task.label, "low": low, "high": high, "by": by}
                    rivals = {name: p for name, p in row["p_better_than"].items() if self.p_values}
                    rivals.pop(row["metric"], None)
                    rows += [{**row, "other": name, "p": p} for name, p in rivals.items()]
                    rows += [] if self.p_values else [row]
        names = ["metric", "statistic", "set", "value", "low", "high", "rank", "judged", "used"]
        if self.p_values:
            names = ["metric", "other", "statistic", "set", "p"]
        names += ["by"] if self.slices else []
        return Table([Column(name, itemgetter(name)) for name in names], rows)

    def charts(self) -> list[ScatterChart]:
        """Return scatter plots of metric and human scores: a row per metric, a column per set."""
        return make_scatter_charts(self.sets, level=self.level, negated=self.negated_metrics)

    def warning_lines(self) -> list[str]:
        """Return why judgments or metric scores were not used."""
        lines = [
            f"{name}: excluded: {reason}: {count:,}"
            for name, counts in self.excluded_counts.items()
            for reason, count in counts.items()
        ]
        return [*lines, *self.results.exclusion_lines()]


def meta_evaluate(
    human: Sources | ScoredInputs,
    metrics: Metrics = (),
    *,
    statistic: str | Sequence[str] = (),
    level: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
    seed: int = 12345,
    **options: Any,
) -> AgreementStudy:
    """Measure how well metrics agree with human judgments, and test whether metrics differ.

    Parameters
    ----------
    human
        Files, folders, names of sets in `data`, or sets in memory.
    metrics
        Metrics that score the judged translations.
    statistic
        One or more statistics by their names in papers ("pearson", "acc_eq*", "SPA"), see
        `tertium.meta.tasks.STATISTICS`. By default Pearson's r, or WMT's tau for comparisons.
    level
        "segment", "system" or both. By default the usual level of each statistic.
    by
        Columns to slice by: domain, document, length, language or a column of the judgments.
    seed
        Seed of resampling.
    options
        What to read: `scores` (files of metric scores; without `metrics` and `scores`, those next
        to the judgments), `scores_from_rows` (metric scores in the field `scores` of the judgments:
        True or names), `lower_better` (metrics of `scores` where a lower score is better), `lps`,
        `exclude` (systems to leave out), `gold` (which human scores, if there are several), `data`
        (folder of named sets), `standardize` (turn ratings into z-scores of each annotator) and
        `human_baseline` (human scores as another metric: a second campaign, or "rater" for a
        held-out rater). How to measure: the fields of `tertium.meta.Task` grouping, test, over,
        resamples, confidence_level, alpha, threshold.

    Returns
    -------
    AgreementStudy
        One result table of all statistics, levels and sets.

    Examples
    --------
    study = tertium.meta_evaluate("judgments.tsv", ["bleu", "chrf"], statistic=["pearson", "SPA"])
    """
    statistics = [resolve_statistic(name) for name in as_list(statistic)]
    columns, levels = as_list(by), [name for name in as_list(level) if name]
    if unknown := next((name for name in levels if name not in choices(Level)), None):
        raise UnknownNameError("level", unknown, choices(Level))
    for option, values in (("--statistic", statistics), ("--level", levels), ("--by", columns)):
        check_unique_names(option, values)
    by_level = _statistics_by_level(statistics, levels)
    input_names = {own.name for own in fields(ScoredInputs)}
    input_options = {name: options.pop(name) for name in [*options] if name in input_names}
    for at, names in by_level.items():  # reject incompatible options before metrics score
        for name in names or ["pearson"]:
            tasks_for([""], name, level=at if names else "", **options)
    inputs = as_inputs(human, input_options)
    loaded = load_metrics(metrics) if metrics else ()
    inputs_by_level = {
        # SPA compares systems, but needs human scores of segments
        at: read_judged(inputs, loaded, level=at, judgment_level="segment" * ("spa" in names))
        for at, names in by_level.items()
    }
    first = next(iter(inputs_by_level.values()))
    all_sets = chain.from_iterable(level.sets for level in inputs_by_level.values())
    specs = tuple(dict.fromkeys(spec for aligned in all_sets for spec in aligned.metrics))
    results: list[Results] = []
    sliced: dict[str, list[Results]] = {column: [] for column in columns}
    for at, names in by_level.items():
        sets = [aligned.with_metrics(specs) for aligned in inputs_by_level[at].sets]
        compared = at == "segment" and all(own.comparisons is not None for own in sets)
        tasks = [
            task
            for name in names or ["tau-strict" if compared else "pearson"]
            for task in tasks_for([own.name for own in sets], name, level=at, **options)
        ]
        results.append(MetaEvaluation(sets, seed=seed).run(tasks))
        for column in columns:
            part = slice_agreement(sets, inputs_by_level[at].human_data, column, tasks, seed=seed)
            sliced[column].append(part)
    merged = _merge_results(results)
    return AgreementStudy(
        **vars(first),
        results=merged,
        statistics=tuple(dict.fromkeys(result.task.statistic for result in merged.tasks)),
        slices={column: _merge_results(parts) for column, parts in sliced.items()},
    )


def _statistics_by_level(statistics: Sequence[str], levels: Sequence[str]) -> dict[str, list[str]]:
    """Assign each statistic to the requested levels it supports, or to its usual level."""
    if not statistics:
        return {level: [] for level in levels or ("segment",)}
    by_level: dict[str, list[str]] = {level: [] for level in levels}
    for name in statistics:
        usual = STATISTICS[name].levels
        supported = [level for level in levels if level in usual]
        for level in supported or levels or usual[:1]:
            by_level.setdefault(level, []).append(name)
    return {level: names for level, names in by_level.items() if names}


def _merge_results(parts: Sequence[Results]) -> Results:
    return replace(parts[0], tasks=tuple(task for part in parts for task in part.tasks))

"""Meta-evaluation: agreement of metrics with human judgments, overall and by slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, get_args

from tertium.core.atomic import PathLike
from tertium.core.charts import ScatterChart
from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.result import Column, Result, Section, Table
from tertium.core.specs import check_unique_names
from tertium.evaluation.judged_inputs import Files, MetaInputs, Sources, as_list, load_meta_inputs
from tertium.evaluation.slice_scores import slice_agreement
from tertium.meta.agreement_results import Results
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.tasks import STATISTICS, Level, Task, resolve_statistic, tasks_for
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.scorer import format_signature
from tertium.studies.scatter_charts import check_panels, make_scatter_charts

if TYPE_CHECKING:
    from tertium.studies.text_and_score_checks import DiagnosticReport


@dataclass(frozen=True, kw_only=True, eq=False)
class AgreementStudy(MetaInputs, Result):
    """Agreement of metrics with human judgments, as returned by `tertium.meta_evaluate`.

    Attributes
    ----------
    results
        The value, interval, p-values and rank of each metric in each task.
    statistics
        The statistics that were computed.
    level
        The level of `sets`: the first one if several were computed.
    slices
        Results by slice, for each column that was sliced by.
    diagnostics
        The report of `run_diagnostics`, if it belongs to the study.
    """

    results: Results = field(repr=False)
    statistics: tuple[str, ...]
    level: str
    slices: Mapping[str, Results] = field(default_factory=dict, repr=False)
    diagnostics: DiagnosticReport | None = field(default=None, repr=False)

    def records(self) -> dict[str, Any]:
        """Return all results as plain values, for JSON."""
        sliced = {by: results.records() for by, results in self.slices.items()}
        return {
            **self.results.records(),
            "judgments_left_out": self.excluded_counts,
            **({"slices": sliced} if sliced else {}),
            **({"panel": self.diagnostics.records()} if self.diagnostics else {}),
        }

    def tables(
        self, *, intervals: bool = False, p_values: bool = False, chart: bool = False
    ) -> list[Table]:
        """Return tables of statistics, slices and diagnostics.

        `intervals`, `p_values` and `chart` (in text) add those of metrics and of diagnostics.
        """
        tables = self.results.tables(intervals=intervals, p_values=p_values)
        for by, results in self.slices.items():
            tables += results.slice_tables(by, intervals=intervals)
        if self.diagnostics:
            tables += self.diagnostics.tables(chart=chart)
        return tables

    @property
    def page_title(self) -> str:
        """What is compared."""
        return "Metrics and human scores"

    def sections(self) -> list[Section]:
        """Return the agreement overall and by slice, diagnostics, and signatures of metrics."""
        sections = replace(self.results, negated=self.negated_metrics).sections()
        for by, results in self.slices.items():
            contents = [*results.slice_tables(by), *results.slice_charts(by)]
            sections.append(Section(f"By {by}", contents))
        if self.diagnostics:
            sections += self.diagnostics.sections()
        segments = [[*data.texts().values()] for data in self.human_data.values()]
        signatures = [format_signature(m, own) for m in self.metrics for own in segments if own]
        if signatures:
            sections.append(Section("Signatures", [[*dict.fromkeys(signatures)]]))
        return sections

    def file_table(
        self, suffix: str = "", *, intervals: bool = False, p_values: bool = False
    ) -> Table:
        """Return one table: of diagnostics if there are any, else of one statistic.

        Several statistics, p-values and slices have a row for each value; `by` names the slices.
        """
        if self.diagnostics:
            return self.diagnostics.file_table()
        is_single = len(self.results.by_statistic()) == 1
        if is_single and not p_values and not self.slices:
            return self.results.agreement_table(intervals=intervals)
        names = ["metric", "statistic", "set", "value", "low", "high", "rank", "judged", "used"]
        rows = []
        for by, results in {"": self.results, **self.slices}.items():
            for task in results.tasks:
                for record in task.records():
                    low, high = record["interval"]
                    row = {**record, "set": task.task.label, "low": low, "high": high, "by": by}
                    rows.append(row)
        if p_values:
            names = ["metric", "other", "statistic", "set", "p"]
            rows = [
                {**row, "other": other, "p": p}
                for row in rows
                for other, p in row["p_better_than"].items()
                if other != row["metric"]
            ]
        names += ["by"] if self.slices else []
        return Table([Column(name, itemgetter(name)) for name in names], rows)

    def charts(self) -> list[ScatterChart]:
        """Return scatter plots of metric and human scores: a row per metric, a column per set."""
        charts = make_scatter_charts(self.sets, level=self.level, negated=self.negated_metrics)
        check_panels(charts)
        return charts

    def warning_lines(self) -> list[str]:
        """Return why judgments or metric scores were not used, and diagnostics not run."""
        lines = [
            f"{name}: excluded: {reason}: {count:,}"
            for name, counts in self.excluded_counts.items()
            for reason, count in counts.items()
        ]
        skipped = self.diagnostics.skipped_lines() if self.diagnostics else []
        return [*lines, *self.results.exclusion_lines(), *skipped]


def meta_evaluate(
    human: Sources,
    metrics: str | Metric | Sequence[str | Metric] = (),
    *,
    scores: Files = (),
    statistic: str | Sequence[str] = (),
    level: str | Sequence[str] = (),
    by: str | Sequence[str] = (),
    lps: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    gold: str = "",
    data: PathLike | None = None,
    standardize: bool = False,
    lower_better: str | Sequence[str] = (),
    human_baseline: Sources = (),
    scores_from_rows: bool | str | Sequence[str] = False,
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
    scores
        Files of metric scores. Without `metrics` and `scores`, those next to the judgments.
    statistic
        One or more statistics by their names in papers ("pearson", "acc_eq*", "SPA"), see
        `tertium.meta.tasks.STATISTICS`. By default Pearson's r, or WMT's tau for comparisons.
    level
        "segment", "system" or both. By default the usual level of each statistic.
    by
        Columns to slice by: domain, document, length, language or a column of the judgments.
    lps, exclude
        Language pairs to keep, and systems to leave out.
    gold
        Which human scores to read, if a file or folder has several.
    data
        Folder of named sets.
    standardize
        Whether to turn ratings into z-scores of each annotator.
    lower_better
        Metrics of `scores` where a lower score is better.
    human_baseline
        Human scores to add as another metric: a second campaign, or "rater" for a held-out rater.
    scores_from_rows
        Whether to add the metric scores in the field `scores` of the judgments, or the names of
        those to add. They are used in any case if no other metric is given.
    seed
        Seed of resampling.
    options
        Other fields of `tertium.meta.Task`: grouping, test, over, resamples, confidence_level,
        alpha, threshold.

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
    if unknown := next((name for name in levels if name not in get_args(Level)), None):
        raise UnknownNameError("level", unknown, get_args(Level))
    for option, values in (("--statistic", statistics), ("--level", levels), ("--by", columns)):
        check_unique_names(option, values)
    by_level = _statistics_by_level(statistics, levels)
    _check_options(by_level, options)
    loaded = load_metrics(metrics) if metrics else ()
    inputs = {
        at: load_meta_inputs(
            human,
            loaded,
            scores=scores,
            level=at,
            # SPA compares systems, but needs human scores of segments.
            judgment_level="segment" if "spa" in names else at,
            lps=as_list(lps),
            exclude=as_list(exclude),
            gold=gold,
            data=data,
            standardize=standardize,
            lower_better=as_list(lower_better),
            human_baseline=human_baseline,
            scores_from_rows=scores_from_rows,
        )
        for at, names in by_level.items()
    }
    first = next(iter(inputs.values()))
    all_metrics = tuple(
        dict.fromkeys(m for i in inputs.values() for s in i.sets for m in s.metrics)
    )
    results: list[Results] = []
    sliced: dict[str, list[Results]] = {column: [] for column in columns}
    for at, names in by_level.items():
        sets = tuple(aligned.with_metrics(all_metrics) for aligned in inputs[at].sets)
        tasks = _make_tasks(sets, names, at, options)
        results.append(MetaEvaluation(sets, seed=seed).run(tasks))
        for column in columns:
            part = slice_agreement(sets, inputs[at].human_data, column, tasks, seed=seed)
            sliced[column].append(part)
    merged = _merge_results(results)
    return AgreementStudy(
        **vars(first),
        results=merged,
        statistics=tuple(dict.fromkeys(result.task.statistic for result in merged.tasks)),
        level=next(iter(by_level)),
        slices={column: _merge_results(parts) for column, parts in sliced.items()},
    )


def _statistics_by_level(statistics: Sequence[str], levels: Sequence[str]) -> dict[str, list[str]]:
    """Assign each statistic to the requested levels it supports, or to its usual level."""
    if not statistics:
        return {level: [] for level in levels or ("segment",)}
    by_level: dict[str, list[str]] = {level: [] for level in levels}
    for name in statistics:
        usual = STATISTICS[name].levels
        supported = [level for level in levels if level in usual] if len(levels) > 1 else levels
        if levels and not supported:
            raise UsageError(
                f"{name} supports level {' or '.join(usual)}, not {' or '.join(levels)}"
            )
        for level in supported or usual[:1]:
            by_level.setdefault(level, []).append(name)
    return {level: names for level, names in by_level.items() if names}


def _check_options(by_level: Mapping[str, Sequence[str]], options: Mapping[str, Any]) -> None:
    """Reject incompatible options before metrics score."""
    tasks_for((), "pearson", **options)
    for level, names in by_level.items():
        for name in names:
            tasks_for(("",), name, level=level, **options)


def _make_tasks(
    sets: Sequence[AlignedScores], statistics: Sequence[str], level: str, options: Mapping[str, Any]
) -> list[Task]:
    compared = level == "segment" and all(aligned.comparisons is not None for aligned in sets)
    chosen = statistics or ["tau-strict" if compared else "pearson"]
    names = [aligned.name for aligned in sets]
    return [task for s in chosen for task in tasks_for(names, s, level=level, **options)]


def _merge_results(parts: Sequence[Results]) -> Results:
    return replace(parts[0], tasks=tuple(task for part in parts for task in part.tasks))

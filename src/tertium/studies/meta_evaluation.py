"""Meta-evaluation: agreement of metrics with human judgments, and the forms of `meta`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from tertium.core.atomic import PathLike
from tertium.core.charts import Axis, ScatterChart
from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.fields import check_unique_names, choices
from tertium.core.options import (
    Compute,
    InFiles,
    Names,
    Option,
    Resampling,
    Significance,
)
from tertium.core.result import Column, Result, Section, Table, field_values, make_page
from tertium.data.human_data_files import read_judgment_sets
from tertium.evaluation.judged import (
    HumanInputs,
    JudgedSets,
    Metrics,
    ScoredInputs,
    Sources,
    as_inputs,
    as_list,
    read_judged,
)
from tertium.evaluation.metric_choice import MetricOptions
from tertium.evaluation.slice_scores import slice_agreement
from tertium.files.text_inputs import LanguageOptions
from tertium.meta.agreement import Grouping, describe_correlation
from tertium.meta.agreement_results import Results
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.protocol import ProtocolResults, run_protocol
from tertium.meta.tasks import STATISTICS, Level, Test, resolve_statistic, tasks_for
from tertium.metrics.base.judge_run import JudgeConnection
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.scorer import format_signature
from tertium.studies.diagnostics import DiagnosticReport, run_diagnostics
from tertium.studies.error_analysis import ErrorAnalysis, analyse
from tertium.studies.good_decisions import (
    Decisions,
    DifferenceScales,
    evaluate_decisions,
    fit_difference_scales,
)
from tertium.studies.span_agreement import SpanStudy, compare_spans


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
                    if not self.p_values:
                        rows.append(row)
                        continue
                    for name, p in record["p_better_than"].items():
                        if name != record["metric"]:
                            rows.append({**row, "other": name, "p": p})
        names = "metric statistic set value low high rank judged used"
        if self.p_values:
            names = "metric other statistic set p"
        if self.slices:
            names += " by"
        return Table([*map(Column, names.split())], rows)

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
    columns = as_list(by)
    levels = [name for name in as_list(level) if name]
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


def make_scatter_charts(
    sets: Sequence[AlignedScores], *, level: str = "segment", negated: Collection[str] = ()
) -> list[ScatterChart]:
    """Return one row of scatter plots per metric, with a column per dataset."""
    charts: list[ScatterChart] = []
    metrics = tuple(dict.fromkeys(metric for dataset in sets for metric in dataset.metrics))
    for row, metric in enumerate(metrics):
        for dataset in sets:
            aligned = dataset.with_metrics(metrics)
            human = aligned.human.ravel()
            scores = aligned.scores[row].ravel()
            if level == "system":
                human = aligned.human_systems
                scores = aligned.system_scores[row]
            caption = f"{dataset.name}: not scored"
            if metric in dataset.metrics:
                caption = f"{dataset.name}  {describe_correlation(human, scores)}"
            chart = ScatterChart(
                caption=caption,
                row=row,
                x=Axis(name="human", values=human),
                y=Axis(name=f"−{metric}" if metric in negated else metric, values=scores),
                has_trend=True,
                names=aligned.systems if level == "system" else (),
            )
            charts.append(chart)
    return charts


@dataclass(frozen=True, kw_only=True)
class JudgedMetrics(MetricOptions, LanguageOptions):
    """Metrics that score judged translations, which may be in several languages.

    Attributes
    ----------
    metrics
        Metrics such as bleu or chrf:word_order=2; see `tertium list`.
    target_language
        Language of the translations, for meteor, tertium-small and the tokenizer of bleu and nist;
        with --source-language also for metrics that read the source (default: detected; bleu and
        nist: none, since judgments may mix languages).
    """

    def load_judged(self) -> list[Metric]:
        """Load the metrics, with the languages of the options."""
        source = self.source_language or ""
        target = self.target_language or ""
        return self.load_for(self.metrics, source, target)


@dataclass(frozen=True, kw_only=True)
class Statistics(Significance):
    """Statistics of agreement, their grouping, slices and tests.

    Attributes
    ----------
    statistic
        One or more of pearson, spearman, kendall, acc-eq, acc-eq*, darr, darr17, tau-strict, tau13,
        tau14, consistency, accuracy, spa; also the names in papers, such as acc_eq, SPA,
        kendall-tau-b (default: pearson, or tau-strict for comparisons).
    level
        Segment, system or both (default: by statistic).
    grouping
        Compute a statistic within groups and average (default: by statistic).
    by
        Also show results by domain, document, length, language or any column of the judgments.
    test
        Significance test of differences (default: auto, by statistic).
    resamples
        Resamples of tests and intervals, 0 for neither.
    """

    statistic: Names = ()
    level: tuple[Level, ...] = ()
    grouping: Grouping | None = None
    by: Annotated[Names, Option(metavar="COLUMN")] = ()
    test: Test = "auto"

    def __post_init__(self) -> None:
        for name in self.statistic:
            resolve_statistic(name)  # fail before files are read


def evaluate_metrics(
    inputs: ScoredInputs,
    metrics: JudgedMetrics,
    statistics: Statistics,
    compute: Compute,
    judge: JudgeConnection,
    *,
    confidence: Annotated[bool, Option(group="Statistics")] = False,
    pairs: Annotated[bool, Option(group="Output")] = False,
) -> AgreementStudy:
    """Measure how well metrics agree with human judgments, and whether they differ.

    Parameters
    ----------
    confidence
        Show confidence intervals.
    pairs
        Also show p-values of all pairs (in TSV only these).

    Examples
    --------
    tertium meta --human judgments.tsv --scores chrf.tsv mymetric.tsv
    tertium meta --human judgments.jsonl -m bleu chrf --statistic pearson kendall --by domain
    tertium meta --human judgments.jsonl -m bleu chrf -o report.html scatter.svg

    Notes
    -----
    docs/meta-evaluation/human-judgments.md describes the formats of --human and --scores. Each
    language pair becomes a column. Scores are matched to language pairs by the file name, its
    folder or a column `lp`, and to judgments by system and segment. An .svg file has scatter plots.
    """
    if not statistics.resamples and (confidence or pairs):
        raise UsageError("--confidence and --pairs need resamples, but --resamples is 0")
    study = meta_evaluate(inputs, metrics.load_judged(), **field_values(statistics))
    return replace(study, intervals=confidence, p_values=pairs)


def diagnose_metrics(
    inputs: ScoredInputs,
    metrics: JudgedMetrics,
    tests: Significance,
    compute: Compute,
    judge: JudgeConnection,
) -> DiagnosticReport:
    """Run diagnostics of metrics: baselines, bad outputs, references and length.

    Examples
    --------
    tertium meta diagnostics --human judgments.jsonl -m bleu chrf
    tertium meta diagnostics --human judgments.jsonl -m tertium-multi -o diagnostics.html
    """
    return run_diagnostics(read_judged(inputs, metrics.load_judged()), seed=tests.seed)


def rank_by_protocol(
    protocol: Literal["wmt24", "wmt25"],
    /,
    inputs: ScoredInputs,
    metrics: JudgedMetrics,
    tests: Significance,
    compute: Compute,
    judge: JudgeConnection,
) -> ProtocolResults:
    """Rank metrics by the rules of a shared task.

    Parameters
    ----------
    protocol
        The shared task: wmt24 or wmt25.

    Examples
    --------
    tertium meta protocol wmt24 --human wmt24/ --gold mqm
    tertium meta protocol wmt25 --human judgments.jsonl -m chrf tertium-multi

    Notes
    -----
    The rank is that of the average of SPA and acc_eq* over all language pairs.
    """
    judged_sets = read_judged(inputs, metrics.load_judged())
    ranking = run_protocol(judged_sets.sets, protocol, **field_values(tests))
    return replace(ranking, excluded_counts=judged_sets.excluded_counts)


def evaluate_metric_decisions(
    inputs: ScoredInputs,
    metrics: JudgedMetrics,
    compute: Compute,
    judge: JudgeConnection,
    *,
    good_score: Annotated[float, Option(group="Statistics")],
) -> Decisions:
    """Measure how well metrics find good translations, the best output and unreliable scores.

    Parameters
    ----------
    good_score
        Human score of a good translation.

    Examples
    --------
    tertium meta decisions --good-score 80 --human judgments.jsonl -m chrf tertium-multi
    """
    judged_sets = read_judged(inputs, metrics.load_judged())
    return evaluate_decisions(judged_sets, min_good_score=good_score)


def fit_metric_thresholds(
    inputs: ScoredInputs, metrics: JudgedMetrics, compute: Compute, judge: JudgeConnection
) -> DifferenceScales:
    """Measure how often human raters agree with a score difference of two systems.

    Examples
    --------
    tertium meta thresholds --human judgments.jsonl -m chrf bleu
    """
    return fit_difference_scales(read_judged(inputs, metrics.load_judged(), level="system"))


def compare_metric_spans(
    spans: Annotated[InFiles, Option(metavar="SPANS")] = (),
    /,
    *,
    inputs: HumanInputs,
    metrics: JudgedMetrics,
    tests: Resampling,
    compute: Compute,
    judge: JudgeConnection,
) -> SpanStudy:
    """Compare error spans of metrics with those that human annotators marked.

    Parameters
    ----------
    spans
        Files of error spans (default: those that the metrics of -m mark).

    Examples
    --------
    tertium meta spans mymetric.jsonl --human modern/dev/mqm/ted21
    tertium meta spans --human mqm.tsv -m tertium-multi
    """
    return compare_spans(inputs, metrics.load_judged(), spans=spans, **field_values(tests))


def find_metric_disagreement(
    metrics: JudgedMetrics,
    compute: Compute,
    judge: JudgeConnection,
    *,
    human: Annotated[InFiles, Option(group="Input")],
    gold: Annotated[str, Option(group="Input")] = "",
    count: Annotated[int, Option("-n", "--count", group="Output")] = 0,
) -> ErrorAnalysis:
    """Compare two metrics on the translations with the best human scores.

    Parameters
    ----------
    human
        Translations with human scores.
    gold
        Human scores to use: a name in a folder (mqm) or a column of a file.
    count
        Examples of each kind to show.

    Examples
    --------
    tertium meta disagreement --human da/wmt16/*-en.jsonl.gz -m svr chrf
    tertium meta disagreement --human mine.tsv -m esim bleu --count 3

    Notes
    -----
    Of the best translations by human score (a fifth of each language pair), the table counts those
    that only one metric rates high (in the best fifth of its own scores), by word overlap with the
    reference, by unknown words (not in the references) and by length.
    """
    if len(metrics.metrics) != 2:
        raise UsageError("expected two metrics: give -m METRIC METRIC")
    sets = read_judgment_sets(human, gold)
    return analyse(sets, *metrics.load_judged(), example_count=count)

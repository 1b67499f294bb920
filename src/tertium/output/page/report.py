"""Reports: results on one page, with charts and a browser of all segments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Annotated, Any, ClassVar

import numpy as np

from tertium.core.atomic import PathLike
from tertium.core.charts import Axis, HeatMap, IntervalChart, ScatterChart
from tertium.core.errors import UsageError
from tertium.core.options import Compute, InFile, Option, Output
from tertium.core.result import Result, Section, Table, View
from tertium.core.scores import ScoreMatrix
from tertium.data.human_data_files import read_human_segment_scores
from tertium.data.testset import TestSet
from tertium.evaluation.checking import CheckOptions, check
from tertium.evaluation.comparison import Comparison, add_significance
from tertium.evaluation.error_marking import mark_errors
from tertium.evaluation.metric_choice import (
    MetricOptions,
    default_metrics,
    load_metrics_for,
    target_texts,
)
from tertium.evaluation.paired_tests import SignificanceTests
from tertium.evaluation.score_command import SlicedResult
from tertium.evaluation.scoring import References, Translations, as_testset, score
from tertium.evaluation.slice_scores import Slices
from tertium.evaluation.system_scores import Evaluation
from tertium.files.text_inputs import InputFiles
from tertium.meta.agreement import describe_correlation
from tertium.meta.agreement_results import Results
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.tasks import Task
from tertium.metrics.base.judge_run import JudgeServer
from tertium.metrics.base.metric import Metric
from tertium.output.charts.draw import both_finite, pearson
from tertium.output.page.segment_browser import (
    SegmentExplanation,
    browse_segments,
    check_explainer,
    explain_items,
)
from tertium.output.page.translation_grid import (
    TranslationGrid,
    grid_from_aligned_scores,
    grid_from_evaluation,
)
from tertium.studies.meta_evaluation import AgreementStudy, make_scatter_charts

AGREEMENT_RESAMPLES = 1000
DEFAULT_EXPLAINED_SEGMENTS = 8
MAX_EXPANDED_ROWS = 24  # longer tables are collapsed


@dataclass(frozen=True, kw_only=True, eq=False)
class Report(Result):
    """Results on one page, with charts and a browser of all segments.

    Printed text and files of tables are those of the results.

    Attributes
    ----------
    results
        The results, in the order of the page.
    grid
        The translations with scores and warnings.
    title
        The title of the page.
    explained
        Explanations of selected segments.
    system_charts
        Sections of charts of systems.
    """

    results: tuple[Result, ...]
    grid: TranslationGrid = field(repr=False)
    title: str
    explained: tuple[SegmentExplanation, ...] = field(default=(), repr=False)
    system_charts: Sequence[Section] = field(default=(), repr=False)

    def tables(self) -> list[Table]:
        """Return the tables of the results."""
        return [table for result in self.results for table in result.tables()]

    def file_table(self, suffix: str = "") -> Table:
        """Return the table of the first result."""
        return self.results[0].file_table(suffix)

    def records(self) -> Any:
        """Return the records of the first result."""
        return self.results[0].records()

    @property
    def page_title(self) -> str:
        """The title."""
        return self.title

    @property
    def page_subtitle(self) -> str:
        """The number of systems, segments, documents, metrics and human scores."""
        grid = self.grid
        counts = {
            "system": len(grid.systems),
            "segment": len(grid.items),
            "document": len({item.document for item in grid.items if item.document}),
            "metric": len(grid.columns),
            "human score": 0 if grid.human is None else int(np.isfinite(grid.human).sum()),
        }
        texts = [f"{n:,} {noun}{'' if n == 1 else 's'}" for noun, n in counts.items() if n]
        return " · ".join(texts)

    def sections(self) -> list[Section]:
        """Return the sections of the results, charts, and all segments."""
        sections = [_collapse(own) for result in self.results for own in result.sections()]
        charts = [*self.system_charts, *chart_translations(self.grid)]
        if charts:
            sections.append(Section("Charts", charts))
        return [*sections, Section("Segments", [browse_segments(self.grid, self.explained)])]


def _collapse(section: Section) -> Section:
    """Return a section whose long tables the reader expands."""
    contents = []
    for part in section.contents:
        if isinstance(part, Table) and part.title and len(part.rows) > MAX_EXPANDED_ROWS:
            title = f"{part.title} ({len(part.rows):,} rows)"
            part = Section(title, [part], is_collapsed=True)
        contents.append(part)
    return replace(section, contents=contents)


def report(
    testset: Translations,
    metrics: str | Metric | Sequence[str | Metric] | None = None,
    *,
    sources: Sequence[str] | None = None,
    references: References = None,
    tests: SignificanceTests | None = None,
    human: ScoreMatrix | PathLike | None = None,
    explain: int = DEFAULT_EXPLAINED_SEGMENTS,
    explain_with: str | Metric | None = None,
    title: str = "",
    more: Sequence[Result] = (),
) -> Report:
    """Score and compare systems and return a report; `write(path)` saves it as one HTML page.

    Parameters
    ----------
    testset
        A `TestSet`, a pandas or polars frame, or lists of translations by system.
    metrics
        Metrics or specs; by default as in `tertium.compare`.
    sources, references
        Texts for each segment, if `testset` is a dictionary of lists.
    tests
        The significance test, its resamples, and columns to slice the results by; by default the
        bootstrap, and randomization for slices.
    human
        Human segment scores, or a file with them.
    explain
        Number of segments to explain, where metrics, human scores or systems differ most.
    explain_with
        Metric that explains them, such as a judge, which then reads only these; by default all
        metrics that can.
    title
        Title of the page; by default the names of the test set and systems.
    more
        Further results to show, such as those of `tertium.check` and `tertium.challenge`.

    Returns
    -------
    Report
        The results with all segments.
    """
    testset = as_testset(testset, sources, references)
    if not isinstance(explain, int) or explain < 0:
        raise UsageError(f"--explain {explain}: expected zero or more segments")
    tests = tests or SignificanceTests()
    if not (human is None or isinstance(human, ScoreMatrix)):
        human_data = read_human_segment_scores(human, testset.systems)
        documents = human_data.labels().get("document")
        human = _name_items(human_data.segment_scores(), testset, documents)
    explainer = None if explain_with is None else check_explainer(explain_with)
    chosen = default_metrics(testset) if metrics is None else metrics
    loaded = load_metrics_for(target_texts(testset), chosen)
    results = add_significance(
        score(testset, loaded),
        test=tests.test,
        resamples=tests.resamples,
        seed=tests.seed,
        alpha=tests.alpha,
    )
    return report_results(
        results,
        loaded,
        human=human,
        explain=explain,
        explain_with=explainer,
        title=title,
        slices=SlicedResult(results, loaded, tests).slices,
        more=more,
    )


def report_results(
    results: Evaluation,
    metrics: Sequence[Metric] = (),
    *,
    human: ScoreMatrix | None = None,
    explain: int = DEFAULT_EXPLAINED_SEGMENTS,
    explain_with: Metric | None = None,
    title: str = "",
    slices: Sequence[Slices] = (),
    more: Sequence[Result] = (),
) -> Report:
    """Return a report on existing results; `metrics` are needed for explanations and spans.

    `human` holds human scores for the systems and items of the evaluation; items may also be
    numbered from 1. `more` are further results.
    """
    grid = grid_from_evaluation(results)
    all_results: list[Result] = [results]
    if human is not None:
        human = _name_items(human, results.testset)
        grid = grid.with_human(human)
        all_results.append(measure_agreement(results, human))
    all_results += slices
    if errors := mark_errors(results, metrics):
        all_results.append(errors)
    all_results += more
    explained = explain_items(results.testset, grid, metrics, explain, explain_with)
    return Report(
        results=tuple(all_results),
        grid=grid,
        title=title or results.page_title,
        explained=tuple(explained),
    )


def _name_items(
    human: ScoreMatrix, testset: TestSet, documents: Mapping[str, str] | None = None
) -> ScoreMatrix:
    """Rename the items of human scores as in the test set; `documents` maps items to documents.

    An item whose name belongs to a segment of another document is prefixed with its document.
    """
    names = testset.items
    item_documents = documents or {}
    matched = testset.match_item_names(human.items, documents)
    ambiguous = {*names} & {*item_documents} - {*matched}
    new_names = {label: f"{item_documents[label]}:{label}" for label in ambiguous}
    new_names |= dict(zip(matched, names, strict=True))
    items = tuple(new_names.get(label, label) for label in human.labels)
    return replace(human, items=items)


def measure_agreement(evaluation: Evaluation, human: ScoreMatrix) -> Results:
    """Return the correlation of the metrics with human scores (Pearson, Kendall).

    Its tests have the seed and the significance level of a comparison.
    """
    tests = evaluation if isinstance(evaluation, Comparison) else SignificanceTests()
    names = evaluation.names
    negated = []
    matrices = []
    for metric in evaluation.metrics:
        scores = evaluation.metric_scores(metric)
        values = np.stack([s.oriented_segments for s in scores])
        items = evaluation.testset.items
        matrices.append(ScoreMatrix(names[metric], evaluation.systems, values, items))
        if not scores[0].higher_is_better:
            negated.append(names[metric])
    aligned = AlignedScores.align("segments", matrices, human=human)
    tasks = [
        Task(
            sets=("segments",),
            statistic="pearson",
            resamples=AGREEMENT_RESAMPLES,
            alpha=tests.alpha,
        ),
        Task(sets=("segments",), statistic="kendall", resamples=0),
    ]
    return replace(MetaEvaluation([aligned], seed=tests.seed).run(tasks), negated=negated)


def report_meta_evaluation(study: AgreementStudy) -> Report:
    """Return a report on the agreement of metrics with human scores."""
    negated = study.negated_metrics
    grid = grid_from_aligned_scores(
        study.sets,
        {name: human_data.texts() for name, human_data in study.human_data.items()},
        decimals={metric.spec: metric.decimals for metric in study.metrics},
        negated=negated,
    )
    return Report(
        results=(study,),
        grid=grid,
        title=study.page_title,
        system_charts=chart_systems(study.sets, negated),
    )


MAX_METRIC_PAIRS = 9
MAX_SYSTEM_CHARTS = 24
MIN_JUDGED_SYSTEMS = 3  # of a scatter plot of systems
MAX_SYSTEMS = 25  # of a distribution chart
MIN_SEGMENTS = 5  # of a distribution


def chart_translations(grid: TranslationGrid) -> list[Section]:
    """Return a section for each kind of chart that there is data for."""
    if not len(grid):
        return []
    sections = [
        _chart_distributions(grid),
        _chart_human_scores(grid),
        _chart_metric_pairs(grid),
    ]
    return [section for section in sections if section is not None]


def chart_systems(sets: Sequence[AlignedScores], negated: frozenset[str]) -> list[Section]:
    """Return scatter plots of system-level metric scores against human scores, if any."""
    charts = make_scatter_charts(sets, level="system", negated=negated)
    charts = [c for c in charts if both_finite(c.x, c.y).sum() >= MIN_JUDGED_SYSTEMS]
    title = "System level: metrics against human scores"
    contents = ["Each dot is a system.", *charts[:MAX_SYSTEM_CHARTS]]
    return [Section(title, contents)] if charts else []


def _chart_distributions(grid: TranslationGrid) -> Section | None:
    """Return the distribution of segment scores by system and metric."""
    counts = np.bincount(grid.system_indices, minlength=len(grid.systems))
    largest = sorted(np.argsort(-counts, kind="stable")[:MAX_SYSTEMS])
    charts = []
    for column in grid.columns:
        names = []
        quartiles = []
        for system in largest:
            values = column.values[grid.system_indices == system]
            finite = values[np.isfinite(values)]
            if len(finite) >= MIN_SEGMENTS:
                names.append(grid.systems[system])
                quartiles.append(np.percentile(finite, [25, 50, 75]))
        if names:
            first, median, third = np.transpose(quartiles)
            chart = IntervalChart(
                title=f"Distribution of {column.name}",
                caption=column.name,
                names=names,
                values=median,
                intervals=np.stack([first, third], axis=1),
                clusters=[0] * len(names),
                higher_is_better=column.higher_is_better,
                decimals=column.decimals,
            )
            charts.append(chart)
    note = "The dot is the median of segment scores, the line the interquartile range."
    if (counts < MIN_SEGMENTS).any() or len(counts) > MAX_SYSTEMS:
        note += f" At most {MAX_SYSTEMS} systems with at least {MIN_SEGMENTS} segments are shown."
    return Section("Distributions", [note, *charts]) if charts else None


def _chart_human_scores(grid: TranslationGrid) -> Section | None:
    """Return scatter plots of each metric against human scores."""
    if grid.human is None or not np.isfinite(grid.human).any():
        return None
    human = Axis(name="human score", values=grid.human)
    note = "Each dot is a translation; of many, a part is shown. The line is the least-squares fit."
    charts = [
        _correlation_chart(grid, human, own, own.name, has_trend=True) for own in grid.columns
    ]
    return Section("Metrics against human scores", [note, *charts])


def _chart_metric_pairs(grid: TranslationGrid) -> Section | None:
    """Return the correlations of all metric pairs and charts of the least correlated ones."""
    columns = grid.columns
    if len(columns) < 2:
        return None
    names = [column.name for column in columns]
    table = np.array([[abs(pearson(a, b)) for b in columns] for a in columns])
    title = "Correlation of segment scores, |r|"
    contents: list[Any] = [HeatMap(title=title, rows=names, columns=names, values=table)]
    all_pairs = combinations(range(len(columns)), 2)
    pairs = sorted(all_pairs, key=lambda pair: table[pair])
    if len(pairs) > MAX_METRIC_PAIRS:
        note = f"The {MAX_METRIC_PAIRS} least correlated of {len(pairs)} pairs are shown."
        contents.append(note)
    for i, j in pairs[:MAX_METRIC_PAIRS]:
        name = f"{names[i]}, {names[j]}"
        contents.append(_correlation_chart(grid, columns[i], columns[j], name))
    return Section("Metrics against each other", contents)


def _correlation_chart(
    grid: TranslationGrid, x: Axis, y: Axis, name: str, *, has_trend: bool = False
) -> ScatterChart:
    caption = f"{name}: {describe_correlation(x.values, y.values)}"
    return ScatterChart(x=x, y=y, caption=caption, has_trend=has_trend, label=grid.label)


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """What a page shows besides scores and segments.

    Attributes
    ----------
    human
        Human scores or comparisons of segments.
    checks
        Also show errors that can be found without a model, as `tertium check` does.
    count
        Segments to explain.
    explain_with
        Explain them with this metric, such as a judge (default: all metrics that can).
    """

    group: ClassVar[str] = "Output"
    human: Annotated[InFile | None, Option(group="Input")] = None
    checks: Annotated[bool, Option(group="Metrics")] = False
    count: Annotated[int, Option("-n", "--count")] = 8
    explain_with: Annotated[str | None, Option(metavar="METRIC")] = None


def report_files(
    inputs: InputFiles,
    metrics: MetricOptions,
    tests: SignificanceTests,
    output: Output,
    compute: Compute,
    judge: JudgeServer,
    page: PageOptions,
) -> View:
    """Write a self-contained HTML page that shows how systems and metrics differ.

    Examples
    --------
    tertium report -t a.txt b.txt -r reference.txt -o report.html
    tertium report -s source.txt -t a.txt b.txt c.txt -r reference.txt -m bleu chrf bertscore wmd
    tertium report -t a.txt b.txt -r reference.txt -m chrf --human ratings.csv --count 20
    tertium report -t systems.jsonl -m bleu chrf --by domain --checks

    Notes
    -----
    The page works offline (default: report.html). It shows scores with intervals and clusters,
    charts, and every segment with two systems side by side. Metrics that can explain a score
    (rte-r, tertium-small, bertscore, wmd and others) explain the segments where metrics, raters or
    systems differ most. `tertium score`, `compare` and `meta` write the same page with
    -o FILE.html.
    """
    paths = output.paths(Report) or ["report.html"]
    texts = inputs.read(by=tests.by)
    loaded = metrics.load(texts, default_metrics)
    judge.stop_dry_run((texts.testset, loaded))
    explainer = None
    if page.explain_with is not None:
        explainer = replace(metrics, metrics=(page.explain_with,)).load(texts, default_metrics)[0]
    more: list[Result] = []
    if page.checks:
        more.append(check(texts.testset, settings=CheckOptions().settings(texts)))
    result = report(
        texts.testset,
        loaded,
        tests=tests,
        human=page.human,
        explain=page.count,
        explain_with=explainer,
        more=more,
    )
    return View(result=result, bare="", files=[(result, path) for path in paths])

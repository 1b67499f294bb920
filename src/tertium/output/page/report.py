"""Reports: results on one page, with charts and a browser of all segments."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tertium.core.atomic import PathLike
from tertium.core.errors import UsageError
from tertium.core.result import Result, Section, Table
from tertium.core.scores import ScoreMatrix
from tertium.data.human_data_files import read_human_segment_scores
from tertium.data.testset import TestSet
from tertium.evaluation.comparison import Comparison, add_significance
from tertium.evaluation.error_marking import MarkedErrors, human_marked_errors, mark_errors
from tertium.evaluation.metric_choice import default_metrics, load_metrics_for, target_texts
from tertium.evaluation.scoring import References, Translations, as_testset, score
from tertium.evaluation.significance_options import SignificanceTests
from tertium.evaluation.slice_scores import Slices
from tertium.evaluation.sliced_result import SlicedResult
from tertium.evaluation.system_scores import Evaluation
from tertium.meta.agreement_results import Results
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.tasks import Task
from tertium.metrics.base.metric import Metric
from tertium.output.page.explained_segments import (
    SegmentExplanation,
    check_explainer,
    explain_items,
)
from tertium.output.page.figures import chart_systems, chart_translations
from tertium.output.page.segment_browser import browse_segments
from tertium.output.page.translation_grid import (
    TranslationGrid,
    grid_from_aligned_scores,
    grid_from_evaluation,
)
from tertium.studies.meta_evaluation import AgreementStudy

logger = logging.getLogger(__name__)

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
    marked = MarkedErrors()
    if not (human is None or isinstance(human, ScoreMatrix)):
        human_data = read_human_segment_scores(human, testset.systems)
        documents = human_data.labels().get("document")
        human = _name_items(human_data.segment_scores(), testset, documents)
        marked = human_marked_errors(testset, human_data)
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
        marked=marked,
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
    marked: MarkedErrors | None = None,
    more: Sequence[Result] = (),
) -> Report:
    """Return a report on existing results; `metrics` are needed for explanations and spans.

    `human` holds human scores for the systems and items of the evaluation; items may also be
    numbered from 1. `marked` are additional error annotations, `more` further results.
    """
    grid = grid_from_evaluation(results)
    all_results: list[Result] = [results]
    if human is not None:
        human = _name_items(human, results.testset)
        grid = grid.with_human(human)
        all_results.append(measure_agreement(results, human))
    all_results += slices
    errors = MarkedErrors([*(marked or ()), *mark_errors(results, metrics)])
    if errors:
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

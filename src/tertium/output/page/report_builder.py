"""Build reports: `tertium.report`, and reports of existing results."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from tertium.arrays import BoolArray
from tertium.atomic import PathLike
from tertium.checks.configuration import CheckSettings
from tertium.core.result import Table
from tertium.data.challenge_sets import ChallengeSet, join_challenges, read_challenge
from tertium.data.human_data_files import read_human_segment_scores
from tertium.data.testset import TestSet
from tertium.errors import MissingInputError, UsageError
from tertium.evaluation.challenge import ChallengeStudy, challenge
from tertium.evaluation.checking import CheckReport, check
from tertium.evaluation.comparison import Test, add_significance, check_test_options
from tertium.evaluation.diagnostics.run import DiagnosticReport
from tertium.evaluation.error_marking import MarkedTranslations, human_marked_errors, mark_errors
from tertium.evaluation.evaluation import Evaluation, distinct_labels
from tertium.evaluation.meta_evaluation import AgreementStudy
from tertium.evaluation.meta_inputs import as_list
from tertium.evaluation.metric_choice import default_metrics, load_metrics_for, target_texts
from tertium.evaluation.rows import find_scorable
from tertium.evaluation.scoring import References, Translations, as_testset, score
from tertium.evaluation.slices import Slices, slice_results
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.evaluation import MetaEvaluation
from tertium.meta.results import Results
from tertium.meta.tasks import Task
from tertium.metrics.base.metric import Metric
from tertium.output.error_span_markup import marked_errors_section
from tertium.output.page import sections
from tertium.output.page.explained_segments import check_explainer, explain_items
from tertium.output.page.findings_page import findings_section
from tertium.output.page.report import Report
from tertium.output.page.translation_grid import (
    TranslationGrid,
    grid_from_aligned_scores,
    grid_from_evaluation,
)
from tertium.scores import ScoreMatrix
from tertium.specs import check_unique_names

logger = logging.getLogger(__name__)

# name and title of sections
SLICES_SECTION = ("slices", "Slices")
ERRORS_SECTION = ("errors", "Error spans")
CHECKS_SECTION = ("checks", "Checks")
CHALLENGE_SECTION = ("challenge", "Challenge set")
DIAGNOSTICS_SECTION = ("diagnostics", "Diagnostics")
AGREEMENT_RESAMPLES = 1000
DEFAULT_EXPLAINED_SEGMENTS = 8


def report(
    testset: Translations,
    metrics: str | Metric | Sequence[str | Metric] | None = None,
    *,
    sources: Sequence[str] | None = None,
    references: References = None,
    human: ScoreMatrix | PathLike | None = None,
    explain: int = DEFAULT_EXPLAINED_SEGMENTS,
    explain_with: str | Metric | None = None,
    title: str = "",
    by: str | Sequence[str] = (),
    challenges: PathLike | Sequence[PathLike] = (),
    checks: CheckSettings | bool = False,
    test: Test | None = None,
    resamples: int | None = None,
    slice_resamples: int | None = None,
    seed: int = 12345,
    alpha: float = 0.05,
) -> Report:
    """Score and compare systems and return a report; `write(path)` saves it as one HTML page.

    Args:
        testset: a `TestSet`, a pandas or polars frame, or lists of translations by system.
        metrics: metrics or specs; default as in `tertium.compare`.
        sources, references: texts for each segment, if `testset` is a dictionary of lists.
        human: human segment scores, or a file with them.
        explain: number of segments to explain, where metrics, human scores or systems differ most.
        explain_with: metric that explains them, such as a judge, which then reads only these;
            default: all metrics that can.
        title: title of the page; default: the names of the test set and systems.
        by: columns to slice the results by (`slice_results`).
        challenges: challenge sets on which to evaluate the metrics (`tertium.challenge`).
        checks: also show the findings of `tertium.check`, with these settings or by default.
        test: significance test; default: bootstrap, and randomization for slices.
        resamples: resamples of the test; `slice_resamples` for slices without `test`.
        seed: seed of all tests.
        alpha: significance level.
    """
    testset = as_testset(testset, sources, references)
    if not isinstance(explain, int) or explain < 0:
        raise UsageError(f"--explain {explain}: expected zero or more segments")
    overall_test: Test = "bootstrap" if test is None else test
    for count in (resamples, slice_resamples):
        check_test_options(overall_test, alpha, count)
    marked: list[MarkedTranslations] = []
    if not (human is None or isinstance(human, ScoreMatrix)):
        human_data = read_human_segment_scores(human, testset.systems)
        documents = human_data.labels().get("document")
        human = _name_items(human_data.segment_scores(), testset, documents)
        marked = human_marked_errors(testset, human_data)
    check_unique_names("--by", as_list(by))
    explainer = None if explain_with is None else check_explainer(explain_with)
    challenge_sets = [read_challenge(source) for source in as_list(challenges)]
    chosen = default_metrics(testset) if metrics is None else metrics
    loaded = load_metrics_for(target_texts(testset), chosen)
    evaluation = score(testset, loaded)
    results = add_significance(
        evaluation, test=overall_test, resamples=resamples, seed=seed, alpha=alpha
    )
    slice_options: dict[str, Any] = {"resamples": slice_resamples}
    if test is not None:
        slice_options = {"test": test, "resamples": resamples}
    challenge_study = None
    if challenge_sets:
        challenge_study = _run_challenge(join_challenges(challenge_sets), loaded)
    return report_results(
        results,
        loaded,
        human=human,
        explain=explain,
        explain_with=explainer,
        title=title,
        slices=[slice_results(results, column, **slice_options) for column in as_list(by)],
        marked=marked,
        challenge_study=challenge_study,
        findings=_find_errors(testset, checks),
        seed=seed,
        alpha=alpha,
    )


def _find_errors(testset: TestSet, checks: CheckSettings | bool) -> CheckReport | None:
    if not checks:
        return None
    return check(testset, settings=checks if isinstance(checks, CheckSettings) else None)


def _run_challenge(pairs: ChallengeSet, metrics: Sequence[Metric]) -> ChallengeStudy:
    """Evaluate the metrics that can score the pairs of a challenge set."""
    segments = [s for contrast in pairs.contrasts for s in (contrast.better, contrast.worse)]
    usable: list[Metric] = []
    for metric in metrics:
        try:
            metric.check([*compress(segments, find_scorable(segments, metric))] or segments)
        except MissingInputError as error:
            logger.warning("%s cannot score challenge set %s: %s", metric.spec, pairs.name, error)
            continue
        usable.append(metric)
    if not usable:
        raise UsageError(f"--challenge {pairs.name}: no metric can score it; add another metric")
    return challenge(pairs, usable)


def report_results(
    results: Evaluation,
    metrics: Sequence[Metric] = (),
    *,
    human: ScoreMatrix | None = None,
    explain: int = DEFAULT_EXPLAINED_SEGMENTS,
    explain_with: Metric | None = None,
    title: str = "",
    slices: Sequence[Slices] = (),
    marked: Sequence[MarkedTranslations] = (),
    challenge_study: ChallengeStudy | None = None,
    findings: CheckReport | None = None,
    seed: int = 12345,
    alpha: float = 0.05,
) -> Report:
    """Return a report on existing results; `metrics` are needed for explanations and spans.

    `human` holds human scores for the systems and items of the evaluation; items may also be
    numbered from 1. `marked` are additional error annotations. `seed` and `alpha` are those of
    the agreement tests.
    """
    grid = grid_from_evaluation(results)
    human = None if human is None else _name_items(human, results.testset)
    grid = _add_warnings(grid if human is None else grid.with_human(human), results)
    extra_sections = [(*SLICES_SECTION, sections.slices_contents(slices))] if slices else []
    all_marked = [*marked, *mark_errors(results, metrics)]
    extra_sections += [(*ERRORS_SECTION, marked_errors_section(all_marked))] if all_marked else []
    if findings is not None:
        extra_sections.append((*CHECKS_SECTION, findings_section(findings)))
    if challenge_study is not None:
        extra_sections.append((*CHALLENGE_SECTION, sections.challenge_contents(challenge_study)))
    return Report(
        title=title or _title(results),
        grid=grid,
        results=results,
        agreement=() if human is None else human_agreement_tables(results, human, seed, alpha),
        explained=tuple(explain_items(results.testset, grid, metrics, explain, explain_with)),
        extra_sections=tuple(extra_sections),
    )


def _name_items(
    human: ScoreMatrix, testset: TestSet, documents: Mapping[str, str] | None = None
) -> ScoreMatrix:
    """Rename the items of human scores as in the test set; `documents` maps items to documents.

    An item whose name belongs to a segment of another document is prefixed with its document.
    """
    names, item_documents = testset.items, documents or {}
    matched = testset.match_item_names(human.items, documents)
    ambiguous = {*names} & {*item_documents} - {*matched}
    new_names = {label: f"{item_documents[label]}:{label}" for label in ambiguous}
    new_names |= dict(zip(matched, names, strict=True))
    return replace(human, items=tuple(new_names.get(label, label) for label in human.labels))


def human_agreement_tables(
    evaluation: Evaluation, human: ScoreMatrix, seed: int, alpha: float
) -> tuple[Table, ...]:
    """Return tables of the correlation of the metrics with human scores (Pearson, Kendall)."""
    names = evaluation.names
    matrices = []
    for metric in evaluation.metrics:
        scores = evaluation.metric_scores(metric)
        values = np.stack([s.oriented_segments for s in scores])
        items = evaluation.testset.items
        matrices.append(ScoreMatrix(names[metric], evaluation.systems, values, items))
    aligned = AlignedScores.align("segments", matrices, human=human)
    tasks = [
        Task(sets=("segments",), statistic="pearson", resamples=AGREEMENT_RESAMPLES, alpha=alpha),
        Task(sets=("segments",), statistic="kendall", resamples=0),
    ]
    results = MetaEvaluation([aligned], seed=seed).run(tasks)
    lower_is_better = [
        names[m] for m in evaluation.metrics if not evaluation.metric_scores(m)[0].higher_is_better
    ]
    return _agreement_tables(results, lower_is_better)


def _title(evaluation: Evaluation) -> str:
    name = evaluation.testset.name
    systems = evaluation.systems
    compared = ", ".join(systems[:4]) + (f" and {len(systems) - 4} more" if systems[4:] else "")
    return f"{name}: {compared}" if name else compared


def report_meta_evaluation(
    agreement: AgreementStudy, diagnostics: DiagnosticReport | None = None
) -> Report:
    """Return a report on the agreement of metrics with human scores, and on diagnostics."""
    labels = {metric.spec: metric.label for metric in agreement.metrics}
    names = distinct_labels({m: labels.get(m, m) for m in agreement.results.metrics})
    negated = agreement.negated_metrics
    lower_is_better = [
        names[m] for m in (*agreement.lower_better, *labels) if m in negated and m in names
    ]
    texts = {name: human_data.texts() for name, human_data in agreement.human_data.items()}
    scored = [list(own.values()) for own in texts.values() if own]
    results = rename_metrics(agreement.results, names)
    extra_sections = []
    if agreement.slices:
        sliced = {by: rename_metrics(own, names) for by, own in agreement.slices.items()}
        extra_sections.append((*SLICES_SECTION, sections.agreement_slices_contents(sliced)))
    if diagnostics is not None:
        extra_sections.append((*DIAGNOSTICS_SECTION, sections.diagnostics_contents(diagnostics)))
    return Report(
        title="Metrics and human scores",
        grid=grid_from_aligned_scores(
            agreement.sets,
            texts,
            names=names,
            decimals={metric.spec: metric.decimals for metric in agreement.metrics},
            negated=negated,
        ),
        agreement=_agreement_tables(results, lower_is_better),
        aligned_scores=tuple(_restore_signs(dataset, names, negated) for dataset in agreement.sets),
        findings=tuple(results.summary()),
        signatures=tuple(
            dict.fromkeys(m.signature(own) for m in agreement.metrics for own in scored)
        ),
        extra_sections=tuple(extra_sections),
    )


def rename_metrics(results: Results, names: Mapping[str, str]) -> Results:
    """Return the results with display names of metrics."""
    metrics = tuple(names[metric] for metric in results.metrics)
    return replace(
        results, metrics=metrics, tasks=tuple(replace(t, metrics=metrics) for t in results.tasks)
    )


def _restore_signs(
    dataset: AlignedScores, names: Mapping[str, str], negated: Collection[str]
) -> AlignedScores:
    """Return the scores with display names and their original signs."""
    signs = np.array([-1.0 if metric in negated else 1.0 for metric in dataset.metrics])
    return replace(
        dataset,
        metrics=tuple(names.get(metric, metric) for metric in dataset.metrics),
        system_scores=signs[:, None] * dataset.system_scores,
    )


def _agreement_tables(results: Results, lower_is_better: Sequence[str]) -> tuple[Table, ...]:
    """Return a table per statistic with notes on its test and on negated metrics."""
    names = ", ".join(lower_is_better)
    negation = [f"{names}: lower is better; agreement uses negated scores"] if names else []
    tables = []
    for part in results.by_statistic().values():
        first = part.tasks[0].task
        table = part.agreement_table(intervals=bool(first.resamples))
        notes = [*table.notes, *first.describe_test(), *negation]
        tables.append(replace(table, notes=notes))
    return tuple(tables)


def _add_warnings(grid: TranslationGrid, evaluation: Evaluation) -> TranslationGrid:
    """Add the warnings of metrics to the translations that they are about."""
    masks: dict[str, BoolArray] = {}
    for place, system in enumerate(evaluation.systems):
        for scores in evaluation.scores[system].values():
            for kind, flags in scores.flags.items():
                if kind not in grid.warnings:
                    mask = masks.setdefault(kind, np.zeros(len(grid), dtype=bool))
                    mask[place :: len(evaluation.systems)] |= flags
    return replace(grid, warnings={**grid.warnings, **masks})

"""Make the page: `tertium.report`, and pages of results that are there already."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import numpy as np

from tertium.arrays import BoolArray
from tertium.data.challenge import ChallengeSet, join_challenges, read_challenge
from tertium.data.evidence import read_people
from tertium.data.formats import PathLike
from tertium.data.testset import TestSet, check_testset
from tertium.errors import NeedsError, TertiumError, UsageError
from tertium.evaluation.agreement import AgreementStudy
from tertium.evaluation.challenge import ChallengeStudy, challenge
from tertium.evaluation.comparison import Test, check_test, with_tests
from tertium.evaluation.explaining import add_marks
from tertium.evaluation.gathering import several
from tertium.evaluation.marking import MarkedTranslations, mark_systems, people_marks
from tertium.evaluation.panel.panel import DoubtPanel
from tertium.evaluation.ranking import Ranking, rank
from tertium.evaluation.scoring import (
    Evaluation,
    distinct_labels,
    locate_warnings,
    score,
    serves,
    usual_metrics,
)
from tertium.evaluation.slices import Slices, slice_results
from tertium.meta.curves import Curve, read_curves
from tertium.meta.evaluation import MetaEvaluation
from tertium.meta.judged import JudgedSet
from tertium.meta.results import Results
from tertium.meta.tasks import Task
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric
from tertium.metrics.base.ranker import Ranker
from tertium.registry import check_once
from tertium.reporting.marks import marked_section
from tertium.reporting.page.explained import Explained, explanation, win_probabilities
from tertium.reporting.page.grid import (
    TranslationGrid,
    grid_of_evaluation,
    grid_of_judged,
    interesting_items,
    systems_to_explain,
)
from tertium.reporting.page.page import Report
from tertium.reporting.page.sections import (
    agreement_slices_contents,
    challenge_contents,
    doubts_contents,
    slices_contents,
)
from tertium.reporting.tables.agreements import agreement_findings, agreement_table, words_of_test
from tertium.reporting.tables.table import Table
from tertium.runtime import track
from tertium.scores import ScoreMatrix
from tertium.segment import Segment

logger = logging.getLogger(__name__)

SLICED = ("slices", "Slices")  # the name and title of a section
MARKED = ("errors", "Marked errors")
CHALLENGED = ("challenge", "Challenge set")
SAMPLES = 1000  # of the tests of agreement
EXPLAINED = 8  # segments that a report explains unless told otherwise


def report(
    testset: TestSet,
    metrics: str | Metric | Sequence[str | Metric] | None = None,
    *,
    ranker: str | Metric | Ranker | None = None,
    human: ScoreMatrix | PathLike | None = None,
    curves: PathLike | Sequence[PathLike] = (),
    explain: int = EXPLAINED,
    title: str = "",
    by: str | Sequence[str] = (),
    challenges: PathLike | Sequence[PathLike] = (),
    test: Test | None = None,
    resamples: int | None = None,
    slice_resamples: int | None = None,
    seed: int = 12345,
    alpha: float = 0.05,
) -> Report:
    """Score and compare systems and show everything on one page; `write(path)` saves it.

    `metrics` are those of `tertium.compare` unless they are given; `ranker` adds its chances to
    win; `human` are people's scores of the segments, or a file of them; `curves` are JSON files of
    learning curves; so many segments as `explain` says, where metrics, people or systems differ
    most, are explained by whatever can. `by` names columns to slice by (`slice_results`), which are
    tested as the whole where a `test` is named, else by randomization (of `slice_resamples`
    trials); `challenges` are sets of `tertium.challenge` that the metrics are tried on.
    """
    check_testset(testset)
    if not isinstance(explain, int) or explain < 0:
        raise UsageError(f"--explain {explain}: expected zero or more segments")
    whole: Test = "bootstrap" if test is None else test
    check_test(whole, alpha)
    marked: list[MarkedTranslations] = []
    if not (human is None or isinstance(human, ScoreMatrix)):
        people = read_people(human, testset.systems)
        human = _name_items(people.segment_scores(), testset, people.labels().get("document"))
        marked = people_marks(testset, people)
    check_once("--by", several(by))
    drawn = read_curves(several(curves))
    pairs = [read_challenge(source) for source in several(challenges)]
    loaded = load_metrics(usual_metrics(testset) if metrics is None else metrics)
    evaluation = score(testset, loaded)
    ranking = rank(testset, ranker) if ranker is not None else None
    if ranking is not None:
        evaluation = ranking.beside(evaluation)
    results = with_tests(evaluation, test=whole, resamples=resamples, seed=seed, alpha=alpha)
    sliced: dict[str, Any] = {"resamples": slice_resamples}
    if test is not None:
        sliced = {"test": test, "resamples": resamples}
    return report_results(
        results,
        loaded,
        ranker=ranking.ranker if ranking else None,
        human=human,
        curves=drawn,
        explain=explain,
        title=title,
        slices=[slice_results(results, column, **sliced) for column in several(by)],
        marked=marked,
        tried=_try_challenge(join_challenges(pairs), loaded) if pairs else None,
        seed=seed,
        alpha=alpha,
    )


def _try_challenge(pairs: ChallengeSet, metrics: Sequence[Metric]) -> ChallengeStudy:
    """The metrics on pairs of translations, of those that can score them.

    A test set in English does not keep a challenge set from holding other languages.
    """
    segments = [s for contrast in pairs.contrasts for s in (contrast.better, contrast.worse)]
    able: list[Metric] = []
    for metric in metrics:
        try:
            metric.check([*compress(segments, serves(segments, metric))] or segments)
        except NeedsError as error:
            logger.warning("%s is not tried on %s: %s", metric.spec, pairs.name, error)
            continue
        able.append(metric)
    if not able:
        raise UsageError(f"--challenge {pairs.name}: none of the metrics can score its pairs")
    return challenge(pairs, able)


def report_results(
    results: Evaluation,
    metrics: Sequence[Metric] = (),
    *,
    ranker: Ranker | None = None,
    human: ScoreMatrix | None = None,
    curves: Mapping[str, Curve] | None = None,
    explain: int = EXPLAINED,
    title: str = "",
    slices: Sequence[Slices] = (),
    marked: Sequence[MarkedTranslations] = (),
    tried: ChallengeStudy | None = None,
    seed: int = 12345,
    alpha: float = 0.05,
) -> Report:
    """The same of systems that were scored or compared before, by these metrics.

    `human` holds people's scores, its systems and items named as in the evaluation, or its items
    numbered from 1; `marked` are errors that others marked, people for one; `tried` is how the
    metrics did on a challenge set. Without metrics it is about the scores alone. `seed` and `alpha`
    are those of the tests of agreement.
    """
    grid = grid_of_evaluation(results)
    human = None if human is None else _name_items(human, results.testset)
    grid = _locate_warnings(grid if human is None else grid.with_human(human), results, metrics)
    more = [(*SLICED, slices_contents(slices))] if slices else []
    every = [*marked, *mark_systems(results, metrics)]
    more += [(*MARKED, marked_section(every))] if every else []
    more += [(*CHALLENGED, challenge_contents(tried))] if tried is not None else []
    return Report(
        title=title or _title(results),
        grid=grid,
        results=results,
        agreement=() if human is None else human_tables(results, human, seed, alpha),
        explained=tuple(explain_items(results.testset, grid, metrics, ranker, explain)),
        curves=curves or {},
        more=tuple(more),
    )


def _name_items(
    human: ScoreMatrix, testset: TestSet, documents: Mapping[str, str] | None = None
) -> ScoreMatrix:
    """People's scores, their items called as in the test set; `documents` are those of items.

    One whose name a segment of another document has is named with its own.
    """
    own, homes = testset.items, documents or {}
    known = testset.items_among(human.items, documents)
    apart = {*own} & {*homes} - {*known}
    called = {label: f"{homes[label]}:{label}" for label in apart}
    called |= dict(zip(known, own, strict=True))
    return replace(human, items=tuple(called.get(label, label) for label in human.labels))


def human_tables(
    evaluation: Evaluation, human: ScoreMatrix, seed: int, alpha: float
) -> tuple[Table, ...]:
    """How well the metrics agree with people on these translations, by two correlations."""
    names = evaluation.names
    matrices = []
    for metric in evaluation.metrics:
        scores = evaluation.of_metric(metric)
        values = np.stack([s.upward for s in scores])
        items = evaluation.testset.items
        matrices.append(ScoreMatrix(names[metric], evaluation.systems, values, items))
    judged = JudgedSet.align("segments", matrices, human=human)
    tasks = [
        Task(sets=("segments",), statistic="pearson", samples=SAMPLES, alpha=alpha),
        Task(sets=("segments",), statistic="kendall", samples=0),
    ]
    results = MetaEvaluation([judged], seed=seed).run(tasks)
    down = [names[m] for m in evaluation.metrics if not evaluation.of_metric(m)[0].higher_is_better]
    return tuple(_noted_table(part, down) for part in results.by_statistic().values())


def _title(evaluation: Evaluation) -> str:
    name = evaluation.testset.name
    systems = evaluation.systems
    compared = ", ".join(systems[:4]) + (f" and {len(systems) - 4} more" if systems[4:] else "")
    return f"{name}: {compared}" if name else compared


def report_ranking(ranking: Ranking) -> Report:
    """A page about a ranking, in which the mean chance to win is the only score."""
    return report_results(with_tests(ranking.as_evaluation()), [], ranker=ranking.ranker)


def report_agreement(agreement: AgreementStudy, panel: DoubtPanel | None = None) -> Report:
    """A page about metrics and people, and what there is to doubt where a panel is given."""
    labels = {metric.spec: metric.label for metric in agreement.metrics}
    names = distinct_labels({m: labels.get(m, m) for m in agreement.results.metrics})
    turned = agreement.turned_over
    down = [names[m] for m in (*agreement.lower_better, *labels) if m in turned and m in names]
    texts = {name: people.texts() for name, people in agreement.people.items()}
    scored = [list(own.values()) for own in texts.values() if own]
    results = rename_metrics(agreement.results, names)
    more = []
    if agreement.slices:
        sliced = {by: rename_metrics(own, names) for by, own in agreement.slices.items()}
        more.append((*SLICED, agreement_slices_contents(sliced)))
    if panel is not None:
        more.append(("doubts", "Doubts", doubts_contents(panel)))
    return Report(
        title="Metrics and people",
        grid=grid_of_judged(
            agreement.sets,
            texts,
            names=names,
            decimals={metric.spec: metric.decimals for metric in agreement.metrics},
            turned=turned,
        ),
        agreement=tuple(_noted_table(part, down) for part in results.by_statistic().values()),
        judged=tuple(_shown_set(judged, names, turned) for judged in agreement.sets),
        findings=tuple(agreement_findings(results)),
        signatures=tuple(
            dict.fromkeys(m.signature(own) for m in agreement.metrics for own in scored)
        ),
        more=tuple(more),
    )


def rename_metrics(results: Results, names: Mapping[str, str]) -> Results:
    """The same results with metrics under the names that a page shows."""
    metrics = tuple(names[metric] for metric in results.metrics)
    return replace(
        results, metrics=metrics, tasks=tuple(replace(t, metrics=metrics) for t in results.tasks)
    )


def _shown_set(judged: JudgedSet, names: Mapping[str, str], turned: Collection[str]) -> JudgedSet:
    """The same set with the metrics' own names and scores, whichever way they go."""
    signs = np.array([-1.0 if metric in turned else 1.0 for metric in judged.metrics])
    return replace(
        judged,
        metrics=tuple(names.get(metric, metric) for metric in judged.metrics),
        system_scores=signs[:, None] * judged.system_scores,
    )


def _noted_table(part: Results, down: Sequence[str]) -> Table:
    """A table that also says how metrics were tested, and which were turned over."""
    first = part.tasks[0].task
    table = agreement_table(part, intervals=bool(first.samples))
    notes = [*table.notes, *words_of_test(first)]
    if down:
        notes.append(
            f"lower is better under {', '.join(down)}: agreement is that of the score with its "
            "sign turned over"
        )
    return replace(table, notes=notes)


def _locate_warnings(
    grid: TranslationGrid, evaluation: Evaluation, metrics: Sequence[Metric]
) -> TranslationGrid:
    """The grid with what metrics warn of, row by row; scores only say how often."""
    systems = len(evaluation.systems)
    masks: dict[str, BoolArray] = {}
    for metric in metrics:
        for place, system in enumerate(evaluation.systems):
            counted = evaluation.scores[system][metric.spec].warnings
            kinds = [kind for kind in counted if kind not in grid.warnings]
            said = locate_warnings(metric, evaluation.testset.segments(system)) if kinds else []
            for kind in kinds:
                mask = masks.setdefault(kind, np.zeros(len(grid), dtype=bool))
                mask[place::systems] |= [kind in own for own in said]
    return replace(grid, warnings={**grid.warnings, **masks})


def explain_items(
    testset: TestSet,
    grid: TranslationGrid,
    metrics: Sequence[Metric],
    ranker: Ranker | None,
    count: int,
) -> list[Explained]:
    """What metrics and the ranker say of the segments that are worth it."""
    able = [metric for metric in metrics if metric.explains]
    items = interesting_items(grid, count) if able or ranker else []
    segments = {system: testset.segments(system) for system in testset.systems} if items else {}
    explained: list[Explained] = []
    for item in track(items, "explaining"):
        group = [segments[system][item] for system in grid.systems]
        votes = ranker.explain(group, grid.systems).votes if ranker and len(group) > 1 else None
        if ranker is not None and votes is not None:
            html = win_probabilities(votes, ranker.title)
            explained.append(Explained(item=item, system=-1, title=ranker.title, html=html))
        for system in systems_to_explain(grid, item):
            explained += _explain_one(able, group[system], item, system)
    return explained


def _explain_one(
    metrics: Sequence[Metric], segment: Segment, item: int, system: int
) -> list[Explained]:
    explained = []
    for metric in metrics:
        try:
            html = explanation(add_marks(metric.explain(segment), metric, segment))
        except TertiumError as error:  # an empty output, say, has nothing to align
            logger.info("segment %d: %s", item + 1, error)
            continue
        explained.append(Explained(item=item, system=system, title=metric.label, html=html))
    return explained

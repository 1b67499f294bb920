"""From results to a report: of an evaluation or comparison, and of agreement with people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tertium.evaluation.comparison import Comparison
from tertium.evaluation.scoring import Evaluation
from tertium.meta.curves import Curve
from tertium.meta.evaluation import MetaEvaluation, Results
from tertium.meta.tasks import JudgedSet, Task
from tertium.reporting.page.explained import Explained
from tertium.reporting.page.grid import (
    About,
    TranslationGrid,
    display_names,
    grid_of_evaluation,
    grid_of_judged,
    metric_names,
    own_scores,
)
from tertium.reporting.page.page import Report
from tertium.reporting.tables.agreements import agreement_findings, agreement_table, words_of_test
from tertium.reporting.tables.table import Table
from tertium.scores import ScoreMatrix
from tertium.segment import Segment

SAMPLES = 1000  # of the tests of agreement


def evaluation_report(
    results: Evaluation | Comparison,
    *,
    grid: TranslationGrid | None = None,
    human: ScoreMatrix | None = None,
    explained: Sequence[Explained] = (),
    curves: Mapping[str, Curve] | None = None,
    title: str = "",
) -> Report:
    """A report of scored or compared systems.

    `human` holds people's scores, its systems and items named as in the evaluation (items are
    numbered from 1); `grid` is what `evaluation_grid` returned, where it was made before.
    """
    comparison = results if isinstance(results, Comparison) else None
    evaluation = results.evaluation if isinstance(results, Comparison) else results
    tables = human_tables(evaluation, human) if human is not None else ()
    return Report(
        title=title or _title(evaluation),
        grid=grid if grid is not None else evaluation_grid(evaluation, human),
        evaluation=evaluation,
        comparison=comparison,
        agreement=tables,
        explained=tuple(explained),
        curves=curves or {},
    )


def evaluation_grid(evaluation: Evaluation, human: ScoreMatrix | None = None) -> TranslationGrid:
    """The translations of an evaluation with what people said of them."""
    grid = grid_of_evaluation(evaluation)
    return grid.with_human(human) if human is not None else grid


def agreement_report(
    results: Results,
    sets: Sequence[JudgedSet],
    texts: Mapping[str, Mapping[tuple[str, str], Segment]],
    *,
    about: Sequence[About] = (),
    signatures: Sequence[str] = (),
    title: str = "",
) -> Report:
    """A report of a meta-evaluation; `texts` by set, then by system and item, as far as known.

    `about` says what metrics are called and which way they go, `signatures` are theirs.
    """
    names = display_names(results.metrics, about)
    about = [replace(entry, name=names.get(entry.spec, entry.name)) for entry in about]
    results = rename_metrics(results, names)
    statistics = dict.fromkeys((t.task.statistic, t.task.level, t.task.by) for t in results.tasks)
    tables = []
    for kind in statistics:
        tasks = [t for t in results.tasks if (t.task.statistic, t.task.level, t.task.by) == kind]
        table = agreement_table(results, tasks, intervals=bool(tasks[0].task.samples))
        down = [names[e.spec] for e in about if not e.higher_is_better and e.spec in names]
        tables.append(_with_notes(table, tasks[0].task, down))
    return Report(
        title=title or "Metrics and people",
        grid=grid_of_judged(sets, texts, about),
        agreement=tuple(tables),
        judged=tuple(_shown_set(judged, names, about) for judged in sets),
        findings=tuple(agreement_findings(results)),
        signatures=tuple(signatures),
    )


def rename_metrics(results: Results, names: Mapping[str, str]) -> Results:
    """The same results with metrics under the names that a page shows."""
    metrics = tuple(names[metric] for metric in results.metrics)
    return replace(
        results, metrics=metrics, tasks=tuple(replace(t, metrics=metrics) for t in results.tasks)
    )


def _shown_set(judged: JudgedSet, names: Mapping[str, str], about: Sequence[About]) -> JudgedSet:
    """The same set with the metrics' own names and scores, whichever way they go."""
    totals = [
        own_scores(scores, metric, about)
        for metric, scores in zip(judged.metrics, judged.system_scores, strict=True)
    ]
    return replace(
        judged,
        metrics=tuple(names.get(metric, metric) for metric in judged.metrics),
        system_scores=np.array(totals).reshape(judged.system_scores.shape),
    )


def _with_notes(table: Table, task: Task, down: Sequence[str]) -> Table:
    """A table that also says how metrics were tested, and which were turned over."""
    notes = [*table.notes, *words_of_test(task)]
    if down:
        notes.append(
            f"lower is better under {', '.join(down)}: agreement is that of the score with its "
            "sign turned over"
        )
    return replace(table, notes=notes)


def human_tables(evaluation: Evaluation, human: ScoreMatrix) -> tuple[Table, ...]:
    """How well the metrics agree with people on these translations, by two correlations."""
    names = metric_names(evaluation)
    matrices = []
    for metric in evaluation.metrics:
        scores = evaluation.of_metric(metric)
        sign = 1.0 if scores[0].higher_is_better else -1.0
        values = np.stack([sign * s.segments for s in scores])
        matrices.append(ScoreMatrix(names[metric], evaluation.systems, values))
    judged = JudgedSet.align("segments", matrices, human=human)
    tasks = [
        Task(sets=("segments",), statistic="pearson", samples=SAMPLES),
        Task(sets=("segments",), statistic="kendall", samples=0),
    ]
    results = MetaEvaluation([judged]).run(tasks)
    down = [names[m] for m in evaluation.metrics if not evaluation.of_metric(m)[0].higher_is_better]
    return tuple(
        _with_notes(
            agreement_table(results, [task], intervals=bool(task.task.samples)), task.task, down
        )
        for task in results.tasks
    )


def _title(evaluation: Evaluation) -> str:
    name = evaluation.testset.name
    systems = evaluation.systems
    compared = ", ".join(systems[:4]) + (f" and {len(systems) - 4} more" if systems[4:] else "")
    return f"{name}: {compared}" if name else compared

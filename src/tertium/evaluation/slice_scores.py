"""Results by slice: domain, document, length or language.

A slice reuses the statistics of its segments, so nothing is scored again. Because testing many
slices finds differences by chance, p-values are adjusted by Holm's method over all tests of a
metric (`Slices`), or over all pairs of metrics (`slice_agreement`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from operator import itemgetter
from typing import Any

import numpy as np

from tertium.core.resampling import holm, resampling_warnings
from tertium.core.result import Column, Result, Table
from tertium.data.human_data import HumanData
from tertium.data.slices import Slicing, slice_items, slice_testset
from tertium.evaluation.comparison import Comparison, compare_evaluation
from tertium.evaluation.paired_tests import Test
from tertium.evaluation.system_scores import MIN_SEGMENTS, Evaluation, MetricDict
from tertium.meta.agreement_results import Results, TaskResult
from tertium.meta.aligned_scores import AlignedScores
from tertium.meta.metric_agreement import MetaEvaluation
from tertium.meta.tasks import Task


@dataclass(frozen=True, kw_only=True, eq=False)
class Slices(Result):
    """An evaluation or comparison of each slice, in `parts` by label.

    `adjusted` are p-values against the baseline by metric, and by slice and system, over which they
    are adjusted.
    """

    by: str
    parts: Mapping[str, Evaluation]
    adjusted: Mapping[str, Mapping[tuple[str, str], float]]

    def records(self, *, segments: bool = False) -> list[dict[str, Any]]:
        """Return one dictionary for each slice, system and metric, like `Comparison.records`."""
        records = []
        for name, part in self.parts.items():
            for record in part.records(segments=segments):
                about = {"by": self.by, "slice": name, "size": len(part.testset)}
                if "p_value" in record:
                    about["p_holm"] = self.adjusted[record["spec"]][name, record["system"]]
                records.append({**about, **record})
        return records

    @property
    def first(self) -> Evaluation:
        """The first slice; all have the same systems and metrics."""
        return next(iter(self.parts.values()))

    def tables(self) -> list[Table]:
        """Return slices and systems x metrics, with adjusted p-values for a comparison."""
        group = "system" if self.adjusted else ""
        columns = [
            Column(self.by, itemgetter(0)),
            Column("system", itemgetter(1), group="system"),
            Column("segments", lambda row: len(self.parts[row[0]].testset), 0, group=group),
        ]
        for metric in self.first.metrics:
            columns += self._metric_columns(metric)
        rows = [*product(self.parts, self.first.systems)]
        return [Table(columns, rows, title=f"by {self.by}", notes=self._notes())]

    @property
    def page_title(self) -> str:
        """What the slices are by."""
        return f"By {self.by}"

    def _metric_columns(self, metric: str) -> list[Column]:
        """Return the scores of a metric, and their p-values if systems were compared."""
        first = self.first
        score = replace(
            first.score_columns(metric)[0],
            get=lambda row: self.parts[row[0]].scores[row[1]][metric].system,
            mark=lambda row: "best" if self.parts[row[0]].is_best(row[1], metric) else "",
            text=None,
        )
        if not isinstance(first, Comparison):
            return [score]
        p_value = first.mark_p_values(
            "p",
            self.adjusted[metric].get,
            lambda row: self.parts[row[0]].difference(metric, row[1]),
        )
        return [score, replace(p_value, group=score.name)]

    def _notes(self) -> list[str]:
        first = self.first
        if not isinstance(first, Comparison):
            return []
        tests = len(self.parts) * (len(first.systems) - 1)
        notes = [
            f"p: difference to {first.baseline}, {first.test_name}, seed {first.seed}, adjusted by "
            f"Holm's method over the {tests} tests of a metric; "
            f"* p < {first.alpha:g} (+ better, - worse)"
        ]
        notes += resampling_warnings(tests, first.resamples, first.alpha)
        small = [name for name, own in self.parts.items() if len(own.testset) < MIN_SEGMENTS]
        if small:
            names = ", ".join(small[:5]) + (f" and {len(small) - 5} more" if small[5:] else "")
            notes.append(f"warning: fewer than {MIN_SEGMENTS} segments: {names}")
        return notes


def slice_results(
    results: Evaluation, by: str, *, test: Test = "randomization", resamples: int | None = None
) -> Slices:
    """Split results by document, length, language or a column of the test set.

    On each slice, systems are compared with the baseline, with the same seed and alpha. The default
    test is paired randomization, because the bootstrap finds too many differences on few segments.
    """
    slicing = slice_testset(results.testset, by)
    parts = {name: slice_evaluation(results, slicing, name) for name in slicing.names}
    if not isinstance(results, Comparison):
        return Slices(by=by, parts=parts, adjusted=MetricDict())
    compared = {
        name: compare_evaluation(
            part,
            test=test,
            resamples=resamples,
            seed=results.seed,
            alpha=results.alpha,
            baseline_only=True,
        )
        for name, part in parts.items()
    }
    rows = [*product(compared, results.systems[1:])]
    adjusted = MetricDict[Mapping[tuple[str, str], float]]()
    for metric in results.metrics:
        p_values = [compared[name].p_value(metric, system) for name, system in rows]
        adjusted[metric] = dict(zip(rows, holm(p_values).tolist(), strict=True))
    return Slices(by=by, parts=compared, adjusted=adjusted)


def slice_evaluation(evaluation: Evaluation, slicing: Slicing, name: str) -> Evaluation:
    """Return the evaluation of the segments of one slice."""
    rows = slicing.rows[name]
    scores = {
        system: {metric: own.subset(rows) for metric, own in by_metric.items()}
        for system, by_metric in evaluation.scores.items()
    }
    testset = evaluation.testset.subset(rows.tolist())
    return Evaluation(testset, evaluation.systems, evaluation.metrics, scores)


def slice_agreement(
    sets: Sequence[AlignedScores],
    judgments: Mapping[str, HumanData],
    by: str,
    tasks: Sequence[Task],
    *,
    seed: int,
) -> Results:
    """Compute the agreement with human scores on each slice of each set.

    `tasks` are those of the whole sets. p-values are adjusted over all pairs of metrics in all
    slices of a statistic, and ranks follow from them. By language, each set is a slice.
    """
    parts: dict[str, list[AlignedScores]] = {}
    for aligned in sets:
        human_data = judgments[aligned.name]
        if by == "language" and human_data.lp:
            parts[aligned.name] = [aligned]
            continue
        slicing = slice_items(human_data, aligned.items, by)
        prefix = "" if len(sets) == 1 else f"{aligned.name} "
        parts[aligned.name] = [
            aligned.keep_items(slicing.mask(label), prefix + label) for label in slicing.names
        ]
    slice_tasks: list[Task] = []
    for task in tasks:
        names = [part.name for name in task.sets for part in parts[name]]
        slice_tasks += [replace(task, sets=(name,)) for name in names]
    results = MetaEvaluation([*chain(*parts.values())], seed=seed).run(slice_tasks)
    return replace(results, tasks=tuple(_adjusted_tasks(results.tasks)))


def _adjusted_tasks(tasks: Sequence[TaskResult]) -> list[TaskResult]:
    """Adjust the p-values of the better of two metrics over all tasks of a statistic."""
    results = [*tasks]
    for statistic in dict.fromkeys(task.task.statistic for task in tasks):
        family = [n for n, task in enumerate(tasks) if task.task.statistic == statistic]
        p_values = np.stack([tasks[n].p_values for n in family])
        values = np.stack([tasks[n].values for n in family])
        rows = values[:, :, None]
        columns = values[:, None, :]
        is_better = (rows > columns) | np.triu(rows == columns, k=1)
        p_values[is_better] = holm(p_values[is_better])
        for n, adjusted in zip(family, p_values, strict=True):
            results[n] = replace(tasks[n], p_values=adjusted)
    return results

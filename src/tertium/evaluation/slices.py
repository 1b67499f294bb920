"""Results slice by slice: the scores of one domain, document or length, and tests that count them.

A slice is scored by the statistics of its segments, so nothing is scored again. Who looks at many
slices finds a difference in one of them by chance: p-values are adjusted by Holm's method over all
tests of a metric (`Slices`), or over all pairs of metrics (`slice_agreement`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tertium.arrays import FloatArray
from tertium.data.human import Evidence
from tertium.data.slices import Slicing, slice_items, slice_testset
from tertium.evaluation.comparison import Comparison, Test, compare_evaluation
from tertium.evaluation.scoring import ByMetric, Evaluation
from tertium.meta.evaluation import MetaEvaluation
from tertium.meta.judged import JudgedSet
from tertium.meta.results import Results, TaskResult, clusters
from tertium.meta.significance import holm
from tertium.meta.tasks import Task


@dataclass(frozen=True, kw_only=True, eq=False)
class Slices:
    """An evaluation or comparison, slice by slice.

    `parts` hold the results of each slice by its label. `adjusted` holds for each metric the
    p-values against the baseline, (slices, systems), adjusted by Holm's method over all slices and
    systems; none where nothing was tested.
    """

    by: str
    parts: Mapping[str, Evaluation]
    adjusted: Mapping[str, FloatArray]

    def records(self, *, segments: bool = False) -> list[dict[str, Any]]:
        """One plain dictionary for each slice, system and metric, as `Comparison.records` has."""
        found = []
        for place, (name, part) in enumerate(self.parts.items()):
            for record in part.records(segments=segments):
                about = {"by": self.by, "slice": name, "size": len(part.testset)}
                if "p_value" in record:
                    adjusted = self.adjusted[record["spec"]][place]
                    about["p_holm"] = float(adjusted[part.systems.index(record["system"])])
                found.append({**about, **record})
        return found


def slice_results(
    results: Evaluation, by: str, *, test: Test = "randomization", resamples: int | None = None
) -> Slices:
    """The same scores by document, length, language or a column of the test set.

    A comparison is made anew on each slice, by paired randomization unless told otherwise: the
    bootstrap finds too much on few segments. Its seed and level are those of the whole.
    """
    slicing = slice_testset(results.testset, by)
    parts = {name: evaluation_of(results, slicing, name) for name in slicing.names}
    if isinstance(results, Comparison):
        choices: dict[str, Any] = {"seed": results.seed, "alpha": results.alpha}
        choices |= {"test": test, "resamples": resamples}
        parts = {name: compare_evaluation(part, **choices) for name, part in parts.items()}
    compared = [part for part in parts.values() if isinstance(part, Comparison)]
    adjusted = {m: _adjust(compared, m) for m in results.metrics} if compared else {}
    return Slices(by=by, parts=parts, adjusted=ByMetric(adjusted))


def evaluation_of(whole: Evaluation, slicing: Slicing, name: str) -> Evaluation:
    """What was scored of the segments of one slice."""
    rows = np.flatnonzero(slicing.mask(name))
    return Evaluation(
        whole.testset.subset(rows.tolist()),
        whole.systems,
        whole.metrics,
        {s: {m: whole.scores[s][m].subset(rows) for m in whole.metrics} for s in whole.systems},
    )


def _adjust(slices: Sequence[Comparison], metric: str) -> FloatArray:
    p_values = np.array([part.p_values[metric][0] for part in slices])  # (slices, systems)
    p_values[:, 0] = np.nan  # of the baseline against itself
    return holm(p_values)


def slice_agreement(
    sets: Sequence[JudgedSet],
    people: Mapping[str, Evidence],
    by: str,
    tasks: Sequence[Task],
    *,
    seed: int,
) -> Results:
    """How well metrics agree with people on each slice of each set.

    `tasks` are those of the whole sets. p-values are adjusted over all pairs of metrics in all
    slices of a statistic; ranks follow from them. By language, sets are slices already.
    """
    parts: dict[str, list[JudgedSet]] = {}
    for judged in sets:
        if by == "language" and people[judged.name].lp:
            parts[judged.name] = [judged]
            continue
        slicing = slice_items(people[judged.name], judged.items, by)
        names = [name if len(sets) == 1 else f"{judged.name} {name}" for name in slicing.names]
        parts[judged.name] = [
            judged.keep_items(slicing.mask(label), name)
            for label, name in zip(slicing.names, names, strict=True)
        ]
    asked = [
        replace(task, sets=(part.name,)) for task in tasks for s in task.sets for part in parts[s]
    ]
    every = [part for own in parts.values() for part in own]
    results = MetaEvaluation(every, seed=seed).run(asked)
    return replace(results, tasks=tuple(_adjusted_tasks(results.tasks)))


def _adjusted_tasks(tasks: Sequence[TaskResult]) -> list[TaskResult]:
    """The same with the p-values of the better of two metrics adjusted over all of a statistic."""
    places: dict[str, list[tuple[int, int, int]]] = {}
    for n, task in enumerate(tasks):
        for i, j in np.ndindex(task.p_values.shape):
            if task.values[i] > task.values[j] or (task.values[i] == task.values[j] and i < j):
                places.setdefault(task.task.statistic, []).append((n, i, j))
    p_values = [task.p_values.copy() for task in tasks]
    for family in places.values():
        adjusted = holm([p_values[n][i, j] for n, i, j in family])
        for (n, i, j), p in zip(family, adjusted, strict=True):
            p_values[n][i, j] = p
    return [
        replace(task, p_values=p, ranks=tuple(clusters(task.values, p, task.alpha)))
        for task, p in zip(tasks, p_values, strict=True)
    ]

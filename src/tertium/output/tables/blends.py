"""Tables of a trained blend: weights, cross-validated agreement, and tests against its metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tertium.core.result import Table
from tertium.evaluation.blending import BLEND, BlendStudy
from tertium.output.tables.meta_evaluation import agreement_table
from tertium.output.tables.table import Cell, cell_table, number_cell

TEST_TITLES = {
    ("pearson", "williams"): "r, Williams",
    ("pearson", "perm-both"): "r, PERM-BOTH",
    ("acc-eq*", "pairs"): "acc_eq*",
    ("spa", "pairs"): "SPA",
}


def weight_table(weights: Mapping[str, float]) -> Table:
    """Return the weight of each metric and its share."""
    total = sum(weights.values()) or 1.0
    rows: list[list[Cell | str]] = [
        [metric, number_cell(weight, 4), number_cell(100 * weight / total, 0)]
        for metric, weight in weights.items()
    ]
    return cell_table(("metric", "weight", "%"), rows, title="Weights of normalized scores")


def blend_tables(study: BlendStudy) -> Iterator[Table]:
    """Yield the agreement of the blend and its metrics by statistic, then the p-values."""
    for part in study.results.by_statistic().values():
        tests = {task.task.test for task in part.tasks}
        test = "perm-both" if len(tests) > 1 else tests.pop()
        tasks = tuple(task for task in part.tasks if task.task.test == test)
        yield agreement_table(replace(part, tasks=tasks), intervals=True)
    yield p_value_table(study)


def p_value_table(study: BlendStudy) -> Table:
    """Return the p-value of "the blend agrees better" for each set, metric and test."""
    cells: dict[tuple[str, str], dict[str, float]] = {}
    for record in study.p_values():
        title = TEST_TITLES[record["statistic"], record["test"]]
        cells.setdefault((record["set"], record["metric"]), {})[title] = record["p"]
    titles = list(dict.fromkeys(title for own in cells.values() for title in own))
    rows: list[list[Cell | str]] = [
        [name, metric, *(number_cell(own[title], 3) for title in titles)]
        for (name, metric), own in cells.items()
    ]
    held_out = "documents and systems" if study.held_out_systems else "documents"
    return cell_table(
        ("set", "metric", *titles),
        rows,
        title=f"p-values: does the {BLEND} agree better than the metric?",
        notes=[f"the {BLEND} was cross-validated: it was trained on other {held_out}"],
        text_columns=frozenset({0, 1}),
    )

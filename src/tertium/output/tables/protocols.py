"""Tables that rank metrics by the protocol of a shared task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertium.core.result import Table
from tertium.meta.protocol import ProtocolResults
from tertium.meta.results import MetricEstimates
from tertium.output.tables.meta_evaluation import human_ceiling_notes, order_descending
from tertium.output.tables.table import Cell, cell_table, number_cell

SHORT = {"spa": "SPA", "acc-eq*": "acc*"}


def protocol_table(results: ProtocolResults, decimals: int = 3) -> Table:
    """Return one row per metric, best average first: rank, average, `value (rank)` by task."""
    heads = [f"{t.task.label} {SHORT[t.task.statistic]}" for t in results.tasks]
    average = results.average
    rows: list[list[Cell | str]] = []
    for metric in order_descending(average.values):
        is_defined, rank_number = not np.isnan(average.values[metric]), average.ranks[metric]
        rank = Cell(str(rank_number), rank_number) if is_defined else Cell("–", None)
        best = "best" if is_defined and rank_number == 1 else ""
        row: list[Cell | str] = [
            results.metrics[metric],
            rank,
            number_cell(float(average.values[metric]), decimals, best),  # type: ignore[arg-type]
        ]
        tasks = zip(results.tasks, heads, strict=True)
        rows.append([*row, *(_protocol_cell(task, metric, head, decimals) for task, head in tasks)])
    judgment_counts = [task.agreement.judged_count for task in results.tasks]
    counts = [Cell(f"{count:,}", count, "dim") for count in judgment_counts]
    count = f"{len(results.tasks)} task{'s' * (len(results.tasks) != 1)}"
    footer = [[Cell("human scores", "human scores", "dim"), Cell("", ""), Cell("", ""), *counts]]
    return cell_table(
        ["metric", "rank", "average", *heads],
        rows,
        title=f"{results.protocol.title}: {count} of equal weight",
        footer=footer,
        notes=_protocol_notes(results),
    )


def _protocol_cell(figures: MetricEstimates, metric: int, head: str, decimals: int) -> Cell:
    value, rank = float(figures.values[metric]), figures.ranks[metric]
    if rank is None:
        return number_cell(value, decimals)
    emphasis = "best" if rank == 1 else ""
    text = f"{value:z.{decimals}f} ({rank})"
    return Cell(text, value, emphasis, {f"{head} rank": rank})  # type: ignore[arg-type]


def _protocol_notes(results: ProtocolResults) -> Sequence[str]:
    ranks = "no significance tests: metrics are ranked by value"
    if results.resamples:
        ranks = (
            "metrics with the same rank do not differ significantly (SPA: perm-both, acc*: random "
            f"pairs; p <= {results.average.alpha:.3g} one-sided, {results.resamples} resamples, "
            f"seed {results.seed})"
        )
    statistics = (
        "SPA: soft pairwise accuracy of systems; acc*: acc_eq with tie calibration, by item"
    )
    notes = [ranks, statistics]
    excluded_counts = [
        (task.task.label, int(task.agreement.excluded_counts.max(initial=0)))
        for task in results.tasks
        if task.task.statistic == "acc-eq*"
    ]
    incomplete = [f"{lp} {count:,}" for lp, count in excluded_counts if count]
    if incomplete:
        notes.append(f"pairs without a metric's score (at most): {', '.join(incomplete)}")
    if results.missing:
        notes.append(f"the shared task also had {', '.join(results.missing)}")
    ceiling = human_ceiling_notes(results.metrics, results.average.values)
    return [*notes, *ceiling, *results.protocol.caveats]

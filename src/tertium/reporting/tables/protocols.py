"""Tables of shared tasks: metrics ranked by the rules of a protocol."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tertium.meta.protocol import ProtocolResults
from tertium.meta.results import Figures
from tertium.reporting.tables.agreements import descending, people_notes
from tertium.reporting.tables.table import Cell, Table, number

SHORT = {"spa": "SPA", "acc-eq*": "acc*"}


def protocol_table(results: ProtocolResults, decimals: int = 3) -> Table:
    """One row for each metric, best average first: rank, average, then `figure (rank)` by task."""
    heads = [f"{t.task.label} {SHORT[t.task.statistic]}" for t in results.tasks]
    average = results.average
    rows: list[list[Cell | str]] = []
    for metric in descending(average.values):
        known = not np.isnan(average.values[metric])
        rank = Cell(str(average.ranks[metric]), average.ranks[metric]) if known else Cell("–", None)
        best = "best" if known and average.ranks[metric] == 1 else ""
        row: list[Cell | str] = [
            results.metrics[metric],
            rank,
            number(float(average.values[metric]), decimals, best),  # type: ignore[arg-type]
        ]
        tasks = zip(results.tasks, heads, strict=True)
        rows.append([*row, *(_protocol_cell(task, metric, head, decimals) for task, head in tasks)])
    judged = [Cell(f"{t.agreement.judged:,}", t.agreement.judged, "dim") for t in results.tasks]
    count = f"{len(results.tasks)} task{'s' * (len(results.tasks) != 1)}"
    footer = [[Cell("judged", "judged", "dim"), Cell("", ""), Cell("", ""), *judged]]
    return Table(
        ["metric", "rank", "average", *heads],
        rows,
        title=f"{results.protocol.title}: {count} of equal weight",
        footer=footer,
        notes=_protocol_notes(results),
    )


def _protocol_cell(figures: Figures, metric: int, head: str, decimals: int) -> Cell:
    value, rank = float(figures.values[metric]), figures.ranks[metric]
    if value != value:
        return number(value, decimals)
    mark = "best" if rank == 1 else ""
    text = f"{value:z.{decimals}f} ({rank})"
    return Cell(text, value, mark, {f"{head} rank": rank})  # type: ignore[arg-type]


def _protocol_notes(results: ProtocolResults) -> Sequence[str]:
    ranks = "no tests: ranks are places"
    if results.samples:
        ranks = (
            "metrics of one rank cannot be told apart (SPA: perm-both, acc*: lots for pairs; "
            f"p <= {results.average.alpha:.3g} one-sided, {results.samples} draws, "
            f"seed {results.seed})"
        )
    what = "SPA: soft pairwise accuracy of systems; acc*: acc_eq with calibrated ties, by item"
    notes = [ranks, what]
    left_out = [
        (task.task.label, int(task.agreement.left_out.max(initial=0)))
        for task in results.tasks
        if task.task.statistic == "acc-eq*"
    ]
    lacking = [f"{lp} {count:,}" for lp, count in left_out if count]
    if lacking:
        notes.append(f"pairs without a metric's score (at most): {', '.join(lacking)}")
    if results.missing:
        notes.append(f"the shared task also had {', '.join(results.missing)}")
    people = people_notes(results.metrics, results.average.values)
    return [*notes, *people, *results.protocol.caveats]

"""Challenge sets as tables and pictures: what `tertium challenge` shows."""

from __future__ import annotations

import numpy as np

from tertium.evaluation.challenge import ChallengeStudy, wilson
from tertium.reporting.charts.rows import dots_chart
from tertium.reporting.markup import Markup
from tertium.reporting.tables.table import Cell, Table, counted_lines

METHOD = "95 % intervals by Wilson's method; a tie is no right answer; a coin gets 50"


def challenge_table(study: ChallengeStudy, decimals: int = 1, *, warnings: bool = True) -> Table:
    """Phenomena x metrics: the share of pairs put right with its interval, and ties."""
    rows: list[list[Cell | str]] = []
    for g, group in enumerate(study.groups):
        size = int(study.sizes[g])
        row: list[Cell | str] = [group, Cell(f"{size:,}", size)]
        for m in range(len(study.metrics)):
            best = study.right[m, g] == study.right[:, g].max() and len(study.metrics) > 1
            row += _cells(
                study, m, int(study.right[m, g]), int(study.tied[m, g]), size, decimals, best
            )
        rows.append(row)
    said = counted_lines(study.warnings) if warnings else []
    header = [study.by, "pairs"]
    for name in study.names:
        header += [f"{name} %", "ties"]
    return Table(
        header,
        rows,
        title=f"{study.challenge.name}: how often the better translation scores higher",
        notes=[METHOD, *left_out_lines(study), *said],
        footer=_footer(study, decimals),
        together=2,
        lead=2,
    )


def _cells(
    study: ChallengeStudy, m: int, right: int, ties: int, size: int, decimals: int, best: bool
) -> list[Cell | str]:
    low, high = (100 * wilson(right, size)).tolist()
    share = 100 * right / size
    text = f"{share:.{decimals}f} [{low:.{decimals}f}, {high:.{decimals}f}]"
    name = study.names[m]
    more = {f"{name} low": low, f"{name} high": high}
    return [Cell(text, share, "best" if best else "", more), Cell(str(ties or "–"), ties)]


def _footer(study: ChallengeStudy, decimals: int) -> list[list[Cell | str]]:
    total = int(study.sizes.sum())
    everything: list[Cell | str] = ["all pairs", Cell(f"{total:,}", total)]
    mean: list[Cell | str] = [f"mean of {len(study.groups)}", Cell("", "")]
    for m in range(len(study.metrics)):
        right, ties = int(study.right[m].sum()), int(study.tied[m].sum())
        everything += _cells(study, m, right, ties, total, decimals, False)
        share = 100 * float(study.mean[m])
        mean += [Cell(f"{share:.{decimals}f}", share), Cell("", "")]
    return [everything, mean]


def left_out_lines(study: ChallengeStudy) -> list[str]:
    """How many pairs were read and not tried, a line for each reason."""
    return [f"left out: {why}: {count}" for why, count in study.challenge.left_out.items()]


def challenge_chart(study: ChallengeStudy) -> Markup:
    """Each metric's accuracy on each phenomenon; the dashed line is a coin's."""
    return dots_chart(
        study.groups,
        study.names,
        study.accuracy.T,
        intervals=np.swapaxes(study.intervals, 0, 1),
        title=f"Accuracy on {study.challenge.name}",
        label="share of pairs put right",
        rule=0.5,
    )

"""Tables and charts of accuracy on challenge sets, as `tertium challenge` prints them."""

from __future__ import annotations

import numpy as np

from tertium.core.charts import DotChart
from tertium.core.notes import format_warning_counts
from tertium.core.result import Table
from tertium.evaluation.challenge import ChallengeStudy, wilson
from tertium.output.tables.table import Cell, cell_table

METHOD = "95 % Wilson intervals; a tie counts as wrong; random choice gets 50"


def challenge_table(study: ChallengeStudy, decimals: int = 1, *, warnings: bool = True) -> Table:
    """Return phenomena x metrics: accuracy in percent with its interval, and ties."""
    rows: list[list[Cell | str]] = []
    for g, group in enumerate(study.groups):
        size = int(study.sizes[g])
        row: list[Cell | str] = [group, Cell(f"{size:,}", size)]
        for m in range(len(study.metrics)):
            best = study.correct[m, g] == study.correct[:, g].max() and len(study.metrics) > 1
            correct, ties = int(study.correct[m, g]), int(study.tied[m, g])
            row += _cells(study, m, correct, ties, size, decimals, best)
        rows.append(row)
    header = [study.by, "pairs"]
    for name in study.names:
        header += [f"{name} %", "ties"]
    return cell_table(
        header,
        rows,
        title=f"{study.challenge.name}: how often the better translation scores higher",
        notes=[
            METHOD,
            *format_exclusions(study),
            *(format_warning_counts(study.warnings) if warnings else []),
        ],
        footer=_footer(study, decimals),
        columns_per_group=2,
        leading_columns=2,
    )


def _cells(
    study: ChallengeStudy, m: int, correct: int, ties: int, size: int, decimals: int, best: bool
) -> list[Cell | str]:
    low, high = (100 * wilson(correct, size)).tolist()
    share = 100 * correct / size
    text = f"{share:.{decimals}f} [{low:.{decimals}f}, {high:.{decimals}f}]"
    name = study.names[m]
    bound_columns = {f"{name} low": low, f"{name} high": high}
    return [Cell(text, share, "best" if best else "", bound_columns), Cell(str(ties or "–"), ties)]


def _footer(study: ChallengeStudy, decimals: int) -> list[list[Cell | str]]:
    total = int(study.sizes.sum())
    all_pairs: list[Cell | str] = ["all pairs", Cell(f"{total:,}", total)]
    mean: list[Cell | str] = [f"mean of {len(study.groups)}", Cell("", "")]
    for m in range(len(study.metrics)):
        correct, ties = int(study.correct[m].sum()), int(study.tied[m].sum())
        all_pairs += _cells(study, m, correct, ties, total, decimals, False)
        share = 100 * float(study.mean[m])
        mean += [Cell(f"{share:.{decimals}f}", share), Cell("", "")]
    return [all_pairs, mean]


def format_exclusions(study: ChallengeStudy) -> list[str]:
    """Return how many pairs were excluded, one line per reason."""
    counts = study.challenge.excluded_counts
    return [f"excluded: {reason}: {count}" for reason, count in counts.items()]


def challenge_chart(study: ChallengeStudy) -> DotChart:
    """Return each metric's accuracy on each phenomenon; the dashed line is random choice."""
    return DotChart(
        title=f"Accuracy on {study.challenge.name}",
        label="accuracy",
        rows=study.groups,
        series=study.names,
        values=study.accuracy.T,
        intervals=np.swapaxes(study.intervals, 0, 1),
        reference_value=0.5,
    )

"""Evaluate metrics on challenge sets: how often the better of two translations scores higher.

A tie is not correct and is counted separately. Intervals are Wilson's (1927), which are valid for
few pairs and for shares near 0 and 1.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from operator import itemgetter
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import BoolArray, FloatArray, IntArray, divide
from tertium.core.atomic import PathLike
from tertium.core.charts import DotChart
from tertium.core.errors import UnknownNameError
from tertium.core.notes import format_warning_counts
from tertium.core.result import Cell, Column, Emphasis, Result, Table, bound_columns, count_column
from tertium.core.runtime import track_progress
from tertium.data.challenge_sets import ChallengeSet, Contrast, read_challenge
from tertium.evaluation.rows import find_scorable_by_all
from tertium.evaluation.system_scores import distinct_labels
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric, share_encoding
from tertium.metrics.base.text_warnings import count_flags

logger = logging.getLogger(__name__)

By = Literal["phenomenon", "language"]
METHOD = "95 % Wilson intervals; a tie counts as wrong; random choice gets 50"
MISSING_INPUT = "no reference or source that a metric needs"


@dataclass(frozen=True, kw_only=True, eq=False)
class ChallengeStudy(Result):
    """Accuracy of metrics on a challenge set, as returned by `tertium.challenge`.

    Attributes
    ----------
    challenge, by
        The challenge set, and how its pairs are grouped: "phenomenon" or "language".
    metrics, names, groups
        Specs and display names of the metrics, and the names of the groups.
    correct, tied
        Counts of pairs, (metrics, groups).
    sizes
        The number of pairs in each group, (groups,).
    warnings
        Counts by kind of warning and metric, for the better translations only.
    """

    challenge: ChallengeSet
    by: By
    metrics: tuple[str, ...]
    names: tuple[str, ...]
    groups: tuple[str, ...]
    correct: IntArray = field(repr=False)
    tied: IntArray = field(repr=False)
    sizes: IntArray = field(repr=False)
    warnings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def accuracy(self) -> FloatArray:
        """The share of correct pairs, (metrics, groups)."""
        return divide(self.correct, self.sizes)

    @property
    def intervals(self) -> FloatArray:
        """The 95 % interval of `accuracy`, (metrics, groups, 2)."""
        return wilson(self.correct, self.sizes)

    @property
    def mean(self) -> FloatArray:
        """The mean accuracy over groups, each weighted equally, (metrics,)."""
        result: FloatArray = self.accuracy.mean(axis=1)
        return result

    def records(self) -> dict[str, Any]:
        """Return all results as plain values, for JSON."""
        metrics = []
        for m, metric in enumerate(self.metrics):
            total = self._count(m)
            name = self.names[m]
            warnings = {kind: by[name] for kind, by in self.warnings.items() if name in by}
            record = {
                "metric": metric,
                "accuracy": total["accuracy"],
                "interval": total["interval"],
                "mean_accuracy": float(self.mean[m]),
                "ties": total["ties"],
                "by": self.by,
                "groups": [
                    {self.by: group, **self._count(m, g)} for g, group in enumerate(self.groups)
                ],
            }
            metrics.append({**record, **({"warnings": warnings} if warnings else {})})
        return {
            "set": self.challenge.name,
            "pairs": len(self.challenge),
            "left_out": self.challenge.excluded_counts,
            "metrics": metrics,
        }

    def _count(self, metric: int, group: int | slice = slice(None)) -> dict[str, Any]:
        """Return the counts and accuracy of a metric on a group, by default on all pairs."""
        pairs, right = int(self.sizes[group].sum()), int(self.correct[metric, group].sum())
        return {
            "pairs": pairs,
            "right": right,
            "ties": int(self.tied[metric, group].sum()),
            "accuracy": right / pairs,
            "interval": wilson(right, pairs).tolist(),
        }

    def charts(self) -> list[DotChart]:
        """Return each metric's accuracy on each phenomenon; the line is random choice."""
        title = f"Accuracy on {self.challenge.name}"
        chart = DotChart(
            title=title,
            caption=title,
            label="accuracy",
            rows=self.groups,
            series=self.names,
            values=self.accuracy.T,
            intervals=np.swapaxes(self.intervals, 0, 1),
            reference_value=0.5,
        )
        return [chart]

    def tables(self, *, decimals: int = 1, warnings: bool = True) -> list[Table]:
        """Return phenomena x metrics: accuracy in percent with its interval, and ties."""
        metrics = range(len(self.metrics))
        rows: list[tuple[Any, ...]] = []  # the counts of each metric, and the name of the group
        for g, group in enumerate(self.groups):
            rows.append((*(self._count(m, g) for m in metrics), group))
        columns = [
            Column(self.by, itemgetter(-1), group=self.by),
            count_column("pairs", lambda row: row[0]["pairs"], group=self.by),
        ]
        mean = [Cell(f"mean of {len(rows)}"), Cell("")]
        for m in metrics:
            columns += _metric_columns(self.names[m], m, decimals)
            share = 100 * float(self.mean[m])
            mean += [Cell(f"{share:.{decimals}f}", share), Cell("")]
        total = (*(self._count(m) for m in metrics), "all pairs")
        cells = [replace(column.cell(total), emphasis="") for column in columns if column.show]
        title = f"{self.challenge.name}: how often the better translation scores higher"
        notes = [METHOD, *self.warning_lines(warnings=warnings)]
        return [Table(columns, rows, title, notes, footer=[cells, mean])]

    def warning_lines(self, *, warnings: bool = True) -> list[str]:
        """Return how many pairs were excluded by reason, and the warnings of metrics."""
        counts = self.challenge.excluded_counts
        excluded = [f"excluded: {reason}: {count}" for reason, count in counts.items()]
        return excluded + (format_warning_counts(self.warnings) if warnings else [])


def _metric_columns(name: str, place: int, decimals: int) -> list[Column]:
    """Return the accuracy and ties of the metric at a place of each row."""

    def share(row: Sequence[Any]) -> float:
        return 100 * float(row[place]["accuracy"])

    def bounds(row: Sequence[Any]) -> tuple[float, float]:
        low, high = row[place]["interval"]
        return 100 * low, 100 * high

    def text(row: Sequence[Any], _: int) -> str:
        low, high = bounds(row)
        return f"{share(row):.{decimals}f} [{low:.{decimals}f}, {high:.{decimals}f}]"

    def mark(row: Sequence[Any]) -> Emphasis:
        counts = [own["right"] for own in row[:-1]]
        return "best" if len(counts) > 1 and counts[place] == max(counts) else ""

    def tie_text(row: Sequence[Any], _: int) -> str:
        return str(row[place]["ties"] or "–")

    heading = f"{name} %"
    return [
        Column(heading, share, 0, text=text, mark=mark, group=heading),
        *bound_columns(name, bounds),
        Column("ties", lambda row: row[place]["ties"], 0, text=tie_text, group=heading),
    ]


def challenge(
    source: ChallengeSet | PathLike,
    metrics: str | Metric | Sequence[str | Metric],
    *,
    by: By = "phenomenon",
    phenomena: Sequence[str] = (),
    lps: Sequence[str] = (),
) -> ChallengeStudy:
    """Evaluate metrics on pairs of a better and a worse translation.

    Parameters
    ----------
    source
        A challenge set, a file in the layout of ACES or DEMETR, or "damage", the bundled set.
    metrics
        Specs or metrics.
    by
        Group pairs by "phenomenon" or by "language".
    phenomena, lps
        Phenomena and language pairs to keep; by default all.

    Returns
    -------
    ChallengeStudy
        Correct and tied pairs of each metric and group.

    >>> study = challenge("damage", "chrf", phenomena=["name"])
    >>> study.accuracy.shape
    (1, 1)
    """
    if by not in get_args(By):
        raise UnknownNameError("grouping of pairs", by, get_args(By))
    full_set = source if isinstance(source, ChallengeSet) else read_challenge(source)
    loaded = load_metrics(metrics)
    chosen = _keep_scorable(full_set.choose(phenomena, lps), loaded)
    labels = [c.phenomenon if by == "phenomenon" else c.lp or "(none)" for c in chosen.contrasts]
    groups = tuple(dict.fromkeys(labels))
    group_of = np.array([groups.index(name) for name in labels])
    names = tuple(distinct_labels({m.spec: m.label for m in loaded}).values())
    margins, warnings = _score_margins(chosen.contrasts, list(zip(loaded, names, strict=True)))

    def count(pairs: BoolArray) -> IntArray:
        return np.bincount(group_of[pairs], minlength=len(groups))

    return ChallengeStudy(
        challenge=chosen,
        by=by,
        metrics=tuple(metric.spec for metric in loaded),
        names=names,
        groups=groups,
        correct=np.array([count(margin > 0) for margin in margins]),
        tied=np.array([count(margin == 0) for margin in margins]),
        sizes=np.bincount(group_of),
        warnings=warnings,
    )


def _score_margins(
    contrasts: Sequence[Contrast], metrics: Sequence[tuple[Metric, str]]
) -> tuple[list[FloatArray], dict[str, dict[str, int]]]:
    """Return each metric's score margin of the better translation, (pairs,), and its warnings."""
    segments = [s for contrast in contrasts for s in (contrast.better, contrast.worse)]
    margins = []
    warnings: dict[str, dict[str, int]] = {}
    with share_encoding([metric for metric, _ in metrics], segments):
        for metric, name in track_progress(metrics, "challenging"):
            scores = metric.score(segments).oriented_segments
            margins.append(scores[0::2] - scores[1::2])
            if missing := int(np.isnan(margins[-1]).sum()):
                logger.warning(
                    "%s: %d pairs count as wrong because a score is not a number",
                    metric.spec,
                    missing,
                )
            for kind, count in count_flags(metric.flags(segments[0::2])).items():
                warnings.setdefault(kind, {})[name] = count
    return margins, warnings


def _keep_scorable(pairs: ChallengeSet, metrics: Sequence[Metric]) -> ChallengeSet:
    """Keep the pairs with the inputs of all metrics, or all pairs if none has them."""
    mask = find_scorable_by_all([contrast.better for contrast in pairs.contrasts], metrics)
    if not any(mask) or all(mask):
        return pairs
    scorable_pairs = tuple(compress(pairs.contrasts, mask))
    excluded = [c for c, scorable in zip(pairs.contrasts, mask, strict=True) if not scorable]
    return replace(
        pairs,
        contrasts=scorable_pairs,
        unused=(*pairs.unused, *((c, MISSING_INPUT) for c in excluded)),
    )


def wilson(successes: ArrayLike, totals: ArrayLike) -> FloatArray:
    """Compute Wilson's 95 % bounds of shares successes / total, (..., 2).

    >>> wilson(8, 10).round(3).tolist()
    [0.49, 0.943]
    """
    count, total = np.broadcast_arrays(np.asarray(successes, float), np.asarray(totals, float))
    z = 1.959963984540054  # the .975 quantile of the normal distribution
    share = count / total
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * np.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    # a share of 0 or 1 is its own bound, up to rounding
    low, high = np.minimum(middle - half, share), np.maximum(middle + half, share)
    bounds: FloatArray = np.clip(np.stack([low, high], axis=-1), 0.0, 1.0)
    return bounds

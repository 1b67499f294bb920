"""Evaluate metrics on challenge sets: how often the better of two translations scores higher.

A tie is not correct and is counted separately. Intervals are Wilson's (1927), which are valid for
few pairs and for shares near 0 and 1.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tertium.core.arrays import FloatArray, IntArray, divide
from tertium.core.atomic import PathLike
from tertium.core.charts import DotChart
from tertium.core.errors import UnknownNameError, UsageError
from tertium.core.fields import choices
from tertium.core.options import (
    Compute,
    InFiles,
    LanguagePairs,
    Names,
    Option,
)
from tertium.core.result import (
    Cell,
    Column,
    Emphasis,
    Result,
    Table,
    count_column,
    interval_columns,
)
from tertium.core.runtime import track_progress
from tertium.core.scores import format_warning_counts
from tertium.data.challenge_sets import ChallengeSet, join_challenges, read_challenge
from tertium.evaluation.metric_choice import default_metric
from tertium.evaluation.rows import find_scorable_by_all
from tertium.evaluation.system_scores import distinct_labels
from tertium.metrics.base.judge_run import JudgeConnection
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric, share_encoding
from tertium.metrics.base.text_warnings import count_flags
from tertium.studies.meta_evaluation import JudgedMetrics

logger = logging.getLogger(__name__)

By = Literal["phenomenon", "language"]
METHOD = "95 % Wilson intervals; a tie counts as wrong; random choice gets 50"
MISSING_INPUT = "no reference or source that a metric needs"
ALL_PAIRS = slice(None)  # as a group


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

    def records(self) -> dict[str, Any]:
        """Return the counts of each metric on each group and on all pairs, for JSON."""
        groups: list[tuple[int | slice, str]] = [*enumerate(self.groups), (ALL_PAIRS, "all pairs")]
        return {
            "set": self.challenge.name,
            "pairs": len(self.challenge),
            "left_out": self.challenge.excluded_counts,
            "warnings": self.warnings,
            "results": [
                {"metric": metric, self.by: name, **self._count(m, group)}
                for m, metric in enumerate(self.metrics)
                for group, name in groups
            ],
        }

    def _count(self, metric: int, group: int | slice) -> dict[str, Any]:
        """Return the counts and accuracy of a metric on a group."""
        pairs = int(self.sizes[group].sum())
        right = int(self.correct[metric, group].sum())
        low, high = wilson(right, pairs).tolist()
        return {
            "pairs": pairs,
            "right": right,
            "ties": int(self.tied[metric, group].sum()),
            "accuracy": right / pairs,
            "low": low,
            "high": high,
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
            intervals=np.swapaxes(wilson(self.correct, self.sizes), 0, 1),
            reference_value=0.5,
        )
        return [chart]

    def tables(self) -> list[Table]:
        """Return phenomena x metrics: accuracy in percent with its interval, and ties."""
        columns = [
            Column(self.by, self.groups.__getitem__, group=self.by),
            count_column("pairs", lambda group: self._count(0, group)["pairs"], group=self.by),
        ]
        mean = [Cell(f"mean of {len(self.groups)}"), Cell("")]
        for metric, share in enumerate(self.accuracy.mean(axis=1).tolist()):
            columns += self._metric_columns(metric)
            mean += [Cell(f"{100 * share:.1f}", 100 * share), Cell("")]
        total = [Cell("all pairs")]
        total += [replace(c.cell(ALL_PAIRS), emphasis="") for c in columns[1:] if c.show]
        return [
            Table(
                columns,
                range(len(self.groups)),
                title=f"{self.challenge.name}: how often the better translation scores higher",
                notes=[METHOD, *self._excluded_lines()],
                cautions=format_warning_counts(self.warnings),
                footer=[total, mean],
            )
        ]

    def _metric_columns(self, metric: int) -> list[Column]:
        """Return the accuracy and ties of a metric in each group."""

        def share(group: int) -> tuple[float, float, float]:
            count = self._count(metric, group)
            return 100 * count["accuracy"], 100 * count["low"], 100 * count["high"]

        def mark(group: int) -> Emphasis:
            is_best = np.all(self.correct[metric, group] == self.correct[:, group].max(axis=0))
            return "best" if len(self.metrics) > 1 and is_best else ""

        def ties(group: int) -> Any:
            return self._count(metric, group)["ties"]

        name = self.names[metric]
        heading = f"{name} %"
        return [
            *interval_columns(heading, share, 1, mark=mark, group=heading, adjustable=False),
            Column("ties", ties, 0, text=lambda group, _: str(ties(group) or "–"), group=heading),
        ]

    def warning_lines(self) -> list[str]:
        """Return how many pairs were excluded by reason, and the warnings of metrics."""
        return [*self._excluded_lines(), *format_warning_counts(self.warnings)]

    def _excluded_lines(self) -> list[str]:
        counts = self.challenge.excluded_counts
        return [f"excluded: {reason}: {count}" for reason, count in counts.items()]


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
    if by not in choices(By):
        raise UnknownNameError("grouping of pairs", by, choices(By))
    full_set = source if isinstance(source, ChallengeSet) else read_challenge(source)
    loaded = load_metrics(metrics)
    chosen = full_set.choose(phenomena, lps)
    mask = find_scorable_by_all([contrast.better for contrast in chosen.contrasts], loaded)
    if any(mask):  # else all pairs lack an input, which the metrics report
        scorable = tuple(compress(chosen.contrasts, mask))
        unscorable = compress(chosen.contrasts, np.logical_not(mask).tolist())
        excluded = tuple((contrast, MISSING_INPUT) for contrast in unscorable)
        chosen = replace(chosen, contrasts=scorable, unused=(*chosen.unused, *excluded))
    labels = [c.phenomenon if by == "phenomenon" else c.lp or "(none)" for c in chosen.contrasts]
    groups = tuple(dict.fromkeys(labels))
    group_of = np.array([groups.index(name) for name in labels])
    names = tuple(distinct_labels({m.spec: m.label for m in loaded}).values())
    segments = [s for contrast in chosen.contrasts for s in (contrast.better, contrast.worse)]
    correct = []
    tied = []
    warnings: dict[str, dict[str, int]] = {}
    with share_encoding(loaded, segments):
        for metric, name in track_progress([*zip(loaded, names, strict=True)], "challenging"):
            scores = metric.score(segments).oriented_segments
            margins = scores[0::2] - scores[1::2]
            correct.append(np.bincount(group_of[margins > 0], minlength=len(groups)))
            tied.append(np.bincount(group_of[margins == 0], minlength=len(groups)))
            if missing := int(np.isnan(margins).sum()):
                text = "%s: %d pairs count as wrong because a score is not a number"
                logger.warning(text, metric.spec, missing)
            for kind, count in count_flags(metric.flags(segments[0::2])).items():
                warnings.setdefault(kind, {})[name] = count
    return ChallengeStudy(
        challenge=chosen,
        by=by,
        metrics=tuple(metric.spec for metric in loaded),
        names=names,
        groups=groups,
        correct=np.array(correct),
        tied=np.array(tied),
        sizes=np.bincount(group_of),
        warnings=warnings,
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
    low = np.minimum(middle - half, share)
    high = np.maximum(middle + half, share)
    bounds: FloatArray = np.clip(np.stack([low, high], axis=-1), 0.0, 1.0)
    return bounds


def challenge_metrics(
    sets: Annotated[InFiles, Option(metavar="SET")] = (),
    /,
    *,
    metrics: JudgedMetrics,
    compute: Compute,
    judge: JudgeConnection,
    select: Annotated[Names, Option(group="Input")] = (),
    lps: Annotated[LanguagePairs, Option(group="Input")] = (),
    by: Annotated[By, Option(group="Statistics")] = "phenomenon",
) -> ChallengeStudy:
    """Count how often a metric prefers the better of two translations, by phenomenon.

    Parameters
    ----------
    sets
        Damage, or files of pairs.
    select
        Only these phenomena (default: all).
    lps
        Only these language pairs (default: all).
    by
        Rows of the table.

    Examples
    --------
    tertium meta challenge damage -m chrf bleu
    tertium meta challenge damage -m tertium-multi --select number negation --lps en-de de-en
    tertium meta challenge aces.tsv -m chrf -o accuracy.svg

    Notes
    -----
    SET is `damage`, our own set (ten sentences in six languages with rule-based errors), or a file
    in the format of ACES (TSV or JSONL) or DEMETR (JSON). The default metric is tertium-small for
    English references, otherwise tertium-multi.
    """
    if not sets:
        raise UsageError(
            "no SET: give `damage` or files of pairs before -m, --select and --lps, which take "
            "all following words"
        )
    pairs = join_challenges([read_challenge(file) for file in sets])
    if not metrics.metrics:
        specs = default_metric(pairs.testset(), metrics.target_language or "")
        metrics = replace(metrics, metrics=tuple(specs))
    return challenge(pairs, metrics.load_judged(), by=by, phenomena=select, lps=lps)

"""Evaluate metrics on challenge sets: how often the better of two translations scores higher.

A tie is not correct and is counted separately. Intervals are Wilson's (1927), which are valid for
few pairs and for shares near 0 and 1.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from tertium.arrays import BoolArray, FloatArray, IntArray, divide
from tertium.data.challenge_sets import ChallengeSet, Contrast, read_challenge
from tertium.data.formats import PathLike
from tertium.display import Displayable
from tertium.errors import UnknownNameError
from tertium.evaluation.evaluation import distinct_labels
from tertium.evaluation.rows import find_scorable_by_all
from tertium.execution import track_progress
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric, share_encoding

logger = logging.getLogger(__name__)

By = Literal["phenomenon", "language"]
MISSING_INPUT = "no reference or source that a metric needs"


@dataclass(frozen=True, kw_only=True, eq=False)
class ChallengeStudy(Displayable):
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
    def overall(self) -> FloatArray:
        """The share of correct pairs over all groups, (metrics,)."""
        return divide(self.correct.sum(axis=1), self.sizes.sum())

    @property
    def mean(self) -> FloatArray:
        """The mean accuracy over groups, each weighted equally, (metrics,)."""
        result: FloatArray = self.accuracy.mean(axis=1)
        return result

    def records(self) -> dict[str, Any]:
        """Return all results as plain values, for JSON."""
        bounds = self.intervals
        return {
            "set": self.challenge.name,
            "pairs": len(self.challenge),
            "left_out": self.challenge.excluded_counts,
            "metrics": [
                {
                    "metric": metric,
                    "accuracy": float(self.overall[m]),
                    "interval": wilson(self.correct[m].sum(), self.sizes.sum()).tolist(),
                    "mean_accuracy": float(self.mean[m]),
                    "ties": int(self.tied[m].sum()),
                    "by": self.by,
                    "groups": [
                        {
                            self.by: group,
                            "pairs": int(self.sizes[g]),
                            "right": int(self.correct[m, g]),
                            "ties": int(self.tied[m, g]),
                            "accuracy": float(self.accuracy[m, g]),
                            "interval": bounds[m, g].tolist(),
                        }
                        for g, group in enumerate(self.groups)
                    ],
                    **({"warnings": warnings} if (warnings := self._warnings_of(m)) else {}),
                }
                for m, metric in enumerate(self.metrics)
            ],
        }

    def _warnings_of(self, metric: int) -> dict[str, int]:
        name = self.names[metric]
        return {kind: by[name] for kind, by in self.warnings.items() if name in by}


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
            for kind, count in metric.warnings(segments[0::2]).items():
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

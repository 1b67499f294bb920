"""Metrics on a challenge set: how often the better of two translations gets the better score.

A tie is no right answer, and is counted apart. Intervals are Wilson's (1927), which hold for few
pairs and for shares near 0 and 1.
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
from tertium.data.challenge import ChallengeSet, Contrast, read_challenge
from tertium.data.formats import PathLike
from tertium.display import Displayed
from tertium.errors import UnknownNameError
from tertium.evaluation.scoring import distinct_labels, served_by_all
from tertium.metrics.base.loading import load_metrics
from tertium.metrics.base.metric import Metric, foresee
from tertium.runtime import track

logger = logging.getLogger(__name__)

By = Literal["phenomenon", "language"]
LACKING = "no reference or source that a metric reads"


@dataclass(frozen=True, kw_only=True, eq=False)
class ChallengeStudy(Displayed):
    """What came of metrics on a challenge set, by phenomenon or by language pair.

    `right` and `tied` (metrics, groups) count pairs, `sizes` (groups,) all of them. `warnings`
    counts, for each kind and metric, better translations that a metric warns of: what is odd about
    the worse ones is what it is asked for.
    """

    challenge: ChallengeSet
    by: By
    metrics: tuple[str, ...]
    names: tuple[str, ...]
    groups: tuple[str, ...]
    right: IntArray = field(repr=False)
    tied: IntArray = field(repr=False)
    sizes: IntArray = field(repr=False)
    warnings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def accuracy(self) -> FloatArray:
        """The share of pairs put right, (metrics, groups)."""
        return divide(self.right, self.sizes)

    @property
    def intervals(self) -> FloatArray:
        """95 % bounds of `accuracy`, (metrics, groups, 2)."""
        return wilson(self.right, self.sizes)

    @property
    def overall(self) -> FloatArray:
        """The share of all pairs put right, (metrics,)."""
        return divide(self.right.sum(axis=1), self.sizes.sum())

    @property
    def mean(self) -> FloatArray:
        """The mean over groups, each counted alike, (metrics,)."""
        result: FloatArray = self.accuracy.mean(axis=1)
        return result

    def records(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        bounds = self.intervals
        return {
            "set": self.challenge.name,
            "pairs": len(self.challenge),
            "left_out": self.challenge.left_out,
            "metrics": [
                {
                    "metric": metric,
                    "accuracy": float(self.overall[m]),
                    "interval": wilson(self.right[m].sum(), self.sizes.sum()).tolist(),
                    "mean_accuracy": float(self.mean[m]),
                    "ties": int(self.tied[m].sum()),
                    "by": self.by,
                    "groups": [
                        {
                            self.by: group,
                            "pairs": int(self.sizes[g]),
                            "right": int(self.right[m, g]),
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
    """Try metrics on pairs of a better and a worse translation.

    `source` is a set, a file of ACES' or DEMETR's layout, or "damage", our own.
    """
    if by not in get_args(By):
        raise UnknownNameError("way to group pairs", by, get_args(By))
    read = source if isinstance(source, ChallengeSet) else read_challenge(source)
    loaded = load_metrics(metrics)
    chosen = _keep_served(read.choose(phenomena, lps), loaded)
    named = [c.phenomenon if by == "phenomenon" else c.lp or "(none)" for c in chosen.contrasts]
    groups = tuple(dict.fromkeys(named))
    group_of = np.array([groups.index(name) for name in named])
    names = tuple(distinct_labels({m.spec: m.label for m in loaded}).values())
    leads, warnings = _leads(chosen.contrasts, list(zip(loaded, names, strict=True)))

    def count(pairs: BoolArray) -> IntArray:
        return np.bincount(group_of[pairs], minlength=len(groups))

    return ChallengeStudy(
        challenge=chosen,
        by=by,
        metrics=tuple(metric.spec for metric in loaded),
        names=names,
        groups=groups,
        right=np.array([count(lead > 0) for lead in leads]),
        tied=np.array([count(lead == 0) for lead in leads]),
        sizes=np.bincount(group_of),
        warnings=warnings,
    )


def _leads(
    contrasts: Sequence[Contrast], metrics: Sequence[tuple[Metric, str]]
) -> tuple[list[FloatArray], dict[str, dict[str, int]]]:
    """How far each metric puts the better above the worse, (pairs,), and what it warns of.

    Metrics come with their names, by which warnings are counted.
    """
    segments = [s for contrast in contrasts for s in (contrast.better, contrast.worse)]
    leads = []
    warnings: dict[str, dict[str, int]] = {}
    with foresee([metric for metric, _ in metrics], segments):
        for metric, name in track(metrics, "challenging"):
            scores = metric.score(segments).upward
            leads.append(scores[0::2] - scores[1::2])
            if lost := int(np.isnan(leads[-1]).sum()):
                logger.warning(
                    "%s: %d pairs, of which a score is no number, count as wrong", metric.spec, lost
                )
            for kind, count in metric.warnings(segments[0::2]).items():
                warnings.setdefault(kind, {})[name] = count
    return leads, warnings


def _keep_served(pairs: ChallengeSet, metrics: Sequence[Metric]) -> ChallengeSet:
    """The pairs with the references or sources that all metrics read, and a count of the others.

    All metrics are tried on the same pairs. Where none will do, the metric says why.
    """
    mask = served_by_all([contrast.better for contrast in pairs.contrasts], metrics)
    if not any(mask) or all(mask):
        return pairs
    kept = tuple(compress(pairs.contrasts, mask))
    lacking = [one for one, serves in zip(pairs.contrasts, mask, strict=True) if not serves]
    return replace(pairs, contrasts=kept, unused=(*pairs.unused, *((c, LACKING) for c in lacking)))


def wilson(right: ArrayLike, of: ArrayLike) -> FloatArray:
    """Wilson's 95 % bounds of shares right / of, (..., 2).

    >>> wilson(8, 10).round(3).tolist()
    [0.49, 0.943]
    """
    count, total = np.broadcast_arrays(np.asarray(right, float), np.asarray(of, float))
    z = 1.959963984540054  # the normal quantile of .975
    share = count / total
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * np.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    # a share of 0 or 1 is its own bound, which rounding may miss
    low, high = np.minimum(middle - half, share), np.maximum(middle + half, share)
    bounds: FloatArray = np.clip(np.stack([low, high], axis=-1), 0.0, 1.0)
    return bounds

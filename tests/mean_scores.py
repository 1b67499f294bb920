"""Scores of a metric that tests define by its segment scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from tertium.core.arrays import FloatArray, divide
from tertium.core.scores import Scores


def mean_scores(spec: str, values: FloatArray, name: str) -> Scores:
    """Make `Scores` whose system score is the mean of segment scores; NaN is left out."""
    is_finite = np.isfinite(values)
    statistics = np.column_stack([np.where(is_finite, values, 0.0), is_finite.astype(np.float64)])
    return Scores(metric=spec, name=name, statistics=statistics, reduce=_mean, signature="")


def complete_scores(values: FloatArray, spec: str = "demo", **options: Any) -> Scores:
    """Make `Scores` whose system score is the mean of all segment scores, also of NaN."""
    statistics = np.column_stack([values, np.ones(len(values))])
    return Scores(spec, statistics, lambda totals: totals[..., 0] / totals[..., 1], **options)


def _mean(totals: FloatArray) -> FloatArray:
    return divide(totals[..., 0], totals[..., 1])

"""Scales of differences, fitted on systems that people judged: `tertium meta --thresholds`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tertium.evaluation.agreement import Sources, gather
from tertium.meta.differences import DifferenceScale, fit_scales
from tertium.metrics.base.metric import Metric


def fit_differences(
    human: Sources, metrics: str | Metric | Sequence[str | Metric] = (), **sources: Any
) -> list[DifferenceScale]:
    """Scales of metrics on judged systems; arguments as of `meta_evaluate`."""
    gathered = gather(human, metrics, level="system", **sources)
    learned = {metric.spec: metric.learned for metric in gathered.metrics}
    return fit_scales(gathered.sets, learned)

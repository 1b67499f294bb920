"""Metrics and rankers: one published metric per module, imported on first use.

    from tertium.metrics import BLEU, CHRF, BERTScore, TertiumMulti

Each class is a frozen dataclass whose constructor arguments are its configuration.
"""

from __future__ import annotations

from typing import Any

from tertium.core.registry import METRICS, RANKERS, resolve_scorer
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric, SegmentMetric

_SPEC_NAMES = {
    path.partition(":")[2]: name for name, path in {**METRICS.builtin, **RANKERS.builtin}.items()
}
__all__ = ["Metric", "SegmentMetric", "load_metric", *sorted(_SPEC_NAMES)]


def __getattr__(name: str) -> Any:
    if name not in _SPEC_NAMES:
        raise AttributeError(f"module 'tertium.metrics' has no attribute {name!r}")
    return resolve_scorer(_SPEC_NAMES[name])


def __dir__() -> list[str]:
    return sorted(__all__)

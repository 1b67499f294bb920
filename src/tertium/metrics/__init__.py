"""One published metric per module; each is a frozen dataclass that is its own configuration."""

from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric, SegmentMetric

__all__ = ["Metric", "SegmentMetric", "load_metric"]

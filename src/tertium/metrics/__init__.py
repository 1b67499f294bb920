"""One published metric per module; each is a frozen dataclass that is its own configuration."""

from tertium.metrics.base.metric import Metric, SegmentMetric, load_metric

__all__ = ["Metric", "SegmentMetric", "load_metric"]

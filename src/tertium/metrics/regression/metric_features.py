"""Features of a regression that are scores of other metrics or similarities of embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.segment import Segment
from tertium.metrics.base.lexical_features import SMALL
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric

EMBEDDING_COLUMNS = ("recall", "precision", "f1", "cosine")


@dataclass(frozen=True)
class EmbeddingFeatures:
    """Four columns for one encoder: recall, precision and F1 of BERTScore, and sentence similarity.

    >>> extractor = EmbeddingFeatures("toy")
    >>> extractor([Segment("a cat", references=("a cat",))]).round(3)
    array([[1., 1., 1., 1.]])
    """

    can_fork: ClassVar[bool] = False

    encoder: str = "minilm"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.encoder}.{column}" for column in EMBEDDING_COLUMNS)

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        tokens = load_metric("bertscore", encoder=self.encoder, special=False)
        sentences = load_metric("sss", encoder=self.encoder)
        precision, recall, f1, _ = tokens.statistics(segments).T
        f1 = np.where(precision > 0, f1, 0.0)
        return np.column_stack([recall, precision, f1, sentences.score(segments).segments])


@dataclass(frozen=True)
class MetricColumns:
    """Segment scores of a metric as two columns: the score and its logarithm."""

    metric: Metric

    @property
    def can_fork(self) -> bool:
        """Whether the metric has no model; a network must not run in a forked process."""
        return not self.metric.model_ids

    @property
    def names(self) -> tuple[str, ...]:
        return (self.metric.name, f"log {self.metric.name}")

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        scores = self.metric.score(segments).segments
        return np.column_stack([scores, np.log(scores + SMALL)])

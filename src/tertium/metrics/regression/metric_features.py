"""Features of a regression that are scores of other metrics or similarities of embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.segment import Segment
from tertium.encoders.cached_encoding import Chunk, compare_pairs
from tertium.encoders.encoder import load_encoder
from tertium.metrics.base.feature_extractor import only_reference
from tertium.metrics.base.greedy_matching import cosine, match_greedily
from tertium.metrics.base.lexical_features import SMALL
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
        return compare_pairs(
            load_encoder(self.encoder),
            [segment.hypothesis for segment in segments],
            [only_reference(segment) for segment in segments],
            _compare_pairs,
            sentences=True,
        ).reshape(len(segments), len(EMBEDDING_COLUMNS))


def _compare_pairs(chunk: Chunk) -> FloatArray:
    precision, recall = np.nan_to_num(match_greedily(chunk)).T  # 0 if a text has no tokens
    is_positive = np.minimum(precision, recall) > 0
    total = np.where(is_positive, precision + recall, 1.0)
    f1 = np.where(is_positive, 2 * precision * recall / total, 0.0)
    sentences = chunk.embeddings.sentences
    pairs = zip(chunk.left, chunk.right, strict=True)
    cosines = [cosine(sentences[left], sentences[right]) for left, right in pairs]
    return np.column_stack([recall, precision, f1, cosines])


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

"""Features of a regression that are scores of other metrics or similarities of embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tertium.core.arrays import Float32Array, FloatArray, exact_dot_products
from tertium.core.segment import Segment
from tertium.encoders.cached_encoding import Chunk, compare_pairs
from tertium.encoders.encoder import load_encoder
from tertium.metrics.base.feature_extractor import only_reference
from tertium.metrics.base.greedy_matching import cosine, find_best_matches, normalize_rows
from tertium.metrics.base.lexical_features import SMALL
from tertium.metrics.base.metric import Metric

if TYPE_CHECKING:
    pass

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
    rows = np.zeros((len(chunk), len(EMBEDDING_COLUMNS)))
    tokens, sentences = chunk.embeddings.token_vectors, chunk.embeddings.sentences
    for row, (left, right) in enumerate(zip(chunk.left, chunk.right, strict=True)):
        rows[row, :3] = greedy_match_scores(tokens(left), tokens(right))
        rows[row, 3] = cosine(sentences[left], sentences[right])
    return rows


def greedy_match_scores(
    hypothesis: Float32Array, reference: Float32Array
) -> tuple[float, float, float]:
    """Compute recall, precision and F1 of the best match of each token; 0 if a text has no tokens.

    F1 is also 0 unless recall and precision are both positive.

    >>> greedy_match_scores(np.eye(2, dtype=np.float32), np.eye(3, 2, dtype=np.float32)[:2])
    (1.0, 1.0, 1.0)
    """
    if not len(hypothesis) or not len(reference):
        return 0.0, 0.0, 0.0
    cosines = exact_dot_products(normalize_rows(hypothesis), normalize_rows(reference))
    best = find_best_matches(cosines)
    recall, precision = float(best.recall.mean()), float(best.precision.mean())
    if min(recall, precision) <= 0:
        return recall, precision, 0.0
    return recall, precision, 2 * recall * precision / (recall + precision)


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

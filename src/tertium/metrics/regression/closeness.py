"""How close two texts lie in an encoder's space, as columns: greedy matching and sentence cosine.

Recall, precision and F1 of BERTScore over token vectors, and the cosine of sentence vectors (SSS).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tertium.arrays import Float32Array, FloatArray
from tertium.encoders.encoder import load_encoder
from tertium.encoders.grid import products
from tertium.encoders.stream import Chunk, pairwise
from tertium.metrics.base.featurizer import reference_of
from tertium.metrics.base.matching import cosine, unit
from tertium.segment import Segment

COLUMNS = ("recall", "precision", "f1", "cosine")


@dataclass(frozen=True)
class EmbeddingFeatures:
    """Four columns for one encoder.

    >>> columns = EmbeddingFeatures("toy")
    >>> columns([Segment("a cat", references=("a cat",))]).round(3)
    array([[1., 1., 1., 1.]])
    """

    forks: ClassVar[bool] = False

    encoder: str = "minilm"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.encoder}.{column}" for column in COLUMNS)

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        return pairwise(
            load_encoder(self.encoder),
            [segment.hypothesis for segment in segments],
            [reference_of(segment) for segment in segments],
            _compare,
            sentences=True,
        ).reshape(len(segments), len(COLUMNS))


def _compare(chunk: Chunk) -> FloatArray:
    rows = np.zeros((len(chunk), len(COLUMNS)))
    for row, (left, right) in enumerate(zip(chunk.left, chunk.right, strict=True)):
        rows[row, :3] = greedy_match(chunk.texts.tokens(left), chunk.texts.tokens(right))
        rows[row, 3] = cosine(chunk.texts.sentences[left], chunk.texts.sentences[right])
    return rows


def greedy_match(hypothesis: Float32Array, reference: Float32Array) -> tuple[float, float, float]:
    """Recall, precision and F1 of the best match of each token; 0 where a text has none.

    >>> greedy_match(np.eye(2, dtype=np.float32), np.eye(3, 2, dtype=np.float32)[:2])
    (1.0, 1.0, 1.0)
    """
    if not len(hypothesis) or not len(reference):
        return 0.0, 0.0, 0.0
    similar = products(unit(hypothesis), unit(reference))  # (hypothesis tokens, reference tokens)
    recall, precision = float(similar.max(axis=0).mean()), float(similar.max(axis=1).mean())
    both = recall + precision
    return recall, precision, 2 * recall * precision / both if both > 0 else 0.0

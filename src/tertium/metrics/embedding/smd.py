"""SMD: distance of mean-pooled token vectors (Zhao et al. 2019; Song, Zhao, Specia 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tertium.core.arrays import Float32Array, FloatArray
from tertium.core.segment import Segment
from tertium.encoders import Chunk, Encoder
from tertium.metrics.base.greedy_matching import normalize_rows, piece_ranges
from tertium.metrics.embedding.embedding_metric import EmbeddingMetric, Formula


@dataclass(frozen=True, kw_only=True)
class SMD(EmbeddingMetric):
    """Sentence Mover's Distance, 0 to 2: lower is better.

        SMD = |mean_i x_i - mean_j y_j|

    x_i and y_j are token vectors scaled to length 1. SMD needs no sentence encoder and ignores word
    order.

    See also: SSS agrees better with human scores if the encoder was trained on sentences.

    >>> round(SMD(encoder="toy").sentence_score("the cat sat", ["sat the cat"]), 6)
    0.0
    """

    name: ClassVar[str] = "smd"
    title: ClassVar[str] = "SMD"
    higher_is_better: ClassVar[bool] = False
    reference_encoder: ClassVar[str] = "minilm@6"
    identical: ClassVar[float] = 0.0
    unrelated: ClassVar[float] = 2.0
    citation: ClassVar[str] = """\
@inproceedings{zhao-etal-2019-moverscore,
    title = "{M}over{S}core: Text Generation Evaluating with Contextualized Embeddings and Earth
        Mover Distance",
    author = "Zhao, Wei and Peyrard, Maxime and Liu, Fei and Gao, Yang and Meyer, Christian M. and
        Eger, Steffen",
    booktitle = "Proceedings of EMNLP-IJCNLP", year = "2019", pages = "563--578"
}"""

    def formula(self, encoder: Encoder, segments: Sequence[Segment]) -> Formula:
        return mean_distances


def mean_distances(chunk: Chunk) -> FloatArray:
    """Return the distance of the mean vectors of each pair, (m,); NaN if a text is empty."""
    means = mean_vectors(chunk)
    gaps = means[chunk.left].astype(np.float64) - means[chunk.right]
    result: FloatArray = np.sqrt(np.einsum("ij,ij->i", gaps, gaps))
    return result


def mean_vectors(chunk: Chunk) -> Float32Array:
    """Return the mean unit vector of each text, (texts, dim); NaN if it is empty."""
    vectors = normalize_rows(chunk.embeddings.vectors)
    starts, stops = piece_ranges(chunk.embeddings)
    result = np.full((len(starts), vectors.shape[1]), np.nan, dtype=np.float32)
    for i in np.flatnonzero(stops > starts):
        result[i] = vectors[starts[i] : stops[i]].mean(axis=0)
    return result

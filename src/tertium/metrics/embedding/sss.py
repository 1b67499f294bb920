"""SSS: cosine of sentence vectors (Song, Zhao, Specia 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tertium.core.arrays import FloatArray
from tertium.core.segment import Segment
from tertium.encoders import Chunk, Encoder
from tertium.metrics.base.greedy_matching import normalize_rows
from tertium.metrics.embedding.embedding_metric import EmbeddingMetric, Formula


@dataclass(frozen=True, kw_only=True)
class SSS(EmbeddingMetric):
    """Sentence semantic similarity, -1 to 1.

        SSS = cos(s(hypothesis), s(reference))

    s is the encoder's own sentence vector, pooled as in its training. SSS reacts to negations that
    token-level metrics miss, and misses details that they see.

    See also: SentSim adds a token-level similarity.

    >>> round(SSS(encoder="toy").sentence_score("the cat sat", ["sat the cat"]), 6)
    1.0
    """

    name: ClassVar[str] = "sss"
    title: ClassVar[str] = "SSS"
    citation: ClassVar[str] = """\
@inproceedings{song-etal-2021-sentsim,
    title = "{S}ent{S}im: Crosslingual Semantic Evaluation of Machine Translation",
    author = "Song, Yurun and Zhao, Junchen and Specia, Lucia",
    booktitle = "Proceedings of NAACL", year = "2021", pages = "3143--3156"
}"""

    @property
    def worst_score(self) -> float:
        return -1.0

    @property
    def vector_kinds(self) -> frozenset[str]:
        return frozenset({"sentences"})

    def formula(self, encoder: Encoder, segments: Sequence[Segment]) -> Formula:
        return sentence_cosines


def sentence_cosines(chunk: Chunk) -> FloatArray:
    """Return the cosine of the sentence vectors of each pair, (m,); NaN if one is zero."""
    vectors = normalize_rows(chunk.embeddings.sentences)
    vectors[~vectors.any(axis=1)] = np.nan
    cosines = np.einsum("ij,ij->i", vectors[chunk.left], vectors[chunk.right])
    result: FloatArray = cosines.astype(np.float64)
    return result

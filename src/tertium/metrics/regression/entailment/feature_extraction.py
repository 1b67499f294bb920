"""Compute entailment features of segments as columns, in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tertium.core.arrays import Float32Array, FloatArray
from tertium.core.segment import Segment
from tertium.encoders.cached_encoding import embed_texts
from tertium.encoders.encoder import load_encoder
from tertium.metrics.base.lexical_features import only_reference
from tertium.metrics.linguistics.dependency_graph import build_graph
from tertium.metrics.linguistics.dependency_parser import load_parser
from tertium.metrics.linguistics.semantic_attributes import Sentence, build_sentence, vector_word
from tertium.metrics.regression.entailment import FEATURES, GROUPS
from tertium.metrics.regression.entailment.feature_types import (
    BACKWARD,
    FORWARD,
    Feature,
    Pair,
    make_pairs,
)

DIRECTIONS = (FORWARD, BACKWARD)


@dataclass(frozen=True)
class EntailmentFeatures:
    """Entailment features of the named groups in both directions: 212 columns for all groups.

    `forward` tests whether the hypothesis follows from the reference, `backward` whether the
    reference follows from the hypothesis. `vectors` is the encoder for distributional similarity;
    it encodes each word on its own.
    """

    groups: tuple[str, ...] = GROUPS
    vectors: str = "glove"

    @property
    def features(self) -> tuple[Feature, ...]:
        """Features of each direction."""
        return tuple(feature for feature in FEATURES.values() if feature.group in self.groups)

    @property
    def names(self) -> tuple[str, ...]:
        return _column_names(self)

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        features = self.features
        rows = [
            [feature.value(pair) for pair in pairs for feature in features]
            for pairs in self.pairs(segments)
        ]
        return np.array(rows, dtype=np.float64).reshape(len(rows), 2 * len(features))

    def pairs(self, segments: Sequence[Segment]) -> list[tuple[Pair, Pair]]:
        """Parse and align each segment in both directions."""
        texts = [text for s in segments for text in (s.hypothesis, only_reference(s))]
        sentences = load_sentences(texts, self.vectors)
        return [make_pairs(sentences[s.hypothesis], sentences[s.references[0]]) for s in segments]


@lru_cache(maxsize=64)
def _column_names(extractor: EntailmentFeatures) -> tuple[str, ...]:
    """Cached, because regressions look up each column in the result."""
    return tuple(f"{d}.{feature.name}" for d in DIRECTIONS for feature in extractor.features)


def load_sentences(texts: Sequence[str], vectors: str = "glove") -> dict[str, Sentence]:
    """Parse each distinct text, and look up one vector per word, whatever its text."""
    analyses = load_parser().analyze(list(dict.fromkeys(texts)))
    graphs = [build_graph(analysis) for analysis in analyses]
    encoder = load_encoder(vectors)
    words = dict.fromkeys(vector_word(node) for graph in graphs for node in graph.nodes)
    words.pop("", None)
    spaced = [word.replace("_", " ") for word in words]
    embeddings = embed_texts(encoder, spaced, sentences=False)
    table = {word: unit_mean(tokens) for word, tokens in zip(words, embeddings, strict=True)}
    table[""] = np.zeros(encoder.dim, dtype=np.float32)
    return {graph.analysis.text: build_sentence(graph, table) for graph in graphs}


def unit_mean(vectors: Float32Array) -> Float32Array:
    """Compute the mean of vectors, scaled to length one, (k, dim) -> (dim,); zero stays zero."""
    mean = vectors.sum(axis=0) / np.float32(max(1, len(vectors)))
    norm = float(np.linalg.norm(mean))
    return mean / norm if norm > 0 else np.zeros_like(mean)

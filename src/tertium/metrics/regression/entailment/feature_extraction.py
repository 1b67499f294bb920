"""Compute entailment features of segments as columns, in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tertium.core.arrays import Float32Array, FloatArray
from tertium.core.segment import Segment
from tertium.encoders.cached_encoding import embed_texts
from tertium.encoders.encoder import EncoderName, load_encoder
from tertium.metrics.base.lexical_features import only_reference
from tertium.metrics.linguistics.dependency_graph import Graph, Node
from tertium.metrics.linguistics.dependency_parser import load_parser
from tertium.metrics.linguistics.semantic_attributes import Sentence, build_sentence
from tertium.metrics.regression.entailment import FEATURES, GROUPS
from tertium.metrics.regression.entailment.feature_types import (
    BACKWARD,
    FORWARD,
    Feature,
    Pair,
    make_pairs,
)

DIRECTIONS = (FORWARD, BACKWARD)
MAX_CACHED_SENTENCES = 4096
STATIC_ENCODERS = frozenset({"glove", "file"})
MAX_CACHED_WORDS = 100_000  # the cache is cleared when it would exceed this size


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
    def can_fork(self) -> bool:
        """Whether the vectors are stored; a network must not run in a forked process."""
        return EncoderName.parse(self.vectors).family in STATIC_ENCODERS

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
    """Parse each distinct text, or take it from the cache in memory."""
    cache = sentence_cache(vectors)
    sentences = {text: cache[text] for text in texts if text in cache}
    missing = [text for text in dict.fromkeys(texts) if text not in sentences]
    if missing:
        vectorize = load_word_vectors(vectors)
        for analysis in load_parser().analyze(missing):
            sentences[analysis.text] = build_sentence(analysis, vectorize)
    for text in missing:
        if len(cache) >= MAX_CACHED_SENTENCES:
            cache.pop(next(iter(cache)))  # the oldest
        cache[text] = sentences[text]
    return sentences


@lru_cache(maxsize=4)
def sentence_cache(vectors: str) -> dict[str, Sentence]:
    """Return the sentences in memory; analyses on disk remain if they are dropped."""
    return {}


class WordVectors:
    """One vector per content word, whatever its text; function words and numbers have none."""

    def __init__(self, encoder: str) -> None:
        self._encoder = load_encoder(encoder)
        self._no_vector = np.zeros(self._encoder.dim, dtype=np.float32)
        self._vectors: dict[str, Float32Array] = {"": self._no_vector}

    def __call__(self, graph: Graph) -> Float32Array:
        words = [_vector_word(node) for node in graph.nodes]
        missing = [word for word in dict.fromkeys(words) if word not in self._vectors]
        if len(self._vectors) + len(missing) > MAX_CACHED_WORDS:
            self._vectors, missing = {"": self._no_vector}, [*dict.fromkeys(words)]
        texts = [word.replace("_", " ") for word in missing]
        embeddings = embed_texts(self._encoder, texts, sentences=False)
        for word, tokens in zip(missing, embeddings, strict=True):
            self._vectors[word] = unit_mean(tokens) if len(tokens) else self._no_vector
        rows = [self._vectors[word] for word in words]
        return np.array(rows, dtype=np.float32).reshape(len(rows), self._encoder.dim)


def unit_mean(vectors: Float32Array) -> Float32Array:
    """Compute the mean of vectors, scaled to length one, (k, dim) -> (dim,); zero stays zero."""
    mean = vectors.mean(axis=0)
    norm = float(np.linalg.norm(mean))
    return mean / norm if norm > 0 else np.zeros_like(mean)


def _vector_word(node: Node) -> str:
    """Return the word to look up for a node; empty for function words and numbers."""
    if not node.is_content or node.quantity is not None:
        return ""
    return node.lemma if "_" in node.lemma else node.text.lower()


load_word_vectors = lru_cache(maxsize=4)(WordVectors)

"""Compute entailment features of segments as columns, in both directions.

Distributional similarity needs a vector for each node. With static vectors (GloVe or a vector
file) a word has the same vector in every text. With any other encoder, the vector of a node is the
mean of the vectors of its subwords in this text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tertium.core.arrays import Float32Array, FloatArray
from tertium.core.segment import Segment
from tertium.encoders.cached_encoding import embed_texts
from tertium.encoders.encoder import EncoderName, load_encoder
from tertium.metrics.base.feature_extractor import only_reference
from tertium.metrics.linguistics.dependency_graph import Graph, Node
from tertium.metrics.linguistics.dependency_parser import load_parser
from tertium.metrics.linguistics.sentence import Sentence, build_sentence
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
_SUBWORD_MARKERS = ("##", "\u2581", "\u0120", "</w>")
_MAX_SKIPPED_CHARACTERS = 40  # between two subwords of a text


@dataclass(frozen=True)
class EntailmentFeatures:
    """Entailment features of the named groups in both directions: 212 columns for all groups.

    `forward` tests whether the hypothesis follows from the reference, `backward` whether the
    reference follows from the hypothesis. `vectors` is the encoder for distributional similarity:
    static (`glove`) or contextual (`minilm@4`).
    """

    groups: tuple[str, ...] = GROUPS
    vectors: str = "glove"

    @property
    def can_fork(self) -> bool:
        """Whether the vectors are static; a network must not run in a forked process."""
        return is_static(self.vectors)

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
        vectorize = load_node_vectors(vectors)
        vectorize.prepare(missing)
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


class StaticNodeVectors:
    """One vector per word; function words and numbers have none."""

    def __init__(self, encoder: str) -> None:
        self._encoder = load_encoder(encoder)
        self._no_vector = np.zeros(self._encoder.dim, dtype=np.float32)
        self._word_vectors: dict[str, Float32Array] = {"": self._no_vector}

    def prepare(self, texts: Sequence[str]) -> None:
        """Do nothing: words are looked up when they occur."""

    def __call__(self, graph: Graph) -> Float32Array:
        words = [_vector_word(node) for node in graph.nodes]
        missing = [word for word in dict.fromkeys(words) if word not in self._word_vectors]
        if missing:
            self._embed_words(missing)
        if not words:
            return np.zeros((0, self._encoder.dim), dtype=np.float32)
        return np.stack([self._word_vectors[word] for word in words])

    def _embed_words(self, words: list[str]) -> None:
        if len(self._word_vectors) + len(words) > MAX_CACHED_WORDS:
            self._word_vectors = {"": self._no_vector}
        texts = [word.replace("_", " ") for word in words]
        embeddings = embed_texts(self._encoder, texts, sentences=False)
        for word, tokens in zip(words, embeddings, strict=True):
            self._word_vectors[word] = unit_mean(tokens) if len(tokens) else self._no_vector


class ContextualNodeVectors:
    """The mean vector of the subwords of each content word in its text."""

    def __init__(self, encoder: str) -> None:
        self._encoder = load_encoder(encoder)
        self._texts: dict[str, tuple[tuple[str, ...], Float32Array]] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Encode these texts in one batch."""
        distinct = list(dict.fromkeys(texts))
        embeddings = embed_texts(self._encoder, distinct, sentences=False)
        self._texts = {
            text: (embeddings.tokens[i], embeddings.token_vectors(i))
            for i, text in enumerate(distinct)
        }

    def __call__(self, graph: Graph) -> Float32Array:
        text = graph.analysis.text
        if text not in self._texts:
            self.prepare([text])
        pieces, vectors = self._texts[text]
        rows = np.zeros((len(graph.nodes), self._encoder.dim), dtype=np.float32)
        offsets = list(locate_pieces(text, pieces))
        for node in graph.nodes:
            if node.is_content and node.quantity is None:
                start, end = graph.analysis.character_span(node.start, node.end)
                inside = [k for k, (a, b) in enumerate(offsets) if a < end and b > start]
                if inside:
                    rows[node.index] = unit_mean(vectors[inside])
        return rows


def locate_pieces(text: str, pieces: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the character span of each piece; an empty span if it is not found.

    >>> list(locate_pieces("Unbelievable!", ["un", "##believ", "##able", "[UNK]", "!"]))
    [(0, 2), (2, 8), (8, 12), (12, 12), (12, 13)]
    """
    lowered, cursor = text.lower(), 0
    if len(lowered) != len(text):  # lower case of some letters has two characters
        lowered = text
    for piece in pieces:
        plain = piece.lower()
        for marker in _SUBWORD_MARKERS:
            plain = plain.removeprefix(marker).removesuffix(marker)
        start = lowered.find(plain, cursor) if plain else -1
        if start < 0 or start > cursor + _MAX_SKIPPED_CHARACTERS:
            yield cursor, cursor
            continue
        cursor = start + len(plain)
        yield start, cursor


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


@lru_cache(maxsize=4)
def load_node_vectors(encoder: str) -> StaticNodeVectors | ContextualNodeVectors:
    """Load the vectors of an encoder; later calls return the same object."""
    return StaticNodeVectors(encoder) if is_static(encoder) else ContextualNodeVectors(encoder)


def is_static(encoder: str) -> bool:
    """Check whether a word has the same vector in every text, without a network.

    >>> is_static("glove"), is_static("minilm@4")
    (True, False)
    """
    return EncoderName.parse(encoder).family in STATIC_ENCODERS

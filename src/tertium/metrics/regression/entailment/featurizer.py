"""Entailment features of segments as columns: both directions, all groups or some.

Distributional similarity needs a vector for each node. With static vectors (GloVe, a file of one's
own) a word has one vector wherever it stands. With any other encoder a node has the mean of the
vectors of its pieces in this very text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tertium.arrays import Float32Array, FloatArray
from tertium.encoders.encoder import EncoderName, load_encoder
from tertium.encoders.stream import embed
from tertium.linguistics.graph import Graph, Node
from tertium.linguistics.parse import load_parser
from tertium.linguistics.sentence import Sentence, build_sentence
from tertium.metrics.base.featurizer import reference_of
from tertium.metrics.regression.entailment import GROUPS
from tertium.metrics.regression.entailment.feature import (
    BACKWARD,
    FORWARD,
    AnyFeature,
    Pair,
    make_pairs,
)
from tertium.segment import Segment

DIRECTIONS = (FORWARD, BACKWARD)
REMEMBERED = 4096  # sentences
STATIC = frozenset({"glove", "file"})
MOST_WORDS = 100_000  # remembered; all are forgotten when there are more
_MARKS = ("##", "\u2581", "\u0120", "</w>")


@dataclass(frozen=True)
class EntailmentFeatures:
    """The features of the named groups in both directions: 212 columns for all groups.

    `forward` asks whether the hypothesis follows from the reference, `backward` whether the
    reference follows from the hypothesis. `vectors` is the encoder of distributional similarity:
    static (`glove`) or contextual (`minilm@4`).
    """

    groups: tuple[str, ...] = tuple(GROUPS)
    vectors: str = "glove"

    @property
    def forks(self) -> bool:
        """Contextual vectors run a network, whose threads a forked process would wait for."""
        return is_static(self.vectors)

    @property
    def features(self) -> tuple[AnyFeature, ...]:
        """The features of each direction."""
        return tuple(feature for group in self.groups for feature in GROUPS[group])

    @property
    def names(self) -> tuple[str, ...]:
        return _names(self)

    def __call__(self, segments: Sequence[Segment]) -> FloatArray:
        features = self.features
        rows = [
            [feature.value(pair) for pair in pairs for feature in features]
            for pairs in self.pairs(segments)
        ]
        return np.array(rows, dtype=np.float64).reshape(len(rows), 2 * len(features))

    def pairs(self, segments: Sequence[Segment]) -> list[tuple[Pair, Pair]]:
        """Both directions of each segment, aligned."""
        texts = [text for s in segments for text in (s.hypothesis, reference_of(s))]
        found = sentences(texts, self.vectors)
        return [make_pairs(found[s.hypothesis], found[s.references[0]]) for s in segments]


@lru_cache(maxsize=64)
def _names(columns: EntailmentFeatures) -> tuple[str, ...]:
    """Kept, since a regression asks of each column whether it is among them."""
    return tuple(f"{d}.{feature.name}" for d in DIRECTIONS for feature in columns.features)


def sentences(texts: Sequence[str], vectors: str = "glove") -> dict[str, Sentence]:
    """Each distinct text as a sentence ready for comparison."""
    memory = _memory(vectors)
    found = {text: memory[text] for text in texts if text in memory}
    missing = [text for text in dict.fromkeys(texts) if text not in found]
    if missing:
        lookup = node_vectors(vectors)
        lookup.prepare(missing)
        for analysis in load_parser().analyse(missing):
            found[analysis.text] = build_sentence(analysis, lookup)
    for text in missing:
        if len(memory) >= REMEMBERED:
            memory.pop(next(iter(memory)))
        memory[text] = found[text]
    return found


def forget() -> None:
    """Drop the sentences held in memory; the store on disk keeps its analyses."""
    _memory.cache_clear()


@lru_cache(maxsize=4)
def _memory(vectors: str) -> dict[str, Sentence]:
    """Sentences by text, the oldest first."""
    return {}


class StaticVectors:
    """One vector for each word; words of grammar and numbers have none."""

    def __init__(self, encoder: str) -> None:
        self._encoder = load_encoder(encoder)
        self._known: dict[str, Float32Array] = {"": np.zeros(self._encoder.dim, dtype=np.float32)}

    def prepare(self, texts: Sequence[str]) -> None:
        """Words are looked up as they come."""

    def __call__(self, graph: Graph) -> Float32Array:
        words = [_word(node) for node in graph.nodes]
        missing = [word for word in dict.fromkeys(words) if word not in self._known]
        if missing:
            self._learn(missing)
        if not words:
            return np.zeros((0, self._encoder.dim), dtype=np.float32)
        return np.stack([self._known[word] for word in words])

    def _learn(self, words: list[str]) -> None:
        if len(self._known) + len(words) > MOST_WORDS:
            self._known = {"": self._known[""]}
        found = embed(self._encoder, [word.replace("_", " ") for word in words], sentences=False)
        for word, tokens in zip(words, found, strict=True):
            self._known[word] = unit_mean(tokens) if len(tokens) else self._known[""]


class ContextVectors:
    """The vectors of pieces in their text, averaged over each content node."""

    def __init__(self, encoder: str) -> None:
        self._encoder = load_encoder(encoder)
        self._texts: dict[str, tuple[tuple[str, ...], Float32Array]] = {}

    def prepare(self, texts: Sequence[str]) -> None:
        """Make what these texts need in one go."""
        distinct = list(dict.fromkeys(texts))
        found = embed(self._encoder, distinct, sentences=False)
        self._texts = {text: (found.pieces[i], found.tokens(i)) for i, text in enumerate(distinct)}

    def __call__(self, graph: Graph) -> Float32Array:
        text = graph.analysis.text
        if text not in self._texts:
            self.prepare([text])
        pieces, vectors = self._texts[text]
        rows = np.zeros((len(graph.nodes), self._encoder.dim), dtype=np.float32)
        places = list(locate_pieces(text, pieces))
        for node in graph.nodes:
            if node.content and node.quantity is None:
                start, end = _characters(graph, node)
                inside = [k for k, (a, b) in enumerate(places) if a < end and b > start]
                if inside:
                    rows[node.index] = unit_mean(vectors[inside])
        return rows


def locate_pieces(text: str, pieces: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Where each piece of a text stands; an empty place where it cannot be found.

    >>> list(locate_pieces("Unbelievable!", ["un", "##believ", "##able", "[UNK]", "!"]))
    [(0, 2), (2, 8), (8, 12), (12, 12), (12, 13)]
    """
    lowered, cursor = text.lower(), 0
    if len(lowered) != len(text):  # some capitals have two small letters
        lowered = text
    for piece in pieces:
        plain = piece.lower()
        for mark in _MARKS:
            plain = plain.removeprefix(mark).removesuffix(mark)
        at = lowered.find(plain, cursor) if plain else -1
        if at < 0 or at > cursor + 40:
            yield cursor, cursor
            continue
        cursor = at + len(plain)
        yield at, cursor


def unit_mean(vectors: Float32Array) -> Float32Array:
    """The mean of vectors scaled to length one, (k, dim) -> (dim,); zero stays zero."""
    mean = vectors.mean(axis=0)
    size = float(np.linalg.norm(mean))
    result: Float32Array = mean / size if size > 0 else np.zeros_like(mean)
    return result


def _word(node: Node) -> str:
    """The word whose vector stands for a node; words of grammar and numbers have none."""
    if not node.content or node.quantity is not None:
        return ""
    return node.lemma if "_" in node.lemma else node.text.lower()


def _characters(graph: Graph, node: Node) -> tuple[int, int]:
    tokens = graph.analysis.tokens
    last = tokens[node.end - 1]
    return tokens[node.start].start, last.start + len(last.text)


@lru_cache(maxsize=4)
def node_vectors(encoder: str) -> StaticVectors | ContextVectors:
    """The vectors of an encoder, shared within a process."""
    return StaticVectors(encoder) if is_static(encoder) else ContextVectors(encoder)


def is_static(encoder: str) -> bool:
    """Whether a word has the same vector in every text, looked up without a network.

    >>> is_static("glove"), is_static("minilm@4")
    (True, False)
    """
    return EncoderName.parse(encoder).family in STATIC

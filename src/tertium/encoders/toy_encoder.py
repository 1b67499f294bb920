"""A deterministic encoder without weights, for tests and examples.

Each lower-cased word gets a random unit vector, seeded by its hash. Equal words have cosine 1,
different words a cosine near 0. Vectors do not depend on context.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from tertium.core.arrays import Float32Array, FloatArray
from tertium.core.errors import UsageError
from tertium.encoders.encoder import Embeddings, EncoderName, make_embeddings


@dataclass(frozen=True, kw_only=True)
class ToyEncoder:
    """Random but reproducible word vectors; a sentence vector is their mean.

    >>> e = ToyEncoder().encode(["the cat", "The dog"])
    >>> e.tokens, e.vectors.shape, bool((e.token_vectors(0)[0] == e.token_vectors(1)[0]).all())
    ((('the', 'cat'), ('the', 'dog')), (4, 16), True)
    """

    name: ClassVar[str] = "toy"
    dim: ClassVar[int] = 16
    sentence_dim: ClassVar[int] = 16
    layers: ClassVar[int] = 1
    languages: ClassVar[frozenset[str] | None] = None
    max_length: ClassVar[int | None] = None
    weights_hash: ClassVar[str] = hashlib.sha256(b"toy").hexdigest()

    def encode(
        self, texts: Sequence[str], *, tokens: bool = True, sentences: bool = True
    ) -> Embeddings:
        words = self.tokenize(texts)
        matrices = [self._word_matrix(text_words) for text_words in words]
        means = np.zeros((len(texts), self.dim * sentences), dtype=np.float32)
        for row, matrix in enumerate(matrices):
            if sentences and len(matrix):
                means[row] = matrix.mean(axis=0)
        if not tokens:
            words, matrices = [()] * len(texts), [np.zeros((0, self.dim), np.float32)] * len(texts)
        return make_embeddings(matrices, words, means, [False] * len(texts), self.dim)

    def tokenize(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        return [tuple(text.lower().split()) for text in texts]

    def find_truncated(self, texts: Sequence[str]) -> set[str]:
        return set()

    def find_out_of_vocabulary(self, texts: Sequence[str]) -> set[str]:
        return set()  # every word has a vector

    def signature_fields(self) -> Mapping[str, str]:
        return {"model": f"toy@{self.weights_hash[:8]}", "layer": "0", "prec": "fp32"}

    def fingerprint(self, part: str) -> str:
        return ""

    def _word_matrix(self, words: Sequence[str]) -> Float32Array:
        matrix = np.zeros((len(words), self.dim), dtype=np.float32)
        for row, word in enumerate(words):
            matrix[row] = _random_vector(word, self.dim)
        return matrix


@lru_cache(maxsize=1 << 14)
def _random_vector(word: str, dim: int) -> FloatArray:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
    vector = np.random.default_rng(seed).normal(size=dim)
    return np.asarray(vector / np.linalg.norm(vector))


def load(name: EncoderName, *, precision: str, special: bool, device: str) -> ToyEncoder:
    """Load the toy encoder, which supports only fp32 and has no special tokens."""
    if precision != "fp32":
        raise UsageError(f"encoder toy supports only fp32, not {precision}")
    return ToyEncoder()

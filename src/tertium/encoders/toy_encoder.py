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

from tertium.core.arrays import FloatArray
from tertium.encoders.encoder import Embeddings, EncoderName
from tertium.encoders.word_vectors import embed_words


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
        rows = [_random_vector(word, self.dim) for text_words in words for word in text_words]
        vectors = np.array(rows, dtype=np.float32).reshape(-1, self.dim)
        truncated = np.zeros(len(texts), dtype=np.bool_)
        return embed_words(words, vectors, truncated, tokens=tokens, sentences=sentences)

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


@lru_cache(maxsize=1 << 14)
def _random_vector(word: str, dim: int) -> FloatArray:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8])
    vector = np.random.default_rng(seed).normal(size=dim)
    return np.asarray(vector / np.linalg.norm(vector))


def load(name: EncoderName, *, precision: str, special: bool, device: str) -> ToyEncoder:
    """Load the toy encoder, which has no special tokens."""
    return ToyEncoder()

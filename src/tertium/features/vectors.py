"""Word vectors for the comparison of words: one unit vector for each word, looked up once.

Any encoder will do. A static one (GloVe) is what the name says; a contextual one is asked for each
word by itself, without its context.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tertium.encoders.encoder import load_encoder
from tertium.encoders.stream import embed
from tertium.linguistics.sentence import Vectors

MOST_WORDS = 100_000  # remembered; all are forgotten when there are more


class EncoderWords:
    """The words of an encoder, by its name."""

    def __init__(self, name: str) -> None:
        self.encoder = load_encoder(name)
        self._known: dict[str, Vectors] = {}

    def __call__(self, words: Sequence[str]) -> Vectors:
        """A unit vector for each word, zeros for an empty or unknown one, (n, dim)."""
        missing = [word for word in dict.fromkeys(words) if word not in self._known]
        if missing:
            self._learn(missing)
        if not words:
            return np.zeros((0, self.encoder.dim), dtype=np.float32)
        return np.stack([self._known[word] for word in words])

    def _learn(self, words: list[str]) -> None:
        if len(self._known) + len(words) > MOST_WORDS:
            self._known.clear()
        found = embed(self.encoder, [word.replace("_", " ") for word in words], sentences=False)
        for word, tokens in zip(words, found, strict=True):
            vector = tokens.mean(axis=0) if len(tokens) and word else _zeros(self.encoder.dim)
            size = float(np.linalg.norm(vector))
            self._known[word] = vector / size if size > 0 else _zeros(self.encoder.dim)


def _zeros(dim: int) -> Vectors:
    return np.zeros(dim, dtype=np.float32)


@lru_cache(maxsize=4)
def word_vectors(encoder: str) -> EncoderWords:
    """The words of an encoder, shared within a process."""
    return EncoderWords(encoder)

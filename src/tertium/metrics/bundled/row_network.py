"""The interface of the networks of bundled metrics: rows of texts in, raw outputs out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence

import numpy as np

from tertium.core.arrays import Float32Array, FloatArray, IntArray
from tertium.core.runtime import progress_task
from tertium.encoders.tokenizer import Tokenizer, find_longer, find_out_of_vocabulary
from tertium.metrics.bundled.input_rows import Row

Pieces = tuple[tuple[str, ...], Float32Array]  # the pieces of a text and their vectors


class RowNetwork(ABC):
    """A network with its tokenizer.

    `max_length` is the number of positions, special tokens included.
    """

    max_length: int

    @property
    @abstractmethod
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of all texts."""

    @property
    @abstractmethod
    def max_pieces(self) -> int:
        """The number of pieces of a text that are read."""

    @abstractmethod
    def __call__(self, rows: Sequence[Row]) -> Iterable[Float32Array | FloatArray]:
        """Compute the raw outputs of rows of one input mode, (k,) each; the first is a score."""

    @abstractmethod
    def piece_vectors(self, row: Row) -> dict[int, Pieces]:
        """Return the pieces of each text of a row and their vectors, by its place in the row."""

    def find_truncated(self, texts: Sequence[str]) -> set[str]:
        return find_longer(texts, self.max_pieces, self.tokenizer)

    def find_out_of_vocabulary(self, texts: Sequence[str]) -> set[str]:
        return find_out_of_vocabulary(texts, self.tokenizer)


def collect_scores(parts: Iterable[tuple[IntArray, FloatArray]], count: int) -> FloatArray:
    """Return the scores of pairs in order, (count, 1), given batches of indices with scores."""
    scores = np.zeros((count, 1))
    with progress_task("scoring pairs", total=count) as advance:
        for pairs, values in parts:
            scores[pairs, 0] = values
            advance(len(pairs))
    return scores

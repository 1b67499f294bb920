"""The vectors of many texts, flat: all token vectors, where each text begins, sentence vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tertium.arrays import BoolArray, Float32Array, IntArray
from tertium.errors import DataError


@dataclass(frozen=True, kw_only=True, eq=False)
class Embeddings:
    """The vectors of n texts, without special tokens ([CLS], </s> ...) unless they were asked for.

    `vectors` (total_tokens, dim) holds the token vectors of all texts one after the other, text i
    at rows `offsets[i]:offsets[i + 1]`; `offsets` (n + 1,); `pieces` the tokens themselves;
    `sentences` (n, sentence_dim) one vector a text; `truncated` (n,) whether a text was cut.
    What was not asked of the encoder is empty: no token and no piece, or `sentences` (n, 0). An
    empty text has no token either; its sentence vector is whatever the encoder makes of it.

    >>> e = Embeddings(
    ...     vectors=np.eye(3, dtype=np.float32), offsets=np.array([0, 2, 3]),
    ...     pieces=(("a", "cat"), ("dog",)), sentences=np.zeros((2, 4), dtype=np.float32),
    ...     truncated=np.array([False, False]),
    ... )
    >>> len(e), e.tokens(1), e.lengths
    (2, array([[0., 0., 1.]], dtype=float32), array([2, 1]))
    >>> e.take([1, 0]).pieces
    (('dog',), ('a', 'cat'))
    """

    vectors: Float32Array
    offsets: IntArray
    pieces: tuple[tuple[str, ...], ...]
    sentences: Float32Array
    truncated: BoolArray

    def __post_init__(self) -> None:
        n = len(self.offsets) - 1
        sizes = (len(self.pieces), len(self.sentences), len(self.truncated))
        if sizes != (n, n, n) or self.offsets[0] != 0 or self.offsets[-1] != len(self.vectors):
            raise DataError(
                f"embeddings do not fit together: {n} offsets for {len(self.vectors)} vectors, "
                f"{sizes[0]} piece lists, {sizes[1]} sentence vectors, {sizes[2]} flags"
            )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __iter__(self) -> Iterator[Float32Array]:
        return (self.tokens(i) for i in range(len(self)))

    def tokens(self, i: int) -> Float32Array:
        """The token vectors of text i, a view (tokens, dim)."""
        return self.vectors[self.offsets[i] : self.offsets[i + 1]]

    @property
    def lengths(self) -> IntArray:
        """The number of tokens of each text, (n,)."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> IntArray:
        """The text each row of `vectors` belongs to, (total_tokens,)."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def take(self, order: Sequence[int] | IntArray) -> Embeddings:
        """The embeddings of the texts at these places, which may repeat."""
        chosen = [int(i) for i in order]
        return Embeddings(
            vectors=_stack([self.tokens(i) for i in chosen], self.vectors.shape[1]),
            offsets=offsets_of(self.lengths[chosen]),
            pieces=tuple(self.pieces[i] for i in chosen),
            sentences=self.sentences[chosen],
            truncated=self.truncated[chosen],
        )


def offsets_of(lengths: IntArray | Sequence[int]) -> IntArray:
    """Where each text begins, and one past the end of the last.

    >>> offsets_of([2, 0, 3])
    array([0, 2, 2, 5])
    """
    result = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=result[1:])
    return result


def from_parts(
    tokens: Sequence[Float32Array],
    pieces: Sequence[tuple[str, ...]],
    sentences: Float32Array,
    truncated: Sequence[bool] | BoolArray,
    dim: int,
) -> Embeddings:
    """Embeddings from one token matrix (tokens, dim) a text."""
    return Embeddings(
        vectors=_stack(tokens, dim),
        offsets=offsets_of([len(matrix) for matrix in tokens]),
        pieces=tuple(pieces),
        sentences=sentences,
        truncated=np.asarray(truncated, dtype=np.bool_),
    )


def _stack(matrices: Sequence[Float32Array], dim: int) -> Float32Array:
    if not matrices:
        return np.zeros((0, dim), dtype=np.float32)
    return np.concatenate(matrices, axis=0, dtype=np.float32)

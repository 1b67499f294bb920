"""Greedy matching: each piece finds its most similar piece on the other side.

    precision = sum_i w_i max_j cos(x_i, y_j) / sum_i w_i      over the left text's pieces x
    recall    = sum_j w_j max_i cos(x_i, y_j) / sum_j w_j      over the right text's pieces y

One matrix product compares a right text (a reference) with all left texts that go with it (the
hypotheses of every system); it is exact (`arrays`), so that none of them changes another's cosines.
Where networks run on a GPU it compares texts, too (`padded_matching`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from tertium.arrays import Float32Array, FloatArray, IntArray, on_grid, products, squares
from tertium.encoders.encoder import Embeddings, offsets_of, rows_of
from tertium.encoders.stream import Chunk
from tertium.metrics.base.explanation import Beside, Direction, Link, TextComparison
from tertium.metrics.base.metric import Side
from tertium.runtime import accelerator

Vectors = TypeVar("Vectors", Float32Array, FloatArray)


def unit(vectors: Vectors) -> Vectors:
    """Rows scaled to length 1; a row of zeros stays one.

    >>> unit(np.array([[3, 4], [0, 0]], dtype=np.float32))
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    norms = np.sqrt(squares(vectors))
    norms[norms == 0] = 1
    result: Vectors = np.empty_like(vectors)
    return np.divide(vectors, norms[:, None], out=result, dtype=np.float64, casting="same_kind")


def cosine(a: Float32Array, b: Float32Array) -> float:
    """The cosine of two vectors, 0 where one is zero."""
    size = float(np.sqrt(squares(np.stack([a, b])).prod()))
    return float(products(a[None], b[None])[0, 0]) / size if size > 0 else 0.0


def spans(texts: Embeddings, *, special: bool = False) -> tuple[IntArray, IntArray]:
    """The rows start:stop of each text, both (n,); special tokens are left out unless wanted."""
    starts, stops = texts.offsets[:-1].copy(), texts.offsets[1:].copy()
    if special:
        return starts, stops
    for i, pieces in enumerate(texts.pieces):
        if pieces and not (pieces[0] and pieces[-1]):
            real = [place for place, piece in enumerate(pieces) if piece]
            starts[i], stops[i] = starts[i] + real[0], starts[i] + real[-1] + 1
    return starts, stops


def content_weights(texts: Embeddings) -> Float32Array:
    """1 for each row that is a piece of a text, 0 for special tokens, (rows,)."""
    starts, stops = spans(texts)
    steps = np.zeros(len(texts.vectors) + 1, dtype=np.float32)
    np.add.at(steps, starts, 1)
    np.add.at(steps, stops, -1)
    return np.cumsum(steps[:-1], dtype=np.float32)


def greedy(
    chunk: Chunk, *, weights: Float32Array | None = None, special: bool = True
) -> FloatArray:
    """Precision and recall of each comparison of a chunk, (m, 2); NaN where a text has no piece.

    `weights` (rows,) weighs each row of the chunk's vectors; without, pieces count alike. Special
    tokens never count; `special` lets a piece match one, as the bert-score package does. Where the
    weights of a text add up to nothing its pieces count alike.
    """
    starts, stops = spans(chunk.texts, special=special)
    mass = _mass(chunk.texts, weights)
    if device := accelerator():
        return _match_on(device, chunk, starts, stops, mass)
    vectors = on_grid(unit(chunk.texts.vectors))
    result = np.full((len(chunk), 2), np.nan)
    for right, pairs in chunk.groups():
        left = chunk.left[pairs]
        places = np.flatnonzero(stops[left] > starts[left])
        if stops[right] == starts[right] or not len(places):
            continue
        left = left[places]
        rows, there = rows_of(starts[left], stops[left]), slice(starts[right], stops[right])
        cosines = vectors[rows] @ vectors[there].T  # (left rows, right rows)
        bounds = offsets_of(stops[left] - starts[left])[:-1]
        best = np.maximum.reduceat(cosines, bounds, axis=0)  # (left texts, right rows)
        found = cosines.max(axis=1) * mass[rows]
        result[places + pairs.start, 0] = np.add.reduceat(found, bounds)
        result[places + pairs.start, 1] = (best * mass[there]).sum(axis=1)
    return result


def _match_on(
    device: str, chunk: Chunk, starts: IntArray, stops: IntArray, mass: Float32Array
) -> FloatArray:
    """What `greedy` gives, computed on a GPU."""
    from tertium.metrics.base.padded_matching import match_padded

    bounds = np.stack([starts, stops], axis=1)
    left, right = bounds[chunk.left], bounds[chunk.right]
    whole = (np.diff(left) > 0).ravel() & (np.diff(right) > 0).ravel()
    result = np.full((len(chunk), 2), np.nan)
    result[whole] = match_padded(chunk.texts.vectors, mass, left[whole], right[whole], device)
    return result


def _mass(texts: Embeddings, weights: Float32Array | None) -> Float32Array:
    """Each row's share of its text's weight, (rows,)."""
    plain = content_weights(texts)
    chosen = plain if weights is None else weights * plain
    owners = texts.owners
    totals = np.bincount(owners, weights=chosen, minlength=len(texts))
    chosen = np.where(totals[owners] > 0, chosen, plain)
    totals = np.bincount(owners, weights=chosen, minlength=len(texts))
    return (chosen / totals[owners]).astype(np.float32)


def piece_vectors(chunk: Chunk, place: int) -> tuple[Float32Array, Float32Array]:
    """The unit vectors of both texts' pieces in one comparison, special tokens left out."""
    starts, stops = spans(chunk.texts)
    rows = (chunk.left[place], chunk.right[place])
    left, right = (unit(chunk.texts.vectors[starts[i] : stops[i]]) for i in rows)
    return left, right


def round_cosines(cosines: FloatArray) -> tuple[tuple[float, ...], ...]:
    """Cosines as plain numbers of four decimals, which is all that a picture can show."""
    return tuple(tuple(round(value, 4) for value in row) for row in cosines.tolist())


class Partners(NamedTuple):
    """Which piece of the other side is most similar to each piece, and how similar, both ways."""

    of_left: IntArray
    precision: FloatArray
    of_right: IntArray
    recall: FloatArray


def find_partners(cosines: FloatArray) -> Partners:
    """The greedy matching of two texts that both have pieces, from cosines (left, right).

    >>> find_partners(np.array([[0.5, 1.0], [0.9, 0.1]])).of_left
    array([1, 0])
    """
    left, right = cosines.argmax(axis=1), cosines.argmax(axis=0)
    precision = cosines[np.arange(len(left)), left]
    return Partners(left, precision, right, cosines[right, np.arange(len(right))])


def best_partners(cosines: FloatArray, directions: Sequence[Direction]) -> list[Link]:
    """The best partner of each piece by cosines (hypothesis pieces, other pieces)."""
    found = find_partners(cosines)
    ways: dict[Direction, list[tuple[int, int]]] = {
        "precision": list(enumerate(found.of_left.tolist())),
        "recall": [(i, j) for j, i in enumerate(found.of_right.tolist())],
    }
    return [
        Link(
            hypothesis=i,
            other=j,
            similarity=float(cosines[i, j]),
            weight=1 / len(ways[direction]),
            direction=direction,
        )
        for direction in ways
        if direction in directions
        for i, j in ways[direction]
    ]


def compare_pieces(
    text: str,
    values: Mapping[str, float],
    pieces: tuple[tuple[str, ...], tuple[str, ...]],
    vectors: tuple[Float32Array, Float32Array],
    side: Side = "reference",
    beside: Beside = "",
) -> TextComparison:
    """A hypothesis and another text by the vectors of their pieces, both ways."""
    links: list[Link] = []
    cosines: tuple[tuple[float, ...], ...] = ()
    if all(pieces):
        # (hypothesis pieces, other pieces)
        similar = products(unit(vectors[0]), unit(vectors[1]))
        links, cosines = best_partners(similar, ("precision", "recall")), round_cosines(similar)
    return TextComparison(
        side=side,
        beside=beside,
        text=text,
        values=dict(values),
        hypothesis_pieces=pieces[0],
        other_pieces=pieces[1],
        links=tuple(links),
        cosines=cosines,
    )

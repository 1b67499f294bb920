"""Greedy matching: match each piece with its most similar piece of the other text.

    precision = sum_i w_i max_j cos(x_i, y_j) / sum_i w_i      over pieces x of the left text
    recall    = sum_j w_j max_i cos(x_i, y_j) / sum_j w_j      over pieces y of the right text

One matrix product compares a right text (a reference) with all its left texts (the hypotheses of
all systems). The product is exact (`arrays`), so results do not depend on the batch. If networks
run on a GPU, matching runs there as well (`gpu_matching`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from tertium.core.arrays import (
    Float32Array,
    FloatArray,
    IntArray,
    exact_dot_products,
    exact_squared_norms,
    round_to_grid,
)
from tertium.core.runtime import active_gpu
from tertium.encoders.cached_encoding import Chunk
from tertium.encoders.encoder import Embeddings, expand_ranges, offsets_from_lengths
from tertium.metrics.base.explanation import Direction, Link

Vectors = TypeVar("Vectors", Float32Array, FloatArray)


def normalize_rows(vectors: Vectors) -> Vectors:
    """Scale rows to unit length; rows of zeros stay zero.

    >>> normalize_rows(np.array([[3, 4], [0, 0]], dtype=np.float32))
    array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    norms = np.sqrt(exact_squared_norms(vectors))
    norms[norms == 0] = 1
    result: Vectors = np.empty_like(vectors)
    return np.divide(vectors, norms[:, None], out=result, dtype=np.float64, casting="same_kind")


def cosine(a: Float32Array, b: Float32Array) -> float:
    """Return the cosine of two vectors, or 0 if one of them is zero."""
    size = float(np.sqrt(exact_squared_norms(np.stack([a, b])).prod()))
    return float(exact_dot_products(a[None], b[None])[0, 0]) / size if size > 0 else 0.0


def piece_ranges(texts: Embeddings, *, special: bool = False) -> tuple[IntArray, IntArray]:
    """Return the start and stop row of each text, (n,) each; by default without special tokens."""
    starts = texts.offsets[:-1].copy()
    stops = texts.offsets[1:].copy()
    if special:
        return starts, stops
    for i, pieces in enumerate(texts.tokens):
        if pieces and not (pieces[0] and pieces[-1]):
            real = [place for place, piece in enumerate(pieces) if piece]
            starts[i], stops[i] = starts[i] + real[0], starts[i] + real[-1] + 1
    return starts, stops


def content_weights(texts: Embeddings) -> Float32Array:
    """Return 1 for rows that are pieces of a text and 0 for special tokens, (rows,)."""
    starts, stops = piece_ranges(texts)
    steps = np.zeros(len(texts.vectors) + 1, dtype=np.float32)
    np.add.at(steps, starts, 1)
    np.add.at(steps, stops, -1)
    return np.cumsum(steps[:-1], dtype=np.float32)


def match_greedily(
    chunk: Chunk, *, weights: Float32Array | None = None, special: bool = True
) -> FloatArray:
    """Compute precision and recall of each comparison in a chunk, (m, 2); NaN if a text is empty.

    `weights` (rows,) weights each row of the chunk's vectors; the default is uniform, and uniform
    weights are also used if those of a text sum to zero. Special tokens have no weight; with
    `special`, pieces may still match them, as in the bert-score package.
    """
    starts, stops = piece_ranges(chunk.embeddings, special=special)
    mass = _mass(chunk.embeddings, weights)
    if device := active_gpu():
        return _match_on_gpu(device, chunk, starts, stops, mass)
    vectors = round_to_grid(normalize_rows(chunk.embeddings.vectors))
    result = np.full((len(chunk), 2), np.nan)
    for right, pairs in chunk.groups():
        left = chunk.left[pairs]
        nonempty = np.flatnonzero(stops[left] > starts[left])
        if stops[right] == starts[right] or not len(nonempty):
            continue
        left = left[nonempty]
        rows = expand_ranges(starts[left], stops[left])
        right_rows = slice(starts[right], stops[right])
        cosines = vectors[rows] @ vectors[right_rows].T  # (left rows, right rows)
        bounds = offsets_from_lengths(stops[left] - starts[left])[:-1]
        best = np.maximum.reduceat(cosines, bounds, axis=0)  # (left texts, right rows)
        weighted = cosines.max(axis=1) * mass[rows]
        result[nonempty + pairs.start, 0] = np.add.reduceat(weighted, bounds)
        result[nonempty + pairs.start, 1] = (best * mass[right_rows]).sum(axis=1)
    return result


def _match_on_gpu(
    device: str, chunk: Chunk, starts: IntArray, stops: IntArray, mass: Float32Array
) -> FloatArray:
    from tertium.metrics.base.gpu_matching import match_padded

    bounds = np.stack([starts, stops], axis=1)
    left = bounds[chunk.left]
    right = bounds[chunk.right]
    full = (np.diff(left) > 0).ravel() & (np.diff(right) > 0).ravel()
    result = np.full((len(chunk), 2), np.nan)
    result[full] = match_padded(chunk.embeddings.vectors, mass, left[full], right[full], device)
    return result


def _mass(texts: Embeddings, weights: Float32Array | None) -> Float32Array:
    """Return the share of each row in the total weight of its text, (rows,)."""
    plain = content_weights(texts)
    chosen = plain if weights is None else weights * plain
    owners = texts.text_indices
    totals = np.bincount(owners, weights=chosen, minlength=len(texts))
    chosen = np.where(totals[owners] > 0, chosen, plain)
    totals = np.bincount(owners, weights=chosen, minlength=len(texts))
    return (chosen / totals[owners]).astype(np.float32)


def piece_vectors(chunk: Chunk, place: int) -> tuple[Float32Array, Float32Array]:
    """Return unit vectors of the pieces of both texts of a comparison, without special tokens."""
    starts, stops = piece_ranges(chunk.embeddings)
    rows = (chunk.left[place], chunk.right[place])
    left, right = (normalize_rows(chunk.embeddings.vectors[starts[i] : stops[i]]) for i in rows)
    return left, right


def round_cosines(cosines: FloatArray) -> tuple[tuple[float, ...], ...]:
    """Convert cosines to plain floats with four decimals, for display."""
    return tuple(tuple(round(value, 4) for value in row) for row in cosines.tolist())


def link_best_matches(cosines: FloatArray, directions: Sequence[Direction]) -> list[Link]:
    """Link each piece to its best match, given cosines (hypothesis pieces, other pieces)."""
    links = []
    for direction in directions:
        axis = 1 if direction == "precision" else 0
        best = cosines.argmax(axis=axis)
        for n, match in enumerate(best.tolist()):
            i, j = (n, match) if axis else (match, n)
            links.append(
                Link(
                    hypothesis=i,
                    other=j,
                    similarity=float(cosines[i, j]),
                    weight=1 / len(best),
                    direction=direction,
                )
            )
    return links

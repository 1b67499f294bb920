"""Which piece of one text is linked with which of another, and how similar they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tertium.arrays import Float32Array, FloatArray
from tertium.encoders import Chunk
from tertium.encoders.grid import products
from tertium.metrics.base.explanation import Direction, Link, TextComparison
from tertium.metrics.base.matching import spans, unit
from tertium.metrics.base.references import Side


def piece_vectors(chunk: Chunk, place: int) -> tuple[Float32Array, Float32Array]:
    """The unit vectors of both texts' pieces in one comparison, special tokens left out."""
    starts, stops = spans(chunk.texts)
    rows = (chunk.left[place], chunk.right[place])
    left, right = (unit(chunk.texts.vectors[starts[i] : stops[i]]) for i in rows)
    return left, right


def all_cosines(chunk: Chunk, place: int) -> tuple[tuple[float, ...], ...]:
    """The cosine of every piece of the hypothesis with every piece of the other text."""
    left, right = piece_vectors(chunk, place)
    return round_cosines(products(left, right))


def round_cosines(cosines: FloatArray) -> tuple[tuple[float, ...], ...]:
    """Cosines as plain numbers of four decimals, which is all that a picture can show."""
    return tuple(tuple(round(value, 4) for value in row) for row in cosines.tolist())


def greedy_links(chunk: Chunk, place: int, directions: Sequence[Direction]) -> list[Link]:
    """The best partner of each piece, from the sides that looked for one."""
    left, right = piece_vectors(chunk, place)
    return best_partners(products(left, right), directions)


def best_partners(cosines: FloatArray, directions: Sequence[Direction]) -> list[Link]:
    """The best partner of each piece by cosines (hypothesis pieces, other pieces)."""
    links: list[Link] = []
    if "precision" in directions:
        links += [
            _link(i, int(j), cosines, 1 / len(cosines), "precision")
            for i, j in enumerate(cosines.argmax(axis=1))
        ]
    if "recall" in directions:
        links += [
            _link(int(i), j, cosines, 1 / cosines.shape[1], "recall")
            for j, i in enumerate(cosines.argmax(axis=0))
        ]
    return links


def compare_pieces(
    text: str,
    values: Mapping[str, float],
    pieces: tuple[tuple[str, ...], tuple[str, ...]],
    vectors: tuple[Float32Array, Float32Array],
    side: Side = "reference",
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
        text=text,
        values=dict(values),
        hypothesis_pieces=pieces[0],
        other_pieces=pieces[1],
        links=tuple(links),
        cosines=cosines,
    )


def _link(i: int, j: int, cosines: FloatArray, weight: float, direction: Direction) -> Link:
    similarity = float(cosines[i, j])
    return Link(hypothesis=i, other=j, similarity=similarity, weight=weight, direction=direction)

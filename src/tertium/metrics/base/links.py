"""Why two texts got their score: which piece was aligned with which, and how similar they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tertium.arrays import Float32Array, FloatArray
from tertium.display import Displayed
from tertium.encoders import Chunk
from tertium.encoders.grid import products
from tertium.metrics.base.matching import spans, unit

Direction = Literal["precision", "recall", "transport"]


@dataclass(frozen=True, kw_only=True)
class Link:
    """Piece `hypothesis` of the hypothesis and piece `other` of the other text, by their places.

    `direction` says whose piece looked for a partner: the hypothesis's (precision), the other's
    (recall), or both in one plan (transport). `similarity` is a cosine, or a distance in a plan;
    `weight` is what the link contributes: a piece's share of its text, or the mass that moves.
    """

    hypothesis: int
    other: int
    similarity: float
    weight: float
    direction: Direction


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A hypothesis beside one reference or its source: values, both texts' pieces, links.

    `cosines` are those of all pieces, a row for each of the hypothesis's, where links come from
    them.
    """

    side: Literal["reference", "source"]
    text: str
    values: Mapping[str, float]
    hypothesis_pieces: tuple[str, ...] = ()
    other_pieces: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    cosines: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Alignment(Displayed):
    """A segment's score under a metric, and the comparisons behind it."""

    metric: str
    score: float
    comparisons: tuple[Comparison, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists, texts and numbers, for JSON."""
        return dataclasses.asdict(self)


def piece_vectors(chunk: Chunk, place: int) -> tuple[Float32Array, Float32Array]:
    """The unit vectors of both texts' pieces in one comparison, special tokens left out."""
    starts, stops = spans(chunk.texts)
    rows = (chunk.left[place], chunk.right[place])
    left, right = (unit(chunk.texts.vectors[starts[i] : stops[i]]) for i in rows)
    return left, right


def all_cosines(chunk: Chunk, place: int) -> tuple[tuple[float, ...], ...]:
    """The cosine of every piece of the hypothesis with every piece of the other text."""
    left, right = piece_vectors(chunk, place)
    return rounded(products(left, right))


def rounded(cosines: FloatArray) -> tuple[tuple[float, ...], ...]:
    """Cosines as plain numbers of four decimals, which is all that a picture can show."""
    return tuple(tuple(round(value, 4) for value in row) for row in cosines.tolist())


def greedy_links(chunk: Chunk, place: int, directions: Sequence[Direction]) -> list[Link]:
    """The best partner of each piece, from the sides that looked for one."""
    left, right = piece_vectors(chunk, place)
    return best_partners(products(left, right), directions)


def best_partners(cosines: FloatArray, directions: Sequence[Direction]) -> list[Link]:
    """The best partner of each piece by cosines (hypothesis pieces, other pieces)."""
    found: list[Link] = []
    if "precision" in directions:
        found += [
            _link(i, int(j), cosines, 1 / len(cosines), "precision")
            for i, j in enumerate(cosines.argmax(axis=1))
        ]
    if "recall" in directions:
        found += [
            _link(int(i), j, cosines, 1 / cosines.shape[1], "recall")
            for j, i in enumerate(cosines.argmax(axis=0))
        ]
    return found


def compared(
    text: str,
    values: Mapping[str, float],
    pieces: tuple[tuple[str, ...], tuple[str, ...]],
    vectors: tuple[Float32Array, Float32Array],
) -> Comparison:
    """A hypothesis and a reference by the vectors of their pieces, both ways."""
    links: list[Link] = []
    cosines: tuple[tuple[float, ...], ...] = ()
    if all(pieces):
        # (hypothesis pieces, reference pieces)
        similar = products(unit(vectors[0]), unit(vectors[1]))
        links, cosines = best_partners(similar, ("precision", "recall")), rounded(similar)
    return Comparison(
        side="reference",
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

"""Why a translation has its score, or wins: the one thing that every `explain` returns.

An explanation has one or several parts, by what its metric knows: texts compared piece by piece,
reasons that features give, or the votes of a ranker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal

from tertium.display import Displayed
from tertium.spans import Span

Direction = Literal["precision", "recall", "transport"]
Beside = Literal["", "source"]

FAR = 0.15  # below the usual cosine by so much, a best partner is none


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
class TextComparison:
    """A hypothesis beside one reference or its source: values, both texts' pieces, links.

    Where a metric reads several texts at once, the values of a reference are those `beside` the
    source, whose own comparison has none. `cosines` are those of all pieces, a row for each of the
    hypothesis's, where links come from them.
    """

    side: Literal["reference", "source"]
    text: str
    values: Mapping[str, float]
    hypothesis_pieces: tuple[str, ...] = ()
    other_pieces: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    cosines: tuple[tuple[float, ...], ...] = ()
    beside: Beside = ""

    @property
    def is_plan(self) -> bool:
        """Whether links move mass from text to text, so that each has a distance."""
        return any(link.direction == "transport" for link in self.links)

    def partnerless(self) -> dict[str, list[str]]:
        """The pieces whose best partner is far less similar than is usual here, by the text that
        lacks it."""
        sides = (
            ("recall", "translation", [self.other_pieces[k.other] for k in self.links]),
            ("precision", self.side, [self.hypothesis_pieces[k.hypothesis] for k in self.links]),
        )
        lacking: dict[str, list[str]] = {}
        for direction, text, pieces in sides:
            similar = [link.similarity for link in self.links if link.direction == direction]
            usual = median(similar) if similar else 0.0
            lacking[text] = [
                piece
                for link, piece in zip(self.links, pieces, strict=True)
                if link.direction == direction and link.similarity < usual - FAR
            ]
        return lacking


@dataclass(frozen=True, kw_only=True)
class WordMatch:
    """One word of the hypothesis (empty: none) with its partner in the reference (empty: none)."""

    hypothesis: str
    reference: str
    relation: str
    similarity: float


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """What one feature adds to the score; `fired` are the sentences about what it found."""

    feature: str
    group: str
    value: float
    contribution: float
    fired: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Reasons:
    """A score taken apart by features.

    `perfect` is what the reference itself would score; `groups` sums the contributions of each
    group of features; `contributions` are those that are not zero or of features that fired, the
    largest first; `faults` and `merits` are sentences about what was found; `alignment` is empty
    where nothing is aligned. `follows` says of each direction whether anything that was found
    speaks against entailment: forward from reference to hypothesis, backward from hypothesis to
    reference.
    """

    hypothesis: str
    reference: str
    perfect: float
    groups: Mapping[str, float]
    contributions: tuple[Contribution, ...]
    alignment: tuple[WordMatch, ...] = ()
    follows: Mapping[str, bool] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    merits: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Votes:
    """The chance of each translation (row) to beat each other one, 1/2 against itself."""

    names: tuple[str, ...]
    chances: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True)
class MarkedText:
    """A translation and its source with the errors that a metric marks in them."""

    hypothesis: str
    source: str | None
    spans: tuple[Span, ...]


@dataclass(frozen=True, kw_only=True)
class Explanation(Displayed):
    """What a metric or ranker can say of a score, part by part.

    `comparisons` come from metrics that look at pieces, `reasons` from those over named features,
    `marked` from those that mark errors, `votes` from rankers, whose score is the mean chance of
    the first translation to win. `warnings` are what a reader of it should know of the texts.
    """

    metric: str
    score: float
    comparisons: tuple[TextComparison, ...] = ()
    reasons: Reasons | None = None
    votes: Votes | None = None
    marked: MarkedText | None = None
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain dictionaries, lists, texts and numbers, for JSON: what each part holds, at once."""
        values = asdict(self)
        parts = (values.pop("reasons") or {}, values.pop("votes") or {})
        if values.pop("marked") is not None and self.marked is not None:
            values["spans"] = [span.as_dict() for span in self.marked.spans]
        comparisons = values.pop("comparisons")
        if comparisons:
            values["comparisons"] = comparisons
        return {**values, **parts[0], **parts[1]}

"""Explanations: the return type of every `explain` method.

An explanation has parts that depend on the metric: texts compared piece by piece, contributions
of features, marked errors, or win probabilities of a ranker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal

from tertium.display import Displayable
from tertium.spans import Span, UnlocatedError

Direction = Literal["precision", "recall", "transport"]

EMPTY_TRANSLATION = UnlocatedError("critical", "empty translation")
SCALE_BOUNDS = "ends of the scale"  # difference of the bounded score and the linear prediction
UNMATCHED_MARGIN = 0.15  # a best match this far below the median cosine counts as no match


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link between piece `hypothesis` of the hypothesis and piece `other` of the other text.

    `direction` says which side was matched: the hypothesis (precision), the other text (recall), or
    both in a transport plan. `similarity` is a cosine, or a distance in a plan. `weight` is the
    contribution of the link: the share of the piece in its text, or the mass that is moved.
    """

    hypothesis: int
    other: int
    similarity: float
    weight: float
    direction: Direction


@dataclass(frozen=True, kw_only=True)
class TextComparison:
    """A hypothesis compared with one reference or the source: values, pieces and links.

    `combined_with` is "source" if the metric reads reference and source jointly and `values` belong
    to both; the comparison with the source then has no values. `cosines` has one row per hypothesis
    piece and one column per piece of the other text, if the links are based on cosines.
    """

    side: Literal["reference", "source"]
    text: str
    values: Mapping[str, float]
    hypothesis_pieces: tuple[str, ...] = ()
    other_pieces: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    cosines: tuple[tuple[float, ...], ...] = ()
    combined_with: Literal["", "source"] = ""

    @property
    def is_plan(self) -> bool:
        """Whether the links are a transport plan, with a distance each."""
        return any(link.direction == "transport" for link in self.links)

    def unmatched_pieces(self) -> dict[str, list[str]]:
        """List pieces whose best match is unusually dissimilar, by the text that lacks them."""
        sides = (
            ("recall", "translation", [self.other_pieces[k.other] for k in self.links]),
            ("precision", self.side, [self.hypothesis_pieces[k.hypothesis] for k in self.links]),
        )
        unmatched: dict[str, list[str]] = {}
        for direction, text, pieces in sides:
            similarities = [link.similarity for link in self.links if link.direction == direction]
            usual = median(similarities) if similarities else 0.0
            unmatched[text] = [
                piece
                for link, piece in zip(self.links, pieces, strict=True)
                if link.direction == direction and link.similarity < usual - UNMATCHED_MARGIN
            ]
        return unmatched


@dataclass(frozen=True, kw_only=True)
class WordMatch:
    """A word of the hypothesis aligned with a word of the reference; an empty string means none."""

    hypothesis: str
    reference: str
    relation: str
    similarity: float


@dataclass(frozen=True, kw_only=True)
class Contribution:
    """Contribution of one feature to the score; `fired` describes in words what it found."""

    feature: str
    group: str
    value: float
    contribution: float
    fired: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FeatureAttribution:
    """A score split into contributions of features.

    `perfect` is the score of the reference itself; without a reference (a blend of metrics), it is
    the score of an average translation. `groups` sums contributions per feature group.
    `contributions` lists features that contribute or fired, largest first. `faults` and `merits`
    are sentences about the translation. `alignment` lists aligned words, if any.
    `follows` says for each direction whether nothing contradicts entailment: forward from reference
    to hypothesis, backward from hypothesis to reference.
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
class WinProbabilities:
    """Probability of each translation (row) to beat each other one (column); 1/2 for itself."""

    names: tuple[str, ...]
    chances: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, kw_only=True)
class MarkedText:
    """A translation and its source with predicted error spans; `note` says what is left out."""

    hypothesis: str
    source: str | None
    spans: tuple[Span, ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Explanation(Displayable):
    """Explanation of one score, returned by `Metric.explain` and `Ranker.explain`.

    `metric` is the spec and `score` the explained score. For a ranker the score is the mean win
    probability of the first translation. The other parts are empty unless the metric provides them:

    - `comparisons`: pieces of the texts and how they were matched (embedding metrics)
    - `attribution`: contributions of named features (regression metrics)
    - `marked_text`: error spans (metrics with `can_mark_errors`)
    - `win_probabilities`: pairwise win probabilities (rankers)
    - `reasons`: sentences of an LLM judge
    - `errors`: errors without a position: an empty translation
    - `warnings`: conditions that affect how to read the score

    It is displayed as a table in a terminal and as HTML in a notebook; `as_dict` is for JSON.
    """

    metric: str
    score: float
    comparisons: tuple[TextComparison, ...] = ()
    attribution: FeatureAttribution | None = None
    win_probabilities: WinProbabilities | None = None
    marked_text: MarkedText | None = None
    reasons: tuple[str, ...] = ()
    errors: tuple[UnlocatedError, ...] = ()
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain dictionaries, lists, strings and numbers for JSON, with the parts merged."""
        values = asdict(self)
        merged = {**(values.pop("attribution") or {}), **(values.pop("win_probabilities") or {})}
        if values.pop("marked_text") is not None and self.marked_text is not None:
            values["spans"] = [span.as_dict() for span in self.marked_text.spans]
        for name in ("errors", "reasons"):
            if not getattr(self, name):
                del values[name]
        if comparisons := values.pop("comparisons"):
            for comparison in comparisons:
                comparison["beside"] = comparison.pop("combined_with")
            values["comparisons"] = comparisons
        return {**values, **merged}


def explain_empty_translation(
    metric: str,
    values: Mapping[str, float],
    side: Literal["reference", "source"],
    texts: Sequence[str],
) -> Explanation:
    """Explain the score of an empty translation of `texts`; `values` include the score."""
    return Explanation(
        metric=metric,
        score=values["score"],
        comparisons=tuple(TextComparison(side=side, text=text, values=values) for text in texts),
        errors=(EMPTY_TRANSLATION,),
    )

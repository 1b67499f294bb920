"""Explanations: the return type of every `explain` method.

An explanation has parts that depend on the metric: texts compared piece by piece, contributions
of features, marked errors, or win probabilities of a ranker. Each part declares its texts, tables
and drawings in a section; pages draw heat maps and marked texts, and text output has the tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import itemgetter
from statistics import median
from typing import Any, Literal

import numpy as np

from tertium.core.charts import HeatMap
from tertium.core.result import Column, MarkedLine, Result, Section, Table, format_number
from tertium.core.spans import Span, UnlocatedError

Direction = Literal["precision", "recall", "transport"]

EMPTY_TRANSLATION = UnlocatedError("critical", "empty translation")
SCALE_BOUNDS = "ends of the scale"  # difference of the bounded score and the linear prediction
UNMATCHED_MARGIN = 0.15  # a best match this far below the median cosine counts as no match
MAX_TEXT_LENGTH = 300  # characters
MIN_CONTRIBUTION = 0.0005  # smaller ones would be printed as 0.000
MAX_ITEMS = 15  # in a list of issues or unmatched tokens
DEFAULT_TOP = 10  # features and alignment links
QUESTIONS = {
    "forward": "does the reference entail the translation?",
    "backward": "does the translation entail the reference?",
}


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

    @property
    def measure(self) -> str:
        """What `similarity` of the links is."""
        return "distance" if self.is_plan else "similarity"

    def unmatched_pieces(self) -> dict[str, list[str]]:
        """List pieces whose best match is unusually dissimilar, by the text that lacks them."""
        sides = (
            ("recall", "translation", self.other_pieces, "other"),
            ("precision", self.side, self.hypothesis_pieces, "hypothesis"),
        )
        unmatched: dict[str, list[str]] = {}
        for direction, text, pieces, place in sides:
            links = [link for link in self.links if link.direction == direction]
            usual = median(link.similarity for link in links) if links else 0.0
            weak = [link for link in links if link.similarity < usual - UNMATCHED_MARGIN]
            unmatched[text] = [pieces[getattr(link, place)] for link in weak]
        return unmatched

    def section(self, top: int) -> Section:
        """Return the values, unmatched pieces, a heat map and the weakest links."""
        values = ", ".join(f"{name} {format_number(v, 4)}" for name, v in self.values.items())
        if not values:
            values = "part of the score with each reference"
        elif self.combined_with:
            values = f"with the {self.combined_with}, {values}"
        contents: list[Any] = [f"compared with the {self.side} {abbreviate(self.text)!r}: {values}"]
        for side, pieces in self.unmatched_pieces().items():
            if pieces:
                contents.append(f"  no match in the {side}: {', '.join(_limit(pieces))}")
        if self.links:
            contents += [self.heat_map(), self.link_table(top)]
        return Section("", contents)

    def heat_map(self) -> HeatMap:
        """Return cosines with frames around matches, or the mass that a plan moves."""
        values = np.full((len(self.hypothesis_pieces), len(self.other_pieces)), np.nan)
        if self.cosines:
            values[:] = self.cosines
        title = "Cosine similarity of tokens; frames mark the best match"
        if self.is_plan:
            title = "Transport plan: share of each token that is moved to a token of the other text"
        tooltips = {}
        for link in self.links:
            place = link.hypothesis, link.other
            values[place] = link.weight * len(values) if self.is_plan else link.similarity
            tooltips[place] = f"{self.measure} {link.similarity:.2f}"
        return HeatMap(
            title=title,
            rows=self.hypothesis_pieces,
            columns=self.other_pieces,
            values=values,
            tooltips=tooltips,
            has_frames=not self.is_plan,
        )

    def link_table(self, top: int) -> Table:
        """Return the weakest links; of a transport plan, those with the highest cost."""
        columns = [
            Column("translation", lambda link: self.hypothesis_pieces[link.hypothesis]),
            Column(self.side, lambda link: self.other_pieces[link.other]),
            Column("direction"),
            Column(self.measure, "similarity", 3),
            Column("weight", decimals=3),
        ]

        def order(link: Link) -> float:
            return -link.weight * link.similarity if self.is_plan else link.similarity

        return Table(columns, sorted(self.links, key=order)[:top])


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


def add_bounds(contributions: Iterable[Contribution], beyond: float) -> tuple[Contribution, ...]:
    """Add the difference that the bounds of a score make, and sort, largest first."""
    bounds = Contribution(
        feature=SCALE_BOUNDS, group=SCALE_BOUNDS, value=beyond, contribution=beyond
    )
    rows = [row for row in (*contributions, bounds) if not math.isnan(row.contribution)]
    return tuple(sorted(rows if beyond else rows[:-1], key=lambda row: -abs(row.contribution)))


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

    def sections(self, score: str, top: int) -> list[Section]:
        """Return the score, issues and strengths (of the best reference) and all contributions."""
        subject = "the reference itself" if self.reference else "an average translation"
        lines = []
        if self.reference:
            lines.append(f"compared with the reference {abbreviate(self.reference)!r}")
        for direction, question in QUESTIONS.items():
            if direction in self.follows:
                lines.append(f"{question} {'yes' if self.follows[direction] else 'no'}")
        sections = [Section(f"{score} ({subject} scores {self.perfect:+z.3f})", lines)]
        for title, sentences in (("issues", self.faults), ("strengths", self.merits)):
            if sentences:
                sections.append(Section(title, [_limit(sentences)]))
        tables = [table for table in self.tables(top) if table.rows]  # empty texts have no features
        sections[-1] = replace(sections[-1], contents=[*sections[-1].contents, *tables])
        return sections

    def tables(self, top: int) -> list[Table]:
        """Return aligned words, contributions of groups, and the largest of features."""
        words = [
            Column("translation", lambda match: match.hypothesis or "–"),
            Column("reference", lambda match: match.reference or "–"),
            Column("relation", lambda match: "" if match.relation == "none" else match.relation),
            Column(
                "similarity",
                lambda match: match.similarity if match.hypothesis and match.reference else None,
                2,
            ),
        ]
        groups = [
            Contribution(feature="", group=group, value=value, contribution=value)
            for group, value in sorted(self.groups.items(), key=itemgetter(1))
        ]
        largest = max((abs(value) for value in self.groups.values()), default=0.0) or 1.0
        group_contribution = replace(CONTRIBUTION, bar=lambda row: row.contribution / largest)
        features = [c for c in self.contributions if abs(c.contribution) >= MIN_CONTRIBUTION]
        return [
            Table(words, self.alignment),
            Table([Column("group"), group_contribution], groups),
            Table([Column("feature"), Column("value", decimals=3), CONTRIBUTION], features[:top]),
        ]


CONTRIBUTION = Column(
    "contribution",
    decimals=3,
    mark=lambda row: "good" if row.contribution > 0 else "bad" if row.contribution < 0 else "",
    text=lambda row, decimals: f"{row.contribution:+z.{decimals}f}",
)


@dataclass(frozen=True, kw_only=True)
class WinProbabilities:
    """Probability of each translation (row) to beat each other one (column); 1/2 for itself."""

    names: tuple[str, ...]
    chances: tuple[tuple[float, ...], ...]

    def section(self, metric: str) -> Section:
        """Return a heat map and a table, in which translations are numbered."""
        names = [f"{n}: {abbreviate(name)}" for n, name in enumerate(self.names, start=1)]
        numbers = [str(n) for n in range(1, len(names) + 1)]
        values = np.array(self.chances)
        np.fill_diagonal(values, np.nan)
        columns = [Column("translation", names.__getitem__)]
        for n, number in enumerate(numbers):
            chances = [None if n == place else row[n] for place, row in enumerate(self.chances)]
            columns.append(Column(number, chances.__getitem__, 3))
        return Section(
            f"{metric}: probability that the row is better than the column",
            [
                HeatMap(title="Win probabilities", rows=names, columns=numbers, values=values),
                Table(columns, range(len(names))),
            ],
        )


@dataclass(frozen=True, kw_only=True)
class MarkedText:
    """A translation and its source with predicted error spans; `note` says what is left out."""

    hypothesis: str
    source: str | None
    spans: tuple[Span, ...]
    note: str = ""

    def section(self) -> Section:
        """Return the marked texts and the error spans in text order."""
        texts = {"hypothesis": self.hypothesis, "source": self.source or ""}
        columns = [
            Column("error", lambda span: mark_in_word(texts[span.side], span)),
            Column("severity"),
            Column("category"),
            Column("side"),
            Column("position", "start", 0, text=lambda span, _: f"{span.start}-{span.end}"),
            Column("probability", "chance", 2),
        ]
        contents: list[Any] = [MarkedLine(self.hypothesis, self.spans)]
        if self.source is not None:
            contents.append(MarkedLine(self.source, self.spans, "source"))
        if self.spans:
            contents.append(Table(columns, self.spans))
        if self.note:
            contents.append(f"  {self.note}")
        return Section(f"suspected errors: {len(self.spans) or 'none'}", contents)


@dataclass(frozen=True, kw_only=True)
class Explanation(Result):
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

    It is displayed as text in a terminal and as HTML in a notebook; `as_dict` is for JSON.
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

    def top_sections(self, top: int = DEFAULT_TOP) -> list[Section]:
        """Return all parts with up to `top` features and links."""
        if self.attribution is not None:
            score = f"{self.metric}: {self.score:+z.3f}"
            sections = self.attribution.sections(score, top)
        elif self.win_probabilities is not None:
            sections = [self.win_probabilities.section(self.metric)]
        else:
            sections = [Section(f"{self.metric}: {format_number(self.score, 4)}", [])]
        for error in self.errors:
            sections.append(Section(f"{error.severity} error: {error.category}", []))
        if self.reasons:
            reasons = [abbreviate(reason) for reason in self.reasons]
            sections.append(Section("reasons of the judge", [_limit(reasons)]))
        if self.marked_text is not None:
            sections.append(self.marked_text.section())
        sections += [comparison.section(top) for comparison in self.comparisons]
        return sections

    def contents(self) -> list[Any]:
        """Return all sections, then the warnings."""
        return [*self.top_sections(), *(f"warning: {kind}" for kind in self.warnings)]

    def sections(self) -> list[Section]:
        """Return one section with all contents."""
        return [Section(self.page_title, self.contents())]

    def tables(self) -> list[Table]:
        """Return the tables of all sections."""
        parts = [part for section in self.top_sections() for part in section.contents]
        return [part for part in parts if isinstance(part, Table)]

    def file_table(self, suffix: str = "") -> Table:
        """Return a table of the score only: parts have no common columns."""
        return Table([Column("metric"), Column("score")], [self])

    def records(self) -> dict[str, Any]:
        """Return plain dictionaries, lists, strings and numbers for JSON, with the parts merged."""
        values = asdict(self)
        del values["marked_text"]
        comparisons = values.pop("comparisons")
        merged = {**(values.pop("attribution") or {}), **(values.pop("win_probabilities") or {})}
        for name in ("errors", "reasons"):
            if not values[name]:
                del values[name]
        if self.marked_text is not None:
            values["spans"] = [span.as_dict() for span in self.marked_text.spans]
        for comparison in comparisons:
            comparison["beside"] = comparison.pop("combined_with")
            values["comparisons"] = comparisons
        return {**values, **merged}

    as_dict = records


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


def abbreviate(text: str) -> str:
    """Keep only the beginning and end of a long text.

    >>> abbreviate("a" * 1000 + "z")[198:]
    'aa … aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaz'
    """
    return text if len(text) <= MAX_TEXT_LENGTH else f"{text[:200]} … {text[-50:]}"


def mark_in_word(text: str, span: Span) -> str:
    """Return a span; if it covers part of a word, the whole word with the span in brackets.

    Spans from neural models may end inside a word. Letters without case are not extended: most
    scripts without case have no spaces between words.

    >>> mark_in_word("She sells it", Span(8, 9)), mark_in_word("She sells it", Span(4, 9))
    ('sell[s]', 'sells')
    """
    start = span.start
    end = span.end
    while start and _is_in_word(text[start - 1 : start + 1]):
        start -= 1
    while end < len(text) and _is_in_word(text[end - 1 : end + 1]):
        end += 1
    covered = span.of(text)
    if end - start > len(covered):
        covered = f"{text[start : span.start]}[{covered}]{text[span.end : end]}"
    return abbreviate(covered)


def _is_in_word(letters: str) -> bool:
    return all(letter.isdecimal() or letter.lower() != letter.upper() for letter in letters)


def _limit(items: Sequence[str]) -> list[str]:
    """Return the first items and, if there are more, how many."""
    more = len(items) - MAX_ITEMS
    rest = [f"and {more} more (-f json and as_dict() have all)"] if more > 0 else []
    return [*items[:MAX_ITEMS], *rest]

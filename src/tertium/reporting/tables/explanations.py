"""An explanation as lines and tables: words and pieces with partners, features, groups, votes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from tertium.metrics.base.explanation import (
    Contribution,
    Explanation,
    MarkedText,
    Reasons,
    TextComparison,
    Votes,
)
from tertium.reporting.tables.table import Cell, Table, number
from tertium.spans import Span

Rows = list[list[Cell | str]]

LONGEST_TEXT = 300  # letters that are shown as they are
LEAST = 0.0005  # what a feature adds that is not printed as 0.000
MOST = 15  # sentences of each kind, and pieces without a partner, that are told
TOP = 10  # features and links that are told unless more are asked for
TEXTS = frozenset({0, 1, 2})  # columns that hold no numbers
QUESTIONS = {
    "forward": "does the hypothesis follow from the reference?",
    "backward": "does the reference follow from the hypothesis?",
}


def parts_of(explained: Explanation, top: int = TOP) -> Iterator[str | Table]:
    """An explanation for a person to read: lines of text and tables, in their order."""
    if explained.reasons is not None:
        yield from _parts_of_reasons(explained, explained.reasons, top)
    elif explained.votes is not None:
        better = "the chance that the row's translation is better than the column's"
        yield f"{explained.metric}: {better}"
    else:
        yield f"{explained.metric}: {number(explained.score, 4).text}"
    if explained.marked is not None:
        yield f"\nerrors it suspects: {len(explained.marked.spans) or 'none'}"
        if explained.marked.spans:
            yield span_table(explained.marked)
    for comparison in explained.comparisons:
        yield from _parts_of_comparison(comparison, top)
    if explained.votes is not None:
        yield vote_table(explained.votes)


def _parts_of_reasons(explained: Explanation, reasons: Reasons, top: int) -> Iterator[str | Table]:
    """What speaks for and against a translation, and what each feature gave.

    Reasons are those of one reference, the best where there are several, which is named.
    """
    perfect = f"{reasons.perfect:+z.3f} for the reference itself"
    yield f"{explained.metric}: {explained.score:+z.3f}, of {perfect}"
    yield f"against the reference {shorten(reasons.reference)!r}"
    for direction, question in QUESTIONS.items():
        if direction in reasons.follows:
            yield f"{question} {'yes' if reasons.follows[direction] else 'no'}"
    for title, sentences in (("faults", reasons.faults), ("merits", reasons.merits)):
        if sentences:
            yield f"\n{title}"
            yield from (f"  - {sentence}" for sentence in sentences[:MOST])
            if len(sentences) > MOST:
                yield f"  - and {len(sentences) - MOST} more (--json, or as_dict(), has all)"
    if reasons.alignment:
        yield word_table(reasons)
    tables = (group_table(reasons), feature_table(reasons, top))
    yield from (table for table in tables if table.rows)  # nothing is found in empty texts


def _parts_of_comparison(comparison: TextComparison, top: int) -> Iterator[str | Table]:
    """Which pieces found no partner, and the weakest links."""
    said = figures_of(comparison)
    yield f"\nagainst the {comparison.side} {shorten(comparison.text)!r}: {said}"
    for side, pieces in comparison.partnerless().items():
        if pieces:
            more = f" and {len(pieces) - MOST} more" if len(pieces) > MOST else ""
            yield f"  without a partner in the {side}: {', '.join(pieces[:MOST])}{more}"
    if comparison.links:
        yield link_table(comparison, top)


def link_table(comparison: TextComparison, top: int) -> Table:
    """The weakest links first; in a plan, those that move most over a distance."""
    plan = comparison.is_plan
    ordered = sorted(
        comparison.links,
        key=lambda link: -link.weight * link.similarity if plan else link.similarity,
    )
    rows: Rows = [
        [
            comparison.hypothesis_pieces[link.hypothesis],
            comparison.other_pieces[link.other],
            link.direction,
            number(link.similarity, 3),
            number(link.weight, 3),
        ]
        for link in ordered[:top]
    ]
    measure = "distance" if plan else "similarity"
    header = ("translation", comparison.side, "looked for by", measure, "weight")
    return Table(header, rows, left=TEXTS)


def figures_of(comparison: TextComparison) -> str:
    """The values of a comparison, and which texts they are of where that is not one."""
    if not comparison.values:
        return "counts in the score beside each reference"
    values = ", ".join(f"{name} {number(v, 4).text}" for name, v in comparison.values.items())
    return f"with the {comparison.beside}, {values}" if comparison.beside else values


def word_table(reasons: Reasons) -> Table:
    """Each word of the translation with its partner, then the reference's words without one."""
    rows: Rows = [
        [
            m.hypothesis or "–",
            m.reference or "–",
            "" if m.relation == "none" else m.relation,
            number(m.similarity, 2) if m.hypothesis and m.reference else "",
        ]
        for m in reasons.alignment
    ]
    return Table(("translation", "reference", "relation", "similarity"), rows, left=TEXTS)


def group_table(reasons: Reasons) -> Table:
    """What each group of features adds, the costliest first."""
    ordered = sorted(reasons.groups.items(), key=lambda entry: entry[1])
    rows: Rows = [[group, Cell(f"{value:+z.3f}", value)] for group, value in ordered]
    return Table(("group", "contribution"), rows)


def features_that_matter(reasons: Reasons, top: int) -> list[Contribution]:
    """The features that add or cost most, without those that fired and weigh nothing."""
    return [c for c in reasons.contributions if abs(c.contribution) >= LEAST][:top]


def feature_table(reasons: Reasons, top: int, title: str = "") -> Table:
    """The features that matter most."""
    rows: Rows = [
        [
            c.feature,
            number(c.value, 3),
            Cell(
                f"{c.contribution:+z.3f}",
                c.contribution,
                "good" if c.contribution > 0 else "bad" if c.contribution < 0 else "",
            ),
        ]
        for c in features_that_matter(reasons, top)
    ]
    return Table(("feature", "value", "contribution"), rows, title=title)


def shorten(text: str) -> str:
    """A text of many lines by its beginning and its end.

    >>> shorten("a" * 1000 + "z")[198:]
    'aa … aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaz'
    """
    return text if len(text) <= LONGEST_TEXT else f"{text[:200]} … {text[-50:]}"


def show_in_word(text: str, span: Span) -> str:
    """What is marked, with the rest of a word that it begins or ends in: then it is in brackets.

    Networks mark pieces of words. Letters without case are left alone: many scripts that have no
    case have no blanks, either.

    >>> show_in_word("She sells it", Span(8, 9)), show_in_word("She sells it", Span(4, 9))
    ('sell[s]', 'sells')
    """
    said = span.of(text)
    before = _part_of_word(reversed(text[: span.start])) if _is_in_word(said[0]) else ""
    after = _part_of_word(text[span.end :]) if _is_in_word(said[-1]) else ""
    return shorten(f"{before[::-1]}[{said}]{after}" if before or after else said)


def _part_of_word(letters: Iterable[str]) -> str:
    return "".join(takewhile(_is_in_word, letters))


def _is_in_word(letter: str) -> bool:
    return letter.isdecimal() or letter.lower() != letter.upper()


def span_table(marked: MarkedText) -> Table:
    """The errors that a metric marks, in order of their place."""
    rows: Rows = []
    for span in marked.spans:
        text = marked.hypothesis if span.side == "hypothesis" else marked.source or ""
        sure = "" if span.chance is None else number(span.chance, 2)
        place = Cell(f"{span.start}-{span.end}", span.start)
        rows.append(
            [show_in_word(text, span), span.severity, span.category, span.side, place, sure]
        )
    header = ("error", "severity", "category", "side", "place", "chance")
    return Table(header, rows, left=frozenset(range(4)))


def vote_table(votes: Votes) -> Table:
    """The chance of each row's translation to beat each other one, which are numbered."""
    numbers = [str(n + 1) for n in range(len(votes.names))]
    rows: Rows = [
        [
            f"{n + 1}: {shorten(name)}",
            *("" if n == m else number(p, 3) for m, p in enumerate(chances)),
        ]
        for n, (name, chances) in enumerate(zip(votes.names, votes.chances, strict=True))
    ]
    return Table(("translation", *numbers), rows)

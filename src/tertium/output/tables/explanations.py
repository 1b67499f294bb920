"""Explanations as lines of text and tables, as `tertium explain` prints them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from tertium.core.result import Table
from tertium.metrics.base.explanation import (
    Contribution,
    Explanation,
    FeatureAttribution,
    MarkedText,
    TextComparison,
    WinProbabilities,
)
from tertium.output.tables.table import Cell, cell_table, number_cell
from tertium.spans import Span

Rows = list[list[Cell | str]]

MAX_TEXT_LENGTH = 300  # characters
MIN_CONTRIBUTION = 0.0005  # smaller ones would be printed as 0.000
MAX_ITEMS = 15  # in a list of issues or unmatched tokens
DEFAULT_TOP = 10  # features and alignment links
TEXT_COLUMNS = frozenset({0, 1, 2})
QUESTIONS = {
    "forward": "does the reference entail the translation?",
    "backward": "does the translation entail the reference?",
}


def explanation_parts(explanation: Explanation, top: int = DEFAULT_TOP) -> Iterator[str | Table]:
    """Yield an explanation as lines of text and tables."""
    if explanation.attribution is not None:
        yield from _attribution_parts(explanation, explanation.attribution, top)
    elif explanation.win_probabilities is not None:
        yield f"{explanation.metric}: probability that the row is better than the column"
    else:
        yield f"{explanation.metric}: {number_cell(explanation.score, 4).text}"
    yield from (f"\n{error.severity} error: {error.category}" for error in explanation.errors)
    if explanation.reasons:
        yield "\nreasons of the judge"
        yield from (f"  - {abbreviate(reason)}" for reason in explanation.reasons[:MAX_ITEMS])
    if explanation.marked_text is not None:
        yield f"\nsuspected errors: {len(explanation.marked_text.spans) or 'none'}"
        if explanation.marked_text.spans:
            yield error_span_table(explanation.marked_text)
        if explanation.marked_text.note:
            yield f"  {explanation.marked_text.note}"
    for comparison in explanation.comparisons:
        yield from _comparison_parts(comparison, top)
    if explanation.win_probabilities is not None:
        yield win_probability_table(explanation.win_probabilities)


def _attribution_parts(
    explanation: Explanation, reasons: FeatureAttribution, top: int
) -> Iterator[str | Table]:
    """Yield strengths and issues of a translation (of its best reference) and each contribution."""
    yield f"{explanation.metric}: {explanation.score:+z.3f} ({describe_baseline(reasons)})"
    if reasons.reference:
        yield f"compared with the reference {abbreviate(reasons.reference)!r}"
    for direction, question in QUESTIONS.items():
        if direction in reasons.follows:
            yield f"{question} {'yes' if reasons.follows[direction] else 'no'}"
    for title, sentences in (("issues", reasons.faults), ("strengths", reasons.merits)):
        if sentences:
            yield f"\n{title}"
            yield from (f"  - {sentence}" for sentence in sentences[:MAX_ITEMS])
            if len(sentences) > MAX_ITEMS:
                yield f"  - and {len(sentences) - MAX_ITEMS} more (-f json and as_dict() have all)"
    if reasons.alignment:
        yield word_alignment_table(reasons)
    tables = (feature_group_table(reasons), feature_table(reasons, top))
    yield from (table for table in tables if table.rows)  # empty texts have no features


def describe_baseline(reasons: FeatureAttribution) -> str:
    """Describe the score that contributions are added to."""
    subject = "the reference itself" if reasons.reference else "an average translation"
    return f"{subject} scores {reasons.perfect:+z.3f}"


def _comparison_parts(comparison: TextComparison, top: int) -> Iterator[str | Table]:
    """Yield the values of a comparison, unmatched tokens and the weakest alignment links."""
    values = format_comparison_values(comparison)
    yield f"\ncompared with the {comparison.side} {abbreviate(comparison.text)!r}: {values}"
    for side, pieces in comparison.unmatched_pieces().items():
        if pieces:
            more = f" and {len(pieces) - MAX_ITEMS} more" if len(pieces) > MAX_ITEMS else ""
            yield f"  no match in the {side}: {', '.join(pieces[:MAX_ITEMS])}{more}"
    if comparison.links:
        yield link_table(comparison, top)


def link_table(comparison: TextComparison, top: int) -> Table:
    """Return the weakest alignment links; of a transport plan, those with the highest cost."""
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
            number_cell(link.similarity, 3),
            number_cell(link.weight, 3),
        ]
        for link in ordered[:top]
    ]
    measure = "distance" if plan else "similarity"
    header = ("translation", comparison.side, "direction", measure, "weight")
    return cell_table(header, rows, text_columns=TEXT_COLUMNS)


def format_comparison_values(comparison: TextComparison) -> str:
    """Return the values of a comparison, and the other text they also depend on."""
    if not comparison.values:
        return "part of the score with each reference"
    values = ", ".join(f"{name} {number_cell(v, 4).text}" for name, v in comparison.values.items())
    return f"with the {comparison.combined_with}, {values}" if comparison.combined_with else values


def word_alignment_table(reasons: FeatureAttribution) -> Table:
    """Return each translated word with its match, then unmatched words of the reference."""
    rows: Rows = [
        [
            m.hypothesis or "–",
            m.reference or "–",
            "" if m.relation == "none" else m.relation,
            number_cell(m.similarity, 2) if m.hypothesis and m.reference else "",
        ]
        for m in reasons.alignment
    ]
    return cell_table(
        ("translation", "reference", "relation", "similarity"), rows, text_columns=TEXT_COLUMNS
    )


def feature_group_table(reasons: FeatureAttribution) -> Table:
    """Return the contribution of each feature group, lowest first."""
    ordered = sorted(reasons.groups.items(), key=lambda entry: entry[1])
    rows: Rows = [[group, Cell(f"{value:+z.3f}", value)] for group, value in ordered]
    return cell_table(("group", "contribution"), rows)


def top_features(reasons: FeatureAttribution, top: int) -> list[Contribution]:
    """Return the features with the largest contributions, without negligible ones."""
    return [c for c in reasons.contributions if abs(c.contribution) >= MIN_CONTRIBUTION][:top]


def feature_table(reasons: FeatureAttribution, top: int, title: str = "") -> Table:
    """Return the features with the largest contributions."""
    rows: Rows = [
        [
            c.feature,
            number_cell(c.value, 3),
            Cell(
                f"{c.contribution:+z.3f}",
                c.contribution,
                "good" if c.contribution > 0 else "bad" if c.contribution < 0 else "",
            ),
        ]
        for c in top_features(reasons, top)
    ]
    return cell_table(("feature", "value", "contribution"), rows, title=title)


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
    covered = span.of(text)
    before = _word_part(reversed(text[: span.start])) if _is_word_character(covered[0]) else ""
    after = _word_part(text[span.end :]) if _is_word_character(covered[-1]) else ""
    return abbreviate(f"{before[::-1]}[{covered}]{after}" if before or after else covered)


def _word_part(letters: Iterable[str]) -> str:
    return "".join(takewhile(_is_word_character, letters))


def _is_word_character(letter: str) -> bool:
    return letter.isdecimal() or letter.lower() != letter.upper()


def error_span_table(marked: MarkedText) -> Table:
    """Return the error spans of a metric in text order."""
    rows: Rows = []
    for span in marked.spans:
        text = marked.hypothesis if span.side == "hypothesis" else marked.source or ""
        probability = "" if span.chance is None else number_cell(span.chance, 2)
        place = Cell(f"{span.start}-{span.end}", span.start)
        rows.append(
            [mark_in_word(text, span), span.severity, span.category, span.side, place, probability]
        )
    header = ("error", "severity", "category", "side", "position", "probability")
    return cell_table(header, rows, text_columns=frozenset(range(4)))


def win_probability_table(votes: WinProbabilities) -> Table:
    """Return the probability that each row's translation beats each (numbered) other one."""
    numbers = [str(n + 1) for n in range(len(votes.names))]
    rows: Rows = [
        [
            f"{n + 1}: {abbreviate(name)}",
            *("" if n == m else number_cell(p, 3) for m, p in enumerate(chances)),
        ]
        for n, (name, chances) in enumerate(zip(votes.names, votes.chances, strict=True))
    ]
    return cell_table(("translation", *numbers), rows)

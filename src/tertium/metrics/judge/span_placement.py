"""Place quotes of a judge in the text: from a quote and the words before it to a `Span`.

A quote is searched without differences of case, white space and typographic quotes, which models
often change; exact occurrences win. A quote that is not in the text is not placed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from tertium.core.spans import Side, Span
from tertium.metrics.judge.judge_answers import ReportedError

_SIMPLE_CHARACTERS = str.maketrans("‘’‚‛“”„‟«»‐‑–—", '\'\'\'\'""""""----')
CONTEXT_LENGTH = 40  # characters before an occurrence that are compared


def place_errors(
    errors: Iterable[ReportedError], hypothesis: str, source: str | None
) -> tuple[list[tuple[Span, ReportedError]], int]:
    """Return the errors that can be placed, and the number of others.

    An error that repeats another one at the same place counts as not placed.

    >>> error = ReportedError("the", "on", "translation", "minor", "style", "")
    >>> [(span, _)], dropped = place_errors([error], "The cat sat on the mat.", None)
    >>> span.start, span.end, dropped
    (15, 18, 0)
    """
    placed: list[tuple[Span, ReportedError]] = []
    dropped = 0
    for error in errors:
        side: Side = "source" if error.side == "source" else "hypothesis"
        text = hypothesis if side == "hypothesis" else source or ""
        occupied = [(span.start, span.end) for span, _ in placed if span.side == side]
        place = find_quote(text, error.quote, error.before, occupied)
        if place is None:
            dropped += 1
        else:
            category, reason = (" ".join(text.split()) for text in (error.category, error.reason))
            span = Span(*place, side, error.severity, category, message=reason)
            placed.append((span, error))
    return placed, dropped


def find_quote(
    text: str, quote: str, before: str = "", occupied: Collection[tuple[int, int]] = ()
) -> tuple[int, int] | None:
    """Return start and end of a quote that is not occupied, best after the words `before`.

    >>> find_quote("a cat, a cat", "cat"), find_quote("a cat, a cat", "cat", "cat, a")
    ((2, 5), (9, 12))
    >>> find_quote("He said “No”.", 'said "no"'), find_quote("He said no.", "yes")
    ((3, 12), None)
    """
    similar = list(_find_similar(text, quote))
    exact = [place for place in similar if text[slice(*place)] == quote.strip()]
    free = [place for place in exact or similar if place not in occupied]
    words = _simplify(before)[0].strip()
    for start, end in free:
        text_before = _simplify(text[max(0, start - CONTEXT_LENGTH) : start])[0]
        if words and text_before.rstrip().endswith(words):
            return start, end
    return free[0] if free else None


def _find_similar(text: str, quote: str) -> Iterator[tuple[int, int]]:
    """Yield places of a quote, ignoring case, white space and kinds of quotes and dashes."""
    characters, offsets = _simplify(text)
    pattern = _simplify(quote)[0].strip()
    start = characters.find(pattern) if pattern else -1
    while start >= 0:
        yield offsets[start], offsets[start + len(pattern) - 1] + 1
        start = characters.find(pattern, start + 1)


def _simplify(text: str) -> tuple[str, list[int]]:
    """Return a text in simple characters, and the offset of each one in the original."""
    characters: list[str] = []
    offsets: list[int] = []
    for offset, character in enumerate(text.translate(_SIMPLE_CHARACTERS)):
        simple = " " if character.isspace() else character.casefold()
        if simple == " " and characters[-1:] == [" "]:
            continue
        characters += simple
        offsets += [offset] * len(simple)
    return "".join(characters), offsets

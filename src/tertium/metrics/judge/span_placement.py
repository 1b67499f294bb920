"""Place quotes of a judge in the text: from a quote and the words before it to a `Span`.

A quote is searched as it is, then without differences of case, white space and typographic quotes,
which models often change. A quote that is not in the text is not placed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tertium.core.spans import Side, Span
from tertium.metrics.judge.judge_answers import ReportedError

_SIMPLE_CHARACTERS = str.maketrans("‘’‚‛“”„‟«»‐‑–—", '\'\'\'\'""""""----')
CONTEXT_LENGTH = 40  # characters before an occurrence that are compared


def place_errors(
    errors: Iterable[ReportedError], hypothesis: str, source: str | None
) -> tuple[list[tuple[Span, ReportedError]], int]:
    """Return the errors that can be placed, in text order, and the number of others.

    An error that repeats another one at the same place counts as not placed.

    >>> error = ReportedError("the", "on", "translation", "minor", "style", "")
    >>> [(span, _)], dropped = place_errors([error], "The cat sat on the mat.", None)
    >>> span.start, span.end, dropped
    (15, 18, 0)
    """
    placed: dict[tuple[Side, int, int], tuple[Span, ReportedError]] = {}
    dropped = 0
    for error in errors:
        side: Side = "source" if error.side == "source" else "hypothesis"
        text = hypothesis if side == "hypothesis" else source or ""
        taken_places = {(start, end) for own, start, end in placed if own == side}
        place = find_quote(text, error.quote, error.before, taken_places)
        if place is None:
            dropped += 1
            continue
        category, reason = (" ".join(text.split()) for text in (error.category, error.reason))
        span = Span(*place, side, error.severity, category, message=reason)
        placed[(side, *place)] = (span, error)
    order = sorted(placed, key=lambda key: (key[0] != "hypothesis", key[1], key[2]))
    return [placed[key] for key in order], dropped


def find_quote(
    text: str, quote: str, before: str = "", taken_places: Iterable[tuple[int, int]] = ()
) -> tuple[int, int] | None:
    """Return start and end of a quote that is not taken, best after the words `before`.

    >>> find_quote("a cat, a cat", "cat"), find_quote("a cat, a cat", "cat", "cat, a")
    ((2, 5), (9, 12))
    >>> find_quote("He said “No”.", 'said "no"'), find_quote("He said no.", "yes")
    ((3, 12), None)
    """
    quote, excluded = quote.strip(), {*taken_places}
    if not quote:
        return None
    exact = [(m.start(), m.end()) for m in re.finditer(f"(?={re.escape(quote)})", text)]
    places = [(start, start + len(quote)) for start, _ in exact] or [*_find_similar(text, quote)]
    free = [place for place in places if place not in excluded]
    words = _simplify(before).strip()
    for start, end in free:
        if words and _simplify(text[max(0, start - CONTEXT_LENGTH) : start]).rstrip().endswith(
            words
        ):
            return start, end
    return free[0] if free else None


def _find_similar(text: str, quote: str) -> Iterator[tuple[int, int]]:
    """Yield places of a quote, ignoring case, white space and kinds of quotes and dashes."""
    characters, offsets = _simplify_with_offsets(text)
    pattern = _simplify(quote).strip()
    start = characters.find(pattern) if pattern else -1
    while start >= 0:
        last = start + len(pattern) - 1
        yield offsets[start], offsets[last] + 1
        start = characters.find(pattern, start + 1)


def _simplify(text: str) -> str:
    return _simplify_with_offsets(text)[0]


def _simplify_with_offsets(text: str) -> tuple[str, list[int]]:
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

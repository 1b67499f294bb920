"""Quotes of judges become spans with code-point offsets."""

from __future__ import annotations

import pytest

from tertium.metrics.judge.judge_answers import ReportedError, find_quote, place_errors


def reported(quote: str, before: str = "", side: str = "translation") -> ReportedError:
    return ReportedError(quote, before, side, "minor", "style", "")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "quote", "before", "expected"),
    [
        ("the cat and the dog", "the", "", "the"),
        ("😀 the café is “open”", 'CAFÉ is "open"', "", "café is “open”"),  # offsets: code points
        ("one\u00a0two  three", "two three", "", "two  three"),
        ("  the cat", " cat ", "", "cat"),
        ("aaa", "aa", "", "aa"),
        ("straße", "STRASSE", "", "straße"),
        ("短い文です", "文", "", "文"),
    ],
)
def test_a_quote_is_found_in_the_text(text: str, quote: str, before: str, expected: str) -> None:
    place = find_quote(text, quote, before)
    assert place is not None
    assert text[slice(*place)] == expected


def test_words_before_a_quote_select_the_occurrence() -> None:
    text = "the cat saw the cat near the cat"
    assert find_quote(text, "cat", "saw  The") == (16, 19)
    assert find_quote(text, "cat", "near the") == (29, 32)
    assert find_quote(text, "cat", "words that do not occur") == (4, 7)
    assert find_quote(text, "cat", occupied=[(4, 7)]) == (16, 19)


@pytest.mark.parametrize("quote", ["", "  ", "dog", "the cats"])
def test_other_quotes_have_no_place(quote: str) -> None:
    assert find_quote("the cat", quote) is None


def test_errors_are_placed_or_dropped() -> None:
    errors = [
        reported("Katze", side="source"),
        reported("sat"),
        reported("cat"),
        reported("cat"),  # a duplicate: the word occurs once
        reported("dog"),
        reported("Hund", side="source"),
    ]
    placed, dropped = place_errors(errors, "the cat sat", "die Katze sass")
    assert [(s.side, s.start, s.end) for s, _ in placed] == [
        ("source", 4, 9),
        ("hypothesis", 8, 11),
        ("hypothesis", 4, 7),
    ]
    assert dropped == 3
    assert place_errors([errors[0]], "the cat sat", None) == ([], 1)

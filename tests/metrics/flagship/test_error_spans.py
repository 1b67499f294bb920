"""Marked errors of tertium-multi: from chances of pieces to spans of whole words."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.metrics.flagship.error_spans import (
    CATEGORY,
    ERROR_COLUMNS,
    MAJOR,
    WRONG,
    SpanThresholds,
    extend_to_words,
    extract_spans,
)
from tertium.spans import Span

HALF = SpanThresholds(wrong=0.5)


@pytest.mark.parametrize(
    ("pieces", "wrong", "expected"),
    [
        ("in| the| brow|ser| the|re", {3}, {2, 3}),
        ("in| the| brow|ser| the|re", {0, 5}, {0, 4, 5}),
        ("a| two|-|part| word|.", {3, 5}, {3, 5}),  # a hyphen parts words, and marks are no words
        ("192|.|168|.7| is", {3}, {3}),  # so do points in numbers
        ("डॉ|क्ट|र ने| कहा", {1}, {0, 1, 2}),  # vowel signs belong to words
        ("ファ|イル|を|保存", {1}, {1}),  # no blanks, no words
        ("of |東|京| he", {1}, {1, 2}),
        ("in| the", set(), set()),
    ],
)
def test_a_word_is_wrong_as_a_whole(pieces: str, wrong: set[int], expected: set[int]) -> None:
    parts = pieces.split("|")
    ends = np.cumsum([len(part) for part in parts]).tolist()
    places = [(end - len(part), end) for part, end in zip(parts, ends, strict=True)]
    given = np.array([n in wrong for n in range(len(parts))])
    found = extend_to_words("".join(parts), places, given)
    assert {*np.flatnonzero(found).tolist()} == expected


def test_what_completes_a_word_says_nothing_of_its_error() -> None:
    """The first piece of the word would be major, and has a chance and a category of its own."""
    text, places = "the browser", [(0, 3), (3, 8), (8, 11)]
    findings = np.zeros((3, ERROR_COLUMNS), np.float32)
    findings[:, WRONG["mqm"]] = 0.1, 0.4, 0.6
    findings[1, [MAJOR["mqm"], CATEGORY]] = 0.9, 1
    [span] = extract_spans(text, places, findings, "mqm", HALF)
    assert span == Span(4, 11, severity="minor", chance=0.6)


def test_pieces_that_were_not_read_are_not_marked() -> None:
    findings = np.full((1, ERROR_COLUMNS), 0.9, np.float32)
    [span] = extract_spans("browser", [(0, 4), (4, 7)], findings, "esa", HALF)
    assert (span.start, span.end) == (0, 4)


def test_an_error_ends_behind_the_accent_of_its_last_letter() -> None:
    """A tokenizer that composes letters says that the piece of "é" ends before its accent."""
    text, places = "the cafe\u0301 shut", [(0, 3), (3, 8), (9, 14)]
    findings = np.zeros((3, ERROR_COLUMNS), np.float32)
    findings[1, WRONG["words"]] = 0.9
    [span] = extract_spans(text, places, findings, "words", HALF)
    assert span.of(text) == "cafe\u0301"

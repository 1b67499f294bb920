"""Error spans of tertium-multi: from piece probabilities to spans of complete words."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.core.spans import Span
from tertium.metrics.bundled.scales import (
    CATEGORY,
    ERROR_COLUMNS,
    MAJOR,
    WRONG,
    SpanThresholds,
    extend_to_words,
    extract_spans,
)

HALF = SpanThresholds(wrong=0.5)


@pytest.mark.parametrize(
    ("pieces", "wrong", "expected"),
    [
        ("in| the| brow|ser| the|re", {3}, {2, 3}),
        ("in| the| brow|ser| the|re", {0, 5}, {0, 4, 5}),
        (
            "a| two|-|part| word|.",
            {3, 5},
            {3, 5},
        ),  # hyphens separate words, and punctuation is not a word
        ("192|.|168|.7| is", {3}, {3}),  # so do points in numbers
        ("डॉ|क्ट|र ने| कहा", {1}, {0, 1, 2}),  # vowel signs belong to words
        ("ファ|イル|を|保存", {1}, {1}),  # unspaced script
        ("of |東|京| he", {1}, {1, 2}),
        ("in| the", set(), set()),
    ],
)
def test_wrong_piece_marks_its_word(pieces: str, wrong: set[int], expected: set[int]) -> None:
    parts = pieces.split("|")
    ends = np.cumsum([len(part) for part in parts]).tolist()
    places = [(end - len(part), end) for part, end in zip(parts, ends, strict=True)]
    is_wrong = np.array([n in wrong for n in range(len(parts))])
    extended = extend_to_words("".join(parts), places, is_wrong)
    assert {*np.flatnonzero(extended).tolist()} == expected


def test_pieces_that_complete_a_word_do_not_change_its_error() -> None:
    """The first piece of the word is below the threshold; its severity and category are ignored."""
    text, places = "the browser", [(0, 3), (3, 8), (8, 11)]
    errors = np.zeros((3, ERROR_COLUMNS), np.float32)
    errors[:, WRONG["mqm"]] = 0.1, 0.4, 0.6
    errors[1, [MAJOR["mqm"], CATEGORY]] = 0.9, 1
    [span] = extract_spans(text, places, errors, "mqm", HALF)
    assert span == Span(4, 11, severity="minor", chance=0.6)


def test_truncated_pieces_are_not_marked() -> None:
    errors = np.full((1, ERROR_COLUMNS), 0.9, np.float32)
    [span] = extract_spans("browser", [(0, 4), (4, 7)], errors, "esa", HALF)
    assert (span.start, span.end) == (0, 4)


def test_span_includes_the_accent_of_its_last_letter() -> None:
    """Tokenizers that compose letters end the piece of "é" before its accent."""
    text, places = "the cafe\u0301 shut", [(0, 3), (3, 8), (9, 14)]
    errors = np.zeros((3, ERROR_COLUMNS), np.float32)
    errors[1, WRONG["words"]] = 0.9
    [span] = extract_spans(text, places, errors, "words", HALF)
    assert span.of(text) == "cafe\u0301"

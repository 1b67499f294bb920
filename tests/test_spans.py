"""Error spans: validation and conversions."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.core.errors import DataError, LengthError, UnknownNameError
from tertium.core.spans import (
    ESA_WEIGHTS,
    Span,
    UnlocatedError,
    check_span_bounds,
    count_overlaps,
    error_weight,
    parse_markup,
    score_spans,
    split_at_spans,
    tags_to_spans,
)

ASTRAL = "𝒜 naïve 猫 sat"  # one code point each, though two UTF-16 units or several bytes


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"start": 3, "end": 3}, "expected 0 <= start < end"),
        ({"start": -1, "end": 3}, "expected 0 <= start < end"),
        ({"start": 0.5, "end": 3}, "the start of a span is 0.5, not a whole number"),
        ({"start": 0, "end": None}, "the end of a span is None"),
        ({"start": 0, "end": 3, "side": "target"}, "unknown side of a span 'target'"),
        ({"start": 0, "end": 3, "severity": "majr"}, "did you mean 'major'?"),
        ({"start": 0, "end": 3, "chance": 1.5}, "expected 0 to 1"),
        ({"start": 0, "end": 3, "chance": float("nan")}, "expected 0 to 1"),
    ],
)
def test_invalid_spans_raise_errors(fields, message):
    with pytest.raises((DataError, UnknownNameError), match=message.replace("?", r"\?")):
        Span(**fields)


def test_offsets_are_code_points_and_plain_numbers():
    assert Span(8, 9).of(ASTRAL) == "猫"
    with pytest.raises(DataError, match="a span ends at 14, but its hypothesis has 13 code points"):
        Span(0, 14).of(ASTRAL)
    with pytest.raises(DataError, match="file, line 2: a span ends at 9, but its source has 3"):
        check_span_bounds([Span(0, 9), Span(0, 9, "source")], "abc", "source", "file, line 2")
    span = Span(0, 3, "source", "minor", "Accuracy/Omission", "rater1", 0.0)
    assert Span(**span.as_dict()) == span
    assert Span(0, 3).as_dict() == {"start": 0, "end": 3, "side": "hypothesis", "severity": "bad"}
    assert type(Span(np.int64(1), np.int32(4)).start) is int


def test_error_weights_are_the_published_ones():
    """Freitag et al. 2021, table 12; critical errors, where annotated, weigh 10."""
    weights = {
        ("major", "Accuracy/Mistranslation"): 5.0,
        ("minor", "Fluency/Punctuation"): 0.1,
        ("minor", "Fluency/Spelling"): 1.0,
        ("major", "Fluency/Punctuation"): 5.0,
        ("major", "Non-translation!"): 25.0,
        ("major", "Non_translation"): 25.0,
        ("critical", ""): 10.0,
        ("neutral", "Style/Awkward"): 0.0,
    }
    assert {key: error_weight(*key) for key in weights} == weights
    with pytest.raises(DataError, match="no weight for severity 'bad'"):
        error_weight("bad", "")


def test_a_score_is_minus_the_mean_weight_of_the_raters():
    errors = [Span(0, 2, severity="major"), Span(3, 4, severity="minor"), UnlocatedError("minor")]
    assert score_spans(errors) == -7.0
    assert score_spans(errors, raters=2) == -3.5
    assert score_spans([]) == 0.0
    assert score_spans([Span(0, 2), *errors], weights=ESA_WEIGHTS) == -8.0
    with pytest.raises(DataError, match="0 raters"):
        score_spans(errors, raters=0)


def test_tags_of_gaps_and_of_the_end_are_recognized_by_count():
    words = ["OK", "BAD", "OK"]
    gaps = ["BAD", "OK", "OK", "BAD", "BAD", "OK", "OK"]  # gap, word, gap, ..., gap (WMT18 on)
    spans = tags_to_spans("the cat sat", words)
    assert spans == (Span(4, 7),)
    assert tags_to_spans("the cat sat", gaps) == spans
    assert tags_to_spans("the cat sat", [*words, "BAD"]) == spans  # <EOS> (WMT22 on)
    with pytest.raises(LengthError, match="5 tags for 3 words: expected 3, 4"):
        tags_to_spans("the cat sat", ["OK"] * 5)
    with pytest.raises(UnknownNameError, match="unknown word tag 'bad'"):
        tags_to_spans("cat", ["bad"])


def test_markup_is_removed():
    assert parse_markup("a<v></v>b") == ("ab", ())
    assert parse_markup("<v>a</v> b <v>c</v>")[1] == (Span(0, 1), Span(4, 5))
    for broken in ("a</v>b", "<v>a<v>b</v></v>", "a <v>b"):
        with pytest.raises(DataError, match=r"unbalanced tags|not closed"):
            parse_markup(broken)


def test_pieces_and_overlaps():
    spans = [Span(1, 4), Span(2, 5), Span(2, 3, "source")]
    pieces = list(split_at_spans("abcdef", spans))
    assert "".join(piece for piece, _ in pieces) == "abcdef"
    covering = [list(over) for _, over in pieces]
    assert covering == [[], spans[:1], spans[:2], spans[1:2], []]
    assert list(split_at_spans("", [])) == []
    assert count_overlaps([Span(0, 4), Span(4, 6)]) == 0
    assert count_overlaps([Span(0, 4), Span(3, 6), Span(5, 7)]) == 2
    assert count_overlaps([Span(0, 9), Span(1, 2), Span(3, 4)]) == 2
    assert count_overlaps([Span(0, 4, rater="a"), Span(0, 4, rater="b"), Span(0, 4, "source")]) == 0

"""Quantities: numbers, dates and amounts are converted to a canonical form."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tertium.metrics.linguistics.quantity_matching import (
    find_quantities,
    parse_number_words,
    quantities_agree,
)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1,000", "number", "1000"),
        ("1.000", "number", "1000"),
        ("1 000 000", "number", "1000000"),
        ("1.000.000,50", "number", "1000000.5"),
        ("1,5", "number", "1.5"),
        ("a thousand", "number", "1000"),
        ("two hundred and five thousand three hundred", "number", "205300"),
        ("twenty-one", "number", "21"),
        ("one and a half", "number", "1.5"),
        ("3½", "number", "3.5"),
        ("1/2", "number", "0.5"),
        ("two dozen", "number", "24"),
        ("1.5 million", "number", "1500000"),
        ("10k", "number", "10000"),
        ("٣٤", "number", "34"),
        ("１２", "number", "12"),
        ("21st", "ordinal", "21"),
        ("twenty-first", "ordinal", "21"),
        ("a hundred and first", "ordinal", "101"),
        ("50%", "percent", "50"),
        ("fifty per cent", "percent", "50"),
        ("2.5 percent", "percent", "2.5"),
        ("$1.5bn", "money", "USD 1500000000"),
        ("5 euros", "money", "EUR 5"),
        ("€5", "money", "EUR 5"),
        ("USD 5 million", "money", "USD 5000000"),
        ("15 November 2016", "date", "2016-11-15-?"),
        ("November 15th, 2016", "date", "2016-11-15-?"),
        ("Nov. 15", "date", "?-11-15-?"),
        ("2016-11-15", "date", "2016-11-15-?"),
        ("15/11/2016", "date", "2016-11-15-?"),
        ("11/15/16", "date", "2016-11-15-?"),
        ("15.11.2016", "date", "2016-11-15-?"),
        ("Monday, 15 November", "date", "?-11-15-1"),
        ("1990s", "date", "1990s-?-?-?"),
        ("5:30 p.m.", "time", "17:30"),
        ("17:00", "time", "17:00"),
    ],
)
def test_format_is_parsed(text: str, kind: str, value: str) -> None:
    [quantity] = find_quantities(f"so {text} then")
    assert (quantity.kind, quantity.value) == (kind, value)
    assert f"so {text} then"[quantity.start : quantity.end] == text


@pytest.mark.parametrize("text", ["H5N1", "A320", "hundreds", "$", "a", "nineteenish", "x1"])
def test_other_text_is_not_a_quantity(text: str) -> None:
    assert find_quantities(text) == ()


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("1,000", "a thousand", True),
        ("1,000", "1,001", False),
        ("5 May 2016", "May 5", True),
        ("5 May 2016", "6 May", False),
        ("2016", "May 2016", True),
        ("Monday", "5 May", False),
        ("5 euros", "5", True),
        ("5 euros", "5 dollars", False),
        ("fifty percent", "50%", True),
        ("3", "third", False),
        ("5 pm", "17:00", True),
        ("1600", "1600 people", True),
    ],
)
def test_quantities_agree(left: str, right: str, expected: bool) -> None:
    [a], [b] = find_quantities(left), find_quantities(right)
    assert quantities_agree(a, b) is expected
    assert quantities_agree(b, a) is expected


@pytest.mark.parametrize("words", ["one two three", "first second", "twenty twenty", ""])
def test_several_numbers_are_not_one_number(words: str) -> None:
    assert parse_number_words(words) is None


@given(st.text(st.sampled_from("0123456789.,:/-% $€½abcdeflmnotuvwy'stndrh\0\n ٣５"), max_size=40))
def test_any_text_can_be_scanned(text: str) -> None:
    spans = [(q.start, q.end) for q in find_quantities(text)]
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


@given(st.integers(min_value=0, max_value=10**12))
def test_integers_with_separators_keep_their_value(number: int) -> None:
    [quantity] = find_quantities(f"{number:,} tanks")
    assert quantity.value.removesuffix("-?-?-?") == str(number)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Ali has sıx cats.", ["6"]),
        ("ſeven dogs", ["7"]),
        ("1111111111111111111111111½", []),
        ("12½ kilos", ["12.5"]),
    ],
)
def test_unusual_letters_and_long_fractions_do_not_fail(text: str, values: list[str]) -> None:
    """Regression: the dotless i was a KeyError, a long fraction a decimal.InvalidOperation."""
    assert [quantity.value for quantity in find_quantities(text)][: len(values)] == values

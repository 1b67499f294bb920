"""The --keep language compared with Python on the same rows, and its errors."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tertium.corpus.filter_expression import parse_filter
from tertium.errors import UsageError

TABLE = pa.table(
    {
        "tertium-small": [0.1, 0.7, 0.9, None],
        "chrf++": [10.0, 50.0, 90.0, 20.0],
        "lang": ["de", "fr", "de", None],
        "mt": ["a", "héé", "x y z", ""],
        "chrf:word_order=2": [1, 2, 3, 4],
        "flag": [True, False, True, None],
        "n": [-5, 0, 5, 10],
        "kind": pa.array(["news", "chat", "news", None]).dictionary_encode(),
        "absent": pa.nulls(4),  # a key that all rows of a JSONL batch lack
    }
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tertium-small>=0.7", [1, 2]),
        ("tertium-small >= 7e-1 and chrf++<60", [1]),
        ("tertium-small<0.5 or chrf++>80", [0, 2]),
        ("not tertium-small >= 0.7", [0]),
        ("tertium-small is null", [3]),
        ("lang is not null and n>-5", [1, 2]),
        ("lang == 'de'", [0, 2]),
        ('lang != "de"', [1]),
        ("lang in ('fr', 'it')", [1]),
        ("lang not in ('fr')", [0, 2]),
        ("not lang in ('fr')", [0, 2]),
        ("lang not in ('fr') or lang is null", [0, 2, 3]),
        ("'y' in mt", [2]),
        ("length(mt) >= 3", [1, 2]),
        ("`chrf:word_order=2` = 3", [2]),
        ("flag", [0, 2]),
        ("not flag", [1]),
        ("flag == false", [1]),
        ("chrf++ > 15 and (lang == 'fr' or n >= 10)", [1, 3]),
        ("chrf++ > 15 and lang == 'fr' or n >= 10", [1, 3]),
        ("n < .5 and n > -1", [1]),
        ("n in (0, 5)", [1, 2]),
        ("n >= n", [0, 1, 2, 3]),
        ("kind == 'news'", [0, 2]),
        ("kind in ('chat', 'mail')", [1]),
        ("'ew' in kind", [0, 2]),
        ("length(kind) > 3 and kind is not null", [0, 1, 2]),
        ("absent", []),
        ("not absent", []),
        ("absent or n > 5", [3]),
        ("absent and n > 5", []),
        ("absent == 'de' or 5 < absent", []),
        ("absent in ('de', 'fr')", []),
        ("absent not in (1, 2)", []),
        ("'d' in absent", []),
        ("not 'd' in absent", []),
        ("length(absent) > 0", []),
        ("absent is null and n > 0", [2, 3]),
    ],
)
def test_expressions_select_rows(text: str, expected: list[int]) -> None:
    mask = parse_filter(text).mask(lambda name: TABLE[name]).to_pylist()
    assert [n for n, is_selected in enumerate(mask) if is_selected] == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "chrf >",
        "chrf >= 5 and",
        "(chrf > 5",
        "chrf > 5)",
        "chrf > 5 6",
        "1 == 1",
        "chrf in 5",
        "lang in ()",
        "lang in (chrf)",
        "is null",
        "__import__('os').system('true') > 0",
        "chrf > 5; import os",
        "chrf not 5",
        "length(mt",
        "'open",
    ],
)
def test_invalid_expressions_give_one_line_errors(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_filter(text)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("--keep")


@pytest.mark.parametrize("text", ["sss:lp=en-ja < 0.3", '"sss:lp=en-ja" < 0.3'])
def test_errors_mention_backquotes_for_special_names(text: str) -> None:
    with pytest.raises(UsageError, match="in backquotes"):
        parse_filter(text)


@pytest.mark.parametrize("text", ["n", "not mt", "mt > 5", "length(n) > 5"])
def test_type_errors_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--keep"):
        parse_filter(text).mask(lambda name: TABLE[name])


def test_nothing_is_executed() -> None:
    names: list[str] = []

    def column(name: str) -> Any:
        names.append(name)
        return TABLE[name]

    parse_filter("n > 1 and `chrf:word_order=2` < 3").mask(column)
    assert names == ["n", "chrf:word_order=2"]


@pytest.mark.parametrize(
    "text", ["(" * 3000 + "a > 1" + ")" * 3000, "not " * 3000 + "a > 1", "length(" * 3000 + "a"]
)
def test_deep_nesting_is_an_error_of_one_line(text: str) -> None:
    with pytest.raises(UsageError, match="nested more than 100 deep; remove parentheses") as found:
        parse_filter(text)
    assert len(str(found.value)) < 200


def test_thousands_of_conditions_are_combined() -> None:
    table = {"a": pa.array([1, 5, None])}
    for word, expected in (("and", [False, True, False]), ("or", [True, True, False])):
        text = f" {word} ".join(["a > 2", *["a > 0"] * 3000])
        assert parse_filter(text).mask(table.__getitem__).to_pylist() == expected

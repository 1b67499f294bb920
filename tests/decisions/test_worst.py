"""The worst translations: order, limits, languages and chances."""

from __future__ import annotations

import pytest

from tertium import TestSet, worst
from tertium.core.errors import UsageError

SOURCE = "The train to the coast leaves at noon from platform seven."
GERMAN = "Der Zug an die Küste fährt mittags von Gleis sieben ab."
JAPANESE = "海岸行きの列車は正午に七番線から出発します。"
ROWS = [
    {"lp": "en-de", "doc": "a", "src": SOURCE, "mt": GERMAN, "ref": GERMAN},
    {"lp": "en-de", "doc": "a", "src": SOURCE, "mt": SOURCE, "ref": GERMAN},
    {"lp": "en-de", "doc": "a", "src": "Hi {name}!", "mt": "Hallo {n}!", "ref": "Hallo {name}!"},
    {"lp": "en-ja", "doc": "b", "src": SOURCE, "mt": "", "ref": JAPANESE},
    {"lp": "en-ja", "doc": "b", "src": SOURCE, "mt": JAPANESE[:12] + "。", "ref": JAPANESE},
    {"lp": "en-ja", "doc": "b", "src": SOURCE, "mt": JAPANESE, "ref": JAPANESE},
]


def test_order_and_settings_of_rows():
    result = worst(TestSet.from_records(ROWS), "chrf")
    assert [row.reason for row in result.rows][:3] == ["empty", "untranslated", "placeholders"]
    assert [row.row.item for row in result.rows[3:4]] == [5]
    assert result.rows[2].spans[0].message == "placeholder {name} is missing in the translation"
    assert result.rows[0].warnings == ("empty hypothesis",)
    assert result.counts() == {"empty": 1, "untranslated": 1, "placeholders": 1, "low score": 3}
    rows = [{**row, "mt": row["ref"]} for row in ROWS]
    result = worst(TestSet.from_records(rows), "bleu")
    # with the tokenizer of English, a Japanese sentence would be one token without 4-grams
    japanese = [row for row in result.rows if row.row.lp == "en-ja"]
    assert [row.scores["bleu"] for row in japanese] == pytest.approx([100.0] * 3)


def test_limits_and_directions():
    testset = TestSet.from_records(ROWS)
    languages = [r.row.lp for r in worst(testset, "chrf", per={"language": 1}).rows]
    assert sorted(languages) == ["en-de", "en-ja"]
    assert len(worst(testset, "chrf", per={"document": 2}).rows) == 4
    assert len(worst(testset, "chrf", count=3).rows) == 3
    with pytest.raises(UsageError, match="count is 0"):
        worst(testset, "chrf", count=0)
    with pytest.raises(UsageError, match="document names"):
        worst(["a"], "chrf", references=["b"], per={"document": 1})
    result = worst(["a b c", "x y z"], "ter", references=["a b c", "a b c"])
    assert [row.row.item for row in result.rows] == [2, 1]
    with pytest.raises(UsageError, match="omit the language options"):
        worst(TestSet.from_records(ROWS), "chrf", lp="en-de")

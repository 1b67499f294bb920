"""Human comparisons: index arrays over shared texts, and scores of systems by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.builders import write_file

from tertium.core.errors import DataError
from tertium.core.segment import Segment
from tertium.data.formats.preferences import read_preferences
from tertium.data.rankings import ComparisonIndex, PairwiseJudgment, RankingSet, build_ranking_set

TEXTS = {
    "1": {name: Segment(f"{name.lower()}1", "s1", ("r1",)) for name in "ABC"},
    "2": {name: Segment(f"{name.lower()}2", "s2", ("r2",)) for name in "AB"},
}
COLUMNS = "segment,judge,system_a,system_b,preference"
WITH_TEXTS = "item,system_a,system_b,winner,hypothesis_a,hypothesis_b,source,reference"


def read(folder: Path, *rows: str, header: str = COLUMNS, has_texts: bool = False) -> RankingSet:
    name = "mine.judgements.csv" if has_texts else "mine.csv"
    file = write_file(folder / name, "\n".join([header, *rows, ""]))
    if has_texts:
        records = [
            {"item": item, "src": f"s{item}", "ref": f"r{item}"}
            | {"outputs": {name: segment.hypothesis for name, segment in outputs.items()}}
            for item, outputs in TEXTS.items()
        ]
        write_file(folder / "mine.texts.jsonl", records)
    return read_preferences(file, lp="cs-en" if has_texts else "")


def test_comparisons_are_rows_of_shared_segments(tmp_path):
    rows = ["1,ann,A,B,a", "1,bob,B,A,tie", "2,,A,B,b"]
    result = read(tmp_path, *rows, has_texts=True)
    assert len(result.segments) == 5
    assert result.verdicts.tolist() == [1.0, 0.5, 0.0]
    assert result.left.tolist() == [0, 1, 3]
    assert result.right.tolist() == [1, 0, 4]
    assert result.compared_mask.tolist() == [True, True, False, True, True]


def test_unknown_systems_items_and_self_comparisons_are_counted(tmp_path):
    result = read(tmp_path, "1,,A,B,a", "2,,A,C,a", "9,,A,B,a", "1,,B,B,tie", has_texts=True)
    assert len(result) == 1
    assert result.excluded_counts == {
        "unknown system": 1,
        "no matching segment": 1,
        "a system compared with itself": 1,
    }


def test_preferences_count_each_row(tmp_path):
    assert len(read(tmp_path, *["1,ann,A,B,a"] * 2, has_texts=True)) == 2
    result = read(tmp_path, "1,,A,B,B", "1,,A,B,A", "1,,A,B,equal", has_texts=True)
    assert result.verdicts.tolist() == [0.0, 1.0, 0.5]


@pytest.mark.parametrize(("header", "rows", "message"), [
    (COLUMNS, ["1,,A,A,tie"], r"no usable comparison .*compared with itself: 1"),
    (COLUMNS, ["1,,b,a,a"], "line 2: preference 'a' is a system and the other side"),
    (COLUMNS, ["1,,A,B,a", "1,,A,B,maybe"], r"mine\.csv, line 3: preference 'maybe'"),
    ("segment,system_a,preference", ["1,A,a"], "needs an item .*found segment, system_a"),
    (WITH_TEXTS, ["1,A,B,A,x,z,s,r", "1,A,C,C,changed,w,s,r"],
     "line 3: another text for system 'A'"),
    (WITH_TEXTS, ["1,A,B,A,x,z,s,r", "1,C,D,C,v,w,s,other"],
     "line 3: another source or reference for item '1'; if"),
    ("lp,item,system_a,system_b,winner", ["de-en,1,A,B,A", "cs-en,1,A,B,A"],
     r"several language pairs \(de-en, cs-en\) have the same"),
])  # fmt: skip
def test_invalid_comparisons_raise(tmp_path, header, rows, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, *rows, header=header)


def test_texts_from_columns_of_the_file(tmp_path):
    rows = ['1,A,B,A,"x, y",z,s,r', '1,A,C,C,"x, y",w,s,r']
    result = read(tmp_path, *rows, header=WITH_TEXTS)
    assert [s.hypothesis for s in result.segments] == ["x, y", "z", "w"]
    assert result.segments[2].references == ("r",)
    rows = ["0,1,A,B,A,x,z,s,r", "1,1,C,D,C,v,w,s,other"]  # a document may be named 0
    result = read(tmp_path, *rows, header=f"document,{WITH_TEXTS}")
    assert result.items == ("0:1", "1:1")
    assert [result.segments[n].references for n in result.left] == [("r",), ("other",)]


def test_names_are_normalized_as_in_judgments(tmp_path):
    """Surrounding spaces are removed; numbers, including 0, are names."""
    rows = [
        {"item": " 1", "system_a": "A ", "system_b": "B", "winner": " A", "judge": judge}
        for judge in (0, 0.0, " ann", None)
    ]
    result = read_preferences(write_file(tmp_path / "mine.jsonl", rows))
    assert [(system, item) for system, item, _ in result.rows()] == [("A", "1"), ("B", "1")]
    assert result.verdicts.tolist() == [1.0] * 4


@pytest.mark.parametrize(
    ("text", "message"), [(None, "None: expected text; an empty"), (7, "7: expected text")]
)
def test_missing_text_is_not_the_text_none(tmp_path, text, message):
    row = {"item": 1, "system_a": "A", "system_b": "B", "winner": "A", "mt_a": "x", "mt_b": text}
    with pytest.raises(DataError, match=f"line 1: .* is {message}"):
        read_preferences(write_file(tmp_path / "mine.jsonl", [row]))


@pytest.mark.parametrize(("second", "lp"), [("cs-en", ""), ("de-en", "de-en")])
def test_language_pair_of_comparisons(tmp_path, second, lp):
    rows = ["de-en,1,A,B,A", f"{second},2,A,B,A"]
    assert read(tmp_path, *rows, header="lp,item,system_a,system_b,winner").lp == lp


def test_texts_of_comparisons_are_optional(tmp_path):
    result = read(tmp_path, "1,,A,B,a", "1,,B,C,a")
    assert not result.has_texts
    assert result.systems == ("A", "B", "C")


def test_without_ties_counts_ties():
    pairs = [PairwiseJudgment("1", "A", "B", v) for v in (1.0, 0.5, 0.0, 0.5)]
    result = build_ranking_set(pairs, TEXTS, name="x").without_ties()
    assert result.verdicts.tolist() == [1.0, 0.0]
    assert result.excluded_counts == {"tie": 2}
    with pytest.raises(DataError, match=r"no usable comparison .*tie.* 2"):
        build_ranking_set([pairs[1]] * 2, TEXTS, name="x").without_ties()


def test_scores_of_segments_become_a_matrix():
    result = build_ranking_set([PairwiseJudgment("1", "A", "B", 1.0)], TEXTS, name="x")
    matrix = result.to_score_matrix(np.arange(5.0), "metric", "system")
    np.testing.assert_array_equal(matrix.values, [[0, 3], [1, 4], [2, np.nan]])


def rankings(*rows: tuple[str, str, float]) -> RankingSet:
    return build_ranking_set([PairwiseJudgment("1", a, b, v) for a, b, v in rows], name="x")


# A beats B twice and ties once; B beats C once; C beats A once.
ROWS = [("A", "B", 1.0), ("B", "A", 0.0), ("A", "B", 0.5), ("B", "C", 1.0), ("A", "C", 0.0)]
SMALL = rankings(*ROWS)


def test_wins_and_ties_are_counted_from_both_sides():
    wins, ties = ComparisonIndex.of(SMALL).counts(3)
    assert wins.tolist() == [[0, 2, 0], [0, 0, 1], [1, 0, 0]]
    assert ties.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_expected_wins_average_over_opponents():
    wins = ComparisonIndex.of(SMALL).expected_wins(3)
    np.testing.assert_allclose(wins, [(1 + 0) / 2, (0 + 1) / 2, (0 + 1) / 2])
    tied = ComparisonIndex.of(rankings(("A", "B", 0.5), ("A", "C", 1.0)))
    assert np.isnan(tied.expected_wins(3)[1])

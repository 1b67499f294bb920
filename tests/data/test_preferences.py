"""Human comparisons: index arrays over shared texts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tertium.core.errors import DataError, LengthError
from tertium.core.segment import Segment
from tertium.data.formats.preferences import read_preferences
from tertium.data.rankings import PairwiseJudgment, build_ranking_set
from tertium.data.testset import TestSet

TEXTS = {
    "1": {name: Segment(f"{name.lower()}1", "s1", ("r1",)) for name in "ABC"},
    "2": {name: Segment(f"{name.lower()}2", "s2", ("r2",)) for name in "AB"},
}


def write(tmp_path: Path, *rows: str) -> Path:
    file = tmp_path / "mine.tsv"
    file.write_text("\n".join(["segment\tjudge\tsystem_a\tsystem_b\tpreference", *rows]) + "\n")
    return file


def test_comparisons_are_rows_of_shared_segments(tmp_path: Path) -> None:
    file = write(tmp_path, "1\tann\tA\tB\ta", "1\tbob\tB\tA\ttie", "2\t\tA\tB\tb")
    result = read_preferences(file, texts=TEXTS, lp="cs-en")
    assert len(result.segments) == 5
    assert result.verdicts.tolist() == [1.0, 0.5, 0.0]
    assert result.left.tolist() == [0, 1, 3]
    assert result.right.tolist() == [1, 0, 4]
    assert result.judges == ("ann", "bob")
    assert result.judge_indices.tolist() == [0, 1, -1]
    assert result.compared_mask.tolist() == [True, True, False, True, True]


def test_unknown_systems_items_and_self_comparisons_are_counted(tmp_path: Path) -> None:
    file = write(tmp_path, "1\t\tA\tB\ta", "2\t\tA\tC\ta", "9\t\tA\tB\ta", "1\t\tB\tB\ttie")
    result = read_preferences(file, texts=TEXTS)
    assert len(result) == 1
    assert result.excluded_counts == {
        "unknown system": 1,
        "no matching segment": 1,
        "a system compared with itself": 1,
    }


def test_comparisons_of_one_system_raise(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no usable comparison .*compared with itself: 1"):
        read_preferences(write(tmp_path, "1\t\tA\tA\ttie"), texts=TEXTS)


def test_repeated_comparison_counts_twice(tmp_path: Path) -> None:
    result = read_preferences(write(tmp_path, *["1\tann\tA\tB\ta"] * 2), texts=TEXTS)
    assert len(result) == 2


def test_preference_may_be_the_name_of_a_system(tmp_path: Path) -> None:
    file = write(tmp_path, "1\t\tA\tB\tB", "1\t\tA\tB\tA", "1\t\tA\tB\tequal")
    assert read_preferences(file, texts=TEXTS).verdicts.tolist() == [0.0, 1.0, 0.5]


def test_preference_that_is_a_system_and_the_other_side_raises(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="line 2: preference 'a' is a system and the other side"):
        read_preferences(write(tmp_path, "1\t\tb\ta\ta"))


def test_unknown_preference_raises_with_file_and_line(tmp_path: Path) -> None:
    file = write(tmp_path, "1\t\tA\tB\ta", "1\t\tA\tB\tmaybe")
    with pytest.raises(DataError, match=r"mine\.tsv, line 3: preference 'maybe'"):
        read_preferences(file, texts=TEXTS)


def test_missing_column_raises_and_lists_expected_columns(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("segment,system_a,preference\n1,A,a\n")
    with pytest.raises(DataError, match=r"a comparison needs an item .*found segment, system_a"):
        read_preferences(file)


def test_texts_from_columns_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    header = "item,system_a,system_b,winner,hypothesis_a,hypothesis_b,source,reference\n"
    file.write_text(header + '1,A,B,A,"x, y",z,s,r\n1,A,C,C,"x, y",w,s,r\n')
    result = read_preferences(file)
    assert [s.hypothesis for s in result.segments] == ["x, y", "z", "w"]
    assert result.segments[2].references == ("r",)
    file.write_text(header + "1,A,B,A,x,z,s,r\n1,A,C,C,changed,w,s,r\n")
    with pytest.raises(DataError, match=r"line 3: another text for system 'A'"):
        read_preferences(file)
    file.write_text(header + "1,A,B,A,x,z,s,r\n1,C,D,C,v,w,s,other\n")
    with pytest.raises(DataError, match=r"line 3: another source or reference for item '1'; if"):
        read_preferences(file)
    rows = "0,1,A,B,A,x,z,s,r\n1,1,C,D,C,v,w,s,other\n"  # a document may be named 0
    file.write_text(f"document,{header}{rows}")
    result = read_preferences(file)
    assert result.items == ("0:1", "1:1")
    assert [result.segments[n].references for n in result.left] == [("r",), ("other",)]


def test_names_are_normalized_as_in_judgments(tmp_path: Path) -> None:
    """Surrounding spaces are removed; numbers, including 0, are names."""
    rows = [
        {"item": " 1", "system_a": "A ", "system_b": "B", "winner": " A", "judge": judge}
        for judge in (0, 0.0, " ann", None)
    ]
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = read_preferences(file, texts=TEXTS)
    assert [(system, item) for system, item, _ in result.rows()] == [("A", "1"), ("B", "1")]
    assert result.verdicts.tolist() == [1.0] * 4
    assert (result.judges, result.judge_indices.tolist()) == (("0", "ann"), [0, 0, 1, -1])


def test_missing_text_is_not_the_text_none(tmp_path: Path) -> None:
    row = {"item": 1, "system_a": "A", "system_b": "B", "winner": "A", "mt_a": "x", "mt_b": None}
    file = tmp_path / "mine.jsonl"
    file.write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match=r"line 1: .* is None: expected text; an empty"):
        read_preferences(file)
    file.write_text(json.dumps({**row, "mt_b": 7}) + "\n")
    with pytest.raises(DataError, match=r"line 1: .* is 7: expected text"):
        read_preferences(file)


def test_same_item_names_in_several_language_pairs_raise(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    header, row = "lp,item,system_a,system_b,winner\n", "{},{},A,B,A\n"
    file.write_text(header + row.format("de-en", 1) + row.format("cs-en", 1))
    with pytest.raises(DataError, match=r"several language pairs \(de-en, cs-en\) have the same"):
        read_preferences(file)
    file.write_text(header + row.format("de-en", 1) + row.format("cs-en", 2))
    assert read_preferences(file).lp == ""
    file.write_text(header + row.format("de-en", 1) + row.format("de-en", 2))
    assert read_preferences(file).lp == "de-en"


def test_texts_from_a_test_set_by_line_number(tmp_path: Path) -> None:
    testset = TestSet(systems={"A": ("x", "y"), "B": ("v", "w")}, references=(("r",), ("s",)))
    result = read_preferences(write(tmp_path, "2\t\tA\tB\ta"), texts=testset)
    assert [segment.hypothesis for _, _, segment in result.rows()] == ["y", "w"]


def test_set_without_texts_has_system_scores(tmp_path: Path) -> None:
    result = read_preferences(write(tmp_path, "1\t\tA\tB\ta", "1\t\tB\tC\ta"))
    assert not result.has_texts
    assert result.systems == ("A", "B", "C")


def test_without_ties_counts_ties() -> None:
    pairs = [PairwiseJudgment("1", "A", "B", v) for v in (1.0, 0.5, 0.0, 0.5)]
    result = build_ranking_set(pairs, TEXTS, name="x").without_ties()
    assert result.verdicts.tolist() == [1.0, 0.0]
    assert result.excluded_counts == {"tie": 2}
    with pytest.raises(DataError, match=r"no usable comparison .*tie.* 2"):
        build_ranking_set([pairs[1]] * 2, TEXTS, name="x").without_ties()


def test_scores_of_segments_become_a_matrix() -> None:
    result = build_ranking_set([PairwiseJudgment("1", "A", "B", 1.0)], TEXTS, name="x")
    matrix = result.to_score_matrix(np.arange(5.0), "metric", "system")
    np.testing.assert_array_equal(matrix.values, [[0, 3], [1, 4], [2, np.nan]])
    with pytest.raises(LengthError, match="4 values for 5 translations"):
        result.to_score_matrix(np.arange(4.0), "metric", "system")

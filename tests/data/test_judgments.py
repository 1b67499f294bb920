"""Human scores: valid rows, excluded rows and errors."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from tertium.core.errors import DataError, LengthError, UsageError
from tertium.core.segment import Judgment, Segment
from tertium.data.judgments import JudgmentSet, read_judgments
from tertium.data.testset import TestSet


def judgment(system: str, item: str, score: float, **more: str) -> Judgment:
    return Judgment(Segment(f"{system} {item}"), score, item, system, **more)


def test_a_csv_with_quotes_newlines_bom_and_crlf(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    text = 'system,id,mt,ref,score\r\nA,1,"He said ""no"",\r\nand left",He left,72.5\r\n'
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())
    (row,) = read_judgments(file).judgments
    assert row.segment.hypothesis == 'He said "no",\r\nand left'
    assert (row.system, row.item, row.score) == ("A", "1", 72.5)


def test_jsonl_tsv_and_gzip_give_the_same_judgments(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"system": "A", "segment": 7, "mt": "x", "score": 1}\n')
    packed = gzip.compress(b"System\tSegment\tMT\tScore\nA\t7\tx\t1.0\n")
    (tmp_path / "b.tsv.gz").write_bytes(packed)
    one, two = (read_judgments(tmp_path / name) for name in ("a.jsonl", "b.tsv.gz"))
    assert one.judgments == two.judgments


def test_missing_scores_and_duplicates_are_excluded_and_counted(tmp_path: Path) -> None:
    file = tmp_path / "mine.tsv"
    rows = ["A\t1\tx\t3", "A\t1\tx\t3", "A\t2\ty\tNone", "A\t3\tz\tnan", "A\t4\tw\t", "B\t1\tv\t4"]
    file.write_text("\n".join(["system\titem\tmt\tscore", *rows]) + "\n")
    result = read_judgments(file)
    assert len(result) == 2
    assert result.excluded_counts == {"duplicate row": 1, "no score": 3}
    assert len(read_judgments(file, repeats=True)) == 3


def test_equal_scores_of_two_annotators_are_not_duplicates(tmp_path: Path) -> None:
    file = tmp_path / "mine.tsv"
    file.write_text("system\titem\tmt\tscore\trater\nA\t1\tx\t3\tann\nA\t1\tx\t3\tbob\n")
    assert len(read_judgments(file)) == 2


@pytest.mark.parametrize("bad", ["good", "inf", "3,5", "1e999"])
def test_invalid_score_raises_with_file_and_line(tmp_path: Path, bad: str) -> None:
    file = tmp_path / "mine.tsv"
    file.write_text(f"system\titem\tmt\tscore\nA\t1\tx\t3\nA\t2\ty\t{bad}\n")
    with pytest.raises(DataError, match=r"mine\.tsv, line 3: the score"):
        read_judgments(file)


def test_ragged_row_raises_with_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("system,item,mt,score\nA,1,x,3\nA,2,5\n")
    with pytest.raises(DataError, match=r"mine\.csv, line 3: 3 fields, but the header has 4"):
        read_judgments(file)


def test_missing_score_column_raises_and_lists_columns(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("system,item,mt\nA,1,x\n")
    with pytest.raises(DataError, match=r"no score .*found system, item, mt"):
        read_judgments(file)


def test_json_row_without_score_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text('{"mt": "x"}\n{"mt": "y", "score": null}\n{"mt": "z", "score": 3}\n')
    result = read_judgments(file)
    assert (result.scores.tolist(), result.excluded_counts) == ([3.0], {"no score": 2})
    file.write_text('{"mt": "x"}\n{"mt": "y"}\n')
    with pytest.raises(DataError, match=r"line 1: no score .*found mt"):
        read_judgments(file)


def test_score_column_can_be_named_or_is_found_in_order(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("mt,score,raw\nx,0.5,81\n")
    assert read_judgments(file).scores.tolist() == [0.5]
    assert read_judgments(file, score="raw").scores.tolist() == [81.0]


def test_lowercase_column_wins_over_uppercase(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("mt,score,Score\nx,0.5,81\n")
    assert read_judgments(file).scores.tolist() == [0.5]


def test_texts_come_from_a_test_set_and_unmatched_rows_are_counted(tmp_path: Path) -> None:
    texts = TestSet(systems={"A": ("x", "y"), "B": ("v", "w")}, references=(("r",), ("s",)))
    file = tmp_path / "mine.tsv"
    rows = ["A\t2\t1", "A+B\t1\t2", "C\t1\t3", "A\t3\t4", "A\t0\t5", "A\tlast\t6"]
    file.write_text("\n".join(["system\titem\tscore", *rows]) + "\n")
    result = read_judgments(file, testset=texts)
    assert [s.hypothesis for s in result.segments] == ["y", "x"]
    assert result.excluded_counts == {"unknown system": 1, "no matching segment": 3}


def test_no_usable_judgment_raises_with_reason(tmp_path: Path) -> None:
    texts = TestSet(systems={"A": ("x",)})
    file = tmp_path / "mine.tsv"
    file.write_text("system\titem\tscore\nB\t1\t3\n")
    with pytest.raises(DataError, match=r"no usable judgment \(1 excluded; unknown system: 1\)"):
        read_judgments(file, testset=texts)


def test_judgment_set_accepts_only_judgments() -> None:
    for strange in ("a", None, {"score": 1}):
        with pytest.raises(UsageError, match="mine: expected judgments, got"):
            JudgmentSet(name="mine", judgments=[strange])  # type: ignore[arg-type]
    fine = Judgment(Segment("fine"), 80.0, item="1", system="A")
    listed = JudgmentSet(name="mine", judgments=[fine])  # type: ignore[arg-type]
    assert listed == JudgmentSet(name="mine", judgments=(fine,))


def test_row_without_text_needs_item_and_system(tmp_path: Path) -> None:
    file = tmp_path / "mine.tsv"
    file.write_text("system\tscore\nA\t3\n")
    with pytest.raises(DataError, match=r"expected a translation .*, or an item and a system"):
        read_judgments(file)


def test_matrix_averages_repeated_judgments_and_has_nan_elsewhere() -> None:
    rows = (judgment("A", "1", 2.0), judgment("A", "1", 4.0), judgment("B", "2", 1.0))
    matrix = JudgmentSet(name="x", judgments=rows).matrix()
    assert matrix.systems == ("A", "B")
    assert matrix.items == ("1", "2")
    np.testing.assert_array_equal(matrix.values, [[3.0, np.nan], [np.nan, 1.0]])


def test_joint_system_is_one_segment_row_and_counts_for_both_systems() -> None:
    rows = (judgment("A", "1", 1.0), judgment("B", "2", 3.0), judgment("A+B", "3", 5.0))
    result = JudgmentSet(name="x", judgments=rows)
    assert result.systems == ("A", "B")
    assert result.matrix().systems == ("A", "B", "A+B")
    assert int((~np.isnan(result.matrix().values)).sum()) == 3
    split = result.matrix("system")
    assert split.systems == ("A", "B")
    np.testing.assert_array_equal(split.system_scores, [3.0, 4.0])


def test_name_with_a_plus_sign_is_not_split() -> None:
    rows = (judgment("A", "1", 1.0), judgment("C++", "1", 3.0))
    assert JudgmentSet(name="x", judgments=rows).systems == ("A", "C++")


def test_one_system_only_gives_a_matrix_of_one_row() -> None:
    rows = (judgment("A", "1", 1.0), judgment("A", "2", 3.0))
    assert JudgmentSet(name="x", judgments=rows).matrix().values.shape == (1, 2)


def test_unpublished_systems_give_one_row_with_a_column_for_each_judgment() -> None:
    rows = (judgment("", "1", 1.0), judgment("", "1", 3.0), judgment("", "2", 2.0))
    matrix = JudgmentSet(name="x", judgments=rows).matrix()
    assert matrix.values.tolist() == [[1.0, 3.0, 2.0]]
    assert matrix.items == ("1", "1#2", "2")


def test_unnamed_items_are_identified_by_their_texts(tmp_path: Path) -> None:
    file = tmp_path / "mine.tsv"
    rows = [
        ("B", "two", "b2", "20", "talk"),
        ("A", "one", "a1", "90", "news"),
        ("B", "one", "b1", "50", "news"),
        ("A", "two", "a2", "80", "talk"),
        ("A", "one", "a1", "70", "news"),  # repeated: averaged
        ("A", "one", "another", "60", "news"),  # a second segment of the same text
    ]
    lines = ("\t".join(row) for row in [("system", "ref", "mt", "score", "domain"), *rows])
    file.write_text("\n".join(lines) + "\n")
    judgment_set = read_judgments(file)
    assert judgment_set.items == ("#1", "#2", "#3")
    assert judgment_set.systems == ("B", "A")
    np.testing.assert_array_equal(judgment_set.matrix().values, [[20, 50, np.nan], [80, 80, 60]])
    assert judgment_set.labels()["domain"] == {"#1": "talk", "#2": "news", "#3": "news"}


def test_name_with_two_texts_of_a_system_is_two_items(tmp_path: Path) -> None:
    file = tmp_path / "mine.tsv"
    rows = [
        f"{system}\t{n}\t{domain}\t{domain} {n}\t{system}\t{score}\n"
        for system, score in (("A", 10), ("B", 20))
        for n, domain in ((0, "news"), (1, "news"), (0, "talk"))
    ]
    file.write_text("system\tid\tdomain\tref\tmt\tscore\n" + "".join(rows))
    judgment_set = read_judgments(file)
    assert judgment_set.items == ("0#1", "1", "0#2")
    assert judgment_set.labels()["domain"] == {"0#1": "news", "1": "news", "0#2": "talk"}
    np.testing.assert_array_equal(judgment_set.matrix().values, [[10] * 3, [20] * 3])


def test_human_translation_belongs_to_the_item_of_its_source(tmp_path: Path) -> None:
    """It has fewer references than the others, but the same source."""
    file = tmp_path / "mine.jsonl"
    renamed = [
        {"system": s, "src": src, "mt": f"{s} {src}", "score": 1, "id": "x"}
        | ({} if s == "human" else {"ref": f"r {src}"})
        for s in ("A", "human", "B")
        for src in ("one", "two")
    ]
    unnamed = [{key: row[key] for key in row if key != "id"} for row in renamed]
    for rows, items in ((renamed, ("x#1", "x#2")), (unnamed, ("#1", "#2"))):
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        judgment_set = read_judgments(file)
        assert judgment_set.items == items
        assert not np.isnan(judgment_set.matrix().values).any()


def test_source_with_two_references_is_two_items(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    rows = [
        {"system": s, "src": "Yes.", "mt": "Ja.", "ref": ref, "score": score}
        for s, score in (("A", 10), ("B", 20))
        for ref in (("Ja.", "Doch.") if s == "A" else ("Doch.", "Ja."))
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    judgment_set = read_judgments(file)
    assert judgment_set.items == ("#1", "#2")
    references = {(j.item, j.segment.references) for j in judgment_set.judgments}
    assert references == {("#1", ("Ja.",)), ("#2", ("Doch.",))}


def test_items_are_renamed_only_in_the_language_pair_with_repeats(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    rows = ("de-en,x,1", "de-en,y,2", "cs-en,x,1", "cs-en,y,1")
    file.write_text("lp,doc,item,system,score\n" + "".join(f"{row},A,1\n" for row in rows))
    pairs = read_judgments(file).split_by_language_pair()
    assert pairs["de-en"].items == ("1", "2")
    assert pairs["cs-en"].items == ("x:1", "y:1")


def test_score_column_may_be_named_in_the_case_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("mt,score,DA_z\nx,0.5,81\n")
    assert read_judgments(file, score="DA_z").scores.tolist() == [81.0]


def test_values_of_another_length_raise() -> None:
    result = JudgmentSet(name="x", judgments=(judgment("A", "1", 1.0),))
    with pytest.raises(LengthError, match="2 values for 1 translations"):
        result.to_score_matrix(np.zeros(2), "metric")


def test_split_by_language_pair(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("lp,mt,score\nde-en,x,1\ncs-en,y,2\nde-en,z,3\n")
    result = read_judgments(file)
    assert result.lp == ""
    assert {lp: len(part) for lp, part in result.split_by_language_pair().items()} == {
        "de-en": 2,
        "cs-en": 1,
    }


def test_translations_without_reference_are_dropped_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    have, lack = Segment("a", None, ("b",)), Segment("b")
    judgment_set = JudgmentSet(name="x", judgments=(Judgment(have, 1.0), Judgment(lack, 2.0)))
    remaining = judgment_set.drop_without_references()
    assert (remaining.segments, remaining.excluded_counts) == ((have,), {"no reference": 1})
    assert caplog.messages == ["x: 1 of 2 translations have no reference"]
    without = JudgmentSet(name="x", judgments=(Judgment(lack, 2.0),))
    assert without.drop_without_references() is without
    assert remaining.drop_without_references() is remaining

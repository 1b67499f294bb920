"""Human scores: valid rows, excluded rows, errors, and raters that are standardized."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from tests.builders import Content, make_judgment_set, write_file

from tertium.core.errors import DataError, UsageError
from tertium.core.segment import Judgment, Segment
from tertium.data.judgments import JudgmentSet, read_judgments
from tertium.data.ratings import average_ratings, standardize_ratings

HEADER = "system\titem\tmt\tscore"


def read(folder: Path, content: Content, name: str = "mine.csv", **options: object) -> JudgmentSet:
    return read_judgments(write_file(folder / name, content), **options)


def read_rows(folder: Path, *rows: str, header: str = HEADER, **options: object) -> JudgmentSet:
    """Read rows of a TSV file."""
    return read(folder, "\n".join([header, *rows, ""]), "mine.tsv", **options)


def test_tables_and_records_give_the_same_judgments(tmp_path):
    text = 'system,id,mt,ref,score\r\nA,1,"He said ""no"",\r\nand left",He left,72.5\r\n'
    (row,) = read(tmp_path, b"\xef\xbb\xbf" + text.encode()).judgments
    assert row.segment.hypothesis == 'He said "no",\r\nand left'
    assert (row.system, row.item, row.score) == ("A", "1", 72.5)
    one = read(tmp_path, [{"system": "A", "segment": 7, "mt": "x", "score": 1}], "a.jsonl")
    packed = gzip.compress(b"System\tSegment\tMT\tScore\nA\t7\tx\t1.0\n")
    assert one.judgments == read(tmp_path, packed, "b.tsv.gz").judgments


def test_missing_scores_and_duplicates_are_excluded_and_counted(tmp_path):
    rows = ["A\t1\tx\t3", "A\t1\tx\t3", "A\t2\ty\tNone", "A\t3\tz\tnan", "A\t4\tw\t", "B\t1\tv\t4"]
    result = read_rows(tmp_path, *rows)
    assert len(result) == 2
    assert result.excluded_counts == {"duplicate row": 1, "no score": 3}
    assert len(read_rows(tmp_path, *rows, repeats=True)) == 3
    rated_twice = ["A\t1\tx\t3\tann", "A\t1\tx\t3\tbob"]
    assert len(read_rows(tmp_path, *rated_twice, header=f"{HEADER}\trater")) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *(
            (f"system,item,mt,score\nA,1,x,3\nA,2,y,{bad}\n", r"mine\.csv, line 3: the score")
            for bad in ("good", "inf", '"3,5"', "1e999")
        ),
        ("system,item,mt,score\nA,1,x,3\nA,2,5\n", r"line 3: 3 fields, but the header has 4"),
        ("system,item,mt\nA,1,x\n", r"no score .*found system, item, mt"),
        ("system,score\nA,3\n", "expected a translation .*, or an item and a system"),
    ],
)
def test_invalid_rows_raise_with_file_and_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


def test_scores_are_read_by_name_and_counted_if_missing(tmp_path):
    rows = [{"mt": "x"}, {"mt": "y", "score": None}, {"mt": "z", "score": 3}]
    result = read(tmp_path, rows, "mine.jsonl")
    assert (result.scores.tolist(), result.excluded_counts) == ([3.0], {"no score": 2})
    with pytest.raises(DataError, match=r"line 1: no score .*found mt"):
        read(tmp_path, [{"mt": "x"}, {"mt": "y"}], "mine.jsonl")
    text = "mt,score,Score,raw,DA_z\nx,0.5,81,7,9\n"
    assert read(tmp_path, text).scores.tolist() == [0.5]  # lowercase before uppercase
    assert read(tmp_path, text, score="raw").scores.tolist() == [7.0]
    assert read(tmp_path, text, score="DA_z").scores.tolist() == [9.0]


def test_judgment_set_accepts_only_judgments():
    for strange in ("a", None, {"score": 1}):
        with pytest.raises(UsageError, match="mine: expected judgments, got"):
            JudgmentSet(name="mine", judgments=[strange])
    fine = Judgment(Segment("fine"), 80.0, item="1", system="A")
    listed = JudgmentSet(name="mine", judgments=[fine])
    assert listed == JudgmentSet(name="mine", judgments=(fine,))


def test_matrix_averages_repeated_judgments_and_has_nan_elsewhere():
    matrix = make_judgment_set(("A", "1", 2.0), ("A", "1", 4.0), ("B", "2", 1.0)).matrix()
    assert matrix.systems == ("A", "B")
    assert matrix.items == ("1", "2")
    np.testing.assert_array_equal(matrix.values, [[3.0, np.nan], [np.nan, 1.0]])
    matrix = make_judgment_set(("", "1", 1.0), ("", "1", 3.0), ("", "2", 2.0)).matrix()
    assert matrix.values.tolist() == [[1.0, 3.0, 2.0]]
    assert matrix.items == ("1", "1#2", "2")


def test_joint_system_is_one_segment_row_and_counts_for_both_systems():
    result = make_judgment_set(("A", "1", 1.0), ("B", "2", 3.0), ("A+B", "3", 5.0))
    assert result.systems == ("A", "B")
    assert result.matrix().systems == ("A", "B", "A+B")
    assert int((~np.isnan(result.matrix().values)).sum()) == 3
    split = result.matrix("system")
    assert split.systems == ("A", "B")
    np.testing.assert_array_equal(split.system_scores, [3.0, 4.0])
    assert make_judgment_set(("A", "1", 1.0), ("C++", "1", 3.0)).systems == ("A", "C++")


def test_unnamed_items_are_identified_by_their_texts(tmp_path):
    judgment_set = read_rows(
        tmp_path,
        "B\ttwo\tb2\t20\ttalk",
        "A\tone\ta1\t90\tnews",
        "B\tone\tb1\t50\tnews",
        "A\ttwo\ta2\t80\ttalk",
        "A\tone\ta1\t70\tnews",  # repeated: averaged
        "A\tone\tanother\t60\tnews",  # a second segment of the same text
        header="system\tref\tmt\tscore\tdomain",
    )
    assert judgment_set.items == ("#1", "#2", "#3")
    assert judgment_set.systems == ("B", "A")
    np.testing.assert_array_equal(judgment_set.matrix().values, [[20, 50, np.nan], [80, 80, 60]])
    assert judgment_set.labels()["domain"] == {"#1": "talk", "#2": "news", "#3": "news"}


def test_name_with_two_texts_of_a_system_is_two_items(tmp_path):
    rows = [
        f"{system}\t{n}\t{domain}\t{domain} {n}\t{system}\t{score}"
        for system, score in (("A", 10), ("B", 20))
        for n, domain in ((0, "news"), (1, "news"), (0, "talk"))
    ]
    judgment_set = read_rows(tmp_path, *rows, header="system\tid\tdomain\tref\tmt\tscore")
    assert judgment_set.items == ("0#1", "1", "0#2")
    assert judgment_set.labels()["domain"] == {"0#1": "news", "1": "news", "0#2": "talk"}
    np.testing.assert_array_equal(judgment_set.matrix().values, [[10] * 3, [20] * 3])


@pytest.mark.parametrize(("name", "items"), [("x", ("x#1", "x#2")), ("", ("#1", "#2"))])
def test_human_translation_belongs_to_the_item_of_its_source(tmp_path, name, items):
    """It has fewer references than the others, but the same source."""
    rows = [
        {"system": s, "src": src, "mt": f"{s} {src}", "score": 1}
        | ({} if s == "human" else {"ref": f"r {src}"})
        | ({"id": name} if name else {})
        for s in ("A", "human", "B")
        for src in ("one", "two")
    ]
    judgment_set = read(tmp_path, rows, "mine.jsonl")
    assert judgment_set.items == items
    assert not np.isnan(judgment_set.matrix().values).any()


def test_source_with_two_references_is_two_items(tmp_path):
    rows = [
        {"system": s, "src": "Yes.", "mt": "Ja.", "ref": ref, "score": score}
        for s, score in (("A", 10), ("B", 20))
        for ref in (("Ja.", "Doch.") if s == "A" else ("Doch.", "Ja."))
    ]
    judgment_set = read(tmp_path, rows, "mine.jsonl")
    assert judgment_set.items == ("#1", "#2")
    references = {(j.item, j.segment.references) for j in judgment_set.judgments}
    assert references == {("#1", ("Ja.",)), ("#2", ("Doch.",))}


def test_items_are_renamed_only_in_the_language_pair_with_repeats(tmp_path):
    rows = [f"{row},A,1\n" for row in ("de-en,x,1", "de-en,y,2", "cs-en,x,1", "cs-en,y,1")]
    result = read(tmp_path, "lp,doc,item,system,score\n" + "".join(rows))
    assert result.lp == ""
    pairs = result.split_by_language_pair()
    assert {lp: part.items for lp, part in pairs.items()} == {
        "de-en": ("1", "2"),
        "cs-en": ("x:1", "y:1"),
    }


def test_translations_without_reference_are_dropped_and_counted(caplog):
    have, lack = Segment("a", None, ("b",)), Segment("b")
    judgment_set = JudgmentSet(name="x", judgments=(Judgment(have, 1.0), Judgment(lack, 2.0)))
    remaining = judgment_set.drop_without_references()
    assert (remaining.segments, remaining.excluded_counts) == ((have,), {"no reference": 1})
    assert caplog.messages == ["x: 1 of 2 translations have no reference"]
    without = JudgmentSet(name="x", judgments=(Judgment(lack, 2.0),))
    assert without.drop_without_references() is without
    assert remaining.drop_without_references() is remaining


def ratings(*rows: tuple[str, str, str, float]) -> JudgmentSet:
    rows_as_judgments = (
        Judgment(Segment(f"{system}{item}", references=("r",)), score, item, system, annotator)
        for annotator, system, item, score in rows
    )
    return JudgmentSet(name="x", judgments=tuple(rows_as_judgments))


def test_z_scores_use_each_annotators_mean_and_sample_deviation():
    rows = [("ann", "A", "1", 10.0), ("ann", "B", "1", 20.0), ("ann", "A", "2", 30.0)]
    rows += [("bob", "A", "1", 90.0), ("bob", "B", "1", 100.0)]
    result = standardize_ratings(ratings(*rows))
    # ann: mean 20, sd sqrt((100 + 0 + 100) / 2) = 10; bob: mean 95, sd sqrt(50)
    expected = [-1.0, 0.0, 1.0, -5 / np.sqrt(50), 5 / np.sqrt(50)]
    np.testing.assert_allclose(result.scores, expected)


def test_constant_or_unnamed_annotators_are_excluded_and_counted():
    rows = [("ann", "A", "1", 1.0), ("ann", "B", "1", 2.0), ("bob", "A", "1", 50.0)]
    rows += [("cy", "A", "1", 3.0), ("cy", "B", "1", 3.0), ("", "A", "1", 9.0)]
    result = standardize_ratings(ratings(*rows))
    assert len(result) == 2
    assert result.excluded_counts == {
        "annotator with fewer than two different ratings": 3,
        "no annotator": 1,
    }


def test_averages_are_over_all_ratings_of_one_translation():
    rows = [("ann", "A", "1", 10.0), ("bob", "A", "1", 40.0), ("ann", "B", "1", 5.0)]
    result = average_ratings(ratings(*rows))
    assert [(j.system, j.score, j.annotator) for j in result.judgments] == [
        ("A", 25.0, ""),
        ("B", 5.0, ""),
    ]

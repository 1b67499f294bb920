"""Error annotations in the layouts of campaigns, and invalid ones."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from tests.builders import read_one, write_file

from tertium.core.errors import DataError, LengthError
from tertium.core.segment import Segment
from tertium.core.spans import ErrorAnnotations, Span, UnlocatedError
from tertium.data.judgments import is_annotated, read_error_annotations, read_judgments

TEXT = "the cat sat"
SEGMENT = Segment(TEXT, "die Katze")


def read(record: dict[str, Any]) -> ErrorAnnotations:
    result = read_error_annotations(record, SEGMENT, "file, line 1")
    assert result is not None
    return result


def test_the_same_errors_are_read_from_every_layout():
    expected = ErrorAnnotations((Span(4, 7, severity="major"), Span(8, 11, severity="minor")))
    ours = [
        {"start": 4, "end": 7, "severity": "major"},
        {"start": 8, "end": 11, "severity": "Minor"},
    ]
    esa = [
        {"start_i": 4, "end_i": 6, "severity": "major", "error_type": None},
        {"start_i": 8, "end_i": 10, "severity": "minor"},
    ]
    columns = {"start_indices": "4 8", "end_indices": "7 11", "error_types": "major minor"}
    assert read({"spans": ours}) == expected
    assert read({"esa_spans": esa}) == expected
    assert read({"errors": json.dumps(esa)}) == expected
    assert read(columns) == expected
    assert read({"spans": [span.as_dict() for span in expected.spans]}) == expected


def test_fields_and_lists_of_written_spans():
    span = Span(4, 7, "hypothesis", "major", "numbers", "checks", 0.5, "3 in the source")
    assert read({"spans": [span.as_dict()]}).spans == (span,)
    none = {"start_indices": "-1", "end_indices": "-1", "error_types": "no-error"}
    assert read(none) == read({"spans": []}) == ErrorAnnotations()
    assert not is_annotated({"score": 1})
    assert is_annotated(none)
    entry = {"start_i": 0, "end_i": 2, "severity": "minor"}
    path = {**entry, "error_type": ["Accuracy", "Mistranslation"]}
    assert read({"errors": [path]}).spans == (
        Span(0, 3, severity="minor", category="Accuracy/Mistranslation"),
    )
    with pytest.raises(LengthError, match="2 start_indices, 1 end_indices, 2 error_types"):
        read({"start_indices": "0 4", "end_indices": "3", "error_types": "major minor"})


def test_unlocated_errors_and_source_errors():
    record = {
        "spans": [{"start": 0, "end": 3, "side": "source", "severity": "critical", "rater": 0}],
        "missing": [{"severity": "minor", "category": "Accuracy/Omission", "rater": 1}],
        "raters": 2,
    }
    span = Span(0, 3, "source", "critical", rater="0")
    assert read(record) == ErrorAnnotations(
        (span,), (UnlocatedError("minor", "Accuracy/Omission", "1"),), 2
    )
    missing = {"start_i": "missing", "end_i": "missing", "severity": "minor"}
    assert read({"esa_spans": [missing]}).missing == (UnlocatedError("minor"),)
    error = {"start": 0, "end": 3, "severity": "major", "is_source_error": True}
    assert read({"errors": [error]}).spans[0].side == "source"


@pytest.mark.parametrize("severity", [{}, {"severity": None}, {"severity": ""}])
def test_errors_without_a_severity_are_of_unknown_severity(severity):
    span, missing = {"start": 4, "end": 7, **severity}, {"category": "x", **severity}
    record = {"spans": [span], "missing": [missing]}
    assert read(record) == ErrorAnnotations((Span(4, 7),), (UnlocatedError("bad", "x"),))
    with pytest.raises(DataError, match="an error without start, severity and category"):
        read({"spans": [{}]})


@pytest.mark.parametrize(("record", "message"), [
    ({"spans": [{"start": 4, "end": 12, "severity": "major"}]}, "ends at 12, but its hyp"),
    ({"spans": [{"start": 4, "end": 3, "severity": "major"}]}, "line 1: a span from 4 to 3"),
    ({"spans": [{"start": 0, "end": 3, "severity": "huge"}]}, "line 1: unknown severity"),
    ({"spans": [{"start": 0, "end": 3, "severity": "major", "side": "x"}]}, "side of a span"),
    ({"spans": [{"start": 0.5, "end": 3, "severity": "major"}]},
     "line 1: start is 0.5; expected a whole number"),
    ({"spans": "[{"}, "line 1, spans: not JSON"),
    ({"spans": 3}, "expected a list of objects"),
    ({"spans": [], "raters": 0}, "0 raters"),
])  # fmt: skip
def test_invalid_annotations_raise_with_location(record, message):
    with pytest.raises(DataError, match=message):
        read(record)


def test_overlapping_spans_are_kept_with_one_warning(tmp_path, caplog):
    spans = [{"start": s, "end": s + 7, "severity": "minor"} for s in (0, 4)]
    rows = [{"mt": TEXT, "system": s, "segment": 1, "score": 1, "spans": spans} for s in "AB"]
    with caplog.at_level(logging.WARNING):
        judgment_set = read_judgments(write_file(tmp_path / "mine.jsonl", rows))
    assert [record.getMessage() for record in caplog.records] == [
        "mine: 2 spans overlap another span of the same rater"
    ]
    assert [len(j.error_annotations.spans) for j in judgment_set.judgments] == [2, 2]
    read_judgments(write_file(tmp_path / "one.jsonl", rows[:1]))
    assert caplog.messages[-1] == "one: 1 span overlaps another span of the same rater"


def test_span_weights_are_the_score_if_there_is_no_other(tmp_path):
    rows = [
        {"mt": TEXT, "segment": 1, "spans": [{"start": 0, "end": 3, "severity": "major"}]},
        {"mt": TEXT + ".", "segment": 2, "spans": []},
        {"mt": TEXT + "!", "segment": 3, "spans": [{"start": 0, "end": 3, "severity": "bad"}]},
    ]
    assert read_judgments(write_file(tmp_path / "a.jsonl", rows)).scores.tolist() == [-5, 0, -1]


def test_numbers_that_repeat_across_documents_are_distinct_items(tmp_path):
    rows = [
        {"mt": f"{doc} {n}", "src": f"{doc}{n}", "doc": doc, "id": n, "system": "A", "score": n}
        for doc in ("x", "y")
        for n in (1, 2)
    ]
    twice = {**rows[0], "src": "another", "mt": "another"}
    judgment_set = read_judgments(write_file(tmp_path / "a.jsonl", [*rows, twice]))
    assert judgment_set.items == ("x:1#1", "x:2", "y:1", "y:2", "x:1#2")
    context = judgment_set.judgments[1].segment.context
    assert context.document.name == "x"
    assert [s.hypothesis for s in context.before(5)] == ["x 1"]


ESA_ROW = {"langs": "en-cs", "line_id": 7, "src": "die Katze", "tgt": TEXT, "doc_id": "d"}
ESA_ROW |= {"system": "A"}


def test_esa_raters_are_averaged_and_spans_keep_their_rater(tmp_path):
    spans = [{"start_i": 4, "end_i": 6, "severity": "major"}]
    rows = [
        {**ESA_ROW, "esa_score": "60", "esa_spans": spans, "annotator": "r1"},
        {**ESA_ROW, "esa_score": 90, "esa_spans": [], "annotator": "r2"},
    ]
    result = read_one(write_file(tmp_path / "wmt24_esa.jsonl", rows))
    (judgment,) = result.judgments
    assert (result.lp, judgment.item, judgment.document, judgment.score) == ("en-cs", "7", "d", 75)
    assert judgment.error_annotations == ErrorAnnotations(
        (Span(4, 7, severity="major", rater="r1"),), (), 2
    )
    unified = {"doc_id": "d_#_7", "src_text": "die Katze", "tgt_text": {"A": TEXT}}
    ratings = [{"score": 60, "annotator": "r1", "errors": spans}]
    ratings += [{"score": 90, "annotator": "r2", "errors": []}]
    unified["scores"] = {"A": ratings}
    other = read_one(write_file(tmp_path / "wmt24.en-cs.jsonl", [unified]))
    assert other.lp == "en-cs"
    assert other.error_annotations() == result.error_annotations()
    assert other.matrix().values.tolist() == result.matrix().values.tolist()


def test_appraise_quality_control_rows_are_excluded(tmp_path):
    spans = '"[{""start_i"":8,""end_i"":11,""severity"":""minor"",""error_type"":null}]"'
    rows = [
        "u1,tutorial1,1000001,TGT,eng,jpn,0,ende-tutorial1,False,[],1.0,1.0",
        "u1,NTTSU,688,TGT,eng,jpn,98,doc1,False,[],1.0,2.0",
        f"u1,Aya23,688,TGT,eng,jpn,70,doc1,False,{spans},1.0,2.0",
        f"u1,Aya23,688,BAD,eng,jpn,10,doc1#bad,False,{spans},1.0,2.0",
    ]
    result = read_one(write_file(tmp_path / "wave2.csv", "\n".join([*rows, ""])))
    assert result.excluded_counts == {"quality-control row": 2}
    assert result.lp == "en-ja"
    assert result.matrix().values.tolist() == [[98.0], [70.0]]
    assert result.error_annotations()["Aya23", "688"].spans == (
        Span(8, 12, severity="minor", rater="u1"),
    )


def test_span_task_table_is_read(tmp_path):
    header = "doc_id segment_id source_lang target_lang system_id source_segment hypothesis_segment"
    header += " start_indices end_indices error_types"
    rows = [["d", "1", "en", "cs", "A", "x", TEXT, "0 missing", "3 missing", "minor major"]]
    rows += [["d", "2", "en", "cs", "A", "y", TEXT, "-1", "-1", "no-error"]]
    lines = ["\t".join(header.split()), *("\t".join(row) for row in rows)]
    result = read_one(write_file(tmp_path / "task2.tsv", "\n".join([*lines, ""])))
    assert result.lp == "en-cs"
    assert result.matrix().values.tolist() == [[-6.0, 0.0]]
    assert result.error_annotations()["A", "1"].missing == (UnlocatedError("major"),)

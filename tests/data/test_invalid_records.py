"""Records with invalid fields: errors name file and line, and a few such rows are left out."""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders import write_file

from tertium.core.errors import DataError
from tertium.data.human_data_files import read_human_data, read_rater_judgments
from tertium.data.records import read_integer

ESA = {"langs": "eng-deu", "line_id": 1, "system": "A", "annotator": "r"}
ESA |= {"src": "a", "tgt": "The cat"}
TEXTS = {"A": "the cat", "refA": "r"}
WMT25 = {"doc_id": "en-cs_#_news_#_d_#_0", "src_text": "s", "tgt_text": TEXTS}


def esa_span(**values: Any) -> dict[str, Any]:
    span = {"start_i": 0, "end_i": 2, "severity": "minor", **values}
    return {**ESA, "esa_score": 50, "esa_spans": [span]}


def span_task(**values: Any) -> dict[str, Any]:
    columns = {"start_indices": "0", "end_indices": "2", "error_types": "minor"}
    return {"hypothesis_segment": "the cat", "system_id": "A", "segment_id": 1, **columns, **values}


INVALID_SPAN_TASKS = [
    (span_task(source_lang="de"), "expected source_lang and target_lang"),
    (span_task(start_indices="--5"), "start is '--5'; expected a whole number"),
    (span_task(start_indices="9" * 5000, end_indices="9" * 5000), "start is '999"),
]
INVALID = [
    ({**WMT25, "scores": {"A": 5}}, "A: scores is 5; expected a list of objects"),
    ({**WMT25, "scores": {"A": [5]}}, "A: scores is \\[5\\]; expected a list of objects"),
    ({**WMT25, "scores": {"A": {"score": 5}}}, "'score': expected human1, errors1, annotator1"),
    ({**WMT25, "scores": [5]}, "scores is \\[5\\]; expected an object"),
    ({**WMT25, "scores": None}, "scores is None; expected an object"),
    ({**WMT25, "scores": {}, "tgt_text": 5}, "tgt_text is 5; expected an object"),
    (esa_span(start_i="--5"), "start is '--5'; expected a whole number"),
    (esa_span(end_i="9" * 5000), "end_i is '999"),
    (esa_span(chance="x"), "the score 'x' is not a number"),
    (esa_span(chance=2), "the chance of a span is 2.0; expected 0 to 1"),
    ({**ESA, "esa_score": 5, "esa_spans": [5]}, "esa_spans is \\[5\\]; expected a list of objects"),
]


@pytest.mark.parametrize(("record", "message"), INVALID)
def test_invalid_rows_raise_and_a_few_are_left_out_and_counted(record, message, tmp_path, caplog):
    file = write_file(tmp_path / "campaign.jsonl", [record])
    with pytest.raises(DataError, match=rf"campaign.jsonl, line 1.*{message}"):
        read_human_data(file)
    good = [esa_span() | {"line_id": n} for n in (1, 2)]
    if "doc_id" in record:
        rating = {"human1": 70.0, "errors1": [], "annotator1": "x"}
        good = [{**WMT25, "scores": {"A": rating}, "doc_id": f"d_#_{n}"} for n in (1, 2)]
    (ratings,) = read_rater_judgments(write_file(file, [*good, record]))
    assert len(ratings) == 2
    assert ratings.excluded_counts == {"unreadable row": 1}
    assert "unreadable rows left out: 1 of 3; first:" in caplog.text
    assert "campaign.jsonl, line 3" in caplog.text


@pytest.mark.parametrize(("record", "message"), INVALID_SPAN_TASKS)
def test_invalid_rows_of_span_tasks_name_file_and_line(record, message, tmp_path):
    file = tmp_path / "campaign.tsv"
    file.write_text("\n".join("\t".join(map(str, row)) for row in (record, record.values())))
    with pytest.raises(DataError, match=rf"campaign.tsv, line 2.*{message}"):
        read_human_data(file)


def test_ratings_of_wmt25_are_read(tmp_path):
    errors = [{"start_i": 4, "end_i": 6, "severity": "major"}]
    scores = {
        "A": {"human1": 71.0, "errors1": errors, "annotator1": "x", "human2": 60.0, "errors2": []},
        "refA": {"human2": 90.0, "errors2": [], "annotator2": "y"},
    }
    file = write_file(tmp_path / "wmt25.jsonl", [{**WMT25, "scores": scores}])
    (ratings,) = read_rater_judgments(file)
    assert [(j.system, j.score, j.annotator) for j in ratings.judgments] == [
        ("A", 71.0, "x"), ("A", 60.0, ""), ("refA", 90.0, "y"),
    ]  # fmt: skip
    first = ratings.judgments[0]
    assert first.lp == "en-cs"
    assert (first.document, first.item) == ("d", "0")
    assert first.segment.references == ("r",)
    assert ratings.judgments[-1].segment.references == ()
    assert first.error_annotations.spans[0].of("the cat") == "cat"


def test_three_letter_codes_match_two_letter_codes(tmp_path):
    file = write_file(tmp_path / "esa.jsonl", [esa_span()])
    for lp in ("en-de", "eng-deu", "ende"):
        (entry,) = read_human_data(file, lps=[lp])
        assert entry.lp == "en-de"
    assert read_human_data(file, lps=["de-en"]) == []


def test_appraise_without_documents_and_with_python_literals(tmp_path):
    file = tmp_path / "direct.csv"
    file.write_text("r,A,1,TGT,eng,deu,35\nr,B,1,TGT,eng,deu,40\nr,C,1\n", encoding="utf-8")
    (ratings,) = read_rater_judgments(file)
    assert ratings.scores.tolist() == [35.0, 40.0]
    assert ratings.excluded_counts == {"unreadable row": 1}
    spans = "\"{'start_i': 0, 'end_i': 3, 'severity': 'major'}\""
    file.write_text(f"r,A,1,TGT,eng,deu,35,news,False,{spans}\n", encoding="utf-8")
    (ratings,) = read_rater_judgments(file)
    (judgment,) = ratings.judgments
    assert len(judgment.error_annotations.spans) == 1


def test_long_values_raise_with_line(tmp_path):
    file = tmp_path / "long.csv"
    file.write_text("a" * (17 << 20) + ",b\n1,2\n")
    with pytest.raises(DataError, match=r"long\.csv, line 1: more than 16 MB in one line"):
        read_human_data(file)
    file = tmp_path / "rankings.csv"
    header = "srclang,trglang,srcIndex,judgeID,system1Id,system1rank,system2Id,system2rank"
    file.write_text(f"{header}\nGerman,English,1,r,A,{'9' * 5000},B,1\n")
    with pytest.raises(DataError, match=r"line 2: the rank of 'A' is '9999.* a whole number"):
        read_human_data(file)


def test_numbers_are_validated():
    assert read_integer("-1", "start", "line 1") == -1
    for value in (True, 1.0, None, "", "1_0", "--1", "1" * 19):
        with pytest.raises(DataError, match=r"line 1: start is .*; expected a whole number"):
            read_integer(value, "start", "line 1")

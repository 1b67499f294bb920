"""Exports of annotation tools; the layouts are those of the tools, the sentences are ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.builders import write_file

from tertium.core.errors import DataError, UsageError
from tertium.core.spans import Span, UnlocatedError
from tertium.data.formats import Source
from tertium.data.human_data_files import read_human_data, read_rater_judgments
from tertium.data.judgments import JudgmentSet


def read_ratings(path: Path) -> JudgmentSet:
    (judgments,) = read_rater_judgments(path)
    return judgments


ITEM = {"item_id": "doc_1", "src": "A cat.", "tgt": {"A": "Ein Hund.", "B": "Eine Katze."}}
MARK = {"start_i": 4, "end_i": 7, "category": None, "severity": "major"}
RATING = {"A": {"score": 20, "error_spans": [MARK]}, "B": {"score": 90, "error_spans": []}}
PEARMUT = {"user_id": "ann", "item_i": 0, "annotation": [RATING], "item": [ITEM]}


def write_lines(path: Path, *records: Any) -> Path:
    return write_file(path, records)


def write_export(path: Path, tasks: Any) -> Path:
    return write_file(path / "export.json", json.dumps(tasks))


def test_pearmut_ratings_have_texts_and_spans_with_inclusive_ends(tmp_path):
    path = write_lines(tmp_path / "demo.jsonl", PEARMUT, PEARMUT | {"user_id": "bob"})
    judgments = read_ratings(path).judgments
    first, second = judgments[:2]
    assert (first.system, first.score, first.item, first.annotator) == ("A", 20.0, "doc_1", "ann")
    assert first.segment.source == "A cat."
    assert first.error_annotations.spans[0].of("Ein Hund.") == "Hund"
    assert second.error_annotations.spans == ()
    (entry,) = read_human_data(path)  # raters are averaged
    assert len(entry.texts()) == 2
    with pytest.raises(UsageError, match="only one kind of scores"):
        read_human_data(path, gold="score")


def test_pearmut_keeps_the_last_rating_and_excludes_control_items(tmp_path):
    later = {"A": RATING["B"], "B": RATING["A"]}
    control = PEARMUT | {"item_i": 1, "item": [ITEM | {"validation": {}}]}
    welcome = PEARMUT | {"item_i": "welcome_0"}
    skipped = PEARMUT | {"item_i": 2, "annotation": [None]}
    replaced = PEARMUT | {"annotation": [later]}
    records = (PEARMUT, replaced, control, welcome, skipped)
    result = read_ratings(write_lines(tmp_path / "demo.jsonl", *records))
    assert result.scores.tolist() == [90.0, 20.0]
    assert result.excluded_counts == {"rating replaced by a later one": 1, "quality-control row": 3}


@pytest.mark.parametrize(
    ("score", "sliders", "expected"),
    [
        (None, {"Fluency": 2, "Adequacy": 47}, 24.5),
        (None, {"Quality": 3}, 3.0),
        (70, {"Quality": 5}, 70.0),  # a score counts before sliders
        (None, {"Fluency": None}, r"a slider has no value \(Fluency\)"),
        (None, [5], "sliders is"),
    ],
)
def test_sliders_of_pearmut_are_averaged(tmp_path, score, sliders, expected):
    rating = {"A": {"score": score, "sliders": sliders, "error_spans": []}}
    path = write_lines(tmp_path / "demo.jsonl", PEARMUT | {"annotation": [rating]})
    if isinstance(expected, str):
        with pytest.raises(DataError, match=expected):
            read_ratings(path)
    else:
        assert read_ratings(path).scores.tolist() == [expected]


def test_special_tokens_of_pearmut_are_errors_without_a_position(tmp_path):
    length = len(ITEM["tgt"]["A"])
    marks = [MARK, *(MARK | {"start_i": n, "end_i": n} for n in (length, length + 1))]
    rating = {"A": {"score": 40, "error_spans": marks}}
    path = write_lines(tmp_path / "demo.jsonl", PEARMUT | {"annotation": [rating]})
    [judgment] = read_ratings(path).judgments
    assert judgment.score == 40.0
    assert [span.of("Ein Hund.") for span in judgment.error_annotations.spans] == ["Hund"]
    assert judgment.error_annotations.missing == (UnlocatedError("major"),) * 2


@pytest.mark.parametrize("annotation", [5, None, "x", [5], [[]], [{"A": {"score": "x"}}]])
def test_invalid_pearmut_ratings_are_errors_with_file_and_line(tmp_path, annotation):
    path = write_lines(tmp_path / "demo.jsonl", PEARMUT | {"annotation": annotation})
    with pytest.raises(DataError, match=r"demo(\.jsonl, line 1|: no usable judgment)"):
        read_ratings(path)


def label_studio(result: Any, **data: Any) -> list[dict[str, Any]]:
    annotation = {"id": 1, "completed_by": {"id": 7}, "result": result, "was_cancelled": False}
    return [{"id": 3, "annotations": [annotation], "data": {"src": "A cat.", **data}}]


def region(
    start: int, end: int, text: str, labels: list[str], name: str = "r", to: str = "mt"
) -> dict[str, Any]:
    value = {"start": start, "end": end, "text": text, "labels": labels}
    return {"id": name, "type": "labels", "to_name": to, "from_name": "label", "value": value}


def test_label_studio_regions_ratings_and_choices(tmp_path):
    severity = {"id": "r", "type": "choices", "to_name": "mt", "value": {"choices": ["Major"]}}
    rating = {"id": "s", "type": "rating", "to_name": "mt", "value": {"rating": 2}}
    marks = [region(4, 8, "Hund", ["Accuracy"]), severity, rating]
    marks.append(region(2, 5, "cat", ["Omission"], "q", "src"))
    path = write_export(tmp_path, label_studio(marks, mt="Ein Hund.", system="A"))
    (judgment,) = read_ratings(path).judgments
    assert (judgment.score, judgment.item, judgment.system) == (2, "3", "A")
    assert judgment.annotator == "7"
    assert judgment.error_annotations.spans == (
        Span(4, 8, severity="major", category="Accuracy"),
        Span(2, 5, "source", "bad", "Omission"),  # no severity was chosen
    )
    (entry,) = read_human_data(path)
    assert entry.texts()["A", "3"].source == "A cat."


def test_offsets_of_label_studio_count_utf16_units(tmp_path):
    task = label_studio([region(3, 7, "Hund", ["Minor"])], mt="😀 Hund.")
    (judgment,) = read_ratings(write_export(tmp_path, task)).judgments
    assert judgment.error_annotations.spans == (Span(2, 6, severity="minor"),)
    assert judgment.score == -1.0  # of the spans


def test_cancelled_tasks_are_counted(tmp_path):
    tasks = label_studio([], mt="Eine Katze.")
    tasks[0]["annotations"].append({"was_cancelled": True, "result": []})
    result = read_ratings(write_export(tmp_path, tasks))
    assert result.scores.tolist() == [0.0]
    assert result.excluded_counts == {"task skipped by the rater": 1}


@pytest.mark.parametrize(
    ("result", "data", "message"),
    [
        ([], {}, "no translation"),
        ([], {"mt": 5}, "no translation"),
        (5, {"mt": "x"}, "result is 5; expected a list of objects"),
        ([{"value": 5}], {"mt": "x"}, "value is 5; expected an object"),
        ([{"type": "choices", "value": {"choices": ["a"]}}], {"mt": "x"}, "no rating, number"),
        ([region(0, 9, "no", [])], {"mt": "x"}, "the marked text is 'no', not at its offsets"),
        ([region(0, 1, "x", [], to="text")], {"mt": "x"}, "a region of 'text'; expected"),
        ([region("a", 1, "x", [])], {"mt": "x"}, "start is 'a'; expected a whole number"),
    ],
)
def test_invalid_label_studio_tasks_are_errors_with_the_task(tmp_path, result, data, message):
    with pytest.raises(DataError, match=rf"export\.json, task 1: {message}"):
        read_ratings(write_export(tmp_path, label_studio(result, **data)))


FACTGENIE = {
    "annotator_id": "llm", "dataset": "d", "setup": {"id": "sys"}, "split": "test",
    "example_idx": 1, "annotations": [
        {"reason": "wrong", "text": "Hund", "type": 0, "start": 4},
        {"reason": "omitted", "text": "", "type": 1, "start": 8},
    ],
}  # fmt: skip


def test_factgenie_errors_have_categories_and_outputs(tmp_path):
    (judgment,) = read_ratings(write_lines(tmp_path / "x.jsonl", FACTGENIE)).judgments
    assert (judgment.system, judgment.item, judgment.score) == ("sys", "1", -2.0)
    assert judgment.error_annotations.spans == (Span(4, 8, category="type 0"),)
    assert judgment.error_annotations.missing == (UnlocatedError("bad", "type 1"),)
    kinds = {"annotation_span_categories": [{"name": "Incorrect"}, {"name": "Missing"}]}
    newer = {key: value for key, value in FACTGENIE.items() if key != "setup"}
    newer |= {"setup_id": "sys", "output": "Ein Hund.", "metadata": kinds}
    (entry,) = read_human_data(write_lines(tmp_path / "x.jsonl", newer))
    assert entry.texts()["sys", "1"].hypothesis == "Ein Hund."
    errors = entry.error_annotations()["sys", "1"]
    assert [span.category for span in errors.spans] == ["Incorrect"]
    assert [error.category for error in errors.missing] == ["Missing"]


@pytest.mark.parametrize(
    "annotations", [5, None, [5], [{"text": 5}], [{"text": "x"}], [{"text": "x", "start": "a"}]]
)
def test_invalid_factgenie_lines_are_errors(tmp_path, annotations):
    path = write_lines(tmp_path / "x.jsonl", FACTGENIE | {"annotations": annotations})
    with pytest.raises(DataError, match=r"x\.jsonl, line 1: (annotations|text|start) is"):
        read_ratings(path)


@pytest.mark.parametrize("content", ["", "5", "[]", "[5]", "{", '{"mt": "x", "score": 1}', "[1,"])
def test_other_files_are_not_exports(tmp_path, content):
    path = write_file(tmp_path / "x.json", content)
    assert Source(path).first_object in ({}, {"mt": "x", "score": 1})

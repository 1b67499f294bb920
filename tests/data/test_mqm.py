"""MQM: weights from Freitag et al. 2021, table 5 of the paper."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.builders import write_file

from tertium.core.errors import DataError
from tertium.data.human_data_files import read_rater_judgments
from tertium.data.judgments import JudgmentSet
from tertium.data.ratings import average_ratings

HEADER = "system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity"


def read_rows(folder: Path, *rows: str, header: str = HEADER) -> JudgmentSet:
    file = write_file(folder / "mqm.tsv", "\n".join([header, *rows, ""]))
    (ratings,) = read_rater_judgments(file)
    return ratings


def rated(system: str, rater: str, category: str, severity: str) -> str:
    """Return a row on segment 12."""
    target = 'the <v>bad</v> "word"'
    return f"{system}\td\t1\t12\t{rater}\tQuelle\t{target}\t{category}\t{severity}"


def marked(system: str, target: str, severity: str = "Major") -> str:
    """Return a row on segment 1 with a marked text."""
    return f"{system}\td\t1\t1\tr1\tQuelle\t{target}\tAccuracy/Omission\t{severity}"


def test_errors_are_weighted_and_raters_averaged(tmp_path):
    ratings = read_rows(
        tmp_path,
        rated("A", "r1", "Accuracy/Mistranslation", "Major"),
        rated("A", "r1", "Fluency/Punctuation", "Minor"),
        rated("A", "r2", "Fluency/Grammar", "Minor"),
        rated("B", "r1", "Non-translation!", "Major"),
        rated("B", "r2", "No-error", "no-error"),
        rated("B", "r2", "Style/Awkward", "Neutral"),
    )
    assert [(j.system, j.annotator, j.score) for j in ratings.judgments] == [
        ("A", "r1", pytest.approx(-5.1)),
        ("A", "r2", -1.0),
        ("B", "r1", -25.0),
        ("B", "r2", 0.0),
    ]
    assert average_ratings(ratings).scores.tolist() == [pytest.approx(-3.05), -12.5]


def test_texts_and_control_rows(tmp_path):
    row = rated("A", "r1", "x", "Minor")
    (judgment,) = read_rows(tmp_path, row).judgments
    assert judgment.segment.hypothesis == 'the bad "word"'
    assert judgment.segment.source == "Quelle"
    assert (judgment.item, judgment.segment.references) == ("12", ())
    control = rated("A", "r1", "Found", "HOTW-test")
    assert read_rows(tmp_path, row, control).excluded_counts == {"quality-control row": 1}
    header = f"{HEADER}\t# Documentation: ..."
    assert read_rows(tmp_path, marked("A", "a <v>b</v>"), header=header).scores.tolist() == [-5.0]
    rows = [marked("A", "a <v>b</v>"), marked("A", "c <v>d</v>").replace("\td\t", "\te\t")]
    judgments = read_rows(tmp_path, *rows).judgments
    assert [(j.item, j.score) for j in judgments] == [("d:1", -5.0), ("e:1", -5.0)]


def test_unknown_severities_and_missing_columns_raise(tmp_path):
    with pytest.raises(DataError, match=r"mqm\.tsv, line 3: no weight for .*'Terrible'"):
        read_rows(tmp_path, rated("A", "r1", "x", "Minor"), rated("A", "r1", "x", "Terrible"))
    with pytest.raises(DataError, match="expected system, seg_id, rater and severity"):
        read_rows(tmp_path, "A\t1\tx\tMinor", header="system\tseg_id\tcategory\tseverity")


def test_rating_with_an_unclosed_mark_is_left_out(tmp_path, caplog):
    rows = [marked("A", "a <v>b"), marked("A", "a <v>b</v>"), marked("B", "<v>a</v> b")]
    ratings = read_rows(tmp_path, *rows, marked("C", "a b", "no-error"), "D\td\t1")
    assert [(j.system, j.score) for j in ratings.judgments] == [("B", -5.0), ("C", 0.0)]
    assert ratings.excluded_counts == {"unreadable row": 2}
    assert "unreadable rows left out: 2 of 4; first:" in caplog.text
    assert "mqm.tsv, line 2: a tag <v> is not closed" in caplog.text

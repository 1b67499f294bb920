"""MQM: weights from Freitag et al. 2021, table 5 of the paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from tertium.core.errors import DataError
from tertium.data.formats.mqm import read_mqm
from tertium.data.ratings import average_ratings

HEADER = "system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity"


def write(tmp_path: Path, *rows: tuple[str, str, str, str]) -> Path:
    """Rows of (system, rater, category, severity) on segment 12."""
    lines = [
        f'{system}\td\t1\t12\t{rater}\tQuelle\tthe <v>bad</v> "word"\t{category}\t{severity}'
        for system, rater, category, severity in rows
    ]
    file = tmp_path / "mqm_test.tsv"
    file.write_text("\n".join([HEADER, *lines]) + "\n")
    return file


def test_errors_are_weighted_and_raters_averaged(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        ("A", "r1", "Accuracy/Mistranslation", "Major"),
        ("A", "r1", "Fluency/Punctuation", "Minor"),
        ("A", "r2", "Fluency/Grammar", "Minor"),
        ("B", "r1", "Non-translation!", "Major"),
        ("B", "r2", "No-error", "no-error"),
        ("B", "r2", "Style/Awkward", "Neutral"),
    )
    ratings = read_mqm(file, lp="de-en")
    assert [(j.system, j.annotator, j.score) for j in ratings.judgments] == [
        ("A", "r1", pytest.approx(-5.1)),
        ("A", "r2", -1.0),
        ("B", "r1", -25.0),
        ("B", "r2", 0.0),
    ]
    assert average_ratings(ratings).scores.tolist() == [pytest.approx(-3.05), -12.5]


def test_markup_is_removed_and_quotes_are_kept(tmp_path: Path) -> None:
    (row,) = read_mqm(write(tmp_path, ("A", "r1", "x", "Minor"))).judgments
    assert row.segment.hypothesis == 'the bad "word"'
    assert row.segment.source == "Quelle"
    assert (row.item, row.segment.references) == ("12", ())


def test_quality_control_errors_are_excluded_and_counted(tmp_path: Path) -> None:
    rows = [("A", "r1", "x", "Minor"), ("A", "r1", "Found", "HOTW-test")]
    assert read_mqm(write(tmp_path, *rows)).excluded_counts == {"quality-control row": 1}


def test_unknown_severity_raises_with_file_and_line(tmp_path: Path) -> None:
    file = write(tmp_path, ("A", "r1", "x", "Minor"), ("A", "r1", "x", "Terrible"))
    with pytest.raises(DataError, match=r"mqm_test\.tsv, line 3: no weight for .*'Terrible'"):
        read_mqm(file)


def test_other_weights_can_be_given(tmp_path: Path) -> None:
    file = write(tmp_path, ("A", "r1", "x", "Minor"))
    assert read_mqm(file, weights={"minor": 7.0}).scores.tolist() == [-7.0]


def test_missing_columns_raise(tmp_path: Path) -> None:
    file = tmp_path / "mqm.tsv"
    file.write_text("system\tseg_id\tseverity\nA\t1\tMinor\n")
    with pytest.raises(DataError, match="expected system, seg_id, rater and severity"):
        read_mqm(file)


def mqm_row(system: str, segment: int, target: str, severity: str = "Major") -> str:
    return f"{system}\td\t1\t{segment}\tr1\tQuelle\t{target}\tAccuracy/Omission\t{severity}"


def test_rating_with_an_unclosed_mark_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [mqm_row("A", 1, "a <v>b"), mqm_row("A", 1, "a <v>b</v>"), mqm_row("B", 1, "<v>a</v> b")]
    rows += [mqm_row("C", 1, "a b", "no-error"), "D\td\t1"]
    file = tmp_path / "mqm.tsv"
    file.write_text("\n".join([HEADER, *rows]) + "\n")
    ratings = read_mqm(file)
    assert [(j.system, j.score) for j in ratings.judgments] == [("B", -5.0), ("C", 0.0)]
    assert ratings.excluded_counts == {"unreadable row": 2}
    assert "unreadable rows left out: 2 of 4; first:" in caplog.text
    assert "mqm.tsv, line 2: a tag <v> is not closed" in caplog.text


def test_segments_with_the_same_number_in_two_documents_differ(tmp_path: Path) -> None:
    rows = [mqm_row("A", 1, "a <v>b</v>"), mqm_row("A", 1, "c <v>d</v>").replace("\td\t", "\te\t")]
    file = tmp_path / "mqm.tsv"
    file.write_text("\n".join([HEADER, *rows]) + "\n")
    assert [(j.item, j.score) for j in read_mqm(file).judgments] == [("d:1", -5.0), ("e:1", -5.0)]


def test_comment_in_the_header_is_no_column(tmp_path: Path) -> None:
    file = tmp_path / "mqm.tsv"
    file.write_text(f"{HEADER}\t# Documentation: ...\n{mqm_row('A', 1, 'a <v>b</v>')}\n")
    assert read_mqm(file).scores.tolist() == [-5.0]

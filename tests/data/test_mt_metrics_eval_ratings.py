"""Rating files of mt-metrics-eval."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tertium.core.errors import DataError
from tertium.core.spans import Span, UnlocatedError
from tertium.data.human_data_files import read_human_data


def write(path: Path, *lines: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def rating(start: int, end: int, *, source: bool = False) -> str:
    error = {"start": start, "end": end, "category": "Fluency", "severity": "Minor", "score": 1.0}
    return json.dumps({"errors": [{**error, "is_source_error": source}]})


def test_errors_are_read_with_their_scores(tmp_path: Path) -> None:
    write(tmp_path / "sources" / "en-de.txt", "a cat", "a dog")
    write(tmp_path / "references" / "en-de.refA.txt", "eine Katze", "ein Hund")
    write(tmp_path / "system-outputs" / "en-de" / "A.txt", "eine Kuh", "ein Hund")
    write(tmp_path / "human-scores" / "en-de.mqm.seg.score", "A\t-1".replace("\\\t", "\t"), "A\t0")
    lines = (f"A\t{rating(5, 8)}\trater1", f"A\t{rating(2, 5, source=True)}\trater2")
    write(tmp_path / "human-scores" / "en-de.mqm.seg.rating", *lines)
    (result,) = read_human_data(tmp_path)
    assert {key: m.spans for key, m in result.error_annotations().items()} == {
        ("A", "1"): (Span(5, 8, severity="minor", category="Fluency", rater="rater1"),),
        ("A", "2"): (Span(2, 5, "source", "minor", "Fluency", "rater2"),),
    }


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((f"A\t{rating(0, 9)}\tr",), "rating, line 1: a span ends at 9, but its hypothesis"),
        (("A\tNone", "A\tNone", f"A\t{rating(0, 2)}"), "line 3: more ratings of 'A' than segments"),
        (("A\t[1]",), r"line 1: the rating is \[1\]; expected an object"),
    ],
)
def test_invalid_ratings_raise_with_line(
    tmp_path: Path, lines: tuple[str, ...], message: str
) -> None:
    write(tmp_path / "sources" / "en-de.txt", "a cat", "a dog")
    write(tmp_path / "references" / "en-de.refA.txt", "eine Katze", "ein Hund")
    write(tmp_path / "system-outputs" / "en-de" / "A.txt", "short", "text")
    write(tmp_path / "human-scores" / "en-de.mqm.seg.score", "A -1", "A 0")
    write(tmp_path / "human-scores" / "en-de.mqm.seg.rating", *lines)
    (result,) = read_human_data(tmp_path)
    with pytest.raises(DataError, match=message):
        result.error_annotations()


def test_unusable_spans_are_counted_when_they_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "sources" / "en-de.txt", "a cat", "a dog", "a cow")
    write(tmp_path / "references" / "en-de.refA.txt", "eine Katze", "ein Hund", "eine Kuh")
    write(tmp_path / "system-outputs" / "en-de" / "A.txt", "eine Kuh", "ein Hund", "ein Kuh")
    write(tmp_path / "human-scores" / "en-de.mqm.seg.score", "A -1", "A 0", "A 0")
    lines = (f"A\t{rating(5, 5)}\tr", f"A\t{rating(2, 99)}\tr", f"A\t{rating(0, 3)}\tr")
    write(tmp_path / "human-scores" / "en-de.mqm.seg.rating", *lines)
    metrics = tmp_path / "metric-scores" / "en-de"
    write(metrics / "BLEU-refA.seg.score", "A 1", "A 2", "A 3")
    write(metrics / "BLEU-refA.domain.score", "news\tA\t1\t2")
    (result,) = read_human_data(tmp_path)
    assert [file.name for file in result.files] == ["BLEU-refA.seg.score"]
    assert not caplog.records
    annotations = result.error_annotations()
    assert set(annotations) == {("A", "1"), ("A", "3")}
    assert annotations["A", "1"].spans == ()
    assert annotations["A", "1"].missing == (UnlocatedError("minor", "Fluency", "r"),)
    assert "unreadable rows left out: 1 of 3; first:" in caplog.text
    assert "line 2: a span ends at 99" in caplog.text
    assert read_human_data(tmp_path, lps=["ende"])[0].lp == "en-de"
    assert read_human_data(tmp_path, lps=["zh-en"]) == []

"""Folders, score files and rating files of mt-metrics-eval."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.builders import read_one, write_file, write_files

from tertium.core.errors import DataError, LengthError
from tertium.core.spans import Span, UnlocatedError
from tertium.data.formats.mt_metrics_eval import find_eval_sets, read_score_file
from tertium.data.human_data_files import read_human_data


@pytest.fixture
def evalset(tmp_path):
    contents = {
        "sources/en-de.txt": "one\ntwo\n",
        "references/en-de.refA.txt": "eins\nzwei\n",
        "references/en-de.refB.txt": "Eins!\nZwei!\n",
        "documents/en-de.docs": "news\tdoc1\nnews\tdoc1\n",
        "human-scores/en-de.mqm.seg.score": "X\t-1\nX\tNone\nY\t-5\nY\t0\nrefB\t0\nrefB\t0\n",
        "human-scores/en-de.wmt-z.sys.score": "X\t0.1\nY\tNone\n",
        "metric-scores/en-de/BLEU-refA.seg.score": "X\t1\nX\t2\n",
    }
    for system in ("X", "Y", "refB"):
        contents[f"system-outputs/en-de/{system}.txt"] = f"{system} 1\n{system} 2\n"
    (result,) = find_eval_sets(write_files(tmp_path / "wmt99", contents))
    return result


def test_systems_and_references_are_listed(evalset, tmp_path):
    assert evalset.lp == "en-de"
    assert list(evalset.references) == ["refA", "refB"]
    assert list(evalset.human_scores) == ["mqm.seg", "wmt-z.sys"]
    assert [file.name for file in evalset.score_files] == ["BLEU-refA.seg.score"]
    assert find_eval_sets(tmp_path / "another") == ()
    assert list(evalset.testset.systems) == ["X", "Y"]
    assert evalset.testset.references[1] == ("zwei", "Zwei!")
    assert evalset.testset.columns == {"domain": ("news", "news")}


def test_missing_scores_are_nan_in_matrices(evalset):
    matrix = read_score_file(evalset.human_scores["mqm.seg"])
    assert matrix.systems == ("X", "Y", "refB")
    np.testing.assert_array_equal(matrix.values, [[-1, np.nan], [-5, 0], [0, 0]])
    entry = read_one(evalset.folder, gold="mqm")
    np.testing.assert_array_equal(entry.segment_scores().values, matrix.values)
    assert read_one(evalset.folder, level="system").system_scores == {"X": 0.1}


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("A\t1\nA\t2\nB\t1\n", LengthError, "1 scores for 'B', but 2 for 'A'"),
        ("A\t1\nA\n", DataError, "line 2: expected SYSTEM and SCORE, got 1 fields"),
        ("A\tgood\n", DataError, "line 1: the score 'good' is not a number"),
    ],
)
def test_ragged_and_invalid_score_files_raise(tmp_path, text, error, message):
    with pytest.raises(error, match=message):
        read_score_file(write_file(tmp_path / "x.seg.score", text))


def rating(start: int, end: int, *, source: bool = False) -> str:
    error = {"start": start, "end": end, "category": "Fluency", "severity": "Minor", "score": 1.0}
    return json.dumps({"errors": [{**error, "is_source_error": source}]})


@pytest.fixture
def read_rated(tmp_path):
    """Return a function that reads a folder with some lines of ratings."""

    def read(*lines):
        contents = {
            "sources/en-de.txt": "a cat\na dog\na cow\n",
            "references/en-de.refA.txt": "eine Katze\nein Hund\neine Kuh\n",
            "system-outputs/en-de/A.txt": "eine Kuh\nein Hund\nein Kuh\n",
            "human-scores/en-de.mqm.seg.score": "A\t-1\nA\t0\nA\t0\n",
            "human-scores/en-de.mqm.seg.rating": "\n".join([*lines, ""]),
            "metric-scores/en-de/BLEU-refA.seg.score": "A 1\nA 2\nA 3\n",
            "metric-scores/en-de/BLEU-refA.domain.score": "news\tA\t1\t2\n",
        }
        return read_one(write_files(tmp_path, contents))

    return read


def test_errors_are_read_with_their_scores(read_rated):
    lines = (f"A\t{rating(5, 8)}\trater1", f"A\t{rating(2, 5, source=True)}\trater2", "A\tNone")
    annotations = read_rated(*lines).error_annotations()
    assert {key: errors.spans for key, errors in annotations.items()} == {
        ("A", "1"): (Span(5, 8, severity="minor", category="Fluency", rater="rater1"),),
        ("A", "2"): (Span(2, 5, "source", "minor", "Fluency", "rater2"),),
    }


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((f"A\t{rating(0, 9)}\tr",), "rating, line 1: a span ends at 9, but its hypothesis"),
        (("A\tNone",) * 3 + (f"A\t{rating(0, 2)}",), "line 4: more ratings of 'A' than segments"),
        (("A\t[1]",), r"line 1: the rating is \[1\]; expected an object"),
    ],
)
def test_invalid_ratings_raise_with_line(read_rated, lines, message):
    with pytest.raises(DataError, match=message):
        read_rated(*lines).error_annotations()


def test_unusable_spans_are_counted_when_they_are_read(read_rated, tmp_path, caplog):
    lines = (f"A\t{rating(5, 5)}\tr", f"A\t{rating(2, 99)}\tr", f"A\t{rating(0, 3)}\tr")
    result = read_rated(*lines)
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

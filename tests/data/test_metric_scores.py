"""Metric scores from every supported file format."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.builders import write_file

import tertium
from tertium.core.errors import DataError
from tertium.data.metric_scores import merge_levels, read_metric_scores
from tertium.data.testset import TestSet
from tertium.output.text import render_table


def test_mt_metrics_eval_segment_and_system_files(tmp_path):
    folder = tmp_path / "metric-scores" / "en-de"
    segments = write_file(folder / "BLEU-refA.seg.score", "A\t1\nA\tNone\nB\t3\nB\t4.5\n")
    systems = write_file(folder / "BLEU-refA.sys.score", "A\t10\nB\t20\n")
    (scores,) = merge_levels(
        [entry for file in (segments, systems) for entry in read_metric_scores(file)]
    )
    assert (scores.metric, scores.lp) == ("BLEU-refA", "en-de")
    assert scores.segments.systems == ("A", "B")
    assert_allclose(scores.segments.values, [[1, np.nan], [3, 4.5]])
    assert scores.systems == {"A": 10.0, "B": 20.0}
    with pytest.raises(DataError, match="BLEU-refA on en-de are given twice"):
        merge_levels(read_metric_scores(segments) * 2)


def test_tables_of_segments_and_of_systems(tmp_path):
    table = write_file(
        tmp_path / "chrf.zh-en.tsv", "segment\tsystem\tscore\n7\tA\t0.5\n9\tA\t\n7\tB\t0.1\n"
    )
    (scores,) = read_metric_scores(table)
    assert (scores.metric, scores.lp) == ("chrf", "zh-en")
    assert scores.segments.items == ("7", "9")
    assert_allclose(scores.segments.values, [[0.5, np.nan], [0.1, np.nan]])
    (scores,) = read_metric_scores(
        write_file(tmp_path / "ter.csv", "system,score\nA,0.5\nB,0.75\n")
    )
    assert scores.segments is None
    assert scores.systems == {"A": 0.5, "B": 0.75}


def test_metrics_may_be_columns_with_arrows(tmp_path):
    testset = TestSet(
        systems={"A": ["the cat", "x"], "B": ["y", "a cat"]}, references=[["a cat"]] * 2
    )
    study = tertium.score(testset, ["chrf", "ter"])
    segments = write_file(tmp_path / "seg.tsv", render_table(study.segment_table(), "tsv"))
    systems = write_file(tmp_path / "sys.tsv", render_table(study.system_table(), "tsv"))
    for up, segment, system in zip(
        (True, False), read_metric_scores(segments), read_metric_scores(systems), strict=True
    ):
        name, spec = ("chrF", "chrf") if up else ("TER", "ter")
        assert (segment.metric, segment.higher_is_better) == (name, up)
        assert_allclose(segment.segments.values[1], study.scores["B"][spec].segments)
        assert (system.metric, system.higher_is_better) == (name, up)
        assert system.systems == {s: study.scores[s][spec].system for s in "AB"}


def test_table_with_several_metrics_and_language_pairs(tmp_path):
    rows = [
        {"item": 1, "system": "A", "score": 1.5, "metric": "x", "lp": "de-en"},
        {"item": 1, "system": "A", "score": 2.5, "metric": "y", "lp": "de-en"},
        {"item": 1, "system": "A", "score": 3.5, "metric": "x", "lp": "fi-en"},
    ]
    file = write_file(tmp_path / "all.jsonl", "\n".join(map(json.dumps, rows)))
    result = {(s.metric, s.lp): s.segments.values[0, 0] for s in read_metric_scores(file)}
    assert result == {("x", "de-en"): 1.5, ("y", "de-en"): 2.5, ("x", "fi-en"): 3.5}


def test_json_row_without_score_is_nan(tmp_path):
    rows: list[dict[str, Any]] = [{"system": "A", "item": n, "score": n} for n in (1, 2)]
    rows += [{"system": "B", "item": 1, "score": None}, {"system": "B", "item": 2}]
    (scores,) = read_metric_scores(
        write_file(tmp_path / "m.jsonl", "\n".join(map(json.dumps, rows)))
    )
    assert np.isnan(scores.segments["B"]).all()


@pytest.mark.parametrize(("value", "better"), [("false", False), (None, True), (0, False)])
def test_values_of_higher_is_better(tmp_path, value, better):
    record = {"system": " A", "spec": "ter", "score": 40.0, "higher_is_better": value}
    (scores,) = read_metric_scores(write_file(tmp_path / "one.jsonl", [record]))
    assert (scores.systems, scores.higher_is_better) == ({"A": 40.0}, better)
    both = [{**record, "higher_is_better": True}, {**record, "system": "B", "higher_is_better": 0}]
    with pytest.raises(DataError, match="higher_is_better differs from earlier scores of ter"):
        read_metric_scores(write_file(tmp_path / "both.jsonl", both))


@pytest.mark.parametrize(("name", "text", "message"), [
    ("a.tsv", "system\tvalue\nA\t1\n", "line 2: system or score is missing"),
    ("a.tsv", "system\titem\tscore\nA\t1\t1\nA\t1\t2\n", "line 3: a second score of A 1"),
    ("a.tsv", "system\titem\tscore\nA\t1\tgood\n", "'good' is not a number"),
    ("a.tsv", "system\titem\tscore\nA\t1\n", "2 fields, but the header has 3"),
    ("a.tsv", "system\titem\tscore\n", "contains no scores"),
    ("a.tsv", "system\tscore\thigher_is_better\nA\t1\tup\n", "'up'; expected true or false"),
    ("a.tsv", "system\tscore\thigher_is_better\nA\t1\t\nB\t1\t0\n", "line 3: .* differs"),
    ("a.seg.score", "A\t1\nA\t2\nB\t1\n", "1 scores for 'B', but 2 for 'A'"),
    ("a.json", '[{"system": "A"}]', "one object per line"),
])  # fmt: skip
def test_invalid_score_files_raise_with_location(tmp_path, name, text, message):
    with pytest.raises(DataError, match=message):
        read_metric_scores(write_file(tmp_path / name, text))

"""Scores round-trip through pandas and Parquet; errors name what cannot be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.mean_scores import mean_scores

import tertium
from tertium.cli import main
from tertium.core.errors import DataError, MissingResourceError, UsageError
from tertium.core.scores import ScoreMatrix
from tertium.data.metric_scores import read_metric_scores
from tertium.data.record_files import read_records
from tertium.data.testset import TestSet

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def evaluation(example: TestSet) -> tertium.Evaluation:
    return tertium.score(example, ["chrf", "bleu"])


def test_frames_have_a_row_for_each_score(evaluation):
    scores = evaluation.scores["good"]["bleu"]
    frame = scores.to_frame()
    assert list(frame.columns) == ["segment", "score"]
    assert frame["segment"].tolist() == list(range(1, 49))
    assert frame.attrs["signature"] == scores.signature
    np.testing.assert_array_equal(frame["score"], scores.segments)
    matrix = ScoreMatrix("m", ("a", "b"), np.array([[1.0, np.nan], [0.5, 2.0]]), ("x", "y"))
    frame = matrix.to_frame()
    assert frame["system"].tolist() == ["a", "a", "b", "b"]
    assert frame["item"].tolist() == ["x", "y", "x", "y"]
    np.testing.assert_array_equal(frame["score"], [1.0, np.nan, 0.5, 2.0])
    frame = evaluation.to_frame()
    assert len(frame) == 3 * 2 * 48
    names = "system metric segment document score higher_is_better"
    assert list(frame.columns) == names.split()


def test_statistics_carry_the_corpus_score(evaluation, tmp_path):
    scores = evaluation.scores["fair"]["bleu"]
    scores.to_frame(statistics=True).to_parquet(tmp_path / "fair.parquet")
    frame = pd.read_parquet(tmp_path / "fair.parquet")
    totals = frame[list(scores.columns)].sum().to_numpy()
    assert tertium.load_metric("bleu").reduce(totals) == scores.system
    assert frame.attrs["metric"] == "bleu"


def agreement(capsys: pytest.CaptureFixture[str], human: Path, scores: Path) -> list[list[str]]:
    """Return the rows that `tertium meta` prints."""
    assert main(["meta", "--human", str(human), "--scores", str(scores), "-f", "tsv"]) == 0
    return [line.split("\t") for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("suffix", [".parquet", ".tsv", ".csv", ".jsonl"])
def test_written_scores_are_read_with_their_direction(example, suffix, tmp_path, capsys):
    file = tmp_path / f"scores{suffix}"
    evaluation = tertium.score(example, ["chrf", "ter"])
    evaluation.write(file)
    by_metric = {entry.metric: entry for entry in read_metric_scores(file)}
    directions = {metric: entry.higher_is_better for metric, entry in by_metric.items()}
    assert directions == {"chrf": True, "ter": False}
    expected = evaluation.scores["fair"]["chrf"].segments
    np.testing.assert_array_equal(by_metric["chrf"].segments["fair"], expected)
    rows = {row[0]: row[1] for row in agreement(capsys, EXAMPLES / "ratings.csv", file)}
    assert float(rows["ter"]) > 0.5


def test_test_sets_and_judgments_are_read_from_parquet(example, tmp_path, capsys):
    texts, scores = tmp_path / "systems.parquet", tmp_path / "scores.parquet"
    pd.read_json(EXAMPLES / "examples.jsonl", lines=True).to_parquet(texts)
    read = TestSet.from_records(texts)
    assert read.systems["good"] == example.systems["good"]
    assert read.references == example.references
    assert main(["score", "-t", str(texts), "-m", "chrf", "-o", str(scores)]) == 0
    capsys.readouterr()
    ratings = tmp_path / "ratings.parquet"
    pd.read_csv(EXAMPLES / "ratings.csv").to_parquet(ratings)
    from_parquet = agreement(capsys, ratings, scores)
    assert from_parquet == agreement(capsys, EXAMPLES / "ratings.csv", scores)


def test_missing_scores_are_null_in_json_lines(tmp_path):
    missing = mean_scores("mine", np.array([1 / 3, np.nan]), "Mine")
    scores = {"a": {"mine": missing}}
    tertium.Evaluation(TestSet({"a": ("ü", "v")}), ("a",), ("mine",), scores).write(
        tmp_path / "a.jsonl"
    )
    first, second = (tmp_path / "a.jsonl").read_text("utf-8").splitlines()
    assert '"score": 0.3333333333333333' in first
    assert '"score": null' in second


def test_an_invalid_parquet_file_is_named(tmp_path, capsys):
    (tmp_path / "bad.parquet").write_text("system,score\n")
    with pytest.raises(DataError, match=r"bad\.parquet: not a Parquet file"):
        read_metric_scores(tmp_path / "bad.parquet")
    with pytest.raises(DataError, match="no such file"):
        read_metric_scores(tmp_path / "none.parquet")
    pd.DataFrame({"system": ["a"], "item": ["1"], "score": ["x"]}).to_parquet(
        tmp_path / "text.parquet"
    )
    with pytest.raises(DataError, match=r"text\.parquet, row 1"):
        read_metric_scores(tmp_path / "text.parquet")
    (tmp_path / "x.txt").write_text("x\n")
    text = str(tmp_path / "x.txt")
    arguments = ["score", "-t", text, "-r", text, "-m", "chrf", "-o", str(tmp_path / "scores.txt")]
    assert main(arguments) == 2
    assert "expected a name that ends in .json, .jsonl, .tsv" in capsys.readouterr().err


def test_without_pandas_an_error_says_what_to_install(evaluation, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingResourceError, match=r"tertium\[frames\]"):
        evaluation.to_frame()


def test_parquet_keeps_whole_numbers_and_no_index(tmp_path):
    table = pa.table({"mt": ["a", "b"], "year": pa.array([2024, None])})  # floats in pandas
    pq.write_table(table, tmp_path / "texts.parquet")
    rows = [record for _, record in read_records(tmp_path / "texts.parquet")]
    assert rows == [{"mt": "a", "year": 2024}, {"mt": "b", "year": None}]
    frame = pd.DataFrame({"mt": ["a", "b", "c"]}).iloc[[2, 0]]
    frame.to_parquet(tmp_path / "texts.parquet")
    rows = [record for _, record in read_records(tmp_path / "texts.parquet")]
    assert rows == [{"mt": "c"}, {"mt": "a"}]


def test_judgments_may_be_a_frame(tmp_path):
    numbers = range(1, 13)
    frame = pd.DataFrame(
        {
            "MT": [f"house number {n}" for n in numbers],
            "ref": [f"house number {n - n % 3}" for n in numbers],
            "Score": [None, *(n % 5 for n in numbers[1:])],
            "system": ["A", "B"] * 6,
            "item": [n // 2 for n in numbers],
        }
    )
    frame.to_parquet(tmp_path / "judgments.parquet")
    by_frame, by_file = (
        tertium.meta_evaluate(source, "chrf").records()
        for source in (frame, tmp_path / "judgments.parquet")
    )
    assert by_frame == by_file
    learned, again = (
        tertium.train("bleu-r", source) for source in (frame, tmp_path / "judgments.parquet")
    )
    text, reference = "house number 7", ["house number 8"]
    assert learned.sentence_score(text, reference) == again.sentence_score(text, reference)


def test_invalid_judgments_raise_errors():
    one = tertium.Judgment(tertium.Segment("a", references=("b",)), 1.0)
    with pytest.raises(UsageError, match=r"got Judgment.*create JudgmentSet"):
        tertium.meta_evaluate([one], "chrf")
    with pytest.raises(UsageError, match=r"expected .* got None"):
        tertium.meta_evaluate(None, "chrf")
    with pytest.raises(UsageError, match=r"expected .* got None"):
        tertium.train("bleu-r", None)

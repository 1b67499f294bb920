"""Marked errors through the public doors: files, metrics that mark, and what does not fit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builders import write_file
from tests.output.marking_metric import Suspicious

from tertium.cli import main
from tertium.core.errors import DataError, UsageError
from tertium.core.registry import METRICS
from tertium.evaluation.judged import HumanInputs
from tertium.studies.span_agreement import SpanStudy, compare_spans

TEXT = "The cat sat on a mat ."


def compare(human: Path, *metrics: Any, exclude: tuple[str, ...] = (), **options: Any) -> SpanStudy:
    inputs = HumanInputs(human=(str(human),), exclude=exclude)
    return compare_spans(inputs, metrics, **options)


def write(path: Path, *spans: tuple[int, int, str], text: str = TEXT, items: int = 2) -> Path:
    marked = [{"start": a, "end": b, "severity": severity, "rater": 0} for a, b, severity in spans]
    row = {"system": "A", "hypothesis": text, "score": 0, "spans": marked}
    return write_file(path, [{"segment": n, **row} for n in range(1, items + 1)])


def test_file_and_metric_with_same_spans_agree(tmp_path):
    human = write(tmp_path / "mqm.jsonl", (4, 7, "major"), (15, 20, "minor"))
    file = write(tmp_path / "same.jsonl", (4, 7, "major"))
    study = compare(human, Suspicious(), spans=file, resamples=50)
    now, read = (result.records() for result in study.results)
    assert (now["metric"], read["metric"]) == ("suspicious", "same")
    assert now["characters"] == read["characters"]
    assert now["characters"]["micro"] == {
        "precision": 1.0,
        "recall": 3 / 8,
        "f1": pytest.approx(2 * 3 / (3 + 8)),
    }
    assert now["severity major"]["micro"]["f1"] == 1.0
    assert study.p_values["mqm"][0, 1] == 1.0


def test_metric_that_could_mark_more_is_reported(tmp_path, caplog):
    @dataclass(frozen=True, kw_only=True)
    class Quiet(Suspicious):
        span_note = "only certain errors are marked"  # type: ignore[assignment]

    human = write(tmp_path / "mqm.jsonl", (4, 7, "major"), text="The dog sat .")
    (result,) = compare(human, Quiet(), resamples=0).results
    assert result.records()["characters"]["micro"]["f1"] == 0.0
    assert "suspicious: no spans; only certain errors are marked" in caplog.text


def test_each_rater_counts(tmp_path):
    human = write(tmp_path / "mqm.jsonl", (4, 7, "major"))
    text = human.read_text(encoding="utf-8").replace('"score": 0', '"score": 0, "raters": 2')
    human.write_text(text, encoding="utf-8")
    (result,) = compare(human, Suspicious(), resamples=0).results
    assert result.rows["characters"].tolist() == [[3, 3, 3], [0, 0, 3]] * 2
    assert np.isnan(result.bounds).all()


@pytest.mark.parametrize("annotators", [("x", "y"), ("", "")])
def test_each_row_of_a_translation_is_one_rater(tmp_path, annotators):
    row = {"segment": 1, "system": "A", "mt": TEXT, "score": 0}
    mark = {"start": 4, "end": 7, "severity": "major"}
    rows = [
        {**row, "annotator": annotator, "spans": spans}
        for annotator, spans in zip(annotators, ([mark], []), strict=True)
    ]
    human = write_file(tmp_path / "mqm.jsonl", rows)
    (result,) = compare(human, Suspicious(), resamples=0).results
    assert result.rows["characters"].tolist() == [[3, 3, 3], [0, 0, 3]]


def test_invalid_input_errors(tmp_path):
    human = write(tmp_path / "mqm.jsonl", (4, 7, "major"))
    with pytest.raises(UsageError, match=r"unknown system of mqm 'B' \(known: A\)"):
        compare(human, Suspicious(), exclude=["B"])
    few = write(tmp_path / "few.jsonl", (4, 7, "major"), items=1)
    with pytest.raises(
        DataError, match=r"no spans for 1 of 2 judged translations, first item 2 of"
    ):
        compare(human, spans=few)
    other = write(tmp_path / "other.jsonl", (4, 7, "major"), text=TEXT + "!")
    with pytest.raises(DataError, match="item 1 of system 'A' differs from the judged text"):
        compare(human, spans=other)
    with pytest.raises(UsageError, match="chrf does not mark error spans"):
        compare(human, "chrf")
    with pytest.raises(UsageError, match="give files of error spans or -m METRICS"):
        compare(human)
    plain = tmp_path / "da.jsonl"
    plain.write_text('{"segment": 1, "system": "A", "mt": "x", "score": 3}\n', encoding="utf-8")
    with pytest.raises(DataError, match="no error annotations"):
        compare(plain, Suspicious())


def test_error_tables_and_mixed_files_are_rejected(tmp_path, monkeypatch):
    home = "tests.output.marking_metric:Suspicious"
    monkeypatch.setitem(METRICS.builtin, "suspicious", home)
    human = write(tmp_path / "mqm.jsonl", (4, 7, "major"))
    lines, rows = tmp_path / "marks.jsonl", tmp_path / "marks.tsv"
    score = ["score", "-q", "-t", str(human), "-m", "suspicious", "-o"]
    for file in (lines, rows):
        assert main([*score, f"spans:{file}"]) == 0
    (result,) = compare(human, spans=lines, resamples=0).results
    assert result.records()["characters"]["micro"]["f1"] == 1.0
    assert result.metric == "marks"  # the name of the file
    with pytest.raises(DataError, match=r"marks\.tsv has one row per error and lacks"):
        compare(human, spans=rows)
    text = lines.read_text(encoding="utf-8")
    lines.write_text(text + text.replace('"suspicious"', '"wary"'), encoding="utf-8")
    with pytest.raises(DataError, match=r"several metrics \(suspicious, wary\): give one"):
        compare(human, spans=lines)


def test_files_of_one_metric_are_named_by_file(tmp_path):
    human = write(tmp_path / "mqm.jsonl", (4, 7, "major"))
    (tmp_path / "other").mkdir()
    files = [tmp_path / name for name in ("old.jsonl", "new.jsonl", "other/new.jsonl")]
    for file in files:
        row = write(file, (4, 7, "major")).read_text(encoding="utf-8")
        file.write_text(row.replace('"score"', '"metric": "m", "score"'), encoding="utf-8")
    study = compare(human, spans=files[:2], resamples=0)
    assert [result.metric for result in study.results] == ["old", "new"]
    with pytest.raises(
        DataError, match=r"item 1 of system 'A' is marked twice: .* different names"
    ):
        compare(human, spans=files, resamples=0)


def test_reference_translation_is_excluded_and_counted(tmp_path, capsys):
    """A human translation among the systems may be the reference and have none itself."""
    human = write(tmp_path / "esa.jsonl", (4, 7, "major"), items=3)
    rows = [json.loads(line) for line in human.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        row |= {"source": "Die Katze sass auf einer Matte ."}
        row |= {"system": "refA"} if row["segment"] == 3 else {"reference": "A cat sat on a mat ."}
    human.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    study = compare(human, "tertium-multi", resamples=0)
    assert study.excluded_counts == {"esa": 1}
    (result,) = study.results
    assert len(result.rows["characters"]) == 2
    assert study.records()["left_out"] == {"esa": 1}
    assert main(["meta", "spans", "--human", str(human), "-m", "tertium-multi", "-q"]) == 0
    assert (
        "excluded: 1 translations without the texts that a metric needs" in capsys.readouterr().out
    )


def test_command_prints_tables_or_json(tmp_path, capsys):
    human = write(tmp_path / "mqm.jsonl", (4, 7, "major"), (15, 20, "minor"))
    files = [str(write(tmp_path / f"{name}.jsonl", (4, 7, name))) for name in ("minor", "major")]
    argv = ["meta", "spans", *files, "--human", str(human), "--resamples", "20", "-q"]
    assert main(argv) == 0
    output = capsys.readouterr().out
    assert "By severity, mqm" in output
    assert output.index(" major ") < output.index(" minor ")  # the better one first
    assert main([*argv, "-f", "json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert records["metrics"] == ["minor", "major"]
    assert [result["metric"] for result in records["results"]] == ["major", "minor"]
    assert records["results"][1]["characters"]["micro"]["precision"] == 0.5
    assert main([*argv, "--statistic", "pearson"]) == 2
    assert "unrecognized arguments: --statistic pearson" in capsys.readouterr().err


def test_several_sets_are_one_table_in_files(tmp_path, monkeypatch, capsys):
    home = "tests.output.marking_metric:Suspicious"
    monkeypatch.setitem(METRICS.builtin, "suspicious", home)
    files = [str(write(tmp_path / f"{name}.jsonl", (4, 7, "major"))) for name in ("one", "two")]
    assert main(["meta", "spans", "--human", *files, "-m", "suspicious", "-f", "tsv", "-q"]) == 0
    header, *rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert header[:3] == ["set", "metric", "precision"]
    assert [row[:3] for row in rows] == [["one", "suspicious", "1.0"], ["two", "suspicious", "1.0"]]

"""Conventions of the interface: one name per option, standard input, spreadsheets, languages."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from sacrebleu.metrics.bleu import BLEU

from tertium.cli import main
from tertium.core.registry import METRICS
from tertium.metrics.list_commands import RECOMMENDED

EXAMPLES = Path(__file__).parents[2] / "examples"
SYSTEM = str(EXAMPLES / "system-good.en.txt")
OTHER = str(EXAMPLES / "system-fair.en.txt")
REFERENCE = str(EXAMPLES / "reference-a.en.txt")
SOURCE = str(EXAMPLES / "source.de.txt")
SCORE = ["score", "-t", SYSTEM, "-r", REFERENCE, "-m", "chrf"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def run_command(*arguments: str) -> str:
        assert main([*arguments]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return run_command


def test_long_options_accept_underscores(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "with_underscore.json"
    run(*SCORE, "--only_system", "--batch_size=8", "--output", str(file))
    assert "segments" not in json.loads(file.read_text())[0]
    assert run(*SCORE, "--score_only") == run(*SCORE, "-b")


@pytest.mark.parametrize("name", ["--resamples", "--paired-bs-n", "--paired_bs_n"])
def test_resamples_has_sacrebleu_names(run: Any, name: str) -> None:
    command = ["compare", "-t", SYSTEM, OTHER, "-r", REFERENCE, "-m", "chrf", "-f", "json"]
    assert run(*command, name, "50") == run(*command, "--resamples", "50")
    assert run(*command, name, "50") != run(*command, "--resamples", "60")


def test_list_shows_recommended_metrics_and_all_on_request(run: Any) -> None:
    recommended = json.loads(run("list", "-f", "json"))
    assert [record["metric"] for record in recommended] == [*RECOMMENDED]
    assert [record["summary"] for record in recommended] == [*RECOMMENDED.values()]
    names = {record["metric"] for record in json.loads(run("list", "all", "-f", "json"))}
    assert {*METRICS, "pairwise"} <= names
    assert "tertium list all" in run("list")


def test_standard_input_is_a_system(monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    expected = json.loads(run(*SCORE, "-f", "json"))
    text = Path(SYSTEM).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text), encoding="utf-8"))
    record = json.loads(run("score", "-t", "-", "-r", REFERENCE, "-m", "chrf", "-f", "json"))
    assert record["system"] == "stdin"
    assert record["score"] == expected["score"]


def test_segment_scores_are_printed_with_texts(run: Any) -> None:
    command = [*SCORE, "-s", SOURCE, "-sl", "--with-texts"]
    rows = [line.split("\t") for line in run(*command, "-f", "tsv").splitlines()]
    assert rows[0] == ["system", "segment", "source", "translation", "reference", "chrF ↑"]
    lines = [Path(file).read_text(encoding="utf-8").splitlines() for file in (SOURCE, SYSTEM)]
    assert [row[2] for row in rows[1:]] == lines[0]
    assert [row[3] for row in rows[1:]] == lines[1]


def test_csv_is_printed(run: Any) -> None:
    printed = run(*SCORE, "-sl", "--with-texts", "-f", "csv")
    rows = list(csv.reader(io.StringIO(printed)))
    assert rows[0] == ["system", "segment", "translation", "reference", "chrF ↑"]
    assert float(rows[1][-1]) == json.loads(run(*SCORE, "-sl", "-f", "json"))["segments"][0]


def test_workbook_has_texts_and_scores(run: Any, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    file = tmp_path / "scores.xlsx"
    run(*SCORE, "-q", "-o", str(file))
    rows = list(openpyxl.load_workbook(file).active.iter_rows(values_only=True))
    assert rows[0] == ("system", "segment", "translation", "reference", "chrF ↑")
    assert rows[1][-1] == json.loads(run(*SCORE, "-sl", "-f", "json"))["segments"][0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--with-texts"], "--with-texts adds texts to segment scores: give -sl"),
        (["--paired-bs", "-o", "x.xlsx"], "x.xlsx: expected a name that ends in .json, .md"),
        (["--unknown_option"], "unrecognized argument: --unknown-option"),
        (["--resample", "5", "--confidnce"], "--confidnce; did you mean --confidence"),
    ],
)
def test_options_that_do_not_fit_are_errors(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SCORE, *options]) == 2
    assert message in capsys.readouterr().err


def test_target_language_works_without_a_source_language(run: Any, tmp_path: Path) -> None:
    hypothesis, reference = "他昨天在车站附近买了两本书。", "他昨天在火车站旁边买了两本书。"
    files = {"t": hypothesis, "r": reference}
    for name, text in files.items():
        (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
    command = ["score", "-t", str(tmp_path / "t"), "-r", str(tmp_path / "r"), "-q", "-f", "json"]
    record = json.loads(run(*command, "-m", "bleu", "--target-language", "zh"))
    assert record["score"] == BLEU(trg_lang="zh").corpus_score([hypothesis], [[reference]]).score


@pytest.fixture
def human(tmp_path: Path) -> list[str]:
    rows = [(s, n, (7 * n + len(s) * n) % 11) for s in ("a", "bb", "ccc", "dddd") for n in range(9)]
    text = "".join(f"{system}\t{n}\t{score}\n" for system, n, score in rows)
    (tmp_path / "human.tsv").write_text(f"system\tsegment\tscore\n{text}")
    (tmp_path / "mine.tsv").write_text(f"system\tsegment\tscore\n{text}")
    files = [str(tmp_path / name) for name in ("human.tsv", "mine.tsv")]
    return ["meta", "--human", files[0], "--scores", files[1], "--resamples", "20", "-q"]


def test_statistics_have_the_names_of_papers(run: Any, human: list[str]) -> None:
    names = ["acc_eq", "SPA", "kendall-tau-b"]
    tasks = json.loads(run(*human, "--statistic", *names, "-f", "json"))["tasks"]
    assert {task["statistic"] for task in tasks} == {"acc-eq", "spa", "kendall"}
    assert all(task["value"] == pytest.approx(1) for task in tasks)


def test_several_levels_are_measured_in_one_call(run: Any, human: list[str]) -> None:
    command = [*human, "--statistic", "pearson", "--level", "segment", "system"]
    tasks = json.loads(run(*command, "-f", "json"))["tasks"]
    assert [task["level"] for task in tasks] == ["segment", "system"]
    assert "Pearson" in run(*command)


def test_an_unknown_statistic_gets_a_suggestion(
    human: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*human, "--statistic", "kendal"]) == 2
    assert "did you mean 'kendall'" in capsys.readouterr().err

"""`tertium rank`: systems and candidate lists from files to what is printed.

A metric does the ranking here; `tests/contracts/test_rankers.py` runs the network that ships.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tests.partial_metric import UNSCORED, Partial

import tertium
from tertium.cli import main
from tertium.core.segment import Segment
from tertium.evaluation.ranking import NOT_COMPARED

GOOD = "the parliament rejected the budget\nnobody came home\n"
FAIR = "the parliament refused budget\nnobody came\n"
POOR = "a cat\nmat\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in (("good", GOOD), ("fair", FAIR), ("poor", POOR), ("ref", GOOD)):
        (tmp_path / f"{name}.txt").write_text(text)
    return tmp_path


def run(files: Path, *options: str, metric: str = "chrf") -> list[str]:
    systems = [str(files / f"{name}.txt") for name in ("poor", "good", "fair")]
    return ["rank", "-m", metric, "-q", "-t", *systems, "-r", str(files / "ref.txt"), *options]


def test_systems_are_sorted_from_best_to_worst(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(run(files, "-f", "json")) == 0
    records = json.loads(capsys.readouterr().out)
    assert [r["system"] for r in records] == ["good.txt", "fair.txt", "poor.txt"]
    # each of three systems meets two others: wins are 2, 1 and 0 of 2 on both segments
    assert [r["score"] for r in records] == [1.0, 0.5, 0.0]
    assert [(r["rank"], r["best"]) for r in records] == [(1, 2), (2, 0), (3, 0)]
    assert "segments" not in records[0]


def test_segments_and_the_json_file(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = files / "out.json"
    assert main(run(files, "-sl", "-f", "tsv", "-o", str(target))) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("\t") == ["segment", "poor.txt", "good.txt", "fair.txt"]
    assert lines[1].split("\t") == ["1", "0.0", "1.0", "0.5"]
    assert json.loads(target.read_text())[0]["segments"] == [1.0, 1.0]


def test_table_names_segments_and_systems(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(run(files)) == 0
    printed = capsys.readouterr().out
    assert "2 segments, all pairs of 3 systems" in printed
    assert "metric:chrF" in printed


def test_ranking_prints_warnings(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "fair.txt").write_text("\nnobody came\n")
    loud = [word for word in run(files) if word != "-q"]
    message = "warning: empty hypothesis: fair.txt 1"
    assert main(loud) == 0
    assert message in capsys.readouterr().out
    assert main([*loud, "-f", "json"]) == 0
    printed = capsys.readouterr()
    assert [r.get("warnings") for r in json.loads(printed.out)].count({"empty hypothesis": 1}) == 1
    assert f"tertium: {message}" in printed.err
    assert main([*loud, "-sl"]) == 0
    assert f"tertium: {message}" in capsys.readouterr().err
    assert main(run(files, "-sl")) == main(run(files)) == 0
    assert "warning" not in "".join(capsys.readouterr())
    lists = files / "lists.jsonl"
    lists.write_text(json.dumps({"reference": "a cat", "candidates": ["", "a cat"]}) + "\n")
    assert main(["rank", "candidates", str(lists), "-m", "chrf"]) == 0
    assert "warning: empty hypothesis: 1" in capsys.readouterr().err


def test_candidates_are_reordered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [
        {"id": 7, "source": "s", "reference": "a cat sat", "candidates": ["dog", "a cat sat"]},
        {"id": 8, "reference": ["nobody", "no one"], "candidates": ["nobody"]},
    ]
    file = tmp_path / "lists.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert main(["rank", "candidates", str(file), "-m", "chrf", "-q"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["candidates"] == ["a cat sat", "dog"]
    assert (first["scores"], first["order"], first["id"]) == ([1.0, 0.0], [1, 0], 7)
    assert (second["candidates"], second["scores"]) == (["nobody"], [None])


def test_names_of_candidates_and_texts_are_read_in_any_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lists.jsonl"
    file.write_text(
        '{"Reference": "a cat sat", "NBest": ["dog", "a cat sat"], "cost": NaN}\n'
        '{"Ref": "a cat sat", "nbest": ["dog", "a cat sat"], "NBest": "of another tool"}\n'
    )
    assert main(["rank", "candidates", str(file), "-m", "chrf", "-q"]) == 0
    lines = capsys.readouterr().out.splitlines()
    first, second = (json.loads(line, parse_constant=pytest.fail) for line in lines)
    assert (first["NBest"], first["order"]) == (["a cat sat", "dog"], [1, 0])
    assert first["cost"] is None  # JSON has no NaN
    assert second["nbest"] == ["a cat sat", "dog"]


def test_missing_score_is_not_a_tie(
    files: Path, partial: str, capsys: pytest.CaptureFixture[str]
) -> None:
    loud = [word for word in run(files, metric=partial) if word != "-q"]
    (files / "fair.txt").write_text(f"{UNSCORED}\nnobody came\n")
    assert main([*loud, "-f", "json", "-sl"]) == 0
    records = json.loads(capsys.readouterr().out)
    segments = {record["system"]: record["segments"] for record in records}
    # the others meet as if it were not there
    assert segments == {"good.txt": [1, 1], "fair.txt": [None, 0.5], "poor.txt": [0, 0]}
    assert [record["best"] for record in records] == [2, 0, 0]
    message = {"translation not compared because its score is not a number": 1}
    assert [record.get("warnings") for record in records] == [None, message, None]
    (files / "fair.txt").write_text(f"{UNSCORED}\n{UNSCORED}\n")
    assert main(loud) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["good.txt", "1", "1.0000", "2"] in rows
    assert ["poor.txt", "2", "0.0000", "0"] in rows
    assert ["fair.txt", "–", "–", "0"] in rows
    for name in ("good", "poor"):
        (files / f"{name}.txt").write_text(f"{UNSCORED}\n{UNSCORED}\n")
    assert main([*loud, "-f", "json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [(r["rank"], r["score"], r["best"]) for r in records] == [(None, None, 0)] * 3


def test_candidates_without_a_score_come_last(
    tmp_path: Path, partial: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lists.jsonl"
    lists = [["dog", UNSCORED, "a cat sat"], [UNSCORED]]
    records = [{"reference": "a cat sat", "candidates": texts} for texts in lists]
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert main(["rank", "candidates", str(file), "-m", partial]) == 0
    printed = capsys.readouterr()
    first = json.loads(printed.out.splitlines()[0])
    assert (first["order"], first["scores"]) == ([2, 0, 1], [1.0, 0.0, None])
    assert "translation not compared because its score is not a number: 1" in printed.err


def test_list_with_missing_input_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "lists.jsonl"
    records = [{"reference": "a", "candidates": ["a", "b"]}, {"candidates": ["a", "b"]}]
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert main(["rank", "candidates", str(file), "-m", "chrf"]) == 2
    assert "chrf needs references, but list 2 has none" in capsys.readouterr().err


def test_errors_are_one_line(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lists = tmp_path / "lists.jsonl"
    lists.write_text('{"candidates": "not a list"}\n')
    empty = tmp_path / "empty.jsonl"
    empty.write_text('{"candidates": []}\n')
    unnamed = tmp_path / "unnamed.jsonl"
    unnamed.write_text('{"ref": "a", "hyps": ["a", "b"]}\n')
    scored = tmp_path / "scored.jsonl"  # scores of a decoder must not be replaced silently
    scored.write_text('{"candidates": ["a", "b"], "ref": "a", "scores": [-0.1, -0.2]}\n')
    one = str(files / "good.txt")
    for arguments, message in (
        (["rank", "-m", "chrf", "-t", one, "-r", one], "two systems"),
        (
            ["rank", "candidates", str(lists), "-m", "chrf"],
            "line 1: `candidates` must be a list",
        ),
        (["rank", "candidates", str(unnamed), "-m", "chrf"], "no candidates (looked for cand"),
        (["rank", "candidates", str(scored), "-m", "chrf"], "line 1: the field 'scores' exists"),
        (
            ["rank", "candidates", str(empty), "-m", "chrf"],
            "`candidates` must be a list of at least one text, got []",
        ),
        (["rank", "candidates", str(lists), "-r", one], "unrecognized arguments: -r"),
        (["rank", "-m", "chrf", "--nbest", "-t", str(lists)], "use `tertium rank candidates FILE`"),
        (["rank", "-m", "chrf", "-m", "ter", "-t", one, one, "-r", one], "give it once"),
        (["rank", "-m", "chrf", "ter", "-t", one, one, "-r", one], "unrecognized argument: ter"),
        (["rank", "candidates", "-m", "chrf", "-"], "standard input: cannot be read"),
        (["rank", "-m", "chrf", "-t", one, "-r", "-", "--documents", "-"], "is given twice"),
        (
            ["rank", "-m", "chrf", "-t", one, one, "-r", one, "--to-json", "x.json"],
            "--to-json was removed: use -o FILE.json, with -sl",
        ),
        (["rank", "-m", "parwise", "-t", one, one, "-r", one], "did you mean 'pairwise'"),
    ):
        assert main(arguments) == 2
        assert message in capsys.readouterr().err


def test_explanation_of_a_missing_score_is_not_a_tie() -> None:
    good, unscored = (Segment(text, None, ("a cat sat",)) for text in ("a cat", UNSCORED))
    explanation = tertium.explain(good, unscored, metric=Partial())
    assert math.isnan(explanation.score)
    assert explanation.win_probabilities is not None
    assert math.isnan(explanation.win_probabilities.chances[0][1])
    assert explanation.warnings == (NOT_COMPARED,)
    ranking = tertium.rank({"a": ["a cat"], "b": [UNSCORED]}, Partial(), references=["a cat sat"])
    assert all(map(math.isnan, ranking.ranks))
    assert ranking.best_on.tolist() == [0, 0]

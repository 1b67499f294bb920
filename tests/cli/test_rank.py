"""`tertium rank`: systems and candidate lists, also without scores of some translations.

A metric does the ranking here; `tests/contracts/test_rankers.py` runs the network that ships.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from tests.builders import write_jsonl, write_lines
from tests.cli.conftest import Run
from tests.partial_metric import UNSCORED, Partial

import tertium
from tertium.core.segment import Segment
from tertium.evaluation.ranking import NOT_COMPARED

GOOD = ["the parliament rejected the budget", "nobody came home"]
TEXTS = {
    "poor": ["a cat", "mat"],
    "good": GOOD,
    "fair": ["the parliament refused budget", "nobody came"],
    "ref": GOOD,
}
COMMAND = "rank -t poor.txt good.txt fair.txt -r ref.txt"


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, lines in TEXTS.items():
        write_lines(f"{name}.txt", lines)


def test_systems_are_sorted_from_best_to_worst(run: Run) -> None:
    records = run(f"{COMMAND} -m chrf -f json").json
    assert [r["system"] for r in records] == ["good.txt", "fair.txt", "poor.txt"]
    # each of three systems meets two others: wins are 2, 1 and 0 of 2 on both segments
    assert [r["score"] for r in records] == [1.0, 0.5, 0.0]
    assert [(r["rank"], r["best"]) for r in records] == [(1, 2), (2, 0), (3, 0)]
    assert "segments" not in records[0]
    segments = run(f"{COMMAND} -m chrf -sl -f tsv -q").rows
    assert segments[0] == ["segment", "poor.txt", "good.txt", "fair.txt"]
    assert segments[1] == ["1", "0.0", "1.0", "0.5"]


def test_candidates_are_reordered(run: Run) -> None:
    """Names of fields are read in any case, and numbers that JSON lacks are null."""
    records = [
        {"id": 7, "source": "s", "reference": "a cat sat", "candidates": ["dog", "a cat sat"]},
        {"id": 8, "reference": ["nobody", "no one"], "candidates": ["nobody"]},
        {"Ref": "a cat sat", "nbest": ["dog", "a cat sat"], "NBest": "other", "cost": math.nan},
    ]
    write_jsonl("lists.jsonl", records)
    lines = run("rank candidates lists.jsonl -m chrf -q").out.splitlines()
    first, second, third = (json.loads(line, parse_constant=pytest.fail) for line in lines)
    assert first["candidates"] == third["nbest"] == ["a cat sat", "dog"]
    assert (first["scores"], first["order"], first["id"]) == ([1.0, 0.0], [1, 0], 7)
    assert (second["candidates"], second["scores"]) == (["nobody"], [None])
    assert third["cost"] is None


def test_missing_score_is_not_a_tie(partial: str, run: Run) -> None:
    command = f"{COMMAND} -m {partial}"
    write_lines("fair.txt", [UNSCORED, "nobody came"])
    records = run(f"{command} -f json -sl").json
    segments = {record["system"]: record["segments"] for record in records}
    # the others meet as if it were not there
    assert segments == {"good.txt": [1, 1], "fair.txt": [None, 0.5], "poor.txt": [0, 0]}
    assert [record["best"] for record in records] == [2, 0, 0]
    message = {"translation not compared because its score is not a number": 1}
    assert [record.get("warnings") for record in records] == [None, message, None]
    write_lines("fair.txt", [UNSCORED, UNSCORED])
    rows = [line.split() for line in run(command).out.splitlines()]
    assert ["good.txt", "1", "1.0000", "2"] in rows
    assert ["poor.txt", "2", "0.0000", "0"] in rows
    assert ["fair.txt", "–", "–", "0"] in rows
    for name in ("good", "poor"):
        write_lines(f"{name}.txt", [UNSCORED, UNSCORED])
    records = run(f"{command} -f json").json
    assert [(r["rank"], r["score"], r["best"]) for r in records] == [(None, None, 0)] * 3


def test_candidates_without_a_score_come_last(partial: str, run: Run) -> None:
    lists = [["dog", UNSCORED, "a cat sat"], [UNSCORED]]
    write_jsonl("lists.jsonl", ({"reference": "a cat sat", "candidates": c} for c in lists))
    printed = run(f"rank candidates lists.jsonl -m {partial}")
    first = json.loads(printed.out.splitlines()[0])
    assert (first["order"], first["scores"]) == ([2, 0, 1], [1.0, 0.0, None])
    assert "translation not compared because its score is not a number: 1" in printed.err


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

"""The translation grid: disagreement, warnings and selection of segments to explain."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tertium.core.scores import ScoreMatrix
from tertium.core.segment import Segment
from tertium.data.testset import TestSet
from tertium.evaluation.scoring import score
from tertium.meta.aligned_scores import AlignedScores
from tertium.output.markup_builder import Markup
from tertium.output.page.segment_browser import SegmentExplanation, encode_grid
from tertium.output.page.translation_grid import (
    TranslationGrid,
    grid_from_aligned_scores,
    grid_from_evaluation,
    rank_fractions,
    select_items_to_explain,
    select_systems_to_explain,
)


@pytest.fixture(scope="module")
def grid(example: TestSet) -> TranslationGrid:
    return grid_from_evaluation(score(example, ["chrf", "ter"]))


def test_rows_and_lengths_of_a_grid(grid, example):
    assert len(grid) == 3 * 48
    assert grid.texts[:3] == tuple(example.systems[s][0] for s in ("good", "fair", "poor"))
    assert (grid.item_indices[-1], grid.system_indices[-1]) == (47, 2)
    chrf = score(example, "chrf").scores["fair"]["chrf"].segments
    assert grid.columns[0].values[grid.system_indices == 1] == pytest.approx(chrf)
    assert grid.unit == "word"
    text = "図書館は日曜日を除いて毎日午前九時に開きます。"
    testset = TestSet(systems={"a": (text,)}, references=((text,),))
    assert grid_from_evaluation(score(testset, "chrf")).unit == "character"


def test_disagreement_is_a_difference_of_ranks(grid):
    assert rank_fractions(np.array([5.0])).tolist() == [0.0]
    assert rank_fractions(np.array([1.0, 2.0, 3.0])).tolist() == [0.0, 0.5, 1.0]
    # TER and negated TER agree on every row; chrF and TER do not
    ter = grid.columns[1]
    negated = replace(ter, values=-ter.values, higher_is_better=True)
    assert replace(grid, columns=(ter, negated)).metric_disagreement.max() == 0
    assert grid.metric_disagreement.max() > 0.2
    column = grid.columns[0]
    same = replace(grid, columns=(column,), human=column.values * 3 + 1)
    assert np.abs(same.human_disagreement).max() == pytest.approx(0)
    opposite = replace(same, human=-column.values)
    assert np.nanmax(opposite.human_disagreement) == pytest.approx(1)


def test_human_scores_are_matched_by_names(grid):
    human = ScoreMatrix("da", ("poor", "good"), np.array([[1.0, 2.0], [3.0, 4.0]]), ("2", "1"))
    actual = grid.with_human(human).human
    assert actual[:6].tolist()[0] == 4.0  # good, segment 1
    assert np.isnan(actual[1])  # fair has no human scores
    assert actual[2] == 2.0  # poor, segment 1
    assert np.isfinite(actual).sum() == 4


def test_warnings_name_the_rows(grid):
    """Of examples/README.md: in poor, line 24 is empty, and line 13 copies the source."""
    for warning, segment in (("empty hypothesis", 24), ("hypothesis equals source", 13)):
        (row,) = np.flatnonzero(grid.warnings[warning])
        assert grid.item_indices[row] + 1 == segment
        assert grid.systems[grid.system_indices[row]] == "poor"


def test_interesting_items_come_from_each_list_in_turn(grid):
    chosen = select_items_to_explain(grid, 6)
    assert len(chosen) == 6
    assert chosen == sorted(set(chosen))
    assert int(grid.item_indices[grid.metric_disagreement.argmax()]) in chosen
    assert select_items_to_explain(grid, 0) == []
    assert len(select_items_to_explain(grid, 1000)) == 48
    assert select_systems_to_explain(grid, chosen[0]) == [0, 1, 2]


def test_a_grid_of_judgments_has_only_scored_rows():
    metric = np.array([[0.1, np.nan], [0.3, np.nan]])
    human = ScoreMatrix("da", ("A", "B"), np.array([[50.0, np.nan], [np.nan, 70]]), ("1", "2"))
    scores = ScoreMatrix("m", ("A", "B"), metric, ("1", "2"))
    dataset = AlignedScores.align("de-en", [scores], human=human)
    texts = {"de-en": {("A", "1"): Segment("hello", "hallo", ("hi",))}}
    actual = grid_from_aligned_scores([dataset], texts)
    systems = [actual.systems[n] for n in actual.system_indices]
    assert (systems, actual.item_indices.tolist()) == (["A", "B", "B"], [0, 0, 1])
    assert actual.items[0].source == "hallo"
    assert actual.items[0].document == "de-en"
    assert actual.texts == ("hello", "", "")
    assert actual.label(2) == "segment 2, B"
    twice = grid_from_aligned_scores([dataset, replace(dataset, name="fi-en")], texts)
    assert twice.label(2) == "segment 2 of de-en, B"


def decode(encoded: str) -> Any:
    return json.loads(zlib.decompress(base64.b64decode(encoded)))


def test_encoded_data_match_the_tables(grid):
    note = SegmentExplanation(item=1, system=2, title="WMD", html=Markup("<b>x</b>"))
    data = decode(encode_grid(grid, [note]))
    assert data["systems"] == ["good", "fair", "poor"]
    label, document, source, references, texts = data["items"][12]
    assert (label, data["documents"][document]) == ("13", grid.items[12].document)
    assert texts[2] == source  # poor copies segment 13
    assert len(references) == 2
    chrf = data["columns"][0]
    displayed = [f"{v / 10 ** chrf['decimals']:.2f}" for v in chrf["values"]]
    assert displayed == [f"{v:.2f}" for v in grid.columns[0].values]
    bit = 1 << data["warnings"].index("empty hypothesis")
    assert [n for n, bits in enumerate(data["warningBits"]) if bits & bit] == [23 * 3 + 2]
    assert data["explanations"] == [[1, 2, "WMD", "<b>x</b>"]]
    assert data["human"] is None
    assert set(data["humanDisagreement"]) == {None}


def test_control_characters_are_encoded():
    odd = "\x00 \u202e <\\/script>"
    small = TestSet(systems={"a": (odd,)}, references=(("x",),))
    data = decode(encode_grid(grid_from_evaluation(score(small, "chrf"))))
    assert data["items"][0][4] == [odd]

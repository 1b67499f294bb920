"""Printed examples, orders of systems and hypotheses, winners: on collections checked by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from papers.bounds import best_weights, measure_folds
from papers.causes import Material, Pairs, Variation, measure_variation
from papers.direct import Direct
from papers.learners import SeededSegments
from papers.ledger import Ledger
from papers.orders import RandomOrder, TieAwareSystems, TopAndBottom, chance
from papers.printed import Example, Printed, PrintedRanks, Standing
from papers.render import as_table
from papers.table import Figure, PaperTable, Row, measure
from papers.winners import mark_winners, unbeaten
from tests.papers.length_metric import Length

from tertium.arrays import FloatArray
from tertium.data.dataset_folder import DatasetFolder
from tertium.meta.pairwise import consistency
from tertium.metrics.pairwise.options import PairwiseOptions
from tertium.metrics.regression.regressions import BLEUR
from tertium.segment import Segment


@dataclass(frozen=True, kw_only=True)
class ReferenceLength(Length):
    """The length of the reference."""

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        return np.array([float(len(s.references[0])) for s in segments])


@pytest.fixture
def collection(tmp_path: Path) -> DatasetFolder:
    """Three ranked systems on one segment, A over B over C, and four judged translations."""
    folder = tmp_path / "rankings" / "mine"
    folder.mkdir(parents=True)
    outputs = {"A": "xxxx", "B": "xx", "C": "xxx"}
    texts = {"segment": "7", "source": "s", "reference": "r", "outputs": outputs}
    (folder / "cs-en.texts.jsonl").write_text(json.dumps(texts) + "\n")
    said = ["7\tj\tA\tB\ta", "7\tj\tA\tC\ta", "7\tj\tB\tC\ta"]
    lines = ["segment\tjudge\tsystem_a\tsystem_b\tpreference", *said]
    (folder / "cs-en.judgements.tsv").write_text("\n".join(lines) + "\n")
    (tmp_path / "da" / "wmt15").mkdir(parents=True)
    scored = [
        {"system": "A", "segment": str(n), "hypothesis": "x" * n, "reference": "r", "score": n}
        for n in (1, 2, 3, 4)
    ]
    rows = "".join(json.dumps(row) + "\n" for row in scored)
    (tmp_path / "da" / "wmt15" / "cs-en.jsonl").write_text(rows)
    return DatasetFolder(tmp_path)


def test_an_example_has_the_score_of_its_text_and_its_standing(collection: DatasetFolder) -> None:
    examples = (Example("short", "r", "xx"), Example("long", "r", "xxxxxx"))
    alone, among = Printed(examples=examples), Standing(examples=examples)
    assert alone.measure(collection, Length(), "short").value == 2.0
    # One of four judged translations is shorter than two letters, all are shorter than six.
    assert among.measure(collection, Length(), "short").value == 0.25
    assert among.measure(collection, Length(), "long").value == 1.0


def test_a_printed_rank_is_among_what_was_compared(collection: DatasetFolder) -> None:
    examples = (("best", "7", "A"), ("worst", "7", "B"))
    ranks = PrintedRanks(set="rankings/mine", lp="cs-en", examples=examples)
    found = [ranks.measure(collection, Length(), column) for column in ranks.columns]
    assert [figure.value for figure in found] == [1.0, 3.0]
    assert [figure.count for figure in found] == [3, 3]


def test_top_and_bottom_take_the_comparisons_of_the_best_and_the_worst(
    collection: DatasetFolder,
) -> None:
    """A is best: both its comparisons agree with lengths. C is worst: B over C does not."""
    experiment = TopAndBottom(pairs=("cs-en",), set="rankings/mine")
    top, bottom = (experiment.measure(collection, Length(), c) for c in ("top", "bottom"))
    assert (top.value, top.count) == (100.0, 2)
    assert (bottom.value, bottom.count) == (50.0, 2)


def test_plain_predictions_count_who_is_best(collection: DatasetFolder) -> None:
    """People: A 1, B .5, C 0. Best on the only segment is A alone, or with C where half may tie."""
    plain = TieAwareSystems(columns=("cs-en",), tie_rate=0.0, set="rankings/mine")
    tied = replace(plain, tie_rate=1.0)
    values = [one.measure(collection, Length(), "cs-en").value for one in (plain, tied)]
    # Spearman of (3, 2, 1) with ranks (3, 1.5, 1.5), then with (2.5, 1, 2.5).
    np.testing.assert_allclose(values, [86.6025, 0.0], atol=1e-3)


def test_a_random_order_agrees_with_half_of_what_is_no_tie(collection: DatasetFolder) -> None:
    experiment = RandomOrder(
        set="rankings/mine", columns=("cs-en",), compare=lambda v, a, b: consistency(v, a, b)
    )
    model = chance(collection, "cs-en")
    assert experiment.measure(collection, model, "cs-en").value == pytest.approx(50, abs=5)


def test_winners_are_kept_and_printed_bold(tmp_path: Path, collection: DatasetFolder) -> None:
    human = np.arange(40.0)
    noise = np.random.default_rng(1).normal(scale=15, size=(2, 40))
    scores = {"good": human, "as good": human + noise[0] / 50, "bad": noise[1]}
    best = unbeaten(human, {k: v + noise[0] / 100 for k, v in scores.items()})
    assert best["good"]
    assert not best["bad"]
    table = PaperTable(
        paper="mine",
        number="1",
        title="",
        experiment=Printed(examples=(Example("one", "r", "x"),)),
        rows=[Row(label=label, model="bleu") for label in ("good", "bad", "unknown")],
    )
    ledger = Ledger(tmp_path / "results")
    for row in table.rows[:2]:
        ledger.recall(table, row, "one", lambda: Figure(value=0.5, count=1))
    ledger.mark(table, "one", best)
    outcome = ledger.outcome(table)
    assert [row.figures[0].best for row in outcome.rows[:2]] == [True, False]
    shown = as_table(outcome)
    marks = [row[2].emphasis for row in shown.rows if row[1] == "measured"]  # type: ignore[union-attr]
    assert marks == ["best", ""]
    assert any("Williams" in note and "good; bad" in note for note in shown.notes)


def test_winners_are_sought_among_trained_rows_too(tmp_path: Path) -> None:
    folder = tmp_path / "da" / "mine"
    folder.mkdir(parents=True)
    noise = np.random.default_rng(1).permutation(40)
    rows = [
        {
            "system": "A",
            "segment": str(n),
            "hypothesis": "x" * (n + 1),
            "reference": "r" * int(noise[n] + 1),
            "score": n,
        }
        for n in range(40)
    ]
    (folder / "cs-en.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    trained = [
        Row(label="good", model=lambda collection, column: [Length(), ReferenceLength()]),
        Row(label="bad", model=lambda collection, column: [ReferenceLength()]),
    ]
    experiment = SeededSegments(set="da/mine", columns=("cs-en",))
    table = PaperTable(paper="mine", number="1", title="", experiment=experiment, rows=trained)
    ledger = Ledger(tmp_path / "results")
    collection = DatasetFolder(tmp_path)
    measure(table, collection, ledger.recall)
    mark_winners(table, collection, ledger)
    outcome = ledger.outcome(table)
    assert [row.figures[0].best for row in outcome.rows] == [True, False]
    assert any("the first was tested" in note for note in as_table(outcome).notes)


def test_preferences_are_learned_from_what_differs(tmp_path: Path, monkeypatch: Any) -> None:
    """The translation with more words of the reference wins, in two language pairs."""
    folder = tmp_path / "rankings" / "wmt11"
    folder.mkdir(parents=True)
    words = "one two three four five six seven eight".split()
    outputs = {f"S{n}": " ".join(words[: n + 2] + ["no"] * (6 - n)) for n in range(6)}
    pairs = [(a, b) for a in range(6) for b in range(6) if a != b]
    for lp in ("cs-en", "de-en"):
        texts = {"segment": "1", "source": "s", "reference": " ".join(words), "outputs": outputs}
        (folder / f"{lp}.texts.jsonl").write_text(json.dumps(texts) + "\n")
        said = [f"1\tj\tS{a}\tS{b}\t{'a' if a > b else 'b'}" for a, b in pairs]
        header = "segment\tjudge\tsystem_a\tsystem_b\tpreference"
        (folder / f"{lp}.judgements.tsv").write_text("\n".join([header, *said]) + "\n")
    monkeypatch.setattr("papers.direct.COMPARISONS", 40)
    learned = Direct(BLEUR)(DatasetFolder(tmp_path), "cs-en")
    segments = [Segment(text, None, (" ".join(words),)) for text in outputs.values()]
    assert (learned.prefer(segments[1:], segments[:-1]) > 0.5).all()
    assert learned.prefer(segments[:1], segments[:1])[0] == 0.5


def made_material(noisy: float = 0.0) -> Material:
    """400 translations whose first feature is what people go by, but for some noise of theirs."""
    rng = np.random.default_rng(0)
    quality, noise = rng.normal(size=(2, 400)).astype(np.float32)
    quality[1] = quality[0]
    noise[1] = noise[0]
    left, right = rng.permutation(400), rng.permutation(400)
    left[0], right[0] = 0, 1
    seen = quality[left] - quality[right] + noisy * rng.normal(size=400)
    pairs = Pairs(left, right, (seen > 0).astype(np.float64))
    vectors = {"glove": np.ones((400, 2), np.float32)}
    return Material(
        vectors=vectors,
        anchors=vectors,
        columns={"good": quality[:, None], "idle": noise[:, None]},
        pairs={"train": [pairs], "dev": [pairs], "test": [pairs, pairs]},
        items=np.arange(400) % 40,
    )


@pytest.mark.parametrize(
    "change",
    [{}, {"doubled": True}, {"share": 0.5}, {"choice": "mixed"}, {"scaled_on": "all", "hidden": 0}],
    ids=str,
)
def test_a_variation_learns_whom_a_column_names(change: dict[str, Any]) -> None:
    """The first feature is the quality people go by; equal values of it tie by both orders."""
    material = made_material()
    variation = Variation(
        features=("good", "idle"),
        vectors=("glove",),
        options=PairwiseOptions(rate=0.3, epochs=4, patience=0),
        **change,
    )
    found = measure_variation(material, variation)
    assert found["WMT12"].shape == (5,)
    assert found["WMT12"].min() > 80
    assert found["WMT12"].max() < 99.6  # of 400 comparisons the tie counts as wrong
    np.testing.assert_allclose(found["WMT12"], found["WMT11"])


def test_folds_decide_what_they_did_not_learn_from() -> None:
    """A column that tells the year apart by heart is worth nothing on other references."""
    material = made_material()
    options = PairwiseOptions(rate=0.3, epochs=4, patience=0)
    plain = Variation(features=("good",), vectors=(), hidden=0, options=options)
    assert measure_folds(material, plain)["WMT12"].min() > 80
    rng = np.random.default_rng(1)
    random = Pairs(*material.pairs["test"][0][:2], rng.integers(0, 2, 400).astype(np.float64))
    heart = np.eye(400, dtype=np.float32)
    learnt = replace(
        material,
        columns={"heart": heart},
        pairs={"train": [random], "dev": [random], "test": [random]},
    )
    by_heart = Variation(
        features=("heart",),
        vectors=(),
        hidden=0,
        scaling="standard",
        options=PairwiseOptions(rate=0.03, epochs=12, patience=0, decay=0.0),
    )
    assert measure_variation(learnt, by_heart)["WMT12"].mean() > 60
    assert abs(measure_folds(learnt, by_heart)["WMT12"].mean()) < 30


@pytest.mark.parametrize("one_order", [False, True])
def test_the_best_weights_are_those_of_a_slow_search(one_order: bool) -> None:
    """Every direction of two weights, in steps of half a degree, and every constant of a grid."""
    material = made_material(noisy=1.0)
    left, right, verdicts = material.pairs["test"][0]
    values = np.hstack([*material.columns.values()]).astype(np.float64)
    values /= values.std(axis=0)
    rows = values[left] - values[right]
    turns = np.radians(np.arange(0, 360, 0.5))
    constants = np.linspace(-1, 1, 401) if one_order else np.zeros(1)
    margins = rows @ np.stack([np.cos(turns), np.sin(turns)])  # (pairs, turns)
    slow = max(
        float(np.where(verdicts[:, None] > 0.5, margins > -c, margins < -c).mean(axis=0).max())
        for c in constants
    )
    found = float(best_weights(material, ("good", "idle"), one_order, False)[0])
    assert found >= 100 * (2 * slow - 1) - 1e-9
    assert found <= 100 * (2 * slow - 1) + 2.5  # a finer place than the grid has

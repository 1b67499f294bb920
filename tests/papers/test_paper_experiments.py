"""Experiments of single papers, on small datasets with hand-computed results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from papers.guzman2015_rankers import Decision, SeededRankings
from papers.ledger import Ledger
from papers.pado2009 import EarlyMETEOR
from papers.pado2009_experiments import RandomOrder, TieAwareSystems
from papers.printed_examples import Example, ExamplePercentiles, ExampleRanks, ExampleScores
from papers.significance import find_best_rows, mark_best_rows
from papers.table import Figure, PaperTable, Row, measure
from papers.table_rendering import make_table
from papers.trained_metrics import SeededSegments
from papers.wink_vectors import convert_vectors
from tests.builders import write_jsonl
from tests.papers.length_metric import Length
from tests.papers.small_sets import write_assessments, write_rankings

from tertium.core.arrays import FloatArray
from tertium.core.errors import DataError
from tertium.core.segment import Segment
from tertium.data.dataset_folder import DatasetFolder
from tertium.meta.pairwise import consistency
from tertium.metrics.lexical.meteor_metric import METEOR
from tertium.metrics.pairwise.ranking_network import PairwiseNetwork, Rows


@dataclass(frozen=True, kw_only=True)
class ReferenceLength(Length):
    """The length of the reference."""

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        return np.array([float(len(s.references[0])) for s in segments])


@pytest.fixture
def datasets(tmp_path: Path) -> DatasetFolder:
    """Three ranked systems on one segment, A over B over C, and four scored translations."""
    outputs = {"A": "xxxx", "B": "xx", "C": "xxx"}
    write_rankings(tmp_path, outputs, ["A B a", "A C a", "B C a"], segment="7")
    write_assessments(tmp_path, "wmt15", [1, 2, 3, 4])
    return DatasetFolder(tmp_path)


def test_scores_and_percentiles_of_examples(datasets: DatasetFolder) -> None:
    examples = (Example("short", "r", "xx"), Example("long", "r", "xxxxxx"))
    scores, percentiles = ExampleScores(examples=examples), ExamplePercentiles(examples=examples)
    assert scores.measure(datasets, Length(), "short").value == 2.0
    # One of the four translations of the set is shorter than two letters, all are shorter than six.
    assert percentiles.measure(datasets, Length(), "short").value == 0.25
    assert percentiles.measure(datasets, Length(), "long").value == 1.0


def test_rank_of_an_example_among_compared_translations(datasets: DatasetFolder) -> None:
    examples = (("best", "7", "A"), ("worst", "7", "B"))
    ranks = ExampleRanks(set="rankings/mine", lp="cs-en", examples=examples)
    figures = [ranks.measure(datasets, Length(), column) for column in ranks.columns]
    assert [figure.value for figure in figures] == [1.0, 3.0]
    assert [figure.count for figure in figures] == [3, 3]


def test_tie_aware_and_plain_system_scores(datasets: DatasetFolder) -> None:
    """Human scores: A 1, B .5, C 0. The best is A alone, or A and C if they may tie."""
    plain = TieAwareSystems(columns=("cs-en",), tie_rate=0.0, set="rankings/mine")
    tied = replace(plain, tie_rate=1.0)
    values = [e.measure(datasets, Length(), "cs-en").value for e in (plain, tied)]
    # Spearman of (3, 2, 1) with ranks (3, 1.5, 1.5), then with (2.5, 1, 2.5).
    np.testing.assert_allclose(values, [86.6025, 0.0], atol=1e-3)


def test_a_random_order_agrees_with_half_of_the_comparisons(
    datasets: DatasetFolder,
) -> None:
    experiment = RandomOrder(
        set="rankings/mine", columns=("cs-en",), compare=lambda v, a, b: consistency(v, a, b)
    )
    assert experiment.measure(datasets, None, "cs-en").value == pytest.approx(50, abs=5)


def test_best_rows_are_stored_and_bold(tmp_path: Path) -> None:
    human = np.arange(40.0)
    noise = np.random.default_rng(1).normal(scale=15, size=(2, 40))
    scores = {"good": human, "as good": human + noise[0] / 50, "bad": noise[1]}
    best = find_best_rows(human, {k: v + noise[0] / 100 for k, v in scores.items()})
    assert best["good"]
    assert not best["bad"]
    table = PaperTable(
        paper="mine",
        number="1",
        title="",
        experiment=ExampleScores(examples=(Example("one", "r", "x"),)),
        rows=[Row(label=label, model="bleu") for label in ("good", "bad", "unknown")],
    )
    ledger = Ledger(tmp_path / "results")
    for row in table.rows[:2]:
        ledger.get_figure(table, row, "one", lambda: Figure(value=0.5, count=1))
    ledger.mark_best(table, "one", best)
    result = ledger.load_table(table)
    assert [row.figures[0].best for row in result.rows[:2]] == [True, False]
    rendered = make_table(result)
    assert [row[1].emphasis for row in rendered.rows] == ["best", ""]  # type: ignore[union-attr]
    assert any("Williams" in note and "good; bad" in note for note in rendered.notes)


def test_best_rows_include_trained_rows(tmp_path: Path) -> None:
    noise = np.random.default_rng(1).permutation(40)
    rows = [
        {"system": "A", "segment": str(n), "score": n, "hypothesis": "x" * (n + 1)}
        | {"reference": "r" * int(noise[n] + 1)}
        for n in range(40)
    ]
    write_jsonl(tmp_path / "da" / "mine" / "cs-en.jsonl", rows)
    trained = [
        Row(label="good", model=lambda datasets, column: [Length(), ReferenceLength()]),
        Row(label="bad", model=lambda datasets, column: [ReferenceLength()]),
    ]
    experiment = SeededSegments(set="da/mine", columns=("cs-en",))
    table = PaperTable(paper="mine", number="1", title="", experiment=experiment, rows=trained)
    ledger = Ledger(tmp_path / "results")
    datasets = DatasetFolder(tmp_path)
    measure(table, datasets, ledger.get_figure)
    mark_best_rows(table, datasets, ledger)
    result = ledger.load_table(table)
    assert [row.figures[0].best for row in result.rows] == [True, False]
    assert any("the first was tested" in note for note in make_table(result).notes)


class LengthRanker:
    """Prefers long texts: f = sig(length of t1 - half the length of t2 + 1), by hand.

    Both orders: the longer text wins. One order: t1 wins unless t2 is twice as long plus two.
    """

    class trained:
        network = PairwiseNetwork(
            np.zeros((1, 0), np.float32), np.array([1.0, -0.5, 1.0], dtype=np.float32)
        )

    def inputs(self, segments: Sequence[Segment]) -> Rows:
        lengths = np.array([[len(s.hypothesis)] for s in segments], dtype=np.float32)
        empty = np.zeros((len(segments), 0), dtype=np.float32)
        return Rows(vectors=empty, anchors=empty, features=lengths)


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        ("both orders", 100 / 3),  # A over B and A over C are right, B over C is not
        ("one order", 100.0),  # the first of each pair always wins: 2 - 3/2 + 1 > 0
    ],
)
def test_decisions_of_a_network(
    datasets: DatasetFolder, decision: Decision, expected: float
) -> None:
    """Three comparisons, won by the first: A (4 letters) over B (2), A over C (3), B over C."""
    experiment = SeededRankings(set="rankings/mine", columns=("cs-en",), decision=decision)
    rankers: Any = [LengthRanker(), LengthRanker()]
    figure = experiment.measure(datasets, rankers, "cs-en")
    assert figure.value == pytest.approx(expected)
    assert (figure.count, figure.seeds) == (3, 2)


def test_early_meteor_counts_all_matches_and_words_fully() -> None:
    """Three of four words match in one chunk, one by its stem: P = R = F = 3 / 4.

    The penalty is .45 (1 / 3) ** .5.
    """
    meteor = EarlyMETEOR(alpha=0.95, beta=0.5, gamma=0.45)
    score = meteor.sentence_score("the cats sat xyzzy", ["the cat sat quux"])
    assert score == pytest.approx(0.75 * (1 - 0.45 * (1 / 3) ** 0.5))
    assert score > METEOR(alpha=0.95, beta=0.5, gamma=0.45).sentence_score(
        "the cats sat xyzzy", ["the cat sat quux"]
    )


def test_wink_vectors_become_lines_of_text(tmp_path: Path) -> None:
    path = tmp_path / "wink.json"
    vectors = {"the": [0.5, -1.25, 1.35, 0], "of": [2.0, 0.0, 2.0, 1]}  # with length and index
    content = {"words": ["the", "of"], "dimensions": 2, "vectors": vectors}
    path.write_text(json.dumps(content))
    assert convert_vectors(path) == "the 0.5 -1.25\nof 2.0 0.0\n"
    path.write_text("{}")
    with pytest.raises(DataError, match=r"wink\.json: not a file of wink embeddings"):
        convert_vectors(path)

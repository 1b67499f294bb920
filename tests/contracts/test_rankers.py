"""Contracts of every ranker; `tests/laws` has further properties."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tertium.core.errors import (
    DataError,
    LengthError,
    MissingInputError,
    UnknownNameError,
    UsageError,
)
from tertium.core.registry import RANKERS
from tertium.core.segment import Segment
from tertium.data.testset import TestSet
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.ranker import Ranker, load_ranker

SPECS = [*RANKERS, "chrf", "ter"]
TOLERANCE = 1e-4  # neural inputs: sums of float32 products in another order


@pytest.fixture(params=SPECS)
def ranker(request: pytest.FixtureRequest) -> Ranker:
    return load_ranker(request.param)


def test_perfect_translation_beats_wrong_one(ranker: Ranker) -> None:
    reference = "the parliament rejected the new budget on Tuesday"
    source = "das Parlament lehnte am Dienstag den neuen Haushalt ab"
    good = Segment(reference, source, (reference,))
    bad = Segment("my old bicycle is green and rusty today", source, (reference,))
    assert ranker.prefer([good], [bad])[0] > 0.8


def test_ranking_orders_the_example(ranker: Ranker, example: TestSet) -> None:
    """Uses a third of the segments to save time."""
    outputs = {name: texts[::3] for name, texts in example.systems.items()}
    matrix = ranker.rank(TestSet(outputs, example.references[::3], example.sources[::3]))
    assert matrix.systems == tuple(example.systems)
    assert matrix.values.shape == (3, len(example) // 3)
    good, fair, poor = matrix.system_scores
    assert good > fair > poor
    np.testing.assert_allclose(matrix.values.sum(axis=0), 1.5, atol=1e-6)  # pairs: 3, systems: 3


def test_win_rates_are_means_over_other_systems(ranker: Ranker, segments: list[Segment]) -> None:
    group = [dataclasses.replace(segments[0], hypothesis=t) for t in ("the cat", "cat mat", "sat")]
    lone = [segments[1]]
    rates, missing = ranker.win_rates([group, lone])
    a, b, c = group
    first, second, third = ranker.prefer([a, a, b], [b, c, c])
    expected = [(first + second) / 2, (1 - first + third) / 2, (2 - second - third) / 2]
    np.testing.assert_allclose(rates, expected, atol=TOLERANCE)
    assert np.isnan(missing).all()


def test_invalid_input_is_refused(ranker: Ranker, segments: list[Segment]) -> None:
    with pytest.raises(LengthError, match="2 left"):
        ranker.prefer(segments[:2], segments[:1])
    with pytest.raises(DataError, match="pair 1"):
        ranker.prefer([segments[0]], [segments[1]])
    with pytest.raises(MissingInputError, match="needs references"):
        ranker.prefer([Segment("a", "b")], [Segment("c", "b")])
    with pytest.raises(DataError, match="no segments to score"):
        ranker.prefer([], [])
    with pytest.raises(DataError, match="at least two systems"):
        ranker.rank(TestSet(systems={"a": ["x"]}, references=[("y",)]))
    with pytest.raises(UnknownNameError, match="did you mean 'pairwise'"):
        load_ranker("pairwse")


def test_explanation_equals_pairwise_probabilities(ranker: Ranker, segments: list[Segment]) -> None:
    first = segments[0]
    rivals = [first, *(dataclasses.replace(first, hypothesis=t) for t in ("no", "not at all"))]
    explained = ranker.explain(rivals, ["a", "b", "c"])
    assert explained.win_probabilities is not None
    chances = np.array(explained.win_probabilities.chances)
    np.testing.assert_allclose(chances + chances.T, 1.0, atol=1e-6)
    np.testing.assert_allclose(chances[0, 1:], ranker.prefer([first] * 2, rivals[1:]), atol=1e-6)
    assert explained.score == pytest.approx(ranker.win_rates([rivals])[0][0])
    assert explained.as_dict()["names"] == ("a", "b", "c")
    with pytest.raises(UsageError, match="two or more"):
        ranker.explain([first])


def test_corpus_metric_ranks_by_its_scores() -> None:
    # idf weights must come from the corpus of each system, including equal outputs
    rng = np.random.default_rng(0)
    words = [f"w{n}" for n in range(30)]

    def disturb(text: str) -> str:
        return " ".join(w if rng.random() > 0.3 else rng.choice(words) for w in text.split())

    references = [" ".join(rng.choice(words, rng.integers(3, 9))) for _ in range(200)]
    first = [disturb(text) for text in references]
    both = [*zip(first, references, strict=True)]
    more = [[a if rng.random() < 0.5 else disturb(r) for a, r in both] for _ in range(2)]
    systems = dict(zip("abc", [first, *more], strict=True))
    testset = TestSet(systems=systems, references=[[text] for text in references])
    metric = load_metric("bertscore:encoder=toy,idf=true")
    assert metric.reads_corpus
    scores = [metric.score(testset.segments(name)).segments for name in "abc"]
    ranked = load_ranker(metric.spec).rank(testset)
    for item, of_segment in enumerate(zip(*scores, strict=True)):
        for system, score in enumerate(of_segment):
            rivals = [of_segment[n] for n in range(3) if n != system]
            wins = np.mean([float(score > other) + 0.5 * (score == other) for other in rivals])
            assert ranked.values[system, item] == wins

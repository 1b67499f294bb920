"""The pairwise ranker: training, storage, inputs and errors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.builders import change_json, make_preferences

from tertium.core.errors import DataError, ModelError, TertiumError, UsageError
from tertium.core.segment import Preference, Segment
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.ranker import ScoreRanker, load_ranker
from tertium.metrics.base.scorer import format_signature
from tertium.metrics.pairwise.features import (
    PairwiseFeatures,
    Projection,
    VectorName,
    sentence_vectors,
)
from tertium.metrics.pairwise.neural_ranker import Pairwise, PairwiseOptions

QUICK = PairwiseOptions(rate=0.1, epochs=15, patience=0)


def train(data: list[Preference] | None = None, epochs: int = 15, **settings: Any) -> Pairwise:
    """Train on eighty comparisons, or others."""
    options = replace(QUICK, epochs=epochs)
    dev = make_preferences(20, 2)
    return Pairwise.train(data or make_preferences(80), dev=dev, options=options, **settings)


SMALL: dict[str, Any] = {
    "vectors": ("toy", "toy~5"),
    "features": ("bleucomp", "chrf", "nist"),
    "scaling": "minmax",
}


@pytest.fixture(scope="module")
def small() -> Pairwise:
    return train(**SMALL)


def sides(pairs: list[Preference]) -> tuple[list[Segment], list[Segment]]:
    return [pair.left for pair in pairs], [pair.right for pair in pairs]


@pytest.mark.parametrize(
    "settings",
    [
        SMALL,
        {"vectors": ("toy",), "features": ("chrf", "bleu"), "cost": "kendall", "hidden": 2},
        {"vectors": ("toy",), "features": ("chrf", "bleu"), "cost": "logistic+kendall"},
        {"vectors": ("toy",), "features": ("chrf", "bleu"), "hidden": 0},
    ],
)
def test_every_cost_and_the_flat_network_learn(settings: dict[str, Any]) -> None:
    pairs = make_preferences(40, 3)
    chances = train(**settings).prefer(*sides(pairs))
    assert ((chances > 0.5) == [pair.verdict > 0.5 for pair in pairs]).mean() > 0.9


def test_a_saved_ranker_is_found_by_any_path_and_says_the_same(
    small: Pairwise, tmp_path: Path
) -> None:
    folder = tmp_path / 'a,b=c "d" [e]+f'
    saved = small.save(folder)
    assert load_ranker(str(folder)) == load_ranker(saved.spec) == saved == small
    pairs = make_preferences(5, 4)
    left, right = sides(pairs)
    assert (Pairwise.load(folder).prefer(left, right) == small.prefer(left, right)).all()


def test_ties_are_left_out_of_training(small: Pairwise) -> None:
    tied = [replace(pair, verdict=0.5) for pair in make_preferences(20, 9)]
    with pytest.raises(DataError, match="no comparison"):
        train(tied, vectors=("toy",), features=())
    with pytest.raises(DataError, match="nothing is left to train on"):
        Pairwise.train(tied, dev=tied, vectors=("toy",), features=())
    mixed = train([*make_preferences(80), *tied], **SMALL)
    assert mixed.trained.digest == small.trained.digest


@pytest.mark.parametrize(("requested", "used"), [(7, 7), (0, 30), (99, 30)])
def test_dev_comparisons_are_sampled(requested: int, used: int) -> None:
    """0 and large numbers select all."""
    options = replace(QUICK, epochs=1, choose_on=requested)
    data, dev = make_preferences(20), make_preferences(30, 2)
    ranker = Pairwise.train(data, dev=dev, options=options, features=("chrf",))
    assert ranker.checkpoint.training["dev"] == used


def test_bleucomp_by_hand() -> None:
    columns = PairwiseFeatures(("bleucomp",))
    row = columns([Segment("the cat sat on the mat", None, ("the cat sat on a mat",))])[0]
    loaded = dict(zip((n.removeprefix("bleucomp.") for n in columns.names), row, strict=True))
    # the, cat, sat, on, mat of six words; three of five bigrams; two of four; one of three
    assert [loaded[f"matches-{n}"] for n in range(1, 5)] == [5, 3, 2, 1]
    assert [loaded[f"totals-{n}"] for n in range(1, 5)] == [6, 5, 4, 3]
    assert loaded["precision-2"] == pytest.approx(0.6)
    assert (loaded["hypothesis-length"], loaded["ratio"], loaded["penalty"]) == (6, 1, 1)


def test_a_projection_keeps_the_directions_of_most_variance() -> None:
    generator = np.random.default_rng(0)
    vectors = (generator.normal(size=(50, 3)) * [5, 1, 0.1]).astype(np.float32)
    projected = Projection.fit(vectors, 2)(vectors)
    assert projected.shape == (50, 2)
    assert projected.var(axis=0).sum() == pytest.approx(vectors.var(axis=0)[:2].sum(), rel=0.01)
    with pytest.raises(UsageError, match="cannot reduce 50 vectors"):
        Projection.fit(vectors, 4)


def test_vector_names() -> None:
    assert VectorName.parse("syntax25") == VectorName("syntax", 25)
    assert VectorName.parse("hf/a-b@3~16") == VectorName("hf/a-b@3", 16)
    ranker = Pairwise(features=("chrf++", "bleu"), vectors=("minilm@2+4", "glove"))
    assert ranker.spec == "pairwise:vectors=[minilm@2+4]+glove,features=[chrf++]+bleu"
    assert load_ranker(ranker.spec) == ranker


def test_syntax_vectors_are_the_parsers_tensors() -> None:
    pytest.importorskip("spacy")
    from tertium.metrics.linguistics.dependency_parser import load_parser

    texts = ["The cats sat on the mat.", "", "Nobody came."]
    loaded = sentence_vectors("syntax", texts)
    document = load_parser()._pipeline(texts[0])
    np.testing.assert_allclose(loaded[0], document.tensor.mean(axis=0), atol=1e-5)
    assert (loaded[1] == 0).all()


TWO = [Segment("a", None, ("b",))], [Segment("c", None, ("b",))]


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("pairwise:hidden=7", ModelError, "not hidden=7"),
        ("pairwise:cost=kendall", ModelError, "trained with cost=logistic, not cost=kendall"),
        ("pairwise:scaling=minmax", ModelError, "not scaling=minmax"),
        ("pairwise:features=chrf", ModelError, "not features=chrf: leave features out"),
        ("pairwise:model=unsaved-0", UsageError, "was not saved"),
        ("pairwise:vectors=,features=", UsageError, "needs vectors or features"),
        ("pairwise:hidden=-1", UsageError, "hidden must be at least 0"),
        ("pairwise:vectors=[glove~0]", UsageError, "invalid vectors"),
        ("no/such/folder", UsageError, "no/such/folder is not a folder with a trained model"),
        ("./tests", UsageError, "is not a folder with a trained model"),
    ],
)
def test_invalid_rankers_are_refused(spec: str, error: type[TertiumError], message: str) -> None:
    with pytest.raises(error, match=message):
        load_ranker(spec).prefer(*TWO)


def test_a_metric_that_reads_neighbors_is_no_column() -> None:
    with pytest.raises(UsageError, match="depend on the corpus"):
        PairwiseFeatures(("nist:order=3",))(TWO[0])


def test_a_model_with_other_columns_than_weights_is_refused(
    small: Pairwise, tmp_path: Path
) -> None:
    small.save(tmp_path)
    change_json(tmp_path / "config.json", config={"columns": list(small.trained.columns[:-1])})
    with pytest.raises(ModelError, match=r"features\.centre has shape \(18,\), expected \(17\)"):
        Pairwise.load(tmp_path).trained  # noqa: B018


def test_a_model_that_ships_is_found_by_its_name() -> None:
    network = load_ranker("pairwise:model=pairwise-minilm")
    assert isinstance(network, Pairwise)
    assert (network.hidden, network.vectors) == (4, ("minilm~48",))
    assert load_ranker(network.spec) == network


def test_a_name_goes_before_a_folder_of_that_name(
    small: Pairwise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("chrf").mkdir()
    default = load_ranker("pairwise")
    for name in ("chrf", "pairwise", "pairwise-minilm"):
        small.save(name)
        assert load_ranker(f"./{name}") == small
    assert load_ranker("chrf") == ScoreRanker(metric=load_metric("chrf"))
    assert load_ranker("pairwise") == default


@pytest.mark.parametrize("name", ["model", "of wmt15,16", "chrf"])
def test_a_trained_metric_ranks_from_its_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With fields, as a name."""
    monkeypatch.chdir(tmp_path)
    load_metric("svr").save(name)  # type: ignore[attr-defined]
    ranker = load_ranker(f"./{name}" if "," in name else f"./{name}:references=mean")
    assert isinstance(ranker, ScoreRanker)
    assert ranker.metric == load_metric("svr" if "," in name else "svr:references=mean")
    assert load_ranker(ranker.spec) == ranker


def test_a_folder_is_told_from_one_of_the_other_kind(tmp_path: Path) -> None:
    folder = str(tmp_path / "mine")
    Pairwise().save(folder)
    with pytest.raises(UsageError, match="is a ranker, not a metric: use it with `tertium rank -m"):
        load_metric(folder)


@pytest.mark.parametrize("spec", ["bleu:tokenize=zh", "chrf"])
def test_a_ranking_by_scores_carries_the_metrics_signature(spec: str) -> None:
    segments = [Segment("a b", None, ("a c",))]
    expected = f"by score|metric:{format_signature(load_metric(spec), segments)}"
    assert load_ranker(spec).signature(segments) == expected

"""The pairwise ranker: training, storage, inputs and errors."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from tertium.cli import main
from tertium.core.errors import DataError, MissingInputError, ModelError, UsageError
from tertium.core.segment import Preference, Segment
from tertium.data.dataset_folder import DatasetFolder
from tertium.metrics.base.feature_extractor import split_references
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.ranker import ScoreRanker, load_ranker
from tertium.metrics.base.scorer import format_signature
from tertium.metrics.pairwise.features import PairwiseFeatures
from tertium.metrics.pairwise.neural_ranker import Pairwise, PairwiseOptions
from tertium.metrics.pairwise.sentence_vectors import Projection, VectorName, sentence_vectors

WORDS = "the cat sat on a mat while two dogs barked at it and nobody came home before noon".split()
QUICK = PairwiseOptions(rate=0.1, epochs=15, patience=0)


def preferences(count: int, seed: int) -> list[Preference]:
    """Pairs of a sentence with one word in three replaced and one with all in another order."""
    generator = np.random.default_rng(seed)
    rows = []
    for n in range(count):
        words = list(generator.permutation(WORDS)[:9])
        reference = (" ".join(words),)
        better = " ".join("x" if i % 3 == 0 else w for i, w in enumerate(words))
        worse = " ".join("x" if i % 3 else w for i, w in enumerate(words))
        sides = [Segment(text, f"s {reference[0]}", reference) for text in (better, worse)]
        if n % 2:
            sides.reverse()
        rows.append(Preference(sides[0], sides[1], 1.0 - n % 2, item=str(n)))
    return rows


@pytest.fixture(scope="module")
def small() -> Pairwise:
    return Pairwise.train(
        preferences(80, 1),
        dev=preferences(30, 2),
        options=QUICK,
        vectors=("toy", "toy~5"),
        features=("bleucomp", "chrf", "nist"),
        scaling="minmax",
    )


def accuracy(ranker: Pairwise, held_out: list[Preference]) -> float:
    chances = ranker.prefer([p.left for p in held_out], [p.right for p in held_out])
    return float(((chances > 0.5) == np.array([p.verdict > 0.5 for p in held_out])).mean())


def test_it_learns_a_tiny_set(small: Pairwise) -> None:
    assert accuracy(small, preferences(40, 3)) > 0.95


def test_a_saved_ranker_says_the_same(small: Pairwise, tmp_path: Path) -> None:
    saved = small.save(tmp_path / "model")
    again = Pairwise.load(tmp_path / "model")
    assert again == saved
    assert load_ranker(f"pairwise:model={tmp_path / 'model'}") == saved
    assert load_ranker(str(tmp_path / "model")) == saved
    assert load_ranker(saved.spec) == saved
    pairs = preferences(5, 4)
    left, right = [p.left for p in pairs], [p.right for p in pairs]
    assert (again.prefer(left, right) == small.prefer(left, right)).all()
    assert again.trained.digest == small.trained.digest


def test_raw_is_one_order_and_prefer_is_the_mean_of_both(small: Pairwise) -> None:
    pairs = preferences(6, 5)
    left, right = [p.left for p in pairs], [p.right for p in pairs]
    given_order, reverse_order = small.raw(left, right), small.raw(right, left)
    assert not np.allclose(given_order, 1 - reverse_order, atol=1e-6)
    expected = (given_order + 1 - reverse_order) / 2
    np.testing.assert_allclose(small.prefer(left, right), expected, atol=1e-6)


def test_ties_are_left_out_of_training(small: Pairwise) -> None:
    tied = [dataclasses.replace(p, verdict=0.5) for p in preferences(20, 9)]
    with pytest.raises(DataError, match="no comparison"):
        Pairwise.train(tied, dev=preferences(5, 8), vectors=("toy",), features=())
    with pytest.raises(DataError, match="nothing is left to train on"):
        Pairwise.train(tied, dev=tied, vectors=("toy",), features=())
    mixed = Pairwise.train(
        [*preferences(80, 1), *tied],
        dev=preferences(30, 2),
        options=QUICK,
        vectors=small.vectors,
        features=small.features,
        scaling="minmax",
    )
    assert mixed.trained.digest == small.trained.digest


def test_dev_comparisons_are_sampled() -> None:
    """The sample is the same for every seed; 0 and large numbers select all."""
    for requested, used in ((7, 7), (0, 30), (99, 30)):
        options = dataclasses.replace(QUICK, epochs=1, choose_on=requested)
        ranker = Pairwise.train(
            preferences(20, 1), dev=preferences(30, 2), options=options, features=("chrf",)
        )
        assert ranker.checkpoint.training["dev"] == used


def test_the_source_is_read_where_a_vector_says_so() -> None:
    ranker = Pairwise.train(
        preferences(20, 1),
        dev=preferences(10, 2),
        options=QUICK,
        vectors=("source/toy",),
        features=("source/toy", "chrf"),
    )
    assert ranker.required_inputs == {"references", "source"}
    pair = preferences(1, 3)[0]
    chance = ranker.prefer([pair.left], [pair.right])[0]
    moved = [dataclasses.replace(s, source="another text") for s in (pair.left, pair.right)]
    assert ranker.prefer([moved[0]], [moved[1]])[0] != pytest.approx(chance, abs=1e-6)
    with pytest.raises(MissingInputError, match="needs the source"):
        ranker.prefer([Segment("a", None, ("b",))], [Segment("c", None, ("b",))])


def test_every_cost_and_the_flat_network_train(small: Pairwise) -> None:
    for cost, hidden in (("kendall", 2), ("logistic+kendall", 4), ("logistic", 0)):
        ranker = Pairwise.train(
            preferences(40, 1),
            dev=preferences(20, 2),
            options=QUICK,
            vectors=("toy",),
            features=("chrf",),
            cost=cost,
            hidden=hidden,
        )
        assert accuracy(ranker, preferences(20, 3)) > 0.9


def test_columns_are_the_metrics_own_scores(segments: list[Segment]) -> None:
    parts, _ = split_references(segments)
    table = PairwiseFeatures(("bleu", "ter", "chrf"))(parts)
    for column, name in enumerate(("bleu", "ter", "chrf")):
        expected = load_metric(name).score(parts).segments
        np.testing.assert_allclose(table[:, column], expected, rtol=1e-6)


def test_bleucomp_by_hand() -> None:
    columns = PairwiseFeatures(("bleucomp",))
    row = columns([Segment("the cat sat on the mat", None, ("the cat sat on a mat",))])[0]
    loaded = dict(zip((n.removeprefix("bleucomp.") for n in columns.names), row, strict=True))
    # the, cat, sat, on, mat of six words; three of five bigrams; two of four; one of three
    assert [loaded[f"matches-{n}"] for n in range(1, 5)] == [5, 3, 2, 1]
    assert [loaded[f"totals-{n}"] for n in range(1, 5)] == [6, 5, 4, 3]
    assert loaded["precision-2"] == pytest.approx(0.6)
    assert (loaded["hypothesis-length"], loaded["ratio"], loaded["penalty"]) == (6, 1, 1)


def test_a_metric_that_reads_neighbors_is_no_column() -> None:
    with pytest.raises(UsageError, match="depend on the corpus"):
        PairwiseFeatures(("nist:order=3",))([Segment("a", None, ("b",))])


def test_a_projection_keeps_the_directions_of_most_variance() -> None:
    generator = np.random.default_rng(0)
    vectors = (generator.normal(size=(50, 3)) * [5, 1, 0.1]).astype(np.float32)
    projected = Projection.fit(vectors, 2)(vectors)
    assert projected.shape == (50, 2)
    assert projected.var(axis=0).sum() == pytest.approx(vectors.var(axis=0)[:2].sum(), rel=0.01)
    with pytest.raises(UsageError, match="cannot reduce 50 vectors"):
        Projection.fit(vectors, 4)


def test_vector_names() -> None:
    assert VectorName.parse("syntax25") == VectorName("syntax", 25, False)
    assert VectorName.parse("hf/a-b@3~16") == VectorName("hf/a-b@3", 16, False)
    for wrong in ("", "glove~0"):
        with pytest.raises(UsageError, match="invalid vectors"):
            VectorName.parse(wrong)
    with pytest.raises(UsageError, match="the parser supports English only"):
        VectorName.parse("source/syntax")


def test_syntax_vectors_are_the_parsers_tensors() -> None:
    pytest.importorskip("spacy")
    from tertium.metrics.linguistics.dependency_parser import load_parser

    texts = ["The cats sat on the mat.", "", "Nobody came."]
    loaded = sentence_vectors("syntax", texts)
    document = load_parser()._pipeline(texts[0])
    np.testing.assert_allclose(loaded[0], document.tensor.mean(axis=0), atol=1e-5)
    assert (loaded[1] == 0).all()


def test_damaged_models_are_refused(small: Pairwise, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json"):
        Pairwise.load(tmp_path)
    folder = tmp_path / "model"
    small.save(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "weights.safetensors").write_bytes(b"cut")
    with pytest.raises(ModelError, match="damaged"):
        Pairwise.load(folder).trained  # noqa: B018
    small.save(folder)
    config["config"]["columns"].pop()
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"features\.centre has shape \(18,\), expected \(17\)"):
        Pairwise.load(folder).trained  # noqa: B018
    with pytest.raises(ModelError, match=r"not features=chrf: leave features out"):
        dataclasses.replace(small, features=("chrf",)).trained  # noqa: B018
    with pytest.raises(UsageError, match="was not saved"):
        Pairwise(model="unsaved-0").trained  # noqa: B018


@pytest.mark.parametrize("setting", ["hidden=7", "cost=kendall", "scaling=minmax"])
def test_settings_that_the_weights_do_not_have_are_refused(setting: str) -> None:
    ranker = load_ranker(f"pairwise:{setting}")  # whose spec would say so of another network
    with pytest.raises(ModelError, match=f"not {setting}"):
        ranker.signature([])


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(UsageError, match="needs vectors or features"):
        Pairwise(vectors=(), features=())
    with pytest.raises(UsageError, match="hidden must be at least 0"):
        Pairwise(hidden=-1)


def test_a_model_that_ships_is_found_by_its_name() -> None:
    network = load_ranker("pairwise:model=pairwise-minilm")
    assert isinstance(network, Pairwise)
    assert (network.hidden, network.vectors) == (4, ("minilm~48",))
    assert load_ranker(network.spec) == network
    reference = ("The cat sat quietly on the mat.",)
    good, bad = (Segment(t, None, reference) for t in ("The cat sat on the mat.", "Mat dog the."))
    assert network.prefer([good], [bad])[0] > 0.8
    assert load_ranker("pairwise").prefer([good], [bad])[0] > 0.8


def test_a_name_goes_before_a_folder_of_that_name(
    small: Pairwise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("chrf").mkdir()
    assert load_ranker("chrf") == ScoreRanker(metric=load_metric("chrf"))
    default = load_ranker("pairwise")
    for name in ("chrf", "pairwise", "pairwise-minilm"):
        small.save(name)
    assert load_ranker("chrf") == ScoreRanker(metric=load_metric("chrf"))
    assert load_ranker("pairwise") == default
    for folder in ("./chrf", "./pairwise", "./pairwise-minilm"):
        loaded = load_ranker(folder)
        assert isinstance(loaded, Pairwise)
        assert loaded.trained.digest == small.trained.digest
        assert load_ranker(loaded.spec) == loaded


def test_the_path_of_a_ranker_may_hold_anything(small: Pairwise, tmp_path: Path) -> None:
    folder = tmp_path / 'a,b=c "d" [e]+f'
    saved = small.save(folder)
    assert load_ranker(str(folder)) == saved
    assert load_ranker(saved.spec) == saved


@pytest.mark.parametrize("name", ["model", "of wmt15,16", "chrf"])
def test_a_trained_metric_ranks_from_its_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    metric = load_metric("bleu-r")
    metric.save(name)  # type: ignore[attr-defined]
    ranker = load_ranker(f"./{name}")
    assert isinstance(ranker, ScoreRanker)
    assert ranker.metric.name == "bleu-r"
    assert load_ranker(ranker.spec) == ranker
    pairs = preferences(4, 4)
    left, right = [p.left for p in pairs], [p.right for p in pairs]
    expected = load_ranker("bleu-r").prefer(left, right)
    np.testing.assert_array_equal(ranker.prefer(left, right), expected)


def test_a_folder_takes_fields_as_a_name_does(tmp_path: Path) -> None:
    folder = str(tmp_path / "svr")
    load_metric("svr").save(folder)  # type: ignore[attr-defined]
    ranker = load_ranker(f"{folder}:references=mean")
    assert isinstance(ranker, ScoreRanker)
    assert ranker.metric == load_metric("svr:references=mean")
    assert load_ranker(ranker.spec) == ranker
    Pairwise().save(tmp_path / "ranker")
    with pytest.raises(ModelError, match="trained with cost=logistic, not cost=kendall"):
        load_ranker(f"{tmp_path / 'ranker'}:cost=kendall").signature([])


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder with a trained model"):
        load_ranker(str(tmp_path))
    with pytest.raises(UsageError, match="is not a folder with a trained model"):
        load_ranker("no/such/folder")
    with pytest.raises(UsageError, match="no/such/folder is not a folder with a trained model"):
        load_metric("no/such/folder")


def test_a_folder_is_listed_cited_and_told_from_one_of_the_other_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "mine")
    Pairwise().save(folder)
    assert main(["list", folder]) == 0
    assert "(pairwise)" in capsys.readouterr().out
    assert main(["list", "citations", folder]) == 0
    assert "guzman-etal-2015" in capsys.readouterr().out
    with pytest.raises(UsageError, match="is a ranker, not a metric: use it with `tertium rank -m"):
        load_metric(folder)


def test_columns_with_a_plus_in_their_name_round_trip() -> None:
    ranker = Pairwise(features=("chrf++", "bleu"), vectors=("minilm@2+4", "glove"))
    assert ranker.spec == "pairwise:vectors=[minilm@2+4]+glove,features=[chrf++]+bleu"
    assert load_ranker(ranker.spec) == ranker


@pytest.mark.slow
def test_the_ranker_that_ships_agrees_with_people(human_data: Path) -> None:
    """Measured on all of WMT12 de-en: strict tau .483; BLEU has .183. 400 comparisons: ± .045."""
    rankings = DatasetFolder(human_data).rankings("rankings/wmt12", "de-en").without_ties()
    sample = rankings.select(np.random.default_rng(0).choice(len(rankings), 400, replace=False))
    chances = load_ranker("pairwise").prefer(
        [sample.segments[n] for n in sample.left], [sample.segments[n] for n in sample.right]
    )
    agrees = np.where(sample.verdicts > 0.5, chances > 0.5, chances < 0.5)
    assert 2 * agrees.mean() - 1 > 0.35


def test_a_ranking_by_scores_carries_the_metrics_signature() -> None:
    segments = [Segment("a b", None, ("a c",))]
    for spec in ("bleu:tokenize=zh", "chrf"):
        ours, theirs = load_ranker(spec), load_metric(spec)
        assert ours.signature(segments) == f"by score|metric:{format_signature(theirs, segments)}"

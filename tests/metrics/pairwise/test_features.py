"""Features of the pairwise ranker: any metric is one; cached rows depend on all inputs."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from tests.builders import make_preferences

from tertium.core.errors import MissingResourceError, UsageError
from tertium.core.registry import METRICS, resolve
from tertium.core.segment import Judgment, Segment
from tertium.encoders import toy_encoder
from tertium.encoders.encoder import load_encoder
from tertium.encoders.toy_encoder import ToyEncoder
from tertium.metrics.base.lexical_features import split_references
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import Metric
from tertium.metrics.pairwise.features import PairwiseFeatures, part_model_ids
from tertium.metrics.pairwise.neural_ranker import Pairwise, PairwiseOptions
from tertium.metrics.regression.linear_metric import RegressionOptions
from tertium.metrics.regression.regression_metrics import BLEUR
from tertium.metrics.regression.svr import SVR
from tertium.models.checkpoint import Checkpoint
from tertium.models.trained_model import load_checkpoint

COUNT = 80  # enough rows to be cached
SEGMENTS = [
    Segment(f"the cat {n} sat on {n % 7}", f"die Katze {n}", (f"a cat {n} sat on the mat",))
    for n in range(COUNT)
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERTIUM_CACHE", str(tmp_path / "cache"))


def an_svr(seed: int, against: str = "reference") -> SVR:
    """A regression on toy vectors with random weights."""
    generator = np.random.default_rng(seed)
    sides = 3 if against == "both" else 2
    return SVR.from_checkpoint(
        Checkpoint(
            name="svr",
            config={"encoders": ["toy"], "against": against},
            encoders={"toy": load_encoder("toy").weights_hash},
            arrays={
                "vectors": generator.normal(0, 0.2, size=(4, sides * 16)).astype(np.float32),
                "coefficients": generator.normal(size=4),
                "intercept": np.array(generator.normal()),
            },
        )
    )


def a_bleu_r(seed: int) -> BLEUR:
    scores = np.random.default_rng(seed).normal(size=COUNT)
    return BLEUR.train(
        [Judgment(s, float(x), lp="de-en") for s, x in zip(SEGMENTS, scores, strict=True)],
        options=RegressionOptions(strengths=(1.0,)),
    )


def column(metric: Metric) -> np.ndarray:
    return PairwiseFeatures((metric.spec,))(SEGMENTS)[:, 0]


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_is_a_column(name: str, segments: list[Segment]) -> None:
    fields = {f.name for f in dataclasses.fields(resolve(METRICS, name, "metric"))}
    spec = f"{name}:encoder=toy" if "encoder" in fields and name != "mt-rte-r" else name
    parts, _ = split_references(segments)
    try:
        table = PairwiseFeatures((spec,))(parts)
    except MissingResourceError as error:
        pytest.skip(str(error))
    assert table.shape == (len(parts), 1)
    if name != "nist":  # as a column it learns from the training references
        np.testing.assert_allclose(
            table[:, 0], load_metric(spec).score(parts).segments, rtol=1e-5, atol=1e-5
        )


def test_model_ids_need_no_segments(tmp_path: Path) -> None:
    toy = load_encoder("toy").signature_fields()["model"]
    assert (
        part_model_ids("chrf") == part_model_ids("bleucomp") == part_model_ids("layers/toy") == ""
    )
    assert part_model_ids("bertscore:encoder=toy") == toy
    assert part_model_ids("sss:encoder=toy,against=both") == f"{toy}+{toy}"
    metric = an_svr(1).save(tmp_path / "svr")
    assert part_model_ids(metric.spec) == f"svr@{metric.checkpoint.hash[:8]}+{toy}"
    assert part_model_ids("bleu-r").startswith("bleu-r@")


@pytest.mark.parametrize("make", [an_svr, a_bleu_r], ids=["svr", "bleu-r"])
def test_rows_of_weights_that_were_replaced_are_not_served(make, tmp_path: Path) -> None:
    old = column(make(1).save(tmp_path / "model"))
    metric = make(2).save(tmp_path / "model")
    scores = column(metric)
    np.testing.assert_allclose(scores, metric.score(SEGMENTS).segments, rtol=1e-5, atol=1e-6)
    assert not np.allclose(scores, old, atol=1e-3)


@pytest.mark.parametrize("make", [an_svr, a_bleu_r], ids=["svr", "bleu-r"])
def test_ranker_warns_if_a_feature_was_retrained(
    make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    metric = make(1).save(tmp_path / "metric")
    data, dev = make_preferences(), make_preferences(seed=2)
    options = PairwiseOptions(rate=0.1, epochs=1, patience=0)
    ranker = Pairwise.train(data, dev=dev, options=options, features=(metric.spec,))
    ranker = ranker.save(tmp_path / "ranker")
    _ = ranker.trained
    assert "was trained with" not in caplog.text
    make(2).save(tmp_path / "metric")
    load_checkpoint.cache_clear()
    _ = ranker.trained
    assert f"was trained with {metric.name}@" in caplog.text


def test_ranker_refuses_features_that_were_not_saved() -> None:
    with pytest.raises(UsageError, match="was not saved: save it with"):
        _ = Pairwise(features=("bleu", an_svr(1).spec)).required_inputs


@pytest.mark.parametrize("name", ["pairwise", "pairwise-minilm", "pairwise-published"])
def test_the_rankers_that_ship_find_what_they_learned_to_read(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    load_checkpoint.cache_clear()
    assert Pairwise.load(name).trained.columns
    assert not caplog.text


def test_rows_of_an_encoder_are_kept_by_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = PairwiseFeatures(("layers/toy",))
    old = columns(SEGMENTS)
    vector = toy_encoder._random_vector
    monkeypatch.setattr(ToyEncoder, "weights_hash", property(lambda _: "0" * 64))
    monkeypatch.setattr(toy_encoder, "_random_vector", lambda word, dim: abs(vector(word, dim)))
    assert not np.allclose(columns(SEGMENTS), old, atol=1e-3)


def test_a_metric_that_reads_the_source_is_kept_by_it(tmp_path: Path) -> None:
    metric = an_svr(1, "both").save(tmp_path / "model")
    columns = PairwiseFeatures((metric.spec,))
    assert columns.reads_source
    assert not PairwiseFeatures(("svr", "chrf")).reads_source
    two = [SEGMENTS[0], dataclasses.replace(SEGMENTS[0], source="ein ganz anderer Satz")]
    first, second = columns(two)[:, 0]
    np.testing.assert_allclose([first, second], metric.score(two).segments, rtol=1e-5)
    assert first != pytest.approx(second, abs=1e-4)


def test_a_ranker_needs_the_source_where_a_metric_among_its_columns_does() -> None:
    ranker = Pairwise(features=("chrf", "sss:encoder=toy,against=both"))
    assert ranker.required_inputs == {"references", "source"}
    assert Pairwise(features=("chrf", "sss:encoder=toy")).required_inputs == {"references"}

"""Top layers of tertium-multi trained on human scores: gradients, guard, saving and errors."""

from __future__ import annotations

import dataclasses
import logging
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tertium.errors import ModelError, UsageError
from tertium.evaluation.training import train
from tertium.execution import runtime
from tertium.metrics.base.loading import load_metric
from tertium.metrics.flagship import head_adaptation as adaptation
from tertium.metrics.flagship.adapted_multi import STRENGTHS, AdaptedMulti
from tertium.metrics.flagship.row_scorer import trained_parts
from tertium.metrics.flagship.tertium_multi import TertiumMulti
from tertium.segment import Judgment, Segment

torch = pytest.importorskip("torch")
layer_adaptation = pytest.importorskip("tertium.metrics.flagship.layer_adaptation")
WORDS = "train leaves today station late water house green seven never".split()


def make_judgments(sources: int, each: int = 3) -> list[Judgment]:
    """Short texts whose human scores depend on their lengths, as no metric expects."""
    rng = np.random.default_rng(1)
    judgments = []
    for number in range(sources):
        source = f"Satz {number} " + " ".join(rng.choice(WORDS, 3))
        for _ in range(each):
            words = rng.choice(WORDS, rng.integers(1, 6))
            judgments.append(Judgment(Segment(" ".join(words), source), 10.0 * len(words)))
    return judgments


def make_trainer(judgments: list[Judgment], layers: int = 1) -> Any:
    base = TertiumMulti(against="source")
    rows = [(j.segment.hypothesis, j.segment.source, None) for j in judgments]
    weights, bias = base.reader.last_layer(0)
    sources = np.unique([j.segment.source for j in judgments], return_inverse=True)[1]
    data = adaptation.JudgedValues(
        values=np.array(base.reader.head_values(rows), dtype=np.float64),
        targets=np.array([j.score for j in judgments]),
        sources=sources,
        shipped=(weights.astype(np.float64), bias),
    )
    return layer_adaptation.LayerTrainer(base, rows, "source", data, layers)


@cache
def shared_trainer() -> Any:
    return make_trainer(make_judgments(12))


def study_of(trainer: Any) -> adaptation.CrossValidation:
    return adaptation.cross_validate(trainer.data, STRENGTHS, 1)


def test_frozen_states_and_top_layers_give_the_values_of_the_head() -> None:
    """In both input modes with a source, and for a text of two windows."""
    base = TertiumMulti()
    weights, bias = base.reader.last_layer(2)
    rows = [(f"a house {n}", "ein Haus", "the house") for n in range(2)]
    rows.append(("water " * 520, "Wasser", "water"))
    values = np.array(base.reader.head_values(rows), dtype=np.float64)
    data = adaptation.JudgedValues(
        values=values, targets=np.arange(3.0), sources=np.zeros(3, int), shipped=(weights, bias)
    )
    trainer = layer_adaptation.LayerTrainer(base, rows, "both", data, 4)
    head = adaptation.Adaptation(weights=weights, bias=bias)
    assert len(trainer.rows.windows[2]) > 1
    got = trainer.predict(np.arange(3), head)
    np.testing.assert_allclose(got, head.predict(values), atol=0.05)
    with torch.no_grad():
        close = trainer.head_values(np.arange(3)).numpy()
    assert np.abs(close - values).mean() < 0.05


def test_pairs_of_one_source_with_different_scores_are_ordered() -> None:
    z = torch.tensor([1.0, -1.0, 0.0, 0.0])
    sources = np.array([0, 0, 1, 1])
    loss = layer_adaptation.score_loss
    right, wrong = loss(z, z, sources), loss(-z, z, sources)
    sigmoid = 1 / (1 + np.exp(-3.0))  # 1.5 times a difference of 2
    entropy = -sigmoid * np.log(sigmoid) - (1 - sigmoid) * np.log(1 - sigmoid)
    assert float(right) == pytest.approx(entropy, rel=1e-5)
    assert float(wrong) == pytest.approx(2 + entropy + 3 * (2 * sigmoid - 1), rel=1e-5)
    assert float(loss(z, z, np.arange(4))) == 0


def test_training_changes_top_layers_only_and_repeats_with_a_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(layer_adaptation, "EPOCHS", 2)
    trainer, tasks, rows = shared_trainer(), [], np.arange(24)
    start = adaptation.scale_only(trainer.data)

    def listen(description: str, total: int | None) -> Any:
        tasks.append((description, total))
        return nullcontext(lambda steps: None)

    def fit(seed: int) -> tuple[adaptation.Adaptation, dict[str, Any]]:
        with runtime(progress=listen):
            head = trainer.fit(rows, start, seed, "fold 1 of 3")
        return head, {name: weight.detach().clone() for name, weight in trainer.parameters.items()}

    (_, other), (same_head, same), (head, weights) = fit(2), fit(1), fit(1)
    assert tasks == [("training layers, fold 1 of 3", 48)] * 3
    assert all(name.startswith(trained_parts(1)) for name in weights)
    assert not any(name.startswith("layers.10.") for name in weights)
    assert all(torch.equal(weights[n], same[n]) for n in weights)
    assert head.weights.tolist() == same_head.weights.tolist()
    assert not all(torch.equal(weights[n], other[n]) for n in weights)
    error = np.mean((trainer.data.targets[:24] - start.predict(trainer.data.values[:24])) ** 2)
    new = trainer.predict(rows, head)
    assert np.mean((trainer.data.targets[:24] - new) ** 2) < error


@pytest.mark.parametrize("gain", [0.4, 0.0])
def test_guard_compares_layers_with_the_head_alone(
    gain: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Predictions are those of the head alone, moved toward the human scores by `gain`."""
    trainer = shared_trainer()
    data, folds = trainer.data, []

    def fit(rows: np.ndarray, start: adaptation.Adaptation, seed: int, part: str) -> Any:
        folds.append(set(data.sources[rows].tolist()))
        return start

    def predict(rows: np.ndarray, head: adaptation.Adaptation) -> np.ndarray:
        assert not folds[-1] & set(data.sources[rows].tolist())  # held out
        return head.predict(data.values[rows]) + gain * 10 * data.targets[rows]

    monkeypatch.setattr(trainer, "fit", fit)
    monkeypatch.setattr(trainer, "predict", predict)
    with caplog.at_level(logging.WARNING):
        adapted = trainer.adapt(study_of(trainer), 1)
    if gain:
        assert adapted.agreement["adapted"] > adapted.agreement["head"]
        assert [len(own) for own in folds] == [9, 9, 10, 12]  # three folds, then all
        assert len(adapted.residuals) == 3 * (3 + 3 + 2)
        assert not caplog.messages
    else:
        assert adapted is None
        assert "only the head is adapted" in caplog.text


def test_trained_layers_are_saved_loaded_and_quantized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The training is replaced by a change of one matrix."""

    def adapt(trainer: Any, study: adaptation.CrossValidation, seed: int) -> Any:
        with torch.no_grad():
            trainer.network.layers[-1].down.weight.neg_()
        weights = layer_adaptation.compress_weights(trainer.parameters, trainer.stored_names)
        head = adaptation.scale_only(trainer.data)
        return layer_adaptation.AdaptedLayers(head, weights, np.ones(5), {"adapted": 0.5})

    monkeypatch.setattr(layer_adaptation.LayerTrainer, "adapt", adapt)
    judgments, folder = make_judgments(12), tmp_path / "mine"
    segments = [judgment.segment for judgment in judgments]
    trained = train("tertium-multi", judgments, adapt="layers", top_layers=1, folder=folder)
    metric = load_metric(str(folder))
    scores = metric.score(segments)
    assert isinstance(metric, AdaptedMulti)
    assert scores.segments.tolist() == trained.score(segments).segments.tolist()
    assert "|layers:1|" in scores.signature
    head = train("tertium-multi", judgments, adapt="scale").score(segments)
    assert "layers:" not in head.signature
    moved = np.abs(scores.segments - head.segments).mean()
    fp32 = load_metric(f"{folder}:precision=fp32").score(segments).segments
    assert np.abs(scores.segments - fp32).mean() < moved / 2
    arrays = {*metric.checkpoint.arrays} - {"weights", "bias"}
    assert all(name.startswith(tuple(f"network.{p}" for p in trained_parts(1))) for name in arrays)
    assert metric.checkpoint.arrays["network.layers.11.up.weight"].dtype == np.int8
    assert (folder / "weights.safetensors").stat().st_size < 6e6
    checkpoint = metric.checkpoint
    damaged = dataclasses.replace(checkpoint, config={**checkpoint.config, "layers": 2})
    with pytest.raises(ModelError, match=r"incomplete: no network\.layers\.10\."):
        AdaptedMulti.from_checkpoint(damaged).score(segments[:1])
    other = dataclasses.replace(checkpoint, config={**checkpoint.config, "model_sha256": "0" * 64})
    with pytest.raises(ModelError, match="adapts tertium-multi@00000000, but"):
        AdaptedMulti.from_checkpoint(other).score(segments[:1])


def test_options_without_effect_and_out_of_range_raise_an_error() -> None:
    judgments = make_judgments(1)
    with pytest.raises(UsageError, match="does not use --top-layers"):
        train("tertium-multi", judgments, top_layers=2)
    with pytest.raises(UsageError, match="does not use --seed"):
        train("tertium-multi", judgments, adapt="scale", seed=2)
    with pytest.raises(UsageError, match="top_layers=7: expected"):
        train("tertium-multi", judgments, adapt="layers", top_layers=7)


@pytest.mark.slow
@pytest.mark.slow
def test_layers_learn_what_the_head_cannot(tmp_path: Path) -> None:
    judgments = make_judgments(150, 4)
    metric = train("tertium-multi", judgments, adapt="layers", folder=tmp_path / "mine")
    agreement = metric.checkpoint.training["cross-validation"]
    assert metric.config.layers == 2
    assert agreement["adapted"] > agreement["head"] > agreement["tertium-multi"]
    segments = [judgment.segment for judgment in judgments]
    scores = metric.score(segments).segments
    assert np.corrcoef(scores, [j.score for j in judgments])[0, 1] > agreement["adapted"]

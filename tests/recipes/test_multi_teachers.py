"""Teachers of tertium-multi: scores of the bundled model, and weights of teachers."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")

from recipes.multi import teachers, train, training_loop
from recipes.multi.batching import TextPool
from recipes.multi.e5 import Pieces
from recipes.multi.network import MultiNetwork

from tertium.metrics.flagship.tertium_multi import TertiumMulti
from tertium.models.checkpoint import bundled_models_folder

ROWS = [
    ("The train leaves at seven.", "Der Zug fährt um sieben ab.", "The train departs at seven."),
    ("Train go away now.", "Der Zug fährt um sieben ab.", "The train departs at seven."),
    ("Nobody knows why.", "Niemand weiß, warum.", None),
]


def test_teacher_scores_of_bundled_model_equal_its_raw_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = bundled_models_folder() / TertiumMulti.name
    args = argparse.Namespace(
        parts=tmp_path, weights=[folder], seed=1, device="cpu", lower_layers=4
    )
    train.unpack_shipped_model(args)
    network = train.build_network(args, 4, tmp_path / "start/weights.safetensors")
    every = list(dict.fromkeys(text for row in ROWS for text in row if text is not None))
    coded = [np.array(n, np.int32) for n in Pieces(folder / "encoder/tokenizer.json").encode(every)]
    pool = TextPool("cpu")
    pool.add(np.concatenate(coded), np.array([len(n) for n in coded]))
    numbers = np.array([[-1 if t is None else every.index(t) for t in row] for row in ROWS])
    monkeypatch.setattr(teachers, "distillation_rows", lambda *_: {"judgements": numbers})
    letters = teachers.chrf_scores([(row[0], row[2]) for row in ROWS])
    np.save(tmp_path / "letters-judgements.npy", letters)
    teachers.write_teacher_scores(
        network, SimpleNamespace(pool=pool), 0, tmp_path, teachers.SHIPPED_STEM
    )  # type: ignore[arg-type]
    predictions = np.load(tmp_path / "taught-judgements-weights.npy")
    bundled = TertiumMulti(precision="fp32")  # the precision of training; the default is int8
    np.testing.assert_allclose(predictions[:, 0], bundled.raw_scores(ROWS), atol=1e-4)


def test_average_teachers_applies_weights(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    new, shipped = rng.normal(2.0, 3.0, (1500, 3)), rng.normal(0.1, 0.5, (1500, 3))
    np.save(tmp_path / "taught-outputs-seed1.npy", new)
    np.save(tmp_path / "taught-outputs-weights.npy", shipped)
    mean = teachers.average_teachers(tmp_path, "outputs", shipped=1.5, english=0.6)
    scaled = teachers.match_moments(shipped[:, 0], new[:, 0])
    assert scaled.std() == pytest.approx(new[:, 0].std())
    np.testing.assert_allclose(mean[:, 0], 0.4 * new[:, 0] + 0.6 * scaled, atol=1e-5)
    np.testing.assert_allclose(mean[:, 1:], new[:, 1:], atol=1e-5)
    base = np.where(np.arange(1500) < 1200, rng.normal(size=1500), np.nan)
    np.save(tmp_path / "english-outputs.npy", base)
    again = teachers.average_teachers(tmp_path, "outputs", shipped=1.5, english=0.6)
    fitted = teachers.match_moments(base[:1200], mean[:1200, 0])
    np.testing.assert_allclose(again[:1200, 0], 0.4 * mean[:1200, 0] + 0.6 * fitted, atol=1e-5)
    np.testing.assert_array_equal(again[1200:], mean[1200:])


def test_average_networks_is_the_weighted_mean() -> None:
    networks = [MultiNetwork(20, hidden=24, layers=2, heads=2, inner=8) for _ in range(3)]
    before = [{k: v.clone() for k, v in network.state_dict().items()} for network in networks]
    training_loop.average_networks(networks, [0.5, 0.25, 0.25])
    for name, value in networks[0].state_dict().items():
        expected = 0.5 * before[0][name] + 0.25 * (before[1][name] + before[2][name])
        np.testing.assert_allclose(value, expected, atol=1e-6)

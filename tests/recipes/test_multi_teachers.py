"""Teachers of tertium-multi: what ships teaches what it says, and who speaks counts as stated."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch")

from recipes.multi import fit, teachers, train
from recipes.multi.deck import Pool
from recipes.multi.e5 import Pieces
from recipes.multi.network import Multi

from tertium.metrics.flagship.tertium_multi import TertiumMulti
from tertium.models.checkpoint import bundled_models_folder

ROWS = [
    ("The train leaves at seven.", "Der Zug fährt um sieben ab.", "The train departs at seven."),
    ("Train go away now.", "Der Zug fährt um sieben ab.", "The train departs at seven."),
    ("Nobody knows why.", "Niemand weiß, warum.", None),
]


def test_the_model_that_ships_teaches_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = bundled_models_folder() / TertiumMulti.name
    given = argparse.Namespace(
        parts=tmp_path, weights=[folder], seed=1, device="cpu", kept=None, apart=4
    )
    train.make_start(given)
    network = train.build(given, 4, tmp_path / "start/weights.safetensors")
    every = list(dict.fromkeys(text for row in ROWS for text in row if text is not None))
    coded = [np.array(n, np.int32) for n in Pieces(folder / "encoder/tokenizer.json").encode(every)]
    pool = Pool("cpu")
    pool.add(np.concatenate(coded), np.array([len(n) for n in coded]))
    numbers = np.array([[-1 if t is None else every.index(t) for t in row] for row in ROWS])
    monkeypatch.setattr(teachers, "taught_rows", lambda *_: {"judgements": numbers})
    letters = teachers.letters_of([(row[0], row[2]) for row in ROWS])
    np.save(tmp_path / "letters-judgments.npy", letters)
    teachers.teach(network, SimpleNamespace(pool=pool), 0, tmp_path, teachers.SHIPPED)  # type: ignore[arg-type]
    said = np.load(tmp_path / "taught-judgments-weights.npy")
    np.testing.assert_allclose(said[:, 0], TertiumMulti().raw_scores(ROWS), atol=1e-4)


def test_teachers_count_as_stated(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    new, shipped = rng.normal(2.0, 3.0, (1500, 3)), rng.normal(0.1, 0.5, (1500, 3))
    np.save(tmp_path / "taught-outputs-seed1.npy", new)
    np.save(tmp_path / "taught-outputs-weights.npy", shipped)
    mean = teachers.teachers_mean(tmp_path, "outputs", shipped=1.5, english=0.6)
    scaled = teachers.like(shipped[:, 0], new[:, 0])
    assert scaled.std() == pytest.approx(new[:, 0].std())
    np.testing.assert_allclose(mean[:, 0], 0.4 * new[:, 0] + 0.6 * scaled, atol=1e-5)
    np.testing.assert_allclose(mean[:, 1:], new[:, 1:], atol=1e-5)
    base = np.where(np.arange(1500) < 1200, rng.normal(size=1500), np.nan)
    np.save(tmp_path / "english-outputs.npy", base)
    again = teachers.teachers_mean(tmp_path, "outputs", shipped=1.5, english=0.6)
    fitted = teachers.like(base[:1200], mean[:1200, 0])
    np.testing.assert_allclose(again[:1200, 0], 0.4 * mean[:1200, 0] + 0.6 * fitted, atol=1e-5)
    np.testing.assert_array_equal(again[1200:], mean[1200:])


def test_a_mixture_lies_between_networks() -> None:
    networks = [Multi(20, hidden=24, layers=2, heads=2, inner=8) for _ in range(3)]
    before = [{k: v.clone() for k, v in network.state_dict().items()} for network in networks]
    fit.mix(networks, [0.5, 0.25, 0.25])
    for name, value in networks[0].state_dict().items():
        expected = 0.5 * before[0][name] + 0.25 * (before[1][name] + before[2][name])
        np.testing.assert_allclose(value, expected, atol=1e-6)
    cut = Multi(20, hidden=24, layers=12, heads=2, inner=8)
    kept = list(cut.layers)
    cut.keep_layers((1, 3, 6, 12))
    assert [*cut.layers] == [kept[n - 1] for n in (1, 3, 6, 12)]

"""Correction weights of tertium-multi: moments, hill climb and written files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from recipes.multi import combine
from recipes.multi.combine import (
    CHRF_COLUMN,
    CHRF_MARGIN,
    CHRF_PENALTY,
    COLUMNS,
    IDENTITY_CORRECTION,
    detection_rates,
    hill_climb,
    load_moments,
    objective,
    soft_clip,
    unit_weights,
    write_corrections,
)
from recipes.multi.e5 import Pieces
from recipes.multi.readouts import READOUT_NAMES
from safetensors.torch import load_file
from torch import Tensor

from tertium.cache.cached_files import hash_file
from tertium.metrics.flagship.bundled_model import dequantize
from tertium.metrics.flagship.joint_network import Readout
from tertium.metrics.flagship.score_correction import NEUTRAL_CHRF, Correction, mean_fragmentation
from tertium.metrics.flagship.tertium_multi import INPUT_MODES, READOUT
from tertium.models.checkpoint import bundled_models_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a dataset of 400 rows in which chrF and the readout "all" are informative."""
    rng = np.random.default_rng(1)
    human, letters, read = rng.normal(size=400), rng.random(400), rng.normal(size=(400, 3))
    strange = np.tile([0.0, 0.5], 200)
    read[:, READOUT_NAMES.index("all")] += human
    letters += 0.3 * human
    scores_in = rng.normal(size=400) * 4
    np.savez(
        tmp_path / "dev.npz",
        names=np.array(["dev:wmt15/cs-en"]),
        set=np.zeros(400, int),
        human=human,
        letters=np.column_stack([np.full(400, np.nan), letters]),
        strange=strange,
        said_reference=scores_in,
        read_reference=read,
    )
    return tmp_path


def test_moments_equal_correlation_and_slope_of_weighted_sum(folder: Path) -> None:
    [one] = load_moments(folder, "dev", "reference", 2.0)
    shares = np.array([0.3, 0.1, 0.7, 0.4, 1.5, 0.8, 0.2, 0.0])
    with np.load(folder / "dev.npz") as stored:
        total = (
            (0.3 - 0.2 * stored["strange"]) * soft_clip(stored["said_reference"], 2.0)
            + stored["read_reference"] @ [0.1, 0.7, 0.4]
            + 1.5 * stored["letters"][:, 1]
            + 0.8 * stored["strange"] * (stored["letters"][:, 1] - NEUTRAL_CHRF)
        )
        human = stored["human"]
    assert one.r(shares) == pytest.approx(np.corrcoef(total, human)[0, 1])
    assert one.slope(shares) == pytest.approx(np.polyfit(total, human, 1)[0])


def test_hill_climb_weights_informative_columns(folder: Path) -> None:
    best, shares = hill_climb(load_moments(folder, "dev", "reference", 2.0))
    assert shares.min() >= 0
    every, letters = shares[COLUMNS.index("all")], shares[CHRF_COLUMN]
    assert min(every, letters) > 0.4
    assert shares[0] < 0.3 * every
    assert best > 0.75


def test_objective_penalizes_sets_below_chrf_or_minimum(folder: Path) -> None:
    sets = load_moments(folder, "dev", "reference", 2.0)
    shares, poor = unit_weights(COLUMNS.index("all")) + unit_weights(CHRF_COLUMN), unit_weights(0)
    r, chrf, own = (sets[0].r(weights) for weights in (shares, unit_weights(CHRF_COLUMN), poor))
    assert r > chrf > own
    assert r > chrf + CHRF_MARGIN
    assert objective(sets, shares) == pytest.approx(r)
    assert objective(sets, shares, {"dev/dev:wmt15": r + 0.1}) == pytest.approx(r - 0.1)
    assert objective(sets, poor) == pytest.approx(own - CHRF_PENALTY * (chrf + CHRF_MARGIN - own))


def test_detection_rates_count_lower_scores(tmp_path: Path) -> None:
    """Copies get the full network penalty, whatever the weight of the network."""
    np.savez(
        tmp_path / "damage.npz",
        names=np.array(["dropped", "copy"]),
        set=np.array([0, 0, 1, 1]),
        human=np.zeros(4),
        letters=np.array([[0.1, 0.5], [0.1, 0.5], [0.1, 0.5], [1.0, 0.7]]),
        strange=np.zeros(4),
        said_both=np.array([0.5, -1.0, 0.4, -0.6]),
        said_reference=np.array([0.5, -1.0, 0.4, -0.6]),
        read_both=np.zeros((4, len(READOUT_NAMES))),
        read_reference=np.zeros((4, len(READOUT_NAMES))),
    )
    weights = 0.1 * unit_weights(0) + unit_weights(CHRF_COLUMN)
    assert detection_rates(tmp_path, "both", 2.0, weights) == {"dropped": 1.0, "copy": 1.0}
    assert detection_rates(tmp_path, "reference", 2.0, weights) == {"dropped": 1.0, "copy": 0.0}


@pytest.fixture
def model_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an empty bundled model."""
    monkeypatch.setattr(combine, "bundled_models_folder", lambda: tmp_path)
    folder = tmp_path / "tertium-multi"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


def constant_readout(value: float) -> dict[str, Tensor]:
    """Return a small readout whose weights all have the same value."""
    return {name: w * 0 + value for name, w in Readout(5, 3, 2).state_dict().items()}


def test_identity_correction_keeps_network_scores(model_folder: Path) -> None:
    write_corrections(
        dict.fromkeys(INPUT_MODES, IDENTITY_CORRECTION),
        dict.fromkeys(INPUT_MODES, constant_readout(0.0)),
    )
    config = json.loads((model_folder / "config.json").read_text())
    assert config["parts"] == {READOUT: hash_file(model_folder / READOUT)}
    scores_in = np.array([-12.0, 0.3, 5.0])
    for mode in INPUT_MODES:
        correct = Correction(**config["corrections"][mode])
        row = (
            "ein Wort",
            None if mode == "reference" else "a word",
            None if mode == "source" else "x",
        )
        found = correct([row] * 3, scores_in, np.zeros(3), np.ones(3))
        np.testing.assert_allclose(found, scores_in, rtol=1e-9)


def test_write_corrections_keeps_other_modes(model_folder: Path) -> None:
    first = {mode: constant_readout(1.0 + n) for n, mode in enumerate(INPUT_MODES)}
    write_corrections(dict.fromkeys(INPUT_MODES, IDENTITY_CORRECTION), first)
    write_corrections(
        {"both": {**IDENTITY_CORRECTION, "share": 0.5}}, {"both": constant_readout(7.0)}
    )
    config = json.loads((model_folder / "config.json").read_text())
    assert [config["corrections"][mode]["share"] for mode in INPUT_MODES] == [1.0, 1.0, 0.5]
    stored = dequantize(load_file(model_folder / READOUT))
    for number, expected in enumerate((1.0, 2.0, 7.0)):
        readout = Readout(5, 3, 2)
        own = f"network.readouts.{number}."
        readout.load_state_dict({n[len(own) :]: w for n, w in stored.items() if n.startswith(own)})
        assert all((weight == expected).all() for weight in readout.state_dict().values())


def test_fragmentation_averages_hypothesis_and_reference() -> None:
    """Livonian is fragmented; Chinese has no words to split."""
    pieces = Pieces(bundled_models_folder() / "tertium-multi/encoder/tokenizer.json")
    livonian = "Līvõd rānda um ilzõ nīžtõd"
    rows = [("a cat sat", livonian, "a cat sat"), (livonian, None, livonian)]
    rows += [(livonian, None, "a cat sat"), (livonian, "a cat", None), ("火车不开。", None, "今天")]
    assert mean_fragmentation(rows, pieces.encode).tolist() == [0.0, 1.0, 0.5, 0.0, 0.0]

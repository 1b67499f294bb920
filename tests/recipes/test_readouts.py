"""Readouts of tertium-multi: fits, and the readout that ships."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from recipes.multi import readouts
from recipes.multi.readouts import (
    PARAGRAPH_PREFIX,
    READOUT_NAMES,
    RIDGE,
    ReadoutData,
    fit_readouts,
    judgment_kind,
    load_readouts,
    save_readouts,
    standardize_features,
)

from tertium.metrics.flagship.joint_network import MAX_DEVIATIONS, Readout

WEIGHTS = np.array([1.0, -0.1, 3.0, 0.0, 0.5])


def make_rows(rows: int = 600) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return features on several scales, one of them constant, of two separate datasets."""
    rng = np.random.default_rng(2)
    features = rng.normal(size=(rows, 5)) * [1, 10, 0.1, 0, 1] + [0, 5, 0, 3, 0]
    human = features @ WEIGHTS * 0.3 + 0.5 * (features[:, 0] > 0)
    names = ["wmt20/en-cs"] * (rows // 2) + ["wmt24/en-cs"] * (rows // 2)
    features[rows // 2 :, 4] += 7  # what tells the sets apart tells nothing of people's scores
    return features, human.astype(np.float32), names


def test_judgment_kind_of_dataset_names() -> None:
    names = (
        "wmt16/x",
        "wmt22/x",
        f"{PARAGRAPH_PREFIX}wmt24/x",
        "bio21/x",
        f"{PARAGRAPH_PREFIX}mlqe-train/x",
    )
    assert [judgment_kind(name) for name in names] == ["old", "da", "esa", "mqm", "qe"]


@pytest.mark.parametrize(("name", "some"), [("crowds", slice(0, 300)), ("all", slice(0, 600))])
def test_ridge_equals_sklearn_within_sets(name: str, some: slice) -> None:
    """Compare with scikit-learn on centered rows and features of unit variance."""
    from sklearn.linear_model import Ridge

    features, human, names = make_rows()
    joined = torch.from_numpy(np.concatenate([features, features[:50]])).float()
    rows = ReadoutData(
        joined, np.concatenate([human, -human[:50]]), [*names, *[f"{PARAGRAPH_PREFIX}wmt20/x"] * 50]
    )
    rows.standardize()
    standardized = rows.features[:600].numpy().astype(np.float64)
    weights, bias = rows.fit_ridge(name)
    sets = np.array(names)
    inside, people = standardized.copy(), rows.human[:600].numpy().astype(np.float64)
    for one in set(names):
        inside[sets == one] -= inside[sets == one].mean(0)
    spread = inside[some].std(0)
    scaled = inside[some] / np.where(spread > 0, spread, 1)
    centred = people - np.array([people[sets == one].mean() for one in sets])
    plain = Ridge(alpha=RIDGE * len(scaled), fit_intercept=False).fit(scaled, centred[some])
    np.testing.assert_allclose(inside[some] @ weights.numpy(), plain.predict(scaled), atol=1e-4)
    assert weights[3] == 0
    assert float(bias) == pytest.approx(
        (people[some] - standardized[some] @ weights.numpy()).mean(), abs=1e-4
    )


def test_mixed_readout_equals_weighted_readouts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The hidden layer fits a step that the linear readouts cannot."""
    monkeypatch.setattr(readouts, "BATCH_SIZE", 128)
    monkeypatch.setattr(readouts, "EPOCHS", 80)
    monkeypatch.setattr(readouts, "LEARNING_RATE", 0.01)
    monkeypatch.setattr(readouts, "DROPOUT", 0.0)
    features, human, names = make_rows()
    tensor = torch.from_numpy(features)
    learned = fit_readouts(tensor.half(), human, names)
    save_readouts(tmp_path / "readouts.npz", {"both": learned})
    stored = load_readouts(tmp_path / "readouts.npz", "both")
    prediction = stored(tensor)
    assert prediction.shape == (600, len(READOUT_NAMES))
    r = [
        np.corrcoef(column[:300], human[:300])[0, 1] for column in prediction.T.numpy()
    ]  # of crowds
    assert r[2] > max(r[:2])
    assert r[2] > 0.95
    far = torch.cat([tensor, tensor * 1e6])
    readout = Readout(5, len(stored.squeeze), len(stored.last))
    readout.load_state_dict(stored.mix([0.5, 0.2, 2.0]))
    expected = stored(far) @ torch.tensor([0.5, 0.2, 2.0])
    with torch.no_grad():
        torch.testing.assert_close(readout(far.float())[:, 0], expected, rtol=1e-4, atol=1e-4)
    assert standardize_features(far, stored.mean, stored.scale).abs().max() <= MAX_DEVIATIONS

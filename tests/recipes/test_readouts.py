"""The second readings of tertium-multi: what they learn, and what ships of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from recipes.multi import readouts
from recipes.multi.readouts import (
    JOINED,
    READINGS,
    RIDGE,
    Lessons,
    bring_near,
    kind_of,
    learn_readings,
    load_readings,
    save_readings,
)

from tertium.metrics.flagship.joint_network import MAX_DEVIATIONS, Readout

WEIGHTS = np.array([1.0, -0.1, 3.0, 0.0, 0.5])


def made_rows(rows: int = 600) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Features of several scales, one of which never changes; two sets that lie apart."""
    rng = np.random.default_rng(2)
    found = rng.normal(size=(rows, 5)) * [1, 10, 0.1, 0, 1] + [0, 5, 0, 3, 0]
    human = found @ WEIGHTS * 0.3 + 0.5 * (found[:, 0] > 0)
    names = ["wmt20/en-cs"] * (rows // 2) + ["wmt24/en-cs"] * (rows // 2)
    found[rows // 2 :, 4] += 7  # what tells the sets apart tells nothing of people's scores
    return found, human.astype(np.float32), names


def test_kinds_of_sets_are_told_apart() -> None:
    names = ("wmt16/x", "wmt22/x", f"{JOINED}wmt24/x", "bio21/x", f"{JOINED}mlqe-train/x")
    assert [kind_of(name) for name in names] == ["old", "da", "esa", "mqm", "qe"]


@pytest.mark.parametrize(("name", "some"), [("crowds", slice(0, 300)), ("all", slice(0, 600))])
def test_regressions_look_within_sets_of_single_segments(name: str, some: slice) -> None:
    """Against scikit-learn on rows less the mean of their set, every feature of one variance."""
    from sklearn.linear_model import Ridge

    found, human, names = made_rows()
    joined = torch.from_numpy(np.concatenate([found, found[:50]])).float()
    rows = Lessons(
        joined, np.concatenate([human, -human[:50]]), [*names, *[f"{JOINED}wmt20/x"] * 50]
    )
    rows.standardise()
    near = rows.found[:600].numpy().astype(np.float64)
    weights, bias = rows.solve(name)
    sets = np.array(names)
    inside, people = near.copy(), rows.human[:600].numpy().astype(np.float64)
    for one in set(names):
        inside[sets == one] -= inside[sets == one].mean(0)
    spread = inside[some].std(0)
    scaled = inside[some] / np.where(spread > 0, spread, 1)
    centred = people - np.array([people[sets == one].mean() for one in sets])
    plain = Ridge(alpha=RIDGE * len(scaled), fit_intercept=False).fit(scaled, centred[some])
    np.testing.assert_allclose(inside[some] @ weights.numpy(), plain.predict(scaled), atol=1e-4)
    assert weights[3] == 0
    assert float(bias) == pytest.approx(
        (people[some] - near[some] @ weights.numpy()).mean(), abs=1e-4
    )


def test_what_is_read_is_what_ships(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A layer tells of a step that a line cannot; what ships says sums of shares, far off too."""
    monkeypatch.setattr(readouts, "SIZE", 128)
    monkeypatch.setattr(readouts, "EPOCHS", 80)
    monkeypatch.setattr(readouts, "RATE", 0.01)
    monkeypatch.setattr(readouts, "DROPOUT", 0.0)
    found, human, names = made_rows()
    features = torch.from_numpy(found)
    learned = learn_readings(features.half(), human, names)
    save_readings(tmp_path / "readouts.npz", {"both": learned})
    stored = load_readings(tmp_path / "readouts.npz", "both")
    said = stored(features)
    assert said.shape == (600, len(READINGS))
    r = [np.corrcoef(column[:300], human[:300])[0, 1] for column in said.T.numpy()]  # of crowds
    assert r[2] > max(r[:2])
    assert r[2] > 0.95
    far = torch.cat([features, features * 1e6])
    readout = Readout(5, len(stored.squeeze), len(stored.last))
    readout.load_state_dict(stored.mix([0.5, 0.2, 2.0]))
    expected = stored(far) @ torch.tensor([0.5, 0.2, 2.0])
    with torch.no_grad():
        torch.testing.assert_close(readout(far.float())[:, 0], expected, rtol=1e-4, atol=1e-4)
    assert bring_near(far, stored.mean, stored.scale).abs().max() <= MAX_DEVIATIONS

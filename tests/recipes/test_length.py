"""Length penalty: the smallest one that gains enough on expert scores."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from recipes.flagship import length
from recipes.flagship.length import CROWD_SET, EXPERT_SET, OLD_SET, ScoredSet, choose
from recipes.flagship.ship import KNOTS, fit_calibration

RNG = np.random.default_rng(5)
COUNTS = RNG.integers(6, 65, size=1500)
REFERENCES = [f"{number} " + "word " * (count - 1) for number, count in enumerate(COUNTS)]
QUALITY = RNG.normal(size=1500)


@pytest.fixture(autouse=True)
def few_bootstrap_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(length, "BOOTSTRAP_SAMPLES", 40)


def make_scored_sets(length_weight: float) -> list[ScoredSet]:
    """Return human scores with this length penalty and noise."""
    human = QUALITY + RNG.normal(size=1500) - length_weight * np.log(COUNTS)
    return [ScoredSet(REFERENCES, QUALITY, human)]


def test_choose_returns_smallest_sufficient_penalty() -> None:
    scored_sets = {
        OLD_SET: make_scored_sets(0.4),
        EXPERT_SET: make_scored_sets(1.0),
        CROWD_SET: make_scored_sets(0.0),
    }
    cost = choose(scored_sets)
    experts = scored_sets[EXPERT_SET][0]
    assert experts.gain_lower_bound(cost - 0.05) < 0.05 <= experts.gain_lower_bound(cost)
    assert experts.dev_correlation(cost) - experts.dev_correlation(0) > experts.gain_lower_bound(
        cost
    )


def test_calibration_merges_knots_equal_after_rounding() -> None:
    """A map whose written levels do not increase is rejected when it is read."""
    raw = np.repeat(np.arange(KNOTS, dtype=np.float64), 50)
    human = np.where(raw == 7, 6 + 1e-6, raw)
    knots = fit_calibration(raw, human)["calibration"]
    assert np.diff(knots["score"]).min() > 0
    assert len(knots["raw"]) == KNOTS - 1
    assert 6.5 in knots["raw"]

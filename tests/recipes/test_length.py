"""The cost of length: the least that gains enough on experts' scores and costs nothing before."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from recipes.flagship import length
from recipes.flagship.length import CROWDS, EXPERTS, OLD, Judged, choose
from recipes.flagship.ship import KNOTS, calibration

RNG = np.random.default_rng(5)
COUNTS = RNG.integers(6, 65, size=1500)
REFERENCES = [f"{number} " + "word " * (count - 1) for number, count in enumerate(COUNTS)]
QUALITY = RNG.normal(size=1500)


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(length, "DRAWS", 40)


def judged(known: float) -> list[Judged]:
    """People who charge so much for length, and see quality as the network does, with noise."""
    human = QUALITY + RNG.normal(size=1500) - known * np.log(COUNTS)
    return [Judged(REFERENCES, QUALITY, human)]


def test_the_least_cost_that_gains_enough_is_chosen() -> None:
    told = {OLD: judged(0.4), EXPERTS: judged(1.0), CROWDS: judged(0.0)}
    cost = choose(told)
    experts = told[EXPERTS][0]
    assert experts.sure_gain(cost - 0.05) < 0.05 <= experts.sure_gain(cost)
    assert experts.agreement(cost) - experts.agreement(0) > experts.sure_gain(cost)


def test_what_older_judgments_lose_is_refused() -> None:
    with pytest.raises(SystemExit, match="no cost"):
        choose({OLD: judged(-0.5), EXPERTS: judged(1.0), CROWDS: judged(0.0)})


def test_knots_that_rounding_would_make_equal_are_one() -> None:
    """A map whose levels do not increase as they are written is refused where it is read."""
    raw = np.repeat(np.arange(KNOTS, dtype=np.float64), 50)
    human = np.where(raw == 7, 6 + 1e-6, raw)
    knots = calibration(raw, human)["calibration"]
    assert np.diff(knots["score"]).min() > 0
    assert len(knots["raw"]) == KNOTS - 1
    assert 6.5 in knots["raw"]

"""Variance components and power."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.core.errors import DataError, UsageError
from tertium.core.segment import Judgment, Segment
from tertium.data.judgments import JudgmentSet
from tertium.people.power import (
    Design,
    VarianceComponents,
    compute_power,
    detectable_difference,
    estimate_variance,
    plan_budget,
    plan_difference,
    stored_variance,
)

TRUE = VarianceComponents(document=40.0, rater=60.0, segment=100.0, noise=200.0)


def simulate_pilot(raters: int, documents: int = 250, size: int = 4, seed: int = 1) -> JudgmentSet:
    """Two systems; the difference has the components of `TRUE`, half of it in each system."""
    rng = np.random.default_rng(seed)
    judgments = []
    for document in range(documents):
        by_document = rng.normal(0, TRUE.document**0.5)
        by_rater = rng.normal(0, TRUE.rater**0.5, raters)
        for segment in range(size):
            by_segment = rng.normal(0, TRUE.segment**0.5)
            for rater in range(raters):
                noise = rng.normal(0, TRUE.noise**0.5)
                half = (3 + by_document + by_rater[rater] + by_segment + noise) / 2
                for system, score in (("a", 50 + half), ("b", 50 - half)):
                    name, item = f"d{document}", f"{document}.{segment}"
                    judgments.append(
                        Judgment(Segment("x"), score, item, system, f"r{rater}", "en-de", name)
                    )
    return JudgmentSet(name="pilot", judgments=tuple(judgments))


def test_a_pilot_has_the_shares_of_public_judgments() -> None:
    fitted = estimate_variance(simulate_pilot(raters=1), "esa")
    public = stored_variance("esa")
    assert fitted.total == pytest.approx(TRUE.total, rel=0.1)
    assert fitted.noise / fitted.total == pytest.approx(public.noise / public.total)
    assert estimate_variance(simulate_pilot(raters=1), "post-edit") == fitted


def test_power_is_that_of_simulated_tests() -> None:
    rng = np.random.default_rng(3)
    variance = VarianceComponents(document=0, rater=0, segment=100, noise=300)
    draws = rng.normal(4, 100**0.5, (2000, 90))
    draws += rng.normal(0, (300 / 2) ** 0.5, (2000, 90))  # the mean of two raters
    effects = draws.mean(axis=1) / draws.std(axis=1, ddof=1) * 90**0.5
    found = (np.abs(effects) > 1.987).mean()  # the critical value of Student's t for 89
    predicted = compute_power(4, 90, variance, Design(protocol="esa", raters=2))
    assert float(predicted) == pytest.approx(found, abs=0.03)


def test_needed_segments_reach_the_power_and_one_less_does_not() -> None:
    variance, design = stored_variance("esa"), Design(protocol="esa", raters=2)
    plan = plan_difference(3, variance, design)
    assert plan.power(plan.segments) >= 0.8 > plan.power(plan.segments - 1)
    assert detectable_difference(plan.segments, variance, design) == pytest.approx(3, rel=0.01)
    more_raters = plan_difference(3, variance, Design(protocol="esa", raters=4))
    assert more_raters.segments < plan.segments


def test_a_budget_gives_segments_and_the_detectable_difference() -> None:
    design = Design(protocol="esa", systems=2, raters=2, seconds=60.0)
    plan = plan_budget(8 * 3600, stored_variance("esa"), design)
    assert plan.segments == 120
    assert float(plan.power(120)) == pytest.approx(0.8, abs=0.005)
    with pytest.raises(UsageError, match="enough for 0 segments"):
        plan_budget(60, stored_variance("esa"), design)


def test_bad_designs_are_refused() -> None:
    with pytest.raises(UsageError, match="unknown protocol 'stars'"):
        Design(protocol="stars")
    with pytest.raises(UsageError, match="systems must be at least 2"):
        Design(protocol="da", systems=1)
    with pytest.raises(UsageError, match="other than 0"):
        plan_difference(0, TRUE, Design(protocol="da"))
    with pytest.raises(DataError, match="give a pilot"):
        stored_variance("post-edit")

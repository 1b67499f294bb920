"""Chosen segments: exact inclusion probabilities, unbiased means."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from benchmarks.annotation import weighted_standard_error

from tertium.campaigns.sampling import (
    choose_segments,
    draw_systematic,
    informative_probabilities,
    length_labels,
    weighted_mean,
)
from tertium.errors import UsageError


def test_systematic_sampling_has_exactly_its_probabilities() -> None:
    probabilities = informative_probabilities([5, 1, 0, 2, 9, 30, 1, 1], 3, 8)
    assert probabilities.sum() == pytest.approx(3)
    assert probabilities.max() <= 1
    starts = (np.arange(5_000) + 0.5) / 5_000  # every start of a fine grid
    draws = [draw_systematic(probabilities, start) for start in starts]
    assert {len(draw) for draw in draws} == {3}
    shares = np.bincount(np.concatenate(draws), minlength=8) / len(starts)
    np.testing.assert_allclose(shares, probabilities, atol=4e-4)


@pytest.mark.parametrize("method", ["random", "stratified", "documents", "informative"])
def test_weighted_means_are_unbiased(method: str) -> None:
    rng = np.random.default_rng(5)
    population = 60
    utilities = rng.gamma(1.0, 1.0, population)
    scores = 70 + 10 * utilities + rng.normal(0, 3, population)  # useful segments differ
    documents = [str(n // 3) for n in range(population)]
    strata = [(name,) for name in length_labels(["x" * int(u * 9) for u in utilities])]
    estimates = []
    for _ in range(800):
        sample = choose_segments(
            population,
            12,
            rng,
            method=method,  # type: ignore[arg-type]
            documents=documents,
            strata=strata,
            utilities=utilities,
        )
        chosen = scores[sample.indices]
        estimates.append(
            (
                (chosen / sample.probabilities).sum() / population,
                weighted_mean(chosen, sample.probabilities),
                chosen.mean(),
            )
        )
    error = np.mean(estimates, axis=0) - scores.mean()
    limit = 4 * np.std(estimates, axis=0) / len(estimates) ** 0.5
    assert abs(error[0]) < limit[0]  # exactly unbiased
    assert abs(error[1]) < limit[1] + 0.4  # the bias of a ratio is of order 1 / n
    if method == "informative":
        assert error[2] > 2  # the plain mean is not


def test_strata_and_documents_are_represented() -> None:
    rng = np.random.default_rng(2)
    strata = [("news" if n < 40 else "social",) for n in range(60)]
    sample = choose_segments(60, 12, rng, method="stratified", strata=strata)
    assert Counter(strata[n] for n in sample.indices) == {("news",): 8, ("social",): 4}
    documents = [str(n // 5) for n in range(60)]
    sample = choose_segments(60, 20, rng, method="documents", documents=documents)
    assert len(sample) == 20
    assert set(Counter(documents[n] for n in sample.indices).values()) == {5}


def test_the_standard_error_is_that_of_repeated_samples() -> None:
    rng = np.random.default_rng(8)
    utilities = rng.gamma(2.0, 1.0, 2000)
    scores = rng.normal(0, 1, 2000) * utilities
    estimates, errors = [], []
    for _ in range(200):
        sample = choose_segments(2000, 80, rng, method="informative", utilities=utilities)
        chosen = scores[sample.indices]
        estimates.append(float(weighted_mean(chosen, sample.probabilities)))
        errors.append(float(weighted_standard_error(chosen, sample.probabilities)))
    assert np.mean(errors) == pytest.approx(np.std(estimates), rel=0.15)


def test_impossible_samples_are_refused() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(UsageError, match="9 segments cannot be chosen from 5"):
        choose_segments(5, 9, rng)
    with pytest.raises(UsageError, match="--documents"):
        choose_segments(5, 2, rng, method="documents")

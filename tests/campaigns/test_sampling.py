"""Chosen segments: equal probabilities, unbiased means."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tertium.core.errors import UsageError
from tertium.people.planning import choose_segments

METHODS = ("random", "stratified", "documents")


@pytest.mark.parametrize("method", METHODS)
def test_segments_have_equal_probabilities_and_unbiased_means(method: str) -> None:
    rng = np.random.default_rng(5)
    population, draws = 60, 800
    scores = rng.gamma(1.0, 10.0, population)
    counts = np.zeros(population)
    means = []
    for _ in range(draws):
        chosen = choose_segments(
            population,
            12,
            rng,
            method=method,  # type: ignore[arg-type]
            documents=[str(n // 3) for n in range(population)],
            strata=[(str(int(score) // 25),) for score in scores],
        )
        assert len(set(chosen.tolist())) == 12
        counts[chosen] += 1
        means.append(scores[chosen].mean())
    deviation = (draws * 0.2 * 0.8) ** 0.5  # of a binomial count
    assert np.abs(counts - draws * 0.2).max() < 4 * deviation
    assert abs(np.mean(means) - scores.mean()) < 4 * np.std(means) / draws**0.5


def test_strata_and_documents_are_represented() -> None:
    rng = np.random.default_rng(2)
    strata = [("news" if n < 40 else "social",) for n in range(60)]
    chosen = choose_segments(60, 12, rng, method="stratified", strata=strata)
    assert Counter(strata[n] for n in chosen) == {("news",): 8, ("social",): 4}
    documents = [str(n // 5) for n in range(60)]
    chosen = choose_segments(60, 20, rng, method="documents", documents=documents)
    assert len(chosen) == 20
    assert set(Counter(documents[n] for n in chosen).values()) == {5}


def test_impossible_samples_are_refused() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(UsageError, match="9 segments cannot be chosen from 5"):
        choose_segments(5, 9, rng)
    with pytest.raises(UsageError, match="--documents"):
        choose_segments(5, 2, rng, method="documents")

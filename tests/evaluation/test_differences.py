"""Differences explained by the scales that ship: of which metrics, in which words, and when not."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tertium
from tertium.evaluation import differences
from tertium.evaluation.differences import explain_differences, find_scale, shipped_scales
from tertium.meta.differences import DifferenceBin, DifferenceScale


@pytest.fixture
def compared():
    words = "the cat sat on the mat while it was raining in the old town".split()
    references = [" ".join(words[n % 5 :]) for n in range(40)]
    worse = [r.replace("cat", "dog") for r in references]
    testset = tertium.TestSet({"base": worse, "ours": references}, [[r] for r in references])
    return tertium.compare(testset, "chrf", resamples=50)


def test_scales_ship_for_the_usual_metrics():
    for spec in ("bleu", "chrf"):
        for direction in ("into English", "not into English", "all"):
            scale = find_scale(spec, direction)
            assert scale is not None
            assert scale.direction == direction
            assert scale.pairs > 100
    for scale in shipped_scales():
        shares = [b.agree for b in scale.bins]
        assert shares == sorted(shares)
        assert all(0 <= share <= 1 for share in shares)


def test_a_difference_is_put_into_words(compared):
    (line,) = explain_differences(compared)
    difference = compared.difference("chrf", "ours")
    scale = find_scale("chrf", "into English")
    found = scale.find(difference)
    assert line == (
        f"ours: {difference:+.2f} chrF: people agree in {100 * found.agree:.0f} % of such pairs of "
        f"systems (n = {found.pairs:,}, into English)"
    )


def test_a_metric_that_learned_anew_is_not_explained(monkeypatch):
    bins = (DifferenceBin(0.0, 1.0, 30, 0.7),)
    old = DifferenceScale(metric="chrf", direction="all", bins=bins, learned=("other@1",))
    monkeypatch.setattr(differences, "shipped_scales", lambda: (old,))
    assert find_scale("chrf", "into English") is None
    monkeypatch.setattr(differences, "shipped_scales", lambda: (replace(old, learned=()),))
    assert find_scale("chrf", "into English") is not None
    assert find_scale("bleu", "into English") is None

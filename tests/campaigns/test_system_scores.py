"""Human scores of systems, rater quality and the MQM scorecard."""

from __future__ import annotations

import numpy as np
import pytest

from tertium.core.errors import DataError
from tertium.core.segment import Judgment, Segment
from tertium.core.spans import ErrorAnnotations, Span, UnlocatedError
from tertium.data.judgments import JudgmentSet
from tertium.people.reliability import Ratings, describe_raters, fit_drift
from tertium.people.system_ratings import make_scorecards, score_systems


def simulate(
    rng: np.random.Generator,
    *,
    raters: int = 6,
    documents: int = 20,
    difference: float = 0.0,
    bad_raters: int = 0,
) -> JudgmentSet:
    """Two systems; raters lean to one of them, and differ by document."""
    leaning = rng.normal(0, 4, raters)
    judgments = []
    for document in range(documents):
        effect = rng.normal(0, 5)
        for segment in range(3):
            quality = 70 + rng.normal(0, 10)
            for rater in range(raters):
                for sign, system in ((0.5, "a"), (-0.5, "b")):
                    score = quality + sign * (difference + leaning[rater] + effect)
                    score += rng.normal(0, 6)
                    if rater < bad_raters:
                        score = rng.uniform(0, 100)
                    judgments.append(
                        Judgment(
                            Segment("x"),
                            score,
                            f"{document}.{segment}",
                            system,
                            f"r{rater}",
                            "en-de",
                            f"d{document}",
                        )
                    )
    return JudgmentSet(name="simulated", judgments=tuple(judgments))


def test_equal_systems_are_rarely_in_different_clusters() -> None:
    rng = np.random.default_rng(7)
    naive, careful = 0, 0
    for _ in range(40):
        ratings = Ratings.from_judgments(simulate(rng))
        _, p_values = score_systems(ratings, resamples=200, rng=rng)
        careful += p_values[0, 1] < 0.05
        both = [ratings.scores[ratings.system == n] for n in (0, 1)]
        difference = both[0] - both[1]
        error = difference.std(ddof=1) / len(difference) ** 0.5
        naive += abs(difference.mean()) > 1.96 * error
    assert careful <= 4
    assert naive >= 8  # a test that takes judgments as independent


def test_a_large_difference_is_found_and_intervals_contain_it() -> None:
    rng = np.random.default_rng(2)
    ratings = Ratings.from_judgments(simulate(rng, difference=12))
    scores, p_values = score_systems(ratings, resamples=400, rng=rng)
    assert [(s.system, s.cluster) for s in scores] == [("a", 1), ("b", 2)]
    assert p_values[0, 1] < 0.05
    assert scores[0].low < scores[0].mean < scores[0].high


def test_random_raters_are_named_and_drift_is_found() -> None:
    ratings = Ratings.from_judgments(simulate(np.random.default_rng(4), bad_raters=1))
    qualities = {quality.rater: quality for quality in describe_raters(ratings)}
    assert qualities["r0"].reasons
    assert qualities["r0"].alpha_without > qualities["r1"].alpha_without
    assert not any(q.reasons for name, q in qualities.items() if name != "r0")
    rng = np.random.default_rng(1)
    slope, error = fit_drift(np.arange(200) * 0.05 + rng.normal(0, 3, 200))
    assert slope == pytest.approx(5, abs=3 * error)


def test_the_scorecard_counts_points_per_thousand_words() -> None:
    marks = ErrorAnnotations((Span(0, 1, severity="major"),), (UnlocatedError("minor"),))
    source = " ".join(["word"] * 50)
    human = JudgmentSet(
        name="x",
        judgments=(
            Judgment(Segment("ein Wort", source), -6.0, "1", "a", "r1", error_annotations=marks),
            Judgment(
                Segment("ein Wort", source),
                0.0,
                "1",
                "a",
                "r2",
                error_annotations=ErrorAnnotations(),
            ),
        ),
    )
    [card] = make_scorecards(
        Ratings.from_judgments(human), resamples=20, rng=np.random.default_rng(1), pass_mark=59
    )
    assert (card.points, card.words, card.passed) == (60.0, 100, False)
    assert card.errors == {"major": 1, "minor": 1}


def test_judgments_without_raters_are_refused() -> None:
    human = JudgmentSet(name="x", judgments=(Judgment(Segment("x"), 1.0, "1", "a"),))
    with pytest.raises(DataError, match="no judgments of raters"):
        Ratings.from_judgments(human)

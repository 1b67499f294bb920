"""Raw ratings: standardized by annotator and averaged."""

from __future__ import annotations

import numpy as np

from tertium.core.segment import Judgment, Segment
from tertium.data.judgments import JudgmentSet
from tertium.data.ratings import average_ratings, standardize_ratings


def ratings(*rows: tuple[str, str, str, float]) -> JudgmentSet:
    rows_as_judgments = (
        Judgment(Segment(f"{system}{item}", references=("r",)), score, item, system, annotator)
        for annotator, system, item, score in rows
    )
    return JudgmentSet(name="x", judgments=tuple(rows_as_judgments))


def test_z_scores_use_each_annotators_mean_and_sample_deviation() -> None:
    rows = [("ann", "A", "1", 10.0), ("ann", "B", "1", 20.0), ("ann", "A", "2", 30.0)]
    rows += [("bob", "A", "1", 90.0), ("bob", "B", "1", 100.0)]
    result = standardize_ratings(ratings(*rows))
    # ann: mean 20, sd sqrt((100 + 0 + 100) / 2) = 10; bob: mean 95, sd sqrt(50)
    expected = [-1.0, 0.0, 1.0, -5 / np.sqrt(50), 5 / np.sqrt(50)]
    np.testing.assert_allclose(result.scores, expected)


def test_constant_or_unnamed_annotators_are_excluded_and_counted() -> None:
    rows = [("ann", "A", "1", 1.0), ("ann", "B", "1", 2.0), ("bob", "A", "1", 50.0)]
    rows += [("cy", "A", "1", 3.0), ("cy", "B", "1", 3.0), ("", "A", "1", 9.0)]
    result = standardize_ratings(ratings(*rows))
    assert len(result) == 2
    assert result.excluded_counts == {
        "annotator with fewer than two different ratings": 3,
        "no annotator": 1,
    }


def test_averages_are_over_all_ratings_of_one_translation() -> None:
    rows = [("ann", "A", "1", 10.0), ("bob", "A", "1", 40.0), ("ann", "B", "1", 5.0)]
    result = average_ratings(ratings(*rows))
    assert [(j.system, j.score, j.annotator) for j in result.judgments] == [
        ("A", 25.0, ""),
        ("B", 5.0, ""),
    ]


def test_too_few_ratings_are_excluded_and_counted() -> None:
    rows = [("ann", "A", "1", 10.0), ("bob", "A", "1", 40.0), ("ann", "B", "1", 5.0)]
    result = average_ratings(ratings(*rows), minimum=2)
    assert len(result) == 1
    assert result.excluded_counts == {"fewer ratings than asked for": 1}

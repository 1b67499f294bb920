"""Disagreement of two metrics, counted by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from tertium.core.arrays import FloatArray
from tertium.core.errors import DataError, UsageError
from tertium.core.segment import Judgment, Segment
from tertium.data.judgments import JudgmentSet
from tertium.metrics.base.loading import load_metric
from tertium.metrics.base.metric import SegmentMetric
from tertium.studies.error_analysis import analyse, mark_highest

HUMAN = np.array([9.0, 8, 7, 6, 5, 4, 3, 2, 1, 0])


@dataclass(frozen=True, kw_only=True)
class CountsLetter(SegmentMetric):
    """The number of times that a translation has a letter."""

    letter: str
    name = "counts-letter"
    title = "counts letter"

    def segment_scores(self, segments: Sequence[Segment]) -> FloatArray:
        return np.array([float(s.hypothesis.count(self.letter)) for s in segments])


def test_counts_by_hand():
    texts = ["a b", "a", "b", "c", "c c", "d"]
    rows = tuple(
        Judgment(Segment(text, None, ("a b c",)), score, item=str(n))
        for n, (text, score) in enumerate(zip(texts * 5, [9.0, 8, 7, 1, 1, 1] * 5, strict=True))
    )
    sets = [JudgmentSet(name="x", judgments=rows)]
    analysis = analyse(sets, CountsLetter(letter="a"), CountsLetter(letter="b"), example_count=1)
    # the best fifth are 6 of 30: five texts of score 9, and all five of score 8
    assert analysis.counts["all"] == {"only first": 5, "only second": 0, "both": 5, "neither": 0}
    assert analysis.counts["unknown words"]["both"] == 0
    assert [segment.hypothesis for segment in analysis.examples["only first"]] == ["a"]


def test_top_share_is_per_group_and_has_all_ties():
    groups = ["a"] * 5 + ["b"] * 5
    assert np.flatnonzero(mark_highest(HUMAN, groups)).tolist() == [0, 5]
    tied = np.array([1.0, 9, 9, 0, 0, np.nan, 3, 3, 3, 2])
    assert np.flatnonzero(mark_highest(tied, groups)).tolist() == [1, 2, 6, 7, 8]


def test_two_settings_of_one_metric_are_shown_by_spec():
    rows = tuple(
        Judgment(Segment(f"a cat {n}", None, ("a cat",)), float(n), item=str(n)) for n in range(9)
    )
    sets = [JudgmentSet(name="x", judgments=rows)]
    plain, squared, other = map(load_metric, ("chrf", "chrf:beta=1", "bleu"))
    assert analyse(sets, plain, squared).metrics == ("chrf", "chrf:beta=1")
    assert analyse(sets, plain, other).metrics == ("chrF", "BLEU")
    with pytest.raises(UsageError, match="'chrf' is given twice"):
        analyse(sets, plain, plain)


def test_set_without_references_error():
    good, bare = (Judgment(Segment("a b", None, r), 1.0, lp="de-en") for r in (("a b",), ()))
    sets = [
        JudgmentSet(name=name, lp="de-en", judgments=(judgment,))
        for name, judgment in (("news", good), ("qe", bare))
    ]
    with pytest.raises(DataError, match=r"^qe de-en: no references"):
        analyse(sets, load_metric("chrf"), load_metric("bleu"))
